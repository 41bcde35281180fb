"""``copy`` from memory to memory by plain loads and stores: variant ``copy.through_registers``.

Each thread of the scope loads vectors and stores them again.  Which thread takes what is chosen here: the threads go
along the dimension in which global memory is contiguous, and of 16, 8 and 4 bytes a thread that width is taken which
needs the fewest accesses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tilelayout import LayoutError, TileLayout
from tilelayout.parts import Iter, product

from ..dispatch import predicate, register_dispatch
from ..errors import DispatchFail, fail
from ..isa.memory import WIDEST
from ..isa.operand_map import LANES
from ..ops import CopyCall
from ..program import Comment, Instr, Program, Registers
from ..scope import Context
from ..tile import MEMORY, Tile, TileRegion
from .copy_operands import (
    CONSTANT_EXTENT,
    KINDS,
    Pieces,
    container_bits,
    full_active_lanes,
    take_apart,
)
from .copy_vector import accesses
from .regions import region_shape, sliced
from .threads import LANE, check_registers


def memory_to_memory(call: CopyCall, context: Context) -> Any:
    """Both sides have byte addresses."""
    scopes = (call.src.tile.scope, call.dst.tile.scope)
    return (
        set(scopes) <= set(MEMORY)
        or f"copies {' to '.join(scopes)}: both sides must be in shared or global scope"
    )


@register_dispatch(
    "copy", "cuda", variant="copy.through_registers", priority=15,
    when=(
        predicate("full_active_lanes", full_active_lanes), CONSTANT_EXTENT,
        predicate("memory_to_memory", memory_to_memory),
    ),
)  # fmt: skip
def copy_through_registers(call: CopyCall, context: Context) -> Program:
    """Every thread loads and stores the same number of vectors; no access is predicated."""
    if call.src.tile == call.dst.tile:
        fail(
            f"src and dst are both in {call.src.tile.name}: threads would overwrite what others have yet to load"
        )
    best: tuple[int, list[str], list[Instr], Pieces, Pieces] | None = None
    reasons: list[str] = []
    for layout, width in distributions(call, context):
        try:
            load, store = _both(call, context, layout)
            (loaded, loads), (stored, stores) = accesses(load), accesses(store)
        except DispatchFail as reason:
            reasons.append(f"vectors of {width} bytes: {reason}")
            continue
        count = len(loads) + len(stores)
        if best is None or count < best[0]:
            best = (
                count,
                [f"loads: {x}" for x in loaded] + [f"stores: {x}" for x in stored],
                loads + stores,
                load,
                store,
            )
    if best is None:
        return fail("; ".join(reasons))
    _, notes, body, load, store = best
    program = Program(
        f"copy_{call.src.tile.name}_to_{call.dst.tile.name}",
        context.warps,
        (),
        (),
        (*[Comment(note.replace("{", "{{").replace("}", "}}")) for note in notes], *body),
        (load.buffer, store.buffer),
        (load.registers,),
    )
    check_registers(program)
    return program


def _both(call: CopyCall, context: Context, layout: TileLayout) -> tuple[Pieces, Pieces]:
    """From src to registers of that layout, and from there to dst; on the same registers."""
    name = f"{call.src.tile.name}_staged"
    through = Tile(name, region_shape(call.src, "src"), call.src.tile.dtype, layout)
    load = take_apart(CopyCall(through.full, call.src), context)
    store = take_apart(CopyCall(call.dst, through.full), context)
    registers: Registers = replace(load.registers, role="staged")
    return replace(load, registers=registers), replace(store, registers=registers)


def distributions(call: CopyCall, context: Context) -> Iterator[tuple[TileLayout, int]]:
    """(Layout of the registers, bytes of a vector), the widest first.

    Declines where no width shares out all elements among all threads.
    """
    shape = region_shape(call.src, "src")
    if call.dst.tile.dtype != call.src.tile.dtype:
        fail(f"dst is {call.dst.tile.dtype}, src is {call.src.tile.dtype}: a copy converts nothing")
    bits = container_bits(call.src.tile.dtype, context)
    order = _order(call.src if call.src.tile.scope == "global" else call.dst, shape)
    narrowest = 8 if KINDS.get(call.src.tile.dtype) == "f64" else 4
    threads, total = LANES * context.warps, product(shape)
    reason, found = "", False
    width = WIDEST
    while width >= narrowest:
        vector = 8 * width // bits
        each = f"{threads} threads of {width} bytes each"
        if total % (threads * vector):
            reason = f"{total} {call.src.tile.dtype} are no whole number of {threads * vector}: {each}"
        else:
            layout = _distribution(shape, order, vector, context)
            reason = f"extents {shape} are not cut along {order} by {each}"
            if layout is not None:
                found = True
                yield layout, width
        width //= 2
    if not found:
        fail(reason)


def _order(region: TileRegion, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Dimensions, those of smaller steps in memory further in."""
    layout = sliced(region, "memory").layout
    steps = []
    try:
        for d, n in enumerate(shape):
            at = [0] * len(shape)
            first = layout.apply(*at, shape=shape).get("m", 0)
            at[d] = min(1, n - 1)
            steps.append(abs(layout.apply(*at, shape=shape).get("m", 0) - first))
    except LayoutError as error:
        return fail(f"{region}: {error}")
    return tuple(sorted(range(len(shape)), key=lambda d: (-steps[d], d)))


def _distribution(
    shape: tuple[int, ...], order: tuple[int, ...], vector: int, context: Context
) -> TileLayout | None:
    """Threads and vectors counted through the dimensions in that order; as a layout of `shape`.

    None where a dimension's end falls within the lanes, a vector or the warps, in a place that doesn't divide them.
    """
    turns = product(shape) // (LANES * context.warps * vector)
    iters = [Iter(turns, vector, "m"), Iter(LANES, 1, LANE), Iter(vector, 1, "m")]
    if context.warp_axis is not None:
        iters.insert(1, Iter(context.warps, 1, context.warp_axis))
    flat = TileLayout.from_iters(iters)
    try:
        grouped, seps = flat.group(tuple([shape[d] for d in order]))
    except LayoutError:
        return None
    back = tuple([order.index(d) for d in range(len(shape))])
    return grouped.permute_by_groups(seps, back)
