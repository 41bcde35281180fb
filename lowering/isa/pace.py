"""An instruction that passes time: for threads whose work would otherwise be in the way of others'."""

from __future__ import annotations

from .ordering import ordering
from .protocols import HINT
from .record import Operand

NANOSLEEP = ordering(
    "nanosleep",
    "nanosleep.u32 {ns};",
    (Operand("ns", 1, "value", "read"),),
    "Miscellaneous Instructions: nanosleep",
    HINT,
    75,
    (6, 3),
)
"""The warp rests for about so many nanoseconds, up to twice as many."""

__all__ = ["NANOSLEEP"]
