"""Copies through shared memory as kernels: on the reference machine of whole CTAs, and assembled for every target.

In by the copy engine, `cp.async` or through registers, out by predicated stores: a box of one tensor into another.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lowering import Tile, copy, lower
from lowering.backends.assemble import assemble
from lowering.backends.cta_machine import run_grid
from lowering.backends.ptx import ptx_module
from lowering.control import Compare, If, Parameter
from lowering.errors import MachineError
from lowering.isa import BAR_SYNC
from lowering.isa.bulk import BULK_COMMIT, BULK_WAIT, FENCE_PROXY_ASYNC
from lowering.isa.cp_async import CP_ASYNC_COMMIT, CP_ASYNC_WAIT
from lowering.isa.mbarrier import MBARRIER_EXPECT, MBARRIER_FENCE, MBARRIER_INIT, MBARRIER_WAIT
from lowering.program import Address, Instr, Program
from lowering.target import TARGETS, target
from lowering.variants.copy_bulk_tensor import bulk_bytes
from tilelayout import LayoutError, S, TileLayout
from tilelayout.expr import Var

from .window_cases import BARRIER, Tensor

BOX = (16, 64)
THREADS = 64
LANE, WARP = Var("lane", 0, 31), Var("warp", 0, THREADS // 32 - 1)
FIRST = Compare(LANE + 32 * WARP, "==", 0)
SYNC = Instr(BAR_SYNC, ())
TILE = Tile("tile", (2, *BOX), "float16", TileLayout(S[(2, *BOX)]).swizzle(3, 3, 3), "shared")[Var("s", 0, 1)]


def by_bulk(call: Any, name: str) -> tuple[Program, list[Any]]:
    load = lower(
        call,
        target=name,
        scope="cta",
        launch=THREADS,
        dispatch="copy.bulk_tensor",
        config={"barrier": BARRIER},
    )
    expect = Instr(MBARRIER_EXPECT, (BARRIER, bulk_bytes(load.program)))
    body = [
        If(FIRST, (Instr(MBARRIER_INIT, (BARRIER, 1)), Instr(MBARRIER_FENCE, ()))),
        SYNC,
        If(FIRST, (expect, *load.program.body)),
        Instr(MBARRIER_WAIT, (BARRIER, 0)),
    ]
    return load.program, body


def by_cp_async(call: Any, name: str) -> tuple[Program, list[Any]]:
    load = lower(call, target=name, scope="cta", launch=THREADS, dispatch="copy.cp_async")
    body = [*load.program.body, Instr(CP_ASYNC_COMMIT, ()), Instr(CP_ASYNC_WAIT, (0,)), SYNC]
    return load.program, body


def by_registers(call: Any, name: str) -> tuple[Program, list[Any]]:
    parts = [
        lower(call, target=name, scope="cta", launch=THREADS, config={"part": part}).program
        for part in ("load", "store")
    ]
    program = replace(parts[0], outputs=(), scratch=parts[0].outputs)
    return program, [*parts[0].body, *parts[1].body, SYNC]


FEEDS = {"bulk": by_bulk, "cp_async": by_cp_async, "registers": by_registers}
FIRST_TARGET = {"bulk": 90, "cp_async": 80, "registers": 75}


def kernel(feed: str, tensor: Tensor, name: str = "sm_90", out: str = "registers") -> Program:
    """One box of X, through shared memory, to the same place of Y."""
    window = tensor.window
    loaded, body = FEEDS[feed](copy(TILE, window), name)
    back = copy(replace(window, name="Y"), TILE)
    if out == "bulk":
        stored = lower(
            back,
            target=name,
            scope="cta",
            launch=THREADS,
            dispatch="copy.bulk_tensor",
            config={"whole_units": True},
        ).program
        store = (*stored.body, Instr(BULK_COMMIT, ()), Instr(BULK_WAIT, (0,)))
        body += [Instr(FENCE_PROXY_ASYNC, ()), SYNC, If(FIRST, store)]
    else:
        stored = lower(back, target=name, scope="cta", launch=THREADS).program
        body += stored.body
    names = {
        "M": (1, 1 << 30),
        "N": (1, 1 << 30),
        "ld": (1, 1 << 30),
        "t0": (0, 1 << 20),
        "t1": (0, 1 << 20),
        "s": (0, 1),
    }
    shared = next(b for b in loaded.buffers if b.name == "tile")
    tensors = [next(b for b in p.buffers if b.space == "global") for p in (loaded, stored)]
    barriers = [BARRIER.buffer] if feed == "bulk" else []
    body = [_in(s, shared) for s in body]
    return Program(
        f"through_{feed}",
        THREADS // 32,
        (),
        (),
        tuple(body),
        (*tensors, shared, *barriers),
        (*loaded.scratch, *stored.scratch),
        parameters=tuple([Parameter(n, "s32", lo, hi) for n, (lo, hi) in names.items()]),
        maps=(*loaded.maps, *stored.maps),
    )


def _in(s: Any, shared: Any) -> Any:
    """The statement with the one buffer of the tile: each copy has it under a role of its own."""
    if isinstance(s, If):
        return If(
            s.condition, tuple([_in(x, shared) for x in s.body]), tuple([_in(x, shared) for x in s.orelse])
        )
    if isinstance(s, Instr):
        moved = [
            Address(shared, a.coordinate) if isinstance(a, Address) and a.buffer.name == shared.name else a
            for a in s.arguments
        ]
        return Instr(s.instruction, tuple(moved))
    return s


CASES = [
    Tensor(sizes, leading, BOX, origin, symbolic=True)
    for sizes, leading, origin in (
        ((16, 64), 64, (0, 0)), ((10, 64), 64, (0, 0)), ((37, 100), 104, (32, 64)), ((20, 77), 80, (16, 64)),
        ((1, 1), 8, (0, 0)), ((16, 71), 72, (0, 64)),
    )
]  # fmt: skip


@pytest.mark.parametrize("out", ["registers", "bulk"])
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("tensor", CASES, ids=lambda t: f"{t.sizes}-{t.origin}")
def test_a_box_through_shared_memory(feed: str, tensor: Tensor, out: str) -> None:
    """Guarded around and between rows, read and written; every schedule has the same result."""
    if out == "bulk":  # rows of whole units of 16 bytes
        tensor = replace(tensor, sizes=(tensor.sizes[0], -(-tensor.sizes[1] // 8) * 8))
    program = kernel(feed, replace(tensor, alignment=16), out=out)
    source, before = tensor.memory(1), tensor.memory(2)
    good, place = tensor.inside()
    parameters = {k: v for k, v in tensor.variables.items() if k != "base"} | {"s": 1}
    for schedule in range(4):
        found = run_grid(
            program,
            (1, 1, 1),
            {"X": source.data.view(np.float16), "Y": before.data.view(np.float16)},
            parameters,
            schedule=schedule,
            guarded={"X": ~source.allowed, "Y": ~before.allowed},
        )["Y"].view(np.uint16)
        wanted = before.data.copy()
        wanted[place[good]] = source.data[place[good]]
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("feed", FEEDS)
def test_a_broken_promise_of_whole_units_is_an_error(feed: str) -> None:
    """The copy engine would store behind the rows."""
    tensor = replace(CASES[2], alignment=16)
    memory = {"X": tensor.memory(1).data.view(np.float16), "Y": tensor.memory(2).data.view(np.float16)}
    parameters = {k: v for k, v in tensor.variables.items() if k != "base"} | {"s": 1}
    with pytest.raises(
        LayoutError, match="Y_map promises rows of whole units of 16 bytes, they have 100 elements"
    ):
        run_grid(kernel(feed, tensor, out="bulk"), (1, 1, 1), memory, parameters)


def test_without_its_wait_the_machine_objects() -> None:
    """That `cp_async` is done later is seen: a kernel that forgets to wait is an error."""
    program = kernel("cp_async", CASES[0])
    body = tuple([s for s in program.body if not (isinstance(s, Instr) and s.instruction == CP_ASYNC_WAIT)])
    memory = {"X": CASES[0].memory(1).data.view(np.float16), "Y": CASES[0].memory(2).data.view(np.float16)}
    parameters = {k: v for k, v in CASES[0].variables.items() if k != "base"} | {"s": 0}
    with pytest.raises(MachineError):
        run_grid(replace(program, body=body), (1, 1, 1), memory, parameters)


@pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for it"
)
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_every_target_assembles_what_it_has(feed: str, name: str) -> None:
    where = target(name)
    if where.sm < FIRST_TARGET[feed]:
        return
    out = "bulk" if where.sm >= 90 else "registers"
    program = kernel(feed, replace(CASES[2], alignment=16), name, out)
    assert assemble(ptx_module(program, where, THREADS), where).local_bytes == 0
