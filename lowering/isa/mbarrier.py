"""``mbarrier``: barriers in shared memory that count arrivals and bytes, phase after phase.

From sm_80 on there are barriers, and a test of a phase that a thread repeats; from sm_90 on also bytes that the copy
engine counts, and a wait that suspends the thread for a while.
"""

from __future__ import annotations

from functools import cache

from ..target import Target
from .ordering import FENCES, ordering
from .protocols import CP_ASYNC_ARRIVE as _COPIES_ARRIVE
from .protocols import MBARRIER_ARRIVE as _ARRIVE
from .protocols import MBARRIER_EXPECT as _EXPECT
from .protocols import MBARRIER_FENCE as _FENCE
from .protocols import MBARRIER_INIT as _INIT
from .protocols import MBARRIER_WAIT as _WAIT
from .record import Instruction, Kind, Operand

_SECTION = "Parallel Synchronization and Communication Instructions: mbarrier"
_BAR = Operand("bar", 1, "shared", "read", 8)


def _record(
    name: str,
    template: str,
    operands: tuple[Operand, ...],
    what: str,
    protocol: str,
    sm: int = 90,
    ptx: tuple[int, int] = (7, 8),
) -> Instruction:
    return ordering(name, template, operands, f"{_SECTION}.{what}", protocol, sm, ptx)


def _wait(name: str, test: str, what: str, sm: int, ptx: tuple[int, int]) -> Instruction:
    """Spins on a test of a phase until the phase of that parity is complete."""
    return _record(
        name,
        f"{{{{ .reg .pred P; AGAIN: mbarrier.{test}.b64 P, [{{bar}}], {{parity}}; @P bra DONE; "
        "bra AGAIN; DONE: }}",
        (_BAR, Operand("parity", 1, "value", "read")),
        what,
        _WAIT,
        sm,
        ptx,
    )


MBARRIER_INIT = _record(
    "mbarrier.init",
    "mbarrier.init.shared.b64 [{bar}], {count};",
    (_BAR, Operand("count", 1, "value", "read")),
    "init",
    _INIT,
    80,
    (7, 0),
)
"""By one thread, before all others may use the barrier."""

MBARRIER_FENCE = ordering(
    "fence.mbarrier_init", "fence.mbarrier_init.release.cluster;", (), FENCES, _FENCE, 90, (8, 0)
)

MBARRIER_ARRIVE = _record(
    "mbarrier.arrive", "mbarrier.arrive.shared::cta.b64 _, [{bar}];", (_BAR,), "arrive", _ARRIVE, 80
)
"""One arrival for each active thread."""

MBARRIER_EXPECT = _record(
    "mbarrier.arrive.expect_tx",
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [{bar}], {bytes};",
    (_BAR, Operand("bytes", 1, "value", "read")),
    "arrive",
    _EXPECT,
    ptx=(8, 0),
)

CP_ASYNC_ARRIVE = _record(
    "cp.async.mbarrier.arrive.noinc",
    "cp.async.mbarrier.arrive.noinc.shared.b64 [{bar}];",
    (_BAR,),
    "arrive; Data Movement and Conversion Instructions: cp.async.mbarrier.arrive",
    _COPIES_ARRIVE,
    80,
    (7, 0),
)
"""One arrival for each active thread, when the copies that it has begun have landed."""

MBARRIER_SPIN = _wait("mbarrier.spin", "test_wait.parity.shared", "test_wait", 80, (7, 1))
"""By ``mbarrier.test_wait``, which answers at once."""

MBARRIER_WAIT = _wait("mbarrier.wait", "try_wait.parity.shared::cta", "try_wait", 90, (7, 8))
"""By ``mbarrier.try_wait``, which suspends the thread for a while."""


def mbarrier_wait(target: Target) -> Instruction:
    """The best wait for a phase that the target has."""
    return MBARRIER_SPIN if MBARRIER_WAIT.refusal(target) else MBARRIER_WAIT


@cache
def mbarrier_arrive_behind(count: int, elected: bool = True, kind: Kind = "f32") -> Instruction:
    """An arrival of one lane that waits for `count` registers: its predicate is made of them.

    The assembler orders an arrival behind a load from shared memory only where it depends on it, so that a buffer might
    be released before it has been read.  `zero` is 0, which the assembler must not know.  Without `elected`, for
    architectures that do not elect, it is lane 0 that arrives.
    """
    word = "mov.b64 wide, {1}; cvt.u32.u64 {0}, wide; " if kind == "f64" else "mov.b32 {0}, {1}; "
    gathered = "".join(word.format("y", f"{{r{i}}}") + "or.b32 x, x, y; " for i in range(1, count))
    chosen = "elect.sync _|P, 0xffffffff; " if elected else "mov.u32 y, %laneid; setp.eq.u32 P, y, 0; "
    arrival = (
        "@P mbarrier.arrive.shared::cta.b64 _, [{bar}]; }}"
        if elected
        else "@P mbarrier.arrive.shared.b64 s, [{bar}]; }}"
    )
    return ordering(
        f"mbarrier.arrive.{'behind' if elected else 'first.behind'}.{count}.{kind}",
        "{{ .reg .pred P; .reg .b64 s, wide; .reg .b32 x, y; "
        + word.format("x", "{r0}")
        + gathered
        + "and.b32 x, x, {zero}; "
        + chosen
        + "setp.eq.and.u32 P, x, 0, P; "
        + arrival,
        (
            _BAR,
            Operand("zero", 1, "value", "read"),
            *[Operand(f"r{i}", 1, kind, "read") for i in range(count)],
        ),
        f"{_SECTION}.arrive"
        + "; Parallel Synchronization and Communication Instructions: elect.sync" * elected,
        _ARRIVE,
        90 if elected else 80,
        (8, 0) if elected else (7, 0),
        collective=True,
    )
