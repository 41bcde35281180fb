"""Places of a window one after the other, each a step from the last: two registers, where each of many would take two.

Many turns of a thread are the same distance apart.  Addresses that are calculated from the first place would all be
kept through a kernel's loop, since none of them changes there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tilelayout.expr import Index, Var

from ..control import Set
from ..window import MAX_DISTANCE
from .window_places import Coordinate, Places

FEW = 4
"""Turns whose places are as well kept."""


class Walk:
    """The places of some coordinates, in order.

    Attributes:
        step: between neighbors; None where they differ, or are few: each place is its own expression then.
    """

    def __init__(self, at: Places, coordinates: Sequence[Coordinate]) -> None:
        self.places = [at.place(x) for x in coordinates]
        steps = list(dict.fromkeys([b - a for a, b in pairwise(self.places)]))
        self.step: Index | None = steps[0] if len(steps) == 1 and len(self.places) > FEW else None
        self.here = Var(f"{at.window.name}_here", 0, MAX_DISTANCE)

    def before(self, i: int) -> list[Set]:
        """What is set before place number i is used; in order, and none left out."""
        if self.step is None:
            return []
        return [Set(self.here, self.here + self.step if i else self.places[0])]

    def place(self, i: int) -> Index:
        """Place number i."""
        return self.places[i] if self.step is None else self.here


__all__ = ["Walk"]
