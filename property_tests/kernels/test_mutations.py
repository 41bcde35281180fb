"""Kernels with one mistake: each is an error of the machine or has wrong numbers, so machine and tests can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from lowering import MachineError
from lowering.backends.cta_machine import EXAMPLES
from lowering.control import If
from lowering.isa.mbarrier import MBARRIER_ARRIVE
from lowering.kernels import Config
from lowering.program import Address, Instr, Program, instr_text
from tilelayout.expr import Expr

from .mutants import Place, mutant, places
from .problems import Case, Placed, arrays, check, reference
from .simulated import found_for, simulated

CASE = Case(
    7, "sm_90a", ("float16", "float16"), "float16", "float32", (70, 75, 229), {"A": "row", "B": "column", "D": "row"},
    pads={"A": 1, "D": 2}, exact=False,
)  # fmt: skip
"""Rims on all sides; 12 tiles for 3 CTAs, and 8 stages of each: all stages are used again, also by the next tile."""
CUTS = {
    "tma": Config((32, 32, 32), (2, 1), 2, "tma", slots=1),  # whose rows of D are whole units of 16 bytes
    "cp_async": Config((32, 32, 32), (2, 1), 3, "cp_async"),
    "threads": Config((64, 32, 32), (2, 1), 3, "cp_async", slots=1, sender="threads", spread=True),
    "two slots": Config((64, 32, 32), (2, 1), 3, "cp_async", slots=2, sender="threads"),
    "registers": Config((32, 32, 32), (2, 1), 2, "registers"),
}
HINTS = ("prefetch", "setmaxnreg")
"""Instructions that change no number and no order."""


@cache
def problem(feed: str) -> tuple[Case, dict[str, Placed], Program]:
    case = replace(CASE, config=CUTS[feed], extents=(70, 72 if feed == "tma" else 75, 229))
    given = arrays(case)
    return case, given, found_for(case, given)[0].program


def verdict(feed: str, change: Callable[[Program], Program], schedule: int = 0) -> str:
    """What is wrong with the kernel after a change; "" for nothing."""
    case, given, _ = problem(feed)
    try:
        found = simulated(case, given, change, schedule)
    except MachineError as error:
        return str(error)
    want, tolerance = reference(case, {name: x.array for name, x in given.items()})
    try:
        check(case, found, want, tolerance)
    except AssertionError:
        return "wrong numbers"
    return ""


def text(statement: Any) -> str:
    return instr_text(statement) if isinstance(statement, Instr) else ""


def synchronizing(feed: str) -> list[tuple[Place, Instr]]:
    """All barriers, waits, arrivals, fences and groups.

    But for the feeder's last wait: warps that gave back the stage before the last one had seen the last but one arrive,
    and so a further arrival there is the next phase's in any case.
    """
    found = [
        (at, s)
        for at, s in places(problem(feed)[2].body)
        if isinstance(s, Instr)
        and s.instruction.protocol
        and not text(s).startswith(HINTS)
        and not any(isinstance(a, Address) and a.buffer.space == "global" for a in s.arguments)
    ]
    feeding = [(at, s) for at, s in found if "wait" in text(s) and "[empty(stage)]" in text(s)]
    assert len(feeding) == (0 if feed == "registers" else 2)
    return [x for x in found if x not in feeding[1:]]


@pytest.mark.parametrize("schedule", EXAMPLES[2:3])
@pytest.mark.parametrize("feed", CUTS)
def test_without_a_mistake_there_is_nothing_wrong(feed: str, schedule: int) -> None:
    assert verdict(feed, lambda p: p, schedule) == ""


def missing(feed: str, at: Place, schedule: int) -> str:
    return verdict(feed, lambda p: mutant(p, at, lambda _: ()), schedule)


@pytest.mark.parametrize("feed", CUTS)
def test_no_synchronization_can_be_left_out(feed: str) -> None:
    """Each barrier, wait, arrival, fence and group, one at a time."""
    found = synchronizing(feed)
    assert len(found) >= {"tma": 20, "cp_async": 10, "threads": 14, "two slots": 12, "registers": 3}[feed]
    unseen = [(at, text(s)) for at, s in found if not missing(feed, at, 0)]
    assert not unseen


@pytest.mark.slow
@pytest.mark.parametrize("schedule", EXAMPLES[1:])
@pytest.mark.parametrize("feed", CUTS)
def test_nor_under_other_schedules(feed: str, schedule: int) -> None:
    unseen = [(at, text(s)) for at, s in synchronizing(feed) if not missing(feed, at, schedule)]
    assert not unseen


@pytest.mark.slow
@pytest.mark.parametrize("feed", CUTS)
def test_no_product_and_no_access_to_shared_memory_can_be_left_out(feed: str) -> None:
    """Loads, copies, products, stores: none is idle.  Which of those to global memory are done the rims decide."""
    found = [(at, s) for at, s in places(problem(feed)[2].body) if isinstance(s, Instr)]
    there = touches("shared")
    found = [(at, s) for at, s in found if ("mma.sync" in text(s) or there(s)) and not touches("global")(s)]
    assert not [text(s) for at, s in found if not missing(feed, at, 0)]


# --- other mistakes -----------------------------------------------------------------------------


def first(feed: str, wanted: Callable[[Instr], bool]) -> tuple[Place, Instr]:
    return next((at, s) for at, s in places(problem(feed)[2].body) if isinstance(s, Instr) and wanted(s))


def last(feed: str, wanted: Callable[[Instr], bool]) -> tuple[Place, Instr]:
    return [(at, s) for at, s in places(problem(feed)[2].body) if isinstance(s, Instr) and wanted(s)][-1]


def replaced(feed: str, at: Place, *with_: Instr) -> str:
    return verdict(feed, lambda p: mutant(p, at, lambda _: with_))


def is_release(s: Instr) -> bool:
    return "mbarrier.arrive" in text(s) and len(s.arguments) > 2


@pytest.mark.parametrize("feed", ["tma", "cp_async"])
def test_a_release_waits_for_the_registers(feed: str) -> None:
    """Giving a stage back by a plain arrival, which nothing ties to what was read from it."""
    at, s = first(feed, is_release)
    assert replaced(feed, at, Instr(MBARRIER_ARRIVE, s.arguments[:1]))


@pytest.mark.parametrize("feed", ["tma", "cp_async"])
def test_a_release_of_another_stage(feed: str) -> None:
    at, s = first(feed, is_release)
    barrier = s.arguments[0]
    assert isinstance(barrier, Address)
    stages = CUTS[feed].stages
    other = Address(barrier.buffer, tuple([(x + 1) % stages for x in barrier.coordinate]))
    assert replaced(feed, at, Instr(s.instruction, (other, *s.arguments[1:])))


def shifted(s: Instr, space: str, by: int) -> Instr:
    """The instruction with its address in a memory so many elements further."""
    return Instr(
        s.instruction,
        tuple([
            Address(a.buffer, (a.coordinate[0] + by,)) if isinstance(a, Address) and a.buffer.space == space else a
            for a in s.arguments
        ]),
    )  # fmt: skip


def touches(space: str, name: str = "") -> Callable[[Instr], bool]:
    """Whether it moves data there; barriers are no data."""

    def found(s: Instr) -> bool:
        return any(
            isinstance(a, Address) and a.buffer.space == space and a.buffer.dtype != "uint64"
            and (not name or a.buffer.name == name)
            for a in s.arguments
        )  # fmt: skip

    return found


@pytest.mark.parametrize("which", [first, last])
@pytest.mark.parametrize("feed", CUTS)
@pytest.mark.parametrize("name", ["sA", "sB"])
def test_a_shifted_address_in_shared_memory(feed: str, name: str, which: Any) -> None:
    """By 16 bytes, which any access allows."""
    at, s = which(feed, touches("shared", name))
    assert replaced(feed, at, shifted(s, "shared", 8))


@pytest.mark.parametrize("feed", ["cp_async", "registers"])
@pytest.mark.parametrize("name", ["A", "B", "D"])
def test_a_shifted_address_in_global_memory(feed: str, name: str) -> None:
    """By 16 bytes: what lies between rows and around the matrix is guarded."""
    at, s = first(feed, touches("global", name))
    assert replaced(feed, at, shifted(s, "global", 8))


@pytest.mark.parametrize("feed", ["cp_async", "registers"])
def test_an_unguarded_store_is_seen(feed: str) -> None:
    """Of an element between two rows of D: the condition on the column is dropped."""
    stores = [
        (at, s)
        for at, s in places(problem(feed)[2].body)
        if isinstance(s, If) and any(isinstance(x, Instr) and touches("global", "D")(x) for x in s.body)
    ]
    assert stores
    said = [verdict(feed, lambda p, at=at: mutant(p, at, lambda s: s.body)) for at, _ in stores[::9]]
    assert any("guarded" in x for x in said), said


@pytest.mark.parametrize("feed", CUTS)
def test_swapped_stages_are_seen(feed: str) -> None:
    """A fragment that comes from the stage beside the one it should come from."""
    for name in ("sA", "sB"):
        at, s = last(feed, lambda s, name=name: touches("shared", name)(s) and "ldmatrix" in text(s))
        stages, elements = CUTS[feed].stages, 32 * 32
        address = next(a for a in s.arguments if isinstance(a, Address))
        x = address.coordinate[0]
        assert isinstance(x, Expr)
        moved = shifted(s, "shared", 0)
        other = Address(address.buffer, ((x + elements) % (stages * elements),))
        moved = Instr(s.instruction, tuple([other if isinstance(a, Address) else a for a in s.arguments]))
        assert replaced(feed, at, moved)


def test_a_product_in_another_place() -> None:
    """Two accumulators swapped."""
    at, s = first("cp_async", lambda s: "mma.sync" in text(s))
    other = last("cp_async", lambda t: "mma.sync" in text(t) and t.arguments[0] != s.arguments[0])[1]
    assert replaced("cp_async", at, Instr(s.instruction, (other.arguments[0], *s.arguments[1:])))
