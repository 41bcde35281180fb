"""Fragments read backwards: which element sits in which slot of which thread.

A *slot* is an element's place in a thread's register file, counted in elements (`m` of the layout).  Threads are
numbered through the hierarchy of `axis`: thread = 32 warp + lane.
"""

from __future__ import annotations

from typing import NamedTuple

from ..algebra.evaluate import copies
from ..errors import LayoutError
from .memory import as_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from ..layout import TileLayout

    Place = tuple[int, int]  # (thread, slot)

LANES: Final = 32
MOST_THREADS: Final = 1024
MOST_PLACES: Final = 2**20

# axis -> (threads a step, coordinates that exist)
THREADS: Final = {
    "laneid": (1, 32), "tid_in_wg": (1, 128), "tx": (1, 1024),
    "wid_in_wg": (32, 4), "warpid": (32, 32), "wgid": (128, 8),
}  # fmt: skip


class Holders(NamedTuple):
    """Who holds what.

    Attributes:
        elements: (thread, slot) -> flat logical index.
        places: flat logical index -> its places, one for each copy (a place that two copies share is there twice).
        slots: of a thread, from 0 to the largest in use.
        threads: how many the numbering reaches, a whole number of warps.
    """

    elements: dict[Place, int]
    places: list[list[Place]]
    slots: int
    threads: int


def holders_of(layout: TileLayout, operation: str) -> Holders:
    """Read a register layout backwards.

    Errors: LayoutError for an axis that is neither threads nor `m`, a lane, warp or slot that does not exist, two
    elements in one slot, symbols, and for more than 2**20 places.
    """
    size = as_number(layout.size(), operation, "the layout's size", 1)
    steps = copies(tuple([it for it in layout.replica if it.extent != 1]))
    if size * len(steps) > MOST_PLACES:
        raise LayoutError(
            operation,
            f"{layout} has {size * len(steps)} places, more than the {MOST_PLACES} that are listed",
            "one tile at a time",
        )
    table = {axis.name: values.tolist() for axis, values in layout.table((size,)).items()}
    still = [0] * size
    places: list[list[Place]] = [[] for _ in range(size)]
    for step in steps:
        moved = {
            axis.name: as_number(distance, operation, "distance", None) for axis, distance in step.items()
        }
        threads, slots = still, still
        for axis in sorted({*table, *moved}):
            there: list[int] = table.get(axis, still)
            by = moved.get(axis, 0)
            if axis == "m":
                slots = [x + by for x in there]
                continue
            weight, count = THREADS.get(axis, (0, 1))
            low, high = min(there) + by, max(there) + by
            if low < 0 or high >= count:
                _refuse_axis(layout, axis, low if low < 0 else high, operation)
            threads = [t + weight * (x + by) for t, x in zip(threads, there, strict=True)]
        for element, place in enumerate(zip(threads, slots, strict=True)):
            places[element].append(place)
    return _turned(layout, places, operation)


def _turned(layout: TileLayout, places: list[list[Place]], operation: str) -> Holders:
    elements: dict[Place, int] = {}
    for element, mine in enumerate(places):
        for place in mine:
            thread, slot = place
            if slot < 0:
                raise LayoutError(operation, f"{layout} reaches register slot {slot}", "add an offset on m")
            if elements.setdefault(place, element) != element:
                raise LayoutError(
                    operation,
                    f"{layout} puts elements {elements[place]} and {element} into slot {slot} of thread {thread}",
                    "a layout that is injective",
                )
    last = max(thread for thread, _ in elements)
    if last >= MOST_THREADS:
        raise LayoutError(operation, f"{layout} reaches thread {last}, and a block has {MOST_THREADS}")
    slots = 1 + max(slot for _, slot in elements)
    return Holders(elements, places, slots, (last // LANES + 1) * LANES)


def _refuse_axis(layout: Any, axis: str, value: int, operation: str) -> None:
    if axis in THREADS:
        raise LayoutError(
            operation, f"{layout} reaches {value} on {axis}, which has 0 to {THREADS[axis][1] - 1}"
        )
    raise LayoutError(
        operation,
        f"{layout} places elements along {axis}, which names no thread of a block and no register",
        f"lanes, warps and m: one fragment at a time, without {axis}",
    )
