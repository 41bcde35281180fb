"""slice of every compact layout of up to 48 elements, plain and with more on top: a layout iff one exists."""

from __future__ import annotations

from random import Random

import pytest

from property_tests.algebra import compacts, reference
from tilelayout import LayoutError, TileLayout

AXES = ("laneid", "m", "warpid")


def values_of(layout: TileLayout) -> list[reference.Vector]:
    flats = range(reference.size(layout))
    return [tuple(at.get(a, 0) for a in AXES) for at in (reference.displacement(layout, i) for i in flats)]


def check_ranges(layout: TileLayout) -> int:
    """Every range of the flat index; how many have a layout."""
    values = values_of(layout)
    found = 0
    for begin in range(len(values)):
        for end in range(begin + 1, len(values) + 1):
            try:
                part = layout.slice((len(values),), [(begin, end)])
            except LayoutError:
                assert not reference.greedy_is_layout(values[begin:end]), (layout, begin, end)
                continue
            assert part.replica == layout.replica
            moved = tuple(part.offset.get(a, 0) for a in AXES)
            there = [reference.total(moved, [v], [1]) for v in reference.vectors(part.shard, AXES)]
            assert there == values[begin:end], (layout, begin, end, part)
            found += 1
    return found


def check_all(sizes: range, seed: int) -> None:
    """As it is, and with gaps, axes, an offset and copies drawn on top."""
    rng = Random(seed)
    for size in sizes:
        for layout in compacts.compact(size):
            assert check_ranges(layout) >= size
            check_ranges(compacts.on_axes(compacts.with_gaps(layout, rng), rng))


def test_every_range_of_every_compact_layout_of_up_to_16_elements() -> None:
    check_all(range(1, 17), 1)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [range(17, 33), range(33, 41), range(41, 48), range(48, 49)], ids=str)
def test_every_range_of_every_compact_layout_of_up_to_48_elements(sizes: range) -> None:
    check_all(sizes, 2)
