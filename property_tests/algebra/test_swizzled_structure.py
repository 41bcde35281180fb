"""Swizzled layouts grouped, sliced, tiled and permuted: every operation's post-condition over the whole domain."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference, swizzling
from tilelayout import LayoutError, S, Swizzle, SwizzledLayout, TileLayout, m

TILE = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))


@given(swizzling.swizzled_layouts(), st.data())
def test_group(layout: SwizzledLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.fitting_shapes([it.extent for it in layout.layout.shard]))
    found, seps = layout.group(shape)
    assert swizzling.function(found) == swizzling.function(layout)
    assert (found.layout, seps) == layout.layout.group(shape)
    assert found.swizzle == layout.swizzle


@given(swizzling.swizzled_layouts(), st.data())
def test_slice(layout: SwizzledLayout, data: st.DataObject) -> None:
    """There is one with this swizzle iff the tile layout has one, since a swizzle is a bijection."""
    shape = data.draw(strategies.factorizations(swizzling.size(layout)))
    region = data.draw(strategies.regions(shape))
    try:
        inner = layout.layout.slice(shape, region)
    except LayoutError:
        with pytest.raises(LayoutError, match="slice"):
            layout.slice(shape, region)
        return
    found = layout.slice(shape, region)
    assert found == SwizzledLayout(inner, layout.swizzle)
    assert swizzling.function(found) == [
        swizzling.owners(layout, flat) for flat in reference.box(shape, region)
    ]


def test_c26_slices() -> None:
    """Of extents that are no powers of two, and the one that TVM gets right."""
    found = SwizzledLayout(S[(10, 2) : (2, 1)], Swizzle(3, 4, 3)).slice((10, 2), [(0, 10), (0, 1)])
    assert [found.apply(i)["m"] for i in range(10)] == list(range(0, 20, 2))
    assert found.canonicalize() == TileLayout(S[10:2])
    columns = TILE.slice((8, 64), [(0, 8), (4, 12)])
    assert columns == SwizzledLayout(S[(8, 8) : (64, 1)] + 4, Swizzle(3, 3, 3))
    assert (columns.table()[m] == TILE.table((8, 64))[m][:, 4:12]).all()
    assert SwizzledLayout(S[100], Swizzle(3, 0, 3)).span() == 104


@given(swizzling.swizzled_layouts())
def test_split_offset(layout: SwizzledLayout) -> None:
    start, rest = layout.split_offset()
    assert start % (1 << layout.swizzle.width) == 0
    assert 0 <= rest.layout.offset.get(m, 0) < 1 << layout.swizzle.width
    for whole, part in zip(swizzling.function(layout), swizzling.function(rest), strict=True):
        moved = [dict(place) for place in part]
        assert whole == {reference.place({**p, "m": p.get("m", 0) + start}) for p in moved}


def test_split_offset_of_symbols() -> None:
    n = sympy.Symbol("n", integer=True, nonnegative=True)
    moved = SwizzledLayout(S[8, 64] + 512 * n, Swizzle(3, 3, 3))
    assert moved.split_offset() == (512 * n, TILE)
    with pytest.raises(LayoutError, match="split_offset: offset 8\\*n is not known"):
        SwizzledLayout(S[8, 64] + 8 * n, Swizzle(3, 3, 3)).split_offset()


@st.composite
def tilings(draw: st.DrawFn) -> tuple[SwizzledLayout, TileLayout, tuple[int, ...], tuple[int, ...]]:
    inner = draw(swizzling.swizzled_layouts(max_size=32))
    outer = draw(swizzling.any_layouts(max_size=6, strides=(0, 1, 1, 2, 2, 4, -1, 3)))
    rank = draw(st.integers(1, 3))
    shapes = [
        draw(strategies.fitting_shapes([it.extent for it in x.shard], rank)) for x in (outer, inner.layout)
    ]
    return inner, outer, shapes[0], shapes[1]


@given(tilings())
def test_tile(case: tuple) -> None:
    """Each copy is swizzled like the first; refused only where this swizzle would mix copies."""
    inner, outer, *shapes = case
    spans = {}
    for axis in ("m", "laneid", "warpid"):
        found = swizzling.values(inner, axis)
        spans[axis] = max(found) - min(found) + 1
    expected = swizzling.interleaved(outer, swizzling.function(inner), spans, shapes)
    try:
        found = swizzling.function(inner.tile(outer, *shapes))
    except LayoutError:
        whole = swizzling.interleaved(outer, swizzling.function(inner.layout), spans, shapes)
        found = [frozenset(swizzling.swizzled(inner.swizzle, place) for place in places) for places in whole]
        assert found != expected
        plain = inner.canonicalize()
        if isinstance(plain, TileLayout):
            with pytest.raises(LayoutError):
                plain.group(shapes[1])
    else:
        assert found == expected


def test_tiles_that_lie_whole_periods_apart_keep_the_swizzle() -> None:
    found = TILE.tile_to((16, 128), (8, 64))
    assert found == SwizzledLayout(S[(2, 8, 2, 64) : (1024, 64, 512, 1)], Swizzle(3, 3, 3))
    n = sympy.Symbol("n", integer=True, positive=True)
    assert TILE.tile_to((8 * n, 64), (8, 64)).swizzle == Swizzle(3, 3, 3)
    huge = TILE.tile_to((2**43, 2**40), (8, 64))
    assert huge.apply(2**43 - 8, 9, shape=(2**43, 2**40))["m"] == (2**40 - 1) * 2**43 + 9


def test_half_a_tile_is_tiled_with_half_the_swizzle() -> None:
    """The rows 4 to 7 are a copy of 0 to 3: in the whole tile they would be swizzled by other numbers."""
    found = SwizzledLayout(S[4, 64], Swizzle(3, 3, 3)).tile_to((8, 64), (4, 64))
    assert found.swizzle == Swizzle(2, 3, 3)
    assert found.apply(4, 0, shape=(8, 64)) == {m: 256}
    assert TILE.apply(4, 0, shape=(8, 64)) == {m: 288}


@pytest.mark.parametrize(
    ("layout", "to", "current", "word"),
    [
        (
            SwizzledLayout(S[100], Swizzle(3, 0, 3)),
            (200,),
            (100,),
            "span 104 places.*lies 104 away.*repeats every 64",
        ),
        (
            SwizzledLayout(S[(8, 64) : (72, 1)], Swizzle(3, 3, 3)),
            (16, 64),
            (8, 64),
            "is not swizzled like the first",
        ),
        (TILE, (15, 64), (8, 64), "8 does not divide 15"),
        (TILE, (16,), (8, 64), "differ in rank"),
        (TILE, (16, 64), (8, 65), "tile_to"),
    ],
)
def test_tilings_that_are_refused(layout: SwizzledLayout, to: tuple, current: tuple, word: str) -> None:
    with pytest.raises(LayoutError, match=word) as caught:
        layout.tile_to(to, current)
    assert caught.value.operation == "tile_to"


def test_only_a_tile_layout_places_copies() -> None:
    for outer in (TILE, S[2], None):
        with pytest.raises(LayoutError, match="tile: outer must be a TileLayout"):
            TILE.tile(outer, (2, 1), (8, 64))


@given(swizzling.swizzled_layouts(), st.data())
def test_permutations(layout: SwizzledLayout, data: st.DataObject) -> None:
    rank = len(layout.layout.shard)
    perm = data.draw(st.permutations(range(rank)))
    found = layout.permute_dims(perm)
    assert found == SwizzledLayout(layout.layout.permute_dims(perm), layout.swizzle)
    extents = [it.extent for it in layout.layout.shard]
    for coord in reference.coordinates(extents):
        there = reference.flatten([coord[p] for p in perm], [extents[p] for p in perm])
        assert swizzling.owners(found, there) == swizzling.owners(layout, reference.flatten(coord, extents))
    assert layout.permute_by_groups(range(rank + 1), perm) == found


@given(
    swizzling.swizzled_layouts(max_size=32),
    strategies.layouts(max_size=16, among=(m,), strides=(1, 2, 3, 4, 8, 16), replicated=False, moved=False),
)
def test_compose(layout: SwizzledLayout, other: TileLayout) -> None:
    """Refused only where the tile layout refuses."""
    try:
        found = layout.compose(other)
    except LayoutError:
        with pytest.raises(LayoutError):
            layout.layout.compose(other)
        return
    function = swizzling.function(layout)
    reads = [dict(reference.displacement(other, flat)).get(m, 0) for flat in range(reference.size(other))]
    assert swizzling.function(found) == [function[i] for i in reads]


def test_conditions_are_handed_on() -> None:
    """What the tile layout needs assumed, the swizzled one does; what is made of it rests on the same."""
    n = sympy.Symbol("n", integer=True, positive=True)
    layout, enough = SwizzledLayout(S[n, 64], Swizzle(3, 3, 3)), n >= 16
    with pytest.raises(LayoutError, match="assuming"):
        layout.slice((n, 64), [(0, 16), (0, 64)])
    found = layout.slice((n, 64), [(0, 16), (0, 64)], assuming=enough)
    assert layout.conditions == ()
    assert found.conditions == (enough,)
    assert found == SwizzledLayout(S[16, 64], Swizzle(3, 3, 3))
    for made in (
        found.slice((16, 64), [(0, 8), (0, 64)]), found.group((16, 8, 8))[0], found.pack(2), found.unpack(2),
        found.permute_dims((1, 0)), found.canonicalize(), found.split_offset()[1], found.tile_to((32, 64), (16, 64)),
        found.slice((16, 64), [(5, 6), (0, 64)]).as_tile_layout(), found.compose(TileLayout(S[64])),
        found.layout.swizzle(found.swizzle), TILE.tile(found.layout.storage(), (16, 64), (8, 64)),
    ):  # fmt: skip
        assert made.conditions == (enough,), made
