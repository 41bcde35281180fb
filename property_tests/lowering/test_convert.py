"""What arithmetic and conversions compute, against exact arithmetic and searches through all numbers of a type."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf, isinf, isnan, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lowering.dtypes import dtype
from lowering.isa.arithmetic import ADD, CANONICAL_NAN, FMA, MUL, constant, numbers
from lowering.isa.convert import FLOAT64_TO_INT32, INT32_TO_FLOAT64, PACK, UNPACK, packing, to_element
from lowering.isa.elements import to_numbers
from lowering.target import target
from tilelayout import LayoutError

FLOAT32 = st.floats(width=32, allow_nan=False)
SMALL_FLOATS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
SATURATING = ("float8_e4m3fn", "float8_e5m2")


def words(x: Any, kind: str = "f32") -> Any:
    """One lane's register, ``[1, 1, words]``."""
    return np.array([x], np.float64 if kind == "f64" else np.float32).view(np.uint32)[None, None]


def computed(record: Any, kind: str, *given: float) -> Any:
    names = [o.name for o in record.operands[1:]]
    found = record.meaning({n: words(x, kind) for n, x in zip(names, given, strict=True)})["d"]
    return numbers(found, kind)[0, 0, 0]  # type: ignore[arg-type]


@np.errstate(over="ignore")
def rounded(exact: Fraction, kind: Any) -> Any:
    """The nearest number of float32 or float64, ties to even, by comparing exact distances."""
    try:
        guess = kind(float(exact))
    except OverflowError:
        guess = kind(inf if exact > 0 else -inf)
    largest = np.finfo(kind).max
    around = [guess, np.nextafter(guess, kind(inf)), np.nextafter(guess, kind(-inf))]
    limit = Fraction(float(largest)) + Fraction(float(largest) - float(np.nextafter(largest, kind(0)))) / 2
    if abs(exact) >= limit:
        return kind(inf if exact > 0 else -inf)
    finite = [x for x in around if np.isfinite(x)]
    unit = np.uint32 if kind is np.float32 else np.uint64
    return min(finite, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(unit)) & 1))


def same(found: Any, wanted: Any) -> bool:
    return found == wanted and (np.signbit(found) == np.signbit(wanted) or wanted != 0)


# --- arithmetic ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "number"), [("f32", np.float32), ("f64", np.float64)])
@given(data=st.data())
def test_products_sums_and_fused_are_rounded_once(kind: str, number: Any, data: Any) -> None:
    finite = st.floats(width=32 if kind == "f32" else 64, allow_nan=False, allow_infinity=False)
    a, b, c = (number(data.draw(finite)) for _ in range(3))
    x, y, z = (Fraction(float(v)) for v in (a, b, c))
    for record, given_, exact in (
        (MUL[kind], (a, b), x * y),  # type: ignore[index]
        (ADD[kind], (a, b), x + y),  # type: ignore[index]
        (FMA[kind], (a, b, c), x * y + z),  # type: ignore[index]
    ):
        found = computed(record, kind, *given_)
        assert same(found, rounded(exact, number)) or exact == 0 == found, record.name


@given(st.integers(0, 2**24 - 1), st.integers(0, 2**24 - 1), st.integers(-60, 60), st.booleans())
def test_a_fused_sum_near_a_tie_is_not_rounded_twice(m: int, n: int, shift: int, negative: bool) -> None:
    a, b = np.float32(m), np.float32(n)
    c = np.float32((-1 if negative else 1) * 2.0**shift)
    exact = Fraction(m) * Fraction(n) + Fraction(float(c))
    found = computed(FMA["f32"], "f32", a, b, c)
    assert same(found, rounded(exact, np.float32)) or exact == 0 == found


@pytest.mark.parametrize("record", [MUL["f32"], ADD["f32"], FMA["f32"]], ids=lambda r: r.name)
def test_every_nan_of_f32_is_the_canonical_one(record: Any) -> None:
    for bits in (0x7F800001, 0xFFC00005, 0x7FFFFFFF):
        odd = np.array([[[bits]]], np.uint32)
        found = record.meaning({o.name: odd for o in record.operands[1:]})["d"]
        assert found.tolist() == [[[CANONICAL_NAN]]]
    assert np.isnan(computed(FMA["f32"], "f32", inf, 0.0, 1.0))
    assert computed(FMA["f32"], "f32", inf, 1.0, -5.0) == inf


@pytest.mark.parametrize(("kind", "bits"), [("f32", 0x7F800001), ("f64", 0x8000000000000003), ("b32", 7)])
def test_a_constant_is_its_bits_in_every_lane(kind: Any, bits: int) -> None:
    found = constant(kind, bits).meaning({"lanes": (2, 32)})["d"]
    assert found.shape == (2, 32, 2 if kind == "f64" else 1)
    assert (found == [bits >> 32 * i & 0xFFFFFFFF for i in range(found.shape[-1])]).all()


