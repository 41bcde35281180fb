"""Symbolic coordinates, of sympy and of `tilelayout.expr`: the numbers put in later give what numbers give."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference
from property_tests.algebra.test_symbols import number
from tilelayout import S, TileLayout, laneid, m
from tilelayout.expr import Var, evaluate


@settings(max_examples=50)
@given(strategies.layouts(max_size=48, replicated=False), st.data())
def test_symbolic_coordinates_give_what_numbers_give(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.factorizations(reference.size(layout)))
    coord = sympy.symbols(f"i:{len(shape)}", integer=True, nonnegative=True)
    found = layout.apply(*coord, shape=shape)
    points = list(reference.coordinates(shape))
    for point in data.draw(st.lists(st.sampled_from(points), max_size=6)):
        values = {a: number(v, dict(zip(coord, point, strict=True))) for a, v in found.items()}
        flat = reference.flatten(point, shape)
        assert reference.place(values) == reference.place(reference.displacement(layout, flat))


@settings(max_examples=50)
@given(strategies.layouts(max_size=48), st.data())
def test_a_symbolic_flat_index(layout: TileLayout, data: st.DataObject) -> None:
    i = sympy.Symbol("i", integer=True)
    found = layout.owners(i)
    for flat in data.draw(st.lists(st.integers(0, reference.size(layout) - 1), max_size=4)):
        places = {reference.place({a: number(v, {i: flat}) for a, v in o.items()}) for o in found}
        assert places == reference.owners(layout, flat)


@settings(max_examples=50)
@given(strategies.layouts(max_size=48), st.data())
def test_expressions_in_expressions_out(layout: TileLayout, data: st.DataObject) -> None:
    """`tilelayout.expr` is the language of emitted code; no sympy is involved."""
    shape = data.draw(strategies.factorizations(reference.size(layout)))
    coord = [Var(f"i{d}", 0, n - 1) for d, n in enumerate(shape)]
    found = layout.apply(*coord, shape=shape)
    assert not any(isinstance(v, sympy.Basic) for v in found.values())
    points = list(reference.coordinates(shape))
    for point in data.draw(st.lists(st.sampled_from(points), max_size=6)):
        environment = {v.name: c for v, c in zip(coord, point, strict=True)}
        values = {a: evaluate(v, environment) for a, v in found.items()}
        flat = reference.flatten(point, shape)
        assert reference.place(values) == reference.place(reference.displacement(layout, flat))


def test_coordinates_may_be_expressions_and_mix_with_numbers() -> None:
    layout = TileLayout(S[8, 4])
    i = sympy.Symbol("i", integer=True, nonnegative=True)
    assert layout.apply(2 * i + 1, 3, shape=(8, 4)) == {m: 8 * i + 7}
    assert layout.apply(sympy.Integer(2), 3) == {m: 11}
    assert type(layout.apply(sympy.Integer(2), 3)[m]) is int


def test_a_symbol_as_it_was_given_comes_back() -> None:
    """With its assumptions: a look-alike would not cancel against it."""
    i = sympy.Symbol("i", integer=True, nonnegative=True, even=True)
    found = TileLayout(S[8:3]).apply(i)[m]
    assert found - 3 * i == 0


def test_a_symbol_need_not_be_declared_nonnegative() -> None:
    """A coordinate is taken to be in range; that doesn't change what the symbol is elsewhere."""
    i = sympy.Symbol("i", integer=True)
    assert TileLayout(S[8 : 4 @ laneid]).apply(i) == {laneid: 4 * i}


@pytest.mark.parametrize("factor", [2, 3, 5, 6])
@pytest.mark.parametrize("inner", [4, 8, 12])
def test_remainders_within_remainders(factor: int, inner: int) -> None:
    # sympy 1.14 rewrites Mod(3*Mod(n, 4), 8) to another value: the result may not hold such a Mod.
    n = sympy.Symbol("n", integer=True, nonnegative=True)
    layout = TileLayout(S[(8, 8) : (100, 1)])
    result = layout.apply(factor * sympy.Mod(n, inner), shape=(64,))["m"]
    for value in range(3 * inner):
        at = factor * (value % inner)
        if at < 64:
            assert result.subs(n, value) == layout.apply(at, shape=(64,))["m"]
