"""Happens-before: what each thread of a CTA knows to be done, as vector clocks.

Time is one counter of the CTA that moves on at every release.  An access is marked with its thread and the time.  A
thread that releases (at a barrier, by an arrival) publishes what it knows and that all it did so far is done; one that
acquires takes over what was published.  An access by thread t at time s is known to another thread if that thread's
entry for t is at least s.  (Flanagan, Freund, "FastTrack: efficient and precise dynamic race detection", 2009.)

What the copy engine writes is marked with the mbarrier that counts it, in place of a thread: only who waits on that
barrier knows of it.  Where copies of threads arrive at mbarriers, each thread has a second column that they are marked
with: the thread itself knows no more of them than it has waited for, and their arrivals publish nothing else.

Beside what is known stands what is *fenced*: writes of threads that the copy engine can see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...isa.operand_map import LANES
from .lanes import Lanes

COLLECTIVE = LANES
"""In place of a lane: all of the warp together.  It knows what each of them knows."""

NEVER = 2**31 - 1
"""The time of what is not done yet: later than all times."""


@dataclass
class Knowledge:
    """What was published: time by column, of what is known and what is fenced."""

    known: Any
    fenced: Any

    def take(self, other: Knowledge) -> None:
        """This and the other."""
        np.maximum(self.known, other.known, out=self.known)
        np.maximum(self.fenced, other.fenced, out=self.fenced)


class Clocks:
    """The vector clocks of a CTA's threads.

    The columns of a clock: each thread, each thread's copies if they arrive at mbarriers, each mbarrier, each warp's
    lanes together (derived: the least of theirs), and last what is under way, of which nobody knows.

    Attributes:
        copies_arrive: whether copies have columns of their own.
    """

    def __init__(self, warps: int, barriers: int, copies_arrive: bool = False) -> None:
        self.warps = warps
        self.threads = warps * LANES
        self.copies_arrive = copies_arrive
        self._first_barrier = self.threads * (2 if copies_arrive else 1)
        self.columns = self._first_barrier + barriers
        self.under_way = self.columns + warps
        self.now = 1
        self._known = np.zeros((warps, LANES + 1, self.under_way + 1), np.int32)
        self._fenced = np.zeros((warps, LANES, self.columns), np.int32)
        self._floor = [0] * warps
        self._stale = [True] * warps

    def barrier(self, number: int) -> int:
        """The column of an mbarrier."""
        return self._first_barrier + number

    def copiers(self, warp: int, index: Any) -> Any:
        """The columns that copies of lanes are marked with."""
        return (self.threads if self.copies_arrive else 0) + warp * LANES + index

    def is_copier(self, column: int) -> bool:
        """Whether it is one of copies that have their own."""
        return self.threads <= column < self._first_barrier

    def together(self, warp: int) -> int:
        """The column of a warp's lanes together."""
        return self.columns + warp

    def nothing(self) -> Knowledge:
        return Knowledge(*(np.zeros(self.columns, np.int32) for _ in range(2)))

    def view(self, warp: int) -> Any:
        """What each lane of the warp knows, and in row `COLLECTIVE` what all do: times ``[33, columns]``."""
        if self._stale[warp]:
            known, threads = self._known[warp], self.threads
            lanes = known[:LANES]
            whole = lanes[:, :threads].reshape(LANES, self.warps, LANES)
            lanes[:, self.columns : self.under_way] = whole.min(axis=2)
            known[COLLECTIVE] = lanes.min(axis=0)
            self._floor[warp] = int(known[COLLECTIVE, :threads].min())
            self._stale[warp] = False
        return self._known[warp]

    def floor(self, warp: int) -> int:
        """All that threads did until this time is known to every lane of the warp."""
        self.view(warp)
        return self._floor[warp]

    def fenced(self, warp: int, lane: int) -> Any:
        """Until when a thread knows writes to be seen by the copy engine, whose own always are: times ``[columns]``."""
        own = self._fenced[warp, lane]
        row = self.view(warp)[lane].copy()
        row[: self._first_barrier] = own[: self._first_barrier]
        row[self.columns : self.under_way] = own[: self.threads].reshape(self.warps, LANES).min(axis=1)
        return row

    # --- events ---------------------------------------------------------------------------------

    def release(self, warp: int, lanes: Lanes) -> Knowledge:
        """What the lanes publish; time moves on."""
        known = self._known[warp, lanes.rows, : self.columns].max(axis=0)
        known[warp * LANES + lanes.index] = self.now
        fenced = self._fenced[warp, lanes.rows].max(axis=0)
        self.now += 1
        return Knowledge(known, fenced)

    def acquire(self, warp: int, lanes: Lanes, published: Knowledge) -> None:
        """The lanes know it from here on."""
        known = self._known[warp, :, : self.columns]
        known[lanes.rows] = np.maximum(known[lanes.rows], published.known)
        fenced = self._fenced[warp]
        fenced[lanes.rows] = np.maximum(fenced[lanes.rows], published.fenced)
        self._stale[warp] = True

    def meet(self, warps: list[int]) -> None:
        """All lanes of the warps meet: each knows what any did; time moves on."""
        known = self._known[warps, :LANES, : self.columns].max(axis=(0, 1))
        own = (np.array(warps)[:, None] * LANES + np.arange(LANES)).ravel()
        known[own] = self.now
        fenced = self._fenced[warps].max(axis=(0, 1))
        self._known[warps, :LANES, : self.columns] = known
        self._fenced[warps] = fenced
        for warp in warps:
            self._stale[warp] = True
        self.now += 1

    def learn_copies(self, warp: int, index: Any, times: Any) -> None:
        """Lanes have waited for their own copies, until those times."""
        if self.copies_arrive:
            columns = self.copiers(warp, index)
            self._known[warp, index, columns] = np.maximum(self._known[warp, index, columns], times)
            self._stale[warp] = True

    def fence(self, warp: int, lanes: Lanes) -> None:
        """The copy engine sees what the lanes have written so far."""
        if self.copies_arrive:
            columns = self.copiers(warp, lanes.index)
            self._fenced[warp, lanes.index, columns] = self._known[warp, lanes.index, columns]
        self._fenced[warp, lanes.index, warp * LANES + lanes.index] = self.now
        self.now += 1
