"""slice, tile and tile_to: boxes cut out of a layout, and layouts placed as boxes of a larger one."""

from __future__ import annotations

from itertools import islice
from itertools import product as cartesian

from ..algebra.canonicalize import fuse
from ..algebra.evaluate import apply, plan
from ..algebra.group import find
from ..algebra.group import group as grouped
from ..algebra.integers import at_most, folded, quotient
from ..algebra.interleave import fitting
from ..algebra.tile import row_major, scaled, spans
from ..algebra.window import difference
from ..errors import LayoutError
from ..parts import as_entries, as_integer, as_shape, nonzero, product
from .derivation import Unexplained
from .write import SHOWN, becomes, iter_text, made, number, offset_text, parts_of, shard_text, sum_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..axis import Axis
    from ..parts import Integer, Offset, Parts, RawIter
    from .derivation import Board


# --- slice --------------------------------------------------------------------------------------


def slice(board: Board, layout: Any, shape: Any, region: Any) -> Any:
    """Per dimension: begin, length, the aligned digits, the wrap, the result."""
    shard, replica, offset = parts_of(layout, "slice")
    dims = as_shape(shape, "slice")
    ranges = as_entries(region, "slice", "region")
    if len(ranges) != len(dims):
        board.write(
            "one range per dimension", f"the region has {len(ranges)}, the shape {dims} has {len(dims)}"
        )
        raise Unexplained
    found = find(shard, dims, "slice")
    if found is None:
        _across(board, layout, dims, ranges)
        raise Unexplained
    iters, seps = found
    board.write(
        f"the shape {dims}: the iters by dimensions",
        *(f"dimension {d}: {shard_text(iters[seps[d] : seps[d + 1]])}" for d in range(len(dims))),
    )
    out: list[RawIter] = []
    for d, bounds in enumerate(ranges):
        part = iters[seps[d] : seps[d + 1]]
        title = f"dimension {d}: {_range_text(bounds)} of {shard_text(part)}"
        try:
            one = made(layout, (part, (), {})).slice((dims[d],), [bounds])
            lines = _aligned(part, bounds)
            begins = f", and begins at {offset_text(dict(one.offset))}" if one.offset else ""
            lines.append(f"so the range is {shard_text(one.shard)}{begins}")
        except LayoutError:
            board.write(title, *_aligned(part, bounds))
            raise
        board.write(title, *lines)
        out += one.shard
        for axis, value in one.offset.items():
            offset[axis] = offset.get(axis, 0) + value
    offset = nonzero(offset)
    board.write(
        "together: iters in order, begins added to the offset",
        f"{shard_text(out)}, offset {offset_text(offset)}",
    )
    return made(layout, (tuple(out), replica, offset))


def _range_text(bounds: Any) -> str:
    if type(bounds) in (tuple, list) and len(bounds) in (2, 3):
        step = f" by steps of {bounds[2]}" if len(bounds) == 3 else ""
        return f"[{bounds[0]}, {bounds[1]}){step}"
    return repr(bounds)


def _aligned(part: tuple[RawIter, ...], bounds: Any) -> list[str]:
    """How far whole digits go, and what happens at the first one that is cut."""
    lines: list[str] = []
    if type(bounds) not in (tuple, list) or len(bounds) not in (2, 3):
        return lines
    try:
        numbers = [as_integer(x, "slice", "bound") for x in bounds]
    except LayoutError:
        return lines
    if len(bounds) == 3:
        return _positions(part, numbers)
    begin, length = numbers[0], folded(numbers[1] - numbers[0])
    lines.append(f"begin {begin}, length {length}")
    if (
        not at_most(0, begin)
        or not at_most(1, length)
        or not at_most(begin + length, product(it[0] for it in part))
    ):
        return lines
    rest = list(fuse(part))
    while rest and length != 1:
        inner = rest[-1]
        over, left = quotient(begin, inner[0]), quotient(length, inner[0])
        if over is None or left is None:
            break
        rest.pop()
        whole = f"{inner[0]} divides both: {iter_text(inner)} stays whole"
        lines.append(f"{whole}; of the iters outside it begin {over}, length {left}")
        begin, length = over, left
    if not rest or length == 1:
        return lines
    e = rest[-1][0]
    if type(begin) is not int or type(length) is not int or type(e) is not int:
        return lines
    digit, text = begin % e, iter_text(rest[-1])
    if digit + length <= e:
        lines.append(
            f"{digit} + {length} <= {e}: the digit of {text} does not wrap, and {length} of it are taken"
        )
        return lines
    lines.append(f"{digit} + {length} > {e}: the digit of {text} wraps, at index {begin - digit + e}")
    return lines + _positions(tuple(rest), (begin, begin + length), begin - digit + e)


