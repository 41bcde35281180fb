"""complement: with the layout it counts through [0, cosize), each number once; refused exactly where nothing does."""

from __future__ import annotations

import pytest

from property_tests.algebra import compacts, reference
from property_tests.algebra.filling import filling
from tilelayout import LayoutError, R, S, TileLayout, laneid


def check(layout: TileLayout, cosize: int) -> TileLayout | None:
    expected = None if compacts.is_copied(layout) else filling(compacts.places(layout), cosize)
    found = compacts.attempt(lambda: layout.complement(cosize))
    if isinstance(found, LayoutError):
        assert expected is None, (layout, cosize, found)
        return None
    assert expected == compacts.places(found), (layout, cosize, found)
    assert found.shard == found.canonicalize().shard
    sums = sorted(x + y for x in compacts.places(layout) for y in compacts.places(found))
    assert sums == list(range(cosize))
    return found


@compacts.by_size(24, 48)
def test_every_compact_layout_with_gaps(sizes: range, seed: int) -> None:
    for layout, others, rng in compacts.every(sizes, seed):
        size = reference.size(layout)
        assert check(layout, size) == TileLayout(S[1:0])
        for other in others:
            reach = max(compacts.places(other)) - min(compacts.places(other)) + 1
            for cosize in {size, reach, reach + 1, 2 * reach, rng.randint(1, 3 * reach)}:
                check(other, cosize)


@compacts.by_count(1000)
def test_random_layouts(count: int, seed: int) -> None:
    found = 0
    for layout, rng in compacts.drawn(seed, count, 12):
        reach = max(compacts.places(layout)) - min(compacts.places(layout)) + 1
        found += check(layout, rng.choice((1, 2, 3)) * reach + rng.choice((0, 0, 1, 2, 3))) is not None
    assert found > count // 20


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
