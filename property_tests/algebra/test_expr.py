"""Index expressions evaluated: at integers, at arrays, and within their bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given

from property_tests.algebra.expressions import (
    EVERYTHING,
    OPERATORS,
    SUMS,
    Tree,
    build,
    check_value,
    i,
    j,
    lane,
    names_in,
    points,
    t,
    w,
    x,
    y,
)
from tilelayout.expr import Var, bounds, evaluate


@given(EVERYTHING)
def test_value_and_bounds_are_those_of_plain_integers(tree: Tree) -> None:
    check_value(tree, build(tree))


@given(SUMS)
def test_value_and_bounds_without_bit_operations(tree: Tree) -> None:
    check_value(tree, build(tree))


@pytest.mark.parametrize("symbol", list(OPERATORS))
def test_every_operator_on_every_small_operand(symbol: str) -> None:
    """x symbol c and c symbol x for affine x, at all points of all small ranges."""
    for lo, width, scale, shift in itertools.product((-5, 0, 1), (0, 3, 8), (1, 4, 6), (0, 3)):
        v = Var("v", lo, lo + width)
        x = scale * v + shift
        for c in range(-5, 18):
            if (symbol in ("//", "%") and c == 0) or (symbol in ("<<", ">>") and c < 0):
                continue
            result = OPERATORS[symbol](x, c)
            least, most = bounds(result)
            for value in range(lo, lo + width + 1):
                wanted = OPERATORS[symbol](scale * value + shift, c)
                assert evaluate(result, {"v": value}) == wanted, (x, c)
                assert least <= wanted <= most, (x, c)
            if symbol in ("+", "-", "*", "//"):
                ends = {OPERATORS[symbol](scale * end + shift, c) for end in (lo, lo + width)}
                assert (least, most) == (min(ends), max(ends)), (x, c)
            if symbol == "%":
                assert most - least < abs(c), (x, c)


@pytest.mark.parametrize("symbol", ["^", "&", "|", "//", "%"])
@pytest.mark.parametrize("top", [6, 7, 8])
def test_digits_that_just_fit_and_just_don_t(symbol: str, top: int) -> None:
    a, b = Var("a", -1, 2), Var("b", 0, top)
    for c in [*range(-17, 0), *range(1, 35)]:
        result = OPERATORS[symbol](8 * a + b, c)
        for p, q in itertools.product(range(-1, 3), range(top + 1)):
            assert evaluate(result, {"a": p, "b": q}) == OPERATORS[symbol](8 * p + q, c), c


@pytest.mark.parametrize(
    "form",
    [
        "x % n % m", "x % (n*m) % n", "x % (6*n) % (2*n)",
        "x % (n*m) // n", "x // n // m", "x // n // 3", "x // 3 // n",
        "(n*x + y) // (n*m)", "(n*x + y) % (n*m)", "(n*x + y % n) // (n*m)", "(n*x + y % n) % (n*m)",
        "(n*x - 1) // n", "x // (a - 1) // (a - 1)", "x % (a - 1) % (a - 1)",
        "(n*x - y) % n", "x // -n", "x % -n", "-x // n", "-5 // n", "7 % n", "(n - 1) % (n + 1)",
        "(n*n + n) // (n + 1)",
        "(n*n + x) % (n + 1)", "(x*n + x) // (n + 1)", "n*(x // n) + x % n", "x - n*(x // n)", "m*(x - x % n)",
        "x % n + n*((x // n + 2) % m)", "(2*x + n) // (2*n)", "(4*x + 3) % (4*n)", "(n*n*x + n*y) // (n*n)", "x // d",
        "x % d", "-x // (2*d)", "(d*x + y) % d",
    ],
)  # fmt: skip
def test_symbolic_divisors(form: str) -> None:
    low = {"x": None, "y": None, "n": 1, "m": 1, "a": 3}
    wide = {name: Var(name, lo) for name, lo in low.items()} | {"d": Var("d", None, -1)}
    value = eval(form, dict(wide))  # noqa: S307 - a form above
    for p, q, r, s, d in itertools.product(range(-7, 14, 3), range(-5, 9, 3), (1, 2, 5), (1, 2, 3), (-3, -1)):
        env = {"x": p, "y": q, "n": r, "m": s, "d": d, "a": r + 2}
        assert evaluate(value, env) == eval(form, dict(env)), env  # noqa: S307 - a form above


@given(EVERYTHING)
def test_arrays_give_what_ints_give(tree: Tree) -> None:
    x, names = build(tree), names_in(tree)
    envs = list(points(names))
    columns = {name: np.array([env[name] for env in envs], np.int8) for name in names}
    values = evaluate(x, columns)
    assert list(np.broadcast_to(values, len(envs))) == [evaluate(x, env) for env in envs]


def test_arrays_do_not_wrap() -> None:
    n = Var("n")
    big = np.array([1, 2**40], np.int64)
    assert evaluate(n * n * n + 1, {"n": big}).tolist() == [2, 2**120 + 1]
    assert evaluate(n * 1000, {"n": np.array([100], np.int8)}).tolist() == [100000]
    assert evaluate(n * 3, {"n": np.array([1, 2], np.uint64)}).dtype == np.int64


def test_bounds_of_bits() -> None:
    assert bounds(x & y & lane & 40) == (0, 8)
    assert bounds(lane & w) == (0, 3)
    assert bounds(lane ^ 32 * w) == (0, 127)
    assert bounds(lane ^ w) == (0, 31)
    assert bounds(j ^ i) == (-8, 7)
    assert bounds(x | w) == (0, None)
    assert bounds(t ^ w) == (None, None)
    assert bounds(1 << i) == (1, 32)
    assert bounds(lane >> i) == (0, 31)


def test_numbers_are_exact_beyond_machine_words() -> None:
    n = Var("n", 0, 2**70)
    x = n * 2**70 + n // 2**65
    assert bounds(x) == (0, 2**140 + 32)
    assert evaluate(x, {"n": 2**70}) == 2**140 + 32