def test_a_constant_of_too_many_bits_is_refused() -> None:
    with pytest.raises(LayoutError, match="no register of 32 bits"):
        constant("b32", 1 << 32)


# --- rounding to small floats ---------------------------------------------------------------------


def finite_numbers(element: str) -> tuple[Any, Any]:
    """All finite numbers of a type, rising from zero, and their bits; positive ones."""
    bits = np.arange(1 << dtype(element).bits - 1, dtype=np.uint64)
    found = to_numbers(bits, element)
    good = np.isfinite(found)
    return found[good], bits[good]


def nearest(x: float, element: str) -> int:
    """The bits of the nearest number by search, ties to an even last bit."""
    found, bits = finite_numbers(element)
    sign = 1 << dtype(element).bits - 1 if np.signbit(x) else 0
    size = abs(x)
    largest, step = found[-1], found[-1] - found[-2]
    if size > largest:
        infinity = {"float16": 0x7C00, "bfloat16": 0x7F80}.get(element)
        beyond = infinity is not None and (isinf(size) or size >= largest + step / 2)
        return int(infinity if beyond else bits[-1]) | sign  # type: ignore[arg-type]
    at = int(np.searchsorted(found, size))
    around = [i for i in (at - 1, at) if 0 <= i < len(found)]
    best = min(around, key=lambda i: (abs(found[i] - size), int(bits[i]) & 1))
    return int(bits[best]) | sign


