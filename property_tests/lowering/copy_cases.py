"""Copies between registers and memory, drawn; and what must be true of them, asked of registers and bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lowering import DispatchError, Lowered, Tile, copy, lower
from lowering.backends.arrays import from_bits, to_bits
from lowering.backends.memory import Memory, collect_memory, fill_memory
from lowering.backends.reference import File, fill, placement, run_program
from lowering.dtypes import dtype
from lowering.fragments import operand_shape, replicated, spread, tiled, transposed
from lowering.isa import DENSE
from lowering.isa.elements import unpack
from tilelayout import Swizzle, SwizzledLayout, TileLayout
from tilelayout.parts import Iter

from ..sequence_cases import column_major, row_major

RECORDS = tuple(
    {
        (i.shape, i.a, i.d): i
        for i in DENSE
        if i.rule != "quadpair" and not i.scale and i.container("A") == dtype(i.a).bits
    }.values()
)
"""One instruction for each shape and types of A and D."""


@dataclass(frozen=True)
class Held:
    """A tile in registers: shape, type and layout, and the scope that carries a copy of it out."""

    shape: tuple[int, int]
    dtype: str
    layout: TileLayout
    scope: str = "warp"
    warps: int = 1

    def tile(self, name: str = "held") -> Tile:
        return Tile(name, self.shape, self.dtype, self.layout)

    @property
    def where(self) -> dict[str, Any]:
        """Arguments of `lower`."""
        return {"scope": self.scope, **({"launch": 32 * self.warps} if self.scope == "cta" else {})}


@st.composite
def fragments(draw: Any, shared: bool = False) -> Held:
    """Operands of the catalogue's instructions: tiled, transposed, over warps; these may hold the same if `shared`."""
    record = draw(st.sampled_from(RECORDS))
    role = draw(st.sampled_from("ABD"))
    tiles = draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    layout = tiled(record, role, tiles)
    one = operand_shape(record, role)
    shape = (one[0] * tiles[0], one[1] * tiles[1])
    warps = draw(st.sampled_from((1, 2, 4)))
    if warps > 1:
        dimension = draw(st.sampled_from((0, 1, 2) if shared else (0, 1)))
        if dimension == 2:
            layout = replicated(layout, warps, "warpid")
        else:
            layout = spread(layout, shape, dimension, warps, "warpid")
            shape = (shape[0] * warps, shape[1]) if dimension == 0 else (shape[0], shape[1] * warps)
    if draw(st.booleans()):
        layout, shape = transposed(layout, shape), (shape[1], shape[0])
    return Held(shape, getattr(record, role.lower()), layout, "cta" if warps > 1 else "warp", warps)


@st.composite
def memory_layouts(draw: Any, shape: tuple[int, ...], bits: int, scope: str = "shared") -> Any:
    """Row- or column-major, padded, shifted by an offset, swizzled in shared memory."""
    order = draw(st.permutations(range(len(shape))))
    unit = draw(st.sampled_from([n for n in (1, 2, 4, 8, 16, 32) if n * bits % 8 == 0] or [8]))
    strides, reach = [0] * len(shape), 1
    for d in reversed(order):
        strides[d] = reach
        reach = reach * shape[d] + unit * draw(st.integers(0, 3))
    offset = unit * draw(st.sampled_from((0, 0, 1, 3)))
    layout = TileLayout.from_iters(
        [Iter(n, s, "m") for n, s in zip(shape, strides, strict=True)], (), {"m": offset}
    )
    if scope != "shared" or draw(st.booleans()):
        return layout
    b = draw(st.integers(1, 3))
    return SwizzledLayout(layout, Swizzle(b, draw(st.integers(0, 4)), draw(st.integers(b, b + 2))))


def numbered(shape: tuple[int, ...], name: str, seed: int = 0) -> Any:
    """Elements of random bits."""
    element = dtype(name)
    codes = np.random.default_rng(seed).integers(0, 1 << min(element.bits, 62), shape)
    return from_bits(codes, element)


def attempt(call: Any, **options: Any) -> Lowered | str:
    """What it was lowered to, or why it was not; nothing unexpected happens on the way."""
    try:
        found = lower(call, **options)
    except DispatchError as error:
        found = " ".join(str(error).split())
    text = found if isinstance(found, str) else found.explain()
    assert "unexpected" not in text, text
    return found


def check(lowered: Lowered, seed: int = 0) -> None:
    """Run a copy of random bits, and ask every place that dst's layout names for its element, and nothing else."""
    if lowered.call.dst.tile.scope == "local":
        _check_load(lowered, seed)
    else:
        _check_store(lowered, seed)


def _region(region: Any) -> tuple[slice, ...]:
    return tuple(slice(b, e) for b, e in region.bounds)


def _check_load(lowered: Lowered, seed: int) -> None:
    dst, src, program = lowered.call.dst, lowered.call.src, lowered.program
    (buffer,), (registers,) = program.buffers, program.outputs
    array = numbered(src.tile.shape, src.tile.dtype, seed)
    store = Memory.empty(buffer)
    fill_memory(store, buffer, src.tile, array)
    files: dict[Any, File] = {registers: File.empty(registers, program.warps)}
    run_program(program, files, {buffer: store})
    file = files[registers]
    wanted = np.zeros(dst.tile.shape, np.uint64)
    inside = np.zeros(dst.tile.shape, bool)
    wanted[_region(dst)] = to_bits(array, src.tile.element)[_region(src)].reshape(wanted[_region(dst)].shape)
    inside[_region(dst)] = True
    at = placement(dst.tile, lowered.context.warp_axis)
    codes = unpack(file.words, registers.dtype, registers.container)
    mine = inside.ravel()[at.element]
    places = at.warp[mine], at.lane[mine], at.slot[mine]
    assert (codes[places] == wanted.ravel()[at.element[mine]]).all()
    assert file.written[places].all()
    assert file.written.sum() == mine.sum(), "registers outside the region are written"


def _check_store(lowered: Lowered, seed: int) -> None:
    dst, src, program = lowered.call.dst, lowered.call.src, lowered.program
    (buffer,), (registers,) = program.buffers, program.inputs
    array = numbered(src.tile.shape, src.tile.dtype, seed)
    files = {registers: File.empty(registers, program.warps)}
    fill(files[registers], src.tile, array, lowered.context.warp_axis)
    store = Memory.empty(buffer)
    run_program(program, files, {buffer: store})
    wanted = to_bits(array, src.tile.element)[_region(src)]
    found = to_bits(collect_memory(store, buffer, dst.tile), dst.tile.element)[_region(dst)]
    assert (found == wanted.reshape(found.shape)).all()
    assert store.written.sum() * buffer.per_unit == wanted.size, "memory outside the tile is written"


__all__ = [
    "RECORDS", "Held", "attempt", "check", "column_major", "copy", "fragments", "memory_layouts", "numbered",
    "row_major",
]  # fmt: skip
