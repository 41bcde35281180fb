"""The reference itself, held against values worked out by hand and against its own slower half."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from property_tests.algebra import reference
from tilelayout import R, S, TileLayout, laneid, warpid


def test_the_example_of_the_model_worked_by_hand() -> None:
    """Flat 37 of (8, 2, 4, 2): digits 2, 0, 2, 1."""
    layout = TileLayout(
        S[(8, 2, 4, 2) : (4 @ laneid, 1 @ warpid, 1 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid
    )
    assert reference.digits(37, (8, 2, 4, 2)) == [2, 0, 2, 1]
    assert reference.owners(layout, 37) == {
        frozenset({("laneid", 10), ("warpid", 5), ("m", 1)}),
        frozenset({("laneid", 10), ("warpid", 9), ("m", 1)}),
    }


def test_flat_indices_of_a_box() -> None:
    assert reference.box((3, 4), [(1, 3), (2, 4)]) == [6, 7, 10, 11]


def test_ordered_factorizations() -> None:
    assert list(reference.factorizations(12)) == [
        (2, 2, 3), (2, 3, 2), (2, 6), (3, 2, 2), (3, 4), (4, 3), (6, 2), (12,),
    ]  # fmt: skip


def test_what_is_and_what_is_not_a_layout() -> None:
    def of(*values: int) -> list[tuple[int]]:
        return [(v,) for v in values]

    for decide in (reference.is_layout, reference.greedy_is_layout):
        assert decide(of(7))
        assert decide(of(0, 5, 1, 6))
        assert decide(of(3, 2, 1))
        assert not decide(of(0, 1, 3))
        assert not decide(of(0, 1, 5, 7))
        assert decide([(0, 0), (1, 0), (0, 4), (1, 4)])
        assert not decide([(0, 0), (1, 4)])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=12))
def test_both_ways_to_decide_agree(values: list[tuple[int, int]]) -> None:
    assert reference.is_layout(values) == reference.greedy_is_layout(values)
