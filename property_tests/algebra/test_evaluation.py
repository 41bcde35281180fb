"""apply, owners, table, size and span on integers: what the model says, at every coordinate."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference
from tilelayout import LayoutError, R, S, Swizzle, SwizzledLayout, TileLayout, laneid, m, warpid

FRAGMENT = TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid)


@given(strategies.layouts())
def test_a_flat_index_has_the_owners_of_the_model(layout: TileLayout) -> None:
    for flat in range(reference.size(layout)):
        expected = reference.owners(layout, flat)
        found = layout.owners(flat)
        assert {reference.place(o) for o in found} == expected
        assert len(found) == len(expected), "an owner is listed once"
        assert reference.place(layout.apply(flat)) == reference.place(reference.displacement(layout, flat))


@given(strategies.layouts(), st.data())
def test_every_shape_of_the_size_has_the_same_function(layout: TileLayout, data: st.DataObject) -> None:
    """Shapes that don't group the iters included."""
    shape = data.draw(strategies.factorizations(reference.size(layout)))
    for flat, coord in enumerate(reference.coordinates(shape)):
        assert layout.apply(*coord, shape=shape) == layout.apply(flat)
        assert layout.owners(*coord, shape=shape) == layout.owners(flat)


@given(strategies.layouts())
def test_one_coordinate_per_iter(layout: TileLayout) -> None:
    extents = [it.extent for it in layout.shard]
    if len(extents) == 1:  # a single integer is a flat index: the same thing
        return
    for flat, coord in enumerate(reference.coordinates(extents)):
        assert reference.place(layout.apply(*coord)) == reference.place(reference.displacement(layout, flat))


@given(strategies.layouts(), st.data())
def test_the_table_is_the_whole_map(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.factorizations(reference.size(layout)))
    table = layout.table(shape)
    for coord in reference.coordinates(shape):
        values = {axis: array[coord] for axis, array in table.items()}
        flat = reference.flatten(coord, shape)
        assert reference.place(values) == reference.place(reference.displacement(layout, flat))
    assert all(array.shape == shape for array in table.values())


@given(strategies.layouts())
def test_the_table_has_the_shape_of_the_shard_by_default(layout: TileLayout) -> None:
    extents = tuple(it.extent for it in layout.shard)
    for axis, array in layout.table().items():
        assert array.shape == extents
        assert np.array_equal(array, layout.table(extents)[axis])


def test_the_table_is_int64_where_that_is_exact_and_python_integers_elsewhere() -> None:
    assert TileLayout(S[2 : 2**62]).table()["m"].dtype == np.int64
    beyond = TileLayout(S[2 : 2**63]).table()["m"]
    assert beyond.dtype == object
    assert beyond.tolist() == [0, 2**63]


def test_the_table_can_be_written_to() -> None:
    """It's the caller's, and no view of one number in many places."""
    table = TileLayout(S[(2, 3) : (0, 1)]).table()["m"]
    table[0, 1] = 9
    assert table.tolist() == [[0, 9, 2], [0, 1, 2]]


@given(strategies.layouts())
def test_size_counts_the_logical_elements(layout: TileLayout) -> None:
    assert layout.size() == reference.size(layout)


@given(strategies.layouts())
def test_span_is_the_extent_of_the_coordinates_offset_excluded(layout: TileLayout) -> None:
    for axis in strategies.AXES:
        values = [dict(o).get(axis.name, 0) for owners in reference.function(layout) for o in owners]
        assert layout.span(axis) == layout.span(axis.name) == max(values) - min(values) + 1


def test_span_of_an_axis_that_nothing_moves_along_is_one() -> None:
    assert FRAGMENT.span("bx") == 1
    assert FRAGMENT.span() == FRAGMENT.span(m) == 4


def test_keys_are_axis_names() -> None:
    assert FRAGMENT.apply(3, 2)["laneid"] == 12
    assert json_like(FRAGMENT.apply(3, 2)) == {"laneid": 12, "m": 2, "warpid": 5}
    assert [json_like(o) for o in FRAGMENT.owners(0)] == [
        {"laneid": 0, "m": 0, "warpid": 5},
        {"laneid": 0, "m": 0, "warpid": 9},
    ]


def json_like(values: dict) -> dict[str, int]:
    return {str(k): v for k, v in values.items()}


def test_what_is_returned_belongs_to_the_caller() -> None:
    FRAGMENT.apply(0)["warpid"] = 77
    FRAGMENT.owners(0)[0]["warpid"] = 77
    assert FRAGMENT.apply(0)["warpid"] == 5


