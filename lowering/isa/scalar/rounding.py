"""Rounding in a given direction, and the qualifiers ``.ftz`` and ``.sat`` that many instructions share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

ROUNDINGS = ("rn", "rz", "rm", "rp")
WHOLE: dict[str, Callable[[Any], Any]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
"""Rounding to an integer -> what it does to floats."""

_TINY = {4: np.float32(2.0**-126), 8: np.float64(2.0**-1022)}


def to_f32(value: Any, rounding: str) -> Any:
    """A float64 as float32.

    Where the float64 stands for a sum that was rounded to odd, the result is the sum's own (Boldo, Melquiond 2008).
    """
    found = value.astype(np.float32)
    if rounding == "rn":
        return found
    wide = found.astype(np.float64)
    beyond = {"rz": np.abs(wide) > np.abs(value), "rm": wide > value, "rp": wide < value}[rounding]
    towards = np.float32({"rz": 0, "rm": -np.inf, "rp": np.inf}[rounding])
    # Of what rounds to zero from the other side, a zero of the value's own sign.
    return np.where(beyond, np.copysign(np.nextafter(found, towards), value.astype(np.float32)), found)


def flushed(value: Any) -> Any:
    """Subnormal numbers as zeros of their sign."""
    return np.where(np.abs(value) < _TINY[value.itemsize], np.copysign(value.dtype.type(0), value), value)


def saturated(value: Any) -> Any:
    """Floats within 0 and 1; a NaN as 0."""
    zero, one = value.dtype.type(0), value.dtype.type(1)
    return np.where(value > zero, np.minimum(value, one), zero)


def qualified(function: Callable[..., Any], ftz: bool, sat: bool) -> Callable[..., Any]:
    """A function of floats with what the qualifiers add: operands and result flushed, the result saturated."""
    if not ftz and not sat:
        return function

    def call(*given: Any) -> Any:
        found = function(*[flushed(x) for x in given]) if ftz else function(*given)
        found = flushed(found) if ftz else found
        return saturated(found) if sat else found

    return call
