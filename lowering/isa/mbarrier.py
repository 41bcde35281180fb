"""``mbarrier``: barriers in shared memory that count arrivals and bytes, phase after phase."""

from __future__ import annotations

from functools import cache

from .barrier import nothing
from .protocols import MBARRIER_ARRIVE as _ARRIVE
from .protocols import MBARRIER_EXPECT as _EXPECT
from .protocols import MBARRIER_FENCE as _FENCE
from .protocols import MBARRIER_INIT as _INIT
from .protocols import MBARRIER_WAIT as _WAIT
from .record import Instruction, Operand

_SECTION = "Parallel Synchronization and Communication Instructions: mbarrier"
_BAR = Operand("bar", 1, "shared", "read", 8)


def _record(name: str, template: str, operands: tuple[Operand, ...], what: str, protocol: str) -> Instruction:
    return Instruction(
        name,
        template,
        operands,
        90,
        (7, 8),
        f"{_SECTION}.{what}",
        nothing,
        effect="memory",
        protocol=protocol,
    )


MBARRIER_INIT = _record(
    "mbarrier.init",
    "mbarrier.init.shared::cta.b64 [{bar}], {count};",
    (_BAR, Operand("count", 1, "value", "read")),
    "init",
    _INIT,
)
"""By one thread, before all others may use the barrier."""

MBARRIER_FENCE = Instruction(
    "fence.mbarrier_init",
    "fence.mbarrier_init.release.cluster;",
    (),
    90,
    (8, 0),
    "Parallel Synchronization and Communication Instructions: membar, fence",
    nothing,
    effect="memory",
    protocol=_FENCE,
)

MBARRIER_ARRIVE = _record(
    "mbarrier.arrive", "mbarrier.arrive.shared::cta.b64 _, [{bar}];", (_BAR,), "arrive", _ARRIVE
)
"""One arrival for each active thread."""

MBARRIER_EXPECT = _record(
    "mbarrier.arrive.expect_tx",
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [{bar}], {bytes};",
    (_BAR, Operand("bytes", 1, "value", "read")),
    "arrive",
    _EXPECT,
)

MBARRIER_WAIT = _record(
    "mbarrier.wait",
    "{{ .reg .pred P; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 P, [{bar}], {parity}; @P bra DONE; "
    "bra AGAIN; DONE: }}",
    (_BAR, Operand("parity", 1, "value", "read")),
    "try_wait",
    _WAIT,
)
"""Spins on ``mbarrier.try_wait`` until the phase of that parity is complete."""


@cache
def mbarrier_arrive_behind(count: int) -> Instruction:
    """An arrival of one lane that waits for `count` registers: its predicate is made of them.

    The assembler orders an arrival behind a load from shared memory only where it depends on it, so that a buffer might
    be released before it has been read.  `zero` is 0, which the assembler must not know.
    """
    gathered = "".join(f"mov.b32 y, {{r{i}}}; or.b32 x, x, y; " for i in range(1, count))
    return Instruction(
        f"mbarrier.arrive.behind.{count}",
        "{{ .reg .pred P; .reg .b32 x, y; mov.b32 x, {r0}; " + gathered + "and.b32 x, x, {zero}; "
        "elect.sync _|P, 0xffffffff; setp.eq.and.u32 P, x, 0, P; "
        "@P mbarrier.arrive.shared::cta.b64 _, [{bar}]; }}",
        (
            _BAR,
            Operand("zero", 1, "value", "read"),
            *[Operand(f"r{i}", 1, "f32", "read") for i in range(count)],
        ),
        90,
        (8, 0),
        f"{_SECTION}.arrive; Parallel Synchronization and Communication Instructions: elect.sync",
        nothing,
        effect="memory",
        collective=True,
        protocol=_ARRIVE,
    )
