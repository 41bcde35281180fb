"""Index expressions: values, bounds, texts and proofs against plain Python integers; each rule by its result."""

from __future__ import annotations

import copy
import doctest
import importlib
import itertools
import operator
import pickle
import pkgutil
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from tilelayout import expr
from tilelayout.errors import LayoutError
from tilelayout.expr import (
    Expr,
    Index,
    Var,
    bounds,
    divide_exact,
    equal,
    evaluate,
    from_sympy,
    is_zero,
    less,
    render,
    substitute,
    to_sympy,
    variables,
)  # fmt: skip

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "^": operator.xor, "&": operator.and_, "|": operator.or_, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
ARITHMETIC = ["+", "-", "*", "//", "%"]

# Small, so that every point can be tried. `u` and `t` are known to be bounded on one side or none.
RANGES = {"i": (0, 5), "j": (-3, 4), "k": (0, 31), "n": (1, 4), "m": (2, 5), "u": (0, 9), "t": (-4, 4)}
VARIABLES = {name: Var(name, *pair) for name, pair in RANGES.items()} | {"u": Var("u"), "t": Var("t", None)}
i, j, k, n, m, u, t = (VARIABLES[name] for name in "ijknmut")
x, y = Var("x"), Var("y")
lane, w, chunk = Var("lane", 0, 31), Var("w", 0, 3), Var("chunk", 0, 7)

DIVISORS = ["n", "m"]
NONNEGATIVE = ["i", "k", "n", "m", "u"]

Tree = Any  # an int, a name, or (symbol, left, right)


def leaves(names: list[str]) -> st.SearchStrategy[Tree]:
    return st.one_of(st.sampled_from(names), st.sampled_from(names), st.integers(-9, 33))


def trees(symbols: list[str], depth: int = 4) -> st.SearchStrategy[Tree]:
    """Expressions over at most three variables; divisors are not zero and shift counts not negative."""

    @st.composite
    def tree(draw: st.DrawFn, names: list[str], depth: int) -> Tree:
        if depth == 0 or draw(st.integers(0, 9)) == 0:
            return draw(leaves(names))
        symbol = draw(st.sampled_from(symbols))
        left = draw(tree(names, depth - 1))
        if symbol in ("//", "%"):
            constants = st.sampled_from([1, 2, 3, 4, 5, 6, 8, 16, -2, -3])
            symbolic = st.sampled_from([d for d in names if d in DIVISORS] or [4])
            scaled = st.builds(lambda d, c: ("*", d, c), symbolic, st.sampled_from([2, 3, 4]))
            return symbol, left, draw(st.one_of(constants, constants, constants, symbolic, scaled))
        if symbol in ("<<", ">>"):
            counts = [name for name in names if name in ("i", "n", "m")]
            return symbol, left, draw(st.sampled_from([0, 1, 2, 3, *counts]))
        if symbol == "*" and draw(st.booleans()):
            return symbol, left, draw(st.sampled_from([-4, -1, 2, 3, 4, 8]))
        return symbol, left, draw(tree(names, depth - 1))

    names = st.lists(st.sampled_from(list(RANGES)), min_size=1, max_size=3, unique=True)
    return names.flatmap(lambda chosen: tree(chosen, depth))


def calculate(tree: Tree, env: Mapping[str, Any]) -> Any:
    """The tree with Python's own operators: on ints the reference, on `VARIABLES` the expression under test."""
    if isinstance(tree, tuple):
        symbol, left, right = tree
        return OPERATORS[symbol](calculate(left, env), calculate(right, env))
    return env[tree] if isinstance(tree, str) else tree


def build(tree: Tree) -> Index:
    return calculate(tree, VARIABLES)


def names_in(*values: Tree) -> list[str]:
    found: set[str] = set()
    for value in values:
        if isinstance(value, tuple):
            found.update(names_in(*value[1:]))
        elif isinstance(value, str):
            found.add(value)
    return sorted(found)


