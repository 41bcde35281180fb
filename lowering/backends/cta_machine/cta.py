"""One CTA: its warps stepped in the order of a schedule, its shared memory, its barriers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import MachineError
from ...program import Instr, instr_text
from .barriers import Meetings
from .bulk import Engine
from .clocks import Clocks
from .lanes import EVERY, lanes_of
from .mbarrier import MBarrier
from .order import Counters, Order
from .plan import BARRIER_BYTES, Plan
from .shared_memory import CTAShared
from .statements import Compiled, run_all
from .warp import Warp

if TYPE_CHECKING:
    from .boxes import Boxes
    from .global_memory import GlobalBuffer
    from .schedule import Schedule


@dataclass
class Launch:
    """What the CTAs of a launch share.

    Attributes:
        values: integers by name: parameters and the grid.
        words: uint32 words of the parameters that instructions take.
        memory: buffers in global memory, by name.
        boxes: tensor maps, by name.
        numerics: model of sums.
        ctas: how many.
        counters: who has counted what.
    """

    values: dict[str, int]
    words: dict[str, Any]
    memory: dict[str, GlobalBuffer]
    boxes: dict[str, Boxes]
    numerics: str
    ctas: int
    counters: Counters


class CTA:
    """A CTA that is about to begin.

    Attributes:
        order: its number in the launch, and what it knows of the others.
        name: for messages.
        clocks: who knows what.
        shared: its shared memory.
        memory: the launch's global memory.
        barriers: mbarriers, by number.
        meetings: barriers of warps.
        engine: loads, and arrivals of copies, under way.
    """

    def __init__(
        self,
        plan: Plan,
        code: list[Compiled],
        launch: Launch,
        at: tuple[int, int, int],
        number: int,
        schedule: Schedule,
    ) -> None:
        self.plan, self.launch, self.schedule = plan, launch, schedule
        self.order = Order(number, launch.ctas)
        self.name = f"CTA {at[0]}" if at[1:] == (0, 0) else f"CTA {at}"
        self.memory, self.numerics = launch.memory, launch.numerics
        self.clocks = Clocks(plan.warps, plan.barriers, plan.copies_arrive)
        self.shared = CTAShared(plan, self.clocks, self.describe)
        self.barriers: list[MBarrier] = [
            MBarrier(x, self.clocks.barrier(i), self.clocks) for i, x in enumerate(_names(plan))
        ]
        self.meetings = Meetings(self, self.clocks.threads)
        self.engine = Engine(schedule.lands_early)
        self._events: list[tuple[Instr, int]] = []
        places = dict(zip(("cta", "cta_y", "cta_z"), at, strict=True))
        self._warps = [Warp(self, i, plan, {**launch.values, **places}) for i in range(plan.warps)]
        for warp in self._warps:
            warp.run = run_all(code, warp, lanes_of(EVERY))

    def note(self, instr: Instr, warp: Warp) -> int:
        """The number of an event, for `describe`."""
        self._events.append((instr, warp.number))
        return len(self._events) - 1

    def describe(self, event: int) -> str:
        """What happened then."""
        instr, warp = self._events[event]
        return f"`{instr_text(instr)}` of warp {warp}"

    def run(self) -> None:
        """Until all warps have ended.

        Errors: MachineError for what no hardware defines, and where no warp can go on.
        """
        live = list(range(len(self._warps)))
        while live:
            able = [i for i in live if self._warps[i].wait is None or self._warps[i].wait.done()]
            if not able:
                if not self.engine.busy:
                    raise MachineError(self._deadlock(live))
                self.engine.land(self.schedule.lands_next(self.engine.busy))
                continue
            warp = self._warps[self.schedule.next(able)]
            try:
                warp.wait = next(warp.run)
            except StopIteration:
                live.remove(warp.number)
            if self.engine.busy:
                which = self.schedule.lands_now(self.engine.busy)
                if which is not None:
                    self.engine.land(which)
        self._end()

    def _end(self) -> None:
        """Errors: MachineError for what the copy engine still does to shared memory that is another CTA's now."""
        while self.engine.busy:
            self.engine.land()
        for barrier in self.barriers:
            for load in barrier.unseen():
                raise MachineError(
                    f"{self.describe(load.event)}: {self.name} ends, and no thread has waited for it on {barrier.name}"
                )
        for warp in self._warps:
            for store, _ in warp.reads.left():
                raise MachineError(
                    f"{self.describe(store.event)}: {self.name} ends while the copy engine may still read its shared "
                    "memory: a wait_group.read is missing"
                )
            for store, _ in warp.stores.left():
                store.write()

    def _deadlock(self, live: list[int]) -> str:
        lines = [f"{self.name}: no warp can go on"]
        reasons: dict[str, list[int]] = {}
        for i in live:
            reasons.setdefault(self._warps[i].wait.why(), []).append(i)
        for reason, warps in reasons.items():
            lines.append(f"  warp{'s' * (len(warps) > 1)} {', '.join(map(str, warps))}: {reason}")
        ended = [str(w.number) for w in self._warps if w.number not in live]
        lines += [f"  warps that have ended: {', '.join(ended)}"] if ended else []
        return "\n".join(lines)


def _names(plan: Plan) -> list[str]:
    """What mbarriers are called, by number."""
    return [
        f"{place.buffer.name}[{i * BARRIER_BYTES // place.buffer.unit_bytes}]"
        for place in plan.shared.values()
        if place.barriers
        for i in range(place.buffer.bytes // BARRIER_BYTES)
    ]
