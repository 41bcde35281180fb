"""The PTX text: its form, the registers that it names, and the numbers that it computes on a machine for text."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lowering import gemm, lower
from lowering.backends.address import IndexCode, reach
from lowering.backends.names import Names, comment_line
from lowering.backends.ptx import TargetError, ptx_module, ptx_version
from lowering.isa import COPY, LOAD_PAIR, LOAD_WORD, MMA_INSTRUCTIONS, STORE_WORD, MmaInstruction
from lowering.program import Address, Buffer, Comment, Instr, Program, Registers, Slot
from lowering.registers import LANE, WARP
from lowering.target import TARGETS, target
from property_tests.gemm_cases import one_warp
from property_tests.lowering.ptx_machine import PtxMachine, execute, mma_operands, statements
from property_tests.lowering.text_cases import (
    CASES,
    EXPRESSIONS,
    LARGE,
    SMALLEST,
    check,
    inputs,
    multiplications,
    one,
    renamed,
    warp,
)  # fmt: skip
from tilelayout import LayoutError
from tilelayout.expr import Index, Var, evaluate

SM_80 = target("sm_80")


def copy_program(place: Address, to: Address) -> Program:
    """One word from one address to another."""
    word = Registers("word", "A", "float32", 1, "f32")
    slot = (Slot(word, 0),)
    body = (Instr(LOAD_WORD["f32"], (slot, place)), Instr(STORE_WORD["f32"], (to, slot)))
    return Program("copy", 1, (), (), body, (place.buffer, to.buffer), (word,))


# --- form -----------------------------------------------------------------------------------------


def test_a_module_from_top_to_bottom() -> None:
    """The whole text of the smallest kernel: one word for every lane."""
    x, y = Buffer("x", "A", "float32", (32,)), Buffer("y", "D", "float32", (32,))
    assert (
        ptx_module(copy_program(Address(x, (LANE,)), Address(y, (LANE,))), target("sm_90a"))
        == """\
.version 8.0
.target sm_90a
.address_size 64

