"""permute_dims and permute_by_groups: coordinates change places, owners stay."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference
from tilelayout import LayoutError, R, S, TileLayout, laneid, warpid


def check_permuted(layout: TileLayout, shape: list[int], perm: list[int], found: TileLayout) -> None:
    """The owners at ``c[perm[0]], c[perm[1]], ...`` of the result are those at c."""
    permuted = [shape[p] for p in perm]
    assert (found.replica, found.offset) == (layout.replica, layout.offset)
    for flat, coord in enumerate(reference.coordinates(shape)):
        moved = [coord[p] for p in perm]
        assert reference.owners(found, reference.flatten(moved, permuted)) == reference.owners(layout, flat)


@given(strategies.layouts(), st.data())
def test_iters_are_permuted(layout: TileLayout, data: st.DataObject) -> None:
    perm = data.draw(st.permutations(range(len(layout.shard))))
    found = layout.permute_dims(perm)
    check_permuted(layout, [it.extent for it in layout.shard], perm, found)
    inverse = sorted(range(len(perm)), key=perm.__getitem__)
    assert found.permute_dims(inverse) == layout


@given(strategies.layouts(), st.data())
def test_groups_are_permuted(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.fitting_shapes([it.extent for it in layout.shard]))
    grouped, seps = layout.group(shape)
    perm = data.draw(st.permutations(range(len(shape))))
    check_permuted(grouped, list(shape), perm, grouped.permute_by_groups(seps, perm))


@given(strategies.layouts(), st.data())
def test_any_separators_will_do(layout: TileLayout, data: st.DataObject) -> None:
    """Groups need not come from `group`, and may be empty."""
    count = len(layout.shard)
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=4)))
    seps = [0, *cuts, count]
    shape = [prod(it.extent for it in layout.shard[b:e]) for b, e in itertools.pairwise(seps)]
    perm = data.draw(st.permutations(range(len(shape))))
    check_permuted(layout, shape, perm, layout.permute_by_groups(seps, perm))


def test_an_order_may_be_any_sequence_of_integers() -> None:
    layout = TileLayout(S[2, 3, 4])
    expected = layout.permute_dims((2, 0, 1))
    for perm in ([2, 0, 1], np.array([2, 0, 1]), (np.uint8(2), 0, 1), iter((2, 0, 1))):
        assert layout.permute_dims(perm) == expected
    assert layout.permute_by_groups(np.array([0, 1, 2, 3]), np.array([2, 0, 1])) == expected


LAYOUT = TileLayout(S[(2, 3) : (4 @ laneid, 1)] + R[2 : 4 @ warpid])


@pytest.mark.parametrize(
    ("perm", "word"),
    [
        ((0,), "permutation of the 2 iters"),
        ((0, 0), "permutation of the 2 iters"),
        ((0, 2), "permutation of the 2 iters"),
        ((-1, 0), "permutation of the 2 iters"),
        ((0, 1, 2), "permutation of the 2 iters"),
        ((), "permutation of the 2 iters"),
        ((0, 1.0), "integer"),
        ((False, True), "integer"),
        ("10", "sequence"),
        (1, "sequence"),
        (None, "sequence"),
        ({0, 1}, "sequence"),
        ({1: 0, 0: 1}, "sequence"),
        (np.array(1), "sequence"),
    ],
)
def test_what_is_no_permutation_is_refused(perm: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word):
        LAYOUT.permute_dims(perm)
    with pytest.raises(LayoutError, match=word.replace("iters", "groups")):
        LAYOUT.permute_by_groups((0, 1, 2), perm)


@pytest.mark.parametrize("seps", [(), (0,), (1, 2), (0, 1), (0, 2, 1, 2), (0, 3), (-1, 2), (0, 1, 3)])
def test_separators_rise_from_zero_to_the_number_of_iters(seps: tuple[int, ...]) -> None:
    with pytest.raises(LayoutError, match="must rise from 0 to the 2 iters"):
        LAYOUT.permute_by_groups(seps, range(len(seps) - 1))


@pytest.mark.parametrize("seps", [(0, 1.0, 2), (0, True, 2), "012", 2, None, {0, 1, 2}])
def test_separators_are_a_sequence_of_integers(seps: object) -> None:
    with pytest.raises(LayoutError, match=r"integer|sequence"):
        LAYOUT.permute_by_groups(seps, (1, 0))
