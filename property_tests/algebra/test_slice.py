"""slice: the owners of the box, at every coordinate; what is refused and why."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference
from tilelayout import LayoutError, R, S, TileLayout, laneid, warpid


def check_slice(
    layout: TileLayout, shape: tuple[int, ...], region: list[tuple[int, int]], found: TileLayout
) -> None:
    """Post-condition: at every coordinate of the box, the owners of ``begin + coordinate``."""
    expected = [reference.owners(layout, flat) for flat in reference.box(shape, region)]
    assert reference.function(found) == expected


def exists(layout: TileLayout, shape: tuple[int, ...], region: list[tuple[int, int]]) -> bool:
    """Whether any layout has the positions of the box: decided on their values."""
    axes = sorted({it.axis for it in layout.shard})
    values = []
    for flat in reference.box(shape, region):
        at = reference.displacement(layout, flat)
        values.append(tuple(at.get(axis, 0) for axis in axes))
    return reference.greedy_is_layout(values)


@given(strategies.layouts(), st.data())
def test_a_box_of_a_shape_that_fits_the_iters(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.fitting_shapes([it.extent for it in layout.shard]))
    check_exact(layout, shape, data.draw(strategies.regions(shape)))


@given(strategies.layouts(), st.data())
def test_a_box_of_any_shape(layout: TileLayout, data: st.DataObject) -> None:
    """Also of shapes that the layout can't be grouped to: the box alone decides."""
    shape = data.draw(strategies.factorizations(reference.size(layout)))
    check_exact(layout, shape, data.draw(strategies.regions(shape)))


def check_exact(layout: TileLayout, shape: tuple[int, ...], region: list[tuple[int, int]]) -> None:
    try:
        found = layout.slice(shape, region)
    except LayoutError:
        assert not exists(layout, shape, region)
    else:
        check_slice(layout, shape, region, found)


@given(strategies.layouts(), st.data())
def test_the_whole_is_a_slice(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.factorizations(reference.size(layout)))
    whole = layout.slice(shape, [(0, n) for n in shape])
    assert whole.canonicalize() == layout.canonicalize()


@given(strategies.layouts(), st.data())
def test_a_single_element_is_a_slice(layout: TileLayout, data: st.DataObject) -> None:
    flat = data.draw(st.integers(0, reference.size(layout) - 1))
    found = layout.slice((reference.size(layout),), [(flat, flat + 1)])
    assert reference.function(found) == [reference.owners(layout, flat)]


@given(strategies.layouts(max_size=64), st.data())
def test_a_slice_of_a_slice_is_a_slice(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.fitting_shapes([it.extent for it in layout.shard]))
    region = data.draw(strategies.regions(shape))
    try:
        outer = layout.slice(shape, region)
    except LayoutError:
        return
    box = [e - b for b, e in region]
    inside = data.draw(strategies.regions(box))
    both = [(b + bb, b + ee) for (b, _), (bb, ee) in zip(region, inside, strict=True)]
    try:
        twice = outer.slice(box, inside)
    except LayoutError:
        assert not exists(layout, shape, both)
    else:
        assert twice.canonicalize() == layout.slice(shape, both).canonicalize()


def test_the_one_wrap_rule_needs_care() -> None:
    """The witness of facts/algebra.md: the answer 11, 20 is wrong."""
    found = TileLayout(S[(2, 2, 2) : (100, 10, 1)]).slice((8,), [(3, 5)])
    assert [found.apply(i)["m"] for i in range(2)] == [11, 100]


def test_runs_that_begin_and_end_within_an_iter() -> None:
    """Of (3, 4):(10, 1), [2, 10) is 2 3 | 10 11 | 12 13 | 20 21, a layout; [2, 9) and [1, 9) are none."""
    layout = TileLayout(S[(3, 4) : (10, 1)])
    assert layout.slice((12,), [(2, 10)]) == TileLayout(S[(2, 2, 2) : (10, 8, 1)] + 2)
    assert layout.slice((12,), [(2, 6)]) == TileLayout(S[(2, 2) : (8, 1)] + 2)
    for begin in (2, 1):
        with pytest.raises(LayoutError, match=rf"slice: dimension 0: \[{begin}, 9\)"):
            layout.slice((12,), [(begin, 9)])


