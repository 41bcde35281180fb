"""Swizzled layouts as values: frozen, equal by structure, made of a layout and a swizzle alone."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given

from property_tests.algebra import swizzling
from tilelayout import (
    LayoutError,
    R,
    S,
    Swizzle,
    SwizzledLayout,
    TileLayout,
    XorMap,
)

TILE = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))


@given(swizzling.swizzled_layouts())
def test_values_are_frozen_hashable_and_travel(layout: SwizzledLayout) -> None:
    for again in (copy.copy(layout), copy.deepcopy(layout), pickle.loads(pickle.dumps(layout))):
        assert again == layout
        assert hash(again) == hash(layout)
    assert SwizzledLayout(layout.layout, layout.swizzle) == layout
    for name in ("layout", "swizzle", "_layout", "new"):
        with pytest.raises(AttributeError):
            setattr(layout, name, 1)
        with pytest.raises(AttributeError):
            delattr(layout, name)


def test_equality_compares_structure() -> None:
    assert SwizzledLayout(S[8, 64], Swizzle(3, 3, 3)) == TILE
    assert SwizzledLayout(S[512], Swizzle(3, 3, 3)) != TILE
    assert SwizzledLayout(S[8, 64], Swizzle(3, 3, 4)) != TILE
    assert TileLayout(S[8, 64]) != TILE
    assert TILE.layout != TILE
    assert len({TILE, SwizzledLayout(TileLayout(S[8, 64]), Swizzle(3, 3, 3))}) == 1


@given(swizzling.swizzled_layouts(max_size=32), swizzling.maps())
def test_a_swizzle_of_a_swizzled_layout_is_one_swizzle(layout: SwizzledLayout, f: XorMap) -> None:
    twice = SwizzledLayout(layout, f)
    assert twice.layout == layout.layout
    assert swizzling.function(twice) == [
        frozenset(swizzling.swizzled(f, place) for place in places) for places in swizzling.function(layout)
    ]


@pytest.mark.parametrize(
    ("operands", "word"),
    [
        ((S[8], 3), "the second operand is a swizzle, got int 3"),
        ((S[8], (3, 3, 3)), "the second operand is a swizzle"),
        ((Swizzle(3, 3, 3), S[8]), "the second operand is a swizzle"),
        ((3, Swizzle(3, 3, 3)), "takes the notation"),
        ((R[8], Swizzle(3, 3, 3)), "has no shard"),
    ],
)
def test_other_operands_are_refused(operands: tuple, word: str) -> None:
    with pytest.raises(LayoutError, match=word):
        SwizzledLayout(*operands)
