"""Sets of lanes of a warp: a mask of bits beside the arrays that numpy wants of it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ...isa.operand_map import LANES

EVERY = (1 << LANES) - 1
"""The mask of all lanes."""


class Lanes:
    """Some lanes of a warp.

    Attributes:
        mask: bit l is lane l.
        index: the lanes' numbers, rising.
        flags: of each lane, whether it is one.
        count: how many there are.
        all: whether that is every lane.
        rows: `index`, or the slice of every lane: what numpy reads without a copy.
    """

    __slots__ = ("all", "count", "flags", "index", "mask", "rows")

    def __init__(self, mask: int) -> None:
        self.mask = mask
        self.flags = (mask >> np.arange(LANES)) & 1 == 1
        self.index = np.flatnonzero(self.flags)
        self.count = int(self.index.size)
        self.all = mask == EVERY
        self.rows: Any = slice(0, LANES) if self.all else self.index


@cache
def lanes_of(mask: int) -> Lanes:
    """The lanes of a mask."""
    return Lanes(mask)


def mask_of(flags: Any) -> int:
    """The mask of an array of 32 booleans."""
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def lanes_at(index: Any) -> Lanes:
    """The lanes of those numbers."""
    return lanes_of(sum(1 << lane for lane in index.tolist()))