def test_a_layout_of_a_single_element_without_iters() -> None:
    layout = TileLayout(S[()] + 7)
    assert layout.size() == 1
    assert layout.apply() == layout.apply(0) == layout.apply(shape=()) == {"m": 7}
    assert layout.table()["m"].shape == ()


def test_many_copies_at_one_place_are_one_owner() -> None:
    assert len(TileLayout(S[4] + R[10**30 : 0]).owners(1)) == 1
    assert len(TileLayout(S[4] + R[(3, 3) : (1, 1)]).owners(1)) == 5


@pytest.mark.parametrize(
    ("coord", "shape", "word"),
    [
        ((32,), None, r"outside \[0, 32\)"),
        ((-1,), None, r"outside \[0, 32\)"),
        ((8, 0), None, r"8 of dimension 0"),
        ((0, 4), None, r"4 of dimension 1"),
        ((0, 0, 0), None, "3 entries"),
        ((), None, "0 entries"),
        ((0, 0), (32,), "2 entries"),
        ((0,), (8, 4), "1 entries"),
        ((8, 0), (8, 4), r"8 of dimension 0"),
        ((0, -1), (8, 4), r"-1 of dimension 1"),
        ((0, 0), (4, 4), "16 elements"),
        ((0,), (64,), "64 elements"),
        ((0,), (), "entries"),
        ((0, 0), (8, 0), "at least 1"),
        ((0, 0), (-8, -4), "at least 1"),
        ((0, 0), (8.0, 4), "integer"),
        ((0, 0), (8, True), "integer"),
        ((0, 0), "84", "integer"),
        ((0, 0), ((8,), 4), "integer"),
    ],
)
def test_a_coordinate_that_is_no_coordinate_is_refused(coord: tuple, shape: object, word: str) -> None:
    for method in (FRAGMENT.apply, FRAGMENT.owners):
        with pytest.raises(LayoutError, match=word):
            method(*coord, shape=shape)


@pytest.mark.parametrize(
    "value", [1.0, 1.5, True, "1", None, [1], (1,), 1j, object(), np.float32(1), np.bool_(True)]
)
def test_only_integers_are_coordinates(value: object) -> None:
    for coord, shape in (((value,), None), ((0, value), None), ((value, 0), (8, 4))):
        with pytest.raises(LayoutError, match="integer"):
            FRAGMENT.apply(*coord, shape=shape)


@pytest.mark.parametrize(
    "shape", [(4, 4), (33,), (0, 32), (-1, -32), (8.0, 4), (True, 32), "32", None.__class__]
)
def test_a_table_of_another_size_is_refused(shape: object) -> None:
    with pytest.raises(LayoutError):
        FRAGMENT.table(shape)


def test_an_unknown_axis_has_no_span() -> None:
    with pytest.raises(LayoutError, match="did you mean 'laneid'"):
        FRAGMENT.span("lanid")


def test_a_result_that_cannot_be_listed_is_refused_and_not_waited_for() -> None:
    with pytest.raises(LayoutError, match="elements"):
        TileLayout(S[2**70]).table()
    with pytest.raises(LayoutError, match="elements"):
        TileLayout(S[2**40] + 2**63).table()
    with pytest.raises(LayoutError, match="copies"):
        TileLayout(S[4] + R[10**30 : 1]).owners(0)
    with pytest.raises(LayoutError, match="dimensions"):
        TileLayout(S[[1] * 70]).table()
    assert TileLayout(S[[1] * 70]).table((1,))["m"].tolist() == [0]


def test_a_coordinate_of_another_rank_is_told_how_to_pass_its_shape() -> None:
    fragment = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    words = "2 entries for the 4 dimensions of (2, 8, 4, 2), the layout's iters"
    hint = "say which shape of 128 elements the coordinate is in: (9, 5, shape=(..., ...))"
    for question in (fragment.apply, fragment.owners, SwizzledLayout(fragment, Swizzle(3, 3, 3)).apply):
        with pytest.raises(LayoutError, match=re.escape(f"{words} (remedy: {hint})")):
            question(9, 5)
        with pytest.raises(LayoutError, match=r"\(\.\.\., 5, shape="):
            question(np.arange(9), 5)
    with pytest.raises(LayoutError, match=r"2 entries for the 1 dimensions of \(128,\)$"):
        fragment.apply(9, 5, shape=(128,))
