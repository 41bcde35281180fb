"""Swizzled layouts: every operation's post-condition over the whole domain, and what is refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import sympy
from hypothesis import assume, given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference, swizzling
from tilelayout import (
    LayoutError,
    R,
    S,
    Swizzle,
    SwizzledLayout,
    TileLayout,
    Undecided,
    XorMap,
    laneid,
    m,
    warpid,
)
from tilelayout.expr import Var, evaluate
from tilelayout.swizzle import smallest_on

TILE = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))


# --- the value --------------------------------------------------------------------------------------


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


# --- text -------------------------------------------------------------------------------------------


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
        ("SwizzledLayout(" + "," * 10_000, "expected a swizzle"),
    ],
)
def test_other_text_is_refused_with_its_position(text: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word):
        SwizzledLayout.parse(text)


# --- evaluation -------------------------------------------------------------------------------------


@given(swizzling.swizzled_layouts(), st.data())
def test_owners_table_and_apply(layout: SwizzledLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.factorizations(swizzling.size(layout)))
    function = swizzling.function(layout)
    assert layout.size() == len(function)
    table = layout.table(shape)
    for flat, coord in enumerate(reference.coordinates(shape)):
        assert {reference.place(place) for place in layout.owners(*coord, shape=shape)} == function[flat]
        first = swizzling.swizzled(layout.swizzle, reference.place(reference.displacement(layout.layout, flat)))
        assert reference.place(layout.apply(*coord, shape=shape)) == first
        assert reference.place({a: v[coord] for a, v in table.items()}) == first
        assert reference.place(layout.apply(flat)) == first


@given(swizzling.swizzled_layouts())
def test_array_coordinates(layout: SwizzledLayout) -> None:
    flat = np.arange(swizzling.size(layout))
    found = layout.apply(flat)
    assert all(v.tolist() == [layout.apply(int(i))[a] for i in flat] for a, v in found.items())
    for k, place in enumerate(layout.owners(flat)):
        assert all(int(v[-1]) == layout.owners(int(flat[-1]))[k][a] for a, v in place.items())


@given(swizzling.swizzled_layouts(max_size=48))
def test_symbolic_coordinates(layout: SwizzledLayout) -> None:
    size = swizzling.size(layout)
    x = Var("x", 0, size - 1)
    n = sympy.Symbol("n", integer=True, nonnegative=True)
    found, theirs = layout.apply(x), layout.apply(n)
    for flat in range(size):
        expected = layout.apply(flat)
        assert {a: evaluate(v, {"x": flat}) for a, v in found.items()} == expected
        assert {a: int(sympy.sympify(v).subs(n, flat)) for a, v in theirs.items()} == expected


def test_symbolic_coordinates_are_short() -> None:
    row, column = Var("row", 0, 7), Var("column", 0, 63)
    assert str(TILE.apply(row, column, shape=(8, 64))["m"]) == "64*row + (column ^ (8*row))"


@given(swizzling.swizzled_layouts(), st.sampled_from([m, laneid, warpid]))
def test_span_is_that_of_the_swizzled_values(layout: SwizzledLayout, axis: object) -> None:
    found = swizzling.values(layout, str(axis))
    assert layout.span(axis) == max(found) - min(found) + 1


def test_span_of_huge_layouts() -> None:
    layout = SwizzledLayout(S[(2**40, 3, 2**41 + 1) : (2**90, 5, 1)] + R[10**6:-7], Swizzle(3, 4, 3))
    values = layout.span()
    assert values >= layout.layout.span() - 1024
    assert SwizzledLayout(S[2**40 + 1], Swizzle(3, 0, 3)).span() == 2**40 + 1
    assert SwizzledLayout(S[2**40 + 63] - 2**50, Swizzle(3, 0, 3)).span() == 2**40 + 64
    assert SwizzledLayout(S[2, 3], Swizzle(1, 0, -300)).span() == 2**300 + 5 - 0
    n = sympy.Symbol("n", integer=True, positive=True)
    assert sympy.expand(SwizzledLayout(S[n, 512], Swizzle(3, 3, 3)).span() - 512 * n) == 0
    with pytest.raises(LayoutError, match="span: .*symbolic"):
        SwizzledLayout(S[n], Swizzle(3, 3, 3)).span()
    with pytest.raises(Undecided, match="span"):
        SwizzledLayout(S[2**40], Swizzle(1, 0, 30)).span()


# --- canonical form ---------------------------------------------------------------------------------


def is_plain(layout: SwizzledLayout) -> bool:
    """Whether any tile layout has these values; of layouts that have no replica on m."""
    axes = sorted({"m", *[it.axis.name for it in layout.layout.shard]})
    values = []
    for flat in range(swizzling.size(layout)):
        at = {str(a): v for a, v in reference.displacement(layout.layout, flat).items()}
        at["m"] = swizzling.image(layout.swizzle, at.get("m", 0))
        values.append(tuple(at.get(axis, 0) for axis in axes))
    return reference.greedy_is_layout(values)


@given(swizzling.swizzled_layouts())
def test_canonical_form(layout: SwizzledLayout) -> None:
    found = layout.canonicalize()
    assert swizzling.function(found) == swizzling.function(layout)
    again = found.canonicalize()
    assert again == found
    if not any(it.axis is m and it.extent > 1 and it.stride for it in layout.layout.replica):
        assert isinstance(found, TileLayout) == is_plain(layout)
    if isinstance(found, SwizzledLayout):
        assert found.layout == layout.layout.canonicalize()
        assert (found.swizzle.width, 0) <= (layout.swizzle.width, 0)
        check_no_smaller_swizzle(found)


def check_no_smaller_swizzle(layout: SwizzledLayout) -> None:
    places = {reference.place({"m": v}) for v in preimages(layout)}
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


def preimages(layout: SwizzledLayout) -> set[int]:
    return {dict(p).get("m", 0) for flat in range(swizzling.size(layout)) for p in reference.owners(layout.layout, flat)}


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
        assert not is_plain(layout)
    else:
        assert found == found.canonicalize()
        assert swizzling.function(found) == swizzling.function(layout)


def test_named_canonical_forms() -> None:
    assert SwizzledLayout(S[10:2], Swizzle(3, 4, 3)).canonicalize() == TileLayout(S[10:2])  # C26
    assert SwizzledLayout(S[4, 64], Swizzle(3, 3, 3)).canonicalize() == SwizzledLayout(S[256], Swizzle(2, 3, 3))
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
    assert SwizzledLayout(S[(n, 8) : (512, 1)], Swizzle(3, 3, 3)).canonicalize() == TileLayout(S[(n, 8) : (512, 1)])
    assert SwizzledLayout(S[n, 64], Swizzle(3, 3, 3)).canonicalize() == SwizzledLayout(S[64 * n], Swizzle(3, 3, 3))
    wide = SwizzledLayout(S[2**40], Swizzle(1, 0, 30))
    assert wide.canonicalize() == wide


def test_what_is_not_known_to_be_a_tile_layout() -> None:
    with pytest.raises(LayoutError, match="as_tile_layout: .*two digits of the index meet in one bit"):
        TILE.as_tile_layout()
    with pytest.raises(Undecided, match="as_tile_layout: the strides carry"):
        SwizzledLayout(S[3**9], Swizzle(3, 3, 3)).as_tile_layout()
    with pytest.raises(Undecided, match="replica"):
        SwizzledLayout(S[8, 64] + R[3:1], Swizzle(3, 3, 3)).as_tile_layout()
    n = sympy.Symbol("n", integer=True, positive=True)
    with pytest.raises(LayoutError, match="symbolic"):
        SwizzledLayout(S[n], Swizzle(3, 3, 3)).as_tile_layout()


# --- structure --------------------------------------------------------------------------------------


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
    except LayoutError as refusal:
        with pytest.raises(LayoutError) as caught:
            layout.slice(shape, region)
        assert str(caught.value) == str(refusal)
        return
    found = layout.slice(shape, region)
    assert found == SwizzledLayout(inner, layout.swizzle)
    assert swizzling.function(found) == [swizzling.owners(layout, flat) for flat in reference.box(shape, region)]


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
    tiles = SwizzledLayout(S[16, 512], Swizzle(3, 3, 3))
    start, rest = tiles.slice((16, 512), [(n, n + 1), (0, 512)]).split_offset() if False else (None, None)
    assert start is rest is None
    moved = SwizzledLayout(S[8, 64] + 512 * n, Swizzle(3, 3, 3))
    assert moved.split_offset() == (512 * n, TILE)
    with pytest.raises(LayoutError, match="split_offset: offset 8\\*n is not known"):
        SwizzledLayout(S[8, 64] + 8 * n, Swizzle(3, 3, 3)).split_offset()


@st.composite
def tilings(draw: st.DrawFn) -> tuple[SwizzledLayout, TileLayout, tuple[int, ...], tuple[int, ...]]:
    inner = draw(swizzling.swizzled_layouts(max_size=32))
    outer = draw(swizzling.inner_layouts(max_size=6, strides=(0, 1, 1, 2, 2, 4, -1, 3)))
    rank = draw(st.integers(1, 3))
    shapes = [
        draw(strategies.fitting_shapes([it.extent for it in x.shard], rank)) for x in (outer, inner.layout)
    ]
    return inner, outer, shapes[0], shapes[1]


def tiled(
    inner: SwizzledLayout, outer: TileLayout, outer_shape: tuple[int, ...], inner_shape: tuple[int, ...]
) -> list[frozenset]:
    """``f(x || y) = f_outer(x) * span + f_inner(y)`` by the definition."""
    axes = ("m", "laneid", "warpid")
    spans = {}
    for axis in axes:
        coordinates = swizzling.values(inner, axis)
        offset = 0 if axis == "m" else dict(inner.layout.offset).get(axis, 0)
        spans[axis] = max(coordinates) - min(coordinates) + 1
        assert offset is not None
    out = []
    whole = [a * b for a, b in zip(outer_shape, inner_shape, strict=True)]
    for coord in reference.coordinates(whole):
        x = [c // n for c, n in zip(coord, inner_shape, strict=True)]
        y = [c % n for c, n in zip(coord, inner_shape, strict=True)]
        places = set()
        for a in reference.owners(outer, reference.flatten(x, outer_shape)):
            for b in swizzling.owners(inner, reference.flatten(y, inner_shape)):
                far, near = dict(a), dict(b)
                places.add(
                    reference.place({k: far.get(k, 0) * spans[k] + near.get(k, 0) for k in axes})
                )
        out.append(frozenset(places))
    return out


@given(tilings())
def test_tile(case: tuple) -> None:
    """Each copy is swizzled like the first; refused only where one of our swizzles would mix copies."""
    inner, outer, outer_shape, inner_shape = case
    assume(swizzling.size(inner) * reference.size(outer) <= 128)
    expected = tiled(inner, outer, outer_shape, inner_shape)
    try:
        found = inner.tile(outer, outer_shape, inner_shape)
    except LayoutError as refusal:
        assert "not swizzled like the first" in refusal.rule
        assert swizzled_as_a_whole(inner, outer, outer_shape, inner_shape, inner.swizzle) != expected
    else:
        assert swizzling.function(found) == expected


def swizzled_as_a_whole(
    inner: SwizzledLayout, outer: TileLayout, outer_shape: tuple, inner_shape: tuple, swizzle: XorMap
) -> list[frozenset]:
    """What the swizzle makes of unswizzled copies that lie the swizzled span apart."""
    span = inner.span()
    plain = inner.layout.span()
    scaled = [(it.extent, it.stride * span if it.axis is m else it.stride, it.axis) for it in outer.shard]
    copies = [(it.extent, it.stride * span if it.axis is m else it.stride, it.axis) for it in outer.replica]
    moved = {a: v * span if a is m else v for a, v in outer.offset.items()}
    rest = SwizzledLayout(inner.layout, Swizzle(0, 0, 0))
    if plain == 1:
        whole = inner.layout.tile(TileLayout.from_iters(scaled, copies, moved), outer_shape, inner_shape)
        return swizzling.function(SwizzledLayout(whole, swizzle))
    # One place per copy on m: the layout's own span must not scale it.
    assert rest.layout == inner.layout
    out = []
    for places in tiled_by(inner.layout, TileLayout.from_iters(scaled, copies, moved), outer_shape, inner_shape):
        out.append(frozenset(swizzling.swizzled(swizzle, place) for place in places))
    return out


def tiled_by(inner: TileLayout, outer: TileLayout, outer_shape: tuple, inner_shape: tuple) -> list[set]:
    axes = ("m", "laneid", "warpid")
    out = []
    whole = [a * b for a, b in zip(outer_shape, inner_shape, strict=True)]
    for coord in reference.coordinates(whole):
        x = [c // n for c, n in zip(coord, inner_shape, strict=True)]
        y = [c % n for c, n in zip(coord, inner_shape, strict=True)]
        places = set()
        for a in reference.owners(outer, reference.flatten(x, outer_shape)):
            for b in reference.owners(inner, reference.flatten(y, inner_shape)):
                far, near = dict(a), dict(b)
                spans = {k: 1 if k == "m" else inner.span(k) for k in axes}
                places.add(reference.place({k: far.get(k, 0) * spans[k] + near.get(k, 0) for k in axes}))
        out.append(places)
    return out
