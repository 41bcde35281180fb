"""What the ISA defines, integers and float64, and the block-scaled sums."""

from __future__ import annotations

import ctypes
import ctypes.util
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.dtypes import DTYPES
from lowering.isa.numerics import NUMERICS, accumulate, model
from lowering.isa.numerics.fused import fma
from tilelayout import LayoutError

from .scalar_sums import exponent, rounded, smallest_exponent, toward_zero
from .test_numerics_sums import decode

doubles = st.floats(width=64)
near = st.builds(lambda s, e: s * 2.0**e, st.integers(-(2**53), 2**53).map(float), st.integers(-60, 8))


def _same(x: float, y: float) -> bool:
    return np.float64(x).tobytes() == np.float64(y).tobytes() or (np.isnan(x) and np.isnan(y))


def _fused(x: float, y: float, z: float) -> float:
    """By fractions: the rounded exact value of finite numbers that do not cancel to zero."""
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return float(exact)
    except OverflowError:
        return inf if exact > 0 else -inf


@given(near, near, near)
def test_fma_rounds_the_exact_value_once(x: float, y: float, z: float) -> None:
    for c in (z, -x * y, float(np.nextafter(x * y, inf)), 2.0**53 * z):
        assert float(fma(x, y, c)) == _fused(x, y, c)


@given(doubles, doubles, doubles)
def test_fma_is_that_of_the_c_library(x: float, y: float, z: float) -> None:
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    library.fma.restype, library.fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    for c in (z, -z):
        assert _same(float(fma(x, y, c)), library.fma(x, y, c))


@pytest.mark.parametrize(
    ("x", "y", "z", "wanted"),
    [
        (2.0**-600, 2.0**-500, 0.0, 0.0),
        (-(2.0**-600), 2.0**-500, 0.0, -0.0),
        (-(2.0**-600), 2.0**-500, -0.0, -0.0),
        (2.0**-537, 2.0**-537, 2.0**-1074, 2.0**-1073),
        (2.0**-537, 2.0**-538, 0.0, 0.0),  # half of the smallest number: to even
        (2.0**-537, 2.0**-538, 2.0**-1074, 2.0**-1073),
        (2.0**600, 2.0**500, -inf, -inf),
        (2.0**600, 2.0**424, -(2.0**1023), 2.0**1023),
        (2.0**600, 2.0**424, 2.0**1023, inf),
        (2.0**512, 2.0**511, -(2.0**1023), 0.0),
        (-0.0, 1.0, -0.0, -0.0),
        (-0.0, 1.0, 0.0, 0.0),
        (-1.0, 1.0, 1.0, 0.0),
        # Just below, and just above, the middle of two float64, by less than a second float64 could tell.
        (1 - 2.0**-52, (1 + 2.0**-52) * 2.0**-53, 1 + 2.0**-52, 1 + 2.0**-52),
        (1 - 2.0**-52, (1 + 2.0**-52) * -(2.0**-53), 1 + 2.0**-51, 1 + 2.0**-51),
        (1 - 2.0**-52, (1 + 2.0**-52) * -(2.0**-53), 1 + 3 * 2.0**-52, 1 + 3 * 2.0**-52),
    ],
)
def test_fma_at_the_ends(x: float, y: float, z: float, wanted: float) -> None:
    assert _same(float(fma(x, y, z)), wanted)


def test_float64_is_a_chain_in_the_order_of_k() -> None:
    rng = np.random.default_rng(2)
    a, b, c = rng.normal(size=(2, 5, 16)), rng.normal(size=(2, 16, 4)), rng.normal(size=(2, 5, 4))
    found = accumulate(a, b, c, model("exact", "float64", "float64", "float64", 16))
    for name in NUMERICS:
        assert (accumulate(a, b, c, model(name, "float64", "float64", "float64", 16)) == found).all()
    for i, m, n in np.ndindex(2, 5, 4):
        total = float(c[i, m, n])
        for k in range(16):
            total = _fused(float(a[i, m, k]), float(b[i, k, n]), total)
        assert found[i, m, n] == total
    # The order is seen: 1 + 2**-53 twice, before or after a cancellation.
    row = np.array([[2.0**-53, 2.0**-53, -1.0, 0.0]])
    ones, four = np.ones((4, 1)), model("sm_80", "float64", "float64", "float64", 4)
    assert accumulate(row, ones, np.ones((1, 1)), four)[0, 0] == 0
    assert accumulate(row[:, ::-1], ones, np.ones((1, 1)), four)[0, 0] == 2.0**-52


