"""One warp of a CTA: its registers, its variables, and what it has begun and not ended."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...errors import MachineError
from ...isa.operand_map import LANES
from .groups import Groups
from .lanes import EVERY, Lanes
from .shadow import Pending

if TYPE_CHECKING:
    from .cp_async import AsyncCopy
    from .cta import CTA
    from .plan import Plan

LANE = np.arange(LANES)


class Warp:
    """A warp.

    Attributes:
        number: its number in the CTA.
        words: all registers, uint32 ``[32 lanes, words]``, numbered by the plan.
        values: by name, the variables' values: ints where lanes agree, else arrays ``[32]``.
        held: by name, the mask of the lanes where the variable holds a value.
        under_way: copies of which not all lanes' parts have landed, where copies arrive at mbarriers.
        copies, reads, stores: groups of asynchronous copies; of bulk stores that are not read, and not written.
        wait: what it is blocked on.
        run: the rest of its program.
    """

    def __init__(self, cta: CTA, number: int, plan: Plan, values: dict[str, Any]) -> None:
        self.cta, self.number, self.plan = cta, number, plan
        self.words = np.full((LANES, plan.words), 0xFFFFFFFF, np.uint32)
        self._full: set[int] = set()  # words that every lane has written
        self._some: dict[int, int] = {}  # word -> lanes that have, of others
        self._lost: dict[int, int] = {}  # word -> the event that read memory without a value into it
        self._pending: dict[
            int, list[Pending]
        ] = {}  # word -> loads from shared memory that are not known to be done
        self.values = {**values, "lane": LANE, "warp": number}
        self.held = dict.fromkeys(self.values, EVERY)
        self.copies, self.reads, self.stores = Groups(), Groups(), Groups()
        self.under_way: list[AsyncCopy] = []
        self.landed = np.zeros(LANES, np.int32)  # times of the lanes' last copies that have landed
        self.wait: Any = None
        self.run: Iterator[Any] = iter(())

    def fault(self, where: str, lane: int, problem: str) -> NoReturn:
        """Raise a MachineError."""
        raise MachineError(f"{where}: {problem} (warp {self.number}, lane {lane}, {self.cta.name})")

    # --- registers ------------------------------------------------------------------------------

    def missing(self, words: frozenset[int], lanes: Lanes) -> tuple[int, int] | None:
        """(word, lane) of one that holds nothing."""
        if words <= self._full:
            return None
        for word in sorted(words - self._full):
            lost = lanes.mask & ~self._some.get(word, 0)
            if lost:
                return word, (lost & -lost).bit_length() - 1
        return None

    def wrote(self, words: frozenset[int], lanes: Lanes) -> None:
        """The lanes have written these."""
        if self._lost:
            for word in words & self._lost.keys():
                del self._lost[word]
        if lanes.all:
            self._full |= words
            return
        for word in words - self._full:
            mask = self._some.get(word, 0) | lanes.mask
            self._some[word] = mask
            if mask == EVERY:
                self._full.add(word)

    def lose(self, words: frozenset[int], lanes: Lanes, event: int) -> None:
        """A load has brought what holds no value to those lanes."""
        for word in words:
            held = EVERY if word in self._full else self._some.get(word, 0)
            self._some[word] = held & ~lanes.mask
            self._lost[word] = event
        self._full -= words

    def why_missing(self, word: int) -> str:
        """Where a register without a value comes from, for a message."""
        if word not in self._lost:
            return "which holds nothing"
        return f"which holds nothing: {self.cta.describe(self._lost[word])} read what was never written"

    # --- loads from shared memory ---------------------------------------------------------------

    def begin(self, load: Pending, words: frozenset[int]) -> None:
        """A load's result will be in these registers."""
        for word in words:
            self._pending.setdefault(word, []).append(load)

    def use(self, words: frozenset[int]) -> None:
        """Registers are read or overwritten: the loads into them are done."""
        if not self._pending or words.isdisjoint(self._pending):
            return
        self._settle(words & self._pending.keys())

    def use_all(self) -> None:
        """All loads are done."""
        self._settle(set(self._pending))

    def _settle(self, words: AbstractSet[int]) -> None:
        done = {id(load): load for word in words for load in self._pending[word]}
        for load in done.values():
            load.settle()
        rest = {
            word: [x for x in loads if id(x) not in done]
            for word, loads in self._pending.items()
            if word not in words
        }
        self._pending = {word: loads for word, loads in rest.items() if loads}
