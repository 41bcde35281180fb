"""What is proved of index expressions holds: order, equality, exact division, substitution."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from property_tests.algebra.expressions import (
    ARITHMETIC,
    EVERYTHING,
    SUMS,
    Tree,
    build,
    calculate,
    chunk,
    i,
    lane,
    m,
    n,
    names_in,
    points,
    trees,
    w,
    x,
    y,
)
from tilelayout.expr import Index, divide_exact, equal, evaluate, is_zero, less, substitute


@given(EVERYTHING, EVERYTHING)
def test_what_is_proved_of_two_expressions_holds(left: Tree, right: Tree) -> None:
    a, b = build(left), build(right)
    same, below = equal(a, b), less(a, b)
    for env in points(names_in(left, right), most=30):
        p, q = calculate(left, env), calculate(right, env)
        assert same is None or (p == q) is same, (a, b)
        assert below is None or (p < q) is below, (a, b)


@pytest.mark.parametrize(
    "a", [x, x + y, x * n, x - 3 * y, 5 * x + i, lane % 24, x // 3 + y, (x ^ y) + 1, x % n + y]
)
def test_ways_to_split_and_flatten_are_proved_equal(a: Index) -> None:
    for c, d in itertools.product((1, 2, 3, 4, 8), repeat=2):
        assert equal(a // c // d, a // (c * d)) is True
        assert equal(a % (c * d) % c, a % c) is True
        assert equal(a % (c * d) // c, a // c % d) is True
        assert equal(a // (c * d) * d + a // c % d, a // c) is True
        assert equal(-(-a // c), (a + c - 1) // c) is True


@given(SUMS, st.integers(1, 9))
def test_sums_and_neighbors_are_proved(tree: Tree, c: int) -> None:
    a = build(tree)
    assert equal((a + 5) * c, a * c + 5 * c) is True
    assert equal((a + 3 * c) // c, a // c + 3) is True
    assert equal((a + 3 * c) % c, a % c) is True
    assert (equal(a, a + c), less(a, a + c), less(a, a - c)) == (False, True, False)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((n + 1) * (n - 1), n * n - 1),
        (x % 8 - x % 4, 4 * (x // 4 % 2)),
        ((13 * x) % 8, (5 * x) % 8),
        ((x - y) % 8, (x + 7 * y) % 8),
        (-x // 8, -((x + 7) // 8)),
        ((x + 7) // 8, (x - 1) // 8 + 1),
        (8 * ((x % 16 + y) // 8) + (x + y) % 8, x % 16 + y),
    ],
)
def test_equal(left: Index, right: Index) -> None:
    assert equal(left, right) is True
    assert is_zero(left - right) is True


def test_not_equal_and_unknown() -> None:
    assert equal(2 * x, 2 * y + 1) is False
    assert equal(4 * (x // 3), 8 * n + 2) is False
    assert equal(x, 5) is None
    assert equal(i, 6) is False
    assert (is_zero(0), is_zero(3), is_zero(n), is_zero(x)) == (True, False, False, None)
    assert (less(x % n, n), less(n, x % n), less(x, n)) == (True, False, None)
    assert (less(n - 2, x % n), less(chunk, w), less(w, chunk + 3)) == (None, None, None)
    assert (less(2, 3), less(3, 3), equal(3, 3)) == (True, False, True)


# 4*i*i*(i*i // 4) meets i*i*(i*i % 4) in the product, and hides the factor.
@example(
    ("*", "i", ("+", "i", ("+", "i", 1))),
    ("*", ("+", "i", ("%", ("*", "i", "i"), 4)), ("-", 3, ("+", "i", "i"))),
)
@given(SUMS, SUMS)
def test_exact_division_undoes_multiplication(left: Tree, right: Tree) -> None:
    a, b = build(left), build(right)
    if b == 0:
        return
    quotient = divide_exact(a * b, b)
    assert quotient is not None
    assert equal(quotient, a) is True
    found = divide_exact(a, b)
    assert found is None or equal(found * b, a) is True


def test_exact_division() -> None:
    assert divide_exact(12, 4) == 3
    assert divide_exact(12, 5) is None
    assert divide_exact(6 * n + 3, 3) == 2 * n + 1
    assert divide_exact(6 * n + 3, 2) is None
    assert divide_exact(n * m * 4 + n * 2, n) == 4 * m + 2
    assert divide_exact((n + m) * (n + 2), n + m) == n + 2
    assert divide_exact(x - x % 4, 4) == x // 4
    assert divide_exact(0, n) == 0
    assert divide_exact(n, n * n) is None


# --- substitution -----------------------------------------------------------------------------------


@given(EVERYTHING, trees(ARITHMETIC, depth=2))
def test_substitution_is_composition(tree: Tree, replacement: Tree) -> None:
    inner = build(replacement) % 6  # in the bounds of i
    outer = substitute(build(tree), {"i": inner})
    for env in points(names_in(tree, replacement), most=30):
        value = calculate(replacement, env) % 6
        assert evaluate(outer, env | {"i": env.get("i", 0)}) == calculate(tree, env | {"i": value})


def test_substitution() -> None:
    assert substitute(4 * x + y, {"x": 3}) == y + 12
    assert substitute(x // 4 + y % 4, {"x": y, "y": x}) == y // 4 + x % 4
    assert (x // 4).substitute({"x": 8 * y + 3, "unused": 1}) == 2 * y
    assert substitute(5, {"x": 1}) == 5
    assert substitute(x, {}) is x
