"""Evaluation on numpy arrays: the same numbers as one by one, broadcast, exact at any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference
from tilelayout import LayoutError, R, S, TileLayout, laneid, warpid

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, object]
FRAGMENT = TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid)


def check_pointwise(layout: TileLayout, found: dict, flats: np.ndarray) -> None:
    """Every entry of the arrays in `found` is the displacement of the flat index at the same position."""
    for position, flat in np.ndenumerate(flats):
        values = {axis: np.broadcast_to(array, flats.shape)[position] for axis, array in found.items()}
        assert reference.place(values) == reference.place(reference.displacement(layout, int(flat)))


@given(strategies.layouts(max_size=120), st.sampled_from(INTEGERS))
def test_flat_indices_of_any_integer_type(layout: TileLayout, dtype: type) -> None:
    flats = np.arange(reference.size(layout)).astype(dtype)
    check_pointwise(layout, layout.apply(flats), flats)


@given(strategies.layouts(), st.sampled_from(INTEGERS), st.data())
def test_coordinates_broadcast_together(layout: TileLayout, dtype: type, data: st.DataObject) -> None:
    """One range per dimension, each along a dimension of its own: together the whole table."""
    shape = data.draw(strategies.factorizations(reference.size(layout)))
    if not shape:
        return
    grid = [c.astype(dtype) for c in np.ogrid[tuple(slice(n) for n in shape)]]
    found = layout.apply(*grid, shape=shape)
    check_pointwise(layout, found, np.arange(reference.size(layout)).reshape(shape))
    assert all(array.shape == shape for array in found.values())


@given(strategies.layouts(max_rank=4), st.data())
def test_coordinates_per_iter_broadcast_too(layout: TileLayout, data: st.DataObject) -> None:
    shape = tuple(it.extent for it in layout.shard)
    if len(shape) < 2:
        return
    found = layout.apply(*np.ogrid[tuple(slice(n) for n in shape)])
    check_pointwise(layout, found, np.arange(reference.size(layout)).reshape(shape))


@given(strategies.layouts())
def test_owners_of_arrays_are_the_owners_of_each_entry(layout: TileLayout) -> None:
    flats = np.arange(reference.size(layout))
    found = layout.owners(flats)
    for flat in flats:
        each = [{axis: np.broadcast_to(a, flats.shape)[flat] for axis, a in o.items()} for o in found]
        places = [reference.place(values) for values in each]
        assert set(places) == reference.owners(layout, int(flat))
        assert len(places) == len(set(places)), "an owner is listed once"


def test_arrays_and_integers_mix() -> None:
    found = FRAGMENT.apply(np.arange(8, dtype=np.uint8), 3)
    assert found["laneid"].tolist() == [0, 4, 8, 12, 16, 20, 24, 28]
    assert np.broadcast_to(found["m"], 8).tolist() == [3] * 8
    assert FRAGMENT.apply(np.int8(7), np.uint64(3)) == {"warpid": 5, "laneid": 28, "m": 3}


def test_numpy_scalars_give_python_integers() -> None:
    huge = TileLayout(S[2**62] + 2**62)
    assert huge.apply(np.int64(2**62 - 1)) == {"m": 2**63 - 1}
    assert type(huge.apply(np.uint64(5))["m"]) is int


def test_an_array_of_no_dimension_and_one_of_no_entry() -> None:
    assert int(FRAGMENT.apply(np.array(9))["laneid"]) == 8
    assert FRAGMENT.apply(np.array([], dtype=np.int64))["laneid"].shape == (0,)
    assert FRAGMENT.apply(np.zeros((2, 0), dtype=np.int32))["m"].shape == (2, 0)


def test_small_types_do_not_wrap() -> None:
    """int8 coordinates of a layout whose values don't fit int8."""
    found = TileLayout(S[100:1000]).apply(np.arange(100, dtype=np.int8))
    assert found["m"].tolist() == list(range(0, 100_000, 1000))


def test_values_beyond_int64_are_python_integers() -> None:
    layout = TileLayout(S[(4, 4) : (2**62, -(2**63))] + 2**64)
    found = layout.apply(np.arange(16, dtype=np.uint64))["m"]
    assert found.tolist() == [2**64 + i * 2**62 - j * 2**63 for i in range(4) for j in range(4)]
    flat = np.array([2**64 - 1, 2**63, 0], dtype=np.uint64)
    assert TileLayout(S[2**65 : 3]).apply(flat)["m"].tolist() == [3 * (2**64 - 1), 3 * 2**63, 0]


def test_indices_beyond_int64_come_as_python_integers() -> None:
    flats = np.array([10**30, 0], dtype=object)
    assert TileLayout(S[(10**20, 10**11) : (1, 7)]).apply(flats)["m"].tolist() == [10**19, 0]


@pytest.mark.parametrize("stride", [2**70, -(2**70), 2**63])
def test_the_stride_of_a_unit_extent_is_of_no_account(stride: int) -> None:
    layout = TileLayout(S[(1, 4) : (stride, 1)])
    assert layout.apply(np.arange(4))["m"].tolist() == [0, 1, 2, 3]
    assert layout.apply(np.zeros(4, dtype=int), np.arange(4))["m"].tolist() == [0, 1, 2, 3]
    assert layout.table()["m"].tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("coord", "shape", "word"),
    [
        ([np.array([0.0])], None, "float64"),
        ([np.array([True])], None, "bool"),
        ([np.array(["1"])], None, "integers"),
        ([np.array([1, 2.5], dtype=object)], None, "integer"),
        ([np.array([1, True], dtype=object)], None, "integer"),
        ([np.array([1, None], dtype=object)], None, "integer"),
        ([np.array([1], dtype="timedelta64[s]")], None, "integers"),
        ([np.array([1 + 0j])], None, "complex"),
        ([np.array([0, 32])], None, r"outside \[0, 32\)"),
        ([np.array([-1, 0])], None, r"outside \[0, 32\)"),
        ([np.array([2**64 - 1], dtype=np.uint64)], None, r"outside \[0, 32\)"),
        ([np.array([0]), np.array([4])], None, "coordinate 1"),
        ([np.array([0]), np.array([0]), np.array([0])], None, "3 entries"),
        ([np.array([0]), 4], (8, 4), "coordinate 1"),
        ([np.array([0]), True], (8, 4), "bool"),
        ([np.array([0]), 1.5], (8, 4), "float"),
        ([np.array([0]), None], (8, 4), "integer"),
        ([np.array([0]), np.array([0])], (4, 4), "16 elements"),
        ([np.array([0])], (), "entries"),
        ([np.arange(8), np.arange(4)], (8, 4), "broadcast"),
    ],
)
def test_arrays_that_are_no_coordinates_are_refused(coord: list, shape: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word):
        FRAGMENT.apply(*coord, shape=shape)


def test_an_object_array_may_hold_numpy_integers() -> None:
    assert FRAGMENT.apply(np.array([np.int64(1), 2], dtype=object))["m"].tolist() == [1, 2]
