"""float64: a chain of fused multiply-adds, each rounded once, in the order of K.

PTX ISA, "Multiply-and-Accumulate Instruction: mma": an f64 product and its addition have the precision of a fused
multiply-add.  That they follow one another in the order of K was measured (arXiv 2511.10909), and so were the words of
NaNs, which the PTX ISA leaves open (on an H200, by property_tests/gpu/probe).
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, isfinite
from typing import Any

import numpy as np

_SPLIT = float(2**27 + 1)
_RANGE = 400
"""Exponents up to here are multiplied and added by error-free transformations, larger ones by fractions."""

_QUIET = np.uint64(1 << 51)
_INVALID = np.uint64(0xFFF8000000000000)
"""The NaN of an operation that has no result: infinity times zero, infinity minus infinity."""


def fma(x: Any, y: Any, z: Any) -> Any:
    """``x * y + z`` rounded once to the nearest float64, ties to even, elementwise (IEEE 754 fusedMultiplyAdd).

    Where an operand is NaN the result is one of them, made quiet, sign and payload kept: y if it is, else z, else x.
    Where none is, an invalid operation gives the word 0xfff8000000000000.

    >>> float(
    ...     fma(np.float64(1 + 2.0**-52), np.float64(1 - 2.0**-52), np.float64(-1))
    ... )  # 0.0 when rounded twice
    -4.930380657631324e-32
    >>> nan = np.array([0x7FF8000000000005, 0xFFF0000000000003], np.uint64).view(np.float64)
    >>> [hex(x) for x in fma(nan, 1.0, nan[::-1]).view(np.uint64).tolist()]
    ['0xfff8000000000003', '0x7ff8000000000005']
    """
    x, y, z = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (x, y, z)))
    with np.errstate(all="ignore"):
        factors = np.isfinite(x) & np.isfinite(y)
        finite = factors & np.isfinite(z)
        plain = np.where(
            factors & ~finite, z, x * y + z
        )  # a finite product beside an infinity, even one that overflows
        easy = finite & _near(x) & _near(y) & _near(z)
        result = np.where(easy, _transformed(x, y, z), plain)
    hard = finite & ~easy
    if hard.any():
        result[hard] = [
            _by_fractions(*t) for t in zip(x[hard].tolist(), y[hard].tolist(), z[hard].tolist(), strict=True)
        ]
    return _with_nan_words(result, x, y, z)


def _with_nan_words(result: Any, x: Any, y: Any, z: Any) -> Any:
    """The result with the words of its NaNs as the hardware gives them."""
    wrong = np.isnan(result)
    if not wrong.any():
        return result
    words = np.where(wrong, _INVALID, result.view(np.uint64))
    for operand in (x, z, y):  # the last one counts
        words = np.where(np.isnan(operand), operand.view(np.uint64) | _QUIET, words)
    return words.view(np.float64)


def chain(a: Any, b: Any, c: Any) -> Any:
    """``c [..., M, N]`` after a fused multiply-add for each k of ``a [..., M, K]`` and ``b [..., K, N]``, k rising."""
    for k in range(a.shape[-1]):
        c = fma(a[..., :, k, None], b[..., k, None, :], c)
    return c


def _near(x: Any) -> Any:
    """Zero, or an exponent so moderate that no step of `_transformed` overflows or loses bits to underflow."""
    return (x == 0) | (np.abs(np.frexp(x)[1]) < _RANGE)


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum and what rounding lost (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded product and what rounding lost (Dekker, with Veltkamp's splitting)."""
    a_high, b_high = (_SPLIT * v - (_SPLIT * v - v) for v in (a, b))
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _transformed(x: Any, y: Any, z: Any) -> Any:
    """The fused multiply-add by rounding the low part of the exact sum to odd (Boldo, Melquiond 2008)."""
    high, low = _two_product(x, y)
    middle, rest = _two_sum(z, low)
    top, bottom = _two_sum(high, middle)
    tail, lost = _two_sum(bottom, rest)
    even = (np.asarray(tail).view(np.uint64) & np.uint64(1)) == 0
    odd = np.where((lost != 0) & even, np.nextafter(tail, np.copysign(np.inf, lost)), tail)
    # An exact zero has the sign that the plain sum gives it.
    return np.where((x == 0) | (y == 0), x * y + z, top + odd)


def _by_fractions(x: float, y: float, z: float) -> float:
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return x * y + z if x * y == 0 == z else 0.0
    try:
        rounded = float(exact)
    except OverflowError:
        return inf if exact > 0 else -inf
    return rounded if rounded != 0 or exact > 0 or not isfinite(rounded) else -0.0
