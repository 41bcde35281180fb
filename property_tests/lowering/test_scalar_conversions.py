"""``cvt`` of scalar PTX on a CPU: every pair of types and every rounding, against integers and fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from .scalar_blocks import INTEGERS, block, is_rounded, numbers_of, wrapped

FLOATS = {"f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
SOME = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    0.999,
    -0.999,
    127.5,
    128,
    -129,
    255,
    256,
    32767,
    32768,
    -32769,
    65504,
    1e-7,
]
MORE = [
    2.0**31,
    -(2.0**31),
    2.0**31 - 0.5,
    2.0**32,
    2.0**63,
    -(2.0**63),
    2.0**64,
    1e20,
    -1e20,
    1e38,
    2.0**62 + 2.0**40,
]
WHOLE = {
    "rni": lambda x: round(x),
    "rzi": lambda x: math.trunc(x),
    "rmi": lambda x: math.floor(x),
    "rpi": lambda x: math.ceil(x),
}


def floats(kind: str) -> Any:
    finite = SOME + (MORE if kind != "f16" else [])
    return np.array([*finite, math.inf, -math.inf, math.nan], FLOATS[kind])


@pytest.mark.parametrize("mode", WHOLE)
@pytest.mark.parametrize("of", FLOATS)
@pytest.mark.parametrize("to", INTEGERS)
def test_floats_to_integers(to: str, of: str, mode: str) -> None:
    """They end at the range.  PTX ISA on NaN: 0, but of f64 and to 64 bits the word of the highest bit."""
    given = floats(of)
    found = block(f"cvt.{mode}.{to}.{of} d, a;", {"a": given}, INTEGERS[to])
    own, width = np.iinfo(INTEGERS[to]), INTEGERS[to].itemsize * 8
    for x, d in zip(given.tolist(), found.tolist(), strict=True):
        if math.isnan(x):
            assert d == (wrapped(1 << width - 1, to) if of == "f64" or width == 64 else 0)
        elif math.isinf(x):
            assert d == (own.max if x > 0 else own.min)
        else:
            assert d == min(max(WHOLE[mode](Fraction(x)), int(own.min)), int(own.max)), x


@pytest.mark.parametrize("mode", WHOLE)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_floats_to_whole_floats(kind: str, mode: str) -> None:
    given = floats(kind)
    found = block(f"cvt.{mode}.{kind}.{kind} d, a;", {"a": given}, FLOATS[kind])
    wanted = [WHOLE[mode](Fraction(x)) if math.isfinite(x) else x for x in given.tolist()]
    np.testing.assert_array_equal(found, np.array(wanted, FLOATS[kind]))
    np.testing.assert_array_equal(np.signbit(found[:-1]), np.signbit(given[:-1]))  # -0.5 becomes -0


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("of", INTEGERS)
def test_integers_to_floats(of: str, mode: str) -> None:
    numbers = numbers_of(of)
    if of[1:] == "64":
        own = np.iinfo(INTEGERS[of])
        more = [2**24 + 1, 2**25 + 2, 2**53 + 1, 2**60 + 2**36, 2**60 + 2**36 + 1, 2**60 + 2**36 - 1]
        numbers = [*numbers, *more, *[-x for x in more if own.min < 0]]
    given = np.array(numbers, INTEGERS[of])
    found = block(f"cvt.{mode}.f32.{of} d, a;", {"a": given}, np.float32)
    for x, d in zip(numbers, found, strict=True):
        assert is_rounded(d, Fraction(x), mode), x
    if mode == "rn":
        for x, d in zip(numbers, block(f"cvt.rn.f64.{of} d, a;", {"a": given}, np.float64), strict=True):
            assert is_rounded(d, Fraction(x), mode)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_float64_to_float32(mode: str) -> None:
    given = np.array(
        [
            0.1,
            -0.1,
            1 / 3,
            1e-45,
            -1e-46,
            1e-40,
            3.5e38,
            -3.5e38,
            3.4028235e38,
            1 + 2.0**-24,
            1 + 2.0**-24 + 2.0**-50,
        ]
    )
    found = block(f"cvt.{mode}.f32.f64 d, a;", {"a": given}, np.float32)
    for x, d in zip(given.tolist(), found, strict=True):
        assert is_rounded(d, Fraction(x), mode), x
    ends = block(f"cvt.{mode}.f32.f64 d, a;", {"a": np.array([np.inf, -np.inf, np.nan, -0.0])}, np.float32)
    np.testing.assert_array_equal(ends, np.float32([np.inf, -np.inf, np.nan, -0.0]))


def test_half_precision() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = block("cvt.f32.f16 d, a;", {"a": every}, np.float32)
    np.testing.assert_array_equal(wide, every.astype(np.float32))
    back = block("cvt.rn.f16.f32 d, a;", {"a": wide}, np.float16)
    np.testing.assert_array_equal(back, every)
    # Through float32 it would be rounded twice.
    assert (
        block("cvt.rn.f16.f64 d, a;", {"a": np.array([1 + 2.0**-11 + 2.0**-40])}, np.float16) == 1 + 2.0**-10
    )


@pytest.mark.parametrize("of", INTEGERS)
@pytest.mark.parametrize("to", INTEGERS)
def test_integers_to_integers(to: str, of: str) -> None:
    given = np.array(numbers_of(of), INTEGERS[of])
    own = np.iinfo(INTEGERS[to])
    if to != of:
        found = block(f"cvt.{to}.{of} d, a;", {"a": given}, INTEGERS[to])
        assert found.tolist() == [wrapped(x, to) for x in given.tolist()]
    clamped = block(f"cvt.sat.{to}.{of} d, a;", {"a": given}, INTEGERS[to])
    assert clamped.tolist() == [min(max(x, int(own.min)), int(own.max)) for x in given.tolist()]


def test_a_wider_register_holds_the_sign_of_a_narrow_result() -> None:
    given = np.int32([-1, 255, 128, 70000])
    assert block("cvt.s8.s32 d, a;", {"a": given}, np.int32).tolist() == [-1, -1, -128, 112]
    assert block("cvt.u8.u32 d, a;", {"a": given}, np.int32).tolist() == [255, 255, 128, 112]
    assert block("cvt.s32.s8 d, a;", {"a": given}, np.int32).tolist() == [-1, -1, -128, 112]


def test_halves_of_a_register() -> None:
    given = np.array([0x0123456789ABCDEF, 0xFFFFFFFF00000001], np.uint64)
    swapped = ".reg .b32 l, h; mov.b64 {l, h}, a; mov.b64 d, {h, l};"
    assert block(swapped, {"a": given}, np.uint64).tolist() == [0x89ABCDEF01234567, 0x00000001FFFFFFFF]
    scoped = "{ .reg .b32 t; mov.b64 {t, d}, a; }"
    assert block(scoped, {"a": given}, np.uint32).tolist() == [0x01234567, 0xFFFFFFFF]


def test_flushing_and_saturating() -> None:
    given = np.float32([1e-40, -1e-40, 0.25, 3, -1, np.nan, np.inf])
    np.testing.assert_array_equal(
        block("cvt.sat.f32.f32 d, a;", {"a": given}, np.float32), np.float32([1e-40, 0, 0.25, 1, 0, 0, 1])
    )
    np.testing.assert_array_equal(
        block("cvt.ftz.f64.f32 d, a;", {"a": given}, np.float64)[:3], [0, -0.0, 0.25]
    )
    np.testing.assert_array_equal(
        block("cvt.rn.ftz.f32.f64 d, a;", {"a": np.array([1e-40, 0.1])}, np.float32), np.float32([0, 0.1])
    )
