"""left_inverse: every place of an injective layout read back into its element; found wherever a layout does it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from property_tests.algebra import compacts, reference
from tilelayout import LayoutError, S, TileLayout, Undecided
from tilelayout.algebra.left_inverse import solve


def radices(largest: int) -> Iterator[tuple[int, ...]]:
    """All chains of radices below a last digit, for places up to `largest`."""
    yield ()
    for radix in range(2, largest + 1):
        for rest in radices(largest // radix):
            yield (radix, *rest)


def exists(places: list[int]) -> bool:
    """Whether a layout reads all places back, by trying every chain of radices."""
    for chain in radices(max(places)):
        columns: list[list[int]] = [[] for _ in range(len(chain) + 2)]
        for place in places:
            for k, radix in enumerate(chain):
                place, digit = divmod(place, radix)
                columns[k].append(digit)
            columns[-2].append(place)
            columns[-1].append(1)
        if solve(columns, list(range(len(places)))) is not None:
            return True
    return False


def check(layout: TileLayout) -> bool:
    places = compacts.places(layout)
    possible = min(places) >= 0 and len(set(places)) == len(places) and not compacts.is_copied(layout)
    found = compacts.attempt(layout.left_inverse)
    if isinstance(found, LayoutError):
        if isinstance(found, Undecided):
            assert possible, layout
        else:
            assert not possible or not exists(places), (layout, found)
        return False
    assert possible, layout
    assert reference.size(found) > max(places), (layout, found)
    read = compacts.places(found)
    assert [read[p] for p in places] == list(range(len(places))), (layout, found)
    return True


@compacts.by_size(24, 48)
def test_every_compact_layout_with_gaps(sizes: range, seed: int) -> None:
    for layout, others, _ in compacts.every(sizes, seed):
        assert layout.left_inverse().equivalent(layout.inverse())
        assert check(others[0])
        for other in others[1:]:
            check(other)


@compacts.by_count(500)
def test_random_layouts(count: int, seed: int) -> None:
    found = 0
    for layout, _ in compacts.drawn(seed, count, 12, lambda places: max(places) <= 60):
        found += check(layout)
    assert found > count // 10


def test_strides_that_interleave() -> None:
    assert TileLayout(S[(2, 3) : (3, 2)]).left_inverse() == TileLayout(S[(4, 2) : (1, 2)])
    assert TileLayout(S[(2, 3) : (7, 2)]).left_inverse() == TileLayout(S[(6, 2) : (1, 0)])


def test_places_that_begin_above_zero() -> None:
    assert TileLayout(S[4:2] + 1).left_inverse() == TileLayout(S[(4, 2) : (1, 0)])
    assert TileLayout(S[4:1] + 5).left_inverse() == TileLayout(S[9:1] - 5)
    assert TileLayout(S[1:0] + 5).left_inverse() == TileLayout(S[6:0])


def test_huge_layouts_that_nest_and_that_interleave() -> None:
    n = 2**40
    assert TileLayout(S[(n, n) : (2, 4 * n)]).left_inverse() == TileLayout(S[(n, 2, n, 2) : (1, 0, n, 0)])
    interleaved = TileLayout(S[(2, n) : (5, 2)])
    found = interleaved.left_inverse()
    for i in (0, 1, n - 1, n, n + 7, 2 * n - 1):
        assert found.apply(interleaved.apply(i)["m"])["m"] == i


def test_refusals_name_the_rule() -> None:
    with pytest.raises(LayoutError, match="not injective: elements 1 and 4 are at one place"):
        TileLayout(S[(3, 2) : (1, 2)]).left_inverse()
    with pytest.raises(LayoutError, match="places below 0, from -3 on, cannot index a layout"):
        TileLayout(S[4] - 3).left_inverse()
    with pytest.raises(LayoutError, match="no counter reads the places"):
        TileLayout(S[(3, 3, 3) : (101, 103, 107)]).left_inverse()
    with pytest.raises(Undecided, match="no counter reads the places"):
        TileLayout(S[(8, 8) : (37, 11)]).left_inverse()


def test_systems_of_linear_equations_in_integers() -> None:
    assert solve([[2], [3]], [1]) in ([2, -1], [-1, 1])
    assert solve([[2], [4]], [1]) is None
    assert solve([[1, 0], [0, 1], [1, 1]], [5, 7]) is not None
    assert solve([], []) == []
    assert solve([[0, 0]], [0, 1]) is None
