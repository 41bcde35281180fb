"""Packing of narrow types: every value of every type there and back, the order of the bits, and what is refused."""

from __future__ import annotations

import doctest
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import narrow
from lowering.dtypes import DTYPES, dtype
from lowering.isa.numerics.formats import FORMATS, round_to_even
from lowering.narrow import contain, from_float, pack, uncontain, unpack
from tilelayout import LayoutError

SMALL = [t for t in DTYPES.values() if t.bits <= 8]
PACKED = [t for t in SMALL if t.bits != 6]
CONTAINED = ["float8_e4m3fn", "float8_e5m2", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"]
FLOATS = [t for t in DTYPES.values() if t.name in FORMATS and t.name != "float8_e8m0fnu"]
WORDS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


def every_value(kind) -> np.ndarray:
    """All values of a type, in the order of their codes."""
    count = 2 ** (7 if kind.name == "float8_ue4m3" else kind.bits)
    return np.arange(count, dtype=np.uint8).view(kind.numpy)


def same(x: np.ndarray, y: np.ndarray) -> bool:
    """Type, shape, values, signs of zeros."""
    a, b = x.astype(np.float64), y.astype(np.float64)
    return (
        x.dtype == y.dtype and np.array_equal(a, b, equal_nan=True) and (np.signbit(a) == np.signbit(b)).all()
    )


def test_the_examples_hold() -> None:
    failed, tried = doctest.testmod(narrow)
    assert failed == 0
    assert tried >= 7


# ------------------------------------------------------------------------------------------------- packing


def test_c60() -> None:
    assert hex(pack(np.full(4, -2, np.int8), "int8", word="uint32")[0]) == "0xfefefefe"
    assert hex(pack([1, -2, 3, -4, 5, -6, 7, -8], "int4", word="uint32")[0]) == "0x87a5c3e1"
    assert [hex(x) for x in pack([1, -2, 3, -4, 5, -6, 7, -8], "int4")] == ["0xe1", "0xc3", "0xa5", "0x87"]
    matrix = np.arange(12).reshape(3, 4) % 8
    memory = pack(matrix, "int4").tobytes()
    for r in range(3):  # row r starts at byte r * N / 2
        assert memory[r * 2] == matrix[r, 0] | matrix[r, 1] << 4
    with pytest.raises(
        LayoutError, match=r"extent 5 of axis -1 is no multiple of 2, the int4 elements of a uint8"
    ):
        pack(np.zeros((4, 5), int), "int4")
    assert pack(np.zeros((4, 5), int), "int4", axis=0).shape == (2, 5)


def test_an_int8_array_is_no_array_of_int4() -> None:
    memory = np.array([0x21, 0x43], np.int8)
    with pytest.raises(LayoutError, match=r"33\)? is no int4 \(remedy: from_float"):
        pack(memory, "int4")
    assert unpack(memory.view(np.uint8), "int4").tolist() == [1, 2, 3, 4]
    with pytest.raises(LayoutError, match="words are one of"):
        unpack(memory, "int4")
    assert pack(np.array([1, -8], np.int8), "int4").tolist() == [0x81]  # by value


@pytest.mark.parametrize("kind", PACKED, ids=lambda k: k.name)
@pytest.mark.parametrize("word", WORDS)
def test_every_value_comes_back(kind, word: str) -> None:
    values = every_value(kind)
    per = WORDS[word] // kind.bits
    values = np.concatenate([values, values[::-1]] * per)[: per * max(1, 2 * len(values) // per)]
    words = pack(values, kind.name, word=word)
    assert words.dtype == word
    assert words.shape == (len(values) // per,)
    assert same(unpack(words, kind.name), values)


@pytest.mark.parametrize("kind", PACKED, ids=lambda k: k.name)
@given(data=st.data())
def test_the_bits_of_element_i_begin_at_i_times_its_width(kind, data: st.DataObject) -> None:
    word = data.draw(st.sampled_from(sorted(WORDS)))
    per = WORDS[word] // kind.bits
    shape = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] *= per
    count = 2 ** (7 if kind.name == "float8_ue4m3" else kind.bits)
    codes = np.random.default_rng(data.draw(st.integers(0, 2**32))).integers(0, count, shape)
    words = pack(codes.astype(np.uint8).view(kind.numpy), kind.name, axis=axis, word=word)
    for place in np.ndindex(*shape):
        index = list(place)
        index[axis], within = divmod(place[axis], per)
        assert int(words[tuple(index)]) >> (kind.bits * within) & (2**kind.bits - 1) == codes[place]
    assert same(unpack(words, kind.name, axis=axis), codes.astype(np.uint8).view(kind.numpy))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "tfloat32", "int16", "int32", "float64"])
def test_wide_types_pack_too(name: str) -> None:
    kind = DTYPES[name]
    raw = np.random.default_rng(1).integers(0, 256, 64, dtype=np.uint8)
    values = np.nan_to_num(raw.view(kind.numpy).astype(np.float64), posinf=1, neginf=1)
    values = values.astype(kind.numpy)
    words = pack(values, name, word="uint64")
    assert words.tobytes() == values.tobytes()
    assert same(unpack(words, name), values)


def test_widths_that_do_not_divide_are_refused() -> None:
    with pytest.raises(LayoutError, match=r"6 bits of float6_e3m2fn don't divide a uint8 \(remedy: contain"):
        pack(np.zeros(4), "float6_e3m2fn")
    with pytest.raises(
        LayoutError, match=r"16 bits of float16 don't divide a uint8 \(remedy: take a wider word"
    ):
        pack(np.zeros(4), "float16")
    with pytest.raises(LayoutError, match="a word is one of"):
        pack(np.zeros(4), "int4", word="int32")  # pyright: ignore[reportArgumentType]
    with pytest.raises(LayoutError, match="axis 1 of an array of rank 1"):
        pack(np.zeros(4), "int4", axis=1)
    with pytest.raises(LayoutError, match="axis -1 of an array of rank 0"):
        unpack(np.uint8(3), "int4")
    with pytest.raises(LayoutError, match="unknown element type"):
        pack([1, 2], "int5")


NOT_OF_THE_TYPE = [
    ("int4", 8),
    ("uint4", -1),
    ("uint4", nan),
    ("uint1", 2),
    ("int8", 0.5),
    ("float4_e2m1fn", 2.5),
    ("float4_e2m1fn", inf),
    ("float6_e2m3fn", nan),
    ("float8_e5m2", 0.1),
    ("float8_e8m0fnu", -0.0),
]


def test_values_that_a_type_does_not_have_are_refused() -> None:
    for name, value in NOT_OF_THE_TYPE:
        with pytest.raises(LayoutError, match=f"is no {name}"):
            contain([value], name) if "float6" in name else pack([value] * 8, name)
    with pytest.raises(LayoutError, match="no sign"):
        pack([-1.0], "float8_ue4m3")
    with pytest.raises(LayoutError, match="no sign"):
        pack([-0.0], "float8_ue4m3")
    assert pack([True, False, False, True] * 2, "uint1").tolist() == [0b10011001]


# ---------------------------------------------------------------------------------------------- containers


@pytest.mark.parametrize("name", CONTAINED)
def test_every_value_comes_back_from_its_container(name: str) -> None:
    values = every_value(DTYPES[name])
    held = contain(values, name)
    shift, width = {"float4_e2m1fn": (2, 4)}.get(name, (0, DTYPES[name].bits))
    assert held.tolist() == [code << shift for code in range(2**width)]
    assert same(uncontain(held, name), values)
    around = np.uint8(0xFF ^ ((2**width - 1) << shift))
    assert same(uncontain(held | around, name), values)


def test_other_types_have_no_container() -> None:
    with pytest.raises(LayoutError, match="int4 has no byte container"):
        contain([1], "int4")
    with pytest.raises(LayoutError, match="a container is a uint8"):
        uncontain([1], "float4_e2m1fn")


# ------------------------------------------------------------------------------------------------ rounding


@pytest.mark.parametrize("kind", FLOATS, ids=lambda k: k.name)
@given(data=st.data())
def test_from_float_rounds_to_nearest_even_and_saturates(kind, data: st.DataObject) -> None:
    form = FORMATS[kind.name]
    least = form.smallest
    about = st.builds(lambda s, e: s * 2.0**e, st.integers(-(2**30), 2**30), st.integers(least - 45, least))
    x = data.draw(st.floats(allow_nan=False, allow_infinity=False, width=64) | about | st.floats(-8, 8))
    signed = kind.name != "float8_ue4m3"
    wanted = float(round_to_even(np.array(x), form))
    clamped = min(max(wanted, -form.largest if signed else 0.0), form.largest)
    assert float(from_float(x, kind.name, saturate=True)) == clamped
    if wanted == clamped:
        assert float(from_float(x, kind.name)) == wanted
    else:
        with pytest.raises(LayoutError, match=f"has no place in {kind.name}"):
            from_float(x, kind.name)


@pytest.mark.parametrize("kind", SMALL, ids=lambda k: k.name)
def test_from_float_keeps_every_value(kind) -> None:
    values = every_value(kind)
    assert same(from_float(values.astype(np.float64), kind.name), values)
    finite = values[np.isfinite(values.astype(np.float64))]
    assert same(from_float(finite.astype(np.float64), kind.name, saturate=True), finite)


MINIFLOATS = [k for k in SMALL if k in FLOATS]


@pytest.mark.parametrize("kind", MINIFLOATS, ids=lambda k: k.name)
def test_halfway_goes_to_the_even_code(kind) -> None:
    """Between neighbors of the type, by their codes and not by a formula."""
    values = every_value(kind).astype(np.float64)
    values = values[: len(values) // (1 if kind.name == "float8_ue4m3" else 2)]
    values = values[np.isfinite(values)]
    for code in range(len(values) - 1):
        middle = (values[code] + values[code + 1]) / 2
        even = values[code + code % 2]
        for sign in (1, -1) if kind.name != "float8_ue4m3" else (1,):
            assert float(from_float(sign * middle, kind.name)) == sign * even
            assert float(from_float(sign * np.nextafter(middle, 0), kind.name)) == sign * values[code]
            assert float(from_float(sign * np.nextafter(middle, inf), kind.name)) == sign * values[code + 1]


@pytest.mark.parametrize("name", ["int4", "uint4", "int8", "uint8", "uint1"])
@given(x=st.floats(-300, 300))
def test_integers_round_to_even_and_clamp(name: str, x: float) -> None:
    bits = DTYPES[name].bits
    low = 0 if name.startswith("u") else -(2 ** (bits - 1))
    high = low + 2**bits - 1
    assert int(from_float(x, name, saturate=True)) == min(max(round(x), low), high)
    if low <= round(x) <= high:
        assert int(from_float(x, name)) == round(x)
    else:
        with pytest.raises(LayoutError, match=f"has no place in {name}"):
            from_float(x, name)


def test_infinities_and_nan() -> None:
    assert np.isinf(float(from_float(inf, "float8_e5m2")))
    assert float(from_float(-inf, "float8_e5m2", saturate=True)) == -57344
    assert np.isnan(float(from_float(nan, "float8_e4m3fn", saturate=True)))
    assert from_float([inf, -inf], "float4_e2m1fn", saturate=True).tolist() == [6, -6]
    refused = [
        (inf, "float8_e4m3fn"),
        (nan, "float4_e2m1fn"),
        (nan, "int4"),
        (-inf, "int8"),
        (inf, "float6_e3m2fn"),
    ]
    for value, name in [*refused, (1e308, "float16"), (1.7976e308, "float16")]:
        with pytest.raises(LayoutError, match="has no place"):
            from_float(value, name)
    with pytest.raises(LayoutError, match="the type has no NaN"):
        from_float(nan, "float4_e2m1fn", saturate=True)


def test_scales_are_powers_of_two() -> None:
    assert from_float([0.25, 2.0**-127, 2.0**127], "float8_e8m0fnu").view(np.uint8).tolist() == [125, 0, 254]
    for value in (3.0, 0.0, -1.0, 2.0**-128, 2.0**128):
        with pytest.raises(LayoutError, match="choose a power of two"):
            from_float(value, "float8_e8m0fnu")
    assert from_float([-0.0, -1e-9], "float8_ue4m3").view(np.uint8).tolist() == [0, 0]
    with pytest.raises(LayoutError, match="has no place"):
        from_float(-1.0, "float8_ue4m3")


@pytest.mark.parametrize(
    ("written", "meant"),
    [(d.ptx, d.name) for d in DTYPES.values()] + [("F16", "float16"), ("float8_e4m3", "float8_e4m3fn")],
)
def test_ptx_names_and_beginnings_are_refused_with_the_type_they_mean(written: str, meant: str) -> None:
    with pytest.raises(
        LayoutError, match=f"unknown element type '{written}' .remedy: did you mean '{meant}'"
    ):
        dtype(written)
