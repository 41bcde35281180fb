"""What the machine does for instructions that wait, or are done later: one entry for each of `isa.protocols`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...isa import protocols as names
from ...program import Address, Instr, instr_text
from .access import AddressOperand
from .bulk import BulkBegin
from .cp_async import CopyBegin, arrive_later
from .expressions import Expressions, per_lane
from .instructions import RegisterUse, check_held, check_together
from .lanes import Lanes, lanes_of
from .mbarrier import BarrierOperand
from .order import COUNTED
from .plan import Plan
from .waits import Wait

if TYPE_CHECKING:
    from .warp import Warp


class Protocol:
    """An instruction with a protocol.

    Attributes:
        waits: whether it may block the warp.
        orders: whether instructions before it must be done before it.
        use: its registers.
    """

    waits = False
    orders = False

    def __init__(self, plan: Plan, instr: Instr) -> None:
        self.instr = instr
        self.use = RegisterUse(plan, instr)
        self._values: dict[str, Expressions] = {}
        for operand, argument in zip(instr.instruction.operands, instr.arguments, strict=True):
            if operand.kind == "value":
                self._values[operand.name] = Expressions((argument,), self.where)  # type: ignore[arg-type]

    def where(self) -> str:
        return instr_text(self.instr)

    def run(self, warp: Warp, lanes: Lanes) -> None:
        """Execute it, on lanes that may do so together."""
        check_together(warp, lanes, self.instr)
        check_held(warp, lanes, self.use, self.instr)
        warp.use(self.use.touched)
        self.act(warp, lanes)

    def act(self, warp: Warp, lanes: Lanes) -> None:
        """What it does."""

    def value(self, name: str, warp: Warp, lanes: Lanes) -> int:
        """A value that must be the same in all lanes.  Errors: MachineError where lanes differ."""
        found = per_lane(self._values[name](warp, lanes)[0], lanes)
        if (found != found[0]).any():
            lane = int(lanes.index[(found != found[0]).argmax()])
            warp.fault(self.where(), lane, f"{name} differs from that of lane {int(lanes.index[0])}")
        return int(found[0])

    def each(self, name: str, warp: Warp, lanes: Lanes) -> list[int]:
        """A value of each lane."""
        return [int(x) for x in per_lane(self._values[name](warp, lanes)[0], lanes)]


class Hint(Protocol):
    """Nothing."""


# --- barriers -----------------------------------------------------------------------------------


class Waiting(Protocol, ABC):
    """An instruction that may block: `begin`, then, once the wait is done, `end`."""

    waits = True
    orders = True

    @abstractmethod
    def begin(self, warp: Warp, lanes: Lanes) -> Wait:
        """What must come true."""

    def end(self, warp: Warp, lanes: Lanes) -> None:
        """Once it is done."""


class CTABarrier(Waiting):
    """All warps meet; what they had loaded from shared memory has arrived."""

    def begin(self, warp: Warp, lanes: Lanes) -> Wait:
        check_together(warp, lanes, self.instr)
        warp.use_all()
        return warp.cta.meetings.all(warp, self.where())


class NamedBarrier(Waiting):
    """The same of some warps."""

    def begin(self, warp: Warp, lanes: Lanes) -> Wait:
        check_together(warp, lanes, self.instr)
        warp.use_all()
        number, count = (self.value(x, warp, lanes) for x in ("id", "count"))
        return warp.cta.meetings.named(warp, number, count, self.where())


class WarpBarrier(Protocol):
    """The lanes meet; loads from shared memory may still be under way, and are not waited for."""

    orders = True

    def act(self, warp: Warp, lanes: Lanes) -> None:
        warp.cta.clocks.meet([warp.number])


# --- mbarriers ----------------------------------------------------------------------------------


class BarrierInit(Protocol):
    """Each active lane initializes one."""

    def __init__(self, plan: Plan, instr: Instr) -> None:
        super().__init__(plan, instr)
        self._barrier = BarrierOperand(plan, instr)

    def act(self, warp: Warp, lanes: Lanes) -> None:
        counts = self.each("count", warp, lanes)
        for lane, count in zip(lanes.index.tolist(), counts, strict=True):
            barrier = self._barrier.of(warp, lanes_of(1 << lane), check=False)[0][0]
            barrier.init(warp, lane, count, self.where())


class BarrierFence(Protocol):
    """The copy engine knows those that the warp has initialized."""

    def act(self, warp: Warp, lanes: Lanes) -> None:
        for barrier in warp.cta.barriers:
            barrier.fence(warp.number)


class Arrive(Protocol):
    """One arrival of each active lane; of the elected lane for all where the instruction is collective.

    Then it stands behind what the warp did together: the loads that its registers come from.
    """

    orders = True

    def __init__(self, plan: Plan, instr: Instr) -> None:
        super().__init__(plan, instr)
        self._barrier = BarrierOperand(plan, instr)
        self._elects = instr.instruction.collective

    def act(self, warp: Warp, lanes: Lanes) -> None:
        if "zero" in self._values and self.value("zero", warp, lanes):
            warp.fault(self.where(), 0, "zero is not 0, so that the arrival may never happen")
        found = self._barrier.of(warp, lanes)
        if self._elects and len(found) > 1:
            warp.fault(self.where(), 0, "lanes name different barriers, one of them is elected")
        for barrier, mine in found:
            barrier.arrive(warp, mine, 1 if self._elects else mine.count, self.where())


class Expect(Protocol):
    """Each active lane expects bytes, then arrives."""

    orders = True

    def __init__(self, plan: Plan, instr: Instr) -> None:
        super().__init__(plan, instr)
        self._barrier = BarrierOperand(plan, instr)

    def act(self, warp: Warp, lanes: Lanes) -> None:
        counts = dict(zip(lanes.index.tolist(), self.each("bytes", warp, lanes), strict=True))
        for barrier, mine in self._barrier.of(warp, lanes):
            for lane in mine.index.tolist():
                barrier.expect(counts[lane])
                barrier.arrive(warp, lanes_of(1 << lane), 1, self.where())


class BarrierWait(Waiting):
    """The warp waits for the phases of all barriers that its active lanes name."""

    def __init__(self, plan: Plan, instr: Instr) -> None:
        super().__init__(plan, instr)
        self._barrier = BarrierOperand(plan, instr)

    def begin(self, warp: Warp, lanes: Lanes) -> Wait:
        parity = self.value("parity", warp, lanes)
        if parity not in (0, 1):
            warp.fault(self.where(), int(lanes.index[0]), f"parity {parity} is neither 0 nor 1")
        waits = [barrier.wait(parity) for barrier, _ in self._barrier.of(warp, lanes)]
        return Wait(
            lambda: all(w.done() for w in waits), lambda: ", ".join(w.why() for w in waits if not w.done())
        )

    def end(self, warp: Warp, lanes: Lanes) -> None:
        for barrier, mine in self._barrier.of(warp, lanes):
            barrier.passed(warp, mine)


# --- copies -------------------------------------------------------------------------------------


class Copy(Protocol):
    """Each active lane begins an asynchronous copy."""

    def __init__(self, plan: Plan, instr: Instr) -> None:
        super().__init__(plan, instr)
        self._copy = CopyBegin(plan, instr)

    def act(self, warp: Warp, lanes: Lanes) -> None:
        self._copy.run(warp, lanes)


class CopyCommit(Protocol):
    """What each active lane has begun is a group."""

    def act(self, warp: Warp, lanes: Lanes) -> None:
        warp.copies.commit(lanes)


class CopyWait(Protocol):
    """Groups of the active lanes land."""

    def act(self, warp: Warp, lanes: Lanes) -> None:
        for copy, mask in warp.copies.wait(self.value("pending", warp, lanes), lanes):
            copy.waited(warp, mask)


class CopyArrive(Protocol):
    """One arrival of each active lane, when the copies that it has begun have landed; it releases them alone."""

    def __init__(self, plan: Plan, instr: Instr) -> None:
        super().__init__(plan, instr)
        self._barrier = BarrierOperand(plan, instr)

    def act(self, warp: Warp, lanes: Lanes) -> None:
        for barrier, mine in self._barrier.of(warp, lanes):
            first = int(mine.index[0])
            arrive_later(
                warp, mine, barrier, lambda problem, lane=first: warp.fault(self.where(), lane, problem)
            )


class Bulk(Protocol):
    """Each active lane begins a load or a store of a box."""

    def __init__(self, plan: Plan, instr: Instr) -> None:
        super().__init__(plan, instr)
        self._begin = BulkBegin(plan, instr)

    def act(self, warp: Warp, lanes: Lanes) -> None:
        self._begin.run(warp, lanes)


class BulkCommit(Protocol):
    """What each active lane has begun to store is a group."""

    def act(self, warp: Warp, lanes: Lanes) -> None:
        warp.reads.commit(lanes)
        warp.stores.commit(lanes)


class BulkWaitRead(Protocol):
    """Groups of the active lanes have been read."""

    def act(self, warp: Warp, lanes: Lanes) -> None:
        for store, _ in warp.reads.wait(self.value("pending", warp, lanes), lanes):
            store.end_read()


class BulkWait(Protocol):
    """Groups of the active lanes have been written."""

    def act(self, warp: Warp, lanes: Lanes) -> None:
        pending = self.value("pending", warp, lanes)
        for store, _ in warp.reads.wait(pending, lanes):
            store.end_read()
        for store, _ in warp.stores.wait(pending, lanes):
            store.end_write()


class ProxyFence(Protocol):
    """The copy engine sees what the active lanes wrote."""

    def act(self, warp: Warp, lanes: Lanes) -> None:
        warp.cta.clocks.fence(warp.number, lanes)


# --- counters -----------------------------------------------------------------------------------


def _counter(plan: Plan, instr: Instr) -> AddressOperand:
    """The operand that names a counter."""
    operands = zip(instr.instruction.operands, instr.arguments, strict=True)
    operand, address = next((o, a) for o, a in operands if isinstance(a, Address))
    return AddressOperand(plan, instr, operand, address)


class Count(Protocol):
    """One more, for all that the warp did before."""

    orders = True

    def __init__(self, plan: Plan, instr: Instr) -> None:
        super().__init__(plan, instr)
        self._counter = _counter(plan, instr)

    def act(self, warp: Warp, lanes: Lanes) -> None:
        (name, at), data = self._counter.counter(warp, lanes, True)
        value = (int(data[at]) + 1) % COUNTED
        data[at] = value
        warp.cta.launch.counters.count((name, at), value, warp.cta.order)


class CountWait(Waiting):
    """The warp waits for a counter."""

    def __init__(self, plan: Plan, instr: Instr) -> None:
        super().__init__(plan, instr)
        self._counter = _counter(plan, instr)

    def begin(self, warp: Warp, lanes: Lanes) -> Wait:
        (name, at), data = self._counter.counter(warp, lanes, False)
        count = self._count(warp, lanes)
        alone = "; CTAs come one after the other here" * (warp.cta.launch.ctas > 1)
        return Wait(
            lambda: data[at] >= count, lambda: f"{name}[{at}], which is {data[at]}, to reach {count}{alone}"
        )

    def end(self, warp: Warp, lanes: Lanes) -> None:
        place, _ = self._counter.counter(warp, lanes, False)
        warp.cta.launch.counters.waited(place, self._count(warp, lanes), warp.cta.order)

    def _count(self, warp: Warp, lanes: Lanes) -> int:
        return self.value("count", warp, lanes) % COUNTED  # as the instruction compares


PROTOCOLS: dict[str, Callable[[Plan, Instr], Any]] = {
    names.CTA_BARRIER: CTABarrier,
    names.NAMED_BARRIER: NamedBarrier,
    names.WARP_BARRIER: WarpBarrier,
    names.CP_ASYNC: Copy,
    names.CP_ASYNC_COMMIT: CopyCommit,
    names.CP_ASYNC_WAIT: CopyWait,
    names.CP_ASYNC_ARRIVE: CopyArrive,
    names.MBARRIER_INIT: BarrierInit,
    names.MBARRIER_ARRIVE: Arrive,
    names.MBARRIER_EXPECT: Expect,
    names.MBARRIER_WAIT: BarrierWait,
    names.MBARRIER_FENCE: BarrierFence,
    names.BULK_LOAD: Bulk,
    names.BULK_STORE: Bulk,
    names.BULK_COMMIT: BulkCommit,
    names.BULK_WAIT_READ: BulkWaitRead,
    names.BULK_WAIT: BulkWait,
    names.PROXY_FENCE: ProxyFence,
    names.COUNT: Count,
    names.COUNT_WAIT: CountWait,
    names.HINT: Hint,
}
"""Protocol -> the class that carries it out."""
