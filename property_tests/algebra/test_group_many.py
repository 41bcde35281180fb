"""group_many: one shard that serves several shapes, refined no further than they ask for."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import prod

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference
from property_tests.algebra.refusals import check_refusal
from tilelayout import LayoutError, S, TileLayout, laneid


def boundaries(shape: tuple[int, ...]) -> Counter[int]:
    """The prefix products: where dimensions begin and end."""
    return Counter(prod(shape[:d]) for d in range(len(shape) + 1))


def refined(shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The minimal common refinement by its definition; None where boundaries don't nest."""
    most: Counter[int] = Counter()
    for shape in shapes:
        most |= boundaries(shape)
    chain = sorted(most.elements())
    if any(b % a for a, b in pairwise(chain)):
        return None
    return tuple(b // a for a, b in pairwise(chain))


def check(layout: TileLayout, shapes: list[tuple[int, ...]], found: tuple) -> None:
    result, seps = found
    assert reference.function(result) == reference.function(layout)
    assert len(seps) == len(shapes)
    for shape, mine in zip(shapes, seps, strict=True):
        assert len(mine) == len(shape) + 1
        assert mine[0] == 0
        assert mine[-1] == len(result.shard)
        for d, n in enumerate(shape):
            group = result.shard[mine[d] : mine[d + 1]]
            assert group
            assert prod(it.extent for it in group) == n


@given(strategies.layouts(), st.data())
def test_shapes_are_served_or_refused(layout: TileLayout, data: st.DataObject) -> None:
    """Refused exactly where the shapes don't nest, or the layout can't be grouped to their refinement."""
    size = reference.size(layout)
    fitting = strategies.fitting_shapes([it.extent for it in layout.shard])
    any_shape = strategies.factorizations(size)
    shapes = data.draw(st.lists(st.one_of(fitting, any_shape).filter(len), min_size=1, max_size=3))
    dims = refined(shapes)
    possible = dims is not None
    if dims is not None:
        axes = sorted({it.axis for it in layout.shard})
        possible = reference.is_grouped(reference.vectors(layout.shard, axes), dims)
    try:
        found = layout.group_many(shapes)
    except LayoutError as error:
        check_refusal(error, "group_many")
        assert not possible
        return
    assert possible
    check(layout, shapes, found)
    result, _ = found
    assert result == layout.group(dims)[0], "refined no further"


@given(strategies.layouts(), st.data())
def test_one_shape_is_group(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.fitting_shapes([it.extent for it in layout.shard]).filter(len))
    result, (seps,) = layout.group_many([shape])
    assert (result, seps) == layout.group(shape)


def test_unit_boundaries_are_kept() -> None:
    result, seps = TileLayout(S[24]).group_many([(1, 2, 12), (2, 1, 1, 12), (24, 1)])
    assert [it.extent for it in result.shard] == [1, 2, 1, 1, 12, 1]
    assert seps == ((0, 1, 2, 6), (0, 2, 3, 4, 6), (0, 5, 6))


def test_a_refinement_needs_the_fused_form() -> None:
    check(
        TileLayout(S[(2, 12) : (12, 1)]),
        [(8, 3), (24,)],
        TileLayout(S[(2, 12) : (12, 1)]).group_many([(8, 3), (24,)]),
    )


def test_symbols() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    result, seps = TileLayout(S[(n, 8) : (8, 1)]).group_many([(4 * n, 2), (n, 8), (2 * n, 4)])
    assert [it.extent for it in result.shard] == [n, 2, 2, 2]
    assert seps == ((0, 3, 4), (0, 1, 4), (0, 2, 4))


@pytest.mark.parametrize(
    ("shapes", "word"),
    [
        ([], "at least one shape"),
        ([(2, 12), (3, 8)], r"dimension 0 of \(2, 12\) and dimension 0 of \(3, 8\)"),
        ([(2, 12), (2, 2, 6), (2, 3, 4)], r"dimension 1 of \(2, 2, 6\) and dimension 1 of \(2, 3, 4\)"),
        ([(24,), (25,)], "25 elements"),
        ([(24,), ()], "no dimensions"),
        ([(24,), (2.0, 12)], "shape 1"),
        (5, "sequence"),
        ([(24,), None], "shape 1"),
    ],
)
def test_bad_shapes_are_refused(shapes: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word) as caught:
        TileLayout(S[24 : 1 @ laneid]).group_many(shapes)
    assert caught.value.operation == "group_many"
