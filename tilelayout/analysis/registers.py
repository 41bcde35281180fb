"""How many registers a fragment takes of each thread."""

from __future__ import annotations

from typing import NamedTuple

from ..algebra.canonicalize import fuse_replica
from ..errors import LayoutError
from ..layout import TileLayout
from .memory import as_bits, as_number, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

MOST_REGISTERS: Final = 255
REGISTER_BITS: Final = 32


class RegisterCount(NamedTuple):
    """What `registers_per_thread` found; ``str(count)`` says it.

    Attributes:
        elements: elements that a thread holds.
        slots: their places, from slot 0 to the largest, gaps and the offset on `m` included.
        registers: 32-bit registers for these slots.
        threads: threads that share the tile, copies not counted.
    """

    elements: int
    slots: int
    registers: int
    threads: int

    @property
    def fits(self) -> bool:
        """Whether a thread can have so many: at most 255.

        Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
        """
        return self.registers <= MOST_REGISTERS

    def __str__(self) -> str:
        held = f"{counted(self.elements, 'element')} each of {counted(self.threads, 'thread')}"
        text = f"{counted(self.registers, 'register')} a thread: {held}"
        if self.slots != self.elements:
            text += f", in {self.slots} slots with gaps"
        if not self.fits:
            text += f"; more than the {MOST_REGISTERS} that a thread can have"
            if self.threads < REGISTER_BITS:
                text += f" (only {counted(self.threads, 'thread')} of a warp's 32 hold elements: put digits on laneid)"
        return text


def registers_per_thread(layout: TileLayout, bits: int = 32) -> RegisterCount:
    """The registers that one thread needs for its part of a tile; by arithmetic, at any size.

    >>> from tilelayout import S, TileLayout, laneid
    >>> print(registers_per_thread(TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]), 32))
    4 registers a thread: 4 elements each of 32 threads
    >>> registers_per_thread(TileLayout(S[2, 4, 1024])).fits
    False

    Errors: LayoutError for symbolic extents or strides, and where the layout reaches a negative slot.
    """
    what = "registers_per_thread"
    width = as_bits(bits, what)
    if not isinstance(layout, TileLayout):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise LayoutError(what, f"takes a tile layout, got {type(layout).__name__}")
    shard = [it for it in layout.shard if it.extent != 1]
    replica, moved = fuse_replica(tuple(layout.replica), {})
    low = high = sum(
        as_number(v, what, "offset", None) for a, v in (*layout.offset.items(), *moved.items()) if a == "m"
    )
    held = threads = 1
    for extent, stride, axis in (*shard, *replica):
        count, step = as_number(extent, what, "extent"), as_number(stride, what, "stride", None)
        if axis == "m":
            reach = (count - 1) * step
            low, high, held = low + min(0, reach), high + max(0, reach), held * count
    for it in shard:
        if it.axis.is_thread():
            threads *= as_number(it.extent, what, "extent")
    if low < 0:
        raise LayoutError(what, f"{layout} reaches register slot {low}", "add an offset on m")
    return RegisterCount(held, high + 1, -(-(high + 1) * width // REGISTER_BITS), threads)


def register_budget(fragments: Mapping[str, tuple[TileLayout, int]]) -> tuple[dict[str, RegisterCount], int]:
    """The counts of several fragments that live at once, and their sum; name -> (layout, bits).

    >>> from tilelayout import S, TileLayout, laneid
    >>> D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    >>> register_budget({"D": (D, 32), "A": (D, 16)})[1]
    6
    """
    given: Any = fragments  # whatever it is: callers may be untyped
    if not hasattr(given, "items") or not all(
        type(x) in (tuple, list) and len(x) == 2 for x in given.values()
    ):
        raise LayoutError("register_budget", f"takes a mapping name -> (layout, bits), got {given!r}")
    counts = {name: registers_per_thread(layout, bits) for name, (layout, bits) in fragments.items()}
    return counts, sum(count.registers for count in counts.values())
