"""Swizzles as values: what they do to coordinates of every kind, the group they form, and their units."""

from __future__ import annotations

import copy
import itertools
import pickle
import time

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests.algebra import swizzling
from tilelayout import LayoutError, S, Swizzle, TileLayout, XorMap
from tilelayout.algebra import binary
from tilelayout.expr import Var, evaluate
from tilelayout.least_swizzle import smallest_map, smallest_on

COORDINATES = st.one_of(
    st.integers(0, 600), st.integers(-600, 0), st.sampled_from([2**31, 2**63 - 1, 2**63, -(2**63), 10**30])
)


# --- what a swizzle does ----------------------------------------------------------------------------


@given(swizzling.maps(), COORDINATES)
def test_the_image_is_the_one_of_the_formula(f: XorMap, x: int) -> None:
    assert f.apply(x) == f(x) == swizzling.image(f, x)


@given(swizzling.maps())
def test_it_permutes_its_blocks_and_is_linear(f: XorMap) -> None:
    block = 1 << f.width
    values = [f(x) for x in range(block)]
    assert sorted(values) == list(range(block))
    assert [f(x) for x in range(block, 2 * block)] == [v + block for v in values]
    assert [f(x) for x in range(-block, 0)] == [v - block for v in values]
    assert all(
        values[x ^ y] == values[x] ^ values[y]
        for x in {1 % block, 3 % block, block // 2}
        for y in range(block)
    )
    assert f.width == 0 or any(f(x) != x for x in range(block // 2, block)), "the width is the least"


@pytest.mark.parametrize(
    ("bits", "base", "shift", "x", "expected"),
    [
        (3, 4, 3, 32, 32),  # C25: tf32 (32, 8):(1, 32) at (0, 1), on elements
        (3, 2, 3, 32, 36),  # the PTX figure
        (1, 4, 3, 128, 144),  # bytes
        (1, 3, 3, 64, 72),  # halves (8, 16):(16, 1) at (4, 0)
        (3, 4, 3, 128, 144),  # bytes of that element of tf32
        (3, 0, 3, 99, 103),  # C26
        (1, 4, -3, 16, 144),
        (2, 0, 2, -1, -4),
        (0, 4, 3, 77, 77),
    ],
)
def test_named_values(bits: int, base: int, shift: int, x: int, expected: int) -> None:
    assert Swizzle(bits, base, shift)(x) == expected


def test_c25_in_bytes_and_in_elements() -> None:
    """S<3,4,3> on bytes is S<3,2,3> on elements of four bytes: 144 / 4 == 36."""
    on_bytes = Swizzle(3, 4, 3)
    assert on_bytes.in_units(8, 32) == Swizzle(3, 2, 3)
    assert on_bytes(32 * 4) // 4 == on_bytes.in_units(8, 32)(32) == 36
    assert Swizzle(1, 4, 3).in_units(8, 16) == Swizzle(1, 3, 3)


@given(swizzling.maps(), st.lists(COORDINATES, max_size=6))
def test_arrays(f: XorMap, coordinates: list[int]) -> None:
    expected = [f(x) for x in coordinates]
    assert f(np.array(coordinates, object)).tolist() == expected
    small = [x for x in coordinates if -(2**62) < x < 2**62]
    for given_array in (np.array(small, np.int64), np.array(small, np.int64).reshape(-1, 1)):
        found = f(given_array)
        assert found.dtype == np.int64
        assert found.shape == given_array.shape
        assert found.ravel().tolist() == [f(x) for x in small]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_arrays_of_every_integer_type(dtype: str) -> None:
    """The image of 127 doesn't fit int8."""
    f = Swizzle(3, 0, -7)
    values = np.arange(0, 128, dtype=dtype)
    assert f(values).tolist() == [f(x) for x in range(128)]
    assert f(values).dtype == np.int64


def test_arrays_at_the_ends_of_the_types() -> None:
    f = Swizzle(3, 3, 3)
    for x in (2**63 - 1, 2**63, 2**64 - 1):
        assert int(f(np.array([x], np.uint64))[0]) == f(x)
    assert int(f(np.array([-(2**63)]))[0]) == f(-(2**63))
    wide = Swizzle(1, 0, 70)
    assert wide(np.array([3, 0])).tolist() == [3, 0]
    assert Swizzle(1, 0, -70)(np.array([3, 0])).tolist() == [3 + 2**70, 0]
    assert f(np.array([], int)).shape == (0,)
    assert int(f(np.array(583))) == f(583)


def test_an_array_is_not_changed_nor_handed_back() -> None:
    for f in (Swizzle(3, 3, 3), Swizzle(0, 0, 0)):
        for dtype in (np.int64, object):
            values = np.arange(512).astype(dtype)
            f(values)[:] = 0
            assert values.tolist() == list(range(512))


@given(swizzling.maps(), st.data())
def test_expressions(f: XorMap, data: st.DataObject) -> None:
    i, j = Var("i", 0, 15), Var("j", -3, 40)
    x = data.draw(st.sampled_from([i, j, 8 * i + 3, 16 * j + i, i // 4 * 64 + i % 4, j * i, 64 * i + j % 8]))
    found = f(x)
    for a, b in itertools.product((0, 1, 5, 15), (-3, 0, 7, 40)):
        env = {"i": a, "j": b}
        assert evaluate(found, env) == f(evaluate(x, env))


def test_an_expression_is_short() -> None:
    row, column = Var("row", 0, 7), Var("column", 0, 63)
    assert Swizzle(3, 3, 3)(64 * row) == 72 * row
    assert Swizzle(3, 3, 3)(512 * row + 5) == 512 * row + 5
    assert str(Swizzle(3, 3, 3)(64 * row + column)) == "64*row + (column ^ (8*row))"


@given(swizzling.maps(), st.data())
def test_sympy(f: XorMap, data: st.DataObject) -> None:
    """sympy has no XOR: what comes back is arithmetic."""
    n = sympy.Symbol("n", integer=True, nonnegative=True)
    k = sympy.Symbol("k", integer=True)
    x = data.draw(st.sampled_from([n, k, 8 * n + 1, 2**12 * k, 64 * n + 3, sympy.Mod(n, 8)]))
    found = f(x)
    assert isinstance(found, sympy.Expr)
    for value in (0, 1, 6, 77, 600):
        assert int(found.subs({n: value, k: value - 40})) == f(int(x.subs({n: value, k: value - 40})))


def test_sympy_numbers_are_numbers() -> None:
    assert type(Swizzle(3, 3, 3)(sympy.Integer(64))) is int
    assert Swizzle(3, 3, 3)(np.int32(64)) == 72
    assert Swizzle(3, 3, 3)(np.uint8(64)) == 72
    n = sympy.Symbol("n", integer=True)
    assert Swizzle(3, 3, 3)(512 * n + 64) == 512 * n + 72


@pytest.mark.parametrize(
    "x", [1.0, True, "1", None, [1], np.float64(1), np.bool_(True), sympy.Rational(1, 2), sympy.Symbol("x")]
)
def test_what_is_no_integer_is_refused(x: object) -> None:
    for f in (Swizzle(3, 3, 3), XorMap((1, 3, 6)), Swizzle(0, 0, 0)):
        with pytest.raises(LayoutError, match=r"swizzle: .*coordinate"):
            f(x)


@pytest.mark.parametrize("values", [[1.0], [True, False], ["1"], [1, 2.5, "x"]])
def test_arrays_of_what_is_no_integer_are_refused(values: list) -> None:
    for array in (np.array(values), np.array(values, object)):
        with pytest.raises(LayoutError, match=r"swizzle: .*coordinate"):
            Swizzle(3, 3, 3)(array)


# --- the group --------------------------------------------------------------------------------------


@given(swizzling.maps(), swizzling.maps())
def test_composition(f: XorMap, g: XorMap) -> None:
    both = f.compose(g)
    for x in range(-4, 1 << max(f.width, g.width)):
        assert both(x) == f(g(x))
    assert isinstance(both, Swizzle) == is_a_swizzle(both)


def is_a_swizzle(f: XorMap) -> bool:
    """By trying every one of its width."""
    if f.width == 0:
        return True
    for bits in range(1, f.width // 2 + 1):
        for distance in range(bits, f.width - bits + 1):
            for shift in (distance, -distance):
                g = Swizzle(bits, f.width - bits - distance, shift)
                if all(swizzling.image(g, 1 << i) == swizzling.image(f, 1 << i) for i in range(f.width)):
                    return True
    return False


@given(swizzling.maps(), swizzling.maps(), swizzling.maps())
def test_laws_of_a_group(f: XorMap, g: XorMap, h: XorMap) -> None:
    identity = XorMap.identity()
    assert f.compose(g).compose(h) == f.compose(g.compose(h))
    assert f.compose(identity).equivalent(f)
    assert identity.compose(f).equivalent(f)
    assert f.compose(f.inverse()) == f.inverse().compose(f) == identity
    assert f.compose(g).inverse() == g.inverse().compose(f.inverse())
    assert f.inverse().inverse() == f


def test_all_maps_of_three_bits_are_a_group_of_168() -> None:
    found = [
        images
        for images in itertools.product(range(8), repeat=3)
        if not isinstance(binary.inverse(images), int)
    ]
    values = {XorMap(images) for images in found}
    assert len(found) == len(values) == 168
    assert all(f.compose(g) in values for f in values for g in values)
    assert {f.inverse() for f in values} == values
    swizzles = sorted(repr(f) for f in values if isinstance(f, Swizzle))
    assert len(swizzles) == 1 + 2 * 3  # the identity, and one bit onto another


@given(swizzling.swizzles(), swizzling.swizzles())
def test_equal_values_are_equal_functions(f: Swizzle, g: Swizzle) -> None:
    """But for the identities, which may be written in many ways."""
    assert f.equivalent(g) == (f.images == g.images)
    assert (f == g) == ((f.bits, f.base, f.shift) == (g.bits, g.base, g.shift))
    assert f.equivalent(g) == (f == g) or f.bits == g.bits == 0
    assert XorMap(f.images).equivalent(f)


def test_the_smallest_description_is_chosen() -> None:
    assert XorMap((1, 2, 4)) == XorMap(()) == Swizzle(0, 0, 0)
    assert XorMap((1, 2, 5)) == Swizzle(1, 0, 2)
    assert XorMap((5, 2, 4, 8)) == Swizzle(1, 0, -2)
    assert Swizzle(2, 3, 3).compose(Swizzle(1, 5, 3)) == Swizzle(3, 3, 3)
    assert Swizzle(3, 3, 3).compose(Swizzle(1, 4, 3)) == XorMap(
        Swizzle(3, 3, 3).compose(Swizzle(1, 4, 3)).images
    )
    assert type(XorMap((1, 3, 6))) is XorMap
    assert XorMap((2, 1)).images == (2, 1)


def test_compose_takes_swizzles_only() -> None:
    for x in (None, 3, TileLayout(S[8]), lambda x: x):
        with pytest.raises(LayoutError, match="compose: a swizzle is expected"):
            Swizzle(3, 3, 3).compose(x)
        with pytest.raises(LayoutError, match="equivalent: a swizzle is expected"):
            Swizzle(3, 3, 3).equivalent(x)


# --- values -----------------------------------------------------------------------------------------


@given(swizzling.maps())
def test_values_are_frozen_hashable_and_travel(f: XorMap) -> None:
    for again in (copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f)), eval(repr(f))):  # noqa: S307
        assert again == f
        assert hash(again) == hash(f)
        assert type(again) is type(f)
    assert len({f, copy.copy(f)}) == 1
    for name in ("bits", "base", "_images", "_mask", "new"):
        with pytest.raises(AttributeError):
            setattr(f, name, 1)
        with pytest.raises(AttributeError):
            delattr(f, name)


def test_a_swizzle_equals_nothing_else() -> None:
    assert Swizzle(3, 3, 3) != (3, 3, 3)
    assert Swizzle(3, 3, 3) != Swizzle(3, 3, -3)
    assert Swizzle(0, 3, 3) != Swizzle(0, 0, 0)
    assert XorMap((1, 3, 6)) != (1, 3, 6)


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ((-1, 0, 0), "bits must not be negative"),
        ((1, -1, 1), "base must not be negative"),
        ((3, 3, 2), "the shift must be at least 3"),
        ((3, 3, -2), "the shift must be at least 3"),
        ((1, 3, 0), "the shift must be at least 1"),
        ((1.0, 3, 3), "bits must be an integer"),
        ((1, True, 3), "base must be an integer"),
        ((1, 3, "3"), "shift must be an integer"),
        ((None, 3, 3), "bits must be an integer"),
        ((3, 3, 10**9), "beyond bit 1024"),
        ((sympy.Symbol("n", integer=True), 3, 3), "bits n is symbolic"),
    ],
)
def test_no_invalid_swizzle_is_born(parameters: tuple, word: str) -> None:
    with pytest.raises(LayoutError, match=word) as caught:
        Swizzle(*parameters)
    assert caught.value.operation == "Swizzle"


@pytest.mark.parametrize(
    ("images", "word"),
    [
        ((1, 1), "no bijection: 3 is taken to 0"),
        ((0,), "no bijection: 1 is taken to 0"),
        ((1, 3, 2), "no bijection: 7 is taken to 0"),
        ((1, 4), "image 1 must have the low 2 bits only, got 4"),
        ((1, -1), "image 1 must have"),
        ((1, 2.0), "image 1 must be an integer"),
        (5, "must be a sequence"),
        ({1, 2}, "must be a sequence"),
        ("12", "must be a sequence"),
        (range(5000), "beyond bit 1024"),
    ],
)
def test_no_map_that_is_no_bijection_is_born(images: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word) as caught:
        XorMap(images)
    assert caught.value.operation == "XorMap"


def test_numbers_of_other_libraries_are_numbers() -> None:
    assert Swizzle(np.int64(3), np.uint8(3), sympy.Integer(3)) == Swizzle(3, 3, 3)
    assert type(Swizzle(np.int64(3), 3, 3).bits) is int
    assert XorMap(np.array([1, 3])) == Swizzle(1, 0, 1)


# --- text -------------------------------------------------------------------------------------------


@given(swizzling.maps(), st.sampled_from(["", " ", "\n ", "\t"]))
def test_printed_text_is_read_back(f: XorMap, blank: str) -> None:
    assert XorMap.parse(str(f)) == XorMap.parse(repr(f)) == f
    spaced = "".join(blank + c + blank if c in "(),-" else c for c in str(f))
    assert XorMap.parse(spaced) == f


def test_cute_text_is_read() -> None:
    assert XorMap.parse("S<3,4,3>") == XorMap.parse("Sw<3, 4, 3>") == Swizzle(3, 4, 3)
    assert XorMap.parse("Sw<2,4,-3>") == Swizzle(2, 4, -3)


@pytest.mark.parametrize(
    "text",
    ["", "Swizzle", "Swizzle(3, 3)", "Swizzle(3, 3, 3", "Swizzle(3, 3, 3) o", "swizzle(3,3,3)", "Swizzle(3,3,3,3)",
     "XorMap((1, 3)", "XorMap(1, 3)", "XorMap((1 3))", "XorMap((,))", "XorMap((1,,3))", "Swizzle(open(), 1, 1)",
     "XorMap((" + "1" * 100_000, "Swizzle(3, 3, 99999999)", 5, None],
)  # fmt: skip
def test_other_text_is_refused(text: object) -> None:
    start = time.process_time()
    with pytest.raises(LayoutError, match="parse"):
        XorMap.parse(text)
    assert time.process_time() - start < 1


def test_text_of_an_invalid_swizzle_is_refused_as_the_value_is() -> None:
    with pytest.raises(LayoutError, match="at least 3"):
        XorMap.parse("Swizzle(3, 3, 1)")
    with pytest.raises(LayoutError, match="no bijection"):
        XorMap.parse("XorMap((1, 1))")


# --- units ------------------------------------------------------------------------------------------


@given(swizzling.maps(), st.sampled_from([1, 2, 4, 8, 16, 32, 64]), st.sampled_from([1, 2, 4, 8, 16, 32, 64]))
def test_units_scale_the_coordinate(f: XorMap, old: int, new: int) -> None:
    """``g(x * old / new) == f(x) * old / new``; refused where a wider unit would be torn apart."""
    times, per = max(old // new, 1), max(new // old, 1)
    try:
        g = f.in_units(old, new)
    except LayoutError:
        low = range(per)
        whole = all(f(x) == x for x in low) and all(f(x * per) % per == 0 for x in range(1 << f.width))
        assert per > 1
        assert not whole
    else:
        for x in range(0, per << f.width, per):
            assert g(x // per * times) == f(x) // per * times
        for x in range(times << f.width):
            assert per > 1 or g(x) == f(x // times) * times + x % times
        assert g.in_units(new, old).equivalent(f)


@pytest.mark.parametrize(
    ("swizzle", "old", "new", "found"),
    [
        (Swizzle(3, 4, 3), 8, 16, Swizzle(3, 3, 3)),
        (Swizzle(3, 4, 3), 8, 1, Swizzle(3, 7, 3)),
        (Swizzle(3, 4, 3), 8, 128, Swizzle(3, 0, 3)),
        (Swizzle(3, 4, 3), 12, 24, Swizzle(3, 3, 3)),
        (Swizzle(3, 4, -3), 8, 32, Swizzle(3, 2, -3)),
        (Swizzle(0, 4, 3), 8, 6, Swizzle(0, 0, 0)),  # the identity is one in all units
        (XorMap((1, 3, 6)), 16, 8, XorMap((1, 2, 6, 12))),
        (XorMap((1, 2, 6, 12)), 8, 16, XorMap((1, 3, 6))),
    ],
)
def test_named_units(swizzle: XorMap, old: int, new: int, found: XorMap) -> None:
    assert swizzle.in_units(old, new) == found


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (8, 6, "the ratio of the widths 8 and 6 is not a power of two"),  # C23
        (16, 24, "not a power of two"),
        (8, 256, "leaves 4 low bits alone, and 5 are needed.*at most 128 bits"),
        (0, 8, "from_bits must be at least 1"),
        (8, -8, "to_bits must be at least 1"),
        (8.0, 8, "from_bits must be an integer"),
        (8, sympy.Symbol("w", integer=True, positive=True), "widths 8 and w"),
    ],
)
def test_units_that_are_refused(old: object, new: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word) as caught:
        Swizzle(3, 4, 3).in_units(old, new)
    assert caught.value.operation == "in_units"


# --- the smallest map on some values ----------------------------------------------------------------


@given(swizzling.maps(), st.lists(st.integers(0, 600), max_size=8))
def test_the_smallest_map_does_the_same_on_the_span(f: XorMap, vectors: list[int]) -> None:
    span = binary.basis([v % (1 << f.width) for v in vectors], f.width)
    g = smallest_on(f, span)
    assert [g(v) for v in span] == [f(v) for v in span]
    if isinstance(f, Swizzle):
        assert isinstance(g, Swizzle)
        assert (g.width, g.bits) <= (f.width, f.bits) or f.bits == 0
    assert g.is_identity() == all(f(v) == v for v in span)
    assert smallest_map(span, [f(v) for v in span]).equivalent(g)


@given(swizzling.xor_maps(), swizzling.xor_maps(), st.lists(st.integers(0, 63), max_size=4))
def test_equal_functions_on_a_span_get_equal_maps(f: XorMap, g: XorMap, vectors: list[int]) -> None:
    span = binary.basis(vectors, 6)
    same = all(f(v) == g(v) for v in span)
    assert (smallest_map(span, [f(v) for v in span]) == smallest_map(span, [g(v) for v in span])) == same


def test_of_several_swizzles_the_narrowest_is_chosen() -> None:
    """Bits 6 and 1 are always equal: reading the nearer one makes a narrower map."""
    assert smallest_on(Swizzle(1, 0, 6), [64 + 2]) == Swizzle(1, 0, 1)
    assert smallest_on(Swizzle(3, 3, 3), [128, 16, 8]) == Swizzle(1, 4, 3)


@pytest.mark.parametrize("places", [None, "1", 2.5, True, [], sympy.Symbol("n", integer=True), 2**70, 1024])
def test_moved_takes_integers_and_stays_in_memory(places: object) -> None:
    for f in (Swizzle(3, 3, 3), XorMap((1, 3, 7))):
        with pytest.raises(LayoutError, match="moved: "):
            f.moved(places)
        assert f.moved(np.int64(1)) == f.moved(sympy.Integer(1)) == f.moved(1)
