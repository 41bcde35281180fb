"""Taking tilings and direct sums apart: given the whole and one of its two parts, the other, or why there is none.

The whole's iters, grouped to the interleaved shape, are those of the two parts in turn, since grouped iters give each
part's displacement on its own.  The known part must be there; the other is what is left.
TIRx calls these is_tile_inner, is_tile_outer, is_direct_sum_right and is_direct_sum_left.
"""

from __future__ import annotations

from ..errors import LayoutError
from .canonicalize import fuse
from .equivalent import difference as first_difference
from .equivalent import in_shape
from .group import group
from .integers import at_most, if_divides, quotient, same
from .replicas import difference
from .tile import scaled, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..axis import Axis
    from ..parts import Integer, Offset, Parts, RawIter

    Shard = tuple[RawIter, ...]
    Shape = tuple[Integer, ...]


def recover_outer(inner: Parts, tiled: Parts, tiled_shape: Shape, inner_shape: Shape) -> Parts:
    """The layout with which `tile(inner, outer, ...)` gives `tiled`, refused iff there is none."""
    operation = "recover_outer"
    outer_shape = _divided(tiled_shape, inner_shape, "inner", operation)
    left, right = _halves(tiled[0], outer_shape, inner_shape, operation)
    _check_same(right, inner[0], inner_shape, "inner", operation)
    per = spans(inner[0], inner[1], operation)
    shard: list[RawIter] = []
    for e, s, a in left:
        span = per.get(a, 1)
        stride = s // span if type(s) is int and type(span) is int and s % span == 0 else quotient(s, span)
        if stride is None:
            raise LayoutError(
                operation,
                f"the stride {s} of an outer iter of extent {e} on {a} is no multiple of {span}, the inner's span",
                "recover_left takes apart sums whose addends are not scaled",
            )
        shard.append((e, stride, a))
    return tuple(shard), *difference(tiled[1:], inner[1:], per, operation, "the outer layout")


def recover_inner(outer: Parts, tiled: Parts, tiled_shape: Shape, outer_shape: Shape) -> Parts:
    """The layout that `tile(inner, outer, ...)` makes `tiled`, refused iff there is none.

    The span of the inner layout scales the outer one.  On an axis it is its shard's span plus the reach of its
    replica, and what the replica reaches is what the whole's reaches less the scaled outer's: hence
    ``span = (reach of the whole's replica + span of the inner shard) / (reach of the outer's replica + 1)``.
    """
    operation = "recover_inner"
    inner_shape = _divided(tiled_shape, outer_shape, "outer", operation)
    left, right = _halves(tiled[0], outer_shape, inner_shape, operation)
    shard, replica, offset = outer
    axes = {it[2] for it in (*shard, *replica)} | offset.keys()
    per: dict[Axis, Integer] = {}
    inner_spans = spans(right, (), operation)
    whole_reach, outer_reach = spans((), tiled[1], operation), spans((), replica, operation)
    for a in axes:
        total = whole_reach.get(a, 1) - 1 + inner_spans.get(a, 1)
        span = quotient(total, outer_reach.get(a, 1))
        if span is None or not at_most(inner_spans.get(a, 1), span):
            raise LayoutError(
                operation,
                f"no inner layout has the span on {a} that scales the outer one: its shard and the replicas reach "
                f"{total}, which the outer's copies ({outer_reach.get(a, 1)} places wide) do not divide",
            )
        per[a] = span
    shard = scaled(shard, per)
    _check_same(left, shard, outer_shape, "outer", operation, " (scaled by the inner layout's span)")
    moved = {a: v * per[a] for a, v in offset.items()}
    found = difference(tiled[1:], (scaled(replica, per), moved), {}, operation, "the inner layout")
    return right, *found


def recover_left(right: Parts, total: Parts, shape: Shape, right_shape: Shape) -> Parts:
    """The layout whose direct sum with `right` is `total`, refused iff there is none.

    `shape` is the shape of the sum, or its interleaved form ``(left_0, right_0, left_1, right_1, ...)``.
    """
    operation = "recover_left"
    left_shape = _other_shape(shape, right_shape, 1, operation)
    left, found = _halves(total[0], left_shape, right_shape, operation)
    _check_same(found, right[0], right_shape, "right", operation)
    return left, *difference(total[1:], right[1:], {}, operation, "the left layout")


def recover_right(left: Parts, total: Parts, shape: Shape, left_shape: Shape) -> Parts:
    """The layout with which `left` gives `total` as direct sum, refused iff there is none; `shape` as above."""
    operation = "recover_right"
    right_shape = _other_shape(shape, left_shape, 0, operation)
    found, right = _halves(total[0], left_shape, right_shape, operation)
    _check_same(found, left[0], left_shape, "left", operation)
    return right, *difference(total[1:], left[1:], {}, operation, "the right layout")


def _divided(whole: Shape, part: Shape, what: str, operation: str) -> Shape:
    if len(whole) != len(part):
        raise LayoutError(operation, f"shape {whole} and {what} shape {part} differ in rank")
    out: list[Integer] = []
    for d, (n, k) in enumerate(zip(whole, part, strict=True)):
        count = quotient(n, k)
        if count is None:
            raise LayoutError(
                operation, f"dimension {d}: {k} of the {what} shape does not divide {n}", if_divides(k, n)
            )
        out.append(count)
    return tuple(out)


def _other_shape(shape: Shape, known: Shape, place: int, operation: str) -> Shape:
    """The other addend's shape; `place` is 0 where the known one is the left, 1 where it is the right."""
    what = ("left", "right")[place]
    if len(shape) != 2 * len(known):
        return _divided(shape, known, what, operation)
    for d, n in enumerate(known):
        if not same(shape[2 * d + place], n):
            raise LayoutError(
                operation,
                f"dimension {2 * d + place} of the interleaved shape {shape} is not dimension {d} of the {what} shape "
                f"{known}",
            )
    return shape[1 - place :: 2]


def _halves(shard: Shard, left_shape: Shape, right_shape: Shape, operation: str) -> tuple[Shard, Shard]:
    """The iters of the left and of the right shape, of a shard over the two interleaved."""
    interleaved = [n for pair in zip(left_shape, right_shape, strict=True) for n in pair]
    grouped, seps = group(shard, tuple(interleaved), operation)
    left: list[RawIter] = []
    right: list[RawIter] = []
    for k in range(0, len(interleaved), 2):
        middle = seps[k + 1]
        left += grouped[seps[k] : middle]
        right += grouped[middle : seps[k + 2]]
    return tuple(left), tuple(right)


def _check_same(found: Shard, given: Shard, shape: Shape, what: str, operation: str, how: str = "") -> None:
    """Refuse where the part that is in the whole isn't the one that was given, with a coordinate that shows it."""
    if found == given or fuse(found) == fuse(given):
        return
    none: Offset = {}
    try:
        flat = first_difference((found, (), none), (given, (), none))
    except LayoutError as error:
        raise LayoutError(operation, f"the {what} layout{how}: {error.rule}") from None
    if flat is not None:
        raise LayoutError(
            operation,
            f"the whole does not move like the {what} layout{how}: they differ at its coordinate "
            f"{in_shape(flat, shape)} in {shape}",
        )
