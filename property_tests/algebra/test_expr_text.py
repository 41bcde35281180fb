"""Index expressions as text, in Python and in C, with a model of what C computes."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given

from property_tests.algebra.expressions import (
    EVERYTHING,
    SUMS,
    VARIABLES,
    Tree,
    build,
    calculate,
    lane,
    n,
    names_in,
    points,
    w,
    x,
    y,
)
from tilelayout.errors import LayoutError
from tilelayout.expr import Index, equal, render


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
