"""The numbers of all lanes in a register: one array, of a type that says how its bits are to be read.

An array of floats is what arithmetic gave, and whatever the bits of its NaNs are here, they stand for the one NaN that
an instruction makes; integers are bits that were given or moved, which keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

KINDS: dict[str, Any] = {
    "pred": np.dtype(bool),
    **{f"{c}{n}": np.dtype(f"{'i' if c == 's' else 'u'}{n // 8}") for c in "bsu" for n in (8, 16, 32, 64)},
    **{f"f{n}": np.dtype(f"f{n // 8}") for n in (16, 32, 64)},
}
"""Type of an instruction -> of an array."""

_UNSIGNED = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}
_NAN = {2: np.uint16(0x7FFF), 4: np.uint32(0x7FFFFFFF)}
"""Bytes of a float -> the NaN that an instruction makes; of f64 it is what the arithmetic here gives."""


RELATIONS: dict[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
"""What ``setp`` asks of integers, and of floats that are no NaN."""


def bits(value: Any) -> Any:
    """The bits of a value, unsigned."""
    found = value.view(_UNSIGNED[value.itemsize])
    if value.dtype.kind == "f" and value.itemsize in _NAN:
        found = np.where(np.isnan(value), _NAN[value.itemsize], found)
    return found


def read(value: Any, kind: str) -> Any:
    """A register as an instruction of that type reads it: its low bits, where it is wider."""
    wanted = KINDS[kind]
    if value.dtype == wanted:
        return value
    found = bits(value)
    if wanted.itemsize != found.itemsize:
        found = found.astype(_UNSIGNED[wanted.itemsize])
    return found.view(wanted)


def widened(value: Any, size: int) -> Any:
    """A result in a register of so many bytes: a signed integer keeps its sign above."""
    if value.itemsize == size or value.dtype.kind == "b":
        return value
    return value.astype(np.dtype(f"{value.dtype.kind}{size}"))


def chosen(condition: Any, one: Any, other: Any) -> Any:
    """Bits of one value where the condition holds, else of the other."""
    if one.dtype != other.dtype:
        one, other = bits(one), bits(other)
    return np.where(condition, one, other)


def constant(text: str, kind: str) -> Any:
    """A literal of PTX: an integer, or ``0f`` and ``0d`` with the bits of a float.

    Errors: ValueError for what is none.

    >>> constant("0f3FC00000", "f32"), constant("-1", "u32")
    (np.float32(1.5), np.uint32(4294967295))
    """
    wanted = KINDS[kind]
    if text[:2] in ("0f", "0F", "0d", "0D"):
        size = 4 if text[1] in "fF" else 8
        word = np.array(int(text[2:], 16), _UNSIGNED[size])[()]
        number = word.view(f"f{size}")
        return word if np.isnan(number) else number
    number = int(text, 0)
    if kind == "pred":
        return np.bool_(number)
    size = wanted.itemsize
    return read(np.array(number % (1 << 8 * size), _UNSIGNED[size])[()], kind)