def points(names: list[str], most: int = 60) -> Iterator[dict[str, int]]:
    """All points of the variables' ranges, or evenly spread ones."""
    domains = [range(RANGES[name][0], RANGES[name][1] + 1) for name in names]
    every = list(itertools.product(*domains))
    step = max(1, len(every) // most) | 1  # odd, so that it doesn't walk along one digit
    return (dict(zip(names, point, strict=True)) for point in every[::step])


EVERYTHING = trees(list(OPERATORS))
SUMS = trees(ARITHMETIC)


# --- values and bounds ------------------------------------------------------------------------------


def check_value(tree: Tree, x: Index) -> None:
    lo, hi = bounds(x)
    for env in points(names_in(tree)):
        value = calculate(tree, env)
        assert evaluate(x, env) == value, (x, env)
        assert lo is None or lo <= value, (x, env)
        assert hi is None or value <= hi, (x, env)


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
def test_a_constant_is_an_int_and_everything_else_varies_in_type_only(tree: Tree) -> None:
    x = build(tree)
    assert type(x) is int or isinstance(x, Expr)
    assert {v.name for v in variables(x)} <= set(names_in(tree))


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


# --- text -------------------------------------------------------------------------------------------


@given(EVERYTHING)
def test_text_evaluates_to_the_same_values(tree: Tree) -> None:
    x = build(tree)
    code = compile(str(x), "text", "eval")
    for env in points(names_in(tree), most=20):
        assert eval(code, dict(env)) == calculate(tree, env), x  # noqa: S307 - the text is Python on purpose


@given(SUMS)
def test_text_rebuilds_the_expression(tree: Tree) -> None:
    x = build(tree)
    again = eval(str(x), dict(VARIABLES))  # noqa: S307 - the text is Python on purpose
    assert equal(again, x) is True


class C(int):
    """A C integer: division truncates, a shift of a negative value is an error."""

    def __truediv__(self, other: int) -> C:
        return C(abs(self) // abs(other) * (1 if (self < 0) == (other < 0) else -1))

    def __mod__(self, other: int) -> C:
        return C(self - int(self / other) * other)

    def __rshift__(self, other: int) -> C:
        assert self >= 0
        return C(int(self) >> other)

    def __lshift__(self, other: int) -> C:
        assert self >= 0
        return C(int(self) << other)

    def __neg__(self) -> C:
        return C(-int(self))


def stay_c(method: str) -> None:
    plain = getattr(int, method)
    setattr(C, method, lambda a, b: C(plain(a, b)))


for _method in ("__add__", "__sub__", "__mul__", "__and__", "__or__", "__xor__"):
    stay_c(_method)


def run_c(text: str, env: Mapping[str, int]) -> int:
    """C's operators bind as Python's do, so Python can parse what `C` calculates."""
    assert "//" not in text
    code = re.sub(r"\b\d+\b", r"C(\g<0>)", text)
    return int(eval(code, {"C": C, **{name: C(value) for name, value in env.items()}}))  # noqa: S307


def test_the_model_of_c_is_c() -> None:
    assert run_c("(0 - 7) / 2", {}) == -3
    assert run_c("(0 - 7) % 2", {}) == -1
    assert run_c("a - b / 2 * 2 + (a >> 1 & 3)", {"a": 7, "b": 5}) == 7 - 4 + 3


@given(EVERYTHING)
def test_c_gives_the_same_values_or_is_refused_for_a_reason(tree: Tree) -> None:
    x = build(tree)
    try:
        text = render(x, "c")
    except LayoutError:
        with pytest.raises(LayoutError, match="possibly negative"):
            render(x, "c")
        return
    for env in points(names_in(tree), most=20):
        assert run_c(text, env) == calculate(tree, env), text


@pytest.mark.parametrize(
    ("value", "python", "c"),
    [
        (lane // 4 * 64 + lane % 4 * 2 + 512 * w, "512*w + 64*(lane // 4) + 2*(lane % 4)",
         "512*w + 64*(lane >> 2) + 2*(lane & 3)"),
        (3 * x // 4, "3*x // 4", "(3*x) >> 2"),
        ((x + 1) // 3 % 5, "(x + 1) // 3 % 5", "(x + 1) / 3 % 5"),
        (x // 4 % 8, "x // 4 % 8", "(x >> 2) & 7"),
        (x % (n + 1), "x % (n + 1)", "x % (n + 1)"),
        (x // (4 * n), "x // (4*n)", "x / (4*n)"),
        (8 - x, "8 - x", "8 - x"),
        (-x - 8, "-x - 8", "-x - 8"),
        (y - x // 3, "y - x // 3", "y - x / 3"),
        (-(x // 3), "-(x // 3)", "-(x / 3)"),
        (n * (x // 3) * 2, "2*n*(x // 3)", "2*n*(x / 3)"),
        (x ^ (x // 8 % 8), "x ^ (x // 8 % 8)", "x ^ ((x >> 3) & 7)"),
        (1 << n, "1 << n", "1 << n"),
        (x + 1 >> n + 1, "(x + 1) >> (n + 1)", "(x + 1) >> (n + 1)"),
        (x ^ y | n, "n | (x ^ y)", "n | (x ^ y)"),
        (7, "7", "7"),
    ],
)  # fmt: skip
def test_how_texts_look(value: Index, python: str, c: str) -> None:
    assert str(value) == render(value) == render(value, "python") == python
    assert render(value, "c") == c


# --- the rules, each by its result ------------------------------------------------------------------

RULES = {
    "terms are collected": (2 * x + y - x + 3 - y, "x + 3"),
    "products are multiplied out": ((n + 1) * 4 - 4 * n, "4"),
    "products are sorted": (n * m - m * n, "0"),
    "multiples leave a quotient": ((8 * x + y) // 8, "x + y // 8"),
    "multiples leave a remainder": ((8 * x + y) % 8, "y % 8"),
    "coefficients are reduced": ((9 * x) // 8, "x + x // 8"),
    "constants are reduced": ((x + 17) // 8, "(x + 1) // 8 + 2"),
    "a quotient by range": (lane // 32, "0"),
    "a remainder by range": (lane % 32, "lane"),
    "a remainder by range, from elsewhere": ((lane + 32) % 32, "lane"),
    "a negative range": ((-1 - lane) // 32, "-1"),
    "quotients nest": (x // 4 // 8, "x // 32"),
    "quotients nest over a constant": ((x // 4 + 3) // 8, "(x + 12) // 32"),
    "remainders nest": (x % 32 % 4, "x % 4"),
    "remainders nest in sums": ((x % 8 + y) % 4, "(x + y) % 4"),
    "a quotient of a remainder": (x % 32 // 4, "x // 4 % 8"),
    "common factors cancel": ((6 * x + 4 * y) // 8, "(3*x + 2*y) // 4"),
    "common factors cancel over what can't carry": ((8 * x + lane % 8) // 16, "x // 2"),
    "common factors leave remainders": ((8 * x + lane % 8) % 16, "8*(x % 2) + lane % 8"),
    "common factors only where nothing carries": ((8 * x + lane) // 16, "(8*x + lane) // 16"),
    "quotient and remainder meet": (4 * (x // 4) + x % 4, "x"),
    "they meet at any scale": (n * (x % 4) + 4 * n * (x // 4), "n*x"),
    "they meet in sums": (8 * ((x + y) // 8) + (x + y) % 8, "x + y"),
    "they meet beside a constant": (8 * ((x + 3) // 8) + (x + 3) % 8 + 1, "x + 4"),
    "digits meet": (x % 4 + 4 * (x // 4 % 8), "x % 32"),
    "three digits meet": (x % 4 + 4 * (x // 4 % 8) + 32 * (x // 32), "x"),
    "carried digits meet": ((x + 5) % 12 // 4 * 4 + (x + 5) % 4, "(x + 5) % 12"),
    "what a quotient leaves": (x - 4 * (x // 4), "x % 4"),
    "what a remainder leaves": (x - x % 4, "4*(x // 4)"),
    "a ring buffer goes round": (((x + 1) % 4 + 1) % 4, "(x + 2) % 4"),
    "rounding up": (-(-x // 4), "(x + 3) // 4"),
    "a negative divisor": (x // -4, "-((x + 3) // 4)"),
    "a negative modulus": (x % -4, "-(-x % 4)"),
    "an axis of extent 1": (5 * Var("one", 3, 3) + x, "x + 15"),
    "symbolic: a factor": ((n * x) // n, "x"),
    "symbolic: no remainder": ((n * x) % n, "0"),
    "symbolic: by range": (Var("a", 0, 3) // Var("b", 4), "0"),
    "symbolic: by range, unchanged": (Var("a", 0, 3) % Var("b", 4), "a"),
    "symbolic: by difference": ((n - 1) // n, "0"),
    "symbolic: a remainder stays below": ((n * x + y % n) // n, "x"),
    "symbolic: mixed radix": ((n * m * x + n * (y % m) + x % n) // n % m, "y % m"),
    "symbolic: they meet": (n * (x // n) + x % n, "x"),
    "symbolic: digits meet": (n * (x // n % m) + x % n, "x % (m*n)"),
    "symbolic: factors cancel": ((4 * n * x + i % 4) // (8 * n), "x // 2"),
    "symbolic: a sum as factor": (((n + 1) * x) // (n + 1), "x"),
    "symbolic: no longer division for its own sake": (n * m // (n + 1), "m*n // (n + 1)"),
    "symbolic: opaque": (x // n + x % m, "x // n + x % m"),
    "shifts are products": ((x << 3) + (x >> 2 << 2) + (x & 3), "9*x"),
    "a mask is a remainder": (x & 7, "x % 8"),
    "a mask in the middle": (x & 12, "4*(x // 4 % 4)"),
    "a mask from below": (x & -8, "8*(x // 8)"),
    "a mask of all bits": (lane & 31, "lane"),
    "a mask of other bits": (4 * x & 3, "0"),
    "xor with zero": (x ^ 0, "x"),
    "xor with itself": (x ^ y ^ x, "y"),
    "xor of disjoint bits": (32 * x ^ lane, "32*x + lane"),
    "xor flips": (lane ^ 31, "31 - lane"),
    "xor at its place": (64 * x + 8 * chunk + w ^ 8 * (x % 8), "64*x + 8*(chunk ^ (x % 8)) + w"),
    "xor twice": ((64 * x + 8 * chunk + w ^ 8 * (x % 8)) ^ 8 * (x % 8), "64*x + 8*chunk + w"),
    "a swizzle twice": ((s := x ^ (x // 8 % 8)) ^ s // 8 % 8, "x"),
    "or of disjoint bits": (4 * x | 3, "4*x + 3"),
    "or with itself": (x | x, "x"),
    "and with itself": (x & y & x, "x & y"),
    "and of constants": (x & y & lane & 40, "lane & x & y & 8"),
    "an opaque quotient of bits": ((x ^ 5) // 4, "(x ^ 5) // 4"),
    "bits that drop out of a quotient": ((x ^ 3) // 4, "x // 4"),
    "bits that drop out of a remainder": ((x ^ 4 * y) % 4, "x % 4"),
    "not": (~x, "-x - 1"),
    "a shift by a variable": (x >> n << 0, "x >> n"),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule(name: str) -> None:
    value, text = RULES[name]
    assert str(value) == text
    names = sorted(v.name for v in variables(value))
    again = eval(text, {v.name: v for v in variables(value)})  # noqa: S307 - the text is Python on purpose
    assert again == value
    assert hash(again) == hash(value), names


@given(SUMS, st.sampled_from([2, 3, 4, 6, 8, 16]))
def test_quotient_and_remainder_give_the_dividend_back(tree: Tree, c: int) -> None:
    dividend = build(tree)
    together = dividend // c * c + dividend % c
    for env in points(names_in(tree), most=20):
        assert evaluate(together, env) == calculate(tree, env)


@given(st.lists(st.tuples(st.sampled_from("ijknmu"), st.integers(-20, 20)), min_size=1, max_size=4),
       st.integers(-20, 20), st.integers(1, 24))  # fmt: skip
def test_affine_dividends_come_back_as_they_were(terms: list[tuple[str, int]], constant: int, c: int) -> None:
    dividend: Index = constant
    for name, factor in terms:
        dividend = dividend + factor * VARIABLES[name]
    q, r = divmod(dividend, c)
    assert q * c + r == dividend
    assert bounds(r)[0] >= 0
    assert bounds(r)[1] < c


def test_long_sums_and_deep_nests_stay_cheap() -> None:
    start = time.perf_counter()
    digits = [Var(f"d{place}", 0, 7) for place in range(40)]
    address: Index = 0
    for place, digit in enumerate(digits):
        address = address + (digit ^ place % 8) % 4 * 8**place + digit // 4 * 4 * 8**place
    for _ in range(40):
        address = (address // 8 + address % 8 * 8**39) ^ 5
    nested: Index = x
    for _ in range(40):
        nested = (nested * 3 + nested // 5) % 1000
    assert time.perf_counter() - start < 5


# --- proofs -----------------------------------------------------------------------------------------


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


# --- sympy ------------------------------------------------------------------------------------------


@given(trees(ARITHMETIC, depth=3))
def test_through_sympy_and_back(tree: Tree) -> None:
    value = build(tree)
    outside = to_sympy(value)
    back = from_sympy(outside, {v.name: bounds(v) for v in variables(value)})
    for env in points(names_in(tree), most=8):
        assert evaluate(back, env) == calculate(tree, env), outside
        there = outside.subs({symbol: env[symbol.name] for symbol in outside.free_symbols})
        assert there == calculate(tree, env), outside


def test_symbols_come_in_with_their_assumptions() -> None:
    p, q, z = sympy.symbols("p", integer=True, positive=True), *sympy.symbols("q z", integer=True)
    nonnegative = sympy.Symbol("r", integer=True, nonnegative=True)
    assert from_sympy(p) == Var("p", 1)
    assert from_sympy(nonnegative) == Var("r", 0)
    assert from_sympy(q) == Var("q", None)
    assert from_sympy(sympy.Symbol("s", integer=True, negative=True)) == Var("s", None, -1)
    assert from_sympy(q * z, {"q": (2, 5)}) == Var("q", 2, 5) * Var("z", None)
    assert from_sympy((p + 1) ** 2 - p**2 - 2 * p) == 1
    assert from_sympy(sympy.ceiling(p / 16)) == -(-Var("p", 1) // 16)
    assert from_sympy(sympy.floor(p / 4 + q / 6)) == (3 * Var("p", 1) + 2 * Var("q", None)) // 12
    assert from_sympy(sympy.Integer(2**80)) == 2**80
    assert type(from_sympy(sympy.Integer(3))) is int
    assert from_sympy(3) == 3
    assert from_sympy(x) is x


def test_symbols_go_out_as_the_callers_own() -> None:
    own = sympy.Symbol("x", integer=True, nonnegative=True, even=True)
    assert to_sympy(x + 1, {"x": own}) == own + 1
    assert to_sympy(n) == sympy.Symbol("n", integer=True, positive=True)
    assert to_sympy(x) == sympy.Symbol("x", integer=True, nonnegative=True)
    assert to_sympy(t) == sympy.Symbol("t", integer=True)
    assert to_sympy(4) == sympy.Integer(4)


def test_only_the_adapter_loads_sympy_and_nothing_loads_numpy() -> None:
    program = (
        "import sys; from tilelayout.expr import Var, render, evaluate; x = Var('x')\n"
        "evaluate(x * 4 // 3 ^ x, {'x': 3}); render(x % 8, 'c'); print('sympy' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


# --- values as Python knows them --------------------------------------------------------------------


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


# --- refusals ---------------------------------------------------------------------------------------

REFUSALS: dict[str, tuple[Callable[[], object], str]] = {
    "a bool": (lambda: x + True, r"expression \+: .* bool True"),
    "a numpy bool": (lambda: x + np.True_, r"expression \+: .* bool"),
    "a float": (lambda: 2.0 * x, r"expression \*: .* float 2\.0"),
    "a string": (lambda: x % "4", r"expression %: .* str '4'"),
    "an array": (lambda: np.arange(3) + x, r"expression \+: .* ndarray"),
    "a sympy symbol": (lambda: x + sympy.Symbol("n", integer=True), r"expression \+: .*from_sympy"),
    "true division": (lambda: x / 4, "use // or divide_exact"),
    "division by zero": (lambda: x // 0, r"x // 0 divides by zero"),
    "remainder by zero": (lambda: x % 0, r"x % 0 divides by zero"),
    "exact division by zero": (lambda: divide_exact(x, x - x), "divided by zero"),
    "a divisor that may be zero": (lambda: 5 // x, r"5 // \(x\): the divisor may be zero .* lo=1"),
    "a divisor of any sign": (lambda: x % (y - n), "the divisor may be zero or negative"),
    "a negative count": (lambda: x << -1, "count may be negative"),
    "a count of any sign": (lambda: x >> j, r"x >> \(j\): the count may be negative"),
    "a name": (lambda: Var("a b"), "a name is a Python name, got 'a b'"),
    "a keyword": (lambda: Var("lambda"), "a name is a Python name"),
    "empty bounds": (lambda: Var("a", 2, 1), "'a' has no value: lo 2 is above hi 1"),
    "a bool as bound": (lambda: Var("a", 0, True), "Var 'a': .* bool True"),
    "an expression as bound": (lambda: Var("a", 0, n), "bounds of 'a' are ints or None"),
    "a missing value": (lambda: evaluate(x + y, {"x": 1}), "y has no value in x [+] y"),
    "a value out of bounds": (lambda: evaluate(lane + x, {"lane": 32, "x": 0}), "lane is 32, .* 0 to 31"),
    "an array out of bounds": (lambda: evaluate(lane, {"lane": np.array([3, -1])}), "an array from -1 to 3"),
    "a float value": (lambda: evaluate(x, {"x": 1.0}), "evaluate x: .* float 1.0"),
    "a float array": (lambda: evaluate(x, {"x": np.array([1.0])}), "evaluate x: .* ndarray"),
    "an object array": (lambda: evaluate(x, {"x": np.array([1, 0.5], object)}), "not ints"),
    "an expression as value": (lambda: evaluate(x, {"x": y}), "use substitute"),
    "a substitute out of bounds": (lambda: substitute(lane, {"lane": x}), r"lane is x \(0 to inf\), outside"),
    "a dialect": (lambda: render(x, "cuda"), "unknown dialect 'cuda'"),  # type: ignore[arg-type]
    "no C quotient": (lambda: render(t // 4, "c"), "floor division of a possibly negative .* t is from -inf to inf"),
    "no C remainder": (lambda: render(j % 3, "c"), "remainder of a possibly negative .* j is from -3 to 4"),
    "no C shift": (lambda: render(j >> n, "c"), "shift of a possibly negative"),
    "no C literal": (lambda: render(x + 2**63, "c"), "9223372036854775808 doesn't fit"),
    "sympy: not an integer": (lambda: from_sympy(sympy.Symbol("v") + 1), r"v in v \+ 1 .* integer=True"),
    "sympy: a fraction": (lambda: from_sympy(sympy.Symbol("v", integer=True) / 2), "1/2 in v/2 is not an integer"),
    "sympy: a function": (lambda: from_sympy(sympy.sqrt(sympy.Symbol("v", integer=True))), "no integer form"),
    "sympy: an inverse": (lambda: from_sympy(1 / sympy.Symbol("v", integer=True)), "1/v .* no integer form"),
    "sympy: a float": (lambda: from_sympy(sympy.Float(2)), "Float"),
    "sympy: two of a name": (
        lambda: from_sympy(sympy.Symbol("v", integer=True) + sympy.Symbol("v", integer=True, positive=True)),
        "names two different symbols",
    ),
    "sympy: something else": (lambda: from_sympy("n + 1"), "from_sympy: .* str 'n [+] 1'"),
    "sympy: bit operations": (lambda: to_sympy(x ^ y), "x . y is a bit operation"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal(name: str) -> None:
    call, message = REFUSALS[name]
    with pytest.raises(LayoutError, match=message):
        call()


# --- examples in docstrings -------------------------------------------------------------------------


def test_examples_in_docstrings() -> None:
    attempted = 0
    for found in pkgutil.iter_modules(expr.__path__, "tilelayout.expr."):
        module = importlib.import_module(found.name)
        result = doctest.testmod(
            module,
            extraglobs={name: getattr(expr, name) for name in expr.__all__},
            optionflags=doctest.ELLIPSIS,
        )
        assert result.failed == 0, found.name
        attempted += result.attempted
    assert doctest.testmod(expr).failed == 0
    assert attempted >= 35
