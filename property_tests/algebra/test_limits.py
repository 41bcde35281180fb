"""Operands beyond what anybody writes: integers of thousands of digits, sequences of 300,000 entries."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import sympy

from tilelayout import Iter, LayoutError, S, Swizzle, TileLayout
from tilelayout.errors import shortened, shown
from tilelayout.parts import digits

HUGE = 10**5000
D = TileLayout(S[8, 4])


@pytest.mark.parametrize(
    "ask",
    [
        lambda: D.apply(HUGE), lambda: D.apply(-HUGE), lambda: D.apply(1, HUGE), lambda: D.apply(1, HUGE, shape=(8, 4)),
        lambda: D.apply(0, shape=(HUGE,)), lambda: D.owners(HUGE), lambda: D.table((HUGE,)), lambda: D.pack(HUGE),
        lambda: D.unpack(HUGE), lambda: D.slice((8, 4), [(0, HUGE), (0, 4)]), lambda: D.tile_to((HUGE, 4), (8, 4)),
        lambda: D.group((HUGE, 4)), lambda: D.permute_dims((0, HUGE)), lambda: D.elements({"m": HUGE}),
        lambda: D.logical_divide(HUGE), lambda: D.logical_product(HUGE), lambda: D.complement(HUGE),
        lambda: S[HUGE], lambda: S[8:HUGE], lambda: S[8] + HUGE, lambda: S[8, 10**3000, 10**3000],
        lambda: Iter(HUGE, 1),
        lambda: TileLayout.from_iters([(2, HUGE)]), lambda: TileLayout.from_iters([(2, 1)], offset={"m": HUGE}),
        lambda: D.swizzle(3, 3, HUGE), lambda: D.swizzle(3, 3, 3).apply(HUGE), lambda: D.apply(sympy.Integer(HUGE)),
        lambda: TileLayout(S[sympy.Symbol("n", integer=True, positive=True)]).subs({"n": HUGE}),
    ],
)  # fmt: skip
def test_integers_beyond_4000_digits_are_refused_where_they_come_in(ask: Any) -> None:
    with pytest.raises(LayoutError, match=r"has \d{5,} bits; integers of at most 4000 digits are taken"):
        ask()


def test_what_is_calculated_has_no_limit_and_is_printed_exactly() -> None:
    wide = TileLayout(S[(8, 4) : (-(10**3000), 1)]).unpack(10**3000)
    assert f"-1{'0' * 6000}, " in str(wide)
    assert len(str(TileLayout(S[10**3000, 10**3000]).canonicalize())) == 6006
    with pytest.raises(LayoutError, match="a number of 19932 bits"):
        TileLayout(S[10**3000, 10**3000]).group((7,))
    assert Swizzle(3, 3, 3)(HUGE) == HUGE ^ ((HUGE >> 6 & 7) << 3)
    with pytest.raises(LayoutError, match="thousands of digits"):
        D.explain("group", (HUGE, 4))
    for n in (0, -7, 10**4000, 10**4299 + 5, -(10**9001) + 1, 10**8000 + 3):
        text = digits(n)
        value = 0
        for k in range(len(text.lstrip("-")) // 4000 + 1):  # Python reads no more at once, either
            piece = text.lstrip("-")[k * 4000 : (k + 1) * 4000]
            value = value * 10 ** len(piece) + (int(piece) if piece else 0)
        assert value == abs(n)
        assert text.startswith("-") is (n < 0)


@pytest.mark.parametrize(
    "ask",
    [
        lambda big: D.permute_dims(big), lambda big: D.group([1] * len(big)), lambda big: D.apply(*big),
        lambda big: D.tile_to([1] * len(big), [1]), lambda big: TileLayout(S[big[1:] : [1]]),
    ],
)  # fmt: skip
def test_messages_stay_readable(ask: Any) -> None:
    with pytest.raises(LayoutError) as caught:
        ask(list(range(300_000)))
    assert len(str(caught.value)) < 10_000
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_middle_is_what_is_left_out() -> None:
    text = "a" * 3000 + "b" * 3000
    short = shortened(text)
    assert short.startswith("a" * 2000)
    assert short.endswith("b" * 2000)
    assert "2000 characters left out" in short
    assert shortened(short) == short
    assert shortened("short") == "short"
    assert shown(12) == "12"
    assert shown(-HUGE) == f"a number of {HUGE.bit_length()} bits"
