"""inverse and right_inverse: places read back, as many from 0 on as any layout can."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

import pytest

from property_tests.algebra import compacts, reference
from tilelayout import LayoutError, R, S, TileLayout, Undecided, laneid


def largest(places: list[int]) -> int:
    """The size of the largest layout R with ``A(R(j)) = j``, by trying every choice of elements; 0 without one."""
    at: dict[int, list[int]] = {}
    for i, place in enumerate(places):
        at.setdefault(place, []).append(i)
    reach = next(j for j in range(len(places) + 1) if j not in at)
    for size in range(reach, 0, -1):
        for chosen in product(*[at[j] for j in range(size)]):
            if reference.greedy_is_layout([(i,) for i in chosen]):
                return size
    return 0


def choices(places: list[int]) -> int:
    counts = Counter(places)
    return prod(counts[j] for j in range(len(places)) if j in counts)


def check(layout: TileLayout) -> None:
    places = compacts.places(layout)
    if compacts.is_copied(layout):
        for ask in (layout.inverse, layout.right_inverse):
            with pytest.raises(LayoutError, match="replica"):
                ask()
        return
    try:
        right = layout.right_inverse()
    except LayoutError:
        assert 0 not in places, layout
    else:
        read = compacts.places(right)
        assert [places[i] for i in read] == list(range(len(read))), (layout, right)
        assert len(read) == largest(places), (layout, right)
    try:
        inverse = layout.inverse()
    except LayoutError:
        assert sorted(places) != list(range(len(places))), layout
    else:
        back = compacts.places(inverse)
        assert [back[p] for p in places] == [places[i] for i in back] == list(range(len(places)))
        assert layout.right_inverse() == inverse
        assert inverse.inverse().equivalent(layout)


@compacts.by_size(24, 48)
def test_every_compact_layout_with_gaps(sizes: range, seed: int) -> None:
    for layout, others, _ in compacts.every(sizes, seed):
        assert reference.size(layout.inverse()) == reference.size(layout)
        for one in (layout, *others):
            check(one)


@compacts.by_count(1000)
def test_random_layouts(count: int, seed: int) -> None:
    for layout, _ in compacts.drawn(seed, count, 16, lambda places: choices(places) <= 3000):
        check(layout)


def test_a_bijection_walked_backwards_or_begun_inside() -> None:
    assert TileLayout(S[4:-1] + 3).inverse() == TileLayout(S[4:-1] + 3)
    assert TileLayout(S[(2, 4) : (4, -1)] + 3).inverse() == TileLayout(S[(2, 4) : (4, -1)] + 3)
    assert TileLayout(S[8:1] - 3).right_inverse() == TileLayout(S[5:1] + 3)


def test_an_iter_may_be_cut_short_where_the_layout_overlaps_itself() -> None:
    """0, 1, 2, 3 and 3, 4, 5, 6: three of the four go with the next stride, and six places are read back."""
    assert TileLayout(S[(2, 4) : (3, 1)]).right_inverse() == TileLayout(S[(2, 3) : (4, 1)])


def test_zero_strides_and_gaps_are_left_out_of_the_right_inverse() -> None:
    assert TileLayout(S[(2, 4) : (0, 1)]).right_inverse() == TileLayout(S[4:1])
    assert TileLayout(S[4:2]).right_inverse() == TileLayout(S[1:0])
    assert TileLayout(S[(4, 1) : (1, 9 @ laneid)]).right_inverse() == TileLayout(S[4:1])


def test_huge_layouts() -> None:
    n = 2**40
    assert TileLayout(S[(n, n) : (1, n)]).inverse() == TileLayout(S[(n, n) : (1, n)])
    assert TileLayout(S[(n, n, 2) : (2, 4 * n, 1)]).right_inverse() == TileLayout(S[(n, 2) : (2 * n, 1)])
    assert TileLayout(S[(n, n) : (n + 1, 1)]).right_inverse() == TileLayout(S[n])
    with pytest.raises(Undecided, match="more than 65536 elements"):
        TileLayout(S[(n, n) : (n - 1, 1)]).right_inverse()


def test_refusals_name_the_rule() -> None:
    with pytest.raises(LayoutError, match="no element is at 0: the least place is 5"):
        TileLayout(S[4] + 5).right_inverse()
    with pytest.raises(LayoutError, match="least value is 5, not 0"):
        TileLayout(S[4] + 5).inverse()
    with pytest.raises(
        LayoutError, match=r"sorted by stride \(4:2\), the stride 2 should be 1 \(remedy: left_inverse"
    ):
        TileLayout(S[4:2]).inverse()
    for operation in ("inverse", "left_inverse"):
        with pytest.raises(LayoutError, match=f"{operation}: not injective"):
            getattr(TileLayout(S[(128, 2) : (1, 0)]), operation)()
    for operation in ("inverse", "left_inverse", "right_inverse"):
        with pytest.raises(LayoutError, match=f"{operation}: the layout moves on laneid"):
            getattr(TileLayout(S[4 : 1 @ laneid]), operation)()
        with pytest.raises(LayoutError, match=f"{operation}: .*replica"):
            getattr(TileLayout(S[4] + R[2:4]), operation)()
