"""Dense ``mma.sync`` with block scaling: kinds mxf8f6f4, mxf4 and mxf4nvf4.

The records have the selectors of scale factors at 0; `dataclasses.replace` gives others.
"""

from __future__ import annotations

from .kinds import F8F6F4
from .record import MmaInstruction
from .scale import BlockScale


def _scaled(
    k: int, kind: str, a: str, b: str, vector: int, scale: str, ptx: tuple[int, int] = (8, 7)
) -> MmaInstruction:
    return MmaInstruction(
        16, 8, k, a, b, "float32", "float32", k_pack=k // 8, sm=120, ptx=ptx, kind=kind,
        scale=BlockScale(vector, scale), specific=(120, 121),
    )  # fmt: skip


_FP4 = ("float4_e2m1fn", "float4_e2m1fn")

BLOCK_SCALED = (
    *[_scaled(32, "mxf8f6f4", a, b, 1, "float8_e8m0fnu") for a in F8F6F4 for b in F8F6F4],
    _scaled(64, "mxf4", *_FP4, 2, "float8_e8m0fnu"),
    _scaled(64, "mxf4nvf4", *_FP4, 2, "float8_e8m0fnu"),
    _scaled(64, "mxf4nvf4", *_FP4, 4, "float8_ue4m3"),
    _scaled(64, "mxf4nvf4", *_FP4, 4, "float8_e8m0fnu", ptx=(9, 1)),
)
