"""Swizzled layouts: every operation's post-condition over the whole domain, and what is refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import sympy
from hypothesis import given
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
        first = swizzling.swizzled(
            layout.swizzle, reference.place(reference.displacement(layout.layout, flat))
        )
        assert reference.place(layout.apply(*coord, shape=shape)) == first
        assert reference.place({a: v[coord] for a, v in table.items()}) == first
        assert reference.place(layout.apply(flat)) == first


@given(swizzling.swizzled_layouts())
def test_array_coordinates(layout: SwizzledLayout) -> None:
    flat = np.arange(swizzling.size(layout))
    found = layout.apply(flat)
    assert all(v.tolist() == [layout.apply(int(i))[a] for i in flat] for a, v in found.items())
    for k, place in enumerate(layout.owners(flat)):
        assert all(np.ravel(v)[-1] == layout.owners(int(flat[-1]))[k][a] for a, v in place.items())


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
    layout = SwizzledLayout(S[(2**40, 3, 2**41 + 1) : (2**90, 5, 1)] + R[10**6 : -7], Swizzle(3, 4, 3))
    values = layout.span()
    assert values >= layout.layout.span() - 1024
    assert SwizzledLayout(S[2**40 + 1], Swizzle(3, 0, 3)).span() == 2**40 + 1
    assert SwizzledLayout(S[2**40 + 63] - 2**50, Swizzle(3, 0, 3)).span() == 2**40 + 64
    assert SwizzledLayout(S[2, 3], Swizzle(1, 0, -300)).span() == 2**300 + 6
    n = sympy.Symbol("n", integer=True, positive=True)
    assert sympy.expand(SwizzledLayout(S[n, 512], Swizzle(3, 3, 3)).span() - 512 * n) == 0
    with pytest.raises(LayoutError, match=r"span: .*symbolic"):
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
    return {
        dict(p).get("m", 0)
        for flat in range(swizzling.size(layout))
        for p in reference.owners(layout.layout, flat)
    }


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


def interleaved(
    outer: TileLayout,
    inner: list[frozenset],
    spans: dict[str, int],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
) -> list[frozenset]:
    """``f_outer(x) * span + f_inner(y)`` over the interleaved shape, given the owners of the inner layout."""
    out = []
    for coord in reference.coordinates([a * b for a, b in zip(*shapes, strict=True)]):
        x = [c // n for c, n in zip(coord, shapes[1], strict=True)]
        y = [c % n for c, n in zip(coord, shapes[1], strict=True)]
        places = set()
        for far in map(dict, reference.owners(outer, reference.flatten(x, shapes[0]))):
            for near in map(dict, inner[reference.flatten(y, shapes[1])]):
                places.add(reference.place({k: far.get(k, 0) * spans[k] + near.get(k, 0) for k in spans}))
        out.append(frozenset(places))
    return out


@given(tilings())
def test_tile(case: tuple) -> None:
    """Each copy is swizzled like the first; refused only where this swizzle would mix copies."""
    inner, outer, *shapes = case
    spans = {}
    for axis in ("m", "laneid", "warpid"):
        found = swizzling.values(inner, axis)
        spans[axis] = max(found) - min(found) + 1
    expected = interleaved(outer, swizzling.function(inner), spans, shapes)
    try:
        found = swizzling.function(inner.tile(outer, *shapes))
    except LayoutError:
        whole = interleaved(outer, swizzling.function(inner.layout), spans, shapes)
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


# --- units ------------------------------------------------------------------------------------------


def moved(places: frozenset, times: int, plus: int) -> frozenset:
    return frozenset(reference.place({**dict(p), "m": dict(p).get("m", 0) * times + plus}) for p in places)


@given(swizzling.swizzled_layouts(max_size=32), st.sampled_from([1, 2, 3, 4, 8]))
def test_unpack(layout: SwizzledLayout, n: int) -> None:
    try:
        found = layout.unpack(n)
    except LayoutError:
        assert n == 3
        assert any(v != swizzling.image(layout.swizzle, v) for v in preimages(layout))
        return
    assert swizzling.size(found) == n * swizzling.size(layout)
    for i, places in enumerate(swizzling.function(layout)):
        for j in range(n):
            assert swizzling.owners(found, i * n + j) == moved(places, n, j)
    again = found.pack(n)
    assert swizzling.function(again) == swizzling.function(layout)


@given(swizzling.swizzled_layouts(), st.sampled_from([2, 3, 4, 8]))
def test_pack(layout: SwizzledLayout, n: int) -> None:
    """Refused iff the tile layout can't be packed or the swizzle tears the packed elements apart."""
    function = swizzling.function(layout)
    whole = len(function) % n == 0 and all(
        places == moved(function[i // n * n], 1, i % n) for i, places in enumerate(function)
    )
    whole = whole and all(dict(p).get("m", 0) % n == 0 for places in function[::n] for p in places)
    try:
        found = layout.pack(n)
    except LayoutError:
        try:
            layout.layout.pack(n)
        except LayoutError:
            return
        assert not whole or n == 3
    else:
        assert whole
        assert [moved(places, n, 0) for places in swizzling.function(found)] == function[::n]


def test_pack_of_runs_that_only_the_swizzle_of_these_values_keeps() -> None:
    """Bit 0 is read where bit 3 is written, but all values have bit 3 where they have bit 4."""
    swizzle = Swizzle(1, 0, 3).compose(Swizzle(1, 0, 4))
    layout = SwizzledLayout(S[(2, 8) : (24, 1)], swizzle)
    assert swizzle.moved(-1) is None
    assert layout.pack(2) == SwizzledLayout(S[(2, 4) : (12, 1)], Swizzle(0, 0, 0))


@pytest.mark.parametrize(
    ("layout", "n", "packed"),
    [
        (TILE, 2, SwizzledLayout(S[8, 32], Swizzle(3, 2, 3))),
        (TILE, 8, SwizzledLayout(S[8, 8], Swizzle(3, 0, 3))),
        (SwizzledLayout(S[(8, 3) : (3, 1)], Swizzle(3, 5, 3)), 3, SwizzledLayout(S[8:1], Swizzle(0, 0, 0))),
        (SwizzledLayout(S[16:1], Swizzle(3, 4, 3)), 2, SwizzledLayout(S[8:1], Swizzle(3, 3, 3))),  # C22
        (TILE, 1, TILE),
    ],
)
def test_named_packings(layout: SwizzledLayout, n: int, packed: SwizzledLayout) -> None:
    assert layout.pack(n) == packed


def test_c22_with_a_size_that_is_known_at_run_time_only() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    assert SwizzledLayout(S[16 * n], Swizzle(3, 4, 3)).pack(2) == SwizzledLayout(S[8 * n], Swizzle(3, 3, 3))
    assert SwizzledLayout(S[(1, 1) : (0, 0)], Swizzle(3, 4, 3)).unpack(4).size() == 4
    assert SwizzledLayout(S[(2, 2, 2) : (0, 16, 0)], Swizzle(3, 4, 3)).unpack(4).layout.shard[-1] == (4, 1, m)


@pytest.mark.parametrize(
    ("operation", "layout", "n", "word"),
    [
        ("pack", TILE, 16, "tears runs of 16 elements apart"),
        ("pack", SwizzledLayout(S[8, 63], Swizzle(3, 3, 3)), 3, "num 3 is not a power of two"),
        ("unpack", TILE, 3, "num 3 is not a power of two.*unpack the layout before"),  # C23
        ("pack", SwizzledLayout(S[16:2], Swizzle(3, 4, 3)), 2, "not neighbors"),
        ("pack", SwizzledLayout(S[8, 64] + 1, Swizzle(3, 3, 3)), 2, "splits an element"),
        ("pack", TILE, 0, "at least 1"),
        ("unpack", TILE, True, "integer"),
        ("unpack", TILE, sympy.Symbol("w", integer=True, positive=True), "num w is not a power of two"),
    ],
)
def test_units_that_are_refused(operation: str, layout: SwizzledLayout, n: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word) as caught:
        getattr(layout, operation)(n)
    assert caught.value.operation == operation


@given(swizzling.swizzled_layouts())
def test_storage(layout: SwizzledLayout) -> None:
    found = layout.storage()
    assert found == SwizzledLayout(layout.layout.storage(), layout.swizzle)


# --- questions --------------------------------------------------------------------------------------


@st.composite
def pairs(draw: st.DrawFn) -> tuple[SwizzledLayout, TileLayout | SwizzledLayout]:
    """A layout, and one that is often the same function in another form."""
    layout = draw(swizzling.swizzled_layouts(max_size=32))
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return layout, draw(swizzling.swizzled_layouts(max_size=32))
    if kind == 1:
        return layout, layout.canonicalize()
    if kind == 2:
        return layout, SwizzledLayout(layout.layout, draw(swizzling.maps()))
    shard = list(layout.layout.shard)
    if kind == 3 and shard:
        k = draw(st.integers(0, len(shard) - 1))
        shard[k] = (shard[k].extent, shard[k].stride + draw(st.sampled_from([0, 1, 8, 512])), shard[k].axis)
    offset = dict(layout.layout.offset)
    if kind == 4:
        offset[m] = offset.get(m, 0) + draw(st.sampled_from([0, 1, 8, 512]))
    other = SwizzledLayout(TileLayout.from_iters(shard, layout.layout.replica, offset), layout.swizzle)
    return layout, other.group(draw(strategies.fitting_shapes([it[0] for it in shard])))[0]


@given(pairs(), st.data())
def test_equivalent(pair: tuple, data: st.DataObject) -> None:
    one, other = pair
    functions = [swizzling.function(x) for x in pair]
    answer = one.equivalent(other)
    assert bool(answer) == (functions[0] == functions[1]), answer
    if isinstance(other, SwizzledLayout):
        assert bool(other.equivalent(one)) == bool(answer)
    if answer:
        assert answer.witness is None
    else:
        k = answer.witness
        assert [f[k] if k < len(f) else None for f in functions[:1]] != [
            f[k] if k < len(f) else None for f in functions[1:]
        ]
        if len(functions[0]) == len(functions[1]):
            shape = data.draw(strategies.factorizations(len(functions[0])))
            coord = one.equivalent(other, shape).witness
            assert reference.flatten(coord, shape) == k


def test_equivalence_of_huge_layouts() -> None:
    """By arithmetic: extents to 2**40, and rank 40."""
    swizzle = Swizzle(3, 3, 3)
    one = SwizzledLayout(S[2**40, 2**40, 64], swizzle)
    assert one.equivalent(SwizzledLayout(S[2**70, 2**16], swizzle))
    assert (
        one.equivalent(SwizzledLayout(S[(2**40, 2**40, 64) : (2**46, 64, 1)], Swizzle(2, 3, 3))).witness
        == 256
    )
    assert one.equivalent(TileLayout(S[2**86])).witness == 64
    assert not one.equivalent(SwizzledLayout(S[2**40, 2**40, 65], swizzle))
    deep = TileLayout.from_iters([(2**10, 2 ** (10 * k), "m") for k in range(40)][::-1])
    assert SwizzledLayout(deep, swizzle).equivalent(SwizzledLayout(S[2**400], swizzle))
    far = SwizzledLayout(S[(2**40, 64) : (64, 1)] + 2**80, swizzle)
    assert far.equivalent(SwizzledLayout(S[2**46] + 2**80, swizzle))
    assert far.equivalent(SwizzledLayout(S[2**46], swizzle)).witness == 0


def test_what_is_left_undecided_is_not_guessed() -> None:
    even = SwizzledLayout(
        S[2**50 : 2], Swizzle(1, 0, -40)
    )  # nothing is read, but 41 bits are too many to see it
    assert even.equivalent(even)
    assert even.equivalent(TileLayout(S[2**50 : 3])).witness == 1
    for question in (lambda: even.equivalent(even.layout), even.is_surjective, even.span):
        with pytest.raises(Undecided):
            question()
    n = sympy.Symbol("n", integer=True, positive=True)
    with pytest.raises(LayoutError, match="symbolic"):
        SwizzledLayout(S[n, 64], Swizzle(3, 3, 3)).equivalent(TileLayout(S[n, 64]))
    assert SwizzledLayout(S[n, 64], Swizzle(3, 3, 3)).equivalent(SwizzledLayout(S[64 * n], Swizzle(3, 3, 3)))


def test_only_layouts_are_compared() -> None:
    for other in (None, S[8, 64], Swizzle(3, 3, 3), "S[8]"):
        with pytest.raises(LayoutError, match="equivalent: other must be a layout"):
            TILE.equivalent(other)


@given(swizzling.swizzled_layouts())
def test_injective(layout: SwizzledLayout) -> None:
    function = swizzling.function(layout)
    answer = layout.is_injective()
    shared = {
        place for k, places in enumerate(function) for other in function[:k] for place in places & other
    }
    assert bool(answer) == (not shared)
    if not answer:
        i, j = answer.witness
        assert i != j
        assert function[i] & function[j]


@given(swizzling.swizzled_layouts(max_size=32))
def test_surjective(layout: SwizzledLayout) -> None:
    held = {place for places in swizzling.function(layout) for place in places}
    axes = ("m", "laneid", "warpid")
    ends = {a: (min(vs := swizzling.values(layout, a)), max(vs)) for a in axes}
    room = 1
    for low, high in ends.values():
        room *= high - low + 1
    answer = layout.is_surjective()
    assert bool(answer) == (len(held) == room), answer
    assert bool(layout.is_bijective()) == (bool(answer) and bool(layout.is_injective()))
    if not answer:
        missing = reference.place(answer.witness)
        assert missing not in held
        assert all(low <= dict(missing).get(a, 0) <= high for a, (low, high) in ends.items())


def test_questions_about_huge_layouts() -> None:
    big = SwizzledLayout(S[2**40, 2**40], Swizzle(3, 3, 3))
    assert big.is_injective()
    assert big.is_surjective()
    assert big.is_bijective()
    assert SwizzledLayout(S[2**40 + 5], Swizzle(3, 0, 3)).is_surjective()
    assert SwizzledLayout(S[2**40 + 30], Swizzle(3, 0, 3)).is_surjective().witness[m] >= 2**40
    assert not SwizzledLayout(S[(2**40, 64) : (65, 1)], Swizzle(3, 3, 3)).is_surjective()
    assert SwizzledLayout(S[(2**40, 2) : (1, 1)], Swizzle(3, 3, 3)).is_injective().witness == (1, 2)


# --- cases of issue 3 -------------------------------------------------------------------------------


def ways(addresses: list[int], banks: int = 32) -> int:
    """How many different words the busiest bank delivers."""
    return max(len({a for a in addresses if a % banks == bank}) for bank in range(banks))


@pytest.mark.parametrize(
    ("stride", "swizzle", "expected"),
    [
        (32, Swizzle(0, 0, 0), 32), (64, Swizzle(0, 0, 0), 32), (16, Swizzle(0, 0, 0), 16), (33, Swizzle(0, 0, 0), 1),
        (32, Swizzle(5, 0, 5), 1), (32, Swizzle(3, 0, 5), 4), (32, Swizzle(2, 0, 5), 8),
    ],
)  # fmt: skip
def test_c28_a_column_of_floats(stride: int, swizzle: Swizzle, expected: int) -> None:
    column = SwizzledLayout(S[(32, 32) : (stride, 1)], swizzle).slice((32, 32), [(0, 32), (0, 1)])
    assert ways([column.apply(lane)["m"] for lane in range(32)]) == expected


@pytest.mark.parametrize(
    ("ld", "swizzle", "expected"),
    [
        (32, Swizzle(0, 0, 0), 4), (32, Swizzle(2, 3, 3), 1), (32, Swizzle(3, 3, 4), 2), (64, Swizzle(0, 0, 0), 8),
        (64, Swizzle(3, 3, 3), 1), (72, Swizzle(0, 0, 0), 1), (72, Swizzle(3, 3, 3), 8), (128, Swizzle(3, 3, 3), 2),
        (128, Swizzle(3, 3, 4), 1),
    ],
)  # fmt: skip
def test_c28_a_phase_of_ldmatrix(ld: int, swizzle: Swizzle, expected: int) -> None:
    """Eight rows of 16 bytes, halves: the words of each row, in pairs of halves."""
    rows = SwizzledLayout(S[(8, 8) : (ld, 1)], swizzle).pack(2)
    words = rows.table((8, 4))[m]
    assert ways(words.ravel().tolist()) == expected


def test_c25_halves() -> None:
    """Half S<1,3,3> o (8, 16):(16, 1) at (4, 0), in elements, and in bytes by unpacking."""
    halves = SwizzledLayout(S[(8, 16) : (16, 1)], Swizzle(1, 3, 3))
    assert halves.apply(4, 0, shape=(8, 16)) == {m: 72}
    assert halves.table((8, 16))[m][4, 0] == 72
    in_bytes = halves.unpack(2)
    assert in_bytes.swizzle == Swizzle(1, 4, 3)
    assert in_bytes.apply(4, 0, shape=(8, 32)) == {m: 144}
