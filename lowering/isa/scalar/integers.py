"""Scalar instructions on integers, bits and predicates: what each computes, by its opcode.

All wrap at their width.  Source: PTX ISA, "Integer Arithmetic Instructions", "Logic and Shift Instructions".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .floats import Decoded, Function
from .values import KINDS, RELATIONS

_WIDE = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}
_HALF = {"s64": np.int64(32), "u64": np.uint64(32)}


def integer_operation(name: str, kind: str) -> Decoded | None:
    """The instruction ``name.kind``, as ``mul.lo.s32`` or ``xor.pred``; None where it is not known."""
    if name in _LOGIC and kind[0] in "bp":
        function = _LOGIC[name]
        return (kind,) * function.nin, function
    if kind[0] == "p":
        return None
    width = KINDS[kind].itemsize * 8
    if name in ("shl", "shr"):
        return (kind, "u32"), _shift(name, width)
    if name in _COUNTED and kind[0] == "b":
        return (kind,), _COUNTED[name]
    if kind[0] not in "su":
        return None
    if name in ("mul.wide", "mad.wide") and kind in _WIDE:
        wide = _WIDE[kind]

        def product(a: Any, b: Any) -> Any:
            return a.astype(KINDS[wide]) * b.astype(KINDS[wide])

        def sum_of(a: Any, b: Any, c: Any) -> Any:
            return product(a, b) + c

        return ((kind, kind), product) if name == "mul.wide" else ((kind, kind, wide), sum_of)
    if name in ("mul.hi", "mad.hi"):
        high = _high(kind)
        return ((kind, kind), high) if name == "mul.hi" else ((kind,) * 3, lambda a, b, c: high(a, b) + c)
    if name in ("div", "rem"):
        return (kind, kind), _quotient if name == "div" else _rest
    found = _ARITHMETIC.get(name)
    if found is None or (name in ("abs", "neg") and kind[0] == "u"):
        return None
    return (kind,) * found[0], found[1]


def _shift(name: str, width: int) -> Function:
    """Counts beyond the width shift everything out."""

    def call(a: Any, count: Any) -> Any:
        by = np.minimum(count, np.uint32(width)).astype(a.dtype)
        return np.left_shift(a, by) if name == "shl" else np.right_shift(a, by)

    return call


def _high(kind: str) -> Function:
    """The upper half of a product."""
    if kind in _WIDE:
        wide, width = KINDS[_WIDE[kind]], KINDS[kind].itemsize * 8

        def narrow(a: Any, b: Any) -> Any:
            return ((a.astype(wide) * b.astype(wide)) >> wide.type(width)).astype(KINDS[kind])

        return narrow
    half, mask = _HALF[kind], KINDS[kind].type(0xFFFFFFFF)

    def call(a: Any, b: Any) -> Any:
        a_high, a_low, b_high, b_low = a >> half, a & mask, b >> half, b & mask
        low = ((a_low * b_low).view(np.uint64) >> np.uint64(32)).view(KINDS[kind])
        first = a_high * b_low + low  # a signed half keeps its sign: none of the sums overflows
        second = a_low * b_high + (first & mask)
        return a_high * b_high + (first >> half) + (second >> half)

    return call


def _quotient(a: Any, b: Any) -> Any:
    """Towards zero.  A division by zero is what PTX leaves open: all bits are set, as NVIDIA's GPUs have it."""
    found = a // b
    if a.dtype.kind == "i":
        found = found + ((a % b != 0) & ((a < 0) != (b < 0)))
    return np.where(b == 0, np.invert(a.dtype.type(0)), found)


def _rest(a: Any, b: Any) -> Any:
    """With the sign of the dividend."""
    return np.where(b == 0, a, np.fmod(a, b))


def _brev(a: Any) -> Any:
    found, width = np.zeros_like(a), a.itemsize * 8
    for i in range(width):
        found = found | (((a >> a.dtype.type(i)) & a.dtype.type(1)) << a.dtype.type(width - 1 - i))
    return found


def _popc(a: Any) -> Any:
    places = np.arange(a.itemsize * 8).astype(a.dtype)
    return ((np.asarray(a)[..., None] >> places) & a.dtype.type(1)).sum(-1).astype(np.uint32)


def _clz(a: Any) -> Any:
    width = a.itemsize * 8
    places = np.arange(width).astype(a.dtype)
    above = (np.asarray(a)[..., None] >> places) != 0
    return (width - above.sum(-1)).astype(np.uint32)


_LOGIC = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert}
_COUNTED: dict[str, Function] = {"brev": _brev, "popc": _popc, "clz": _clz}
_ARITHMETIC: dict[str, tuple[int, Function]] = {
    "add": (2, np.add),
    "sub": (2, np.subtract),
    "mul.lo": (2, np.multiply),
    "mad.lo": (3, lambda a, b, c: a * b + c),
    "min": (2, np.minimum),
    "max": (2, np.maximum),
    "abs": (1, np.abs),
    "neg": (1, np.negative),
}
COMPARE: dict[str, Function] = {
    **RELATIONS,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
"""``setp`` of integers: relation -> what it says; "lo" to "hs" are of unsigned ones."""
