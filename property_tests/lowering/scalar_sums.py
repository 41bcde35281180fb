"""The published accumulation models a second time: one sum at a time, on fractions, without numpy's arithmetic.

Written from the papers (PeerJ Computer Science 7:e330, arXiv 2511.10909), not from lowering.isa.numerics.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, isnan, nan

import ml_dtypes
import numpy as np

CARRIER = {"tfloat32": "float32", "float8_ue4m3": "float8_e4m3fn"}


def carrier(name: str) -> np.dtype:
    name = CARRIER.get(name, name)
    return np.dtype(name) if hasattr(np, name) else np.dtype(getattr(ml_dtypes, name))


def smallest_exponent(name: str) -> int:
    """Of a normal number; e8m0 has nothing but normal numbers."""
    return -127 if name == "float8_e8m0fnu" else int(ml_dtypes.finfo(carrier(name)).minexp)


def exponent(x: Fraction, least: int) -> int:
    """Of the binary point: floor(log2 |x|), never below `least`."""
    if x == 0:
        return least
    x = abs(x)
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return max(e if x >= Fraction(2) ** e else e - 1, least)


def toward_zero(x: Fraction, quantum: Fraction) -> Fraction:
    whole = abs(x) // quantum * quantum
    return whole if x >= 0 else -whole


def half_to_even(x: Fraction, quantum: Fraction) -> Fraction:
    return round(x / quantum) * quantum  # Python rounds a Fraction half to even


def rounded(x: Fraction, fraction: int, least: int, *, nearest: bool) -> float:
    quantum = Fraction(2) ** (exponent(x, least) - fraction)
    result = half_to_even(x, quantum) if nearest else toward_zero(x, quantum)
    if abs(result) >= Fraction(2) ** (1 - least) * 2:
        return inf if result > 0 else -inf
    return float(result)


def special(a: Sequence[float], b: Sequence[float], c: float) -> float | None:
    """What infinities and NaNs make of a sum; None if there are none."""
    total = 0.0
    for term in (*(x * y for x, y in zip(a, b, strict=True)), c):
        if isnan(term):
            return nan
        if term in (inf, -inf):
            if total == -term:
                return nan
            total = term
    return total or None


def one_step(
    a: Sequence[float],
    b: Sequence[float],
    c: float,
    types: tuple[str, str, str],
    F: int,
    zero: int,
    kept: int,
) -> float:
    """Products and C, aligned to the largest exponent, cut to F bits, added, rounded into the accumulator."""
    found = special(a, b, c)
    if found is not None:
        return found
    least_a, least_b, least_c = (smallest_exponent(t) for t in types)
    terms = []
    for x, y in zip(map(Fraction, a), map(Fraction, b), strict=True):
        where = zero if x * y == 0 else exponent(x, least_a) + exponent(y, least_b)
        terms.append((x * y, where))
    terms.append((Fraction(c), zero if c == 0 else exponent(Fraction(c), least_c)))
    quantum = Fraction(2) ** (max(where for _, where in terms) - F)
    total = sum((toward_zero(value, quantum) for value, _ in terms), Fraction(0))
    return rounded(total, kept, least_c, nearest=types[2] == "float16")


def exact_once(a: Sequence[float], b: Sequence[float], c: float, accumulator: str) -> float:
    """The exact sum, rounded once to nearest even."""
    found = special(a, b, c)
    if found is not None:
        return found
    total = sum((Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)), Fraction(c))
    fraction, least = {"float32": (23, -126), "float16": (10, -14)}[accumulator]
    return rounded(total, fraction, least, nearest=True)