@np.errstate(over="ignore")
def hard_cases(element: str) -> Any:
    """What lies between neighbors, just below and above that, and beyond the largest."""
    found, _ = finite_numbers(element)
    step = max(1, len(found) // 3000)
    middle = ((found[:-1] + found[1:]) / 2)[::step].astype(np.float32)
    largest = np.float32(found[-1])
    beyond = np.array([largest, largest * 2, np.inf, found[-1] + (found[-1] - found[-2]) / 2], np.float32)
    base = np.concatenate([middle, beyond])
    every = [base, np.nextafter(base, np.float32(0)), np.nextafter(base, np.float32(np.inf))]
    return np.concatenate([*every, *[-x for x in every], found[::step].astype(np.float32)])


@pytest.mark.parametrize("element", SMALL_FLOATS)
def test_small_floats_are_the_nearest(element: str) -> None:
    cases = hard_cases(element)
    wanted = [nearest(float(x), element) for x in cases]
    assert to_element(cases, element).tolist() == wanted


@pytest.mark.parametrize("element", SMALL_FLOATS)
@given(x=FLOAT32)
@example(x=0.0).via("zero")
@example(x=-0.0).via("its other sign")
def test_any_number_becomes_the_nearest(element: str, x: float) -> None:
    assert int(to_element(np.float32(x), element)) == nearest(x, element)


NANS = {
    "float16": 0x7FFF,
    "bfloat16": 0x7FFF,
    "float8_e4m3fn": 0x7F,
    "float8_e5m2": 0x7F,
}


@pytest.mark.parametrize(("element", "bits"), [*NANS.items(), ("int8", 0), ("int32", 0)])
def test_what_becomes_of_a_nan(element: str, bits: int) -> None:
    assert int(to_element(np.float32(nan), element)) == bits
    assert int(to_element(np.float32(-nan), element)) == bits


@pytest.mark.parametrize(
    ("word", "bits"),
    [(0x7FC00000, 0x7FC00000), (0xFFFFFFFF, 0xFFFFE000), (0x7F803000, 0x7F802000), (0x7F800001, 0x7F800000),
     (0xFF801FFF, 0xFF800000), (0x7F800000, 0x7F800000)],
)  # fmt: skip
def test_tfloat32_keeps_the_upper_bits_of_what_is_not_finite(word: int, bits: int) -> None:
    assert int(to_element(np.uint32(word).view(np.float32), "tfloat32")) == bits


@given(FLOAT32)
@example(float(np.finfo(np.float32).max)).via("becomes infinite")
def test_tfloat32_ties_go_away_from_zero(x: float) -> None:
    found = to_numbers(to_element(np.float32(x), "tfloat32"), "tfloat32").item()
    if isinf(x):
        assert found == x
        return
    bits = int(np.float32(x).view(np.uint32)) & ~0x1FFF
    low = float(np.array(bits, np.uint32).view(np.float32))
    with np.errstate(over="ignore"):
        high_bits = np.array(bits + 0x2000, np.uint32).view(np.float32)
    span = abs(Fraction(low)) + Fraction(2) ** max(-126 - 10, int(np.frexp(low)[1]) - 1 - 10)
    away = abs(Fraction(x)) - abs(Fraction(low)) >= span - abs(Fraction(x))
    assert found == (float(high_bits) if away else low)


@pytest.mark.parametrize("element", ["int8", "uint8", "int32"])
@given(x=FLOAT32)
@example(x=0.5).via("half to even")
@example(x=127.5).via("rounds beyond")
@example(x=2147483648.0).via("just beyond int32")
def test_integers_are_rounded_to_even_and_clamped(element: str, x: float) -> None:
    bits = dtype(element).bits
    low, high = (0, 255) if element == "uint8" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    wanted = (high if x > 0 else low) if isinf(x) else min(max(round(Fraction(x)), low), high)
    assert int(to_element(np.float32(x), element)) == wanted % (1 << bits)


# --- registers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("element", [e for e in PACK if e != "float32"])
def test_packing_puts_the_first_number_in_the_low_bits(element: str) -> None:
    bits = dtype(element).bits
    for record in PACK[element]:
        names = [o.name for o in record.operands[1:]]
        given_ = [np.float32(i + 1) for i in range(len(names))]
        found = record.meaning({n: words(x) for n, x in zip(names, given_, strict=True)})["d"][0, 0]
        whole = sum(int(w) << 32 * i for i, w in enumerate(found))
        for i, x in enumerate(given_):
            assert whole >> bits * i & (1 << bits) - 1 == int(to_element(x, element))
        assert len(names) * bits in (32, 64)


@pytest.mark.parametrize(
    "element", [e for e in UNPACK if e not in ("float32", "float64", "int32", "tfloat32")]
)
def test_unpacking_gives_every_number_of_the_type(element: str) -> None:
    """Exhaustively: all bits that an element can have, in every place."""
    bits = dtype(element).bits
    codes = np.arange(1 << bits, dtype=np.uint32)
    per = 32 // bits
    for record in UNPACK[element]:
        for place in range(per):
            held = (codes << np.uint32(bits * place))[None, :, None]
            found = record.meaning({"a": held})
            for i in range(per):
                got = numbers(found[f"d{i}"], "f32")[0, :, 0].astype(np.float64)
                wanted = to_numbers(codes if i == place else codes * 0, element)
                np.testing.assert_array_equal(got, wanted)


@given(st.integers(-(2**31), 2**31 - 1))
def test_an_int32_as_float32_is_the_nearest_and_as_float64_itself(x: int) -> None:
    held = np.array([[[x % 2**32]]], np.uint32)
    (record,) = UNPACK["int32"]
    assert numbers(record.meaning({"a": held})["d0"], "f32").item() == rounded(Fraction(x), np.float32)
    assert numbers(INT32_TO_FLOAT64.meaning({"a": held})["d"], "f64").item() == x


@given(st.floats(-(2.0**33), 2.0**33) | st.floats(allow_nan=True))
@example(0.5).via("half to even")
@example(-1.5).via("half to even")
@example(2147483647.5).via("beyond the largest")
@example(-2147483648.5).via("half to even, the least")
def test_a_float64_becomes_the_nearest_int32(x: float) -> None:
    found = int(FLOAT64_TO_INT32.meaning({"a": words(x, "f64")})["d"].item())
    found -= (found >> 31) << 32
    if isnan(x):
        assert found == -(2**31)  # PTX ISA, cvt: of a NaN in .f64 the least integer
    elif isinf(x):
        assert found == (2**31 - 1 if x > 0 else -(2**31))
    else:
        assert found == min(max(round(Fraction(x)), -(2**31)), 2**31 - 1)


@given(st.floats(allow_nan=True))
def test_a_float64_becomes_the_nearest_float32(x: float) -> None:
    (record,) = UNPACK["float64"]
    found = numbers(record.meaning({"a": words(x, "f64")})["d0"], "f32").item()
    if isnan(x) or isinf(x):
        assert isnan(found) if isnan(x) else found == x
    else:
        wanted = rounded(Fraction(x), np.float32)
        assert found == wanted


def test_a_tfloat32_drops_its_low_bits() -> None:
    (record,) = UNPACK["tfloat32"]
    found = record.meaning({"a": np.array([[[0x3F801FFF]]], np.uint32)})["d0"]
    assert found.tolist() == [[[0x3F800000]]]


CHOSEN: list[tuple[Callable[..., Any], str, str, str]] = [
    (packing, "float16", "sm_75", "pack.float16.each"),
    (packing, "float16", "sm_80", "pack.float16"),
    (packing, "bfloat16", "sm_90a", "pack.bfloat16"),
]


@pytest.mark.parametrize(("choose", "element", "name", "record"), CHOSEN)
def test_the_best_that_the_target_has(choose: Any, element: str, name: str, record: str) -> None:
    assert choose(element, target(name)).name == record


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(LayoutError, match=r"pack.bfloat16 \(bfloat16\) needs sm_80 or newer"):
        packing("bfloat16", target("sm_75"))
    with pytest.raises(LayoutError, match="needs sm_89 or newer"):
        packing("float8_e4m3fn", target("sm_80"))
    with pytest.raises(LayoutError, match="nothing converts f32 and int4"):
        packing("int4", target("sm_90"))
