"""What a swizzle counts: swizzled layouts packed and unpacked, and their memory part."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests.algebra import reference, swizzling
from tilelayout import LayoutError, S, Swizzle, SwizzledLayout, TileLayout, m

TILE = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))


def moved(places: frozenset, times: int, plus: int) -> frozenset:
    return frozenset(reference.place({**dict(p), "m": dict(p).get("m", 0) * times + plus}) for p in places)


@given(swizzling.swizzled_layouts(max_size=32), st.sampled_from([1, 2, 3, 4, 8]))
def test_unpack(layout: SwizzledLayout, n: int) -> None:
    try:
        found = layout.unpack(n)
    except LayoutError:
        assert n == 3
        assert any(v != swizzling.image(layout.swizzle, v) for v in swizzling.preimages(layout))
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


def test_c25_halves() -> None:
    """Half S<1,3,3> o (8, 16):(16, 1) at (4, 0), in elements, and in bytes by unpacking."""
    halves = SwizzledLayout(S[(8, 16) : (16, 1)], Swizzle(1, 3, 3))
    assert halves.apply(4, 0, shape=(8, 16)) == {m: 72}
    assert halves.table((8, 16))[m][4, 0] == 72
    in_bytes = halves.unpack(2)
    assert in_bytes.swizzle == Swizzle(1, 4, 3)
    assert in_bytes.apply(4, 0, shape=(8, 32)) == {m: 144}


# --- TileLayout.swizzle -----------------------------------------------------------------------------


@given(swizzling.inner_layouts(), swizzling.swizzles(), st.sampled_from([1, 4, 8, 16, 32]), st.data())
def test_a_layout_is_swizzled_in_any_unit(
    layout: TileLayout, f: Swizzle, unit: int, data: st.DataObject
) -> None:
    """Elements and units are runs of bits: the bits of an element move as the units do that they lie in."""
    element = data.draw(st.sampled_from([1, 4, 8, 16, 32]))
    assert layout.swizzle(f) == layout.swizzle(f.bits, f.base, f.shift) == SwizzledLayout(layout, f)
    try:
        found = layout.swizzle(f, unit_bits=unit, element_bits=element)
    except LayoutError:
        assert f.bits  # only what moves something can tear
        assert element > unit << f.base
        return
    assert found.layout == layout
    for flat, places in enumerate(swizzling.function(found)):
        expected = set()
        for place in map(dict, reference.owners(layout, flat)):
            run, rest = divmod(place.get("m", 0) * element, unit)
            there = swizzling.image(f, run) * unit + rest
            assert there % element == 0
            expected.add(reference.place({**place, "m": there // element}))
        assert places == expected


def test_c25_a_swizzle_of_bytes_on_words() -> None:
    """tf32 (32, 8):(1, 32) at (0, 1): the 128-byte swizzle of the PTX manual, or the same numbers in elements."""
    words = TileLayout(S[(32, 8) : (1, 32)])
    assert words.swizzle(3, 4, 3, unit_bits=8, element_bits=32).apply(0, 1) == {m: 36}
    assert words.swizzle(3, 4, 3, unit_bits=8, element_bits=32) == words.swizzle(Swizzle(3, 2, 3))
    assert words.swizzle(3, 4, 3).apply(0, 1) == {m: 32}
    assert TileLayout(S[256]).swizzle(1, 4, 3).apply(128) == {m: 144}


@pytest.mark.parametrize(
    ("arguments", "widths", "word"),
    [
        ((3,), {}, "takes a swizzle or its three parameters, got 3"),
        ((3, 3), {}, "takes a swizzle or its three parameters"),
        ((None,), {}, "takes a swizzle or its three parameters, got None"),
        ((Swizzle(3, 3, 3), 3, 3), {}, "has its parameters, and got base 3"),
        ((3, 3, 2), {}, "the shift must be at least 3"),
        ((3, 3.0, 3), {}, "integer"),
        ((3, 4, 3), {"unit_bits": 8}, "element_bits None.*give both, or none"),
        ((3, 4, 3), {"element_bits": 16}, "unit_bits None.*give both, or none"),
        (
            (3, 4, 3),
            {"unit_bits": 8, "element_bits": 6},
            "ratio of the widths 8 and 6 is not a power of two",
        ),  # C23
        ((3, 0, 3), {"unit_bits": 8, "element_bits": 16}, "tears units of 16 bits apart"),
        ((3, 4, 3), {"unit_bits": 0, "element_bits": 16}, "at least 1"),
    ],
)
def test_swizzles_that_are_refused(arguments: tuple, widths: dict, word: str) -> None:
    with pytest.raises(LayoutError, match=word):
        TileLayout(S[8, 64]).swizzle(*arguments, **widths)
