"""Swizzled layouts with symbolic sizes: what moves by whole blocks of the swizzle changes none of its bits."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from sympy import Eq, Mod

from property_tests.algebra import swizzling
from tilelayout import LayoutError, S, Swizzle, SwizzledLayout, TileLayout

n, k = sympy.symbols("n k", integer=True, positive=True)


@st.composite
def tiles(draw: st.DrawFn) -> SwizzledLayout:
    """Rows of a symbolic number that end a block of the swizzle, other iters on either side."""
    bits, base = draw(st.integers(1, 2)), draw(st.integers(0, 2))
    swizzle = Swizzle(bits, base, draw(st.sampled_from((1, -1))) * draw(st.integers(bits, bits + 1)))
    step = draw(st.sampled_from((1, 2, 4, 3, -1, -2))) * draw(st.sampled_from((1, 2)))
    count = (1 << swizzle.width) * draw(st.integers(1, 2)) * n
    iters = [(count, step), *draw(st.lists(st.tuples(st.integers(1, 4), st.integers(-3, 9)), max_size=2))]
    offset = draw(st.integers(0, 9)) + 1000
    return SwizzledLayout(
        TileLayout.from_iters([(e, s, "m") for e, s in iters], offset={"m": offset}), swizzle
    )


def answered(ask: Any) -> Any:
    try:
        return ask()
    except LayoutError:
        return None


@given(tiles(), st.integers(1, 3))
def test_answers_hold_for_each_number(tile: SwizzledLayout, number: int) -> None:
    plain = tile.subs({n: number})
    values = [dict(owner).get("m", 0) for owners in swizzling.function(plain) for owner in owners]
    low, high = min(values), max(values)
    span = answered(tile.span)
    if span is not None:
        assert sympy.Integer(0) + high - low + 1 == sympy.sympify(span).subs({n: number})
    onto = answered(tile.is_surjective)
    if onto is not None and onto:
        assert set(values) == set(range(low, high + 1))
    once = answered(tile.is_bijective)
    if once is not None and once:
        assert sorted(values) == list(range(low, high + 1))
    simple = answered(tile.canonicalize)
    if simple is not None:
        assert plain.equivalent(simple.subs({n: number}) if simple.size().free_symbols else simple)


def test_rows_in_whole_blocks() -> None:
    rows = TileLayout(S[n, 64]).group((n, 64), assuming=Eq(Mod(n, 8), 0))[0].swizzle(3, 3, 3)
    more = rows.tile_to((2 * n, 64), (n, 64))
    assert more == SwizzledLayout(S[(2, n, 1, 64) : (64 * n, 64, 0, 1)], Swizzle(3, 3, 3))
    assert more.conditions == rows.conditions
    assert more.subs({n: 16}).equivalent(rows.subs({n: 16}).tile_to((32, 64), (16, 64)))
    whole = TileLayout(S[8 * n, 64]).swizzle(3, 3, 3)
    assert whole.span() == 512 * n
    assert whole.is_bijective()
    assert whole.is_surjective()
    assert whole.equivalent(whole.canonicalize())
    with pytest.raises(LayoutError, match="symbolic"):
        TileLayout(S[n, 64]).swizzle(3, 3, 3).span()


def test_strides_of_whole_blocks_are_seen_with_conditions() -> None:
    apart = TileLayout(S[n:k]).swizzle(3, 3, 3)
    assert apart.canonicalize(assuming=Eq(Mod(k, 512), 0)) == TileLayout(S[n:k])
    assert TileLayout(S[n : 512 * k]).swizzle(3, 3, 3).canonicalize() == TileLayout(S[n : 512 * k])
    assert apart.equivalent(TileLayout(S[n:k]), assuming=Eq(Mod(k, 512), 0))
    assert TileLayout(S[n : 512 * k]).swizzle(3, 3, 3).equivalent(TileLayout(S[n : 512 * k]))
