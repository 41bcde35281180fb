"""Where copies of a set of places go: what complement, the divides and the products come down to."""

from __future__ import annotations


def filling(places: list[int], cosize: int) -> list[int] | None:
    """The only set B with ``places + B = [0, cosize)``, each sum once: the least number missing must be met next."""
    low = min(places)
    covered: set[int] = set()
    found = []
    for x in range(cosize):
        if x not in covered:
            copy = {p - low + x for p in places}
            if len(copy) < len(places) or copy & covered or max(copy) >= cosize:
                return None
            covered |= copy
            found.append(x - low)
    return found


def free(places: list[int], count: int) -> list[int] | None:
    """The first `count` offsets of copies, each the least place that is still free; None where copies overlap."""
    low = min(places)
    covered: set[int] = set()
    found: list[int] = []
    x = 0
    while len(found) < count:
        if x not in covered:
            copy = {p - low + x for p in places}
            if copy & covered:
                return None
            covered |= copy
            found.append(x)
        x += 1
    return found
