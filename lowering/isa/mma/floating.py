"""Dense ``mma.sync`` on f16, bf16, tf32 and f64."""

from __future__ import annotations

from ..record import Emulated
from .record import MmaInstruction


def _sixteen_bit(k: int, element: str, sm: int, accumulator: str = "float32") -> MmaInstruction:
    ptx = (7, 0) if sm >= 80 else (6, 5)
    return MmaInstruction(16, 8, k, element, element, accumulator, accumulator, k_pack=2, sm=sm, ptx=ptx)


def _tf32(k: int) -> MmaInstruction:
    types = ("tfloat32", "tfloat32", "float32", "float32")
    return MmaInstruction(16, 8, k, *types, k_pack=1, sm=80, ptx=(7, 0))


def _f64(m: int, k: int) -> MmaInstruction:
    sm, ptx = (80, (7, 0)) if m == 8 else (90, (7, 8))
    split = () if m == 8 else (Emulated(100, None, "several m8n8k4"),)
    return MmaInstruction(m, 8, k, *["float64"] * 4, k_pack=1, sm=sm, ptx=ptx, emulated=split)


MMA_INSTRUCTIONS = (
    _sixteen_bit(16, "float16", 80),
    _sixteen_bit(16, "bfloat16", 80),
    _sixteen_bit(8, "float16", 75),
    _sixteen_bit(8, "bfloat16", 80),
)
"""On 16-bit floats with f32 accumulation."""

FLOATING = (
    *MMA_INSTRUCTIONS,
    _sixteen_bit(16, "float16", 80, "float16"),
    _sixteen_bit(8, "float16", 75, "float16"),
    _tf32(8),
    _tf32(4),
    _f64(16, 16),
    _f64(16, 8),
    _f64(16, 4),
    _f64(8, 4),
)
