"""Access: the value, its constructors, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilelayout import LayoutError, S, TileLayout, laneid
from tilelayout.analysis import Access


def test_the_same_access_by_every_constructor() -> None:
    """Eight lanes, eight halves each, of a 16 x 16 tile: rows 0 to 7, columns 0 to 7."""
    listed = Access((16, 16), [range(16 * row, 16 * row + 8) for row in range(8)])
    layout = TileLayout(S[(8, 8) : (16, 1)])
    assert listed == Access.of_layout((16, 16), layout, vector=8)
    assert listed == Access.of_function((16, 16), lambda lane: (lane, 0), vector=8, lanes=8)
    assert listed == Access.column((16, 16), vector=8, lanes=8)
    assert listed == Access((16, 16), np.arange(256).reshape(16, 16)[:8, :8])
    assert listed.lanes == Access.matrices((16, 16)).lanes
    assert listed != Access.matrices((16, 16))
    assert hash(listed) == hash(Access.column((16, 16), vector=8, lanes=8))


def test_a_value_pickles_and_is_frozen() -> None:
    access = Access.matrices((16, 16), [(0, 0), (8, 0)])
    assert pickle.loads(pickle.dumps(access)) == access
    with pytest.raises(AttributeError, match="frozen"):
        access.kind = "store"
    with pytest.raises(AttributeError, match="frozen"):
        del access.kind


@given(st.integers(1, 6), st.sampled_from([1, 2, 4]), st.integers(1, 8))
def test_rows_walk_in_row_major_order(rows: int, vector: int, vectors: int) -> None:
    shape = (rows, vectors * vector)
    lanes = min(32, rows * vectors)
    access = Access.rows(shape, vector=vector, lanes=lanes)
    assert [x for mine in access.lanes for x in mine] == list(range(lanes * vector))
    for lane in range(lanes):
        assert access.coordinates(lane)[0] == (lane // vectors, lane % vectors * vector)


def test_a_start_and_lanes_that_are_off() -> None:
    assert Access.rows((4, 8), vector=2, lanes=2, start=(1, 4)).lanes == ((12, 13), (14, 15))
    masked = Access.of_function((10, 4), lambda lane: (lane, 0) if lane < 10 else None, lanes=16)
    assert masked.lanes[9:11] == ((36,), ())


@pytest.mark.parametrize("corners", [[(0, 0)], [(0, 8), (8, 0)], [(0, 0), (8, 0), (0, 8), (8, 8)]])
def test_matrix_rows_are_the_addresses_of_eight_lanes(corners: list[tuple[int, int]]) -> None:
    access = Access.matrices((16, 16), corners)
    for r, (row, column) in enumerate(corners):
        for i in range(8):
            assert access.coordinates(8 * r + i) == tuple((row + i, column + k) for k in range(8))


def test_matrix_rows_are_sixteen_bytes_at_every_width() -> None:
    assert [Access.matrices((8, 64), bits=bits).vector for bits in (4, 8, 16, 32)] == [32, 16, 8, 4]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Access((4, 4), [16]), "lane 0 touches element 16 of the 16"),
        (lambda: Access((4, 4), [-1]), "at least 0, got -1"),
        (lambda: Access((4, 4), [0, (1, 2)]), "one instruction has one width"),
        (lambda: Access((4, 4), [None, None]), "no lane takes part"),
        (lambda: Access((4, 4), []), "no lane takes part"),
        (lambda: Access((4, 16), range(33)), "33 lanes are more than the 32 of a warp"),
        (lambda: Access((4, 4), [0], kind="lod"), "did you mean 'load'"),
        (lambda: Access((4, 4), [0.5]), "must be an integer|must be a sequence"),
        (lambda: Access((4, 4), 3), "must be a sequence"),
        (
            lambda: Access((8, 8), [range(8)] * 12, kind="ldmatrix"),
            "1, 2 or 4 matrices of 8 row addresses, got 12",
        ),
        (lambda: Access.rows((4, 6), vector=4), "does not divide a row of 6"),
        (lambda: Access.column((16, 16)), "leaves dimension 0"),
        (lambda: Access.column((32, 16), column=14, vector=4), "leaves dimension 1"),
        (lambda: Access.matrices((8, 8), [(0, 0, 0)]), "no coordinate of a tile"),
        (lambda: Access.matrices((8, 8), [(0, 4)]), "leaves dimension 1"),
        (lambda: Access.of_layout((4, 4), TileLayout(S[6]), vector=4), "no whole number of vectors"),
        (lambda: Access.of_layout((4, 4), TileLayout(S[4 : 1 @ laneid])), "only m is an address"),
    ],
)
def test_refusals_say_what_is_wrong(build: object, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        build()  # type: ignore[operator]


def test_an_array_is_no_kind_and_no_layout() -> None:
    with pytest.raises(LayoutError, match="unknown kind"):
        Access((4, 4), [0], np.array([1, 2]))  # type: ignore[arg-type]
    with pytest.raises(LayoutError, match="anything with a table"):
        Access.of_layout((4, 4), np.array([1, 2]))  # type: ignore[arg-type]
