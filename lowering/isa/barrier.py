"""Barriers of a CTA, of some of its warps, and of a warp: threads wait for one another, and see what each wrote."""

from __future__ import annotations

from .ordering import ordering
from .protocols import CTA_BARRIER, NAMED_BARRIER, WARP_BARRIER
from .record import Instruction, Operand

_SECTION = "Parallel Synchronization and Communication Instructions: bar, barrier"


def _barrier(
    name: str, template: str, operands: tuple[Operand, ...], section: str, protocol: str
) -> Instruction:
    return ordering(name, template, operands, section, protocol, 75, (6, 3), collective=True)


BAR_SYNC = _barrier("bar.sync", "bar.sync 0;", (), _SECTION, CTA_BARRIER)
"""On barrier 0, by every thread of the CTA."""

BAR_NAMED = _barrier(
    "bar.sync.named",
    "bar.sync {id}, {count};",
    (Operand("id", 1, "value", "read"), Operand("count", 1, "value", "read")),
    _SECTION,
    NAMED_BARRIER,
)
"""On barrier `id`, 1 to 15, by `count` threads, a multiple of 32."""

BAR_WARP = _barrier(
    "bar.warp.sync",
    "bar.warp.sync 0xffffffff;",
    (),
    "Parallel Synchronization and Communication Instructions: bar.warp.sync",
    WARP_BARRIER,
)
"""By every lane of the warp."""
