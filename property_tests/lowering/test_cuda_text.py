"""The CUDA C++ text: its form, and the numbers of the PTX that nvrtc makes of it, on a machine for text."""

from __future__ import annotations

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from lowering.backends.assemble import assemble, compile_cuda
from lowering.backends.cuda_text import cuda_source
from lowering.compose import Kernel
from lowering.isa import COPY, LOAD_WORD, STORE_WORD, ZERO_F32
from lowering.program import Address, Buffer, Comment, Instr, Program, Registers, Slot
from lowering.registers import LANE
from lowering.target import target
from property_tests.lowering.ptx_machine import PtxMachine, execute
from property_tests.lowering.text_cases import (
    ARCHITECTURES,
    CASES,
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
from tilelayout.expr import Index, Var

compiles = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)

SM_80 = target("sm_80")


def copy_kernel(place: tuple[Index, ...], to: tuple[Index, ...], shape: tuple[int, ...]) -> Kernel:
    """One word of a float32 tensor from one place to another of the same shape."""
    a, d = Registers("a", "A", "float32", 1, "f32"), Registers("d", "D", "float32", 1, "f32")
    x, y = Buffer("x", "A", "float32", shape), Buffer("y", "D", "float32", shape)
    core = Program("move", 1, (a,), (d,), (Instr(COPY["f32"], ((Slot(d, 0),), (Slot(a, 0),))),))
    load = Instr(LOAD_WORD["f32"], ((Slot(a, 0),), Address(x, place)))
    store = Instr(STORE_WORD["f32"], (Address(y, to), (Slot(d, 0),)))
    return Kernel(core, (x, y), (load,), (store,), 32)


# --- form -----------------------------------------------------------------------------------------


def test_a_text_from_top_to_bottom() -> None:
    assert (
        warp((1, 1, 1, 8), "bfloat16").cuda
        == """\
__device__ __forceinline__ void ptx_mma_sync_aligned_m16n8k8_row_col_f32_bf16_bf16_f32(
    float &d0, float &d1, float &d2, float &d3,
    unsigned a0, unsigned a1,
    unsigned b0)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, \
{%0, %1, %2, %3};"
        : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
        : "r"(a0), "r"(a1), "r"(b0));
}

__device__ __forceinline__ void gemm_m16n8k8_bf16(
    float d_local[4],
    const unsigned a_words[2],
    const unsigned b_words[1])
{
    // m = 0, n = 0
    d_local[0] = 0.0f;
    d_local[1] = 0.0f;
    d_local[2] = 0.0f;
    d_local[3] = 0.0f;
    ptx_mma_sync_aligned_m16n8k8_row_col_f32_bf16_bf16_f32(d_local[0], d_local[1], d_local[2], d_local[3], \
a_words[0], a_words[1], b_words[0]);
}

// A: bfloat16[16, 8], row-major
// B: bfloat16[8, 8], row-major
// D: float32[16, 8], row-major
extern "C" __global__ __launch_bounds__(32) void gemm_m16n8k8_bf16_kernel(
    const unsigned short *A,
    const unsigned short *B,
    float *D)
{
    const int lane = threadIdx.x & 31;
    float d_local[4];
    unsigned a_words[2];
    unsigned b_words[1];

    a_words[0] = *reinterpret_cast<const unsigned *>(A + (2*lane));
    a_words[1] = *reinterpret_cast<const unsigned *>(A + (2*lane + 64));
    b_words[0] = (unsigned)B[16*(lane & 3) + (lane >> 2)] | (unsigned)B[16*(lane & 3) + (lane >> 2) + 8] << 16;

    gemm_m16n8k8_bf16(d_local, a_words, b_words);

    D[2*lane] = d_local[0];
    D[2*lane + 1] = d_local[1];
    D[2*lane + 64] = d_local[2];
    D[2*lane + 65] = d_local[3];
}
"""
    )


@pytest.mark.parametrize("name", CASES)
def test_one_helper_called_once_an_atom(name: str) -> None:
    lowered = one(CASES[name])
    text = lowered.cuda
    calls = multiplications(lowered.program)
    (mnemonic,) = lowered.instructions
    helper = "ptx_" + mnemonic.replace(".", "_")
    assert text.count(helper) == len(calls) + 1
    assert text.count("mma.sync") == 1
    arguments = [", ".join([f"{group}[{i}]" for operand in mma[:3] for group, i in operand]) for mma in calls]
    wanted = [f"    {helper}({named});" for named in arguments]
    assert [line for line in text.splitlines() if line.startswith(f"    {helper}")] == wanted


@pytest.mark.parametrize("name", CASES)
def test_the_text_stands_alone(name: str) -> None:
    lowered = one(CASES[name])
    text = lowered.cuda
    assert "#" not in text
    assert text.isascii()
    assert (
        f'extern "C" __global__ __launch_bounds__({CASES[name].launch or 32}) void {lowered.kernel.name}('
        in text
    )
    for r in lowered.program.registers:
        assert f"{'float' if r.kind == 'f32' else 'unsigned'} {r.name}[{r.count}]" in text
    assert ("c_local" in text) == (lowered.call.beta == 1.0)
    assert ("const int warp = threadIdx.x >> 5;" in text) == (CASES[name].launch is not None)


def test_comments_of_the_program_are_kept() -> None:
    lowered = warp((2, 2, 1, 16), "float16")
    text = lowered.cuda
    assert [text.count(f"// m = {m}, n = {n}\n") for m in range(2) for n in range(2)] == [1, 1, 1, 1]
    kernel = lowered.kernel
    noted = replace(
        kernel, core=replace(kernel.core, body=(Comment("ends in \\"), Comment("a\nb"), *kernel.core.body))
    )
    assert "    // ends in \\.\n    // a b\n" in cuda_source(noted)


