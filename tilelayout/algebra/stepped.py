"""Slices with steps: ``(begin, end, step)`` takes ``begin, begin + step, ...`` below `end`.

A step that divides a digit, or is a multiple of it, leaves a range of the digits that remain, which `window` decides.
Everything else is a composition: the layout read at ``begin + step * index``.
"""

from __future__ import annotations

from math import gcd

from ..errors import LayoutError, Undecided
from ..parts import M, as_integer, is_symbolic, nonzero, product
from .canonicalize import fuse
from .compose import compose
from .group import find
from .integers import divided, if_divides, quotient, same
from .slice import check_range
from .window import slice_dimension

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..parts import Integer, Offset, Parts, RawIter

    Range = tuple[Integer, Integer, int]  # begin, how many, step


def slice_stepped(parts: Parts, shape: tuple[Integer, ...], entries: tuple[Any, ...]) -> Parts:
    """`slice_layout` for a region in which some ranges have steps: a layout is returned iff one exists.

    Errors: LayoutError; Undecided where carries would have to be searched in more than 65536 positions.
    """
    shard, replica, offset = parts
    ranges = [_checked(bounds, shape[d], d) for d, bounds in enumerate(entries)]
    base = dict(offset)
    found = find(shard, shape, "slice")
    if found is None:
        return _across(parts, shape, ranges, entries)
    grouped, seps = found
    out: list[RawIter] = []
    for d, (begin, length, step) in enumerate(ranges):
        iters = grouped[seps[d] : seps[d + 1]]
        if step == 1 and begin == 0 and same(length, shape[d]):
            out += iters
        else:
            try:
                out += _dimension(iters, begin, length, step, base, d)
            except LayoutError as error:
                what = f"dimension {d}: {_text(entries[d])} of {shape[d]}"
                raise _refused(error, what, fuse(iters), entries[d]) from None
    return tuple(out), replica, nonzero(base)


def _checked(bounds: Any, extent: Integer, d: int) -> Range:
    """A range inside a dimension of that extent; without a step it goes by one."""
    if type(bounds) not in (tuple, list) or len(bounds) != 3:
        return *check_range(bounds, extent, d), 1
    step = as_integer(bounds[2], "slice", f"step of dimension {d}")
    if type(step) is not int or step < 1:
        raise LayoutError(
            "slice",
            f"dimension {d}: step {step} is not a positive number",
            "reverse a dimension with compose",
        )
    begin, length = check_range(tuple(bounds[:2]), extent, d)
    if type(length) is int:
        return begin, -(-length // step), step
    count = quotient(length, step)
    if count is None:
        raise LayoutError(
            "slice",
            f"dimension {d}: whether {step} divides the length {length} depends on symbols",
            if_divides(step, length),
        )
    return begin, count, step


def _dimension(
    iters: tuple[RawIter, ...], begin: Integer, length: Integer, step: int, base: Offset, d: int
) -> tuple[RawIter, ...]:
    """The iters of a stepped range of a dimension; adds where it begins to `base`."""
    rest = list(fuse(iters))
    while step != 1 and length != 1 and len(rest) > 1:
        e, s, a = rest[-1]
        common = gcd(e, step) if type(e) is int else step if quotient(e, step) is not None else 1
        if common == 1:
            break
        # The digit's part below the common factor stays where it begins.
        digit = divided(begin, common)[1]
        if digit != 0:
            base[a] = base.get(a, 0) + digit * s
        over = quotient(begin - digit, common)
        begin, step = divided(begin, common)[0] if over is None else over, step // common
        left = quotient(e, common)
        if left is None or left == 1:
            rest.pop()
        else:
            rest[-1] = (left, s * common, a)
    if len(rest) == 1 and step != 1:
        e, s, a = rest[0]
        if begin != 0:
            base[a] = base.get(a, 0) + begin * s
        return ((length, step * s, a),)
    if step == 1 or length == 1:
        return slice_dimension(tuple(rest), begin, length, base, d)
    shard, _, offset = compose((tuple(rest), (), {}), (((length, step, M),), (), {M: begin}), "slice")
    for a, v in offset.items():
        base[a] = base.get(a, 0) + v
    return shard


def _across(parts: Parts, shape: tuple[Integer, ...], ranges: list[Range], entries: tuple[Any, ...]) -> Parts:
    """The same in a shape that cuts across the iters: the box is read through at once."""
    weights: list[Integer] = [product(shape[d + 1 :]) for d in range(len(shape))]
    at: Integer = 0
    for (begin, _, _), weight in zip(ranges, weights, strict=True):
        at = at + begin * weight
    index = tuple([(n, step * weight, M) for (_, n, step), weight in zip(ranges, weights, strict=True)])
    try:
        return compose(parts, (index, (), nonzero({M: at})), "slice")
    except LayoutError as error:
        text = ", ".join(map(_text, entries))
        bounds = [x for entry in entries for x in entry]
        raise _refused(error, f"the box {text} of {shape}", fuse(parts[0]), bounds) from None


def _text(bounds: Any) -> str:
    """A range as it was asked for."""
    step = f" by steps of {bounds[2]}" if len(bounds) == 3 else ""
    return f"[{bounds[0]}, {bounds[1]}){step}"


def _refused(error: LayoutError, what: str, iters: tuple[RawIter, ...], bounds: Sequence[Any]) -> LayoutError:
    """The same refusal in the terms of what was asked, whatever was reduced before the rule broke."""
    extents = ", ".join(str(it[0]) for it in iters)
    if isinstance(error, Undecided):
        return Undecided(
            "slice", f"{what} carries in the iters ({extents}), and has too many positions to search"
        )
    if any(is_symbolic(x) for x in (*bounds, *[x for it in iters for x in it[:2]])):
        return LayoutError(
            "slice", f"{what}: whether it carries in the iters ({extents}) depends on symbols", error.remedy
        )
    return LayoutError(
        "slice",
        f"{what} carries in the iters ({extents}), and no layout has its positions",
        "choose a step that divides the inner extents or is a multiple of them",
    )
