"""Dense ``mma.sync`` on 8-, 6- and 4-bit floats without scale factors."""

from __future__ import annotations

from ..record import Emulated
from .kinds import EIGHT_BIT, F8F6F4
from .record import MmaInstruction

_AS_F16 = "f16 instructions, after conversion"


def _fp8(k: int, a: str, b: str, accumulator: str) -> MmaInstruction:
    newer = k == 16 or accumulator == "float16"
    return MmaInstruction(
        16, 8, k, a, b, accumulator, accumulator, k_pack=4, sm=89, ptx=(8, 7) if newer else (8, 4),
        emulated=(Emulated(90, 119, _AS_F16),),
    )  # fmt: skip


def _f8f6f4(a: str, b: str, accumulator: str) -> MmaInstruction:
    eight = a in EIGHT_BIT and b in EIGHT_BIT
    return MmaInstruction(
        16, 8, 32, a, b, accumulator, accumulator, k_pack=4,
        sm=100 if eight else 120,
        ptx=(8, 6) if eight and accumulator == "float32" else (8, 7),
        kind="f8f6f4",
        specific=(100, 103, 110, 120, 121) if eight else (120, 121),
        emulated=(Emulated(100, 119, _AS_F16),) if eight else (),
    )  # fmt: skip


NARROW = (
    *[
        _fp8(k, a, b, accumulator)
        for accumulator in ("float32", "float16")
        for k in (32, 16)
        for a in EIGHT_BIT
        for b in EIGHT_BIT
    ],
    *[_f8f6f4(a, b, accumulator) for accumulator in ("float32", "float16") for a in F8F6F4 for b in F8F6F4],
)
