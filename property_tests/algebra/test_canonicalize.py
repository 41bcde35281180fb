"""canonicalize keeps the function, and gives equal functions equal forms."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import enumerations, reference
from tilelayout import Iter, LayoutError, R, S, TileLayout, laneid, m, warpid


@given(strategies.layouts())
def test_the_owners_stay_at_every_index(layout: TileLayout) -> None:
    assert reference.function(layout.canonicalize()) == reference.function(layout)


@given(strategies.layouts())
def test_the_canonical_form_is_its_own(layout: TileLayout) -> None:
    canonical = layout.canonicalize()
    assert canonical.canonicalize() == canonical


@given(strategies.layouts())
def test_nothing_is_left_to_drop_or_merge(layout: TileLayout) -> None:
    """Extents above 1 (or the one unit iter), zero strides on m, no neighbors that count on through the wrap."""
    shard = layout.canonicalize().shard
    assert shard
    assert all(it.extent > 1 for it in shard) or shard == (Iter(1, 0),)
    assert all(it.axis is m for it in shard if it.stride == 0)
    for outer, inner in itertools.pairwise(shard):
        assert outer.axis is not inner.axis or outer.stride != inner.extent * inner.stride


@given(strategies.layouts(replicated=False), st.data())
def test_any_way_to_write_a_shard_has_one_form(layout: TileLayout, data: st.DataObject) -> None:
    """Split every iter, add units anywhere with any stride: the canonical form doesn't change."""
    shard: list[Iter] = []
    for it in layout.shard:
        factors = data.draw(strategies.factorizations(it.extent))
        stride = it.stride * it.extent
        for factor in factors:
            stride //= factor
            unit = factor == 1
            axis = data.draw(strategies.axes()) if unit else it.axis
            shard.append(
                Iter(factor, data.draw(st.sampled_from(strategies.STRIDES)) if unit else stride, axis)
            )
    rewritten = TileLayout.from_iters(shard, (), layout.offset)
    assert rewritten.canonicalize() == layout.canonicalize()


def check_unique(size: int) -> None:
    """Among all small shards of a size: the same function if and only if the same canonical shard."""
    form_of: dict[tuple, tuple] = {}
    function_of: dict[tuple, tuple] = {}
    for shard in enumerations.shards(size):
        function = tuple(reference.vectors(shard, enumerations.TWO_AXES))
        form = TileLayout.from_iters(shard).canonicalize().shard
        assert form_of.setdefault(function, form) == form
        assert function_of.setdefault(form, function) == function


@pytest.mark.parametrize("size", range(1, 16))
def test_equal_functions_and_equal_forms_are_the_same(size: int) -> None:
    check_unique(size)


@pytest.mark.slow
@pytest.mark.parametrize("size", range(16, 25))
def test_equal_functions_and_equal_forms_are_the_same_at_larger_sizes(size: int) -> None:
    check_unique(size)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        (S[(2, 3, 4) : (12, 4, 1)], S[24:1]),
        (S[(1, 8, 1) : (77 @ laneid, 1, -5)], S[8:1]),
        (S[(1, 1) : (5, 7 @ laneid)], S[1:0]),
        (S[()], S[1:0]),
        (S[1 : 3 @ warpid], S[1:0]),
        (S[(2, 4) : (-4, -1)], S[8:-1]),
        (S[(2, 4) : (0 @ laneid, 0 @ warpid)], S[8:0]),
        (S[(2, 3) : (0 @ laneid, 1)], S[(2, 3) : (0, 1)]),
        (S[(2, 2) : (2 @ laneid, 1 @ warpid)], S[(2, 2) : (2 @ laneid, 1 @ warpid)]),
        (S[(2, 2, 2) : (4, 2 @ laneid, 1)], S[(2, 2, 2) : (4, 2 @ laneid, 1)]),
        (S[(2, 2) : (1, 2)], S[(2, 2) : (1, 2)]),
        (S[8] + 0 @ laneid + 3, S[8] + 3),
    ],
)
def test_named_forms(written: object, canonical: object) -> None:
    assert TileLayout(written).canonicalize() == TileLayout(canonical)


@pytest.mark.parametrize("layout", [TileLayout(S[8]), TileLayout(S[(2, 2) : (1, 2)] + R[2 : 4 @ warpid])])
def test_no_arguments_are_needed(layout: TileLayout) -> None:
    assert layout.canonicalize() == layout
    with pytest.raises(LayoutError, match="scope"):
        layout.canonicalize(1)


def test_a_layout_of_a_thousand_iters() -> None:
    layout = TileLayout(S[([2] * 1000) : [2**k for k in reversed(range(1000))]])
    assert layout.canonicalize() == TileLayout(S[2**1000])
