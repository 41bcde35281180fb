"""Dense ``mma.sync`` on 8-, 4- and 1-bit integers, s32 accumulation."""

from __future__ import annotations

from typing import Literal

from ..record import Emulated
from .record import MmaInstruction

_UNPACKED = "8-bit instructions, after unpacking"
_FOUR_BIT = (Emulated(90, None, _UNPACKED),)


def _integer(m: int, k: int, a: str, b: str, k_pack: int, satfinite: bool) -> MmaInstruction:
    sm, ptx = (75, (6, 5)) if m == 8 else (80, (7, 0))
    emulated = _FOUR_BIT if k_pack == 8 else ()
    return MmaInstruction(
        m, 8, k, a, b, "int32", "int32", k_pack=k_pack, sm=sm, ptx=ptx, satfinite=satfinite, emulated=emulated
    )


def _one_bit(m: int, k: int, operation: Literal["xor", "and"]) -> MmaInstruction:
    if operation == "and":
        sm, ptx = 80, (7, 1)
    else:
        sm, ptx = 75 if m == 8 else 80, (7, 0)
    hopper = (Emulated(90, 99, "two .and products"),) if operation == "xor" else ()
    emulated = (*hopper, Emulated(100, None, _UNPACKED))
    return MmaInstruction(
        m, 8, k, "uint1", "uint1", "int32", "int32", k_pack=32, sm=sm, ptx=ptx, operation=operation, emulated=emulated
    )  # fmt: skip


_SHAPES = (
    (("int8", "uint8"), 4, ((16, 32), (16, 16), (8, 16))),
    (("int4", "uint4"), 8, ((16, 64), (16, 32), (8, 32))),
)
_ONE_BIT_SHAPES = ((16, 256), (16, 128), (8, 128))

INTEGER = (
    *[
        _integer(m, k, a, b, k_pack, satfinite)
        for elements, k_pack, shapes in _SHAPES
        for satfinite in (False, True)
        for m, k in shapes
        for a in elements
        for b in elements
    ],
    *[_one_bit(m, k, operation) for operation in ("xor", "and") for m, k in _ONE_BIT_SHAPES],
)
