"""Pipelines from which one instruction is taken away: the machine says so, under every schedule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lowering import MachineError
from lowering.backends.cta_machine import EXAMPLES
from lowering.control import Compare, If, TensorMap, While
from lowering.isa import protocols
from lowering.program import Instr, Statement, every
from lowering.registers import LANE

from .cta_cases import (
    BULK_GROUP,
    COMMIT,
    FENCE,
    RESULT,
    SOURCE,
    SYNC,
    TURN,
    WARP,
    WARP_SYNC,
    arrive,
    arrive_behind,
    arrive_first_behind,
    arrive_with_copies,
    bulk_load,
    bulk_store,
    by_lane,
    by_warp,
    copy_async,
    empty,
    execute,
    expect,
    full,
    ldmatrix,
    load,
    named,
    on,
    read,
    repeat,
    spin,
    start,
    store,
    wait,
    wait_copies,
    wait_reads,
    wait_stores,
    write,
)

TURNS = 6
ROWS = TensorMap("rows", SOURCE, (1024,), (), (128,))
OUT = TensorMap("out", RESULT, (1024,), (), (32,))
MAPS = (ROWS, OUT)


def by_engine() -> list[Statement]:
    """One lane loads boxes, a warp takes matrices out of them and sends words back through two slots."""
    stage, parity = TURN % 2, TURN // 2 % 2
    slot = 256 + 32 * stage
    feeder = repeat(
        TURNS,
        wait(empty(stage), 1 - parity),
        expect(full(stage), 512),
        bulk_load(128 * stage, ROWS, (128 * TURN,), full(stage)),
    )
    user = repeat(
        TURNS,
        wait(full(stage), parity),
        ldmatrix(128 * stage + 4 * LANE, 4),
        arrive_behind(empty(stage), 4),
        by_lane(0, wait_reads(1)),
        WARP_SYNC,
        write(slot + LANE, 5),
        FENCE,
        WARP_SYNC,
        by_lane(0, bulk_store(OUT, (32 * TURN,), slot), BULK_GROUP),
    )
    return [
        *start((full(0), 1), (full(1), 1), (empty(0), 1), (empty(1), 1)),
        by_warp(1, by_lane(0, *feeder)),
        by_warp(0, *user, by_lane(0, wait_stores())),
    ]


def by_copies() -> list[Statement]:
    """Each thread copies words two turns ahead; the other warp's are stored."""

    def begin(turn: Any) -> list[Statement]:
        word = 2 * LANE + 64 * WARP
        copy = copy_async(128 * (turn % 3) + word, 128 * turn + word, 8, 8)
        return [on(Compare(turn, "<", TURNS), copy), COMMIT]

    return [
        *begin(0),
        *begin(1),
        *repeat(
            TURNS,
            wait_copies(1),
            SYNC,
            *begin(TURN + 2),
            read(128 * (TURN % 3) + 2 * LANE + 64 * (1 - WARP), count=2),
            store(128 * TURN + 2 * LANE + 64 * WARP, count=2),
        ),
    ]


