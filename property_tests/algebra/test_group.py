"""group: the same function, cut at the dimensions of a shape; refused only where there is no such shard."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import enumerations, reference
from tilelayout import LayoutError, R, S, TileLayout, laneid, warpid


def check_grouped(
    layout: TileLayout, shape: tuple[int, ...], found: tuple[TileLayout, tuple[int, ...]]
) -> None:
    """The post-conditions of ``layout.group(shape)``."""
    grouped, seps = found
    assert reference.function(grouped) == reference.function(layout)
    assert (grouped.replica, grouped.offset) == (layout.replica, layout.offset)
    assert len(seps) == len(shape) + 1
    assert (seps[0], seps[-1]) == (0, len(grouped.shard))
    for d, n in enumerate(shape):
        run = grouped.shard[seps[d] : seps[d + 1]]
        assert run, "no group is empty"
        assert prod(it.extent for it in run) == n


@given(strategies.layouts(), st.data())
def test_a_shape_that_cuts_and_joins_iters(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.fitting_shapes([it.extent for it in layout.shard]))
    check_grouped(layout, shape, layout.group(shape))


@given(strategies.layouts(), st.data())
def test_any_shape_is_grouped_or_refused(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.factorizations(reference.size(layout)))
    try:
        found = layout.group(shape)
    except LayoutError:
        return
    check_grouped(layout, shape, found)


@given(strategies.layouts(), st.data())
def test_grouping_twice_is_grouping_once(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.fitting_shapes([it.extent for it in layout.shard]))
    grouped, _seps = layout.group(shape)
    again = grouped.group(shape)
    assert again[0].canonicalize() == layout.canonicalize()
    check_grouped(layout, shape, again)


def check_exactly_refused(size: int, strides: tuple[int, ...]) -> int:
    """Every function of a size and every shape: a layout comes back iff the function is a sum over dimensions."""
    refused = 0
    for layout in enumerations.functions(size, strides):
        values = reference.vectors(layout.shard, enumerations.TWO_AXES)
        for shape in enumerations.extents_of(size):
            exists = reference.is_grouped(values, shape)
            try:
                found = layout.group(shape)
            except LayoutError:
                assert not exists, (layout, shape)
                refused += 1
            else:
                assert exists, (layout, shape)
                check_grouped(layout, shape, found)
    return refused


@pytest.mark.parametrize(("size", "strides"), [(6, (0, 1, 2, 3)), (8, (1, 2)), (12, (1, 4))])
def test_a_shape_is_refused_iff_no_grouped_shard_exists(size: int, strides: tuple[int, ...]) -> None:
    refused = check_exactly_refused(size, strides)
    assert refused or size == 8  # every factorization of a power of two groups every other


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "strides"), [(12, (-1, 0, 1, 2)), (18, (0, 1, 2)), (24, (1, 2)), (30, (1, 2))]
)
def test_a_shape_is_refused_iff_no_grouped_shard_exists_at_larger_sizes(
    size: int, strides: tuple[int, ...]
) -> None:
    assert check_exactly_refused(size, strides)


def test_iters_that_need_no_cut_are_kept() -> None:
    fragment = TileLayout(S[(8, 2, 4, 2) : (4 @ laneid, 1 @ warpid, 1 @ laneid, 1)] + R[2 : 4 @ warpid])
    assert fragment.group((16, 8)) == (fragment, (0, 2, 4))
    assert fragment.group((8, 2, 4, 2)) == (fragment, (0, 1, 2, 3, 4))


def test_iters_are_fused_where_a_boundary_lies_across_them() -> None:
    assert TileLayout(S[(2, 3) : (3, 1)]).group((3, 2)) == (TileLayout(S[3, 2]), (0, 1, 2))


def test_unit_dimensions_get_a_unit_iter() -> None:
    """C30: seps keep their places."""
    grouped, seps = TileLayout(S[2, 3]).group((1, 2, 1, 1, 3, 1))
    assert seps == (0, 1, 2, 3, 4, 5, 6)
    assert [it.extent for it in grouped.shard] == [1, 2, 1, 1, 3, 1]
    assert TileLayout(S[()]).group(()) == (TileLayout(S[()]), (0,))
    assert TileLayout(S[1]).group((1, 1))[1] == (0, 1, 2)


def test_a_shape_may_be_any_sequence_of_integers() -> None:
    import numpy as np

    layout = TileLayout(S[8, 4])
    expected = layout.group((4, 8))
    for shape in ([4, 8], np.array([4, 8]), (np.int32(4), np.uint8(8)), range(4, 9, 4), iter((4, 8))):
        assert layout.group(shape) == expected
    assert layout.group(32) == layout.group((32,)) == layout.group(np.array(32))


@pytest.mark.parametrize(
    ("shape", "word"),
    [
        ((3, 2), "dimension 1 of shape"),
        ((7,), "7 elements"),
        ((), "1 elements"),
        ((6, 0), "at least 1"),
        ((-2, -3), "at least 1"),
        ((2.0, 3), "integer"),
        ((2, True, 3), "integer"),
        (((2, 3),), "integer"),
        ("23", "integer"),
        (b"\x02\x03", "shape"),
        ({2, 3}, "order"),
        ({2: 3}, "order"),
        (None, "integer"),
        (6.0, "integer"),
    ],
)
def test_bad_shapes_are_refused_with_a_reason(shape: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word):
        TileLayout(S[(2, 3) : (10, 1)]).group(shape)


def test_the_message_names_the_cut() -> None:
    with pytest.raises(LayoutError) as caught:
        TileLayout(S[(2, 3) : (10 @ warpid, 1)]).group((3, 2))
    assert caught.value.operation == "group"
    assert "(3, 2)" in str(caught.value)
    assert "(2, 3)" in str(caught.value)


def test_huge_extents() -> None:
    layout = TileLayout(S[(10**30, 10**15) : (1 @ laneid, 10**20)])
    grouped, seps = layout.group((10**10, 10**25, 10**10))
    assert [it.extent for it in grouped.shard] == [10**10, 10**20, 10**5, 10**10]
    assert seps == (0, 1, 3, 4)


def test_a_thousand_dimensions() -> None:
    layout = TileLayout(S[2**1000])
    grouped, seps = layout.group([2] * 1000)
    assert seps == tuple(range(1001))
    assert grouped.canonicalize() == layout
    with pytest.raises(LayoutError):
        TileLayout(S[([2, 3] * 300) : ([1, 5] * 300)]).group([6, 1] * 299 + [3, 2])
