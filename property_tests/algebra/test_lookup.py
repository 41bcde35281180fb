"""`apply` answers from tables once it was asked often: the same places, and the same refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference
from tilelayout import LayoutError, R, S, TileLayout, laneid, warpid
from tilelayout.algebra.lookup import PATIENCE, TABLE_ENTRIES

FRAGMENT = S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)] + R[2 : 1 @ warpid] + 3 @ laneid


def asked_often(layout: TileLayout, *coord: Any, shape: Any = None) -> TileLayout:
    """A layout of the same value that has answered in this shape object many times."""
    warm = TileLayout.from_iters(layout.shard, layout.replica, layout.offset)
    for _ in range(PATIENCE + 1):
        warm.apply(*coord, shape=shape)
    return warm


def has_tables(layout: TileLayout) -> bool:
    return layout._reader is not None and bool(layout._reader.tables[2])


@given(strategies.layouts())
def test_a_flat_index_is_where_the_model_says(layout: TileLayout) -> None:
    warm = asked_often(layout, 0)
    for flat in range(reference.size(layout)):
        assert reference.place(warm.apply(flat)) == reference.place(reference.displacement(layout, flat))


@given(strategies.layouts(), st.data())
def test_a_coordinate_is_where_the_model_says(layout: TileLayout, data: st.DataObject) -> None:
    """In shapes that don't group the iters too, where there are no tables."""
    size = reference.size(layout)
    rows = data.draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
    for shape in ((rows, size // rows), (size,)):
        warm = asked_often(layout, *[0 for _ in shape], shape=shape)
        for flat, coord in enumerate(reference.coordinates(shape)):
            expected = reference.place(reference.displacement(layout, flat))
            assert reference.place(warm.apply(*coord, shape=shape)) == expected
            assert reference.place(warm.apply(*coord, shape=(*shape,))) == expected, "another object"
            assert reference.place(warm.apply(flat)) == expected, "another shape"


@given(strategies.layouts())
def test_two_iters_take_a_coordinate_each(layout: TileLayout) -> None:
    two = layout.group((1, reference.size(layout)))[0] if len(layout.shard) == 1 else layout
    extents = [it.extent for it in two.shard]
    warm = asked_often(two, *[0 for _ in extents])
    for flat, coord in enumerate(reference.coordinates(extents)):
        expected = reference.place(reference.displacement(two, flat))
        assert reference.place(warm.apply(*coord)) == expected
        assert reference.place(warm.apply(flat)) == expected, "a flat index in between"


def test_what_these_tests_ask_is_answered_from_tables() -> None:
    layout = TileLayout(FRAGMENT)
    shape = (16, 16)
    assert has_tables(asked_often(layout, 0))
    assert has_tables(asked_often(layout, 0, 0, shape=shape))
    assert has_tables(asked_often(TileLayout(S[4, 8]), 0, 0))
    assert not has_tables(layout)
    assert not has_tables(asked_often(layout, 0, 0, shape=[16, 16])), "a list may change"
    assert not has_tables(asked_often(TileLayout(S[(3, 4) : (1, 7)]), 0, 0, shape=(4, 3))), "digits carry"
    assert not has_tables(asked_often(TileLayout(S[1024, 1024]), 0, 0, shape=(1024, 1024))), "long ones"
    assert TABLE_ENTRIES < 2048


def test_order_and_types_of_the_answer_stay_as_they_were() -> None:
    layout, shape = TileLayout(FRAGMENT), (16, 16)
    warm = asked_often(layout, 0, 0, shape=shape)
    for found in (warm.apply(5, 9, shape=shape), asked_often(layout, 0).apply(5 * 16 + 9)):
        assert list(found.items()) == list(layout.apply(5, 9, shape=shape).items())
        assert all(type(v) is int for v in found.values())
        found["m"] = -1  # type: ignore[index]  # the answer is the caller's
    assert warm.apply(5, 9, shape=shape) == layout.apply(5, 9, shape=(16, 16))


@pytest.mark.parametrize(
    "bad", [-1, 16, -(2**70), 2**70, True, 2.0, "3", None, np.float64(1), np.bool_(True)], ids=repr
)
def test_a_bad_coordinate_is_refused_as_before(bad: Any) -> None:
    layout, shape = TileLayout(FRAGMENT), (16, 16)
    warm = asked_often(layout, 0, 0, shape=shape)
    for coord in ((bad, 0), (0, bad)):
        with pytest.raises(LayoutError) as first:
            layout.apply(*coord, shape=(16, 16))
        with pytest.raises(LayoutError) as later:
            warm.apply(*coord, shape=shape)
        assert str(first.value) == str(later.value)
    flat = 16 * bad if type(bad) is int else bad
    with pytest.raises(LayoutError) as first:
        layout.apply(flat)
    with pytest.raises(LayoutError) as later:
        asked_often(layout, 0).apply(flat)
    assert str(first.value) == str(later.value)


def test_another_rank_is_refused_as_before() -> None:
    shape = (16, 16)
    warm = asked_often(TileLayout(FRAGMENT), 0, 0, shape=shape)
    for coord in ((), (1,), (1, 2, 3)):
        with pytest.raises(LayoutError, match="entries for the 2 dimensions"):
            warm.apply(*coord, shape=shape)
    for coord in ((), (1, 2), (1, 2, 3)):
        with pytest.raises(LayoutError, match="entries for the 5 dimensions"):
            asked_often(TileLayout(FRAGMENT), 0).apply(*coord)


def test_other_integers_and_arrays_are_taken_as_before() -> None:
    layout, shape = TileLayout(FRAGMENT), (16, 16)
    warm = asked_often(layout, 0, 0, shape=shape)
    assert warm.apply(np.int64(3), np.uint8(5), shape=shape) == layout.apply(3, 5, shape=(16, 16))
    rows = np.arange(16)
    found = warm.apply(rows, 5, shape=shape)
    assert [int(v) for v in found["laneid"]] == [
        layout.apply(i, 5, shape=(16, 16))["laneid"] for i in range(16)
    ]
    assert asked_often(layout, 0).apply(np.int32(77)) == layout.apply(77)