def by_arrivals() -> list[Statement]:
    """The same with barriers that the copies arrive at, and that the readers give their stages back at."""

    def begin(turn: Any) -> list[Statement]:
        word = 2 * LANE + 64 * WARP
        copy = copy_async(128 * (turn % 3) + word, 128 * turn + word, 8, 8)
        return [on(Compare(turn, "<", TURNS), copy), arrive_with_copies(full(turn % 3))]

    stage, ahead = TURN % 3, TURN + 2
    return [
        *start(*[(full(i), 64) for i in range(3)], *[(empty(i), 2) for i in range(3)], fence=False),
        *begin(0),
        *begin(1),
        *repeat(
            TURNS,
            spin(full(stage), TURN // 3 % 2),
            read(128 * stage + 2 * LANE + 64 * (1 - WARP), count=2),
            store(128 * TURN + 2 * LANE + 64 * WARP, count=2),
            arrive_first_behind(empty(stage), 0),
            spin(empty(ahead % 3), 1 - ahead // 3 % 2),
            *begin(ahead),
        ),
    ]


def by_threads() -> list[Statement]:
    """Warp 0 writes, two warps read, over mbarriers; the readers meet on a named barrier to swap what they have."""
    place = 64 * (TURN % 2)
    swap = [
        named(1, 64),
        write(128 + 32 * WARP + LANE, 1),
        named(1, 64),
        read(128 + 32 * (1 - WARP) + LANE, 2),
    ]
    reader = repeat(
        TURNS,
        wait(full(TURN % 2), TURN // 2 % 2),
        read(place + 32 * WARP + (LANE ^ 1), 1),
        *swap,
        store(64 * TURN + 32 * WARP + LANE, 2),
        by_lane(0, arrive(empty(TURN % 2))),
    )
    writer = repeat(
        TURNS,
        wait(empty(TURN % 2), 1 - TURN // 2 % 2),
        load(64 * TURN + LANE),
        write(place + LANE),
        load(64 * TURN + 32 + LANE),
        write(place + 32 + LANE),
        arrive(full(TURN % 2)),
    )
    return [
        *start((full(0), 32), (full(1), 32), (empty(0), 2), (empty(1), 2), fence=False),
        If(Compare(WARP, "==", 2), tuple(writer), tuple(reader)),
    ]


WANTED = np.arange(128 * TURNS).reshape(TURNS, 128)
CASES: dict[str, tuple[list[Statement], int, Any]] = {
    "by_engine": (by_engine(), 2, WANTED[:, 32:64]),  # register 1 of ldmatrix: its second matrix
    "by_copies": (by_copies(), 2, WANTED.reshape(TURNS, 2, 64)[:, ::-1]),
    "by_arrivals": (by_arrivals(), 2, WANTED.reshape(TURNS, 2, 64)[:, ::-1]),
    "by_threads": (by_threads(), 3, np.arange(64 * TURNS).reshape(TURNS, 2, 32)[:, ::-1] ^ 1),
}


def protocol_instructions(body: Any) -> Iterator[Instr]:
    return (s for s in every(tuple(body)) if isinstance(s, Instr) and s.instruction.protocol)


def without(body: Any, number: int, seen: list[int]) -> tuple[Statement, ...]:
    """The statements but for the protocol instruction of that number."""
    out: list[Statement] = []
    for s in body:
        if isinstance(s, If):
            s = replace(s, body=without(s.body, number, seen), orelse=without(s.orelse, number, seen))
        elif isinstance(s, While):
            s = replace(s, body=without(s.body, number, seen))
        elif isinstance(s, Instr) and s.instruction.protocol:
            seen[0] += 1
            if seen[0] == number + 1:
                continue
        out.append(s)
    return tuple(out)


@pytest.mark.parametrize("name", CASES)
def test_the_pipelines_are_right(name: str) -> None:
    body, warps, wanted = CASES[name]
    found = execute(*body, warps=warps, maps=MAPS, schedules=(*EXAMPLES, *range(3, 20)))
    np.testing.assert_array_equal(found[: wanted.size], wanted.ravel())


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, i) for name, case in CASES.items() for i in range(len(list(protocol_instructions(case[0]))))],
)
def test_each_instruction_is_missed(name: str, number: int) -> None:
    """An error under every schedule; where a result alone is missing, that."""
    body, warps, wanted = CASES[name]
    removed = list(protocol_instructions(body))[number]
    changed = without(body, number, [0])
    assert len(list(protocol_instructions(changed))) + 1 == len(list(protocol_instructions(body)))
    for schedule in EXAMPLES:
        if removed.instruction.protocol == protocols.BULK_STORE:
            found = execute(*changed, warps=warps, maps=MAPS, schedules=(schedule,))
            assert (found[: wanted.size] != wanted.ravel()).all()
            continue
        with pytest.raises(MachineError):
            execute(*changed, warps=warps, maps=MAPS, schedules=(schedule,))
