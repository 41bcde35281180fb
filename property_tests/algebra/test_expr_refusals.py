"""What index expressions refuse, and in which words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import sympy

from property_tests.algebra.expressions import j, lane, n, t, x, y
from tilelayout.errors import LayoutError
from tilelayout.expr import Var, divide_exact, evaluate, from_sympy, render, substitute, to_sympy

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
    "a dialect": (lambda: render(x, "fortran"), "unknown dialect 'fortran'"),  # type: ignore[arg-type]
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
