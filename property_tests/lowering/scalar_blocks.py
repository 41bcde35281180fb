"""Blocks of scalar PTX for tests, executed on arrays; and what exact arithmetic says of integers and rounding."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from lowering.isa.scalar.machine import ScalarMeaning

REGISTER = {1: "pred", 2: "b16", 4: "b32", 8: "b64"}
"""Bytes -> class of a register."""


def block(body: str, arrays: dict[str, Any], result: Any) -> Any:
    """What stands in register ``d`` after the body, as an array of that type; inputs of 16 bits come in 32."""
    size = np.dtype(result).itemsize
    declared, entered, given = "", "", {}
    for name, x in arrays.items():
        x = np.ascontiguousarray(x)
        n = x.dtype.itemsize
        declared += f".reg .{REGISTER[n]} {name}; "
        if n == 2:
            entered += f"mov.b32 {{{name}, {name}_none}}, %{name}; "
            words = x.view(np.uint16).astype(np.uint32)[:, None]
        else:
            entered += f"mov.{REGISTER[n]} {name}, %{name}; "
            words = x.view(np.uint32).reshape(len(x), -1)
        given[name] = words[None]
    leave = "mov.b32 %d, {d, 0};" if size == 2 else f"mov.{REGISTER[size]} %d, d;"
    text = f"{{ {declared}.reg .{REGISTER[size]} d; {entered}{body} end: {leave} }}"
    found = ScalarMeaning(text, tuple(arrays))(given)["d"][0]
    return (found.astype(np.uint16) if size == 2 else np.ascontiguousarray(found)).view(result)[:, 0]


def answers(condition: str, arrays: dict[str, Any]) -> list[bool]:
    """What a predicate says, by the statement that sets ``p``."""
    return (block(f"{condition}; selp.u32 d, 1, 0, p;", arrays, np.uint32) == 1).tolist()


# --- exactly ----

INTEGERS = {f"{c}{n}": np.dtype(f"{'i' if c == 's' else 'u'}{n // 8}") for c in "su" for n in (16, 32, 64)}


def numbers_of(kind: str) -> Any:
    """Corners of an integer type, and some between."""
    own = np.iinfo(INTEGERS[kind])
    width = INTEGERS[kind].itemsize * 8
    few = [
        0,
        1,
        2,
        3,
        5,
        7,
        -1,
        -2,
        -3,
        100,
        -100,
        (1 << width // 2) - 1,
        1 << width // 2,
        own.min,
        own.max,
        own.max // 3,
    ]
    return [x for x in dict.fromkeys(int(x) for x in few) if own.min <= x <= own.max]


def wrapped(x: int, kind: str) -> int:
    """An exact result in a register of that type."""
    width = INTEGERS[kind].itemsize * 8
    x %= 1 << width
    return x - (1 << width) if kind[0] == "s" and x >> width - 1 else x


def is_rounded(found: Any, exact: Fraction, mode: str) -> bool:
    """Whether it is the number next to the exact one in the mode's direction: no other is between, or nearer."""
    kind = type(found)
    info = np.finfo(kind)
    with np.errstate(all="ignore"):
        below, above = (np.nextafter(found, kind(x)) for x in (-np.inf, np.inf))

    def value(x: Any) -> Fraction:
        """An infinity, to the nearest, as what would follow the largest number."""
        if np.isinf(x) and mode != "rn":
            return Fraction(10**400 if x > 0 else -(10**400))
        if np.isinf(x):
            step = Fraction(float(info.max)) - Fraction(float(np.nextafter(info.max, kind(0))))
            return (Fraction(float(info.max)) + step) * (1 if x > 0 else -1)
        return Fraction(float(x))

    own = value(found)
    if mode == "rm" or (mode == "rz" and exact >= 0):
        return own <= exact < value(above)
    if mode in ("rp", "rz"):
        return own >= exact > value(below)
    down = np.isneginf(found) or (value(below) + own) / 2 <= exact
    return down and (np.isposinf(found) or exact <= (own + value(above)) / 2)
