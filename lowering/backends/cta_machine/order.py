"""What CTAs know of one another: a counter's value, who has counted, and who has waited for it."""

from __future__ import annotations

from typing import Any

import numpy as np


class Order:
    """One CTA's part.

    Attributes:
        cta: its number.
        now: its counts so far; what it has written since the last is known to nobody.
        known: by number of a CTA plus 1, how many of its counts this one has waited for.
    """

    def __init__(self, cta: int, ctas: int) -> None:
        self.cta, self.now = cta, 0
        self.known: Any = np.zeros(ctas + 1, np.int32)

    @classmethod
    def all_knowing(cls, ctas: int) -> Order:
        """Of an access that no other can be in the way of."""
        order = cls(0, ctas)
        order.known += np.iinfo(np.int32).max
        return order


class Counters:
    """Of a launch: for each counter how many of each CTA's counts, as `Order.now` has them, it has seen."""

    def __init__(self, ctas: int) -> None:
        self._ctas = ctas
        self._seen: dict[tuple[str, int], Any] = {}

    def count(self, place: tuple[str, int], order: Order) -> None:
        """A CTA counts: what it wrote, and what it knows, is known to whoever waits."""
        order.now += 1
        seen = self._seen.setdefault(place, np.zeros(self._ctas + 1, np.int32))
        np.maximum(seen, order.known, out=seen)
        seen[order.cta + 1] = order.now

    def waited(self, place: tuple[str, int], order: Order) -> None:
        """A CTA has waited for a counter."""
        if place in self._seen:
            np.maximum(order.known, self._seen[place], out=order.known)
