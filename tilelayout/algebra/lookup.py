"""How a layout reads coordinates: by arithmetic at first, by tables once the same question comes again and again.

A flat index ``w * high + low`` is at ``f(w * high) + f(low)`` on every axis when w ends within or between iters at a
divisor, since then no digit carries.  So two short tables for each axis give all places.  They are made after a
few questions with one and the same shape object, and only where they are short: a layout that is asked
once pays nothing for them.
"""

from __future__ import annotations

from . import evaluate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from ..axis import Axis
    from ..parts import Offset, RawIter

    Tables = tuple[Any, int, tuple[tuple[Axis, list[int], list[int]], ...]]
    Half = list[tuple[int, int, Axis]]

PATIENCE: Final = 8
"""Questions with the same shape before tables are made, which takes as long as some ten answers by arithmetic."""

TABLE_ENTRIES: Final = 512
"""What the tables of one layout may hold in all."""

_NO_TABLES: Final[Any] = (object(), 0, ())


class Reader:
    """How `apply` reads one layout.

    Attributes:
        plan: for `evaluate.apply`.
        tables: ``(shape, w, axes)``, for coordinates in this very shape object.  With w, the coordinate is one index
            below the size, ``w * high + low``; with 0 it is the pair ``(high, low)``.  For each axis of `axes` comes
            what `high` and what `low` adds, the offset with the former.  One tuple, so that it is replaced at once.
    """

    __slots__ = ("_offset", "_rank", "_seen", "_shard", "_times", "plan", "tables")

    def __init__(self, shard: tuple[RawIter, ...], offset: Offset) -> None:
        self._shard = shard
        self._offset = offset
        self.plan = evaluate.plan(shard, offset)
        self.tables: Tables = _NO_TABLES
        self._seen: Any = self
        self._rank = self._times = 0

    def apply(self, coord: tuple[Any, ...], shape: Any) -> dict[Axis, Any]:
        """Axis -> value by arithmetic; see `evaluate.apply`."""
        found = evaluate.apply(self._shard, self._offset, self.plan, coord, shape)
        if shape is not self._seen or len(coord) != self._rank:
            self._seen, self._rank, self._times = shape, len(coord), 1
        else:
            self._times += 1
            if self._times == PATIENCE:
                made = self._made(shape)
                if made is not None:
                    self.tables = made
        return found

    def _made(self, shape: Any) -> Tables | None:
        """Tables for coordinates in `shape`, which has been found valid; None where there are none."""
        size, axes, _ = self.plan
        dims: Any = shape
        if shape is None:
            dims = (size,) if self._rank == 1 else tuple([it[0] for it in self._shard])
        # A list may change, and an integer of another type is left to the general case.
        if not size or type(dims) is not tuple:
            return None
        sides: list[Any] = [*dims]  # pyright: ignore[reportUnknownArgumentType]
        if not all(type(n) is int for n in sides):
            return None
        if len(sides) == 1:
            width = key = _middle(self._shard, size)
        elif len(sides) == 2:
            width, key = int(sides[1]), 0
        else:
            return None
        halves = _split(self._shard, width)
        if halves is None or (size // width + width) * len(axes) > TABLE_ENTRIES:
            return None
        high, low = halves
        return shape, key, tuple([(a, _table(high, a, at), _table(low, a, 0)) for a, at, _ in axes])


def _middle(shard: tuple[RawIter, ...], size: int) -> int:
    """A width at which the flat index may be split, near the square root of the size."""
    weight = 1
    for it in reversed(shard):
        e: Any = it[0]
        if weight * e * weight * e > size:
            part = 1
            for q in range(2, min(e, TABLE_ENTRIES) + 1):
                if weight * q * weight * q > size:
                    break
                if e % q == 0:
                    part = q
            return weight * part
        weight *= e
    return weight


def _split(shard: tuple[RawIter, ...], width: int) -> tuple[Half, Half] | None:
    """The iters that count multiples of `width`, and those that count below it; None where an iter counts both."""
    high: Half = []
    low: Half = []
    weight = 1
    for it in reversed(shard):
        e: Any = it[0]
        s: Any = it[1]
        beyond = weight * e
        if beyond <= width:
            low.append((e, s, it[2]))
        elif weight >= width:
            high.append((e, s, it[2]))
        else:
            part, uneven = divmod(width, weight)
            if uneven or e % part:
                return None
            low.append((part, s, it[2]))
            high.append((e // part, s * part, it[2]))
        weight = beyond
    return high[::-1], low[::-1]


def _table(half: Half, axis: Axis, at: int) -> list[int]:
    """The coordinate on `axis`, from `at` on, for every index that these iters count."""
    found = [at]
    for e, s, a in half:
        if a is axis and s:
            steps = range(0, e * s, s)
            found = [v + step for v in found for step in steps]
        else:
            found = [v for v in found for _ in range(e)]
    return found
