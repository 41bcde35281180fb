"""Sums without intermediate rounding: exact sums rounded once, and integers."""

from __future__ import annotations

from math import fsum, inf, nextafter
from typing import Any

import numpy as np

from .aligned import Terms
from .formats import Format, exponents

_DOUBLE = 53  # significant bits of a float64
INT32 = (-(2**31), 2**31 - 1)


def exact_sum(terms: Terms, c: Any, c_format: Format) -> Any:
    """``c [..., M, N]`` plus all terms, exact where float64 holds the sum and otherwise rounded to odd.

    Rounding that to the nearest of any format of up to 51 bits gives what rounding the exact sum would give (Boldo,
    Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
    """
    total = terms.values.sum(-1) + c
    wide = _wide(terms, c, c_format)
    if wide.any():
        every = np.concatenate([terms.values, c[..., None]], axis=-1)
        total[wide] = [_rounded_to_odd(row) for row in every[wide].tolist()]
    return total


def _wide(terms: Terms, c: Any, c_format: Format) -> Any:
    """Where the bits of the sum may span more than a float64 holds, whatever the order of the additions."""
    nothing = 2**20
    present = terms.values != 0
    low = np.where(present, terms.exponents - terms.fraction, nothing).min(-1)
    low = np.minimum(low, np.where(c != 0, exponents(c, c_format) - c_format.fraction, nothing))
    high = np.maximum(np.frexp(np.abs(terms.values).max(-1))[1], np.frexp(np.abs(c))[1])
    return high + int(terms.values.shape[-1]).bit_length() - low > _DOUBLE


def _rounded_to_odd(row: list[float]) -> float:
    """The exact sum of a few numbers; if no float64, the neighbor of it whose last bit is 1."""
    total = fsum(row)
    rest = fsum([*row, -total])
    if rest == 0 or _is_odd(total):
        return total
    return nextafter(total, inf if rest > 0 else -inf)


def _is_odd(value: float) -> bool:
    return bool(np.float64(value).view(np.uint64) & np.uint64(1))


def integer_sum(a: Any, b: Any, c: Any, saturate: bool) -> Any:
    """``a @ b + c`` for integers, into int32: clamped if `saturate` (``.satfinite``), else modulo 2**32."""
    total = a.astype(np.int64) @ b.astype(np.int64) + c.astype(np.int64)
    low, high = INT32
    total = np.clip(total, low, high) if saturate else (total - low) % 2**32 + low
    return total.astype(np.float64)