def test_the_text_is_the_same_every_time() -> None:
    first, second = (one(CASES["cta 2x2 warps float16"]).cuda for _ in range(2))
    assert first == second


def test_a_write_only_operand_and_scratch_registers() -> None:
    """Outputs are numbered first, a percent sign is doubled, what is neither in nor out is declared inside."""
    kernel = copy_kernel((LANE,), (LANE,), (32,))
    scratch = Registers("lanes", "A", "float32", 1, "b32")
    a, d = kernel.core.inputs[0], kernel.core.outputs[0]
    lane_id = replace(
        COPY["b32"], name="lane", template="mov.u32 {d},\n%laneid;", operands=COPY["b32"].operands[:1]
    )
    add = replace(
        COPY["f32"], name="add", template="add.f32 {d}, {a}, {d0};",
        operands=(*COPY["f32"].operands[::-1], replace(COPY["f32"].operands[1], name="d0")),
    )  # fmt: skip
    body = (
        Instr(lane_id, ((Slot(scratch, 0),),)),
        Instr(add, ((Slot(a, 0),), (Slot(d, 0),), (Slot(a, 0),))),
    )
    text = cuda_source(replace(kernel, core=replace(kernel.core, body=body, scratch=(scratch,))))
    assert 'asm("mov.u32 %0,\\n%%laneid;"' in text
    assert 'asm("add.f32 %0, %1, %2;"\n        : "=f"(d0)\n        : "f"(a0), "f"(d00));' in text
    assert "ptx_add_f32(a[0], d[0], a[0]);" in text
    assert "    unsigned lanes[1];\n    ptx_mov_u32(lanes[0]);" in text


# --- names and addresses ------------------------------------------------------------------------------


@compiles
def test_names_that_mean_something_in_cuda_are_avoided() -> None:
    lowered = renamed({"D": "float", "A": "lane", "B": "threadIdx", "C": "Größe"})
    before = inputs(lowered.kernel)
    check(lowered, execute(compile_cuda(lowered.cuda, SM_80), before), before)
    assert lowered.cuda.isascii()


@compiles
@pytest.mark.parametrize("row", [2**24, 2**24 + 1, 2**25, 2**31 + 3, 2**40])
@pytest.mark.parametrize("column", [0, 5, 2**24 - 1])
def test_indices_beyond_two_gigabytes(row: int, column: int) -> None:
    """C19: 64-bit index arithmetic from the first byte at 2**31 on, and exact everywhere."""
    text = cuda_source(copy_kernel((LANE, column), (LANE, row - 1), (32, row)))
    assert f"const {'long long' if 4 * 32 * row > 2**31 else 'int'} lane = threadIdx.x & 31;" in text
    machine = PtxMachine(compile_cuda(text, SM_80), [None, None])
    machine.run()
    places = {opcode[:2]: offsets for opcode, _, offsets in machine.accesses}
    assert places == {
        "ld": [4 * (lane * row + column) for lane in range(32)],
        "st": [4 * (lane * row + row - 1) for lane in range(32)],
    }


def test_addresses_that_c_cannot_compute_are_refused() -> None:
    with pytest.raises(LayoutError, match="beyond 64 bits"):
        cuda_source(copy_kernel((LANE, 0), (LANE, 0), (32, 2**57)))
    with pytest.raises(LayoutError, match=r"an address uses i, m \(remedy: a kernel has lane and warp\)"):
        cuda_source(copy_kernel((Var("m", 0, 3) + Var("i", 0, 3),), (LANE,), (32,)))


def test_unknown_memory_instructions_are_refused() -> None:
    kernel = copy_kernel((LANE,), (LANE,), (32,))
    other = replace(kernel.loads[0], instruction=replace(LOAD_WORD["f32"], name="load.other"))
    with pytest.raises(ValueError, match=r"load\.other has no C\+\+ as a load"):
        cuda_source(replace(kernel, loads=(other,)))
    other = replace(kernel.stores[0], instruction=replace(STORE_WORD["f32"], name="store.other"))
    with pytest.raises(ValueError, match=r"store\.other has no C\+\+ as a store"):
        cuda_source(replace(kernel, stores=(other,)))
    with pytest.raises(ValueError, match="is a memory access in a register program"):
        cuda_source(replace(kernel, core=replace(kernel.core, body=(kernel.loads[0],))))


# --- numbers ----------------------------------------------------------------------------------------


@compiles
@pytest.mark.parametrize("name", CASES)
def test_the_text_multiplies(name: str) -> None:
    lowered = one(CASES[name])
    before = inputs(lowered.kernel)
    check(lowered, execute(compile_cuda(lowered.cuda, SM_80), before), before)


@compiles
@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize(("tiling", "dtype", "beta"), LARGE)
def test_large_texts_compile_without_spills(
    name: str, tiling: tuple[int, int, int, int], dtype: str, beta: float
) -> None:
    ptx = compile_cuda(warp(tiling, dtype, beta, target=name).cuda, target(name))
    assert ptx.count("mma.sync") == np.prod(tiling[:3])
    cubin = assemble(ptx, target(name))
    assert cubin.spill_bytes == cubin.local_bytes == 0


@compiles
def test_zero_and_copy_are_plain_c() -> None:
    for beta, plain in ((0.0, "d_local[0] = 0.0f;"), (1.0, "d_local[0] = c_local[0];")):
        text = warp(*SMALLEST, beta).cuda
        assert plain in text
        assert re.findall(r"asm[^;]*", text)[1:] == []
        assert ZERO_F32.mnemonic not in text
