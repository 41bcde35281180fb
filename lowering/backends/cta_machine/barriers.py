"""Barriers at which warps meet: that of the CTA, and named ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...isa.operand_map import LANES
from .waits import Wait

if TYPE_CHECKING:
    from .cta import CTA
    from .warp import Warp

NAMED = range(1, 16)
"""The numbers of named barriers; 0 is the CTA's."""


class Meeting:
    """One barrier: the threads that it waits for, and the warps that are there."""

    def __init__(self, cta: CTA, number: int) -> None:
        self._cta, self._number = cta, number
        self._wanted = 0
        self._here: list[int] = []
        self._turn = 0

    def arrive(self, warp: Warp, wanted: int, where: str) -> Wait:
        """A warp has come; all go on once `wanted` threads have.

        Errors: MachineError where warps want different numbers of threads.
        """
        if self._here and wanted != self._wanted:
            warp.fault(
                where,
                0,
                f"wants {wanted} threads, warp {self._here[0]} is at this barrier and wants {self._wanted}",
            )
        self._wanted = wanted
        self._here.append(warp.number)
        turn = self._turn
        if len(self._here) * LANES == wanted:
            self._cta.clocks.meet(sorted(self._here))
            self._here = []
            self._turn += 1
        return Wait(lambda: self._turn > turn, self._why)

    def _why(self) -> str:
        here = ", ".join(map(str, sorted(self._here)))
        return f"barrier {self._number}: {self._wanted // LANES} warps must come, {len(self._here)} have (warps {here})"


class Meetings:
    """The barriers of a CTA."""

    def __init__(self, cta: CTA, threads: int) -> None:
        self._cta, self._threads = cta, threads
        self._by_number: dict[int, Meeting] = {}

    def all(self, warp: Warp, where: str) -> Wait:
        """At the CTA's barrier."""
        return self._at(0).arrive(warp, self._threads, where)

    def named(self, warp: Warp, number: Any, count: Any, where: str) -> Wait:
        """At a named barrier.

        Errors: MachineError for a number that is none, and a count that is no part of the CTA.
        """
        if not isinstance(number, int) or number not in NAMED:
            warp.fault(where, 0, f"there is no named barrier {number}, only 1 to 15")
        if not isinstance(count, int) or count % LANES or not LANES <= count <= self._threads:
            warp.fault(
                where, 0, f"{count} threads: a multiple of {LANES} up to the CTA's {self._threads} is needed"
            )
        return self._at(number).arrive(warp, count, where)

    def _at(self, number: int) -> Meeting:
        return self._by_number.setdefault(number, Meeting(self._cta, number))
