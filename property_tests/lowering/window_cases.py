"""Windows on tensors of run-time extent, drawn; and what must be true of copies from and to them, said in numpy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lowering import Lowered, Tile, Window, copy
from lowering.dtypes import dtype
from lowering.isa import protocols
from lowering.program import Address, Buffer, If, Instr, every
from lowering.variants.copy_bulk_tensor import bulk_bytes
from tilelayout import S, TileLayout
from tilelayout.expr import Index, Var

from .window_machine import Guarded, Machine

MOST = (1 << 31) - 1 - 512
BARRIER = Address(Buffer("full", "full", "int32", (8,), 0, "shared", 8), (0,))


def memory_bits(name: str) -> int:
    """That an element of a type takes in memory: 6-bit ones have a byte each."""
    return {6: 8}.get(dtype(name).bits, dtype(name).bits)


@dataclass(frozen=True)
class Tensor:
    """A matrix in global memory at run time: sizes, the stride of its rows (columns), and a box of it.

    `symbolic` says whether a kernel knows all this at run time only; `steps`: whether the box begins at a multiple of
    its extents, or at any place.
    """

    sizes: tuple[int, int]
    leading: int
    box: tuple[int, int]
    origin: tuple[int, int]
    dtype: str = "float16"
    column: bool = False
    base: int = 0
    alignment: int = 0
    symbolic: bool = True

    @property
    def bits(self) -> int:
        """That an element takes in memory."""
        return memory_bits(self.dtype)

    @property
    def promised(self) -> int:
        """The alignment that the strides keep, up to 16 bytes."""
        if self.alignment:
            return self.alignment
        whole = gcd(16 * 8, self.leading * self.bits, self.base * self.bits) // 8
        return max(whole, self.bits // 8, 1)

    @property
    def window(self) -> Window:
        if not self.symbolic:
            return self._window(self.sizes, self.leading, self.origin, self.base)
        M, N, ld = Var("M", 1, MOST), Var("N", 1, MOST), Var("ld", 1, MOST)
        steps = tuple(
            [
                Var(f"t{d}", 0, MOST // n) * n if o % n == 0 else Var(f"t{d}", 0, MOST)
                for d, (o, n) in enumerate(zip(self.origin, self.box, strict=True))
            ]
        )
        per = max(1, 8 // self.bits)
        return self._window((M * per, N * per), ld, steps, Var("base", 0, 1 << 40) if self.base else 0)

    def _window(self, sizes: Any, ld: Index, origin: Any, base: Index) -> Window:
        strides = (1, ld) if self.column else (ld, 1)
        dims = tuple([((n, s),) for n, s in zip(sizes, strides, strict=True)])
        return Window("X", self.dtype, dims, sizes, origin, self.box, self.promised, base)

    @property
    def variables(self) -> dict[str, int]:
        per = max(1, 8 // self.bits)
        found = {"M": self.sizes[0] // per, "N": self.sizes[1] // per, "ld": self.leading, "base": self.base}
        for d, (o, n) in enumerate(zip(self.origin, self.box, strict=True)):
            found[f"t{d}"] = o // n if o % n == 0 else o
        return found

    # --- numpy's view ---------------------------------------------------------------------------

    def places(self) -> Any:
        """Elements from the pointer, of every element of the tensor."""
        i, j = np.indices(self.sizes)
        return self.base + (j * self.leading + i if self.column else i * self.leading + j)

    def memory(self, seed: int = 0) -> Guarded:
        """Random bits, more of them than the tensor has: all others are forbidden."""
        rng = np.random.default_rng(seed)
        per = max(1, 8 // self.bits)
        length = int(self.places().max()) + 64
        kind = np.dtype(f"u{max(1, self.bits // 8)}")
        data = rng.integers(0, 1 << min(62, 8 * kind.itemsize), -(-length // per)).astype(kind)
        allowed = np.zeros(data.shape, bool)
        allowed[self.places().ravel() // per] = True
        return Guarded(data, allowed)

    def elements(self, data: Any) -> Any:
        """Codes of all elements of a buffer, flat."""
        if self.bits >= 8:
            return data
        per = 8 // self.bits
        return (data[:, None] >> np.arange(per) * self.bits & (1 << self.bits) - 1).ravel().astype(np.uint8)

    def inside(self) -> tuple[Any, Any]:
        """(which elements of the box the tensor has, their places)."""
        i, j = np.indices(self.box)
        x = i + self.origin[0], j + self.origin[1]
        good = (x[0] < self.sizes[0]) & (x[1] < self.sizes[1])
        place = self.base + (x[1] * self.leading + x[0] if self.column else x[0] * self.leading + x[1])
        return good, np.where(good, place, 0)

    def wanted(self, memory: Guarded) -> Any:
        """What the box holds: zeros outside the tensor."""
        good, place = self.inside()
        return np.where(good, self.elements(memory.data)[place], 0)


@st.composite
def tensors(draw: Any, box: tuple[int, int], name: str = "float16", **fixed: Any) -> Tensor:
    """Any sizes around the box, at any multiple of it or any place, with rows of any length."""
    bits = memory_bits(name)
    per = max(1, 8 // bits)
    sizes = [draw(st.integers(1, 2 * n + 5)) for n in box]
    sizes = [-(-n // per) * per for n in sizes]
    column = fixed.get("column", draw(st.booleans()))
    tight = sizes[0] if column else sizes[1]
    unit = draw(st.sampled_from([n for n in (1, 2, 4, 8, 16, 32) if n % per == 0]))
    leading = -(-tight // unit) * unit + unit * draw(st.integers(0, 2))
    whole = draw(st.booleans())
    origin = tuple(
        [
            n * draw(st.integers(0, 2)) if whole else -(-draw(st.integers(0, s)) // per) * per
            for n, s in zip(box, sizes, strict=True)
        ]
    )
    base = draw(st.sampled_from((0, 0, unit, 3 * unit)))
    symbolic = draw(st.booleans())
    return Tensor(
        tuple(sizes),
        leading,
        box,
        origin,
        name,
        **({"column": column, "base": base, "symbolic": symbolic} | fixed),  # type: ignore[arg-type]
    )


def shared_memory(tile: Tile, buffer: Buffer) -> Guarded:
    kind = np.dtype(f"u{max(1, buffer.container // 8)}")
    size = buffer.elements // buffer.per_unit
    return Guarded(np.full(size, 0xA5 if kind.itemsize == 1 else 0xA5A5, kind), np.ones(size, bool))


def in_tile(tile: Tile, tensor: Tensor, memory: Guarded, stage: int | None = None) -> tuple[Any, Any]:
    """(codes, whether written) of a tile's elements, in its shape; of one stage of it."""
    table = tile.layout.table(tile.shape).get("m")
    place = np.zeros(tile.shape, np.int64) if table is None else np.asarray(table)
    per = max(1, 8 // tensor.bits)
    codes, written = tensor.elements(memory.data)[place], memory.written[place // per]
    return (codes, written) if stage is None else (codes[stage], written[stage])


def check_load(lowered: Lowered, tensor: Tensor, stage: int | None = None, seed: int = 0) -> Machine:
    """Every place of the tile holds what the box has there, and no other place of shared memory was written."""
    tile = lowered.call.dst.tile
    (buffer,) = [b for b in lowered.program.buffers if b.name == tile.name]
    source, target = tensor.memory(seed), shared_memory(tile, buffer)
    before = source.data.copy()
    variables = tensor.variables | ({} if stage is None else {"s": stage})
    machine = Machine(lowered.context.warps, {"X": source, tile.name: target}, variables)
    full = BARRIER.buffer
    machine.memory[full.name] = Guarded(np.zeros(8, np.uint32), np.ones(8, bool))
    machine.run(lowered.program)
    codes, written = in_tile(tile, tensor, target, stage)
    wanted = tensor.wanted(source).reshape(codes.shape)
    np.testing.assert_array_equal(codes, wanted)
    assert written.all()
    per = max(1, 8 // tensor.bits)
    assert target.written.sum() * per == wanted.size, "shared memory outside the tile is written"
    assert (source.data == before).all()
    return machine


def check_store(lowered: Lowered, tensor: Tensor, stage: int | None = None, seed: int = 0) -> Machine:
    """Every element of the box that the tensor has is the tile's, and nothing else in memory has changed."""
    tile = lowered.call.src.tile
    (buffer,) = [b for b in lowered.program.buffers if b.name == tile.name]
    target, source = tensor.memory(seed), shared_memory(tile, buffer)
    source.data = (
        np.random.default_rng(seed + 1).integers(0, 251, source.data.shape).astype(source.data.dtype)
    )
    source.written[:] = True
    before = target.data.copy()
    variables = tensor.variables | ({} if stage is None else {"s": stage})
    machine = Machine(lowered.context.warps, {"X": target, tile.name: source}, variables)
    machine.run(lowered.program)
    codes, _ = in_tile(tile, tensor, source, stage)
    check_stored(tensor, target, before, codes)
    return machine


def check_stored(tensor: Tensor, target: Guarded, before: Any, codes: Any) -> None:
    """The tensor holds codes where the box is inside, and what it held elsewhere."""
    good, place = tensor.inside()
    wanted = tensor.elements(before).copy()
    wanted[place[good]] = codes.reshape(tensor.box)[good]
    np.testing.assert_array_equal(tensor.elements(target.data), wanted)
    per = max(1, 8 // tensor.bits)
    assert target.written.sum() * per == good.sum(), "memory outside the box is written"


def row_major(shape: tuple[int, ...], pad: int = 0) -> TileLayout:
    strides, reach = [0] * len(shape), 1
    for d in reversed(range(len(shape))):
        strides[d] = reach
        reach = reach * shape[d] + (pad if d == len(shape) - 1 else 0)
    return TileLayout(S[tuple(shape) : tuple(strides)])


def instructions(lowered: Lowered) -> list[str]:
    return [s.instruction.name for s in every(lowered.program.body) if isinstance(s, Instr)]


__all__ = [
    "BARRIER", "Address", "If", "Tensor", "bulk_bytes", "check_load", "check_store", "check_stored", "copy",
    "instructions", "prod", "protocols", "replace", "row_major", "tensors",
]  # fmt: skip
