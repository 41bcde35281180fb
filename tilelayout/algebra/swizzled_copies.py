"""Copies of a swizzled layout that lie where the swizzle doesn't repeat: the layout before the swizzle, from a list.

Where copies lie whole periods apart, `swizzled_tile` answers at any size.  Elsewhere the places of all elements are
listed, taken back through the swizzle, and recognized, or not.
"""

from __future__ import annotations

from ..parts import M, nonzero, product
from .slice import recognized
from .swizzled_tile import interleaved
from .unswizzle import SEARCH_LIMIT
from .window import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..parts import Parts
    from .swizzled_tile import Shapes
    from .window import Digits, Vector


def copied(
    inner: Parts,
    outer: Parts,
    shapes: Shapes,
    maps: tuple[Callable[[int], int], Callable[[int], int]],
    operation: str,
) -> Parts | None:
    """Parts whose swizzled values are ``f_outer(x) + apply(f_inner(y))`` on `m`; `maps` is the swizzle and its inverse.

    None where no layout before the swizzle has them, and where that isn't known: symbols, replicas that move on `m`,
    more than `SEARCH_LIMIT` elements.
    """
    apply, back = maps
    both = (*inner[0], *outer[0])
    size = product([it[0] for it in both])
    starts = inner[2].get(M, 0), outer[2].get(M, 0)
    numbers = [size, *starts, *[it[1] for it in both]]
    if any(type(x) is not int for x in numbers) or int(size) > SEARCH_LIMIT:
        return None
    if any(it[2] is M and it[0] != 1 and it[1] != 0 for it in (*inner[1], *outer[1])):
        return None
    whole = interleaved(inner, outer, shapes, operation)
    near = _digits(interleaved(inner, _still(outer), shapes, operation))
    far = _digits(interleaved(_still(inner), outer, shapes, operation))
    values: list[Vector] = []
    for flat in range(int(size)):
        at, other = value(near, flat), value(far, flat)
        place = apply(int(starts[0]) + int(at.get(M, 0))) + int(starts[1]) + int(other.get(M, 0))
        for axis, distance in other.items():
            at[axis] = at.get(axis, 0) + distance
        at[M] = back(place)
        values.append(at)
    found = recognized(values)
    return None if found is None else (tuple(found), whole[1], nonzero({**whole[2], M: values[0][M]}))


def _still(parts: Parts) -> Parts:
    """The same digits, none of which moves."""
    return tuple([(it[0], 0, it[2]) for it in parts[0]]), (), {}


def _digits(parts: Parts) -> Digits:
    return [(it[0], {it[2]: it[1]}) for it in reversed(parts[0])]
