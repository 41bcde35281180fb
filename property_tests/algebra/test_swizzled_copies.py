"""Copies under a swizzle: such as only trade places, and such as lie where the swizzle does not repeat."""

from __future__ import annotations

import pytest

from property_tests.algebra import swizzling
from tilelayout import LayoutError, R, S, Swizzle, SwizzledLayout, TileLayout

COPIES = SwizzledLayout(S[(6, 1) : (128, 256)] + R[(2, 2) : (8, 1)], Swizzle(1, 0, 8))
"""The swizzle XORs bit 0, and the copies have it both ways."""


def test_such_a_swizzle_is_dropped() -> None:
    assert swizzling.function(COPIES) == swizzling.function(COPIES.layout)
    assert COPIES.canonicalize() == COPIES.layout.canonicalize()
    one_way = SwizzledLayout(COPIES.layout, Swizzle(1, 1, 8))
    assert swizzling.function(one_way) != swizzling.function(COPIES.layout)
    assert isinstance(one_way.canonicalize(), SwizzledLayout)


def test_copies_of_such_a_layout_may_lie_anywhere() -> None:
    found = COPIES.tile_to((18, 1), (6, 1))
    plain = COPIES.layout.tile_to((18, 1), (6, 1))
    assert swizzling.function(found) == swizzling.function(plain)
    with pytest.raises(LayoutError, match="is not swizzled like the first"):
        SwizzledLayout(COPIES.layout, Swizzle(1, 1, 8)).tile_to((18, 1), (6, 1))


def test_such_a_layout_is_packed_like_the_tile_layout() -> None:
    layout = TileLayout(S[(7, 4) : (2**35, 1)] + R[2:-32] + 288)
    found = SwizzledLayout(layout, Swizzle(1, 0, -5)).pack(4)
    assert swizzling.function(found) == swizzling.function(layout.pack(4))
    with pytest.raises(LayoutError, match="tears runs of 4 elements apart"):
        SwizzledLayout(TileLayout(S[(7, 4) : (2**35, 1)] + R[2:-64]), Swizzle(1, 0, -5)).pack(4)


def test_copies_that_lie_anywhere_are_found_where_a_layout_before_the_swizzle_has_them() -> None:
    """0, 4, 72 and again from 73 on: 9 before the swizzle is 73 after it, and so on."""
    tile = SwizzledLayout(S[3:4], Swizzle(3, 3, -3))
    found = tile.tile_to((6,), (3,))
    assert found == SwizzledLayout(S[(2, 3) : (9, 4)], Swizzle(3, 3, -3))
    assert [found.apply(i)["m"] for i in range(6)] == [0, 4, 72, 73, 77, 145]
