"""The machine itself: it decodes by the PTX map, knows what was never written, and says where."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lowering import MachineError, Tile, gemm, lower
from lowering.backends.reference import File, Memory, run, run_kernel, run_program
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG
from lowering.isa import COPY, LOAD_PAIR, LOAD_WORD, MMA_INSTRUCTIONS, STORE_WORD, ZERO_F32
from lowering.program import Address, Buffer, For, Instr, Program, Registers, Slot
from tilelayout import TileLayout, warpid
from tilelayout.expr import Var

from ..gemm_cases import several_warps
from .gemm_answers import answer, arrays_of
from .ptx_isa import a_fragment, b_fragment, c_fragment

A = Tile("A", (16, 16), "float16", A_FRAG)
B = Tile("B", (16, 8), "float16", B_FRAG)
D = Tile("D", (16, 8), "float32", D_FRAG)
CALL = gemm(D, A, B, D)
LOWERED = lower(CALL, target="sm_80", scope="warp")


def execute(program: Program, arrays: dict[str, Any]) -> Any:
    return run(program, CALL.tiles, arrays, None)


def edited(program: Program, change) -> Program:
    """The unrolled program with `change` applied to its multiplications."""
    body = []
    for step in program.steps:
        instr = Instr(step.instruction, tuple(tuple(Slot(r, i) for r, i in a) for a in step.arguments))
        body.append(change(instr) if step.instruction.collective else instr)
    return replace(program, body=tuple(body))


# --- what an mma means --------------------------------------------------------------------------


@pytest.mark.parametrize("record", MMA_INSTRUCTIONS[:4], ids=lambda r: r.name)
def test_the_meaning_of_an_mma_by_the_formulas_of_ptx(record) -> None:
    """Registers filled and read by loops over the ISA's case distinctions; two warps with different data."""
    rng = np.random.default_rng(5)
    a = rng.integers(-4, 5, (2, 16, record.k)).astype(np.float64)
    b = rng.integers(-4, 5, (2, record.k, 8)).astype(np.float64)
    c = rng.integers(-4, 5, (2, 16, 8)).astype(np.float64)
    element = Tile("x", (1,), record.a, D.layout.slice((128,), [(0, 1)])).element.numpy
    words_a = np.zeros((2, 32, record.k // 4), np.uint32)
    words_b = np.zeros((2, 32, record.k // 8), np.uint32)
    words_d = np.zeros((2, 32, 4), np.uint32)
    for matrix, fragment, words in ((a, a_fragment(record.k), words_a), (b, b_fragment(record.k), words_b)):
        for (row, column), (lane, i) in fragment.items():
            for warp in range(2):
                bits = np.array(matrix[warp, row, column]).astype(element).view(np.uint16)
                words[warp, lane, i // 2] |= np.uint32(bits) << np.uint32(16 * (i % 2))
    for (row, column), (lane, i) in c_fragment().items():
        words_d[:, lane, i] = c[:, row, column].astype(np.float32).view(np.uint32)
    out = record.instruction.meaning({"D": words_d, "A": words_a, "B": words_b, "lanes": (2, 32)})["D"]
    wanted = a @ b + c
    for (row, column), (lane, i) in c_fragment().items():
        assert (out[:, lane, i].view(np.float32) == wanted[:, row, column]).all()


def test_a_wrong_register_gives_wrong_numbers() -> None:
    arrays = arrays_of(CALL, np.random.default_rng(2))
    given = {"A": arrays["A"], "B": arrays["B"]}
    wanted = answer(CALL, arrays)
    np.testing.assert_array_equal(execute(LOWERED.program, given), wanted)
    np.testing.assert_array_equal(execute(edited(LOWERED.program, lambda x: x), given), wanted)

    def swapped(operand: int, i: int, j: int):
        def change(instr: Instr) -> Instr:
            arguments = list(instr.arguments)
            slots = list(arguments[operand])
            slots[i], slots[j] = slots[j], slots[i]
            arguments[operand] = tuple(slots)
            return replace(instr, arguments=tuple(arguments))

        return change

    for operand, count in ((0, 4), (1, 4), (2, 2)):
        for i in range(count):
            for j in range(i):
                assert not np.array_equal(
                    execute(edited(LOWERED.program, swapped(operand, i, j)), given), wanted
                )


def test_a_multiplication_too_many_or_too_few_gives_wrong_numbers() -> None:
    arrays = arrays_of(CALL, np.random.default_rng(2))
    given = {"A": arrays["A"], "B": arrays["B"]}
    steps = edited(LOWERED.program, lambda x: x).body
    twice = replace(LOWERED.program, body=(*steps, steps[-1]))
    np.testing.assert_array_equal(execute(twice, given), 2 * answer(CALL, arrays))
    np.testing.assert_array_equal(execute(replace(LOWERED.program, body=steps[:-1]), given), 0)


# --- poison -------------------------------------------------------------------------------------


def test_a_register_that_was_never_written_is_named() -> None:
    program = edited(LOWERED.program, lambda x: x)
    without_zero = replace(program, body=program.body[:2] + program.body[3:])
    given = arrays_of(CALL, np.random.default_rng(2))
    with pytest.raises(MachineError) as error:
        execute(without_zero, {"A": given["A"], "B": given["B"]})
    text = str(error.value)
    assert text.startswith("step 3, mma.sync.aligned.m16n8k16")
    assert "reads d_local[2], which holds nothing in warp 0, lane 0" in text


def test_the_warp_and_the_lane_are_named() -> None:
    registers = Registers("r", "A", "float16", 2, "b32")
    file = File.empty(registers, 3)
    file.written[:] = True
    file.written[2, 17, 3] = False
    buffer = Buffer("out", "D", "float16", (192,))
    store = Instr(STORE_WORD["b32"], (Address(buffer, (2 * Var("lane", 0, 31),)), (Slot(registers, 1),)))
    program = Program("p", 3, (registers,), (), (store,), (buffer,))
    with pytest.raises(
        MachineError, match=r"reads r\[1\], which holds nothing in warp 2, lane 17 \(element 1 of"
    ):
        run_program(
            program, {registers: file}, {buffer: Memory(np.zeros(192, np.float16), np.zeros(192, bool))}
        )


def test_an_operand_that_was_not_given_is_poison() -> None:
    given = arrays_of(CALL, np.random.default_rng(2))
    with pytest.raises(MachineError, match=r"reads b_words\[0\], which holds nothing in warp 0, lane 0"):
        execute(LOWERED.program, {"A": given["A"]})


def test_an_operand_that_fills_only_some_warps_is_poison() -> None:
    call = several_warps("float16", "cta", 2, 1)
    lowered = lower(call, target="sm_80", scope="cta", launch=64)
    b = call.tiles["B"]
    lonely = replace(b, layout=type(b.layout).from_iters(b.layout.shard))
    arrays = arrays_of(call, np.random.default_rng(2))
    given = {"A": arrays["A"], "B": arrays["B"]}
    with pytest.raises(MachineError, match=r"reads b_words\[0\], which holds nothing in warp 1, lane 0"):
        run(lowered.program, {**call.tiles, "B": lonely}, given, lowered.context.warp_axis)


def test_a_register_number_outside_the_group_is_an_error() -> None:
    registers = Registers("r", "D", "float32", 2, "f32")
    for index in (2, -1):
        slot = (Slot(registers, index),)
        for instr in (Instr(ZERO_F32, (slot,)), Instr(COPY["f32"], ((Slot(registers, 0),), slot))):
            with pytest.raises(MachineError, match=rf"there is no r\[{index}\], the group has 2"):
                run_program(Program("p", 1, (registers,), (), (instr,)), {})


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        ({"laneid": 1}, "lane 1 to 32, there are 32"),
        ({"laneid": -1}, "lane -1 to 30, there are 32"),
        ({"warpid": -1}, "warp -1 to -1, there are 1"),
        ({"warpid": 1}, "warp 1 to 1, there are 1"),
        ({"m": 1}, "register slot 1 to 8, there are 8"),
        ({"m": -1}, "register slot -1 to 6, there are 8"),
    ],
)
def test_operands_that_lie_nowhere_are_an_error(offset: dict[str, int], words: str) -> None:
    """An index below zero must not count from the end."""
    moved = replace(A, layout=TileLayout.from_iters(A_FRAG.shard, (), offset))
    given = arrays_of(CALL, np.random.default_rng(2))
    with pytest.raises(MachineError, match=words):
        run(LOWERED.program, {**CALL.tiles, "A": moved}, {"A": given["A"], "B": given["B"]}, warpid)
    out = replace(D, layout=TileLayout.from_iters(D_FRAG.shard, (), offset))
    with pytest.raises(MachineError, match="tile D: layout"):
        run(LOWERED.program, {**CALL.tiles, "D": out}, {"A": given["A"], "B": given["B"]}, warpid)


def test_a_loop_is_unrolled() -> None:
    registers = Registers("r", "D", "float32", 6, "f32")
    i, j = Var("i", 0, 1), Var("j", 0, 2)
    zero = Instr(ZERO_F32, ((Slot(registers, 3 * i + j),),))
    program = Program("p", 1, (), (registers,), (For(i, (For(j, (zero,)),)),))
    assert [s.arguments for s in program.steps] == [(((registers, n),),) for n in range(6)]
    files = run_program(program, {})
    assert files[registers].written.all()
    assert not files[registers].words.any()


# --- memory -------------------------------------------------------------------------------------

LANE = Var("lane", 0, 31)


def copy_program(load: Instr, store: Instr, *buffers: Buffer) -> Program:
    return Program("p", 1, (), (), (load, store), buffers, (Registers("r", "A", "float16", 1, "b32"),))


def test_words_and_pairs_move_16_bit_elements() -> None:
    register = Registers("r", "A", "float16", 1, "b32")
    source, target = Buffer("x", "A", "float16", (64,)), Buffer("y", "D", "float16", (64,))
    data = np.arange(64).astype(np.float16)
    slot = (Slot(register, 0),)
    store = Instr(STORE_WORD["b32"], (Address(target, (2 * LANE,)), slot))
    word = Instr(LOAD_WORD["b32"], (slot, Address(source, (2 * LANE,))))
    np.testing.assert_array_equal(run_kernel(copy_program(word, store, source, target), {"A": data}), data)
    pair = Instr(LOAD_PAIR, (slot, Address(source, (LANE + 32,)), Address(source, (LANE,))))
    found = run_kernel(copy_program(pair, store, source, target), {"A": data})
    np.testing.assert_array_equal(found[0::2], data[32:])
    np.testing.assert_array_equal(found[1::2], data[:32])


def test_reads_outside_a_buffer_and_of_nothing_are_errors() -> None:
    register = Registers("r", "A", "float16", 1, "b32")
    source, target = Buffer("x", "A", "float16", (64,)), Buffer("y", "D", "float16", (64,))
    slot = (Slot(register, 0),)
    store = Instr(STORE_WORD["b32"], (Address(target, (2 * LANE,)), slot))
    for index, touched in ((2 * LANE + 2, "2 to 65"), (2 * LANE - 2, "-2 to 61"), (2 * LANE + 1, "1 to 64")):
        load = Instr(LOAD_WORD["b32"], (slot, Address(source, (index,))))
        with pytest.raises(MachineError, match=f"touches elements {touched} of x, which has 64"):
            run_kernel(copy_program(load, store, source, target), {"A": np.zeros(64, np.float16)})
    load = Instr(LOAD_WORD["b32"], (slot, Address(source, (2 * LANE,))))
    with pytest.raises(MachineError, match="reads an element of x that holds nothing"):
        run_kernel(copy_program(load, store, source, target), {})


def test_a_word_lies_at_a_multiple_of_four_bytes() -> None:
    register = Registers("r", "A", "float16", 1, "b32")
    source, target = Buffer("x", "A", "float16", (66,)), Buffer("y", "D", "float16", (66,))
    slot, even, odd = (Slot(register, 0),), (2 * LANE,), (2 * LANE + 1,)
    for read, written, name in ((odd, even, "x"), (even, odd, "y")):
        load = Instr(LOAD_WORD["b32"], (slot, Address(source, read)))
        store = Instr(STORE_WORD["b32"], (Address(target, written), slot))
        with pytest.raises(MachineError, match=f"an address in {name} is no multiple of 4 bytes"):
            run_kernel(copy_program(load, store, source, target), {"A": np.zeros(66, np.float16)})


def test_what_a_kernel_does_not_store_stays_unwritten() -> None:
    register = Registers("r", "A", "float16", 1, "b32")
    source, target = Buffer("x", "A", "float16", (64,)), Buffer("y", "D", "float16", (128,))
    slot = (Slot(register, 0),)
    load = Instr(LOAD_WORD["b32"], (slot, Address(source, (2 * LANE,))))
    store = Instr(STORE_WORD["b32"], (Address(target, (4 * LANE,)), slot))
    found = run_kernel(copy_program(load, store, source, target), {"A": np.ones(64, np.float16)})
    assert (found.reshape(32, 4)[:, :2] == 1).all()
    assert np.isnan(found.reshape(32, 4)[:, 2:]).all()
