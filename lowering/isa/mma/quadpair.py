"""sm_70's ``mma.sync.m8n8k4`` on f16: four products a warp, in quadpairs, either order of A and B."""

from __future__ import annotations

from typing import Literal

from ..record import Emulated
from .record import MmaInstruction

Order = Literal["row", "col"]
_ORDERS: tuple[Order, ...] = ("row", "col")


def _quadpair(a_layout: Order, b_layout: Order, c: str, d: str) -> MmaInstruction:
    return MmaInstruction(
        8, 8, 4, "float16", "float16", c, d, k_pack=2, sm=70, ptx=(6, 4), rule="quadpair",
        a_layout=a_layout, b_layout=b_layout,
        emulated=(Emulated(80, None, "ordinary arithmetic, without tensor cores"),),
    )  # fmt: skip


QUADPAIR = tuple(
    [
        _quadpair(a, b, c, d)
        for a in _ORDERS
        for b in _ORDERS
        for c, d in (("float32", "float32"), ("float16", "float16"), ("float16", "float32"))
    ]
)
