"""What layouts with symbols print is read back: integer expressions as sympy writes them, and as Python does."""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter
from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from sympy import Eq, Mod, ceiling, floor

from tilelayout import LayoutError, R, S, SwizzledLayout, TileLayout, laneid

n, k, z = sympy.symbols("n k z", integer=True, positive=True)
SYMBOLS = {"n": n, "k": k, "z": z}


@st.composite
def quotients(draw: st.DrawFn, depth: int = 3) -> Any:
    """An integer expression in n, k and z with sums, products, quotients and remainders."""
    if depth == 0:
        return (
            draw(st.sampled_from((n, k, z)))
            if draw(st.booleans())
            else sympy.Integer(draw(st.integers(-9, 9)))
        )
    a, b = draw(quotients(depth - 1)), draw(quotients(depth - 1))
    by = draw(st.sampled_from((2, 3, 16, k, 4 * z, n + 2)))
    kind = draw(st.sampled_from("+-*/%^"))
    if kind == "^":
        return a ** draw(st.integers(0, 3))
    if kind in "/%":
        return floor(a / by) if kind == "/" else Mod(a, by, evaluate=not a.has(Mod))
    return a + b if kind == "+" else a - b if kind == "-" else a * b


@given(x=quotients())
def test_what_is_printed_is_read(x: Any) -> None:
    for spec in (S[(8, 4) : (x, 1)], S[4] + x, S[8] + R[2:x], S[8] - x):
        layout = TileLayout(spec)
        for value in (layout, layout.swizzle(3, 3, 3)):
            for text in (str(value), repr(value)):
                assert type(value).parse(text, SYMBOLS) == value, text