def test_the_middle_of_three_jumps_at_equal_distances() -> None:
    layout = TileLayout(S[(3, 2) : (5, 1)])
    found = layout.slice((6,), [(1, 5)])
    assert [found.apply(i)["m"] for i in range(4)] == [1, 5, 6, 10]
    assert found == TileLayout(S[(2, 2) : (5, 4)] + 1)


def test_replica_and_offset_go_along() -> None:
    layout = TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid)
    found = layout.slice((8, 4), [(2, 4), (1, 3)])
    assert found == TileLayout(S[(2, 2) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid + 8 @ laneid + 1)


def test_an_offset_that_the_slice_cancels_is_dropped() -> None:
    assert TileLayout(S[8] - 4).slice((8,), [(4, 8)]) == TileLayout(S[4])


def test_bounds_may_be_any_pair_of_integers() -> None:
    layout = TileLayout(S[8, 4])
    expected = layout.slice((8, 4), [(2, 4), (0, 4)])
    for pair in ([2, 4], np.array([2, 4]), (np.int64(2), np.uint8(4)), iter((2, 4))):
        assert layout.slice((8, 4), [pair, (0, 4)]) == expected
    assert layout.slice([8, 4], np.array([[2, 4], [0, 4]])) == expected
    assert layout.slice(32, [(8, 16)]) == TileLayout(S[8] + 8)


@pytest.mark.parametrize(
    ("region", "word"),
    [
        ([(0, 9), (0, 4)], r"ends past the extent 8"),
        ([(8, 9), (0, 4)], r"ends past the extent 8"),
        ([(0, 8), (-1, 4)], "dimension 1: begin -1 is negative"),
        ([(3, 3), (0, 4)], r"dimension 0: range \[3, 3\) is empty"),
        ([(4, 2), (0, 4)], r"\[4, 2\) is empty"),
        ([(0, 8)], "1 ranges"),
        ([(0, 8), (0, 4), (0, 1)], "3 ranges"),
        ([], "0 ranges"),
        ([(0, 8), (0,)], "pair"),
        ([(0, 8), (0, 4, 1, 1)], "pair"),
        ([(0, 8), 4], "range 1"),
        ([(0, 8), range(2)], "pair"),
        ([(0, 8), slice(0, 4)], "range 1"),
        ([(0, 8), {0: 0, 1: 4}], "range 1"),
        ([(0, 8), {0, 4}], "range 1"),
        ([(0, 8), "04"], "range 1"),
        ([(0, 8), None], "range 1"),
        ([(0, 8), (0.0, 4)], "integer"),
        ([(0, 8), (False, 4)], "integer"),
        ([(0, 8), (None, 4)], "integer"),
        (5, "region"),
        (None, "region"),
        ("ab", "region"),
        ({(0, 8), (0, 4)}, "region"),
    ],
)
def test_bad_regions_are_refused_with_a_reason(region: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word):
        TileLayout(S[8, 4]).slice((8, 4), region)


def test_a_shape_of_another_size_is_refused() -> None:
    with pytest.raises(LayoutError, match="slice: shape"):
        TileLayout(S[8, 4]).slice((8, 5), [(0, 8), (0, 4)])


def test_huge_extents_are_decided_by_arithmetic() -> None:
    layout = TileLayout(S[(10**30, 3, 10**20) : (1, 10**35, 7)])
    size = 3 * 10**50
    assert layout.slice((size,), [(5, 10**20)]) == TileLayout(S[(10**20 - 5) : 7] + 35)
    for region in ([(1, 2 * 10**50 + 7)], [(1, 10**20 + 7)], [(10**20 - 1, 10**40)]):
        with pytest.raises(LayoutError, match="crosses a wrap"):
            layout.slice((size,), region)
    last = layout.slice((size,), [(size - 1, size)])
    assert last.apply(0) == layout.apply(size - 1)


def test_a_box_that_is_too_large_to_be_searched_is_undecided() -> None:
    """A shape that can't be grouped, and a box in it that isn't contiguous."""
    from tilelayout import Undecided

    layout = TileLayout(S[(2 * 10**9, 3 * 10**9) : (10**15, 1)])
    with pytest.raises(Undecided):
        layout.slice((3 * 10**9, 2 * 10**9), [(0, 3 * 10**9), (0, 10**9 + 1)])
    contiguous = layout.slice((3 * 10**9, 2 * 10**9), [(1, 2), (0, 7)])
    assert contiguous == TileLayout(S[7] + 2 * 10**9)
