"""Asynchronous copies by threads, from global to shared memory past the registers.

They land when the thread waits for their group or, where it arrives with them at an mbarrier, at a time that the
schedule chooses; then the arrival happens.  A thread's copies land in the order in which it began them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...isa.operand_map import LANES
from ...program import Address, Instr, instr_text
from .access import AddressOperand
from .expressions import Expressions, per_lane
from .faults import Wrong
from .lanes import Lanes, lanes_at, lanes_of
from .mbarrier import MBarrier
from .plan import Plan

if TYPE_CHECKING:
    from .shadow import Shadow
    from .warp import Warp


@dataclass
class AsyncCopy:
    """What the lanes of a warp copy by one instruction.

    Attributes:
        lanes: that copy.
        granules: ``[lanes, k]`` that they write.
        target, places: bytes of the buffer in shared memory, and which each lane writes: ``[lanes, size]``.
        source, taken, places_in_source: bytes of the buffer in global memory, of each byte whether it comes from there
            (else it is zero), and which those are.
        early: the bytes, where they were read at once.
        left: mask of the lanes whose bytes have not landed.
        times: of each lane of the warp, when they have.
    """

    lanes: Lanes
    shadow: Shadow
    event: int
    granules: Any
    target: Any
    places: Any
    source: Any
    taken: Any
    places_in_source: Any
    early: Any = None
    left: int = 0
    times: Any = field(default_factory=lambda: np.zeros(LANES, np.int32))

    def read(self) -> Any:
        """The bytes ``[lanes, size]``."""
        found = np.zeros(self.places.shape, np.uint8)
        found[self.taken] = self.source[self.places_in_source[self.taken]]
        return found

    def land(self, warp: Warp, mask: int) -> None:
        """The bytes of those lanes are in shared memory, if they have not been, as if they had stored them now."""
        now = lanes_of(mask & self.left)
        if not now.count:
            return
        clocks, mine = warp.cta.clocks, now.flags[self.lanes.index]
        found = self.read() if self.early is None else self.early
        self.target[self.places[mine]] = found[mine]
        self.shadow.land(self.granules[mine], clocks.copiers(warp.number, now.index)[:, None], self.event)
        self.left &= ~mask
        self.times[now.index] = warp.landed[now.index] = clocks.now
        if clocks.copies_arrive:
            clocks.now += 1  # so that one may be known to have landed, the next not

    def waited(self, warp: Warp, mask: int) -> None:
        """Those lanes have waited for their bytes."""
        self.land(warp, mask)
        index = lanes_of(mask).index
        warp.cta.clocks.learn_copies(warp.number, index, self.times[index])


@dataclass
class CopyArrival:
    """Lanes will arrive at an mbarrier when the copies that they had begun have landed.

    Attributes:
        parts: those copies, each with the mask of the lanes that it is of.
        times: of each lane of the warp, when the last one landed of the copies that had landed before.
        fail: raises the MachineError of a problem.
    """

    warp: Warp
    lanes: Lanes
    barrier: MBarrier
    parts: list[tuple[AsyncCopy, int]]
    times: Any
    fail: Callable[[str], None]

    def land(self) -> None:
        """The copies land, and the lanes arrive."""
        times = self.times.copy()
        for copy, mask in self.parts:
            copy.land(self.warp, mask)
            np.maximum(times, copy.times, out=times, where=lanes_of(mask).flags)
        index = self.lanes.index
        columns = self.warp.cta.clocks.copiers(self.warp.number, index)
        self.barrier.arrive_with_copies(columns, times[index], self.fail)


def arrive_later(warp: Warp, lanes: Lanes, barrier: MBarrier, fail: Callable[[str], None]) -> None:
    """One arrival of each lane, once the copies that it has begun have landed: at once if none is under way."""
    warp.under_way = [copy for copy in warp.under_way if copy.left]
    busy = 0
    for copy in warp.under_way:
        busy |= copy.left & lanes.mask
    masks = [m for part in (lanes.mask & ~busy, busy) if part for m in warp.cta.schedule.divided(part)]
    for mask in masks:
        parts = [(copy, copy.left & mask) for copy in warp.under_way if copy.left & mask]
        arrival = CopyArrival(warp, lanes_of(mask), barrier, parts, warp.landed.copy(), fail)
        if parts:
            warp.cta.engine.begin(arrival)
        else:
            arrival.land()


class CopyBegin:
    """The instruction that begins one."""

    def __init__(self, plan: Plan, instr: Instr) -> None:
        self._instr = instr
        names = [o.name for o in instr.instruction.operands]
        by_name = dict(zip(names, instr.arguments, strict=True))
        operands = dict(zip(names, instr.instruction.operands, strict=True))
        target, source, count = by_name["dst"], by_name["src"], by_name["n"]
        if not isinstance(target, Address) or not isinstance(source, Address):
            raise TypeError(f"{instr_text(instr)}: dst and src are addresses")
        self._size = operands["dst"].bytes
        self._target = AddressOperand(plan, instr, operands["dst"], target)
        self._source = AddressOperand(plan, instr, operands["src"], source)
        self._count = Expressions((count,), lambda: instr_text(instr))  # type: ignore[arg-type]

    def run(self, warp: Warp, lanes: Lanes) -> None:
        """Begin."""
        count = per_lane(self._count(warp, lanes)[0], lanes)
        outside = (count < 0) | (count > self._size)
        if outside.any():
            which = int(np.flatnonzero(outside)[0])
            self._fail(warp, lanes, which, f"copies {int(count[which])} of {self._size} bytes")
        place, touched = self._target.in_shared(warp, lanes)
        index = self._check_source(warp, lanes, count)
        name, event = self._target.buffer.name, warp.cta.note(self._instr, warp)
        shadow = warp.cta.shared.shadows[name]
        try:
            shadow.write(warp.number, touched, event, under_way=True)
        except Wrong as wrong:
            self._target.fail(warp, lanes, touched.at, wrong)
        inside = np.arange(self._size)
        copy = AsyncCopy(
            lanes,
            shadow,
            event,
            touched.granules,
            warp.cta.shared.arrays[name].view(np.uint8),
            place.index[0][:, None] * self._target.buffer.unit_bytes + inside,
            warp.cta.memory[self._source.buffer.name].bytes(),
            inside < count[:, None],
            index[:, None] * self._source.buffer.unit_bytes + inside,
            left=lanes.mask,
        )
        if warp.cta.schedule.lands_early():
            copy.early = copy.read()
        warp.copies.begin(copy, lanes)
        if warp.cta.clocks.copies_arrive:
            warp.under_way.append(copy)

    def _check_source(self, warp: Warp, lanes: Lanes, count: Any) -> Any:
        """Elements that the lanes read from on; of lanes that read nothing, whatever."""
        index, bit = self._source.index(warp, lanes)
        unit = self._source.buffer.unit_bytes
        memory = warp.cta.memory[self._source.buffer.name]
        for size in np.unique(count[count > 0]).tolist():
            mine = count == size
            used = index[mine]
            try:
                self._source.check_alignment(used, bit if isinstance(bit, int) else bit[mine])
                memory.check(used, -(-size // unit), False, warp.cta.order)
            except Wrong as wrong:
                self._source.fail(warp, lanes_at(lanes.index[mine]), used, wrong)
        return index

    def _fail(self, warp: Warp, lanes: Lanes, which: int, problem: str) -> None:
        warp.fault(instr_text(self._instr), int(lanes.index[which]), problem)
