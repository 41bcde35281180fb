"""What CTAs know of one another: who has counted on which counter, and who has waited for it."""

from __future__ import annotations

from typing import Any

import numpy as np

COUNTED = 1 << 32
"""Values of a counter."""
ATOMIC = 1
"""Owners of an element beside the CTAs: whoever counts there."""


class Order:
    """One CTA's part: the machine knows the order of CTAs, not that of their warps.

    Attributes:
        cta: its number.
        now: its counts so far; what it has written since the last is known to nobody.
        known: by number of a CTA plus 1, how many of its counts this one has waited for.
    """

    def __init__(self, cta: int, ctas: int) -> None:
        self.cta, self.now = cta, 0
        self.known: Any = np.zeros(1 + ctas + ATOMIC, np.int32)


class Counters:
    """Of a launch: what each counter's values say, in the order in which they were reached."""

    def __init__(self) -> None:
        self._reached: dict[tuple[str, int], list[tuple[int, Any]]] = {}

    def count(self, place: tuple[str, int], value: int, order: Order) -> None:
        """A CTA has counted to that value: what it wrote, and what it knows, is known to whoever waits for it."""
        order.now += 1
        reached = self._reached.setdefault(place, [])
        known = np.maximum(order.known, reached[-1][1]) if reached else order.known.copy()
        known[order.cta + 1] = order.now
        reached.append((value, known))

    def waited(self, place: tuple[str, int], value: int, order: Order) -> None:
        """A CTA has waited for that value.  Further counts may have been made, and need not have been."""
        for reached, known in self._reached.get(place, ()):
            if reached >= value:
                np.maximum(order.known, known, out=order.known)
                return
