"""Small kernels for the machine that runs CTAs: words between global memory, shared memory and registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lowering import MachineError
from lowering.backends.cta_machine import EXAMPLES, run_grid
from lowering.control import All, Compare, If, Parameter, Set, TensorMap, While
from lowering.isa import BAR_SYNC, LOADS, STORES
from lowering.isa.barrier import BAR_NAMED, BAR_WARP
from lowering.isa.bulk import BULK_COMMIT, BULK_LOAD, BULK_STORE, BULK_WAIT, BULK_WAIT_READ, FENCE_PROXY_ASYNC
from lowering.isa.cp_async import CP_ASYNC, CP_ASYNC_COMMIT, CP_ASYNC_WAIT
from lowering.isa.ldmatrix import LDMATRIX
from lowering.isa.mbarrier import (
    CP_ASYNC_ARRIVE,
    MBARRIER_ARRIVE,
    MBARRIER_EXPECT,
    MBARRIER_FENCE,
    MBARRIER_INIT,
    MBARRIER_SPIN,
    MBARRIER_WAIT,
    mbarrier_arrive_behind,
)
from lowering.program import Address, Buffer, Instr, Program, Registers, Slot, Statement
from lowering.registers import LANE
from tilelayout.expr import Index, Var

WARP = Var("warp", 0, 31)
THREAD = 32 * WARP + LANE

HELD = Registers("r", "R", "uint32", 8, "b32")
SOURCE = Buffer("source", "A", "uint32", (0,), 0, "global", 16)
RESULT = Buffer("result", "D", "uint32", (0,), 0, "global", 16)
SHARED = Buffer("shared", "S", "uint32", (512,), 0, "shared", 1024)
FULL = Buffer("full", "full", "uint64", (4,), 64, "shared", 8)
EMPTY = Buffer("empty", "empty", "uint64", (4,), 64, "shared", 8)
BUFFERS = (SOURCE, RESULT, SHARED, FULL, EMPTY)


def slots(*numbers: int) -> tuple[Slot, ...]:
    return tuple([Slot(HELD, i) for i in numbers])


def load(at: Index, into: int = 0, buffer: Buffer = SOURCE, count: int = 1) -> Instr:
    record = LOADS[buffer.space, "b32", count]  # type: ignore[index]
    return Instr(record, (slots(*range(into, into + count)), Address(buffer, (at,))))


def store(at: Index, of: int = 0, buffer: Buffer = RESULT, count: int = 1) -> Instr:
    record = STORES[buffer.space, "b32", count]  # type: ignore[index]
    return Instr(record, (Address(buffer, (at,)), slots(*range(of, of + count))))


def read(at: Index, into: int = 0, count: int = 1) -> Instr:
    """From shared memory."""
    return load(at, into, SHARED, count)


def write(at: Index, of: int = 0, count: int = 1) -> Instr:
    """To shared memory."""
    return store(at, of, SHARED, count)


SYNC = Instr(BAR_SYNC, ())
WARP_SYNC = Instr(BAR_WARP, ())
FENCE = Instr(FENCE_PROXY_ASYNC, ())
INIT_FENCE = Instr(MBARRIER_FENCE, ())
COMMIT = Instr(CP_ASYNC_COMMIT, ())
BULK_GROUP = Instr(BULK_COMMIT, ())


def named(number: Index, count: Index) -> Instr:
    return Instr(BAR_NAMED, (number, count))


def copy_async(to: Index, at: Index, n: Index = 16, size: int = 16) -> Instr:
    return Instr(CP_ASYNC[size], (Address(SHARED, (to,)), Address(SOURCE, (at,)), n))


def wait_copies(pending: Index = 0) -> Instr:
    return Instr(CP_ASYNC_WAIT, (pending,))


def init(bar: Address, count: Index) -> Instr:
    return Instr(MBARRIER_INIT, (bar, count))


def arrive(bar: Address) -> Instr:
    return Instr(MBARRIER_ARRIVE, (bar,))


def arrive_behind(bar: Address, *registers: int, zero: Index = 0, elected: bool = True) -> Instr:
    record = mbarrier_arrive_behind(len(registers), elected, "b32")
    return Instr(record, (bar, zero, *[slots(i) for i in registers]))


def arrive_first_behind(bar: Address, *registers: int, zero: Index = 0) -> Instr:
    """By lane 0, not an elected one."""
    return arrive_behind(bar, *registers, zero=zero, elected=False)


def arrive_with_copies(bar: Address) -> Instr:
    return Instr(CP_ASYNC_ARRIVE, (bar,))


def expect(bar: Address, count: Index) -> Instr:
    return Instr(MBARRIER_EXPECT, (bar, count))


def wait(bar: Address, parity: Index) -> Instr:
    return Instr(MBARRIER_WAIT, (bar, parity))


def spin(bar: Address, parity: Index) -> Instr:
    """The same without a wait that suspends."""
    return Instr(MBARRIER_SPIN, (bar, parity))


def full(i: Index = 0) -> Address:
    return Address(FULL, (i,))


def empty(i: Index = 0) -> Address:
    return Address(EMPTY, (i,))


def bulk_load(to: Index, tensor: TensorMap, at: tuple[Index, ...], bar: Address) -> Instr:
    return Instr(BULK_LOAD[len(at)], (Address(SHARED, (to,)), tensor, *at, bar))


def bulk_store(tensor: TensorMap, at: tuple[Index, ...], of: Index) -> Instr:
    return Instr(BULK_STORE[len(at)], (tensor, *at, Address(SHARED, (of,))))


def wait_reads(pending: Index = 0) -> Instr:
    return Instr(BULK_WAIT_READ, (pending,))


def wait_stores(pending: Index = 0) -> Instr:
    return Instr(BULK_WAIT, (pending,))


def ldmatrix(at: Index, into: int = 0) -> Instr:
    move = next(m for m in LDMATRIX if m.name == "ldmatrix.m8n8.x4.b16")
    return Instr(move.instruction, (slots(*range(into, into + 4)), Address(SHARED, (at,))))


def on(condition: Compare | All, *body: Statement) -> If:
    return If(condition, body)


def by_lane(lane: int, *body: Statement) -> If:
    return If(Compare(LANE, "==", lane), body)


def by_warp(warp: int, *body: Statement) -> If:
    return If(Compare(WARP, "==", warp), body)


def by_thread(*body: Statement) -> If:
    """By the first thread of the CTA."""
    return If(All((Compare(WARP, "==", 0), Compare(LANE, "==", 0))), body)


def repeat(times: Index, *body: Statement) -> list[Statement]:
    """The body so often, with `TURN` counting."""
    return [Set(TURN, 0), While(Compare(TURN, "<", times), (*body, Set(TURN, TURN + 1)))]


TURN = Var("turn", 0, 1023)


def kernel(
    *body: Statement,
    warps: int = 1,
    buffers: tuple[Buffer, ...] = BUFFERS,
    parameters: tuple[Parameter, ...] = (),
    maps: tuple[TensorMap, ...] = (),
) -> Program:
    return Program("kernel", warps, (), (), body, buffers, (HELD,), (), parameters, maps)


def execute(
    *body: Statement,
    warps: int = 1,
    grid: tuple[int, int, int] = (1, 1, 1),
    source: Any = None,
    size: int = 1024,
    values: Mapping[str, int | float] | None = None,
    schedules: tuple[int, ...] = EXAMPLES,
    written: Mapping[str, Any] | None = None,
    guarded: Mapping[str, Any] | None = None,
    **more: Any,
) -> Any:
    """The result, which must be the same under each schedule; `source` counts from 0."""
    program = kernel(*body, warps=warps, **more)
    source = np.arange(1024, dtype=np.uint32) if source is None else source
    memory = {"source": source, "result": np.full(size, 0xFFFFFFFF, np.uint32)}
    memory = {b.name: memory[b.name] for b in program.buffers if b.space == "global"}
    found = [
        run_grid(program, grid, memory, values or {}, schedule=s, written=written, guarded=guarded)["result"]
        for s in schedules
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
    assert (memory["result"] == 0xFFFFFFFF).all()
    return found[0]


def refuse(said: str, *body: Statement, schedules: tuple[int, ...] = EXAMPLES, **more: Any) -> None:
    """An error under each of the schedules."""
    for s in schedules:
        with pytest.raises(MachineError, match=said):
            execute(*body, schedules=(s,), **more)


def start(*counts: tuple[Address, int], fence: bool = True) -> list[Statement]:
    """Barriers for those arrivals, known to all and to the copy engine."""
    return [by_thread(*[init(bar, n) for bar, n in counts], *([INIT_FENCE] if fence else [])), SYNC]


def on_buffer(statement: Any, buffer: Buffer) -> Any:
    """A statement on another shared buffer."""
    if isinstance(statement, If):
        return replace(statement, body=tuple(on_buffer(s, buffer) for s in statement.body))
    if not isinstance(statement, Instr):
        return statement
    moved = [
        Address(buffer, a.coordinate) if isinstance(a, Address) and a.buffer == SHARED else a
        for a in statement.arguments
    ]
    return Instr(statement.instruction, tuple(moved))
