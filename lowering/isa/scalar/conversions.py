"""``cvt``: between floats, integers, and both.  Source: PTX ISA, "Data Movement and Conversion Instructions: cvt"."""

from __future__ import annotations

from typing import Any

import numpy as np

from .floats import Decoded, Function
from .rounding import ROUNDINGS, WHOLE, flushed, qualified, to_f32
from .values import KINDS


def conversion(modifiers: list[str], to: str, of: str) -> Decoded | None:
    """The instruction ``cvt.modifiers.to.of``; None where it is not known."""
    flags = [m for m in modifiers if m in ("ftz", "sat")]
    rest = [m for m in modifiers if m not in flags]
    if to not in KINDS or of not in KINDS or "pred" in (to, of) or "b" in (to[0], of[0]) or len(rest) > 1:
        return None
    rounding, ftz, sat = (rest[0] if rest else ""), "ftz" in flags, "sat" in flags
    function = {
        (True, True): _between_floats,
        (True, False): _to_float,
        (False, True): _to_integer,
        (False, False): _between_integers,
    }[to[0] == "f", of[0] == "f"](rounding, to, of, sat)
    if function is None:
        return None
    if of[0] == "f":
        function = _of_flushed(function, of) if ftz else function
    if to[0] == "f":
        function = qualified(function, False, sat)
        function = _to_flushed(function, to) if ftz else function
    return (of,), function


def _of_flushed(function: Function, of: str) -> Function:
    """Subnormal numbers of float32 as zeros, before."""
    return (lambda a: function(flushed(a))) if of == "f32" else function


def _to_flushed(function: Function, to: str) -> Function:
    return (lambda a: flushed(function(a))) if to == "f32" else function


def _between_floats(rounding: str, to: str, of: str, sat: bool) -> Function | None:
    wanted, given = KINDS[to], KINDS[of]
    if to == of:
        if rounding in WHOLE:
            return WHOLE[rounding]
        return (lambda a: a) if not rounding else None
    if wanted.itemsize > given.itemsize:
        return None if rounding else lambda a: a.astype(wanted)
    if rounding == "rn":
        return lambda a: a.astype(wanted)
    return (lambda a: to_f32(a, rounding)) if rounding in ROUNDINGS and to == "f32" else None


def _to_float(rounding: str, to: str, of: str, sat: bool) -> Function | None:
    wanted, given = KINDS[to], KINDS[of]
    if rounding == "rn":
        if to == "f16":  # never more than the 53 bits that float64 has, but of 64
            return (lambda a: a.astype(np.float64).astype(wanted)) if given.itemsize < 8 else None
        return lambda a: a.astype(wanted)
    if rounding in ROUNDINGS and to == "f32":
        return lambda a: to_f32(_odd_float(a), rounding)
    return None


def _odd_float(a: Any) -> Any:
    """Integers as float64: exact up to 2**53, above rounded to odd."""
    if a.itemsize < 8:
        return a.astype(np.float64)
    low = a.dtype.type(0x7FF)
    shifted = (a >> a.dtype.type(11)) | ((a & low) != 0).astype(a.dtype)
    return np.where(
        np.abs(a.astype(np.float64)) < 2.0**53, a.astype(np.float64), shifted.astype(np.float64) * 2.0**11
    )


def _to_integer(rounding: str, to: str, of: str, sat: bool) -> Function | None:
    """Rounded, and beyond the range its end, with or without ``.sat``.

    A NaN becomes 0; of f64, or to 64 bits, the word whose highest bit alone is set.
    """
    wanted = KINDS[to]
    if rounding not in WHOLE:
        return None
    whole, ends = WHOLE[rounding], np.iinfo(wanted)
    width = wanted.itemsize * 8
    missing = np.array(1 << width - 1, f"u{wanted.itemsize}").view(wanted)[()]
    if of != "f64" and width < 64:
        missing = wanted.type(0)
    above = np.float64(2.0 ** (width - (wanted.kind == "i")))  # the first number beyond
    below = np.float64(ends.min)

    def call(a: Any) -> Any:
        found = whole(a.astype(np.float64))
        inside = (found < above) & (found >= below)
        number = np.where(inside, found, 0.0).astype(wanted)
        number = np.where(found >= above, wanted.type(ends.max), number)
        number = np.where(found < below, wanted.type(ends.min), number)
        return np.where(np.isnan(found), missing, number)

    return call


def _between_integers(rounding: str, to: str, of: str, sat: bool) -> Function | None:
    wanted, given = KINDS[to], KINDS[of]
    if rounding:
        return None
    if not sat:
        return lambda a: a.astype(wanted)
    ends, own = np.iinfo(wanted), np.iinfo(given)
    low, high = max(int(ends.min), int(own.min)), min(int(ends.max), int(own.max))
    return lambda a: np.clip(a, given.type(low), given.type(high)).astype(wanted)
