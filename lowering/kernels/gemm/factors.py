"""Alpha and beta: numbers that the arithmetic of a kernel holds."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from numbers import Real
from typing import Any

from tilelayout import LayoutError

from .problem import Problem

LARGEST, LEAST = (2.0 - 2.0**-23) * 2.0**127, 2.0**-149
"""Of the float32 that are finite, and of those above 0."""


def check_factor(problem: Problem, name: str, x: Any) -> None:
    """Refuse what is no number, or none that the factor can be.

    It is a float32 unless sums are computed with in float64: what becomes infinite there, or 0 that is not, is refused.
    """
    if not isinstance(x, Real):
        raise LayoutError("gemm", f"{name}={x!r}", "a number")
    try:
        value = float(x)
    except OverflowError:
        raise LayoutError("gemm", f"{name} is beyond 1.8e308, which no float holds", "a number") from None
    # Alpha is 1 where it is not asked for, whatever computes with it.
    if not isfinite(value) or replace(problem, scaled=True).epilogue.kind == "f64":
        return
    computed = f"which {name} is where sums are {problem.accumulator}"
    if abs(value) >= LARGEST + 2.0**103:  # from here on it rounds to infinity
        raise LayoutError(
            "gemm",
            f"{name} = {value:g} is beyond float32, {computed}",
            f"from -{LARGEST:.7g} to {LARGEST:.7g}",
        )
    if 0 < abs(value) <= LEAST / 2:  # up to here to 0
        raise LayoutError(
            "gemm", f"{name} = {value:g} is 0 in float32, {computed}", f"0, or at least {LEAST:.7g}"
        )


__all__ = ["check_factor"]