INTEGER_PAIRS = [
    ("int8", "uint8"),
    ("uint8", "int8"),
    ("int4", "int4"),
    ("uint4", "int4"),
    ("uint1", "uint1"),
]


@pytest.mark.parametrize(("a_type", "b_type"), INTEGER_PAIRS)
@given(seed=st.integers(0, 2**32 - 1), offset=st.integers(-(2**31), 2**31 - 1))
def test_integers_wrap_or_clamp(a_type: str, b_type: str, seed: int, offset: int) -> None:
    rng = np.random.default_rng(seed)

    def draw(name: str, shape: tuple[int, int]) -> np.ndarray:
        bits = DTYPES[name].bits
        low = 0 if name.startswith("u") else -(2 ** (bits - 1))
        return rng.integers(low, low + 2**bits, shape)

    a, b, c = draw(a_type, (3, 32)), draw(b_type, (32, 2)), np.full((3, 2), offset)
    exact = [
        [int(offset) + sum(int(x) * int(y) for x, y in zip(a[m], b[:, n], strict=True)) for n in range(2)]
        for m in range(3)
    ]
    wrapped = [[(x + 2**31) % 2**32 - 2**31 for x in row] for row in exact]
    clamped = [[min(max(x, -(2**31)), 2**31 - 1) for x in row] for row in exact]
    assert accumulate(a, b, c, model("sm_90", a_type, b_type, "int32", 32)).tolist() == wrapped
    assert accumulate(a, b, c, model("exact", a_type, b_type, "int32", 32, saturate=True)).tolist() == clamped


def test_integers_at_the_ends() -> None:
    a, b = np.full((1, 32), -128), np.full((32, 1), -128)
    plain, clamp = (model("sm_80", "int8", "int8", "int32", 32, saturate=s) for s in (False, True))
    top = np.array([[2**31 - 1]])
    assert accumulate(a, b, top, plain)[0, 0] == 2**31 - 1 + 32 * 2**14 - 2**32
    assert accumulate(a, b, top, clamp)[0, 0] == 2**31 - 1
    with pytest.raises(LayoutError, match=r"A holds .*128.*, which no int8 is"):
        accumulate(-a, b, top, plain)
    with pytest.raises(LayoutError, match=r"B holds .*0\.5"):
        accumulate(a, b / 256, top, plain)
    with pytest.raises(LayoutError, match=r"C holds"):
        accumulate(a, b, top + 1, plain)


# --------------------------------------------------------------------------------------------- block scales


def _scaled_step(a, b, c, scales_a, scales_b, types, F: int, zero: int, group: int) -> float:
    """arXiv 2511.10909, ST-FDPA (group 1) and GST-FDPA, for finite numbers, on fractions."""
    least_a, least_b, least_s = (smallest_exponent(t) for t in types)
    terms = [(Fraction(c), zero if c == 0 else exponent(Fraction(c), -126))]
    for i in range(0, len(a), group):
        block = i // (len(a) // len(scales_a))
        left, right = Fraction(scales_a[block]), Fraction(scales_b[block])
        where = exponent(left, least_s) + exponent(right, least_s)
        pairs = [(Fraction(x), Fraction(y)) for x, y in zip(a[i : i + group], b[i : i + group], strict=True)]
        value = sum((x * y for x, y in pairs), Fraction(0)) * left * right
        if group == 1:
            where += exponent(pairs[0][0], least_a) + exponent(pairs[0][1], least_b)
        nothing = left * right == 0 or all(x * y == 0 for x, y in pairs)
        terms.append((value, zero if nothing else where))
    quantum = Fraction(2) ** (max(where for _, where in terms) - F)
    return rounded(sum((toward_zero(v, quantum) for v, _ in terms), Fraction(0)), 23, -126, nearest=False)


SCALED = [
    ("float8_e4m3fn", "float8_e5m2", 32, "float8_e8m0fnu", 1),
    ("float6_e2m3fn", "float4_e2m1fn", 32, "float8_e8m0fnu", 1),
    ("float4_e2m1fn", "float4_e2m1fn", 64, "float8_e8m0fnu", 2),
    ("float4_e2m1fn", "float4_e2m1fn", 64, "float8_e8m0fnu", 4),
    ("float4_e2m1fn", "float4_e2m1fn", 64, "float8_ue4m3", 4),
]


