"""From a place back to the elements that are there: the digits that add up to each coordinate."""

from __future__ import annotations

from ..errors import LayoutError
from .canonicalize import fuse_replica
from .sums import solutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..axis import Axis
    from ..parts import Integer, Offset, RawIter

BUDGET = 2**18
"""Sums that are tried on one axis."""

LIST_LIMIT = 2**20
"""Elements that are listed."""


def elements_at(
    shard: tuple[RawIter, ...],
    replica: tuple[RawIter, ...],
    offset: Offset,
    place: dict[Axis, Integer | None],
    operation: str,
) -> tuple[int, ...]:
    """Post-condition: exactly the flat indices that have an owner at `place`, rising.

    An axis that `place` leaves out is at 0; one that is None there may be anywhere.
    Errors: Undecided where the search, and LayoutError where the answer, is too long.
    """
    if replica:
        replica, offset = fuse_replica(replica, offset)
    axes: dict[Axis, list[tuple[int, int, int]]] = {
        a: [] for a in (*place, *offset)
    }  # (stride, extent, weight)
    weight = 1
    for e, s, a in reversed(shard):
        _check_plain(e, s, operation)
        axes.setdefault(a, []).append((s, e, weight))  # type: ignore[arg-type]  # plain integers
        weight *= e  # type: ignore[assignment,operator]
    for e, s, a in replica:
        _check_plain(e, s, operation)
        axes.setdefault(a, []).append((s, e, 0))  # type: ignore[arg-type]
    found = [0]
    for a, digits in axes.items():
        at = place.get(a, 0)
        begin = offset.get(a, 0)
        _check_plain(begin, 0 if at is None else at, operation)
        mine = _on_axis(digits, None if at is None else at - begin, operation)  # type: ignore[arg-type]
        if len(found) * len(mine) > LIST_LIMIT:
            raise LayoutError(
                operation, f"more than {LIST_LIMIT} elements are at {place}", "ask for a single place"
            )
        found = [x + y for x in found for y in mine]
    return tuple(sorted(found))


def _check_plain(x: Integer, y: Integer, operation: str) -> None:
    for n in (x, y):
        if type(n) is not int:
            raise LayoutError(operation, f"{n} is symbolic", "substitute numbers first")


def _on_axis(digits: list[tuple[int, int, int]], distance: int | None, operation: str) -> list[int]:
    """What the digits of one axis add to the flat index wherever they add up to `distance` (None: anything)."""
    out = [0]
    moving: list[tuple[int, int, int]] = []
    for s, e, weight in digits:
        if e != 1 and s != 0 and distance is not None:
            moving.append((s, e, weight))
        elif weight:
            if len(out) * e > LIST_LIMIT:
                raise LayoutError(
                    operation, f"more than {LIST_LIMIT} elements are at the place", "ask for a single place"
                )
            out = [x + c * weight for x in out for c in range(e)]
    if distance is None:
        return out
    moving.sort(key=lambda digit: -abs(digit[0]))
    terms = [(s, 0, e - 1) if s > 0 else (-s, 1 - e, 0) for s, e, _ in moving]
    sums = {
        sum([abs(c) * weight for c, (_, _, weight) in zip(chosen, moving, strict=True)])
        for chosen in solutions(terms, distance, BUDGET, operation)
    }
    return [x + y for x in out for y in sums]
