"""The aligned, truncated sum: how a tensor core adds products and C in one step.

Every product is exact.  Its exponent is the sum of its operands' exponents (of the scales' too), not normalized:
1.5 * 1.5 counts as exponent 0.  Terms and C are aligned to the largest exponent E of all of them; what falls below
2**(E - F) is cut off (toward zero) from each; what is left is added without any further loss and rounded once.  A term
that is zero takes part with an exponent of its own, far down, which keeps E from sinking without limit.

Sources: Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7:e330
(2021); Xie et al., "Bit-accurate modeling of GPU matrix multiply-accumulate units", arXiv 2511.10909, whose T-FDPA,
ST-FDPA and GST-FDPA these are; Khattak, Mikaitis, "Accurate models of NVIDIA tensor cores", arXiv 2512.07004.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .formats import Format, exponents


@dataclass(frozen=True)
class Terms:
    """What one step adds to C.

    Attributes:
        values: float64 ``[..., M, N, terms]``, exact.
        exponents: integers of that shape: where each term's binary point stands.
        empty: booleans of that shape: terms that have no exponent because all that went into them is zero.
        fraction: each value is a multiple of ``2**(exponent - fraction)`` (terms that stand alone; see `scaled`).
    """

    values: Any
    exponents: Any
    empty: Any
    fraction: int


def products(a: Any, b: Any, a_format: Format, b_format: Format) -> Terms:
    """All products of ``a [..., M, K]`` and ``b [..., K, N]``, finite."""
    b = np.swapaxes(b, -1, -2)
    values = a[..., :, None, :] * b[..., None, :, :]
    exponent = exponents(a, a_format)[..., :, None, :] + exponents(b, b_format)[..., None, :, :]
    return Terms(values, exponent, values == 0, a_format.fraction + b_format.fraction)


def scaled(terms: Terms, scale_a: Any, scale_b: Any, scale_format: Format, group: int) -> Terms:
    """Terms times their scales, `group` neighbors along K added first.

    `scale_a [..., M, blocks]` and `scale_b [..., blocks, N]`: one scale for each ``K / blocks`` neighbors along K.
    Where `group` is 1 the scales' exponents add to the products'.  A larger group is summed exactly as it stands, and
    its exponent is that of its scales alone; `fraction` says nothing about such terms.
    """
    k = terms.values.shape[-1]
    left, right = scale_a[..., :, None, :], np.swapaxes(scale_b, -1, -2)[..., None, :, :]
    factor = np.repeat(left * right, k // group // scale_a.shape[-1], axis=-1)
    exponent = exponents(left, scale_format) + exponents(right, scale_format)
    exponent = np.repeat(exponent, k // group // scale_a.shape[-1], axis=-1)
    fraction = terms.fraction + 2 * scale_format.fraction
    if group == 1:
        values = terms.values * factor
        return Terms(values, terms.exponents + exponent, values == 0, fraction)
    grouped = (*terms.values.shape[:-1], k // group, group)
    values = terms.values.reshape(grouped).sum(-1) * factor
    empty = terms.empty.reshape(grouped).all(-1) | (factor == 0)
    return Terms(values, np.broadcast_to(exponent, values.shape), empty, fraction)


def aligned_sum(terms: Terms, c: Any, c_format: Format, fraction: int, zero: int) -> Any:
    """``c [..., M, N]`` plus the terms, each cut to `fraction` bits below the largest exponent; float64.

    From there on exact.  `zero` is the exponent with which zero terms take part.

    Pre-condition: ``(number of terms + 1) * largest |significand| * 2**fraction < 2**53``.
    """
    exponent = np.where(terms.empty, zero, terms.exponents)
    largest = np.maximum(exponent.max(-1), np.where(c == 0, zero, exponents(c, c_format)))
    quantum = np.ldexp(1.0, largest - fraction)
    kept = np.trunc(terms.values / quantum[..., None]).sum(-1) + np.trunc(c / quantum)
    return kept * quantum
