"""What slice refuses is said in the terms of what was asked, not of what is left when whole digits are off."""

from __future__ import annotations

import random
import re
from math import prod

import pytest
import sympy

from tilelayout import LayoutError, S, Swizzle, SwizzledLayout, TileLayout, m

DIGITS = TileLayout(S[(4, 2, 8) : (100, 9, 1)])
ACROSS = TileLayout(S[(6, 4) : (100, 1)])


@pytest.mark.parametrize(
    ("layout", "shape", "region", "words"),
    [
        (DIGITS, (64,), [(24, 48)], "dimension 0: [24, 48) of 64 crosses a wrap of the iters (4, 2, 8)"),
        (DIGITS, (64,), [(4, 60)], "dimension 0: [4, 60) of 64 crosses a wrap of the iters (4, 2, 8)"),
        (DIGITS, (4, 16), [(0, 4), (6, 14)], "dimension 1: [6, 14) of 16 crosses a wrap of the iters (2, 8)"),
        (DIGITS, (16, 4), [(3, 9), (0, 4)], "dimension 0: [3, 9) of 16 crosses a wrap of the iters (4, 2, 2)"),
        (ACROSS, (8, 3), [(1, 4), (0, 3)],
         "the box [1, 4), [0, 3) of (8, 3): dimensions 0 to 1 read as one: [3, 12) of 24 crosses a wrap"),
        (ACROSS, (8, 3), [(1, 4), (0, 2)], "the box [1, 4), [0, 2) of (8, 3): dimensions 0 to 1 cut across the iters"),
        (ACROSS, (8, 3), [(1, 4, 2), (0, 2)],
         "the box [1, 4) by steps of 2, [0, 2) of (8, 3) carries in the iters (6, 4)"),
        (DIGITS, (4, 16), [(0, 4), (6, 14, 2)], "dimension 1: [6, 14) by steps of 2 of 16 carries in the iters (2, 8)"),
        (DIGITS, (64,), [(4, 60, 4)], "dimension 0: [4, 60) by steps of 4 of 64 carries in the iters (4, 2, 8)"),
    ],
)  # fmt: skip
def test_the_range_the_shape_and_the_iters(
    layout: TileLayout, shape: tuple, region: list, words: str
) -> None:
    for one in (layout, SwizzledLayout(layout, Swizzle(3, 3, 3))):
        with pytest.raises(LayoutError, match=re.escape(f"slice: {words}")):
            one.slice(shape, region)


@pytest.mark.parametrize("begin", [20, sympy.Symbol("k", integer=True, nonnegative=True)])
def test_what_depends_on_symbols(begin: object) -> None:
    k, n = sympy.Symbol("k", integer=True, nonnegative=True), sympy.Symbol("n", integer=True, positive=True)
    layout = TileLayout(S[(n + k + 4, 2, 8) : (100, 9, 1)])
    shape, asked = (16 * (n + k + 4),), re.escape(f"[{begin}, {begin + 24})")
    with pytest.raises(
        LayoutError, match=f"dimension 0: whether {asked} of .* crosses a wrap .* depends on symbols"
    ):
        layout.slice(shape, [(begin, begin + 24)])
    with pytest.raises(
        LayoutError, match=f"dimension 0: {asked} by steps of 3 .*: whether .* depends on symbols"
    ):
        layout.slice(shape, [(begin, begin + 24, 3)])


def test_random_ranges() -> None:
    rng = random.Random(5)
    said = []
    for _ in range(2000):
        extents = [rng.randint(2, 6) for _ in range(3)]
        layout = TileLayout.from_iters([(e, rng.choice((1, 7, 50, 333)), m) for e in extents])
        begin = rng.randrange(prod(extents))
        end = rng.randint(begin + 1, prod(extents))
        try:
            layout.slice((prod(extents),), [(begin, end)])
        except LayoutError as error:
            said.append((f"dimension 0: [{begin}, {end}) of {prod(extents)} ", str(error)))
    assert len(said) > 300
    assert [text for words, text in said if words not in text] == []
