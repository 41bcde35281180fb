"""The notation, built with Python's operators, printed and parsed: every way gives the same layout."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilelayout
from property_tests import strategies
from tilelayout import Iter, R, S, TileLayout, laneid, m, warpid
from tilelayout.spec import parse

SCOPE = {name: getattr(tilelayout, name) for name in ("S", "R", "TileLayout", *map(str, tilelayout.axes()))}


@given(strategies.layouts())
def test_printed_text_is_read_back(layout: TileLayout) -> None:
    assert TileLayout.parse(str(layout)) == layout
    assert TileLayout.parse(repr(layout)) == layout


@given(strategies.layouts())
def test_printed_text_is_python(layout: TileLayout) -> None:
    """What a person copies from the output into a program means the same there."""
    assert eval(repr(layout), SCOPE) == layout  # noqa: S307 - the library itself never does this
    assert TileLayout(eval(str(layout), SCOPE)) == layout  # noqa: S307


def as_tvm_prints(layout: TileLayout) -> str:
    """TVM 0.27's form, written from what it printed (facts in property_tests/oracles)."""

    def term(value: int, axis: str) -> str:
        return str(value) if axis == "m" else f"{value} @ Axis.{axis}"

    def bracket(iters: tuple[Iter, ...]) -> str:
        extents = ", ".join(str(it.extent) for it in iters)
        strides = ", ".join(term(it.stride, it.axis.name) for it in iters)
        return f"{extents}:{strides}" if len(iters) == 1 else f"({extents}):({strides})"

    parts = [f"T.S[{bracket(layout.shard)}]"]
    if layout.replica:
        parts.append(f"T.R[{bracket(layout.replica)}]")
    offset = " + ".join(term(v, a.name) for a, v in sorted(layout.offset.items()))
    if offset:
        parts.append(f"({offset})" if len(layout.offset) > 1 else offset)
    return f"T.TileLayout({' + '.join(parts)})"


@given(strategies.layouts())
def test_the_form_that_tvm_prints_is_read(layout: TileLayout) -> None:
    if layout.shard:
        assert TileLayout.parse(as_tvm_prints(layout)) == layout


@given(strategies.layouts(), st.data())
def test_white_space_is_of_no_account(layout: TileLayout, data: st.DataObject) -> None:
    text = str(layout)
    blank = data.draw(st.sampled_from([" ", "\n", "\t", "  \r\n "]))
    for symbol in "[]():,@+":
        text = text.replace(symbol, blank + symbol + blank)
    assert TileLayout.parse(text) == layout
    assert TileLayout.parse("".join(str(layout).split())) == layout


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("S[8, 4]", S[8, 4]),
        ("S[(8, 4)]", S[8, 4]),
        ("S[8]", S[8:1]),
        ("S[(8,)]", S[8:1]),
        ("S[(8,):(2,)]", S[8:2]),
        ("S[8, 4 : 4 @ laneid, 1]", S[(8, 4) : (4 @ laneid, 1)]),
        ("S[()]", S[()]),
        ("S[():()]", S[()]),
        ("S[8:1 @ m]", S[8:1]),
        ("S[8:-1]", S[8:-1]),
        ("S[8:--1]", S[8:1]),
        ("S[2*4:2**3]", S[8:8]),
        ("S[8:-2**2]", S[8:-4]),
        ("S[8:2 + 3]", S[8:5]),
        ("S[(2 + 3)*2:1]", S[10:1]),
        ("S[8 : (1 + 2) @ laneid]", S[8 : 3 @ laneid]),
        ("S[8] + R[2, 2]", S[8] + R[2, 2]),
        ("R[2 : 4 @ warpid] + S[8]", S[8] + R[2 : 4 @ warpid]),
        ("S[8] + R[2:1] + R[3:2]", S[8] + R[(2, 3) : (1, 2)]),
        ("(S[8])", S[8]),
        ("TileLayout((S[8] + 1))", S[8] + 1),
        ("TileLayout(S[8])", S[8]),
        ("-5 + S[8]", S[8] - 5),
        ("S[8] + -5", S[8] - 5),
        ("S[8] - -5", S[8] + 5),
        ("S[8] - 5 @ laneid + 2", S[8] + (-5) @ laneid + 2),
        ("S[8] - (5 @ laneid + 2)", S[8] + (-5) @ laneid - 2),
        ("S[8] + 0 @ laneid", S[8]),
        ("S[8] + 5 - 5", S[8]),
        ("S[8] + 2*-3", S[8] - 6),
        ("1 @ laneid + (2 @ laneid + (S[8] + 64)) + 1", S[8] + 3 @ laneid + 65),
    ],
)
def test_named_texts(text: str, layout: object) -> None:
    assert TileLayout.parse(text) == TileLayout(layout)
    assert parse(text) == layout


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        (S[8, 4], "S[(8, 4):(4, 1)]"),
        (S[8 : 4 @ laneid], "S[8 : 4 @ laneid]"),
        (S[(8, 2, 4, 2) : (4 @ laneid, 1 @ warpid, 1 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid,
         "S[(8, 2, 4, 2) : (4 @ laneid, 1 @ warpid, 1 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid"),
        (S[8] - 5 - 2 @ warpid, "S[8:1] - 2 @ warpid - 5"),
        (S[8] + 64 + 2 @ warpid + 1 @ laneid, "S[8:1] + 1 @ laneid + 2 @ warpid + 64"),
        (S[()], "S[()]"),
    ],
)  # fmt: skip
def test_named_prints(layout: object, text: str) -> None:
    assert str(TileLayout(layout)) == text
    assert repr(TileLayout(layout)) == f"TileLayout({text})"


