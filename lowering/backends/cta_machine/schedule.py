"""Which warp goes on next, and when asynchronous data lands: one of the orders that hardware may choose."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ...isa.operand_map import LANES

ROUND_ROBIN = 0
"""Warps in turn, one straight run of instructions each; data lands when nothing else can happen."""
GREEDY = -1
"""The first warp as far as it can, then the next; data lands at once."""
GREEDY_BACKWARDS = -2
"""The last warp as far as it can, then the one before; data lands when nothing else can happen."""

EXAMPLES = (ROUND_ROBIN, GREEDY, GREEDY_BACKWARDS, 1, 2)
"""Schedules that differ as much as schedules do: for tests."""


class Schedule:
    """The schedule of that number: one of the named ones, or what a random generator chooses with it as seed."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._random = Random(number) if number not in (ROUND_ROBIN, GREEDY, GREEDY_BACKWARDS) else None
        self._last = -1

    def next(self, able: Sequence[int]) -> int:
        """One of the warps that can go on, numbers rising."""
        if self._random:
            return self._random.choice(able)
        if self._number == ROUND_ROBIN:
            self._last = next((w for w in able if w > self._last), able[0])
        elif self._last not in able:  # greedy: the same one as long as it can
            self._last = able[0] if self._number == GREEDY else able[-1]
        return self._last

    def lands_early(self) -> bool:
        """Whether data lands as soon as it is asked for."""
        return self._random.random() < 0.3 if self._random else self._number == GREEDY

    def lands_now(self, under_way: int) -> int | None:
        """Which of so many copies lands between two steps, if one does."""
        if not self._random or self._random.random() < 0.7:
            return None
        return self._random.randrange(under_way)

    def lands_next(self, under_way: int) -> int:
        """Which of them lands when nothing else can happen."""
        return self._random.randrange(under_way) if self._random else 0

    def divided(self, mask: int) -> list[int]:
        """Lanes whose copies land together: parts of the mask."""
        some = (
            self._random.getrandbits(LANES) & mask if self._random and self._random.random() < 0.5 else mask
        )
        return [part for part in (some, mask & ~some) if part]

    def order(self, count: int) -> list[int]:
        """The order of so many CTAs."""
        found = list(range(count))
        if self._random:
            self._random.shuffle(found)
        return found[::-1] if self._number == GREEDY_BACKWARDS else found
