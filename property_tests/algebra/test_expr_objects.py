"""Index expressions as Python's values: types, equality, hashing, copies, truth; frozen."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import sympy
from hypothesis import given

from property_tests.algebra.expressions import EVERYTHING, Tree, build, n, names_in, x, y
from tilelayout.errors import LayoutError
from tilelayout.expr import Expr, Var, variables


@given(EVERYTHING)
def test_a_constant_is_an_int_and_everything_else_varies_in_type_only(tree: Tree) -> None:
    x = build(tree)
    assert type(x) is int or isinstance(x, Expr)
    assert {v.name for v in variables(x)} <= set(names_in(tree))


@given(EVERYTHING)
def test_equal_values_have_equal_hashes_and_survive_pickling(tree: Tree) -> None:
    value, again = build(tree), build(tree)
    assert value == again
    assert hash(value) == hash(again)
    for other in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert other == value
        assert hash(other) == hash(value)
        assert str(other) == str(value)


def test_values_are_frozen() -> None:
    with pytest.raises(AttributeError, match="frozen"):
        x.name = "z"  # type: ignore[misc]
    with pytest.raises(AttributeError, match="frozen"):
        (x + y).lo = 3  # type: ignore[misc]
    with pytest.raises(AttributeError, match="frozen"):
        del x.name


def test_variables_differ_by_name_and_bounds() -> None:
    assert Var("x", 0, 3) != Var("x", 0, 4)
    assert Var("x", 0, 3) - Var("x", 0, 4) != 0
    assert len({Var("x"), Var("x", 0), Var("x", 0, None), Var("x", 1)}) == 2
    assert Var("x") != 0
    assert Var("threadIdx.x", 0, 31) // 4 * 4 + 1 == 4 * (Var("threadIdx.x", 0, 31) // 4) + 1


def test_numpy_and_sympy_integers_are_ints() -> None:
    assert np.int8(100) * x == x * np.int8(100) == 100 * x
    assert sympy.Integer(2) * x == x * sympy.Integer(2) == 2 * x
    assert all(type(c) is int for c in (np.int8(100) * x).terms.values())  # type: ignore[union-attr]


def test_truth_is_answered_where_it_is_known() -> None:
    assert n
    with pytest.raises(LayoutError, match="may or may not be zero"):
        bool(x)
