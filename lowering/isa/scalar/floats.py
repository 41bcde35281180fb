"""Scalar instructions on floats: what each computes, by its opcode.

Rounded instructions give the correctly rounded result.  So do those with ``.approx``, but for what float64 loses of the
functions; a GPU's may differ by as much as the PTX ISA allows, two units of the last place of most.  A product and a
sum that name no rounding mode, which an assembler may fuse, are two here.  Source: PTX ISA, "Floating Point
Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arithmetic import fma32, fma64, odd_sum
from .rounding import ROUNDINGS, qualified, to_f32
from .values import RELATIONS, bits

Function = Callable[..., Any]
Decoded = tuple[tuple[str, ...], Function]
"""Types of the operands that are read, and the function of them."""

_SIGN = {4: np.uint32(1 << 31), 8: np.uint64(1 << 63)}


def float_operation(name: str, modifiers: list[str], kind: str) -> Decoded | None:
    """The instruction ``name.modifiers.kind`` of f32 or f64; None where it is not known."""
    if name == "copysign":  # moves bits, also of a NaN
        return None if modifiers else ((f"b{kind[1:]}",) * 2, _copysign)
    flags = [m for m in modifiers if m in ("ftz", "sat")]
    rest = [m for m in modifiers if m not in flags]
    function = _function(name, rest, kind)
    if function is None:
        return None
    count = function.__code__.co_argcount if hasattr(function, "__code__") else function.nin  # type: ignore[attr-defined]
    return (kind,) * count, qualified(function, "ftz" in flags, "sat" in flags)


def _function(name: str, rest: list[str], kind: str) -> Function | None:
    rounding = rest[0] if rest and rest[0] in ROUNDINGS else ""
    if rounding and len(rest) == 1:
        if rounding == "rn":
            return _ROUNDED[kind].get(name)
        return _directed(name, rounding) if kind == "f32" else None
    if rest in (["approx"], ["full"]):
        return _APPROXIMATE[kind].get(name)
    if not rest:
        return _PLAIN[kind].get(name) or (_ROUNDED[kind].get(name) if name in _OPTIONAL else None)
    if rest == ["NaN"] and name in ("min", "max"):
        return _EXTREMES[name][1]
    return None


# --- rounded to nearest ------------------------------------------------------------------------------


def _reciprocal(a: Any) -> Any:
    return a.dtype.type(1) / a


def _fma32(a: Any, b: Any, c: Any) -> Any:
    return fma32(a, b, c)


def _fma64(a: Any, b: Any, c: Any) -> Any:
    return fma64(a, b, c)


_OPTIONAL = ("add", "sub", "mul")
"""What rounds to nearest where it names no mode."""
_COMMON: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "rcp": _reciprocal,
}
_ROUNDED: dict[str, dict[str, Function]] = {
    "f32": {**_COMMON, "fma": _fma32},
    "f64": {**_COMMON, "fma": _fma64},
}


# --- rounded in a direction --------------------------------------------------------------------------


def _directed(name: str, rounding: str) -> Function | None:
    """Of f32: the exact result, or one rounded to odd, of float64, and then rounded."""

    def fma(a: Any, b: Any, c: Any) -> Any:
        x, z = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
        total = odd_sum(x, z)
        if rounding == "rm":  # of numbers that cancel each other
            cancel = (total == 0) & (np.signbit(x) != np.signbit(z))
            total = np.where(cancel, -0.0, total)
        return to_f32(total, rounding)

    def add(a: Any, b: Any) -> Any:
        return fma(a, np.float32(1), b)

    def sub(a: Any, b: Any) -> Any:
        return fma(a, np.float32(1), -b)

    def mul(a: Any, b: Any) -> Any:
        return to_f32(a.astype(np.float64) * b.astype(np.float64), rounding)

    return {"fma": fma, "add": add, "sub": sub, "mul": mul}.get(name)


# --- approximations ----------------------------------------------------------------------------------


def _near(function: Function) -> Function:
    def call(a: Any) -> Any:
        return function(a.astype(np.float64)).astype(np.float32)

    return call


def _quotient(a: Any, b: Any) -> Any:
    """``div.approx``: beyond 2**126 the reciprocal that it multiplies with is 0 (PTX ISA, "div")."""
    far = np.abs(b) > np.float32(2.0**126)
    return np.where(far, a * np.copysign(np.float32(0), b), a / b)


def _gross(function: Function) -> Function:
    """``rcp`` and ``rsqrt.approx.ftz.f64``: of a number's upper half, the upper half (PTX ISA, "rcp")."""

    def call(a: Any) -> Any:
        upper = np.uint64(0xFFFFFFFF00000000)
        found = function((np.asarray(a).view(np.uint64) & upper).view(np.float64))
        return np.where(np.isnan(a), np.nan, (np.asarray(found).view(np.uint64) & upper).view(np.float64))

    return call


