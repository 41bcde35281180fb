"""Barriers in shared memory that count arrivals and bytes, phase after phase.

Source: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier", "Phase of the mbarrier object",
"Tracking asynchronous operations by the mbarrier object".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...isa.operand_map import LANES
from ...program import Address, Instr, instr_text
from .access import AddressOperand
from .faults import Wrong
from .lanes import Lanes, lanes_at
from .plan import BARRIER_BYTES, Plan
from .waits import Wait

if TYPE_CHECKING:
    from .clocks import Clocks
    from .warp import Warp

MOST_ARRIVALS = (1 << 20) - 1


class MBarrier:
    """One barrier.

    Attributes:
        name: for messages.
        column: its column in the clocks.
        ready: whether it was initialized.
        phase: phases that are complete.
    """

    def __init__(self, name: str, column: int, clocks: Clocks) -> None:
        self.name, self.column, self._clocks = name, column, clocks
        self.ready = False
        self.phase = 0
        self._by = (0, 0, 0)  # thread's column, time and warp of the initialization
        self._fenced = False
        self._count = self._missing = self._bytes = 0
        self._released = clocks.nothing()  # in this phase
        self._complete = clocks.nothing()  # in all phases before
        self._landed: list[Any] = []  # copies of this phase
        self._unseen: list[Any] = []  # of phases before that nobody has waited for

    def init(self, warp: Warp, lane: int, count: int, where: str) -> None:
        """By one thread.  Errors: MachineError for a second time, or no count of arrivals."""
        if self.ready:
            warp.fault(where, lane, f"{self.name} has been initialized before")
        if not 1 <= count <= MOST_ARRIVALS:
            warp.fault(
                where, lane, f"{self.name} cannot wait for {count} arrivals, only for 1 to {MOST_ARRIVALS}"
            )
        self.ready = True
        self._by = (warp.number * LANES + lane, self._clocks.now, warp.number)
        self._count = self._missing = count

    def fence(self, warp: int) -> None:
        """A thread of that warp has made its initializations known to the copy engine."""
        self._fenced = self._fenced or (self.ready and self._by[2] == warp)

    def check(self, warp: Warp, lanes: Lanes, where: str, by_engine: bool = False) -> None:
        """Whether the lanes may use it.

        Errors: MachineError for a barrier that was not initialized, or whose initialization the threads don't know of;
        for the copy engine, without fence behind it.
        """
        lane = int(lanes.index[0])
        if not self.ready:
            warp.fault(where, lane, f"{self.name} has not been initialized")
        column, time, _ = self._by
        for one in lanes.index.tolist():
            if warp.number * LANES + one != column and self._clocks.view(warp.number)[one, column] < time:
                warp.fault(
                    where, one, f"no barrier lies between the initialization of {self.name} and this use"
                )
        if by_engine and not self._fenced:
            warp.fault(
                where,
                lane,
                f"the copy engine does not know {self.name}: fence.mbarrier_init behind init is missing",
            )

    # --- a phase --------------------------------------------------------------------------------

    def arrive(self, warp: Warp, lanes: Lanes, arrivals: int, where: str) -> None:
        """The lanes release what they did; so many arrivals.  Errors: MachineError for one too many."""
        if arrivals > self._missing:
            warp.fault(where, int(lanes.index[0]), self._too_many(arrivals))
        self._released.take(self._clocks.release(warp.number, lanes))
        self._missing -= arrivals
        self._complete_if_done(lambda problem: warp.fault(where, int(lanes.index[0]), problem))

    def arrive_with_copies(self, columns: Any, times: Any, fail: Callable[[str], None]) -> None:
        """Threads' copies have landed: one arrival of each, which releases nothing but what has landed until then.

        Args:
            columns, times: of each thread, its copies' column in the clocks, and when its last one landed.
            fail: raises the MachineError of a problem.
        """
        if times.size > self._missing:
            fail(self._too_many(times.size))
        self._released.known[columns] = np.maximum(self._released.known[columns], times)
        self._missing -= int(times.size)
        self._complete_if_done(fail)

    def _too_many(self, arrivals: int) -> str:
        more = f" and {self._bytes} bytes are missing" if self._missing == 0 else ""
        lacks = f"phase {self.phase} lacks {self._missing} of {self._count}{more}"
        return f"{arrivals} arrivals at {self.name}, {lacks}"

    def expect(self, count: int) -> None:
        """So many more bytes."""
        self._bytes += count

    def land(self, copy: Any, count: int, fail: Callable[[str], None]) -> None:
        """A copy's bytes are in shared memory, at this time of the clock."""
        self._released.known[self.column] = self._clocks.now
        self._clocks.now += 1
        self._landed.append(copy)
        self._bytes -= count
        self._complete_if_done(fail)

    def _complete_if_done(self, fail: Callable[[str], None]) -> None:
        if self._missing:
            return
        if self._bytes < 0:
            fail(
                f"{-self._bytes} bytes more have landed at {self.name} in phase {self.phase} than it expects"
            )
        if self._bytes == 0:
            self.phase += 1
            self._missing = self._count
            self._complete.take(self._released)
            self._released = self._clocks.nothing()
            self._unseen += self._landed
            self._landed = []

    # --- waiting --------------------------------------------------------------------------------

    def wait(self, parity: int) -> Wait:
        """Until the phase of that parity is complete."""
        return Wait(lambda: self.phase & 1 != parity, lambda: self._why(parity))

    def passed(self, warp: Warp, lanes: Lanes) -> None:
        """The lanes have waited."""
        self._clocks.acquire(warp.number, lanes, self._complete)
        self._unseen = []

    def unseen(self) -> list[Any]:
        """Copies that nobody has waited for."""
        return [*self._unseen, *self._landed]

    def _why(self, parity: int) -> str:
        return (
            f"phase {self.phase} of {self.name} (parity {parity}), which lacks {self._missing} of {self._count} "
            f"arrivals and {self._bytes} bytes"
        )


class BarrierOperand:
    """The operand that names an mbarrier."""

    def __init__(self, plan: Plan, instr: Instr) -> None:
        operands = zip(instr.instruction.operands, instr.arguments, strict=True)
        operand, address = next((o, a) for o, a in operands if o.name == "bar")
        if not isinstance(address, Address):
            raise TypeError(f"{instr_text(instr)}: bar is an address")
        self._instr = instr
        self._address = AddressOperand(plan, instr, operand, address)

    def of(
        self, warp: Warp, lanes: Lanes, by_engine: bool = False, check: bool = True
    ) -> list[tuple[MBarrier, Lanes]]:
        """The barriers that the lanes name, each with its lanes.

        Errors: MachineError for an address that is none of a barrier, and one that the lanes may not use.
        """
        index, _ = self._address.index(warp, lanes)
        try:
            self._address.check_alignment(index)
            self._address.check_range(index)
        except Wrong as wrong:
            self._address.fail(warp, lanes, index, wrong)
        shared = self._address.shared
        if shared is None:
            raise TypeError("a barrier does not lie in shared memory")
        numbers = shared.first_barrier + index * self._address.buffer.unit_bytes // BARRIER_BYTES
        found: list[tuple[MBarrier, Lanes]] = []
        each: list[int] = numbers.tolist()
        for number in dict.fromkeys(each):
            mine = lanes if (numbers == number).all() else lanes_at(lanes.index[numbers == number])
            barrier = warp.cta.barriers[number]
            if check:
                barrier.check(warp, mine, instr_text(self._instr), by_engine)
            found.append((barrier, mine))
        return found