.visible .entry copy(
    .param .u64 copy_x,  // float32[32], row-major
    .param .u64 copy_y  // float32[32], row-major
)
.reqntid 32
{
    .reg .f32 %word<1>;  // A: float32
    .reg .b64 %x, %x_at<1>;
    .reg .b64 %y, %y_at<1>;
    .reg .b32 %thread, %lane;
    .reg .b32 %r<1>;
    .reg .b64 %rd<1>;

    mov.u32 %thread, %tid.x;
    and.b32 %lane, %thread, 31;
    ld.param.u64 %x, [copy_x];
    cvta.to.global.u64 %x, %x;
    ld.param.u64 %y, [copy_y];
    cvta.to.global.u64 %y, %y;

    shl.b32 %r0, %lane, 2;
    cvt.u64.u32 %rd0, %r0;
    add.s64 %x_at0, %x, %rd0;
    ld.global.f32 %word0, [%x_at0];
    add.s64 %y_at0, %y, %rd0;
    st.global.f32 [%y_at0], %word0;
    ret;
}
"""
    )


@pytest.mark.parametrize("name", list(TARGETS))
def test_the_version_is_the_smallest_with_target_and_instructions(name: str) -> None:
    where = TARGETS[name]
    for mma in MMA_INSTRUCTIONS:
        if mma.sm > where.sm:
            continue
        ptx = warp((1, 1, 1, mma.k), mma.a, target=name).ptx
        major, minor = max(where.ptx, mma.ptx)
        assert ptx.startswith(f".version {major}.{minor}\n.target {name}\n.address_size 64\n")


def test_the_version_counts_what_is_used() -> None:
    program = copy_program(
        Address(Buffer("x", "A", "float32", (1,)), (0,)), Address(Buffer("y", "D", "float32", (1,)), (0,))
    )
    newer = replace(
        program,
        body=(*program.body, Instr(replace(COPY["f32"], ptx=(8, 7)), (program.body[0].arguments[0],) * 2)),
    )  # type: ignore[union-attr]
    assert ptx_version(program, SM_80) == (7, 0)
    assert ptx_version(newer, SM_80) == (8, 7)


def test_parameters_are_the_buffers_in_order() -> None:
    lowered = warp(*SMALLEST, 1.0)
    names = re.findall(r"\.param \.u64 (\w+)", lowered.ptx)
    assert names == [f"{lowered.kernel.name}_{b.name}" for b in lowered.kernel.buffers]
    assert [b.role for b in lowered.kernel.buffers] == ["A", "B", "C", "D"]


@pytest.mark.parametrize("seed", ["0", "1"])
def test_the_text_does_not_depend_on_hashes(seed: str) -> None:
    code = (
        "import sys\n"
        "from property_tests.lowering.text_cases import CASES, one\n"
        "lowered = one(CASES['cta 2x2 warps float16'])\n"
        "sys.stdout.write(lowered.ptx + lowered.cuda)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    lowered = one(CASES["cta 2x2 warps float16"])
    assert found.stdout == lowered.ptx + lowered.cuda
    assert "0x" not in found.stdout


def test_programs_that_pass_registers_are_refused() -> None:
    core = warp(*SMALLEST).program
    with pytest.raises(ValueError, match=r"passes registers \(a_words, b_words, d_local\)"):
        ptx_module(core, SM_80)


def test_comments_stay_on_their_line() -> None:
    x, y = Buffer("x", "A", "float32", (32,)), Buffer("y", "D", "float32", (32,))
    program = copy_program(Address(x, (LANE,)), Address(y, (LANE,)))
    noted = replace(program, body=(Comment("first\nsecond \\"), *program.body, Comment("")))
    assert "    // first second \\.\n" in ptx_module(noted, SM_80)
    assert statements(ptx_module(noted, SM_80)) == statements(ptx_module(program, SM_80))
    assert comment_line("  a\r\n\tb  ") == "// a b"


# --- architecture gate ------------------------------------------------------------------------------


@pytest.mark.parametrize("mma", MMA_INSTRUCTIONS, ids=lambda i: i.name)
def test_an_instruction_that_the_target_lacks_is_refused(mma: MmaInstruction) -> None:
    program = warp((1, 1, 1, mma.k), mma.a).kernel.program
    for where in TARGETS.values():
        if where.sm >= mma.sm:
            assert f".target {where}\n" in ptx_module(program, where)
            continue
        with pytest.raises(TargetError) as refused:
            ptx_module(program, where)
        assert str(refused.value) == (
            f"instruction {mma.name} ({mma.instruction.mnemonic}) needs sm_{mma.sm} or newer, the target is {where}"
        )


# --- names ------------------------------------------------------------------------------------------


def test_names_that_ptx_reads_itself_are_avoided() -> None:
    lowered = renamed({"D": "tid", "A": "r", "B": "lane", "C": "Größe"})
    before = inputs(lowered.kernel)
    check(lowered, execute(lowered.ptx, before), before)
    assert lowered.ptx.isascii()
    assert re.search(r"\.reg \.b64 %tid_, ", lowered.ptx)


@given(
    st.lists(
        st.tuples(st.sampled_from(["r", "r1", "r12", "x", "x_", "r_"]), st.sampled_from([0, 1, 3, 30, None]))
    )
)
def test_no_two_names_meet(wishes: list[tuple[str, int | None]]) -> None:
    names = Names({"x", "r2"})
    taken: list[str] = ["x", "r2"]
    for wish, count in wishes:
        base = names.family(wish, count) if count != 0 else names.one(wish)
        assert base.startswith(wish)
        taken += [base, *[f"{base}{i}" for i in range(200 if count is None else count)]]
    assert len(set(taken)) == len(taken)


# --- registers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_one_mma_an_atom_on_the_registers_of_the_program(name: str) -> None:
    lowered = one(CASES[name])
    wanted = [
        [[f"%{group}{i}" for group, i in operand] for operand in mma]
        for mma in multiplications(lowered.program)
    ]
    assert [mma_operands(line) for line in lowered.ptx.splitlines() if "mma.sync" in line] == wanted
    assert lowered.ptx.count("mma.sync") == len(wanted)
    assert ("c_local" in lowered.ptx) == (lowered.call.beta == 1.0)


@pytest.mark.parametrize(("tiling", "dtype", "beta"), LARGE)
def test_there_is_one_mma_an_atom(tiling: tuple[int, int, int, int], dtype: str, beta: float) -> None:
    assert warp(tiling, dtype, beta).ptx.count("mma.sync") == np.prod(tiling[:3])


# --- numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_the_text_multiplies(name: str) -> None:
    lowered = one(CASES[name])
    before = inputs(lowered.kernel)
    machine = PtxMachine(lowered.ptx, before)
    check(lowered, machine.run(), before)
    assert machine.threads == (CASES[name].launch or 32)


@pytest.mark.parametrize(("tiling", "dtype", "beta"), LARGE)
def test_large_texts_multiply(tiling: tuple[int, int, int, int], dtype: str, beta: float) -> None:
    lowered = warp(tiling, dtype, beta)
    before = inputs(lowered.kernel)
    check(lowered, execute(lowered.ptx, before), before)


def test_words_are_loaded_whole_where_their_elements_are_neighbors() -> None:
    """And by halves elsewhere: B is held as (K, N), where elements that share a word are a row apart."""
    whole, halves = (one(CASES[f"transpose_a=0 transpose_b={b} float16"]) for b in (1, 0))
    assert "ld.global.b16" not in whole.ptx
    assert halves.ptx.count("ld.global.b16") == 2 * halves.program.inputs[1].count


def test_a_region_of_a_tile_multiplies() -> None:
    call = one_warp((2, 1, 2, 16), "float16")
    small = one_warp((1, 1, 1, 16), "float16")
    tiles = {"D": small.D.tile, "A": call.A.tile[16:32, 16:32], "B": small.B.tile, "C": small.C.tile}
    lowered = lower(gemm(**tiles), target="sm_80", scope="warp")
    before = inputs(lowered.kernel)
    a, b, d = execute(lowered.ptx, before)
    np.testing.assert_array_equal(d, a[16:32, 16:32].astype(np.float64) @ b.astype(np.float64))


# --- addresses --------------------------------------------------------------------------------------


def computed(x: Index, bits: int = 64) -> list[int]:
    """What the emitted instructions make of `x` in each of 1024 threads, signed."""
    lines: list[str] = []
    code = IndexCode(lines, {"lane": "%lane", "warp": "%warp"}, {32: "%r", 64: "%rd"})
    result = code.value(x, bits)
    head = "mov.u32 %t, %tid.x; and.b32 %lane, %t, 31; shr.u32 %warp, %t, 5;"
    machine = PtxMachine("\n".join([".reqntid 1024", "{", head, *lines, "}"]), [])
    machine.run()
    return machine.value(result, f"s{bits}")


THREADS = {"lane": np.arange(1024) % 32, "warp": np.arange(1024) // 32}


def wanted(x: Index) -> list[int]:
    return [x] * 1024 if isinstance(x, int) else [int(v) for v in evaluate(x, THREADS) + np.zeros(1024, int)]


@st.composite
def expressions(draw: st.DrawFn) -> Index:
    """Expressions in lane and warp, negative and large values included."""
    constants = st.one_of(st.integers(-70, 70), st.sampled_from([2**16, 2**27, 2**31, -(2**31), 2**33 + 5]))
    x: Index = draw(st.sampled_from([LANE, WARP]))
    for _ in range(draw(st.integers(1, 5))):
        y: Index = draw(st.one_of(constants, st.sampled_from([LANE, WARP, LANE // 4, LANE % 3, WARP ^ 5])))
        match draw(st.sampled_from("+-*/%^&|<>")):
            case "+":
                x = x + y
            case "-":
                x = x - y
            case "*":
                x = x * y
            case "/":
                x = x // (abs(y) + 1 if isinstance(y, int) else y * y + 1)
            case "%":
                x = x % (abs(y) + 1 if isinstance(y, int) else y * y + 1)
            case "^":
                x = x ^ y
            case "&":
                x = x & y
            case "|":
                x = x | y
            case "<":
                x = x << (WARP % 5)
            case _:
                x = x >> (LANE % 7)
    return x


@given(expressions())
def test_every_expression_is_computed_exactly(x: Index) -> None:
    assume(not isinstance(x, int) and x.lo is not None and x.hi is not None)
    try:
        found = computed(x)
    except LayoutError:  # a part of it is beyond 64 bits
        assert reach(x) >= 2**63
        return
    assert found == wanted(x)


@pytest.mark.parametrize("x", EXPRESSIONS, ids=str)
def test_signs_and_widths_that_meet_are_computed_exactly(x: Index) -> None:
    """Negative values are floored, and parts that need 64 bits get them though the whole fits in 32."""
    assert computed(x) == wanted(x)
    assert computed(x, 32) == [(v + 2**31) % 2**32 - 2**31 for v in wanted(x)]


@pytest.mark.parametrize("x", [0, -1, 2**31, 2**40 + 3, -(2**63)])
def test_constants_are_literals_of_the_width(x: int) -> None:
    assert computed(x) == wanted(x)
    assert computed(x, 32) == [(x + 2**31) % 2**32 - 2**31] * 1024


def test_an_instruction_is_emitted_once() -> None:
    lines: list[str] = []
    code = IndexCode(lines, {"lane": "%lane", "warp": "%warp"}, {32: "%r", 64: "%rd"})
    first = code.value(64 * (LANE // 4) + 2 * (LANE % 4), 64)
    assert code.value(64 * (LANE // 4) + 2 * (LANE % 4), 64) == first
    assert len(lines) == 5
    code.value(64 * (LANE // 4) + 3 * (LANE % 4), 64)
    assert len(lines) == 7


@pytest.mark.parametrize("other", [Var("m", 0, 3), LANE + Var("i", 0, 1)])
def test_a_variable_that_a_kernel_lacks_is_refused(other: Index) -> None:
    x = Buffer("x", "A", "float32", (64,))
    with pytest.raises(LayoutError, match=r"no variable '[mi]' \(remedy: it has lane, warp\)"):
        ptx_module(copy_program(Address(x, (other,)), Address(x, (LANE,))), SM_80)


@pytest.mark.parametrize("row", [2**24, 2**24 + 1, 2**25, 2**31 + 3, 2**40])
@pytest.mark.parametrize("column", [0, 5, 2**24 - 1])
def test_offsets_beyond_two_gigabytes(row: int, column: int) -> None:
    """C19: an offset of 2**31 bytes or more is exact, whether it comes from a lane or is a constant."""
    x, y = Buffer("x", "A", "float32", (32, row)), Buffer("y", "D", "float32", (32, row))
    program = copy_program(Address(x, (LANE, column)), Address(y, (31, row - 1)))
    ptx = ptx_module(program, SM_80)
    machine = PtxMachine(ptx, [None, None])
    machine.run()
    assert machine.accesses == [
        ("ld.global.f32", 0, [4 * (lane * row + column) for lane in range(32)]),
        ("st.global.f32", 1, [4 * (32 * row - 1)] * 32),
    ]
    # Up to there, 32 bits do.
    assert bool(re.search(r"(shl\.b|mul\.lo\.s)64", ptx)) == (31 * 4 * row >= 2**31)


def test_an_offset_beyond_64_bits_is_refused() -> None:
    x = Buffer("x", "A", "float32", (32, 2**57))
    with pytest.raises(LayoutError, match="which 64 bits do not hold"):
        ptx_module(copy_program(Address(x, (LANE, 0)), Address(x, (LANE, 0))), SM_80)


def test_halves_go_where_the_record_says() -> None:
    words = Registers("w", "A", "float16", 1, "b32")
    x, y = Buffer("x", "A", "float16", (32, 4)), Buffer("y", "D", "float32", (32,))
    body = (
        Instr(LOAD_PAIR, ((Slot(words, 0),), Address(x, (LANE, 3)), Address(x, (31 - LANE, 1)))),
        Instr(STORE_WORD["b32"], (Address(y, (LANE,)), (Slot(words, 0),))),
    )
    ptx = ptx_module(Program("pairs", 1, (), (), body, (x, y), (words,)), SM_80)
    a = np.arange(128).astype(np.float16).reshape(32, 4)
    _, found = execute(ptx, [a, np.zeros(32, np.float32)])
    pairs = found.view(np.float16).reshape(32, 2)
    np.testing.assert_array_equal(pairs[:, 0], a[:, 3])
    np.testing.assert_array_equal(pairs[:, 1], a[::-1, 1])
