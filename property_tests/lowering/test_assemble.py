"""What the assembler accepts, what it costs, and how a refusal reads.  No GPU is needed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from lowering.backends import assemble as room
from lowering.backends.address import IndexCode
from lowering.backends.assemble import AssemblerError, CompilerError, Cubin, assemble, compile_cuda
from lowering.backends.ptx import TargetError, ptx_module
from lowering.isa import (
    COPY,
    LOAD_PAIR,
    LOAD_WORD,
    MMA_INSTRUCTIONS,
    STORE_WORD,
    ZERO_F32,
    Instruction,
    MmaInstruction,
)
from lowering.program import Address, Argument, Buffer, Instr, Program, Registers, Slot
from lowering.registers import LANE
from lowering.target import TARGETS, Target, target
from property_tests.lowering.text_cases import (
    ARCHITECTURES,
    CASES,
    EXPRESSIONS,
    LARGE,
    SMALLEST,
    one,
    renamed,
    warp,
)
from tilelayout.expr import Index

pytestmark = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)

RECORDS = [
    *[i.instruction for i in MMA_INSTRUCTIONS],
    *LOAD_WORD.values(), LOAD_PAIR, *STORE_WORD.values(), *COPY.values(), ZERO_F32,
]  # fmt: skip


def alone(record: Instruction) -> Program:
    """A program of that one instruction."""
    arguments: list[Argument] = []
    groups: list[Registers] = []
    buffers: list[Buffer] = []
    for operand in record.operands:
        if operand.kind == "address":
            buffers.append(Buffer(f"buffer_{operand.name}", "A", "float32", (32,)))
            arguments.append(Address(buffers[-1], (LANE,)))
        else:
            groups.append(Registers(f"{operand.name}_words", "A", "float32", operand.count, operand.kind))
            arguments.append(tuple([Slot(groups[-1], i) for i in range(operand.count)]))
    body = (Instr(record, tuple(arguments)),)
    return Program("alone", 1, (), (), body, tuple(buffers), tuple(groups))


def copy_of(count: int) -> Program:
    """Read `count` words, then write them back last first: all are live at once."""
    words = Registers("words", "A", "float32", count, "f32")
    x, y = Buffer("x", "A", "float32", (count, 32)), Buffer("y", "D", "float32", (count, 32))
    loads = [Instr(LOAD_WORD["f32"], ((Slot(words, i),), Address(x, (i, LANE)))) for i in range(count)]
    stores = [
        Instr(STORE_WORD["f32"], (Address(y, (i, LANE)), (Slot(words, i),))) for i in reversed(range(count))
    ]
    return Program("pressure", 1, (), (), (*loads, *stores), (x, y), (words,))


SMALL = warp(*SMALLEST).ptx


def broken(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new)


# --- what is accepted -------------------------------------------------------------------------------


def check_lean(cubin: Cubin, ptx: str) -> None:
    """Machine code of that target, with no local memory anywhere."""
    assert cubin.data.startswith(b"\x7fELF")
    assert cubin.spill_bytes == cubin.local_bytes == 0
    assert 0 < cubin.registers <= 255
    assert cubin.seconds > 0
    assert ".local" not in ptx
    assert f"for '{cubin.target}'" in cubin.log


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_kernel_for_every_architecture(name: str) -> None:
    for mma in MMA_INSTRUCTIONS:
        lowered = warp((2, 2, 2, mma.k), mma.a, 1.0, target=name)
        check_lean(assemble(lowered.ptx, target(name)), lowered.ptx)


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize(("tiling", "dtype", "beta"), LARGE)
def test_large_tilings_do_not_spill(
    name: str, tiling: tuple[int, int, int, int], dtype: str, beta: float
) -> None:
    lowered = warp(tiling, dtype, beta, target=name)
    check_lean(assemble(lowered.ptx, target(name)), lowered.ptx)


@pytest.mark.parametrize("name", CASES)
def test_no_case_spills(name: str) -> None:
    lowered = one(CASES[name])
    check_lean(lowered.cubin, lowered.ptx)


def test_names_that_ptx_reads_itself() -> None:
    lowered = renamed({"D": "tid", "A": "clock", "B": "lane", "C": "Größe"})
    check_lean(lowered.cubin, lowered.ptx)


def test_equal_text_gives_equal_code() -> None:
    assert assemble(SMALL, target("sm_80")) == assemble(SMALL, target("sm_80"))


@pytest.mark.parametrize("row", [2**24, 2**31 + 3, 2**40])
def test_wide_addresses_assemble(row: int) -> None:
    x = Buffer("x", "A", "float32", (32, row))
    words = Registers("w", "A", "float32", 1, "f32")
    body = (
        Instr(LOAD_WORD["f32"], ((Slot(words, 0),), Address(x, (LANE, row - 1)))),
        Instr(STORE_WORD["f32"], (Address(x, (31 - LANE, 0)), (Slot(words, 0),))),
    )
    ptx = ptx_module(Program("wide", 1, (), (), body, (x,), (words,)), target("sm_80"))
    check_lean(assemble(ptx, target("sm_80")), ptx)


@pytest.mark.parametrize("x", EXPRESSIONS, ids=str)
def test_index_code_keeps_registers_of_32_and_64_bits_apart(x: Index) -> None:
    """The assembler checks the width of every operand."""
    lines: list[str] = []
    code = IndexCode(lines, {"lane": "%lane", "warp": "%warp"}, {32: "%r", 64: "%rd"})
    wide, narrow = code.value(x, 64), code.value(x, 32)
    registers = [f".reg .b{bits} %{'r' if bits == 32 else 'rd'}<{n + 1}>;" for bits, n in code.used.items()]
    body = [
        *registers, ".reg .b32 %lane, %warp;", ".reg .b64 %to;", "mov.u32 %lane, %tid.x;", "mov.u32 %warp, %tid.y;",
        "ld.param.u64 %to, [to];", *lines, f"st.global.b64 [%to], {wide};", f"st.global.b32 [%to+8], {narrow};", "ret;",
    ]  # fmt: skip
    head = [".version 7.0", ".target sm_80", ".address_size 64", ".visible .entry index(.param .u64 to)"]
    assemble("\n".join([*head, "{", *body, "}"]), target("sm_80"))


# --- what records and targets claim -----------------------------------------------------------------


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.name)
def test_every_record_on_every_architecture_that_it_claims(record: Instruction) -> None:
    """And on no other: where our gate refuses, the assembler would."""
    for where in TARGETS.values():
        if record.sm <= where.sm:
            assemble(ptx_module(alone(record), where), where)
            continue
        with pytest.raises(TargetError):
            ptx_module(alone(record), where)
        ungated = ptx_module(alone(replace(record, sm=where.sm)), where)
        with pytest.raises(AssemblerError, match=rf"requires \.target sm_{record.sm} or higher"):
            assemble(ungated, where)


def earlier(version: tuple[int, int]) -> str:
    """The PTX version before that one."""
    minors = {6: 5, 7: 8, 8: 8, 9: 1}  # the last of each major version
    known = [f"{major}.{minor}" for major, last in minors.items() for minor in range(last + 1)]
    return known[known.index("{}.{}".format(*version)) - 1]


@pytest.mark.parametrize("name", list(TARGETS))
def test_targets_claim_the_first_version_that_has_them(name: str) -> None:
    where = TARGETS[name]
    ptx = ptx_module(alone(ZERO_F32), where)
    assemble(ptx, where)
    older = re.sub(r"\.version \S+", f".version {earlier(where.ptx)}", ptx)
    with pytest.raises(
        AssemblerError, match=rf"PTX \.version {earlier(where.ptx)} does not support \.target {name}"
    ):
        assemble(older, where)


@pytest.mark.parametrize("mma", MMA_INSTRUCTIONS, ids=lambda i: i.name)
def test_mma_records_claim_the_first_version_that_has_them(mma: MmaInstruction) -> None:
    where = target(f"sm_{mma.sm}")
    ptx = ptx_module(alone(mma.instruction), where)
    older = re.sub(r"\.version \S+", f".version {earlier(mma.ptx)}", ptx)
    with pytest.raises(
        AssemblerError, match=rf"requires PTX ISA \.version {mma.ptx[0]}\.{mma.ptx[1]} or later"
    ):
        assemble(older, where)


# --- how refusals read ------------------------------------------------------------------------------


def test_f16_k16_is_not_for_sm_75() -> None:
    """C65: our gate names instruction, target and first architecture; the assembler refuses the bare text."""
    program = warp(*SMALLEST).kernel.program
    with pytest.raises(TargetError, match=r"m16n8k16\.f16 .* needs sm_80 or newer, the target is sm_75"):
        ptx_module(program, target("sm_75"))
    with pytest.raises(AssemblerError, match=r"'\.m16n8k16' requires \.target sm_80 or higher") as refused:
        assemble(broken(".target sm_80", ".target sm_75"), target("sm_75"))
    assert refused.value.line is not None
    assert "mma.sync" in SMALL.splitlines()[refused.value.line - 1]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("mma.sync.aligned", "mma.sync.algined", r"Unknown modifier '\.algined'"),
        ("mma.sync", "mmma.sync", "mmma"),
        ("{%d_local0,", "{%e_local0,", "Unknown symbol '%e_local0'"),
        ("{%d_local0,", "{%d_local9,", "Unknown symbol '%d_local9'"),
        ("{%b_words0, %b_words1}", "{%b_words0}", "mma"),
        ("ret;", "ret", "syntax error"),
    ],
)
def test_malformed_text_is_shown_with_its_line(old: str, new: str, said: str) -> None:
    ptx = broken(old, new)
    with pytest.raises(AssemblerError, match=said) as refused:
        assemble(ptx, target("sm_80"))
    message = str(refused.value)
    assert message.startswith("sm_80: the assembler (nvJitLink ")
    line = refused.value.line
    assert line is not None
    assert f"line {line}: " in message
    assert ptx.splitlines()[line - 1].strip() in message
    if new != "ret":  # what follows it is what surprises
        assert new in ptx.splitlines()[line - 1]
    assert "ptxas" in refused.value.log


def test_many_messages_are_cut_and_counted() -> None:
    lowered = warp((2, 2, 3, 8), "float16")
    with pytest.raises(AssemblerError, match=r"and \d+ more$") as refused:
        assemble(lowered.ptx.replace("mma.sync.aligned", "mma.sync"), target("sm_80"))
    assert len(str(refused.value).splitlines()) < 30


def test_a_version_newer_than_the_assembler_names_both() -> None:
    """C67."""
    with pytest.raises(
        AssemblerError, match=r"PTX \.version 99\.0 is newer than \d+\.\d+, the newest that nvJitLink"
    ) as refused:
        assemble(broken(".version 7.0", ".version 99.0"), target("sm_80"))
    assert refused.value.line == 1


def test_an_architecture_that_the_assembler_lacks() -> None:
    with pytest.raises(AssemblerError, match=r"sm_99: nvJitLink .* does not know this architecture"):
        assemble(SMALL, Target(99, "", (9, 0)))


def test_code_for_one_architecture_is_not_for_the_next() -> None:
    lowered = warp(*SMALLEST, target="sm_90a")
    with pytest.raises(AssemblerError, match="'sm_90a' cannot be compiled to future architecture") as refused:
        assemble(lowered.ptx, target("sm_120a"))
    assert refused.value.line is None
    assemble(SMALL, target("sm_120a"))  # plain sm_80 code is


@pytest.mark.parametrize("text", ["", "hello", "int main() {}"])
def test_what_is_not_ptx(text: str) -> None:
    with pytest.raises(AssemblerError, match="refuses the PTX"):
        assemble(text, target("sm_80"))


# --- local memory -----------------------------------------------------------------------------------


def test_register_pressure_is_refused_with_the_bytes() -> None:
    """C70."""
    program = copy_of(300)
    assert program.peak_registers == 300
    ptx = ptx_module(program, target("sm_80"))
    with pytest.raises(
        AssemblerError, match=r"bytes of spill stores and loads, with 255 registers"
    ) as refused:
        assemble(ptx, target("sm_80"))
    accepted = assemble(ptx, target("sm_80"), allow_spills=True)
    assert accepted.registers == 255
    assert accepted.local_bytes >= 4 * (300 - 255)
    assert accepted.spill_bytes >= 2 * 4 * (300 - 255)
    assert f"{accepted.local_bytes} bytes of local memory a thread and {accepted.spill_bytes} bytes" in str(
        refused.value
    )
    fits = ptx_module(copy_of(200), target("sm_80"))
    check_lean(assemble(fits, target("sm_80")), fits)


def test_local_variables_are_refused_with_the_bytes() -> None:
    local = broken("ret;", """\
