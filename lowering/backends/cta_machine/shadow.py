"""Who touched each piece of a buffer in shared memory, and when: races, and what holds nothing.

A buffer is cut into *granules*, as large as its narrowest access, so that every access covers whole ones.  Of each the
shadow keeps the last write, and since then the last read of each warp and of the copy engine.  Two accesses by
different threads, one of them a write, must be ordered by what the later one knows (`clocks`).

Loads are asynchronous in the hardware: a load reads *until* one of its registers is used, and that is the time that a
later write must know of.  (The assembler orders an arrival at an mbarrier behind a load only where it depends on it.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...isa.operand_map import LANES
from ...storage import Buffer
from .clocks import COLLECTIVE, NEVER, Clocks
from .faults import Wrong


@dataclass
class Touch:
    """Which granules the lanes of a warp touch at once.

    Attributes:
        granules: ``[n, k]``, those of each access.
        at: ``[n]``, where that is, in elements or bytes as the buffer counts.
        rows: ``[n, 1]``, the lane of each access, `COLLECTIVE` for all together.
        own: ``[n, 1]``, the lanes' columns in a clock; -1 for all together, whose accesses are not ordered among them.
        marks: ``[n, k]``, the columns that a granule is marked with: that of all together where lanes share one.
        alone: whether no two accesses share a granule.
    """

    granules: Any
    at: Any
    rows: Any
    own: Any
    marks: Any
    alone: bool


def touch(clocks: Clocks, warp: int, lanes: Any, granules: Any, at: Any, collective: bool) -> Touch:
    """The touch of accesses by those lanes, ``[n]``."""
    together = clocks.together(warp)
    lane = np.full_like(lanes, COLLECTIVE) if collective else lanes
    own = np.full((lanes.size, 1), -1) if collective else (warp * LANES + lanes)[:, None]
    flat = np.sort(granules, axis=None)
    alone = bool((flat[1:] != flat[:-1]).all())
    marks = np.broadcast_to(np.full_like(own, together) if collective else own, granules.shape)
    if not alone and not collective:
        once = np.isin(granules, np.unique(granules)[np.unique(granules, return_counts=True)[1] == 1])
        marks = np.where(once, marks, together)
    return Touch(granules, at, lane[:, None], own, marks, alone)


@dataclass
class Pending:
    """A load of a warp whose result has not been used.

    Attributes:
        empty: whether some of what it reads holds nothing, so that the result does not either.
    """

    shadow: Shadow
    warp: int
    granules: Any
    event: int
    empty: bool

    def settle(self) -> None:
        """It has been used: the load is done."""
        self.shadow.settle(self)


class Shadow:
    """The history of a buffer in shared memory.

    Attributes:
        by_threads: whether neither the copy engine writes here nor copies that arrive at mbarriers.
        describe: what happened at an event, as text.
    """

    def __init__(
        self, buffer: Buffer, granule: int, clocks: Clocks, by_threads: bool, describe: Callable[[int], str]
    ) -> None:
        self.buffer, self.granule, self.clocks, self.by_threads = buffer, granule, clocks, by_threads
        self.describe = describe
        count, readers = buffer.bytes // granule, clocks.warps
        self._written = np.zeros(count, np.int32)  # the time; 0: never
        self._writer = np.zeros(count, np.int32)  # the column
        self._write = np.zeros(count, np.int32)  # the event
        self._read = np.zeros((readers, count), np.int32)  # the time when the last load began
        self._used = np.zeros((readers, count), np.int32)  # and when it was used
        self._reader = np.zeros((readers, count), np.int32)
        self._reading = np.zeros((readers, count), np.int32)  # the event
        self._copies = np.zeros(count, np.int16)  # of the copy engine that read now
        self._copied = np.zeros(count, np.int32)  # time, thread and event of the last that ended
        self._copier = np.zeros(count, np.int32)
        self._copy = np.zeros(count, np.int32)
        self._any_copies = False

    # --- reads ----------------------------------------------------------------------------------

    def read(self, warp: int, t: Touch, event: int) -> Pending:
        """A load by lanes of a warp.  Errors: Wrong."""
        clocks, g = self.clocks, t.granules
        empty = self._check_written(warp, t)
        before, reader = self._read[warp, g], self._reader[warp, g]
        marks = t.marks
        if before.any() and (t.own >= 0).any():
            unknown = (before > 0) & (reader != marks) & (clocks.view(warp)[t.rows, reader] < before)
            marks = np.where(unknown, clocks.together(warp), marks)
        self._read[warp, g] = clocks.now
        self._used[warp, g] = NEVER
        self._reader[warp, g] = marks
        self._reading[warp, g] = event
        return Pending(self, warp, g, event, empty)

    def settle(self, load: Pending) -> None:
        """The load's result has been used: what it read is read."""
        mine = load.granules[self._reading[load.warp, load.granules] == load.event]
        self._used[load.warp, mine] = self.clocks.now

    def _check_written(self, warp: int, t: Touch) -> bool:
        """Whether the last writes are known; returns whether there are granules without."""
        written = self._written[t.granules]
        if not (self.by_threads and written.max() <= self.clocks.floor(warp)):
            good = self._known(warp, t, written, self._writer[t.granules])
            if not good.all():
                which, g = self._first(t, good)
                raise Wrong(self._why_unread(int(g)), which)
        return bool(written.min() == 0)

    def _why_unread(self, g: int) -> str:
        name, writer = self.buffer.name, int(self._writer[g])
        what = self.describe(int(self._write[g]))
        if writer == self.clocks.under_way:
            return f"reads {name} before its wait: {what} is still under way"
        if self.clocks.is_copier(writer):
            return (
                f"reads {name} before its wait: the thread has waited for {what} neither at the mbarrier where it "
                "arrives nor behind a barrier after its wait_group"
            )
        if self._is_engine(writer):
            return f"reads {name} before its wait: the thread has not waited for {what} on its mbarrier"
        return f"races: reads what {self._who(writer)} wrote in {name} by {what}, with no barrier between"

    # --- writes ---------------------------------------------------------------------------------

    def write(self, warp: int, t: Touch, event: int, under_way: bool = False) -> None:
        """A store by lanes of a warp, or the beginning of an asynchronous one.  Errors: Wrong."""
        g = t.granules
        if not t.alone:
            raise Wrong(f"two threads write one element of {self.buffer.name} at once", self._twice(t))
        self._check_unused(warp, t)
        if under_way:
            self.begin(g, event)
        else:
            self._mark(g, self.clocks.now, t.marks, event)

    def begin(self, granules: Any, event: int) -> None:
        """An asynchronous write, which was found to be allowed."""
        self._mark(granules, NEVER, self.clocks.under_way, event)

    def land(self, granules: Any, column: Any, event: int) -> None:
        """What was under way is written, by those columns of a clock, now."""
        self._mark(granules, self.clocks.now, column, event)

    def _mark(self, g: Any, time: int, column: Any, event: int) -> None:
        self._written[g], self._writer[g], self._write[g] = time, column, event
        self._read[:, g] = 0
        self._used[:, g] = 0
        self._copied[g] = 0

    def _check_unused(self, warp: int, t: Touch, by_engine: bool = False) -> None:
        """Whether the last write and all reads since are known."""
        g, clocks = t.granules, self.clocks
        written, used = self._written[g], self._used[:, g]
        if not by_engine:
            used[warp] = self._read[warp, g]  # a warp's loads and stores keep their order
        if self.by_threads and not self._any_copies:
            floor = clocks.floor(warp)
            if written.max() <= floor and used.max() <= floor:
                return
        good = self._known(warp, t, written, self._writer[g])
        if not good.all():
            which, one = self._first(t, good)
            raise Wrong(self._why_unwritable(int(one)), which)
        for reader in range(clocks.warps):
            good = self._known(warp, t, used[reader], self._reader[reader, g])
            if by_engine:
                good &= used[reader] != NEVER
            if not good.all():
                which, one = self._first(t, good)
                raise Wrong(self._why_read(reader, int(one), warp, by_engine and reader == warp), which)
        if self._any_copies:
            good = (self._copies[g] == 0) & self._known(warp, t, self._copied[g], self._copier[g])
            if not good.all():
                which, one = self._first(t, good)
                raise Wrong(self._why_copied(int(one)), which)

    def _why_unwritable(self, g: int) -> str:
        name, writer = self.buffer.name, int(self._writer[g])
        what = self.describe(int(self._write[g]))
        if writer == self.clocks.under_way:
            return f"overwrites {name} before its wait: {what} is still under way"
        if self.clocks.is_copier(writer):
            return (
                f"overwrites {name} before its wait: the thread has waited for {what} neither at the mbarrier where it "
                "arrives nor behind a barrier after its wait_group"
            )
        if self._is_engine(writer):
            return f"overwrites {name} before its wait: the thread has not waited for {what} on its mbarrier"
        return (
            f"races: overwrites what {self._who(writer)} wrote in {name} by {what}, with no barrier between"
        )

    def _why_read(self, reader: int, g: int, warp: int, own: bool) -> str:
        name, what = self.buffer.name, self.describe(int(self._reading[reader, g]))
        began, column = int(self._read[reader, g]), int(self._reader[reader, g])
        if own or (self.clocks.view(warp)[:LANES, column] >= began).any():
            return (
                f"overwrites {name} while warp {reader} may still read it: the result of {what} was not used before "
                "the arrival that releases the buffer, and the arrival does not wait for it"
            )
        return f"races: overwrites what {self._who(column)} read in {name} by {what}, with no barrier between"

    def _why_copied(self, g: int) -> str:
        name, what = self.buffer.name, self.describe(int(self._copy[g]))
        if self._copies[g]:
            return f"overwrites {name} while {what} may still read it: its wait_group.read is missing"
        return f"races: overwrites what {what} read in {name}, with no barrier behind its wait_group.read"

    # --- the copy engine ------------------------------------------------------------------------

    def check_engine(self, warp: int, t: Touch, lane: int, writes: bool) -> None:
        """Whether the copy engine may read, or write, for a thread: the writes before must be fenced too.

        Errors: Wrong.
        """
        g = t.granules
        if writes:
            self._check_unused(warp, t, by_engine=True)
        elif self._check_written(warp, t):
            which, _ = self._first(t, self._written[g] > 0)
            raise Wrong(f"reads an element of {self.buffer.name} that holds nothing", which)
        seen = self.clocks.fenced(warp, lane)[self._writer[g]] >= self._written[g]
        if not seen.all():
            which, one = self._first(t, seen)
            what, who = self.describe(int(self._write[one])), self._who(int(self._writer[one]))
            raise Wrong(
                f"the copy engine may not see what {who} wrote in {self.buffer.name} by {what}: the writer's "
                "fence.proxy.async, before it meets this thread, is missing",
                which,
            )

    def begin_copy(self, granules: Any, event: int) -> None:
        """The copy engine reads."""
        self._any_copies = True
        self._copies[granules] += 1
        self._copy[granules] = event

    def end_copy(self, granules: Any, column: int) -> None:
        """It has read, and that thread knows."""
        self._copies[granules] -= 1
        self._copied[granules] = self.clocks.now
        self._copier[granules] = column

    # --- questions ------------------------------------------------------------------------------

    def _known(self, warp: int, t: Touch, time: Any, column: Any) -> Any:
        """Where accesses of those times by those columns come before the touch."""
        return (self.clocks.view(warp)[t.rows, column] >= time) | (column == t.own)

    def _is_engine(self, column: int) -> bool:
        return self.clocks.threads <= column < self.clocks.columns

    def _who(self, column: int) -> str:
        if column < self.clocks.threads or self.clocks.is_copier(column):
            column %= self.clocks.threads
            warp, lane = divmod(column, LANES)
            return f"warp {warp}, lane {lane}"
        return f"warp {column - self.clocks.columns}"

    def _first(self, t: Touch, good: Any) -> tuple[int, Any]:
        which, k = np.argwhere(~good)[0]
        return int(which), t.granules[which, k]

    def _twice(self, t: Touch) -> int:
        """The first access whose granules an earlier one has too."""
        seen: set[int] = set()
        for which, row in enumerate(t.granules.tolist()):
            if not seen.isdisjoint(row):
                return which
            seen.update(row)
        return 0
