"""Swizzled layouts as text: printed, read back, and what is refused with its position."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import given

from property_tests.algebra import swizzling
from tilelayout import LayoutError, R, S, Swizzle, SwizzledLayout, TileLayout, XorMap, laneid, warpid

TILE = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))


@given(swizzling.swizzled_layouts())
def test_printed_text_is_read_back(layout: SwizzledLayout) -> None:
    assert SwizzledLayout.parse(str(layout)) == layout
    assert SwizzledLayout.parse(repr(layout)) == layout
    assert SwizzledLayout.parse("".join(str(layout).split())) == layout
    scope = {x.__name__: x for x in (Swizzle, SwizzledLayout, XorMap)}
    scope |= {"S": S, "R": R, "laneid": laneid, "warpid": warpid}
    assert eval(repr(layout), scope) == layout  # noqa: S307 - what a person copies into a program


@given(swizzling.inner_layouts(), swizzling.swizzles())
def test_the_form_that_tvm_prints_is_read(layout: TileLayout, swizzle: Swizzle) -> None:
    parameters = f"{swizzle.base}, {swizzle.bits}, {abs(swizzle.shift)}"
    direction = "" if swizzle.shift >= 0 else ", swizzle_inner=False"
    text = f"T.ComposeLayout({parameters}, T.TileLayout({layout}){direction})"
    assert SwizzledLayout.parse(text) == SwizzledLayout(layout, swizzle)


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("Swizzle(3, 3, 3) o S[8, 64]", TILE),
        ("S<3,3,3> o S[8, 64]", TILE),
        ("Sw<3,3,3> o S[(8, 64):(64, 1)]", TILE),
        ("Swizzle(3,3,3)o(S[8,64])", TILE),
        ("Swizzle(3, 3, 3) o TileLayout(S[8, 64])", TILE),
        ("T.ComposeLayout(3, 3, 3, T.TileLayout(T.S[(8, 64):(64, 1)]))", TILE),
        ("ComposeLayout(3, 3, 3, TileLayout(S[8, 64]), True)", TILE),
        ("Swizzle(3, 3, 3) o (S[8, 64] + 4)", SwizzledLayout(S[8, 64] + 4, Swizzle(3, 3, 3))),
        ("Swizzle(3, 3, 3) o S[8, 64] + 4", SwizzledLayout(S[8, 64] + 4, Swizzle(3, 3, 3))),
        ("XorMap((1, 3, 6)) o S[8]", SwizzledLayout(S[8], XorMap((1, 3, 6)))),
    ],
)
def test_named_texts(text: str, layout: SwizzledLayout) -> None:
    assert SwizzledLayout.parse(text) == layout


def test_symbols_are_read() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    layout = SwizzledLayout(S[n, 64] + 64 * n, Swizzle(3, 3, 3))
    assert SwizzledLayout.parse(str(layout), {"n": n}) == layout
    assert SwizzledLayout.parse(repr(layout), {"n": n}) == layout


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("S[8, 64]", "expected a swizzle and a layout"),
        ("", "expected a swizzle and a layout"),
        ("Swizzle(3, 3, 3)", "expected a swizzle and a layout"),
        ("Swizzle(3, 3, 3) S[8]", "expected a swizzle and a layout"),
        ("Swizzle(3, 3, 3) o", "the text ends"),
        ("Swizzle(3, 3, 3) o S[8] junk", "at position 24"),
        ("Swizzle(3, 3, 3) o Swizzle(3, 3, 3) o S[8]", "at position 19"),
        ("SwizzledLayout(S[8] + 4 @ lanid, Swizzle(3, 3, 3))", "at position 26.*laneid"),
        ("SwizzledLayout(S[8])", "expected a swizzle and a layout"),
        ("SwizzledLayout(S[8], Swizzle(3, 3, 3)", "expected a swizzle and a layout"),
        ("T.ComposeLayout(3, 3, 2, T.TileLayout(T.S[8:1]))", "at least 3"),
        (5, "expected a swizzle and a layout, found 'int'"),
        ("S<٣,3,3> o S[8]", "expected a swizzle and a layout"),  # a digit to Python, but not of ours
        ("XorMap((٣, 1)) o S[8]", "expected a swizzle and a layout"),
        ("SwizzledLayout(" + "," * 10_000, "expected a swizzle"),
    ],
)
def test_other_text_is_refused_with_its_position(text: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word):
        SwizzledLayout.parse(text)
