"""Expressions for the tests: strategies, their plain-Python values, and every point of a small domain."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

from tilelayout.expr import (
    Index,
    Var,
    bounds,
    evaluate,
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


def check_value(tree: Tree, x: Index) -> None:
    lo, hi = bounds(x)
    for env in points(names_in(tree)):
        value = calculate(tree, env)
        assert evaluate(x, env) == value, (x, env)
        assert lo is None or lo <= value, (x, env)
        assert hi is None or value <= hi, (x, env)
