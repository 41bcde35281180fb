"""``setmaxnreg``: a warpgroup gives registers back, or takes those that others gave."""

from __future__ import annotations

from functools import cache

from tilelayout import LayoutError

from .ordering import ordering
from .protocols import HINT
from .record import Instruction

ARCHITECTURES = (90, 100, 103, 110, 120, 121)


@cache
def setmaxnreg(count: int, more: bool) -> Instruction:
    """From here on each thread of the warpgroup has `count` registers: more than before, or fewer.

    Errors: LayoutError for a count that is no multiple of 8 from 24 to 256.
    """
    if count % 8 or not 24 <= count <= 256:
        raise LayoutError("setmaxnreg", f"{count} registers: a multiple of 8 from 24 to 256 is needed")
    direction = "inc" if more else "dec"
    return ordering(
        f"setmaxnreg.{direction}.{count}",
        f"setmaxnreg.{direction}.sync.aligned.u32 {count};",
        (),
        "Miscellaneous Instructions: setmaxnreg",
        HINT,
        90,
        (8, 0),
        collective=True,
        specific=ARCHITECTURES,
    )