@pytest.mark.parametrize("case", SCALED, ids=lambda case: "-".join(map(str, case)))
@given(seed=st.integers(0, 2**32 - 1), spread=st.integers(1, 60), share=st.sampled_from((0.0, 0.3, 0.9)))
def test_block_scaled_sums_are_those_of_the_scalar_model(case, seed: int, spread: int, share: float) -> None:
    a_type, b_type, k, scale, blocks = case
    rng = np.random.default_rng(seed)

    def draw(name: str, count: int, low: int, high: int) -> np.ndarray:
        values = decode(rng.integers(low, high, count).astype(np.uint8), name)
        return np.where(np.isfinite(values) & (rng.random(count) >= share), values, 0.0)

    a, b = draw(a_type, k, 0, 2 ** DTYPES[a_type].bits), draw(b_type, k, 0, 2 ** DTYPES[b_type].bits)
    ends = (127 - spread, 128 + spread) if scale == "float8_e8m0fnu" else (0, 127)
    scales = [decode(rng.integers(*ends, blocks).astype(np.uint8), scale) for _ in range(2)]
    c = float(np.float32(rng.normal() * 2.0 ** rng.integers(-spread, spread))) * (rng.random() >= share)
    entry = model("sm_120", a_type, b_type, "float32", k, scale=scale, blocks=blocks)
    F, zero, group = (25, -133, 1) if k == 32 else (35, -139, 16)
    types = (a_type, b_type, "float8_e4m3fn" if scale == "float8_ue4m3" else scale)
    wanted = _scaled_step(a, b, c, *scales, types, F, zero, group)
    found = accumulate(a[None], b[:, None], np.array([[c]]), entry, scales[0][None], scales[1][:, None])
    assert _same(float(found[0, 0]), wanted + 0.0)
    exact = model("exact", a_type, b_type, "float32", k, scale=scale, blocks=blocks)
    once = accumulate(a[None], b[:, None], np.array([[c]]), exact, scales[0][None], scales[1][:, None])
    every = k // blocks
    terms = [
        Fraction(a[i]) * Fraction(b[i]) * Fraction(scales[0][i // every]) * Fraction(scales[1][i // every])
        for i in range(k)
    ]
    assert float(once[0, 0]) == rounded(sum(terms, Fraction(c)), 23, -126, nearest=True)


def test_a_block_scaled_by_zero_has_no_exponent_of_its_own() -> None:
    """0 * 448 would stand at exponent -6 + 8 and cut a C of 2**-40."""
    entry = model("sm_120", "float4_e2m1fn", "float4_e2m1fn", "float32", 64, scale="float8_ue4m3", blocks=4)
    a, b, c = np.zeros((1, 64)), np.zeros((64, 1)), np.array([[2.0**-40]])
    a[0, 0] = b[0, 0] = 1
    scale_a, scale_b = np.zeros((1, 4)), np.full((4, 1), 448.0)
    assert accumulate(a, b, c, entry, scale_a, scale_b)[0, 0] == 2.0**-40
    scale_a[0, 0] = (
        2.0**-9
    )  # exponent -6, as a subnormal number: 2**-33 is the last place, and 1.75 beside it
    assert accumulate(a, b, c, entry, scale_a, scale_b)[0, 0] == 448 * 2.0**-9
    # All products of a block zero: likewise; a sum of zero from products that are not: the exponent stays.
    scale_a[0, 0], a[0, 0] = 448.0, 0
    assert accumulate(a, b, c, entry, scale_a, scale_b)[0, 0] == 2.0**-40
    a[0, :2], b[:2, 0] = (1, -1), 1
    assert accumulate(a, b, c, entry, scale_a, scale_b)[0, 0] == 0


def test_a_scale_that_is_no_number_gives_none() -> None:
    entry = model("sm_120", "float4_e2m1fn", "float4_e2m1fn", "float32", 64, scale="float8_e8m0fnu", blocks=2)
    scale_a, scale_b = np.ones((2, 2)), np.ones((2, 3))
    scale_a[1, 0] = np.nan
    found = accumulate(np.ones((2, 64)), np.ones((64, 3)), np.zeros((2, 3)), entry, scale_a, scale_b)
    assert (found[0] == 64).all()
    assert np.isnan(found[1]).all()