def test_the_operators_take_terms_in_any_order() -> None:
    expected = TileLayout(S[8 : 4 @ laneid] + R[2:16] + 3 @ laneid + 2 @ warpid + 64)
    for spec in (
        64 + S[8 : 4 @ laneid] + R[2:16] + 3 @ laneid + 2 @ warpid,
        R[2:16] + (3 @ laneid + 2 @ warpid + 64) + S[8 : 4 @ laneid],
        (1 @ laneid + 64) + S[8 : 4 @ laneid] + 2 @ laneid + R[2:16] + 2 @ warpid,
        S[8 : 4 @ laneid] + R[2:16] - (-(3 @ laneid)) - (-2 @ warpid - 64),
        np.int64(64) + S[8 : 4 @ laneid] + R[2:16] + np.int8(3) @ laneid + 2 @ warpid,
    ):
        assert TileLayout(spec) == expected


def test_row_major_is_what_a_bare_shape_says() -> None:
    assert TileLayout(S[2, 3, 4]) == TileLayout(S[(2, 3, 4) : (12, 4, 1)])
    assert TileLayout(S[[2, 3, 4]]) == TileLayout(S[2, 3, 4])
    assert TileLayout(S[2, 3, 4]).shard[0].axis is m


def test_a_spec_is_no_back_door_to_a_layout() -> None:
    spec = S[8] + 3
    layout = TileLayout(spec)
    spec.offset[m] = 99
    assert layout == TileLayout(S[8] + 3)


def test_symbols_print_and_read_back() -> None:
    import sympy

    n = sympy.Symbol("n", integer=True, positive=True)
    k = sympy.Symbol("k", integer=True)
    for spec in (
        S[n:1],
        S[(n, 4) : (4, 1)],
        S[(2 * n, n + 1) : (-k, n - k)],
        S[8 : (n + 1) @ laneid],
        S[8 : -(n**2)],
        S[(n**2 + 1) : 1] + R[n : (2 * k + 1) @ warpid] + (k - 1) @ laneid - n + 3,
        S[n, n, 2],
    ):
        layout = TileLayout(spec)
        assert TileLayout.parse(str(layout), {"n": n, "k": k}) == layout
        assert eval(repr(layout), {**SCOPE, "n": n, "k": k}) == layout  # noqa: S307


def test_symbols_may_stand_for_numbers() -> None:
    assert TileLayout.parse("S[n, 2*n]", {"n": 3}) == TileLayout(S[3, 6])
    assert TileLayout.parse("S[n:1]", {"n": np.int32(3)}) == TileLayout(S[3])
