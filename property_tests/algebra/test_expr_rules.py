"""The rules of simplification, each by its result, and that they stay cheap."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests.algebra.expressions import (
    SUMS,
    VARIABLES,
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
    w,
    x,
    y,
)
from tilelayout.expr import Index, Var, bounds, evaluate, variables

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