def _positions(part: tuple[RawIter, ...], bounds: Any, wrap: int | None = None) -> list[str]:
    """The first places of a range, one after the other, and how far the step over the wrap goes."""
    if any(type(x) is not int for x in (*bounds, *(n for it in part for n in it[:2]))) or bounds[-1] == 0:
        return []
    indices = range(*bounds)
    known = plan(part, {})
    if not indices or indices[0] < 0 or indices[-1] >= known[0]:
        return []
    places = [apply(part, {}, known, (i,), None) for i in indices[: SHOWN + 1]]
    more = ", ..." if len(indices) > len(places) else ""
    lines = [
        f"at index {', '.join(map(str, indices[: SHOWN + 1]))}{more}: "
        f"{', '.join(offset_text(nonzero(place)) for place in places)}{more}"
    ]
    if wrap is not None:
        step = {part[-1][2]: part[-1][1]}
        over = difference(apply(part, {}, known, (wrap,), None), apply(part, {}, known, (wrap - 1,), None))
        lines.append(
            f"a step moves by {offset_text(nonzero(step))}, the one over the wrap by {offset_text(over)}"
        )
    return lines


def _across(board: Board, layout: Any, dims: tuple[Integer, ...], ranges: tuple[Any, ...]) -> None:
    """A shape whose dimensions are no runs of iters: the first places of the box, which decide as a whole."""
    lines = [
        f"dimension {d} of {n}: {_range_text(r)}" for d, (n, r) in enumerate(zip(dims, ranges, strict=True))
    ]
    counted = [
        range(*r)
        for r in ranges
        if type(r) in (tuple, list) and len(r) in (2, 3) and all(type(x) is int for x in r) and r[-1] != 0
    ]
    if len(counted) == len(dims):
        coordinates = list(islice(cartesian(*counted), SHOWN))
        places: list[str] = []
        try:
            places += [f"{at}: {offset_text(nonzero(layout.apply(*at, shape=dims)))}" for at in coordinates]
        except LayoutError:  # out of range, which is what the operation says
            places.clear()
        lines += places
    board.write(f"the shape {dims} cuts across the iters {shard_text(fuse(tuple(layout.shard)))}", *lines)


# --- tile ---------------------------------------------------------------------------------------


def tile(board: Board, layout: Any, outer: Any, outer_shape: Any, inner_shape: Any) -> Any:
    """Spans per axis, scaled outer strides, interleaving."""
    shapes = as_shape(outer_shape, "tile"), as_shape(inner_shape, "tile")
    return made(layout, _tiled(board, parts_of(layout, "tile"), parts_of(outer, "tile"), *shapes))


def tile_to(board: Board, layout: Any, to_shape: Any, current_shape: Any) -> Any:
    """The counts of copies; then as `tile` with these in row-major order on m."""
    to, current = as_shape(to_shape, "tile_to"), as_shape(current_shape, "tile_to")
    whole = counted(board, to, current)
    outer = row_major(whole)
    board.write("the outer layout: these copies row-major on m", shard_text(outer))
    return made(layout, _tiled(board, parts_of(layout, "tile_to"), (outer, (), {}), whole, current))


def counted(board: Board, to: tuple[Integer, ...], current: tuple[Integer, ...]) -> tuple[Integer, ...]:
    """How many copies fill each dimension; what they don't fill is refused after the line that says it."""
    counts = [quotient(n, c) for n, c in zip(to, current, strict=False)]
    board.write(
        "the number of copies in each dimension",
        *(
            f"dimension {d}: {n} / {c} = {count}"
            if count is not None
            else f"dimension {d}: {c} does not divide {n}"
            for d, (n, c, count) in enumerate(zip(to, current, counts, strict=False))
        ),
    )
    whole = tuple([count for count in counts if count is not None])
    if len(whole) < max(len(to), len(current)):
        raise LayoutError("tile_to", "the copies don't fill the shape")
    return whole


