"""complement: with the layout it counts through [0, cosize), each number once; refused exactly where nothing does."""

from __future__ import annotations

from random import Random

import pytest

from property_tests.algebra import compacts, reference
from tilelayout import LayoutError, R, S, TileLayout, laneid


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


def check(layout: TileLayout, cosize: int) -> TileLayout | None:
    expected = filling(compacts.places(layout), cosize)
    found = compacts.attempt(lambda: layout.complement(cosize))
    if isinstance(found, LayoutError):
        assert expected is None, (layout, cosize, found)
        return None
    assert expected == compacts.places(found), (layout, cosize, found)
    assert found.shard == found.canonicalize().shard
    sums = sorted(x + y for x in compacts.places(layout) for y in compacts.places(found))
    assert sums == list(range(cosize))
    return found


def check_all(sizes: range, seed: int) -> None:
    rng = Random(seed)
    for size in sizes:
        for layout in compacts.compact(size):
            assert check(layout, size) == TileLayout(S[1:0])
            spread = compacts.with_gaps(layout, rng)
            reach = max(compacts.places(spread)) + 1
            moved = TileLayout.from_iters(
                spread.shard, (), {"m": spread.offset.get("m", 0) + rng.choice((0, 5, -3))}
            )
            for cosize in {size, reach, reach + 1, 2 * reach, rng.randint(1, 3 * reach)}:
                check(spread, cosize)
                check(moved, cosize)


def check_random(seed: int, count: int) -> None:
    rng = Random(seed)
    found = 0
    for _ in range(count):
        layout = compacts.anything(rng, 12)
        reach = max(compacts.places(layout)) - min(compacts.places(layout)) + 1
        found += check(layout, rng.choice((1, 2, 3)) * reach + rng.choice((0, 0, 1, 2, 3))) is not None
    assert found > count // 20


def test_compact_layouts_with_gaps() -> None:
    check_all(range(1, 25), 1)


def test_random_layouts() -> None:
    check_random(2, 1000)


@pytest.mark.slow
def test_every_compact_layout_of_up_to_48_elements_with_gaps() -> None:
    check_all(range(25, 49), 3)


@pytest.mark.slow
def test_ten_thousand_random_layouts() -> None:
    check_random(4, 10_000)


def test_the_offset_makes_up_for_where_the_layout_begins() -> None:
    assert TileLayout(S[4:2] + 6).complement(8) == TileLayout(S[2:1] - 6)
    assert TileLayout(S[4:-2] + 6).complement(8) == TileLayout(S[2:1])
    assert TileLayout(S[4:-2]).complement(8) == TileLayout(S[2:1] + 6)


def test_huge_layouts() -> None:
    n = 2**40
    assert TileLayout(S[(n, n) : (4 * n, 2)]).complement(8 * n * n) == TileLayout(
        S[(2, 2, 2) : (4 * n * n, 2 * n, 1)]
    )


def test_refusals_name_the_rule() -> None:
    with pytest.raises(LayoutError, match=r"takes 8 places, which does not divide the cosize 7"):
        TileLayout(S[4:2]).complement(7)
    with pytest.raises(LayoutError, match=r"the strides don't nest: 6 does not divide the stride 3"):
        TileLayout(S[(2, 3) : (3, 2)]).complement(12)
    with pytest.raises(LayoutError, match=r"not injective.*stride 0 puts elements 0 and 1 at one place"):
        TileLayout(S[4:0]).complement(8)
    with pytest.raises(LayoutError, match="moves on laneid"):
        TileLayout(S[4 : 1 @ laneid]).complement(8)
    with pytest.raises(LayoutError, match="offset on laneid"):
        TileLayout(S[4] + 1 @ laneid).complement(8)
    with pytest.raises(LayoutError, match="replica"):
        TileLayout(S[4] + R[2:4]).complement(8)
    for cosize in (0, -8, 2.0, True, "8"):
        with pytest.raises(LayoutError, match="cosize"):
            TileLayout(S[4]).complement(cosize)


def test_a_replica_that_adds_nothing_and_unit_extents() -> None:
    assert TileLayout(S[(1, 4) : (7 @ laneid, 2)] + R[3:0]).complement(8) == TileLayout(S[2:1])


def test_the_size_is_that_of_the_gaps() -> None:
    for layout in compacts.compact(24):
        assert reference.size(layout.complement(240)) == 10
