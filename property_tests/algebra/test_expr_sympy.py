"""Index expressions to sympy and back."""

from __future__ import annotations

import subprocess
import sys

import sympy
from hypothesis import given

from property_tests.algebra.expressions import (
    ARITHMETIC,
    Tree,
    build,
    calculate,
    n,
    names_in,
    points,
    t,
    trees,
    x,
)
from tilelayout.expr import Var, bounds, evaluate, from_sympy, to_sympy, variables


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
