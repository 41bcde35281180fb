"""Where a swizzled layout puts elements: owners, tables, coordinates of any kind, and the span of all places."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference, swizzling
from tilelayout import (
    LayoutError,
    R,
    S,
    Swizzle,
    SwizzledLayout,
    Undecided,
    laneid,
    m,
    warpid,
)
from tilelayout.expr import Var, evaluate

TILE = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))


@given(swizzling.swizzled_layouts(), st.data())
def test_owners_table_and_apply(layout: SwizzledLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.factorizations(swizzling.size(layout)))
    function = swizzling.function(layout)
    assert layout.size() == len(function)
    table = layout.table(shape)
    for flat, coord in enumerate(reference.coordinates(shape)):
        assert {reference.place(place) for place in layout.owners(*coord, shape=shape)} == function[flat]
        first = swizzling.swizzled(
            layout.swizzle, reference.place(reference.displacement(layout.layout, flat))
        )
        assert reference.place(layout.apply(*coord, shape=shape)) == first
        assert reference.place({a: v[coord] for a, v in table.items()}) == first
        assert reference.place(layout.apply(flat)) == first


@given(swizzling.swizzled_layouts())
def test_array_coordinates(layout: SwizzledLayout) -> None:
    flat = np.arange(swizzling.size(layout))
    found = layout.apply(flat)
    assert all(v.tolist() == [layout.apply(int(i))[a] for i in flat] for a, v in found.items())
    for k, place in enumerate(layout.owners(flat)):
        assert all(np.ravel(v)[-1] == layout.owners(int(flat[-1]))[k][a] for a, v in place.items())


@given(swizzling.swizzled_layouts(max_size=48))
def test_symbolic_coordinates(layout: SwizzledLayout) -> None:
    size = swizzling.size(layout)
    x = Var("x", 0, size - 1)
    n = sympy.Symbol("n", integer=True, nonnegative=True)
    found, theirs = layout.apply(x), layout.apply(n)
    for flat in range(size):
        expected = layout.apply(flat)
        assert {a: evaluate(v, {"x": flat}) for a, v in found.items()} == expected
        assert {a: int(sympy.sympify(v).subs(n, flat)) for a, v in theirs.items()} == expected


def test_symbolic_coordinates_are_short() -> None:
    row, column = Var("row", 0, 7), Var("column", 0, 63)
    assert str(TILE.apply(row, column, shape=(8, 64))["m"]) == "64*row + (column ^ (8*row))"


@given(swizzling.swizzled_layouts(), st.sampled_from([m, laneid, warpid]))
def test_span_is_that_of_the_swizzled_values(layout: SwizzledLayout, axis: object) -> None:
    found = swizzling.values(layout, str(axis))
    assert layout.span(axis) == max(found) - min(found) + 1


def test_span_of_huge_layouts() -> None:
    layout = SwizzledLayout(S[(2**40, 3, 2**41 + 1) : (2**90, 5, 1)] + R[10**6 : -7], Swizzle(3, 4, 3))
    values = layout.span()
    assert values >= layout.layout.span() - 1024
    assert SwizzledLayout(S[2**40 + 1], Swizzle(3, 0, 3)).span() == 2**40 + 1
    assert SwizzledLayout(S[2**40 + 63] - 2**50, Swizzle(3, 0, 3)).span() == 2**40 + 64
    assert SwizzledLayout(S[2, 3], Swizzle(1, 0, -300)).span() == 2**300 + 6
    n = sympy.Symbol("n", integer=True, positive=True)
    assert sympy.expand(SwizzledLayout(S[n, 512], Swizzle(3, 3, 3)).span() - 512 * n) == 0
    with pytest.raises(LayoutError, match=r"span: .*symbolic"):
        SwizzledLayout(S[n], Swizzle(3, 3, 3)).span()
    with pytest.raises(Undecided, match="span"):
        SwizzledLayout(S[2**40], Swizzle(1, 0, 30)).span()
