"""The simplest form of a swizzled layout: the smallest swizzle, or a tile layout where that is enough."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import given

from property_tests.algebra import reference, swizzling
from tilelayout import LayoutError, R, S, Swizzle, SwizzledLayout, TileLayout, Undecided, XorMap, laneid, m

TILE = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))


@given(swizzling.swizzled_layouts())
def test_canonical_form(layout: SwizzledLayout) -> None:
    found = layout.canonicalize()
    assert swizzling.function(found) == swizzling.function(layout)
    again = found.canonicalize()
    assert again == found
    if not any(it.axis is m and it.extent > 1 and it.stride for it in layout.layout.replica):
        assert isinstance(found, TileLayout) == swizzling.is_plain(layout)
    if isinstance(found, SwizzledLayout):
        assert found.layout == layout.layout.canonicalize()
        assert (found.swizzle.width, 0) <= (layout.swizzle.width, 0)
        check_no_smaller_swizzle(found)


def check_no_smaller_swizzle(layout: SwizzledLayout) -> None:
    places = {reference.place({"m": v}) for v in swizzling.preimages(layout)}
    values = [dict(p).get("m", 0) for p in places]
    f = layout.swizzle
    if not isinstance(f, Swizzle) or f.width > 8:
        return
    for width in range(2, f.width + 1):
        for bits in range(1, width // 2 + 1):
            for distance in range(bits, width - bits + 1):
                for shift in (distance, -distance):
                    if (width, bits) < (f.width, f.bits):
                        g = Swizzle(bits, width - bits - distance, shift)
                        assert any(g(v) != f(v) for v in values), (layout, g)


@given(swizzling.swizzled_layouts(max_size=32), swizzling.maps())
def test_equal_functions_on_one_inner_layout_have_equal_forms(layout: SwizzledLayout, f: XorMap) -> None:
    other = SwizzledLayout(layout.layout, f)
    equal = swizzling.function(layout) == swizzling.function(other)
    if not layout.layout.replica:
        assert (layout.canonicalize() == other.canonicalize()) == equal


@given(swizzling.swizzled_layouts(replicated=False))
def test_as_tile_layout(layout: SwizzledLayout) -> None:
    try:
        found = layout.as_tile_layout()
    except LayoutError:
        assert not swizzling.is_plain(layout)
    else:
        assert found == found.canonicalize()
        assert swizzling.function(found) == swizzling.function(layout)


def test_named_canonical_forms() -> None:
    assert SwizzledLayout(S[10:2], Swizzle(3, 4, 3)).canonicalize() == TileLayout(S[10:2])  # C26
    assert SwizzledLayout(S[4, 64], Swizzle(3, 3, 3)).canonicalize() == SwizzledLayout(
        S[256], Swizzle(2, 3, 3)
    )
    assert SwizzledLayout(S[8, 64], Swizzle(0, 4, 3)).canonicalize() == TileLayout(S[512])
    row = TILE.slice((8, 64), [(5, 6), (0, 64)]).canonicalize()
    assert row == TileLayout(S[(2, 2, 2, 8) : (-32, 16, -8, 1)] + 360)
    lanes = SwizzledLayout(S[(8, 64) : (1 @ laneid, 1)] + 64, Swizzle(3, 3, 3)).canonicalize()
    assert lanes == TileLayout(S[(8, 4, 2, 8) : (1 @ laneid, 16, -8, 1)] + 72)


def test_canonical_forms_of_huge_and_of_symbolic_layouts() -> None:
    assert SwizzledLayout(S[2**40, 3, 2**20], Swizzle(3, 3, 3)).canonicalize() == SwizzledLayout(
        S[3 * 2**60], Swizzle(3, 3, 3)
    )
    assert SwizzledLayout(S[(2**40, 8) : (512, 1)], Swizzle(3, 3, 3)).canonicalize() == TileLayout(
        S[(2**40, 8) : (512, 1)]
    )
    n = sympy.Symbol("n", integer=True, positive=True)
    assert SwizzledLayout(S[(n, 8) : (512, 1)], Swizzle(3, 3, 3)).canonicalize() == TileLayout(
        S[(n, 8) : (512, 1)]
    )
    assert SwizzledLayout(S[n, 64], Swizzle(3, 3, 3)).canonicalize() == SwizzledLayout(
        S[64 * n], Swizzle(3, 3, 3)
    )
    wide = SwizzledLayout(S[2**40], Swizzle(1, 0, 30))
    assert wide.canonicalize() == wide


def test_what_is_not_known_to_be_a_tile_layout() -> None:
    with pytest.raises(LayoutError, match=r"as_tile_layout: .*two digits of the index meet in one bit"):
        TILE.as_tile_layout()
    with pytest.raises(Undecided, match="as_tile_layout: the strides carry"):
        SwizzledLayout(S[3**9], Swizzle(3, 3, 3)).as_tile_layout()
    with pytest.raises(Undecided, match="replica"):
        SwizzledLayout(S[8, 64] + R[3:1], Swizzle(3, 3, 3)).as_tile_layout()
    n = sympy.Symbol("n", integer=True, positive=True)
    with pytest.raises(LayoutError, match="symbolic"):
        SwizzledLayout(S[n], Swizzle(3, 3, 3)).as_tile_layout()
