"""Arithmetic on registers of one number each: products, sums and fused multiply-adds of f32 and f64; constants.

Each result is rounded once, to nearest even, subnormal numbers included.  A NaN of f32 is the word 0x7fffffff, whatever
the operands' NaNs were (PTX ISA, "Floating Point Instructions").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tilelayout import LayoutError

from .record import Instruction, Kind, Operand

CANONICAL_NAN = 0x7FFFFFFF
"""The word of every NaN that an instruction on f32 makes."""

_LEAST_NORMAL = (1023 - 126) << 52
"""The bits of 2**-126 as a float64."""

Meaning = Callable[[Mapping[str, Any]], dict[str, Any]]


def numbers(words: Any, kind: Kind) -> Any:
    """Registers of one number each, uint32 ``[..., words]``, as numbers of the class, ``[..., registers]``."""
    import numpy as np

    return np.ascontiguousarray(words, np.uint32).view(np.float64 if kind == "f64" else np.float32)


def words_of(values: Any, kind: Kind) -> Any:
    """The reverse of `numbers`; NaNs of f32 become the canonical one."""
    import numpy as np

    found = np.ascontiguousarray(values).view(np.uint32)
    return found if kind == "f64" else np.where(np.isnan(values), np.uint32(CANONICAL_NAN), found)


def fma32(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` of float32, rounded once.

    The product is exact in float64.  Where the sum there lies in the middle between two float32, or is smaller than the
    least normal one, it may have been rounded, and is rounded to odd instead, which rounds to the right float32.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        x, z = np.asarray(a, np.float64) * np.asarray(b, np.float64), np.asarray(c, np.float64)
        total = np.asarray(x + z)
        words = total.view(np.uint64)
        middle = (words & np.uint64(0x1FFFFFFF)) == np.uint64(0x10000000)
        small = (words & np.uint64((1 << 63) - 1)) - np.uint64(1) < np.uint64(_LEAST_NORMAL - 1)  # not zero
        if (middle | small).any():
            total = odd_sum(x, z)
        return total.astype(np.float32)


def odd_sum(x: Any, z: Any) -> Any:
    """``x + z`` of float64, rounded to odd: where it is not exact, to the neighbor whose last bit is set.

    Rounded to float32 after that, it is rounded as if once (Boldo, Melquiond 2008).
    """
    import numpy as np

    total = np.asarray(x + z)
    part = total - x
    lost = (x - (total - part)) + (z - part)
    inexact = np.isfinite(total) & (lost != 0) & ((total.view(np.uint64) & np.uint64(1)) == 0)
    return np.where(inexact, np.nextafter(total, np.copysign(np.inf, lost)), total)


def fma64(a: Any, b: Any, c: Any) -> Any:
    """The same of float64."""
    from .numerics.fused import fma

    return fma(a, b, c)


def _product(a: Any, b: Any) -> Any:
    return a * b


def _sum(a: Any, b: Any) -> Any:
    return a + b


def _meaning(kind: Kind, function: Callable[..., Any], names: str) -> Meaning:
    def compute(values: Mapping[str, Any]) -> dict[str, Any]:
        import numpy as np

        with np.errstate(all="ignore"):
            return {"d": words_of(function(*[numbers(values[n], kind) for n in names]), kind)}

    return compute


def _record(
    operation: str, kind: Kind, names: str, function: Callable[..., Any], section: str
) -> Instruction:
    operands = ", ".join(f"{{{n}}}" for n in f"d{names}")
    return Instruction(
        f"{operation}.{kind}",
        f"{operation}.rn.{kind} {operands};",
        (Operand("d", 1, kind, "write"), *[Operand(n, 1, kind, "read") for n in names]),
        75,
        (6, 3),
        f"Floating Point Instructions: {section}",
        _meaning(kind, function, names),
    )


_KINDS: tuple[Kind, ...] = ("f32", "f64")

MUL: dict[Kind, Instruction] = {k: _record("mul", k, "ab", _product, "mul") for k in _KINDS}
"""Register class -> ``d = a * b``; the qualifier ``.rn`` keeps the assembler from fusing it with a sum."""

ADD: dict[Kind, Instruction] = {k: _record("add", k, "ab", _sum, "add") for k in _KINDS}
"""Register class -> ``d = a + b``."""

FMA: dict[Kind, Instruction] = {
    "f32": _record("fma", "f32", "abc", fma32, "fma"),
    "f64": _record("fma", "f64", "abc", fma64, "fma"),
}
"""Register class -> ``d = a * b + c``, rounded once."""

_BITS: dict[Kind, tuple[int, str]] = {
    "f32": (32, "0f{:08X}"),
    "f64": (64, "0d{:016X}"),
    "b32": (32, "0x{:08x}"),
}


@cache
def constant(kind: Kind, bits: int) -> Instruction:
    """Those bits, in a register of that class.

    Errors: LayoutError for bits that the register does not hold.

    >>> constant("f32", 0x3F800000).template
    'mov.f32 {d}, 0f3F800000;'
    """
    import numpy as np

    width, form = _BITS[kind]
    if not 0 <= bits < 1 << width:
        raise LayoutError("constant", f"{bits:#x} is no register of {width} bits")
    text = form.format(bits)
    words = np.array([bits >> 32 * i & 0xFFFFFFFF for i in range(width // 32)], np.uint32)

    def meaning(values: Mapping[str, Any]) -> dict[str, Any]:
        warps, lanes = values["lanes"]
        return {"d": np.broadcast_to(words, (warps, lanes, words.size)).copy()}

    return Instruction(
        f"constant.{kind}.{bits:x}",
        f"mov.{kind} {{d}}, {text};",
        (Operand("d", 1, kind, "write"),),
        75,
        (6, 3),
        "Data Movement and Conversion Instructions: mov",
        meaning,
    )
