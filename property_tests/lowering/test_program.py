"""The program as data: views, loops, the registers that are live."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from lowering import Tile, gemm, lower
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG, tiled
from lowering.isa import COPY, MMA_INSTRUCTIONS, ZERO_F32
from lowering.isa.cp_async import CP_ASYNC_WAIT
from lowering.program import Address, Buffer, Comment, For, Instr, Program, Registers, Slot, View, step_text
from tilelayout import LayoutError
from tilelayout.expr import Var, evaluate

from ..gemm_cases import TILINGS, one_warp

F32 = Registers("r", "D", "float32", 8, "f32")
B32 = Registers("w", "A", "float16", 8, "b32")


def zero(index: Any, registers: Registers = F32) -> Instr:
    return Instr(ZERO_F32, ((Slot(registers, index),),))


# --- views --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [((2, 3, 2), (1, 2, 8), 0), ((3, 1, 2), (4, 99, -1), 5), ((1,), (7,), 3), ((4,), (0,), 2)],
)
def test_a_view_is_an_offset_and_strides(shape: tuple, strides: tuple, offset: int) -> None:
    view = View(B32, shape, strides, offset)
    wanted = [
        offset + sum(x * s for x, s in zip(index, strides, strict=True))
        for index in itertools.product(*map(range, shape))
    ]
    assert view.slots() == wanted
    assert [view.slot(*index) for index in itertools.product(*map(range, shape))] == wanted
    assert [view.word(*index) for index in itertools.product(*map(range, shape))] == [x // 2 for x in wanted]
    assert View(F32, shape, strides, offset).word(*[0] * len(shape)) == offset


def test_a_view_takes_loop_variables() -> None:
    m, k = Var("m", 0, 2), Var("k", 0, 3)
    view = View(B32, (3, 4, 2), (8, 2, 1), 4)
    word = view.word(m, k, 0)
    for i, j in itertools.product(range(3), range(4)):
        assert evaluate(word, {"m": i, "k": j}) == (4 + 8 * i + 2 * j) // 2


# --- steps --------------------------------------------------------------------------------------


def test_loops_turn_in_order_and_comments_are_filled_in() -> None:
    i, j = Var("i", 0, 1), Var("j", 0, 2)
    body = (
        For(i, (Comment("row {i}"), zero(4 * i), For(j, (Comment("({i}, {j})"), zero(4 * i + j + 1))))),
        zero(0),
    )
    program = Program("p", 1, (), (F32,), body)
    assert [a[0][1] for s in program.steps for a in s.arguments] == [0, 1, 2, 3, 4, 5, 6, 7, 0]
    comments = [line.strip() for line in str(program).splitlines() if "#" in line]
    assert comments == [
        "# row 0", "# (0, 0)", "# (0, 1)", "# (0, 2)", "# row 1", "# (1, 0)", "# (1, 1)", "# (1, 2)",
    ]  # fmt: skip


def test_a_loop_has_an_end() -> None:
    program = Program("p", 1, (), (F32,), (For(Var("i"), (zero(0),)),))
    with pytest.raises(LayoutError, match="loop variable i has no upper bound"):
        _ = program.steps


def test_instructions_and_registers_are_listed_once() -> None:
    copy = Instr(COPY["f32"], ((Slot(F32, 1),), (Slot(F32, 0),)))
    program = Program("p", 1, (F32,), (F32,), (zero(0), copy, zero(1), copy))
    assert [i.name for i in program.instructions] == ["zero.f32", "copy.f32"]
    assert program.registers == (F32,)
    assert "registers r[0..7]: f32  (D, in, out)" in str(program)


def test_addresses_are_coordinates_in_text_and_row_major_in_memory() -> None:
    lane = Var("lane", 0, 31)
    buffer = Buffer("x", "A", "float16", (4, 6, 8))
    address = Address(buffer, (1, 2, lane))
    assert evaluate(address.element, {"lane": 5}) == (1 * 6 + 2) * 8 + 5
    from lowering.isa import LOAD_WORD

    instr = Instr(LOAD_WORD["b32"], ((Slot(B32, 3),), address))
    program = Program("p", 2, (), (), (instr,), (buffer,), (B32,))
    assert step_text(program.steps[0]) == "ld.global.b32 w[3], [x(1, 2, lane)];"
    lines = str(program).splitlines()
    assert lines[:2] == ["program p: 2 warps", "  buffer x: float16[4, 6, 8] row-major in global memory"]
    assert "registers w[0..7]: b32 of float16  (A, scratch)" in lines[2]


# --- live registers -----------------------------------------------------------------------------


def live_at_once(program: Program) -> int:
    """Step by step: what was used already and will be used again, or must still be there at the end."""
    steps = [{x for a in s.arguments for x in a} for s in program.steps]
    most = 0
    for now in range(len(steps)):
        before = set().union(*steps[: now + 1])
        after = set().union(*steps[now:]) | {x for x in before if x[0] in program.outputs}
        kept = {(r, i) for r in program.inputs if r in program.outputs for i in range(r.count)} - set().union(
            *steps
        )
        most = max(most, len(before & after | kept))
    return most


@pytest.mark.parametrize("tiling", [*TILINGS, (4, 4, 2, 16)], ids=str)
@pytest.mark.parametrize("beta", [0.0, 1.0])
@pytest.mark.parametrize("in_place", [True, False])
def test_the_most_registers_that_are_live(tiling, beta: float, in_place: bool) -> None:
    program = lower(
        one_warp(tiling, "float16", beta, in_place=in_place), target="sm_80", scope="warp"
    ).program
    assert program.peak_registers == live_at_once(program)


def test_registers_of_a_region_that_stay_are_live() -> None:
    d = Tile("D", (32, 24), "float32", tiled(MMA_INSTRUCTIONS[0], "D", (2, 3)))
    a, b = Tile("A", (16, 16), "float16", A_FRAG), Tile("B", (16, 8), "float16", B_FRAG)
    for beta, c in ((0.0, d[0:16, 0:8]), (1.0, d[16:32, 0:8]), (1.0, Tile("C", (16, 8), "float32", D_FRAG))):
        program = lower(gemm(d[0:16, 0:8], a, b, c, beta=beta), target="sm_80", scope="warp").program
        assert program.peak_registers == live_at_once(program) >= 24 + 6


def test_a_program_without_steps_needs_nothing() -> None:
    assert Program("p", 1, (), (), ()).peak_registers == 0
    assert Program("p", 1, (F32,), (F32,), ()).peak_registers == 8


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ((1 << 32) - 1, True), (1 << 32, False), (-(1 << 31), True), (-(1 << 31) - 1, False),
        (Var("i", 0, 1 << 20) * 4096, False), (Var("i", 0, 1 << 20) * 4096 // 2, True), (Var("i", 0, 7) - 7, True),
    ],
)  # fmt: skip
def test_a_value_has_32_bits(value: Any, fits: bool) -> None:
    if fits:
        assert Instr(CP_ASYNC_WAIT, (value,)).arguments == (value,)
        return
    with pytest.raises(LayoutError, match=r"operand pending is an integer of 32 bits.*bound its variables"):
        Instr(CP_ASYNC_WAIT, (value,))