@pytest.mark.parametrize(
    "x",
    [
        n // 16 + 1, Mod(n, 4) + 1, 2 * Mod(n, 4) + 1, floor((3 * n + 1) / (4 * k)) + 2, ceiling(n / 4),
        floor(n / 2 + k / 3) + 1, floor(n / 4) * (k + 1) + floor(n / k**2) + 1, sympy.Max(n, k), sympy.Min(n, k),
        Mod(3 * n, 6, evaluate=False) + 1, sympy.Abs(n - k) + 1, 2**n, floor(n**k / 3) + 1, floor(2**n / 3) + 1,
    ],
    ids=str,
)  # fmt: skip
def test_named_expressions_are_read_as_extents_and_strides(x: Any) -> None:
    for spec in (S[x, 2], S[(x, 2) : (-x, 1)], S[4:2] + x @ laneid):
        assert TileLayout.parse(str(TileLayout(spec)), SYMBOLS) == TileLayout(spec)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("S[8//2, 7%4]", S[4, 3]),
        ("S[8] + -7//2", S[8] - 4),
        ("S[8] + -7%4", S[8] + 1),
        ("S[8] + 2*7//4*3", S[8] + 9),
        ("S[8] + n//16", S[8] + n // 16),
        ("S[8] + (n + 1)%4", S[8] + (n + 1) % 4),
        ("S[8] + floor(7/2)", S[8] + 3),
        ("S[8] + Mod(-7, 4)", S[8] + 1),
        ("S[8] + floor(n*3/(2*k)) @ laneid", S[8] + (3 * n // (2 * k)) @ laneid),
        ("S[(n + k)//1 + 1]", S[n + k + 1]),
        ("S[(n//2 + 1)*2 : 1]", S[(n // 2 + 1) * 2 : 1]),
    ],
)
def test_quotients_mean_what_python_makes_of_them(text: str, value: Any) -> None:
    assert TileLayout.parse(text, SYMBOLS) == TileLayout(value)


def test_a_layout_that_rests_on_conditions_is_read_with_them() -> None:
    rows = TileLayout(S[n]).group((n // 16, 16), assuming=Eq(Mod(n, 16), 0))[0]
    read = TileLayout.parse(str(rows), SYMBOLS, assuming=rows.conditions)
    assert read == rows
    assert read.conditions == rows.conditions
    swizzled = rows.swizzle(3, 3, 3)
    again = SwizzledLayout.parse(str(swizzled), SYMBOLS, assuming=swizzled.conditions)
    assert again == swizzled
    assert again.conditions == rows.conditions
    with pytest.raises(LayoutError, match="not known to be positive"):
        TileLayout.parse(str(rows), SYMBOLS)
    assert TileLayout.parse("S[n//16, 16]", SYMBOLS, assuming=Eq(n, 48)) == TileLayout(S[3, 16])
    with pytest.raises(LayoutError, match="plainly false"):
        TileLayout.parse("S[n]", SYMBOLS, assuming=False)


@pytest.mark.parametrize(
    ("text", "position", "word"),
    [
        ("S[8] + n//0", 8, "other than 0"),
        ("S[8] + n%(k - k)", 8, "other than 0"),
        ("S[8] + floor(n/0)", 14, "other than 0"),
        ("S[8] + Mod(n, 0)", 7, "other than 0"),
        ("S[8] + Mod(n)", 7, "2 arguments"),
        ("S[8] + floor(n, 2)", 7, "1 argument"),
        ("S[8] + n/2", 8, "the end of the text"),
        ("S[8] + floor(n/2", 16, "the text ends"),
        ("S[8] + floor(2**(1/2))", 14, "integer as exponent"),
        ("S[8] + floor(9**(9**9/1))", 14, "4096 bits"),
        ("S[8] + floor((3/2)**4000)", 18, "4096 bits"),
        ("S[8] + sqrt(n)", 7, "symbols="),
        ("S[8] + floor", 7, "symbols="),
        ("S[8] + " + "floor(" * 60 + "n" + "/2 + 1/3)" * 60, 127, "20 nested functions"),
    ],
)
def test_what_is_no_integer_expression_is_refused_where_it_stands(
    text: str, position: int, word: str
) -> None:
    started = perf_counter()
    with pytest.raises(LayoutError, match=word) as caught:
        TileLayout.parse(text, SYMBOLS)
    assert f"at position {position}:" in str(caught.value)
    assert perf_counter() - started < 5


def test_functions_belong_to_symbols() -> None:
    with pytest.raises(LayoutError, match=r"a symbol is passed in symbols=\), found 'floor'"):
        TileLayout.parse("S[floor(n/16), 16]")


@pytest.mark.parametrize("operator", ["//3 + n)*2", "%7)*2", "*2)**64"])
def test_nested_parentheses_stay_cheap(operator: str) -> None:
    started = perf_counter()
    with suppress(LayoutError):
        TileLayout.parse("S[8] + " + "(" * 60 + "2*n" + operator * 60, SYMBOLS)
    assert perf_counter() - started < 10


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda: S[n // 16, 16], "write the quotient as a symbol q with positive=True and n as 16\\*q"),
        (lambda: S[n - 1], "make the extent a symbol with positive=True"),
        (lambda: S[sympy.Symbol("j", integer=True)], "declare it with positive=True"),
        (lambda: S[sympy.Symbol("j", integer=True) + 2], "declare j with positive=True"),
        (lambda: TileLayout(S[n]).group((n // 16, 16)), r"pass assuming=floor\(n/16\) >= 1"),
    ],
)
def test_the_remedy_for_an_extent_can_be_followed(make: Any, remedy: str) -> None:
    with pytest.raises(LayoutError, match=f"remedy: .*{remedy}"):
        make()


def test_the_remedies_for_a_quotient_work() -> None:
    q = sympy.Symbol("q", integer=True, positive=True)
    assert TileLayout(S[q, 16]).size() == 16 * q
    assert TileLayout(S[n]).group((n // 16, 16), assuming=Eq(Mod(n, 16), 0))[0].shard[0].extent == n // 16