def _rsqrt(a: Any) -> Any:
    return 1.0 / np.sqrt(a)


_APPROXIMATE: dict[str, dict[str, Function]] = {
    "f32": {
        "div": _quotient,
        "rcp": _reciprocal,
        "sqrt": np.sqrt,
        "rsqrt": _near(_rsqrt),
        "ex2": _near(np.exp2),
        "lg2": _near(np.log2),
        "sin": _near(np.sin),
        "cos": _near(np.cos),
        "tanh": _near(np.tanh),
    },
    "f64": {"rcp": _gross(_reciprocal), "rsqrt": _gross(_rsqrt)},
}


# --- exact ---------------------------------------------------------------------------------------------


def _extreme(name: str) -> tuple[Function, Function]:
    """The smaller or the larger: -0 is less than +0.  First where a number wins over a NaN, then the reverse."""
    least = name == "min"
    number, keep = (np.fmin, np.minimum) if least else (np.fmax, np.maximum)
    zeros = np.bitwise_or if least else np.bitwise_and

    def with_zeros(of: Function) -> Function:
        def call(a: Any, b: Any) -> Any:
            equal = a == b
            found = of(a, b)
            return np.where(equal, zeros(bits(a), bits(b)).view(a.dtype), found) if np.any(equal) else found

        return call

    return with_zeros(number), with_zeros(keep)


def _copysign(a: Any, b: Any) -> Any:
    """The sign of the first on the second."""
    sign = _SIGN[a.itemsize]
    return (a & sign) | (b & ~sign)


_EXTREMES = {name: _extreme(name) for name in ("min", "max")}
_EXACT: dict[str, Function] = {
    "abs": np.abs,
    "neg": np.negative,
    **{name: both[0] for name, both in _EXTREMES.items()},
}
_PLAIN = {"f32": _EXACT, "f64": _EXACT}


# --- questions -----------------------------------------------------------------------------------------

_LEAST = {4: 2.0**-126, 8: 2.0**-1022}


def _normal(a: Any) -> Any:
    return np.isfinite(a) & (np.abs(a) >= _LEAST[a.itemsize])


def _subnormal(a: Any) -> Any:
    return (np.abs(a) < _LEAST[a.itemsize]) & (a != 0)


def _number(a: Any) -> Any:
    return ~np.isnan(a)


TESTP: dict[str, Function] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": _number,
    "notanumber": np.isnan,
    "normal": _normal,
    "subnormal": _subnormal,
}
"""``testp``: what it asks -> of floats."""


def _ordered(relation: Function) -> Function:
    def call(a: Any, b: Any) -> Any:
        return relation(a, b) & ~(np.isnan(a) | np.isnan(b))

    return call


def _unordered(relation: Function) -> Function:
    def call(a: Any, b: Any) -> Any:
        return relation(a, b) | np.isnan(a) | np.isnan(b)

    return call


COMPARE: dict[str, Function] = {
    **{n: _ordered(f) if n == "ne" else f for n, f in RELATIONS.items()},
    **{f"{n}u": f if n == "ne" else _unordered(f) for n, f in RELATIONS.items()},
    "num": _ordered(lambda a, b: np.ones(np.broadcast_shapes(np.shape(a), np.shape(b)), bool)),
    "nan": _unordered(lambda a, b: np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)), bool)),
}
"""``setp`` of floats: relation -> what it says; those in "u" hold where an operand is a NaN."""
