"""Registers a thread: case C63, and a count of the places of every layout that is drawn."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests.strategies import layouts
from tilelayout import LayoutError, R, S, TileLayout, laneid, m, warpid
from tilelayout.analysis import register_budget, registers_per_thread

D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])


def test_c63_a_tile_that_no_lane_shares() -> None:
    count = registers_per_thread(TileLayout(S[(2, 4, 1024)]), 32)
    assert (count.registers, count.threads, count.fits) == (8192, 1, False)
    assert str(count) == (
        "8192 registers a thread: 8192 elements each of 1 thread; more than the 255 that a thread can have "
        "(only 1 thread of a warp's 32 hold elements: put digits on laneid)"
    )


def test_c63_counts_without_enumeration() -> None:
    assert registers_per_thread(TileLayout(S[2**40]), 16).registers == 2**39


@pytest.mark.parametrize(("bits", "registers"), [(4, 1), (8, 1), (16, 2), (32, 4), (64, 8)])
def test_narrow_elements_share_a_register(bits: int, registers: int) -> None:
    assert registers_per_thread(D, bits).registers == registers


def test_gaps_offsets_and_copies_count() -> None:
    assert registers_per_thread(TileLayout(S[4:3])).registers == 10
    assert registers_per_thread(TileLayout(S[4] + 2))[:3] == (4, 6, 6)
    assert registers_per_thread(TileLayout(S[4] + R[2:4]))[:3] == (8, 8, 8)
    assert registers_per_thread(TileLayout(S[4] + R[2 : 1 @ warpid]))[:3] == (4, 4, 4)
    assert registers_per_thread(TileLayout(S[4:-1] + 3)).registers == 4
    assert "in 10 slots with gaps" in str(registers_per_thread(TileLayout(S[4:3])))


@given(
    layouts(max_size=64, among=(m, m, laneid, warpid), strides=(1, 2, 4, 8, 3, -1, -2), moved=False),
    st.integers(0, 40),
)
def test_the_span_is_that_of_the_places(layout: TileLayout, offset: int) -> None:
    moved = TileLayout.from_iters(layout.shard, layout.replica, {m: offset})
    slots = [place.get("m", 0) for k in range(moved.size()) for place in moved.owners(k)]
    if min(slots) < 0:
        with pytest.raises(LayoutError, match="reaches register slot"):
            registers_per_thread(moved)
        return
    assert registers_per_thread(moved).slots == max(slots) + 1


def test_a_budget_adds_up() -> None:
    counts, total = register_budget({"D": (D, 32), "A": (D, 16)})
    assert ({name: count.registers for name, count in counts.items()}, total) == ({"D": 4, "A": 2}, 6)


def test_symbols_are_refused() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    with pytest.raises(LayoutError, match="extent n is symbolic"):
        registers_per_thread(TileLayout(S[n]))


@pytest.mark.parametrize("layout", [None, "S[8]", S[8], TileLayout(S[8, 64]).swizzle(3, 3, 3), 5])
def test_what_is_no_tile_layout_is_refused(layout: object) -> None:
    with pytest.raises(LayoutError, match="takes a tile layout"):
        registers_per_thread(layout, 32)
    with pytest.raises(LayoutError, match="takes a tile layout"):
        register_budget({"D": (layout, 32)})


@pytest.mark.parametrize("fragments", [None, D, [D], {"D": D}, {"D": (D,)}, {"D": (D, 32, 1)}])
def test_a_budget_is_of_a_mapping(fragments: object) -> None:
    with pytest.raises(LayoutError, match="takes a mapping"):
        register_budget(fragments)
    assert register_budget({}) == ({}, 0)
