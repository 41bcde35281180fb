"""Binary floating-point formats and rounding to them, on float64 arrays of exact values.

A format here is what the adders of a tensor core see of a type: how many fraction bits, and the exponent below which
numbers are subnormal.  Sources: IEEE 754 for float16 and float32; PTX ISA, "Alternate floating-point data formats" and
the OCP Microscaling specification 1.0 for the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelayout.errors import LayoutError, nearest


@dataclass(frozen=True)
class Format:
    """A format: value = significand * 2**exponent, ``1 <= |significand| < 2``, or below 1 at the smallest exponent.

    Attributes:
        name: the element type.
        fraction: bits of the significand after the binary point.
        smallest: the smallest exponent, which subnormal numbers have too.
        largest: the largest finite value.
        infinite: whether it has infinities.
    """

    name: str
    fraction: int
    smallest: int
    largest: float
    infinite: bool


def _ieee(name: str, fraction: int, smallest: int) -> Format:
    return Format(name, fraction, smallest, (2.0 - 2.0**-fraction) * 2.0 ** (1 - smallest), True)


FORMATS = {
    f.name: f
    for f in (
        _ieee("float32", 23, -126),
        _ieee("tfloat32", 10, -126),
        _ieee("float16", 10, -14),
        _ieee("bfloat16", 7, -126),
        _ieee("float8_e5m2", 2, -14),
        Format("float8_e4m3fn", 3, -6, 448.0, False),
        Format("float6_e3m2fn", 2, -2, 28.0, False),
        Format("float6_e2m3fn", 3, 0, 7.5, False),
        Format("float4_e2m1fn", 1, 0, 6.0, False),
        Format("float8_e8m0fnu", 0, -127, 2.0**127, False),
        Format("float8_ue4m3", 3, -6, 448.0, False),
    )
}
"""Every floating-point format that an operand, an accumulator or a scale may have, float64 apart."""

E8M13 = Format("float32 of 13 fraction bits", 13, -126, (2.0 - 2.0**-13) * 2.0**127, True)
"""What the fp8 units of Ada and Hopper keep of a float32 result."""

CANONICAL_NAN = {"float32": 0x7FFFFFFF, "float16": 0x7FFF}
"""The bits of every NaN result, as MMA-Sim found them.  (A float64 NaN has a payload, see `fused.fma`.)"""


def format_of(name: str) -> Format:
    """The format of that element type.  LayoutError for one that has none, with the nearest."""
    if name not in FORMATS:
        raise LayoutError("numerics", f"no binary format of {name!r} is known", nearest(name, list(FORMATS)))
    return FORMATS[name]


def exponents(values: Any, form: Format) -> Any:
    """The exponent of each finite value in the format, subnormal numbers and zeros at the smallest one.

    >>> exponents(np.array([1.0, 6.0, 2.0**-20, 0.0]), FORMATS["float16"]).tolist()
    [0, 2, -14, -14]
    """
    found = np.where(np.equal(values, 0), form.smallest, np.frexp(values)[1] - 1)
    return np.maximum(found, form.smallest)


def truncate(values: Any, form: Format) -> Any:
    """Each value with the bits dropped that the format has no place for.  Beyond the largest finite value: infinite.

    >>> truncate(np.array([1 + 2.0**-24, -(2.0**-150), 2.0**128]), FORMATS["float32"]).tolist()
    [1.0, -0.0, inf]
    """
    return _to(values, form, np.trunc)


def round_to_even(values: Any, form: Format) -> Any:
    """Each value rounded to the nearest of the format, ties to even.  Beyond the largest finite value: infinite.

    >>> round_to_even(
    ...     np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 65519.0, 65520.0]), FORMATS["float16"]
    ... ).tolist()
    [1.0, 1.001953125, 65504.0, inf]
    """
    return _to(values, form, np.rint)


def _to(values: Any, form: Format, whole: Any) -> Any:
    quantum = np.ldexp(1.0, exponents(values, form) - form.fraction)
    with np.errstate(over="ignore"):  # beyond float64 is beyond every format
        rounded = whole(values / quantum) * quantum
    return np.where(np.abs(rounded) > form.largest, np.copysign(np.inf, rounded), rounded)


def drop_to_tfloat32(values: Any) -> Any:
    """What the hardware reads of a 32-bit tf32 register, as float64: float32 without its low 13 bits.

    They are dropped from a NaN too, so that one whose payload they are becomes an infinity (measured on an H200).
    Pass float32 where that matters: a float64 array cannot tell the signaling NaNs, since conversion makes them quiet.

    >>> drop_to_tfloat32(np.array([1 + 2.0**-10 + 2.0**-11, -1.0])).tolist()
    [1.0009765625, -1.0]
    >>> words = np.array([0x7F800001, 0xFF801FFF, 0x7F802000], np.uint32)
    >>> drop_to_tfloat32(words.view(np.float32)).tolist()
    [inf, -inf, nan]
    """
    values = np.asarray(values)
    if values.dtype == np.float32:
        with np.errstate(invalid="ignore"):  # a signaling NaN becomes a quiet one
            return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    values = values.astype(np.float64)
    finite = np.isfinite(values)
    cut = (values.view(np.uint64) & ~np.uint64(2**42 - 1)).view(np.float64)  # ten fraction bits are left
    return np.where(finite, truncate(np.where(finite, values, 0.0), FORMATS["tfloat32"]), cut)


def unrepresentable(values: Any, form: Format) -> Any:
    """Where an array holds what the format has no code for: a boolean array."""
    finite = np.isfinite(values)
    known = np.where(finite, values, 0.0)
    fits = round_to_even(known, form) == known
    return ~np.where(finite, fits, np.isnan(values) | form.infinite)


def bits(values: Any, accumulator: str) -> Any:
    """An accumulator's values as the bits that the hardware writes: uint16, uint32, uint64; int32 for integers.

    Every NaN has the bits of `CANONICAL_NAN`; those of float64 keep theirs.

    >>> [hex(x) for x in bits(np.array([1.0, -np.inf, np.nan]), "float32").tolist()]
    ['0x3f800000', '0xff800000', '0x7fffffff']
    """
    values = np.asarray(values, np.float64)
    if accumulator == "int32":
        return values.astype(np.int64).astype(np.int32)
    if accumulator == "float64":
        return values.view(np.uint64).copy()
    if accumulator not in CANONICAL_NAN:
        raise LayoutError(
            "bits", f"no accumulator is {accumulator!r}", "one of float16, float32, float64, int32"
        )
    with np.errstate(invalid="ignore"):
        narrow = values.astype(accumulator)
    words = narrow.view(f"u{narrow.dtype.itemsize}").copy()
    words[np.isnan(values)] = CANONICAL_NAN[accumulator]
    return words
