"""`Lowered.run`: which arrays it takes, how it rounds them, what it gives back."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import Tile, gemm, lower
from lowering.backends.reference import as_operand
from lowering.fragments import D_FRAG
from tilelayout import LayoutError, S, TileLayout

from ..gemm_cases import one_warp
from .gemm_answers import answer, arrays_of

BF16 = np.dtype(ml_dtypes.bfloat16)


def lowered(dtype: str = "float16", beta: float = 0.0, in_place: bool = True) -> Any:
    return lower(one_warp((1, 1, 1, 16), dtype, beta, in_place=in_place), target="sm_80", scope="warp")


def operand(x: Any, dtype: str) -> Any:
    array = np.asarray(x)
    return as_operand(array, Tile("A", array.shape, dtype, TileLayout(S[array.shape])), "A")


# --- which arrays -------------------------------------------------------------------------------


def test_keywords_are_roles_and_c_is_only_for_beta_one() -> None:
    arrays = arrays_of(lowered().call, np.random.default_rng(0))
    a, b, c = (arrays[r] for r in "ABC")
    wanted = answer(lowered().call, arrays)
    np.testing.assert_array_equal(lowered().run(A=a, B=b), wanted)
    np.testing.assert_array_equal(lowered().run(A=a, B=b, C=c), wanted)
    np.testing.assert_array_equal(lowered(beta=1.0).run(A=a, B=b, C=c), wanted + c)
    np.testing.assert_array_equal(lowered(beta=1.0, in_place=False).run(A=a, B=b, C=c), wanted + c)
    assert lowered().run(a, b).dtype == np.float32


@pytest.mark.parametrize(("beta", "missing"), [(0.0, "A"), (0.0, "B"), (1.0, "A"), (1.0, "B"), (1.0, "C")])
@pytest.mark.parametrize("in_place", [True, False])
def test_an_operand_that_is_read_must_be_given(beta: float, missing: str, in_place: bool) -> None:
    x = lowered(beta=beta, in_place=in_place)
    arrays = {
        r: v for r, v in arrays_of(x.call, np.random.default_rng(0)).items() if r in "ABC" and r != missing
    }
    with pytest.raises(LayoutError, match=f"operand {missing} is read and was not given"):
        x.run(**arrays)


@pytest.mark.parametrize(
    ("a", "words"),
    [
        (np.zeros((16, 8), np.float16), r"A has shape \(16, 8\), tile A has \(16, 16\)"),
        (np.zeros((256,), np.float16), r"A has shape \(256,\)"),
        (np.zeros((1, 16, 16), np.float16), "A has shape"),
        (np.float16(0), r"A has shape \(\)"),
        (np.zeros((16, 16), np.int8), "A has dtype int8, tile A holds float16"),
        (np.zeros((16, 16), np.int64), "A has dtype int64"),
        (np.zeros((16, 16), np.uint16), "A has dtype uint16"),
        (np.zeros((16, 16), bool), "A has dtype bool"),
        (np.zeros((16, 16), BF16), "A has dtype bfloat16"),
        (np.zeros((16, 16), complex), "A has dtype complex128"),
        (np.zeros((16, 16), object), "A has dtype object"),
        (np.full((16, 16), "x"), "A has dtype <U1"),
    ],
    ids=lambda x: str(getattr(x, "dtype", ""))[:12] or None,
)
def test_arrays_that_do_not_fit_are_refused(a: Any, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        lowered().run(A=a, B=np.zeros((16, 8), np.float16))


@pytest.mark.parametrize("narrow", [np.float16, BF16])
def test_a_narrower_float_is_refused(narrow: Any) -> None:
    with pytest.raises(LayoutError, match="C has dtype"):
        lowered(beta=1.0).run(
            A=np.zeros((16, 16), np.float16), B=np.zeros((16, 8), np.float16), C=np.zeros((16, 8), narrow)
        )


def test_lists_views_and_foreign_byte_orders_are_arrays() -> None:
    x = lowered()
    arrays = arrays_of(x.call, np.random.default_rng(0))
    wanted = answer(x.call, arrays)
    b = arrays["B"]
    for a in (
        arrays["A"].astype(np.float64).tolist(),
        np.asfortranarray(arrays["A"]),
        np.repeat(arrays["A"], 2, axis=1)[:, ::2],
        arrays["A"].astype(">f2"),
        arrays["A"].astype(">f8"),
        arrays["A"].astype(np.float32),
    ):
        np.testing.assert_array_equal(x.run(A=a, B=b), wanted)


def test_inputs_stay_as_they_were_and_the_result_is_new() -> None:
    x = lowered(beta=1.0)
    arrays = {r: v for r, v in arrays_of(x.call, np.random.default_rng(0)).items() if r in "ABC"}
    copies = {r: v.copy() for r, v in arrays.items()}
    for array in arrays.values():
        array.setflags(write=False)
    first = x.run(**arrays)
    first[:] = 7
    second = x.run(**arrays)
    assert (second != 7).any()
    for role, array in arrays.items():
        np.testing.assert_array_equal(array, copies[role])


def test_bfloat16_goes_in_through_ml_dtypes() -> None:
    x = lowered("bfloat16")
    arrays = arrays_of(x.call, np.random.default_rng(0))
    assert arrays["A"].dtype == BF16
    np.testing.assert_array_equal(x.run(A=arrays["A"], B=arrays["B"]), answer(x.call, arrays))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_arrays_of_no_floats_are_told_the_type_and_how_bits_become_it(dtype: str) -> None:
    element = np.dtype(getattr(ml_dtypes, dtype))
    bits = np.zeros((4, 4), f"u{element.itemsize}")
    for array in (bits, bits.view(f"i{element.itemsize}"), bits.view(f"V{element.itemsize}")):
        with pytest.raises(
            LayoutError, match=rf"convert it to ml_dtypes\.{dtype} \(A\.view\(ml_dtypes\.{dtype}\)"
        ):
            operand(array, dtype)
        assert operand(array.view(element), dtype).dtype == element
    with pytest.raises(LayoutError, match=rf"convert it to ml_dtypes\.{dtype}, or pass a wider float array"):
        operand(np.zeros((4, 4), np.int64), dtype)


# --- rounding -----------------------------------------------------------------------------------

# Mantissa bits with the hidden one, smallest normal exponent, largest exponent.
FORMATS = {"float16": (11, -14, 15), "bfloat16": (8, -126, 127), "float32": (24, -126, 127)}


def nearest_even(x: float, dtype: str) -> float:
    """`x` rounded once, in rationals: to the nearest multiple of the unit in the last place, ties to even."""
    if x != x or x in (float("inf"), float("-inf")) or x == 0:
        return x
    digits, low, high = FORMATS[dtype]
    exact = Fraction(x)
    exponent = low
    while abs(exact) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - digits + 1)
    count = exact / unit
    whole = count.numerator // count.denominator
    rest = count - whole
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2)
    value = whole * unit
    limit = Fraction(2) ** (high + 1)
    if abs(value) >= limit:
        return float("inf") if value > 0 else float("-inf")
    return float(value) if value else (-0.0 if x < 0 else 0.0)


def check_rounding(values: list[float], source: Any, dtype: str) -> None:
    array = np.array(values, np.float64)
    with np.errstate(over="ignore"):
        array = array.astype(source)
    found = operand(array, dtype)
    assert found.dtype == Tile("x", (1,), dtype, TileLayout(S[1:0])).element.numpy
    for x, y in zip(array.astype(np.float64).tolist(), found.astype(np.float64).tolist(), strict=True):
        wanted = nearest_even(x, dtype)
        assert y == wanted or (y != y and wanted != wanted), (x, y, wanted)
        assert np.signbit(y) == np.signbit(wanted) or y != y


def double_rounding_witnesses() -> list[float]:
    """float64 values whose rounding to float32 first lands on a tie of bfloat16 and then goes the wrong way."""
    out = []
    for odd in (0, 1):
        base = 1.0 + odd * 2.0**-7
        tie = base + 2.0**-8
        out += [
            tie,
            np.nextafter(tie, 0),
            np.nextafter(tie, 2),
            tie + 2.0**-30,
            tie - 2.0**-30,
            tie + 2.0**-24,
            tie - 2.0**-24,
        ]
    scales = (1.0, 2.0**-126, 2.0**-130, 2.0**-133, 2.0**100, -1.0, -(2.0**-131), 2.0**127)
    return [float(x * scale) for x in out for scale in scales]


def test_the_witnesses_do_witness() -> None:
    through_float32 = [float(np.float32(x).astype(BF16)) for x in double_rounding_witnesses()]
    assert (
        sum(
            a != nearest_even(x, "bfloat16")
            for a, x in zip(through_float32, double_rounding_witnesses(), strict=True)
        )
        > 8
    )


@pytest.mark.parametrize("source", [np.float64, ">f8"])
def test_float64_is_rounded_once(source: Any) -> None:
    for dtype in FORMATS:
        check_rounding(double_rounding_witnesses(), source, dtype)


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_edges_of_the_range(dtype: str) -> None:
    digits, low, high = FORMATS[dtype]
    largest = (2.0 - 2.0 ** (1 - digits)) * 2.0**high
    half = 2.0 ** (high - digits)  # half a unit above the largest: the first that overflows
    tiny = 2.0 ** (low - digits + 1)
    values = [
        0.0, -0.0, largest, -largest, largest + half, float(np.nextafter(largest + half, 0)), 2 * largest,
        -1e300, 1e-300, tiny, tiny / 2, float(np.nextafter(tiny / 2, 1)), 1.5 * tiny, -tiny / 2, 0.75 * tiny, 2.0**low,
        float(np.nextafter(2.0**low, 0)), float("inf"), float("-inf"), float("nan"),
    ]  # fmt: skip
    check_rounding(values, np.float64, dtype)
    check_rounding(values, np.float32, "float16")
    check_rounding(values, np.float32, "bfloat16")


@given(st.lists(st.floats(width=64), min_size=1, max_size=20))
def test_any_float64_is_rounded_to_nearest_even(values: list[float]) -> None:
    for dtype in FORMATS:
        check_rounding(values, np.float64, dtype)


@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
def test_any_float32_is_rounded_to_nearest_even(values: list[float]) -> None:
    for dtype in ("float16", "bfloat16"):
        check_rounding(values, np.float32, dtype)


def test_the_result_of_a_gemm_on_wide_inputs() -> None:
    """0.1 is no bfloat16: the gemm computes with what the register holds."""
    x = lowered("bfloat16")
    found = x.run(A=np.full((16, 16), 0.1), B=np.ones((16, 8)))
    np.testing.assert_array_equal(found, np.full((16, 8), 16 * nearest_even(0.1, "bfloat16")))


def test_d_before_fills_the_rest_of_its_tile() -> None:
    call = one_warp((1, 1, 1, 16), "float16")
    d = Tile("D", (32, 8), "float32", D_FRAG.tile_to((32, 8), (16, 8)))
    x = lower(gemm(d[16:32], call.A, call.B, d[16:32]), target="sm_80", scope="warp")
    arrays = arrays_of(x.call, np.random.default_rng(0))
    wide = arrays["D"].astype(np.float64) + 2.0**-40
    np.testing.assert_array_equal(
        x.run(A=arrays["A"], B=arrays["B"], D=wide)[:16], wide[:16].astype(np.float32)
    )
    with pytest.raises(LayoutError, match="D has shape"):
        x.run(A=arrays["A"], B=arrays["B"], D=wide[:16])