.local .align 4 .b8 depot[64];
    .reg .b64 %depot;
    mov.u64 %depot, depot;
    add.s64 %depot, %depot, %rd0;
    st.local.b32 [%depot], %a_words0;
    ld.local.b32 %a_words1, [%depot+4];
    st.global.b32 [%D_at0], %a_words1;
    ret;""")  # fmt: skip
    with pytest.raises(AssemblerError, match="64 bytes of local memory a thread and 0 bytes of spill"):
        assemble(local, target("sm_80"))
    assert assemble(local, target("sm_80"), allow_spills=True).local_bytes == 64


# --- libraries --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nvjitlink", "nvrtc"])
def test_missing_libraries_name_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, f"cuda.bindings.{name}", None)
    with pytest.raises(ImportError, match=rf"{name} cannot be loaded \(.*pip install 'tilelayout\[cuda\]'"):
        assemble(SMALL, target("sm_80")) if name == "nvjitlink" else compile_cuda("", target("sm_80"))


def test_a_missing_shared_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bindings are there, what they bind is not."""

    class Bindings:
        @staticmethod
        def version() -> tuple[int, int]:
            raise RuntimeError("Failure finding libnvJitLink.so\nsearched everywhere")

    monkeypatch.setattr(room, "import_module", lambda _: Bindings)
    with pytest.raises(ImportError, match=r"RuntimeError: Failure finding libnvJitLink\.so\); assembling"):
        assemble(SMALL, target("sm_80"))


def test_importing_the_room_loads_no_library() -> None:
    code = "import sys, lowering.backends.assemble; assert not any(m.startswith('cuda') for m in sys.modules)"
    subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=True
    )


# --- nvrtc ------------------------------------------------------------------------------------------


def test_refused_cuda_text_comes_with_the_log() -> None:
    with pytest.raises(
        CompilerError, match=r"sm_80: nvrtc refuses .*COMPILATION.*\n.*error: identifier \"y\" is undefined"
    ):
        compile_cuda("__global__ void f(int *x) { *x = y; }", target("sm_80"))


def test_inline_asm_is_assembled_for_the_target() -> None:
    """nvrtc's front end accepts any text between the quotes; C65 again."""
    lowered = warp(*SMALLEST)
    with pytest.raises(CompilerError, match=r"requires \.target sm_80 or higher"):
        compile_cuda(lowered.cuda, target("sm_75"))