def _tiled(
    board: Board,
    inner: Parts,
    outer: Parts,
    outer_shape: tuple[Integer, ...],
    inner_shape: tuple[Integer, ...],
) -> Parts:
    if len(outer_shape) != len(inner_shape):
        board.write("the shapes", f"outer {outer_shape}, inner {inner_shape}: another number of dimensions")
        raise Unexplained
    scale = _spans(board, inner)
    over = scaled(outer[0], scale), scaled(outer[1], scale)
    board.write(
        "outer strides times the span on their axis",
        *(
            becomes(it, new, f"{number(it[1])} * {scale.get(it[2], 1)} = {new[1]}")
            for it, new in zip((*outer[0], *outer[1]), (*over[0], *over[1]), strict=True)
        ),
    )
    try:
        shapes = fitting(over[0], outer_shape, inner[0], inner_shape, "tile", ("outer", "inner"))
    except LayoutError:  # a line below says it
        shapes = outer_shape, inner_shape
    if shapes != (outer_shape, inner_shape):
        outer_shape, inner_shape = shapes
        board.write(
            "dimensions between which one side counts one alone are joined",
            f"outer {outer_shape}, inner {inner_shape}",
        )
    copies = _grouped(board, "the outer iters", over[0], outer_shape)
    inside = _grouped(board, "the inner iters", inner[0], inner_shape)
    shard: list[RawIter] = []
    lines: list[str] = []
    for d, (a, b) in enumerate(zip(copies, inside, strict=True)):
        shard += [*a, *b]
        lines.append(f"dimension {d} of extent {outer_shape[d] * inner_shape[d]}: {shard_text([*a, *b])}")
    board.write("interleaved: in each dimension the copies, then the inner layout", *lines)
    if over[1] or inner[1]:
        board.write("the replicas one after the other", ", ".join(map(iter_text, over[1] + inner[1])))
    return tuple(shard), over[1] + inner[1], _offset(board, inner[2], outer[2], scale)


def _spans(board: Board, inner: Parts) -> dict[Axis, Integer]:
    """The inner layout's span on each axis, from the span of each of its iters."""
    scale = spans(inner[0], inner[1])
    reach: dict[Axis, list[Integer]] = {}
    for it in (*inner[0], *inner[1]):
        if it[0] != 1 and it[1] != 0:
            reach.setdefault(it[2], []).append(spans((it,), ())[it[2]] - 1)
    board.write(
        "the span of the inner layout on each axis: 1 + sum of (extent - 1) * |stride|",
        *(
            [f"{axis}: {sum_text([1, *far])} = {scale[axis]}" for axis, far in reach.items()]
            or ["1 on every axis"]
        ),
    )
    return scale


def _grouped(
    board: Board, what: str, shard: tuple[RawIter, ...], shape: tuple[Integer, ...]
) -> list[tuple[RawIter, ...]]:
    """The iters of each dimension; what cannot be grouped is refused after the line that says it."""
    try:
        found, seps = grouped(shard, shape)
    except LayoutError:
        board.write(f"{what} grouped to {shape}", f"{shard_text(shard)} cannot be")
        raise
    parts = [found[seps[d] : seps[d + 1]] for d in range(len(shape))]
    board.write(
        f"{what} grouped to {shape}", *(f"dimension {d}: {shard_text(p)}" for d, p in enumerate(parts))
    )
    return parts


def _offset(board: Board, inner: Offset, outer: Offset, scale: dict[Axis, Integer]) -> Offset:
    offset = dict(inner)
    lines: list[str] = []
    for axis, value in outer.items():
        before = offset.get(axis, 0)
        offset[axis] = before + value * scale.get(axis, 1)
        lines.append(f"{axis}: {number(value)} * {scale.get(axis, 1)} + {number(before)} = {offset[axis]}")
    if outer:
        board.write("the outer offset times the span, plus the inner one", *lines)
    return nonzero(offset) if outer else offset
