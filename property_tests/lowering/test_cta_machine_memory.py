"""Kernels on the machine of CTAs: memory's rims, poison, masks of lanes, and races within and between warps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import MachineError
from lowering.backends.arrays import to_memory
from lowering.backends.cta_machine import run_grid
from lowering.backends.memory import Memory
from lowering.backends.reference import run_kernel, run_program
from lowering.control import CTA, All, Compare, If
from lowering.dtypes import dtype
from lowering.isa import SCATTERS, MmaInstruction
from lowering.program import Address, Buffer, Instr, Program, Statement
from lowering.registers import LANE
from tilelayout import LayoutError

from ..record_cases import FAMILIES, any_values, call_of, lowered_of
from .cta_cases import (
    BUFFERS,
    HELD,
    SHARED,
    SYNC,
    THREAD,
    WARP,
    WARP_SYNC,
    by_lane,
    by_warp,
    execute,
    kernel,
    ldmatrix,
    load,
    on,
    read,
    refuse,
    slots,
    store,
    write,
)

FIRST = np.arange(32, dtype=np.uint32)


# --- the same as the machine of straight programs -----------------------------------------------


@pytest.mark.parametrize("record", FAMILIES, ids=lambda r: r.name)
def test_straight_kernels_give_what_the_other_machine_gives(record: MmaInstruction) -> None:
    """A gemm of two warps for each kind of record, with loads and stores around it: the same words in memory."""
    call = call_of(record, (2, 1, 2), (2, 1))
    program = lowered_of(record, call, warps=(2, 1)).kernel.program
    arrays = any_values(call, np.random.default_rng(0))
    wanted = run_kernel(program, arrays)
    memory = {}
    for b in program.buffers:
        element = dtype(b.dtype)
        array = arrays.get(b.role, np.zeros(b.shape, element.numpy))
        memory[b.name] = np.array(to_memory(array, element, b.container)).ravel()
    for schedule in (0, 1):
        found = run_grid(program, (1, 1, 1), memory, schedule=schedule)["D"]
        np.testing.assert_array_equal(
            found.view(np.uint8), np.ascontiguousarray(wanted).ravel().view(np.uint8)
        )


def straight(draw: Any) -> list[Instr]:
    """Loads and stores of words, some by the way of shared memory, with barriers between, at addresses of any kind."""
    body: list[Instr] = [load(LANE, into=i) for i in range(4)]
    for _ in range(draw(st.integers(1, 8))):
        register, step = draw(st.integers(0, 3)), draw(st.integers(0, 31))
        place = draw(st.sampled_from([LANE ^ step, (LANE + step) % 32, (31 - LANE)]))
        act = draw(st.sampled_from([load, store, read, write]))
        body.append(act(place + 32 * draw(st.integers(0, 1)), register))
        if draw(st.booleans()):
            body.append(SYNC)
    return body


@given(st.data())
def test_straight_words_go_where_the_other_machine_moves_them(data: st.DataObject) -> None:
    """Words or the error: a race and a read of nothing are one for both, or for neither."""
    body = straight(data.draw)
    for into in range(4):
        body.append(store(32 * (2 + into) + LANE, into))
    program = kernel(*body, buffers=BUFFERS[:3])
    source, result = np.arange(64, dtype=np.uint32), np.zeros(256, np.uint32)
    fixed = {b.name: b for b in program.buffers}
    stores = {
        fixed["source"]: Memory(source.copy(), np.ones(64, bool)),
        fixed["result"]: Memory(result.copy(), np.ones(256, bool)),
        SHARED: Memory.empty(SHARED),
    }
    problem = ""
    try:
        run_program(program, {}, stores)
    except MachineError as error:
        problem = str(error)
    try:
        found = run_grid(program, (1, 1, 1), {"source": source, "result": result})["result"]
    except MachineError:
        assert problem
        return
    if problem:  # what was loaded of nothing was never used
        assert "holds nothing" in problem
    else:
        np.testing.assert_array_equal(found, stores[fixed["result"]].data)


# --- words, masks -------------------------------------------------------------------------------


def test_every_cta_and_warp_moves_its_words() -> None:
    at = 64 * CTA + THREAD
    found = execute(load(at), store(at), warps=2, grid=(3, 1, 1), size=192)
    np.testing.assert_array_equal(found, np.arange(192))


@given(st.integers(1, 31), st.integers(0, 31))
def test_lanes_that_are_masked_off_touch_nothing(count: int, shift: int) -> None:
    """Neither checked for range nor moved: lanes from `count` on would leave the memory."""
    source = np.arange(100, 100 + count, dtype=np.uint32)
    inside = Compare(LANE, "<", count)
    found = execute(
        load(0),
        on(inside, load(LANE), write(LANE, 0), read(LANE, 1)),
        If(inside, (store(LANE, 1),), (store(32 + (LANE ^ shift), 0),)),
        source=source,
        size=64,
        schedules=(0, 1),
    )
    np.testing.assert_array_equal(found[:count], source)
    others = 32 + (np.arange(count, 32) ^ shift)
    assert (found[others] == 100).all()
    assert (found == 0xFFFFFFFF).sum() == 32


def test_registers_of_other_lanes_stay() -> None:
    found = execute(load(LANE), by_lane(5, load(40)), store(LANE), size=32)
    np.testing.assert_array_equal(found, np.where(FIRST == 5, 40, FIRST))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([store(LANE)], r"reads r\[0\], which holds nothing \(warp 0, lane 0, CTA 0\)"),
        ([by_lane(7, load(0)), by_lane(8, store(0))], r"which holds nothing \(warp 0, lane 8"),
        ([by_lane(7, load(0)), store(LANE)], r"which holds nothing \(warp 0, lane 0"),
        ([load(LANE + 1000)], r"touches elements 1024 to 1024 of source, which has 1024.*lane 24"),
        ([load(LANE - 1)], r"touches elements -1 to -1 of source.*at source\[-1\] \(warp 0, lane 0"),
        ([load(4 * LANE + 2, count=4)], r"an address in source is no multiple of 16 bytes.*lane 0"),
        (
            [read(LANE), store(LANE)],
            r"reads r\[0\], which holds nothing: `ld.shared.*` of warp 0 read what was never",
        ),
        ([load(0), write(LANE + 500)], r"touches elements 512 to 512 of shared, which has 512.*lane 12"),
        ([load(0), write(0)], r"two threads write one element of shared at once.*lane 1"),
        (
            [load(LANE), write(LANE), read(LANE ^ 1)],
            r"races: reads what warp 0, lane 1 wrote in shared by `st\.shared",
        ),
        (
            [load(LANE), write(LANE), write(31 - LANE)],
            r"races: overwrites what warp 0, lane 31 wrote in shared",
        ),
        (
            [load(LANE), write(LANE), WARP_SYNC, read(LANE ^ 1, 1), write(LANE)],
            r"races: overwrites what warp 0, lane 1 read in shared by `ld.*, with no barrier between, at shared\[0\]",
        ),
        (
            [load(4 * LANE, count=4), write(4 * LANE, count=4), ldmatrix(4 * LANE)],
            r"races: reads what warp 0, lane 0 wrote",
        ),
        (
            [on(Compare(LANE, "<", 16), ldmatrix(4 * LANE))],
            r"all lanes must execute it together, only 16 of 32.*lane 16",
        ),
        ([by_lane(3, SYNC)], r"bar.sync 0;: all lanes must execute it together, only 1 of 32"),
        ([by_lane(3, WARP_SYNC)], r"bar.warp.sync.*all lanes must execute it together"),
    ],
)
def test_what_no_hardware_defines_is_an_error(body: list[Statement], said: str) -> None:
    refuse(said, *body)


def test_what_is_ordered_is_none() -> None:
    body: list[Statement] = [load(THREAD), write(THREAD), read(THREAD, 1), WARP_SYNC, read(THREAD ^ 1, 2)]
    body += [SYNC, write(THREAD ^ 33, 2), SYNC, read(THREAD), store(THREAD)]
    np.testing.assert_array_equal(execute(*body, warps=2, size=64), np.arange(64) ^ 33 ^ 1)


def test_what_holds_nothing_may_be_loaded_but_not_used() -> None:
    """A stage that is read ahead and never used is no error; the register holds something again when it is written."""
    found = execute(read(LANE), load(LANE), store(LANE), size=32)
    np.testing.assert_array_equal(found, FIRST)
    refuse(
        r"reads r\[3\], which holds nothing: `ldmatrix.* of warp 0 read what was never written",
        *[load(0), by_lane(0, write(0)), WARP_SYNC, ldmatrix(4 * LANE), store(LANE, 3)],
    )


def test_warps_race_under_every_schedule() -> None:
    other = 32 * (1 - WARP) + LANE
    refuse(
        r"races: reads what warp \d, lane \d+ wrote|reads r\[1\], which holds nothing",
        load(THREAD),
        write(THREAD),
        read(other, 1),
        store(THREAD, 1),
        warps=2,
    )
    refuse(r"two threads|overwrites what warp \d", load(LANE), write(LANE), warps=2)
    refuse(
        r"overwrites what warp \d, lane|reads what warp 0, lane",
        load(THREAD),
        write(THREAD),
        SYNC,
        read(other, 1),
        by_warp(0, write(LANE)),
        store(THREAD, 1),
        warps=2,
    )


def test_elements_of_two_bytes_are_told_apart() -> None:
    """Neighboring halves of one word, written by different lanes: no race; the same half: one."""
    halves = Buffer("halves", "S", "float16", (128,), 0, "shared", 16)
    scatter = SCATTERS["shared", 16]

    def both(p: Any, q: Any) -> Instr:
        return Instr(scatter, (Address(halves, (p,)), Address(halves, (q,)), slots(0)))

    buffers = (*BUFFERS[:2], halves)
    execute(load(LANE), both(LANE, LANE + 32), store(LANE), size=32, buffers=buffers)
    refuse(
        "races: overwrites what warp 0, lane 1 wrote in halves",
        load(LANE),
        both(LANE, LANE + 1),
        buffers=buffers,
    )


# --- guarded and missing elements ---------------------------------------------------------------


def test_guarded_elements_are_neither_read_nor_written() -> None:
    rim = np.zeros(64, bool)
    rim[40:] = True
    held = np.arange(64, dtype=np.uint32)
    inside = Compare(LANE, "<", 8)
    execute(on(inside, load(32 + LANE)), source=held, guarded={"source": rim})
    refuse(
        r"reads a guarded element of source, number 40, at source\[40\] \(warp 0, lane 8",
        load(32 + LANE),
        source=held,
        guarded={"source": rim},
    )
    refuse(
        r"writes a guarded element of result, number 40.*lane 8",
        load(LANE),
        store(32 + LANE),
        size=64,
        guarded={"result": rim},
    )
    refuse(
        r"reads a guarded element of source, number 42, at source\[40\] \(warp 0, lane 10",
        load(4 * LANE, count=4),
        source=np.arange(128, dtype=np.uint32),
        guarded={"source": np.arange(128) == 42},
    )


def test_elements_without_value_are_not_read_but_may_be_written() -> None:
    held = np.arange(64) < 40
    body = [load(LANE), store(32 + LANE), load(32 + LANE, 1, RESULT_BUFFER), store(LANE, 1)]
    found = execute(*body, size=64, written={"result": held})
    np.testing.assert_array_equal(found[:32], FIRST)
    refuse(
        r"reads an element of result that holds nothing, number 40",
        load(32 + LANE, 1, RESULT_BUFFER),
        size=64,
        written={"result": held},
    )


RESULT_BUFFER = BUFFERS[1]


def test_ctas_are_not_ordered() -> None:
    at = 16 * CTA + LANE
    refuse("overwrites what another CTA has written in result", load(LANE), store(at), grid=(2, 1, 1))
    refuse(
        "reads what another CTA has written in result|overwrites",
        *[load(LANE), store(32 * CTA + LANE), load(32 * (1 - CTA) + LANE, 1, RESULT_BUFFER)],
        grid=(2, 1, 1),
    )


# --- arguments ----------------------------------------------------------------------------------


def test_arguments_are_checked() -> None:
    program = kernel(load(LANE), buffers=BUFFERS[:1])
    good = {"source": np.zeros(32, np.uint32)}
    run_grid(program, (1, 1, 1), good)
    for changed, said in (
        ({"memory": {}}, r"lacks \['source'\]"),
        ({"memory": {**good, "more": good["source"]}}, r"\['more'\] too much"),
        ({"memory": {"source": np.zeros(32, np.float32)}}, "has dtype float32"),
        ({"memory": {"source": np.zeros((2, 16), np.uint32)}}, "2 dimensions"),
        ({"grid": (0, 1, 1)}, "grid"),
        ({"grid": (1, 65536, 1)}, "grid"),
        ({"parameters": {"x": 1}}, r"\['x'\] too much"),
        ({"written": {"source": np.zeros(31, bool)}}, "wanted bool"),
        ({"guarded": {"other": np.zeros(32, bool)}}, "other"),
        ({"numerics": "sm_1"}, "sm_1"),
    ):
        arguments: dict[str, Any] = {"grid": (1, 1, 1), "memory": good, **changed}
        with pytest.raises(LayoutError, match=said):
            run_grid(program, **arguments)
    with pytest.raises(LayoutError, match="takes registers r as input"):
        run_grid(Program("p", 1, (HELD,), (), (), ()), (1, 1, 1), {})


def test_inputs_stay_and_a_register_out_of_range_is_named() -> None:
    with pytest.raises(MachineError, match=r"there is no r\[8\], the group has 8"):
        execute(load(LANE, into=8))
    always = All(())
    found = execute(on(always, load(LANE), store(LANE)), size=32)
    np.testing.assert_array_equal(found, FIRST)
