"""Numbers that warps draw, and counts that they wait for: on the machine, in the texts, moved to other places."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lowering import MachineError
from lowering.backends.assemble import assemble, assemble_cuda
from lowering.backends.cta_machine import EXAMPLES, run_grid
from lowering.backends.cuda_program import cuda_program
from lowering.backends.ptx import ptx_module
from lowering.compose import relocated
from lowering.control import CTA, Compare, Draw, If, Set, TensorMap, While, assigned
from lowering.isa import LOADS, STORES
from lowering.isa.barrier import BAR_WARP
from lowering.isa.bulk import BULK_COMMIT, BULK_STORE, BULK_WAIT, BULK_WAIT_READ, FENCE_PROXY_ASYNC
from lowering.isa.counting import COUNT, COUNT_WAIT
from lowering.isa.mbarrier import MBARRIER_INIT
from lowering.program import Address, Buffer, Instr, Program, Registers, Slot, program_text, unrolled
from lowering.registers import LANE
from lowering.storage import RUN_TIME
from lowering.target import TARGETS, target
from tilelayout import LayoutError
from tilelayout.expr import Index, Var

COUNTERS = Buffer("counters", "counters", "int32", (RUN_TIME,), 32, "global", 4)
DATA = Buffer("data", "data", "int32", (RUN_TIME,), 32, "global", 4)
SEEN = Buffer("seen", "seen", "int32", (RUN_TIME,), 32, "global", 4)
HELD = Registers("r", "R", "int32", 1, "b32")
NUMBER = Var("number", 0, 1 << 20)
PIECES, WARPS, CTAS = 13, 3, 4
DRAW = Draw(NUMBER, Address(COUNTERS, (0,)))


def load(buffer: Buffer, at: Index) -> Instr:
    return Instr(LOADS["global", "b32", 1], ((Slot(HELD, 0),), Address(buffer, (at,))))


def store(buffer: Buffer, at: Index) -> Instr:
    return Instr(STORES["global", "b32", 1], (Address(buffer, (at,)), (Slot(HELD, 0),)))


def count(at: Index = 1) -> Instr:
    return Instr(COUNT, (Address(COUNTERS, (at,)),))


def wait(n: Index = PIECES, at: Index = 1) -> Instr:
    return Instr(COUNT_WAIT, (Address(COUNTERS, (at,)), n))


def kernel(*body: Any, warps: int = WARPS) -> Program:
    return Program("kernel", warps, (), (), body, (COUNTERS, DATA, SEEN), (HELD,))


def whole(counted: bool = True, waited: bool = True) -> Program:
    """Each piece is stored by whoever draws it; then every CTA reads all that the others wrote."""
    one = (load(SEEN, 32 * NUMBER + LANE), store(DATA, 32 * NUMBER + LANE), *([count()] if counted else []))
    t = Var("t", 0, PIECES)
    read = (load(DATA, 32 * t + LANE), Set(t, t + 1))
    return kernel(
        DRAW,
        While(Compare(NUMBER, "<", PIECES), (*one, DRAW)),
        *([wait()] if waited else []),
        Set(t, 0),
        While(Compare(t, "<", PIECES), read),
    )


def execute(program: Program, schedule: int, ctas: int = CTAS) -> dict[str, Any]:
    memory = {
        "counters": np.zeros(2, np.int32),
        "data": np.full(32 * PIECES, -1, np.int32),
        "seen": np.arange(32 * PIECES, dtype=np.int32),
    }
    empty = {"data": np.zeros(32 * PIECES, bool)}
    return run_grid(program, (ctas, 1, 1), memory, schedule=schedule, written=empty)


@pytest.mark.parametrize("schedule", EXAMPLES)
def test_every_piece_is_drawn_once_and_seen_by_all(schedule: int) -> None:
    found = execute(whole(), schedule)
    np.testing.assert_array_equal(found["data"], np.arange(32 * PIECES))
    assert found["counters"].tolist() == [PIECES + WARPS * CTAS, PIECES]  # each warp draws one in vain


@pytest.mark.parametrize("schedule", EXAMPLES)
def test_what_is_not_waited_for_is_not_seen(schedule: int) -> None:
    """Not even where it has been written: what one CTA wrote no other knows of."""
    with pytest.raises(MachineError, match=r"reads what another CTA has written in data|holds nothing"):
        execute(whole(waited=False), schedule)


@pytest.mark.parametrize("schedule", EXAMPLES)
def test_what_nobody_counts_is_waited_for_in_vain(schedule: int) -> None:
    with pytest.raises(MachineError, match=r"counters\[1\], which is 0, to reach 13"):
        execute(whole(counted=False), schedule)


def test_a_count_is_of_what_came_before_it() -> None:
    """What a CTA writes behind its count is not known to who waits for that."""
    writes = (store(DATA, LANE), count(), store(DATA, 32 + LANE))
    first = If(Compare(CTA, "==", 0), (load(SEEN, LANE), *writes))
    for at, said in ((0, ""), (32, "reads what another CTA has written in data, number 32")):
        other = If(Compare(CTA, "==", 1), (wait(1), load(DATA, at + LANE)))
        program = kernel(first, other, warps=1)
        if said:
            with pytest.raises(MachineError, match=said):
                execute(program, 0, 2)
        else:
            execute(program, 0, 2)


@pytest.mark.parametrize("schedule", EXAMPLES)
def test_fewer_counts_than_there_are_say_nothing_of_the_last(schedule: int) -> None:
    """Which come first is open, though here it is always the same ones."""
    short = whole().body
    fewer = tuple([wait(PIECES - 1) if s == wait() else s for s in short])
    assert fewer != short
    with pytest.raises(MachineError, match="reads what another CTA has written in data"):
        execute(kernel(*fewer), schedule)


@pytest.mark.parametrize("waits", ["written", "read", "none"])
def test_a_bulk_store_is_counted_when_it_was_waited_for(waits: str) -> None:
    """Not when shared memory may be overwritten."""
    shared = Buffer("shared", "S", "int32", (64,), 32, "shared", 128)
    tensor = TensorMap("data_map", DATA, (64,), (), (64,))
    fill = Instr(STORES["shared", "b32", 1], (Address(shared, (LANE,)), (Slot(HELD, 0),)))
    rest = Instr(STORES["shared", "b32", 1], (Address(shared, (LANE + 32,)), (Slot(HELD, 0),)))
    one = If(
        Compare(LANE, "==", 0),
        (
            Instr(BULK_STORE[1], (tensor, 0, Address(shared, (0,)))),
            Instr(BULK_COMMIT, ()),
            *([Instr(BULK_WAIT if waits == "written" else BULK_WAIT_READ, (0,))] if waits != "none" else []),
        ),
    )
    first = If(
        Compare(CTA, "==", 0),
        (load(SEEN, LANE), fill, rest, Instr(FENCE_PROXY_ASYNC, ()), Instr(BAR_WARP, ()), one, count(),
         Instr(BULK_WAIT, (0,))),
    )  # fmt: skip
    second = If(Compare(CTA, "==", 1), (wait(1), load(DATA, LANE)))
    program = Program(
        "kernel", 1, (), (), (first, second), (COUNTERS, DATA, SEEN, shared), (HELD,), maps=(tensor,)
    )
    memory = {
        "counters": np.zeros(2, np.int32),
        "data": np.zeros(64, np.int32),
        "seen": np.arange(64, dtype=np.int32),
    }
    if waits == "written":
        run_grid(program, (2, 1, 1), memory)
    else:
        with pytest.raises(MachineError, match="reads what another CTA has written in data"):
            run_grid(program, (2, 1, 1), memory)


def test_a_counter_is_nobodys_but_of_who_counts() -> None:
    def by(cta: int, *body: Any) -> If:
        return If(Compare(CTA, "==", cta), body)

    plain = (load(SEEN, LANE), If(Compare(LANE, "==", 0), (store(COUNTERS, 0),)))
    with pytest.raises(MachineError, match="another CTA has written in counters"):
        execute(kernel(by(0, *plain), by(1, DRAW), warps=1), 0, 2)
    with pytest.raises(MachineError, match="reads what another CTA has written in counters"):
        execute(kernel(by(0, count()), by(1, load(COUNTERS, 1)), warps=1), 0, 2)
    execute(kernel(by(0, count()), by(1, count()), by(2, wait(2)), warps=1), 0, 3)


def test_counters_are_unsigned() -> None:
    program = kernel(wait(-1), warps=1)
    with pytest.raises(MachineError, match=r"counters\[1\], which is 0, to reach 4294967295"):
        execute(program, 0, 1)
    memory = {
        "counters": np.full(2, -1, np.int32),
        "data": np.zeros(1, np.int32),
        "seen": np.zeros(1, np.int32),
    }
    assert run_grid(program, (1, 1, 1), memory)["counters"].tolist() == [-1, -1]
    assert run_grid(kernel(count(), warps=1), (1, 1, 1), memory)["counters"].tolist() == [-1, 0]


def test_knowledge_is_handed_on() -> None:
    """Who has waited and counts says what it knows, too."""

    def by(cta: int, *body: Any) -> If:
        return If(Compare(CTA, "==", cta), body)

    body = (
        by(0, load(SEEN, LANE), store(DATA, LANE), count(0)),
        by(1, wait(1, 0), count(1)),
        by(2, wait(1, 1), load(DATA, LANE)),
    )
    execute(kernel(*body, warps=1), 0, 3)


def test_refusals_of_the_machine() -> None:
    half = If(Compare(LANE, "<", 16), (DRAW,))
    with pytest.raises(MachineError, match=r"number = draw .* all lanes must execute it together"):
        execute(kernel(half), 0)
    with pytest.raises(MachineError, match="all lanes must execute it together"):
        execute(kernel(If(Compare(LANE, "<", 16), (count(),))), 0)
    with pytest.raises(MachineError, match="lanes name several counters"):
        execute(kernel(Draw(NUMBER, Address(COUNTERS, (LANE % 2,)))), 0)
    with pytest.raises(MachineError, match="touches elements 2 to 2 of counters, which has 2"):
        execute(kernel(count(2)), 0)
    with pytest.raises(
        LayoutError, match="holds float32 in global memory, a counter is an integer of 32 bits"
    ):
        Draw(NUMBER, Address(Buffer("x", "x", "float32", (4,), 32, "global", 4), (0,)))
    with pytest.raises(LayoutError, match="holds int32 in shared memory"):
        Draw(NUMBER, Address(Buffer("x", "x", "int32", (4,), 32, "shared", 4), (0,)))
    with pytest.raises(LayoutError, match="number has bounds 1 to 5, a counter begins at 0"):
        Draw(Var("number", 1, 5), Address(COUNTERS, (0,)))
    with pytest.raises(LayoutError, match="number has bounds 0 to 1099511627776"):
        Draw(Var("number", 0, 1 << 40), Address(COUNTERS, (0,)))
    few = Draw(Var("number", 0, 1), Address(COUNTERS, (0,)))
    with pytest.raises(MachineError, match="2 is outside the bounds 0 to 1 of number"):
        execute(kernel(few, few, few, warps=1), 0)


# --- texts --------------------------------------------------------------------------------------------


def test_the_texts_say_it() -> None:
    program = whole()
    assert "number = drawn from counters(0)" in program_text(program)
    ptx = ptx_module(program, target("sm_90a"))
    assert ptx.count("atom.relaxed.gpu.global.add.u32 x, [%counters], 1;") == 2
    assert "red.release.gpu.global.add.u32 [%counters+4], 1;" in ptx
    assert "ld.acquire.gpu.global.u32 x, [%counters+4]; setp.ge.u32 P, x, 13;" in ptx
    cuda = cuda_program(program)
    assert cuda.count("if (lane == 0) number = atomicAdd(counters, 1);") == 2
    assert "    unsigned *counters" in cuda
    assert "const unsigned *counters" not in cuda
    assert "const unsigned *seen" in cuda


def test_a_program_that_does_nothing_but_wait_has_texts() -> None:
    """Its number is none of a register or an address, which is all that the texts of lines know."""
    alone = kernel(wait(), count(), warps=1)
    assert alone.straight
    assert not alone.listed
    assert "setp.ge.u32 P, x, 13;" in ptx_module(alone, target("sm_90a"))
    assert "ptx_ld_acquire_count(counters + 1, 13);" in cuda_program(alone)
    begun = kernel(
        Instr(MBARRIER_INIT, (Address(Buffer("full", "full", "uint64", (1,), 64, "shared", 8), (0,)), 3))
    )
    begun = replace(begun, buffers=(*begun.buffers, begun.body[0].arguments[0].buffer))
    assert "mbarrier.init.shared.b64 [%full], 3;" in ptx_module(begun, target("sm_90a"))


def test_the_cuda_text_compiles() -> None:
    sm = target("sm_90a")
    assert assemble_cuda(cuda_program(whole()), sm).local_bytes == 0


@pytest.mark.parametrize("name", list(TARGETS))
def test_it_assembles_for_every_target_that_has_it(name: str) -> None:
    sm = target(name)
    drawn = kernel(DRAW, load(SEEN, LANE), store(DATA, 32 * NUMBER + LANE))
    assert assemble(ptx_module(drawn, sm), sm).local_bytes == 0
    assert bool(COUNT.refusal(sm)) == bool(COUNT_WAIT.refusal(sm)) == (sm.sm < 90)
    if not COUNT.refusal(sm):
        assert assemble(ptx_module(whole(), sm), sm).local_bytes == 0


def test_a_draw_is_moved_as_its_address_is() -> None:
    i = Var("i", 0, 3)
    body = (Draw(NUMBER, Address(COUNTERS, (i,))),)
    other = Buffer("other", "other", "int32", (RUN_TIME,), 32, "global", 4)
    (moved,) = relocated(body, buffers={COUNTERS: (other, 5)}, values={"i": 2})
    assert moved == Draw(NUMBER, Address(other, (7,)))
    assert unrolled(body, {"i": 1}) == (Draw(NUMBER, Address(COUNTERS, (1,))),)
    assert list(assigned(body)) == [NUMBER]
