"""Slicing: the layout of a box of the logical shape, if there is one.

Where the iters can be grouped to the shape, a box has a layout iff each of its ranges has one: positions add
up over the dimensions, and a layout of the whole has a digit boundary wherever they do.  `window` decides a
range by arithmetic.  A shape that cuts across iters is first relieved of the boundaries that the box doesn't
need; what is left of it is searched.
"""

from __future__ import annotations

from itertools import product as cartesian

from ..errors import LayoutError, Undecided
from ..parts import UNIT, as_entries, as_integer, nonzero, product
from .canonicalize import fuse
from .group import find, group, split
from .integers import at_most, folded, if_at_most, same
from .later import Later
from .window import difference, single_axis, slice_dimension, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..parts import Integer, Offset, Parts, RawIter
    from . import stepped as _stepped
    from .window import Digits, Vector

    Range = tuple[Integer, Integer, Integer, str]  # extent, begin, length, and its dimensions' name
else:
    _stepped = Later("stepped")

SEARCH_LIMIT = 2**16
"""Positions that are listed before a box is given up as undecided."""


def slice_layout(parts: Parts, shape: tuple[Integer, ...], region: Any) -> Parts:
    """Post-condition: at every coordinate of the box, the owners of ``begin + coordinate`` in `shape`.

    A range is (begin, end), half open, or (begin, end, step).
    Returns a layout iff one exists; LayoutError names the dimension otherwise.  Only a large box in a shape
    that the iters can't be grouped to is left Undecided.
    """
    shard, replica, offset = parts
    entries = as_entries(region, "slice", "region")
    if len(entries) != len(shape):
        raise LayoutError("slice", f"region has {len(entries)} ranges, shape {shape} has rank {len(shape)}")
    for bounds in entries:
        if type(bounds) in (tuple, list) and len(bounds) == 3:
            return _stepped.slice_stepped(parts, shape, entries)
    found = find(shard, shape, "slice")
    base = dict(offset)
    if found is None:
        ranges = [
            (n, *check_range(bounds, n, d), str(d))
            for d, (bounds, n) in enumerate(zip(entries, shape, strict=True))
        ]
        try:
            return tuple(across(shard, shape, joined(ranges), base)), replica, nonzero(base)
        except LayoutError as error:  # of joined dimensions, which the caller doesn't know
            box = ", ".join([f"[{begin}, {begin + length})" for _, begin, length, _ in ranges])
            raise type(error)("slice", f"the box {box} of {shape}: {error.rule}", error.remedy) from None
    grouped, seps = found
    out: list[RawIter] = []
    for d, bounds in enumerate(entries):
        begin, length = check_range(bounds, shape[d], d)
        iters = grouped[seps[d] : seps[d + 1]]
        whole = same(begin, 0) and same(length, shape[d])
        out += iters if whole else slice_dimension(iters, begin, length, base, d)
    return tuple(out), replica, nonzero(base)


def check_range(bounds: Any, extent: Integer, d: int) -> tuple[Integer, Integer]:
    """(begin, length) of a half-open range inside a dimension of that extent."""
    if type(bounds) in (tuple, list) and len(bounds) == 2:
        begin, end = bounds
        if type(begin) is int and type(end) is int and type(extent) is int and 0 <= begin < end <= extent:
            return begin, end - begin
    # A `range` of two would pass for a pair: its entries are not its bounds.
    if type(bounds) is range or len(pair := as_entries(bounds, "slice", f"range {d}")) != 2:
        raise LayoutError(
            "slice", f"range {d} must be a pair (begin, end) or (begin, end, step), got {bounds!r}"
        )
    begin = folded(as_integer(pair[0], "slice", f"begin of dimension {d}"))
    end = folded(as_integer(pair[1], "slice", f"end of dimension {d}"))
    length = folded(end - begin)
    if type(length) is not int and not same(length, extent):
        raise LayoutError(
            "slice",
            f"dimension {d}: length {length} is symbolic",
            "give bounds whose difference folds to a number",
        )
    if type(length) is int and length < 1:
        raise LayoutError("slice", f"dimension {d}: range [{begin}, {end}) is empty")
    if type(begin) is int and begin < 0:
        raise LayoutError("slice", f"dimension {d}: begin {begin} is negative")
    if not at_most(end, extent):
        verb = "ends past" if type(end) is int and type(extent) is int else "is not known to end by"
        raise LayoutError(
            "slice",
            f"dimension {d}: range [{begin}, {end}) {verb} the extent {extent}",
            if_at_most(end, extent),
        )
    if not at_most(0, begin):
        raise LayoutError(
            "slice", f"dimension {d}: begin {begin} is not known to be nonnegative", if_at_most(0, begin)
        )
    return begin, length


