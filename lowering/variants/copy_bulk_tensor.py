"""``copy`` between a window and shared memory by the copy engine (TMA): variant ``copy.bulk_tensor``.

The engine moves boxes of a tensor by its own knowledge of strides and rims, a `TensorMap`.  A box lies packed in shared
memory, the contiguous dimension of global memory innermost, or with the 16-byte units of its rows permuted by one of
three swizzles.  Which boxes a tile is follows from its layout; that they are the tile is proved for every element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product as combinations
from typing import Any

from tilelayout import LayoutError, Swizzle, SwizzledLayout
from tilelayout.expr import Index

from ..control import SWIZZLES, TensorMap
from ..dispatch import register_dispatch
from ..errors import fail
from ..isa.bulk import BULK_LOAD, BULK_LOAD_CTA, BULK_STORE, RANKS
from ..isa.protocols import BULK_LOAD as _LOAD
from ..ops import CopyCall
from ..program import Address, Comment, Instr, Program, every
from ..scope import Context
from .window_sides import WINDOW_AND_SHARED, Sides, sides

ALIGNED = 128
"""Bytes that a box begins at a multiple of, in shared memory; under a swizzle 8 of its rows (PTX ISA, "Tensor
swizzling modes"; CUDA driver API, ``cuTensorMapEncodeTiled``)."""
MOST_BOXES = 32
"""In one copy: more are slower than what threads do."""
MOST = 256
"""Extent of a box in any dimension."""
UNIT = 16
"""Bytes that the engine counts in along contiguous memory: a box begins at a multiple, and is stored in whole ones (see
`protocols.BULK_STORE`)."""


@dataclass(frozen=True)
class Boxes:
    """A tile as boxes of one shape.

    Attributes:
        extents: of a box, by dimension of the region.
        order: those dimensions, the contiguous one of global memory first, then as a box has them in shared memory.
        begins: (coordinate, position in shared memory) of each, in elements.
        swizzle: bytes of a swizzled row, 0 for none.
    """

    extents: tuple[int, ...]
    order: tuple[int, ...]
    begins: tuple[tuple[tuple[int, ...], int], ...]
    swizzle: int


@register_dispatch("copy", "cuda", variant="copy.bulk_tensor", priority=7, when=(WINDOW_AND_SHARED,))
def copy_bulk_tensor(call: CopyCall, context: Context) -> Program:
    """Boxes by the copy engine, begun by the one thread that executes the body, and done later.

    A load tells ``config={"barrier": address}``, an mbarrier of shared memory, when its `bulk_bytes` have landed; the
    caller expects them there.  A store ends uncommitted.  It writes whole units of 16 bytes, also where a row of the
    tensor ends within one; so it is declined unless the rows are whole units for sure, or by a promise,
    ``config={"whole_units": True}``, which every launch checks.  Along contiguous memory a box begins at a multiple of
    16 bytes.  Lower priority than what is done when it ends: take it by name.
    """
    two = sides(call, context)
    loads = BULK_LOAD_CTA if context.target.ptx >= BULK_LOAD_CTA[1].ptx else BULK_LOAD
    instructions = loads if two.load else BULK_STORE
    rank = len(two.window.box)
    if rank not in RANKS:
        fail(f"{two.window.name} has {rank} dimensions, a tensor map at most {RANKS[-1]}")
    problem = instructions[rank].refusal(context.target)
    if problem:
        fail(f"{instructions[rank].name}: {problem}")
    _check_window(two)
    promised = context.config.get("whole_units", False) is True
    _check_units(two, promised)
    barrier = context.config.get("barrier")
    if two.load and not isinstance(barrier, Address):
        fail(
            'config={"barrier": address} does not name the mbarrier that a load by the copy engine arrives on'
        )
    boxes = _boxes(two)
    tensor_map, dims = _map(two, boxes, promised and not two.load)
    body: list[Any] = [Comment(_note(two, boxes))]
    for coordinate, position in boxes.begins:
        begin = dict(zip(two.dims, coordinate, strict=True))
        at = tuple([two.window.origin[d] + begin.get(d, 0) for d in dims])
        address = Address(two.buffer, (position + two.shared.shift,))
        arguments = (address, tensor_map, *at, barrier) if two.load else (tensor_map, *at, address)
        body.append(Instr(instructions[rank], arguments))
    return Program(
        f"copy_bulk_tensor_{call.src.tile.name}_to_{call.dst.tile.name}",
        context.warps,
        (),
        (),
        tuple(body),
        (two.source, two.buffer, *([barrier.buffer] if two.load else [])),
        maps=(tensor_map,),
    )


def bulk_bytes(program: Program) -> int:
    """Bytes that the loads of a program's copy engine report to their barriers: whole boxes, rims included."""
    return sum(
        [
            s.arguments[1].bytes  # type: ignore[union-attr]
            for s in every(program.body)
            if isinstance(s, Instr) and s.instruction.protocol == _LOAD
        ]
    )


def _note(two: Sides, boxes: Boxes) -> str:
    extents = " x ".join([str(boxes.extents[d]) for d in boxes.order])
    how = f"swizzle {boxes.swizzle} B" if boxes.swizzle else "no swizzle"
    return (
        f"{len(boxes.begins)} boxes of {extents} {two.window.dtype} (the contiguous dimension first), {how}"
    )


def _check_window(two: Sides) -> None:
    """What the copy engine can know of a tensor."""
    window = two.window
    if two.bits % 8:
        fail(f"{window.name} packs elements of {two.bits} bits, and the copy engine counts bytes")
    for d, iters in enumerate(window.dims):
        if len(iters) != 1:
            fail(
                f"dimension {d} of {window.name} has {len(iters)} iters, a tensor map one stride a dimension"
            )
        if iters[0][1] == 0:
            fail(f"dimension {d} of {window.name} has stride 0")
    if window.base != 0:
        fail(
            f"{window.name} begins {window.base} elements behind its pointer, and a tensor map at it: make batches a "
            f"dimension of the window"
        )
    if window.alignment % UNIT:
        fail(f"{window.name} is aligned to {window.alignment} bytes, the copy engine needs {UNIT}")


def _check_units(two: Sides, promised: bool) -> None:
    """That the box begins with a unit, and that what is stored ends with one."""
    window, d = two.window, two.window.contiguous
    if d is None:
        fail(f"no dimension of {window.name} is known to have stride 1")
    if not _whole(window.origin[d], two.bits):
        fail(
            f"{window} begins at {window.origin[d]} in dimension {d}, along which memory is contiguous, for all that "
            f"is known no multiple of {UNIT} bytes, where boxes of the copy engine begin: let it begin at a multiple "
            f"of {8 * UNIT // two.bits} elements, or copy by threads"
        )
    if not two.load and not promised and not _whole(window.sizes[d], two.bits):
        fail(
            f"{window.name} has {window.sizes[d]} {window.dtype} in dimension {d}, along which memory is contiguous, "
            f"for all that is known no whole units of {UNIT} bytes, and the copy engine stores these: it would "
            f'overwrite what is behind them; promise them by config={{"whole_units": True}}, or copy by threads'
        )


def _whole(x: Index, bits: int) -> bool:
    """Whether so many elements are whole units of 16 bytes, for all values of the variables."""
    return x * bits % (8 * UNIT) == 0


# --- boxes --------------------------------------------------------------------------------------


def _boxes(two: Sides) -> Boxes:
    """The tile as boxes, the largest that its layout has."""
    whole = two.shared.layout
    plain = whole.layout if isinstance(whole, SwizzledLayout) else whole
    contiguous = two.window.contiguous
    if contiguous not in two.dims:
        fail(
            f"the box has extent 1 in dimension {contiguous} of {two.window.name}, along which memory is contiguous"
        )
    first = two.dims.index(contiguous)
    inner = _innermost(two, plain)
    if inner[first][1] != 1:
        fail(
            f"{two.region}: neighbors along dimension {contiguous} of {two.window.name} lie {inner[first][1]} elements "
            f"apart in shared memory; in a box they are neighbors, as in global memory"
        )
    row = inner[first][0] * two.bits // 8
    if inner[first][0] > MOST or inner[first][0] * two.bits % 128:
        fail(
            f"rows of {inner[first][0]} {two.window.dtype}: a box has 16-byte units, and at most {MOST} elements"
        )
    extents, order = _packed(inner, first, two.shape)
    begins = tuple(_begins(plain, two.shape, extents))
    if len(begins) > MOST_BOXES:
        fail(f"{whole} is {len(begins)} boxes of {extents}, more than {MOST_BOXES}")
    swizzle = _swizzle(two, plain, Boxes(extents, order, begins, 0), row)
    _check_alignment(two, begins, max(ALIGNED, 8 * swizzle))
    return Boxes(extents, order, begins, swizzle)


def _innermost(two: Sides, plain: Any) -> list[tuple[int, int]]:
    """(extent, stride) of the last iter of each dimension in shared memory."""
    try:
        grouped, seps = plain.canonicalize().group(two.shape)
    except LayoutError as error:
        return fail(f"{two.region}: {error}")
    if any(it.extent != 1 for it in grouped.replica):
        fail(f"{two.region}: layout {plain} has a replica, a box has one place for each element")
    found: list[tuple[int, int]] = []
    for d in range(len(two.shape)):
        iters = [it for it in grouped.shard[seps[d] : seps[d + 1]] if it.extent != 1]
        found.append((iters[-1].extent, iters[-1].stride) if iters else (1, 1))
    return found


def _packed(
    inner: list[tuple[int, int]], first: int, shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Extents of a box by dimension, and the order in which it has them: as long as each follows the ones before."""
    extents = [1] * len(shape)
    extents[first] = reach = inner[first][0]
    order = [first]
    rest = sorted([d for d in range(len(shape)) if d != first], key=lambda d: inner[d][1])
    for d in rest:
        extent, stride = inner[d]
        order.append(d)
        if stride != reach:
            continue
        extents[d] = max([n for n in range(1, min(extent, MOST) + 1) if extent % n == 0])
        reach = reach * extent if extents[d] == extent else 0  # nothing can follow a part
    return tuple(extents), tuple(order)


def _begins(
    plain: Any, shape: tuple[int, ...], extents: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], int]]:
    for at in combinations(*[range(0, n, e) for n, e in zip(shape, extents, strict=True)]):
        yield at, plain.apply(*at, shape=shape).get("m", 0)


def _swizzle(two: Sides, plain: Any, boxes: Boxes, row: int) -> int:
    """The swizzle under which these boxes are the tile: proved for every element, or declined."""
    wanted = two.positions()
    packed = _places(two, boxes)
    for width in SWIZZLES:
        if width in (0, row):
            found = packed
            if width:
                found = Swizzle((width // 16).bit_length() - 1, 4, 3).in_units(8, two.bits).apply(packed)
            if (found == wanted).all():
                return width
    widths = ", ".join([f"{w} bytes" for w in SWIZZLES if w])
    return fail(
        f"{two.region}: {two.shared.layout} is neither plain boxes with rows of {row} bytes nor such under the copy "
        f"engine's swizzle, whose rows are of {widths}"
    )


def _places(two: Sides, boxes: Boxes) -> Any:
    """Where packed boxes have each element, ``[*shape]``."""
    import numpy as np

    strides, reach = {}, 1
    for d in boxes.order:
        strides[d] = reach
        reach *= boxes.extents[d]
    found = np.empty(two.shape, np.int64)
    local = np.indices(boxes.extents)
    within = sum(local[d] * strides[d] for d in range(len(two.shape)))
    for at, position in boxes.begins:
        found[tuple([slice(x, x + n) for x, n in zip(at, boxes.extents, strict=True)])] = position + within
    return found


def _check_alignment(two: Sides, begins: tuple[tuple[tuple[int, ...], int], ...], needed: int) -> None:
    if two.alignment % needed:
        fail(f"{two.alignment_text}, boxes need {needed}")
    for at, position in begins:
        if position * two.bits % (8 * needed):
            fail(
                f"{two.region}: the box of {at} begins at byte {position * two.bits // 8}, no multiple of {needed}"
            )


def _map(two: Sides, boxes: Boxes, whole_units: bool) -> tuple[TensorMap, tuple[int, ...]]:
    """What the engine is told of the tensor, and the window's dimensions in its order."""
    window = two.window
    dims = [two.dims[d] for d in boxes.order]
    dims += [d for d in reversed(range(len(window.box))) if d not in dims]
    extents = dict(zip(two.dims, boxes.extents, strict=True))
    return (
        TensorMap(
            f"{window.name}_map",
            two.source,
            tuple([window.sizes[d] for d in dims]),
            tuple([window.dims[d][0][1] for d in dims[1:]]),
            tuple([extents.get(d, 1) for d in dims]),
            boxes.swizzle,
            whole_units,
        ),
        tuple(dims),
    )


__all__ = ["bulk_bytes", "copy_bulk_tensor"]
