"""Counters in global memory, by which warps of all CTAs tell one another what they have written.

A `control.Draw` says whose turn it is; a warp that has done its part counts it; whoever needs all of it waits for the
count.  The records carry their fences: what was written before is seen behind the wait by threads and, since matrices
are mostly read by it, by the copy engine.
"""

from __future__ import annotations

from .ordering import FENCES, ordering
from .protocols import COUNT as _COUNT
from .protocols import COUNT_WAIT as _COUNT_WAIT
from .record import Operand

_COUNTER = Operand("counter", 1, "address", "read", 4)
_PROXY = "fence.proxy.async.global;"

COUNT = ordering(
    "red.count",
    "{{ .reg .pred P; .reg .b32 x; " + _PROXY + " bar.warp.sync 0xffffffff; mov.u32 x, %laneid; "
    "setp.eq.u32 P, x, 0; @P red.release.gpu.global.add.u32 [{counter}], 1; }}",
    (_COUNTER,),
    f"Parallel Synchronization and Communication Instructions: red; bar.warp.sync; {FENCES.partition(': ')[2]}",
    _COUNT,
    90,
    (8, 0),
    collective=True,
)
"""One more, once all that the warp's threads have written to global memory can be seen."""

COUNT_WAIT = ordering(
    "ld.acquire.count",
    "{{ .reg .pred P; .reg .b32 x; AGAIN: ld.acquire.gpu.global.u32 x, [{counter}]; setp.ge.u32 P, x, {count}; "
    "@P bra DONE; nanosleep.u32 64; bra AGAIN; DONE: " + _PROXY + " }}",
    (_COUNTER, Operand("count", 1, "value", "read")),
    f"Data Movement and Conversion Instructions: ld; {FENCES}",
    _COUNT_WAIT,
    90,
    (8, 0),
)
"""Until a counter has reached `count`; what was counted is seen from there on."""