def one_range(iters: tuple[RawIter, ...], r: Range, base: Offset) -> tuple[RawIter, ...]:
    """The iters of a range of a dimension that has these; adds where it begins to `base`."""
    extent, begin, length, name = r
    if begin == 0 and same(length, extent):
        return iters
    return slice_dimension(iters, begin, length, base, name)


# --- shapes that the iters cannot be grouped to -------------------------------------------------


def joined(ranges: list[Range]) -> list[Range]:
    """The same box, its neighboring dimensions joined wherever their boundary is of no account.

    That is where the inner range is whole, or the outer one is a single index.
    """
    out: list[Range] = []  # innermost first
    for extent, begin, length, name in reversed(ranges):
        if out:
            inner, inner_begin, inner_length, inner_name = out[-1]
            whole = same(inner_begin, 0) and same(inner_length, inner)
            if whole or length == 1:
                out[-1] = (
                    extent * inner,
                    begin * inner + inner_begin,
                    length * inner if whole else inner_length,
                    f"{name} to {inner_name.split()[-1]}",
                )
                continue
        out.append((extent, begin, length, name))
    out.reverse()
    return out


def across(
    shard: tuple[RawIter, ...], shape: tuple[Integer, ...], ranges: list[Range], base: Offset
) -> list[RawIter]:
    """The iters of a box in a shape that cuts across the iters of the shard.

    Dimensions are taken together up to the next boundary that cuts no iter: over those runs positions add
    up, so each run is decided on its own.
    """
    fused = fuse(shard)
    plain = all(type(x) is int for it in fused for x in it[:2]) and all(
        type(x) is int for r in ranges for x in r[:3]
    )
    runs: list[list[Range]] = []
    inner: Integer = 1
    for r in reversed(ranges):
        if runs and split(fused, (product(it[0] for it in fused) // inner, inner)) is None:
            runs[-1].insert(0, r)
        else:
            runs.append([r])
        inner = inner * r[0]
    if not plain and len(runs) < len(ranges):
        group(shard, shape, "slice")  # refuses, and says where the shape cuts
    runs.reverse()
    grouped, seps = group(fused, tuple([product(r[0] for r in run) for run in runs]), "slice")
    out: list[RawIter] = []
    for k, run in enumerate(runs):
        iters = grouped[seps[k] : seps[k + 1]]
        out += one_range(iters, run[0], base) if len(run) == 1 else searched(iters, run, base)
    return out


def searched(iters: tuple[RawIter, ...], ranges: list[Range], base: Offset) -> list[RawIter]:
    """The iters of a box in plain integers, found from its positions one by one."""
    name = f"dimensions {ranges[0][3].split()[0]} to {ranges[-1][3].split()[-1]}"
    count = product(length for _, _, length, _ in ranges)
    if count > SEARCH_LIMIT:  # type: ignore[operator]  # plain integers
        raise Undecided(
            "slice",
            f"{name} cut across the iters, and the {count} positions there are too many to search",
            "slice in a shape that the layout can be grouped to",
        )
    digits: Digits = [(it[0], {it[2]: it[1]}) for it in reversed(iters)]
    values: list[Vector] = []
    for coord in cartesian(*[range(begin, begin + length) for _, begin, length, _ in ranges]):  # type: ignore[operator]
        flat: Any = 0
        for c, (extent, _, _, _) in zip(coord, ranges, strict=True):
            flat = flat * extent + c
        values.append(value(digits, flat))
    out = recognized(values)
    if out is None:
        extents = ", ".join(str(it[0]) for it in iters)
        raise LayoutError(
            "slice", f"{name} cut across the iters ({extents}), and no layout has its positions"
        )
    for a, v in values[0].items():
        base[a] = base.get(a, 0) + v
    return out or [UNIT]


def recognized(values: list[Vector]) -> list[RawIter] | None:
    """The iters whose positions, from the first on, are `values`; None where there are none.

    The innermost digit of the fused form ends where the first step that differs comes.
    """
    out: list[RawIter] = []  # innermost first
    while len(values) > 1:
        step = difference(values[1], values[0])
        stride = single_axis(step)
        if stride is None:
            return None
        extent = 1
        while extent < len(values) and difference(values[extent], values[extent - 1]) == step:
            extent += 1
        if len(values) % extent:
            return None
        for i in range(1, len(values)):
            if i % extent and difference(values[i], values[i - 1]) != step:
                return None
        out.append((extent, *stride))
        values = values[::extent]
    out.reverse()
    return out
