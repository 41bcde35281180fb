"""The page reads the notation as Python does: the same layouts, and the same refusals at the same positions."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from property_tests.explore.evaluator import Evaluator
from property_tests.explore.pages import anything
from tilelayout import LayoutError
from tilelayout.draw.places import as_layout
from tilelayout.explore.presets import parsed

ALPHABET = "SRTo[](),:@+-*/%.0123456789 " + string.ascii_letters + "_<>'\"\\/é\t"


def by_python(text: str) -> tuple[str, str]:
    try:
        return "is", str(as_layout(parsed(text), "page"))
    except LayoutError as error:
        return "refused", str(error)


def by_page(evaluator: Evaluator, text: str) -> tuple[str, str]:
    answer = evaluator.ask("text", text)
    return ("is", answer["is"]) if "is" in answer else ("refused", answer["refused"])


@st.composite
def mistyped(draw: st.DrawFn) -> str:
    """A layout's text with a few characters taken out, put in or changed."""
    text = str(draw(anything))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.text(ALPHABET, max_size=2)) + text[at + draw(st.integers(0, 1)) :]
    return text


@given(text=mistyped())
@example("S[(8, 4) : (4 @ lanid, 1)]")
@example("S[(8, 4) : (4 @ zzz, 1)]")
@example("S[(8, 4) : (4 @ wg, 1)]")
@example("S[(8, 4) : (4 @ Lan, 1)]")
@example("S[(8, 4) : (4, 1, 2)]")
@example("S[0:1]")
@example("S[4 @ laneid]")
@example("S[4 @ laneid : 2]")
@example("R[2:1]")
@example("S[4] + S[4]")
@example("-S[4]")
@example("S[4] - (3 + 5 @ warpid)")
@example("S[4] + (3 + 5) @ warpid")
@example("S[(2*3, 2**3):(2**4, -(1 + 1))]")
@example("S[2**9999]")
@example("S[0**2:1]")
@example("S[4:2 + 3 @ laneid]")
@example("4")
@example("")
@example("n*S[4]")
@example("S[7//2, 7%4:-7//2, -7%4]")
@example("S[4] + 7//(2 - 2)")
@example("S[4] + 7%0 @ laneid")
@example("S[(7)//2, 3]")
@example("S[(8)/2]")
@example("S[floor(n/16), 16]")
@example("S[n]")
@example("S[4] / 2")
@example("S[4] + 'x'")
@example("TileLayout(S[4]")
@example("Swizzle(3, 3, 1) o S[64]")
@example("Swizzle(3, 3, 3) S[64]")
@example("Sw<3,4,3> oS[64]")
@example("XorMap((1, 3, 2)) o S[64]")
@example("XorMap((1, 2, 4, 9)) o S[64]")
@example("XorMap((1, 3, 6)) o S[64]")
@example("XorMap((1, 3, 7)) o (S[64] + 5)")
@example("T.ComposeLayout(3, 2, 4, T.TileLayout(T.S[64:1]), swizzle_inner=False)")
@example("SwizzledLayout(S[(8, 64):(64, 1)] + 4, Swizzle(3, 3, 3))")
@example("S[" + "(" * 120 + "4" + ")" * 120 + "]")
@example("S[4] +   1 @ laneid + 1 @ laneid - 2 @ laneid + ²")
@example("S[(4, 2)" + " " * 90 + ":(2, )]")
def test_every_text_is_read_alike(evaluator: Evaluator, text: str) -> None:
    assert by_page(evaluator, text) == by_python(text)


@given(name=st.text("abdeilnprtwx_BFT", min_size=1, max_size=8))
@example("foo")
@example("lane")
@example("w")
@example("bxbxbx")
def test_the_nearest_axis_is_the_same(evaluator: Evaluator, name: str) -> None:
    text = f"S[8 : 1 @ {name}]"
    assert by_page(evaluator, text) == by_python(text)


@given(text=st.text(ALPHABET, max_size=30))
def test_noise_is_refused_alike(evaluator: Evaluator, text: str) -> None:
    assert by_page(evaluator, text) == by_python(text)


@pytest.mark.parametrize(
    ("text", "position"), [("S[(8, 4) : (4 @ lanid, 1)]", 16), ("S[4", 3), ("S[4] + éx", 7), ("  S[4]]", 6)]
)
def test_the_position_is_told(evaluator: Evaluator, text: str, position: int) -> Any:
    answer = evaluator.ask("text", text)
    assert answer["position"] == position
    assert f"at position {position}:" in answer["refused"]
