"""What CuTe's Python implementations share: results as values, modes in their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .algebra_on_m import places


def integers(x: Any) -> Iterator[int]:
    """The leaves of nested tuples."""
    if isinstance(x, tuple | list):
        for part in x:
            yield from integers(part)
    else:
        yield int(x)


def values(x: Any) -> list[int]:
    """The places of every flat index, the first mode fastest; of a layout, or of a layout and its offset."""
    layout, offset = x if type(x) is tuple else (x, 0)
    table = places(tuple(integers(layout.shape))[::-1], tuple(integers(layout.stride))[::-1])
    return [offset + place for place in table]
