"""Whole kernels of lowered calls: global memory to shared memory to registers, a gemm, and back, against numpy.

A wrong lane's address, a missing barrier and a wrong register each give wrong numbers or an error (C51, C52, C71).
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowering import MachineError, Tile, copy, gemm, lower
from lowering.backends.assemble import assemble, compile_cuda
from lowering.backends.cuda_program import cuda_program
from lowering.backends.ptx import ptx_module
from lowering.backends.shared_memory import SharedMemory
from lowering.compose import BARRIER, Sequence, sequence
from lowering.fragments import A_FRAG, partition
from lowering.isa import BAR_SYNC
from lowering.program import Address, Instr, Slot
from lowering.registers import LANE
from lowering.target import TARGETS, target
from tilelayout import LayoutError, S, TileLayout, laneid, warpid
from tilelayout.expr import evaluate

from ..sequence_cases import RECORD, column_major, inputs, row_major, run, staged_gemm

NVIDIA = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)


def test_stages_filled_directly() -> None:
    """The same kernel with copies from memory to memory, each with registers of its own."""
    record, shape = RECORD["m16n8k16.f16"], (64, 64)
    parts = partition(record, 64, 64, 64, (2, 2))
    where = {"target": "sm_80", "scope": "cta", "launch": 128}
    gA, gB = (Tile(n, shape, "float16", row_major(shape), "global") for n in ("gA", "gB"))
    sA, sB = (Tile(n, shape, "float16", row_major(shape).swizzle(3, 3, 3), "shared") for n in ("sA", "sB"))
    A, B = Tile("A", shape, "float16", parts.A), Tile("B", shape, "float16", parts.B)
    D, gD = Tile("D", shape, "float32", parts.D), Tile("gD", shape, "float32", row_major(shape), "global")
    calls = [copy(sA, gA), copy(sB, gB), None, copy(A, sA), copy(B, sB), gemm(D, A, B, D), copy(gD, D)]
    found = sequence([BARRIER if c is None else lower(c, **where) for c in calls])
    assert [r.name for r in found.program.registers] == ["gA_staged", "gB_staged", "A", "B", "D"]
    check(found)


def check(found: Sequence, beta: float = 0.0) -> None:
    arrays = inputs(found)
    wide = {name: x.astype(np.float64) for name, x in arrays.items()}
    given_ = arrays if beta else {name: x for name, x in arrays.items() if name != "gD"}
    wanted = wide["gA"] @ wide["gB"] + beta * wide["gD"]
    np.testing.assert_array_equal(run(found, given_).astype(np.float64), wanted)


@pytest.mark.parametrize("beta", [0.0, 1.0])  # C52: clear or accumulate
@pytest.mark.parametrize(
    "name", ["m16n8k16.f16", "m16n8k16.bf16", "m16n8k32.s8", "m16n8k32.e4m3", "m16n8k8.tf32"]
)
def test_a_gemm_through_shared_memory(name: str, beta: float) -> None:
    check(staged_gemm(name, beta=beta), beta)


@settings(max_examples=settings.default.max_examples // 4)  # each lowers and runs a whole kernel
@given(st.data())
def test_stages_of_every_kind(data: Any) -> None:
    """Row-major, column-major, padded and swizzled stages; what is loaded how follows from them."""
    M, N, K = data.draw(st.sampled_from(((32, 32, 32), (64, 32, 32), (32, 16, 64))))
    stages = {}
    for role, shape in (("a_stage", (M, K)), ("b_stage", (K, N))):
        stage = data.draw(st.sampled_from((row_major, column_major)))(shape, 8 * data.draw(st.integers(0, 2)))
        if data.draw(st.booleans()):
            stage = stage.swizzle(data.draw(st.integers(1, 3)), 3, 3)
        stages[role] = stage
    check(staged_gemm(sizes=(M, N, K), warps=data.draw(st.sampled_from(((1, 2), (2, 1)))), **stages))


def test_four_bits_in_bytes() -> None:
    """kind::f8f6f4 takes e2m1 in bytes: copies that are told so leave it in the same registers, others are refused."""
    record, shape = RECORD["m16n8k32.f8f6f4.e2m1"], (32, 32)
    parts = partition(record, 32, 32, 32)
    where = {"target": "sm_120a", "scope": "warp"}
    tiles = {
        name: Tile(name, shape, "float4_e2m1fn", layout, scope)
        for name, layout, scope in (
            ("gA", row_major(shape), "global"), ("gB", row_major(shape), "global"),
            ("sA", row_major(shape, 16), "shared"), ("sB", column_major(shape, 16), "shared"),
            ("A", parts.A, "local"), ("B", parts.B, "local"),
        )
    }  # fmt: skip
    D, gD = Tile("D", shape, "float32", parts.D), Tile("gD", shape, "float32", row_major(shape), "global")
    pairs = [("sA", "gA"), ("sB", "gB"), None, ("A", "sA"), ("B", "sB")]

    def kernel(last: Any) -> Sequence:
        configs = [{"container": 8}] * 4 + [last]
        copies = [
            BARRIER if p is None else lower(copy(tiles[p[0]], tiles[p[1]]), config=config, **where)
            for p, config in zip(pairs, configs, strict=True)
        ]
        product = lower(gemm(D, tiles["A"], tiles["B"], D), config={"kind": "f8f6f4"}, **where)
        return sequence([*copies, product, lower(copy(gD, D), **where)])

    found = kernel({"container": 8})
    assert {i.name for i in found.program.instructions} >= {"ldmatrix.m8n8.x4.b16"}
    check(found)
    with pytest.raises(LayoutError, match="takes 4 bits for an element of sB, an earlier call 8"):
        kernel({})
    packed = lower(
        copy(tiles["B"], Tile("other", shape, "float4_e2m1fn", column_major(shape), "shared")), **where
    )
    product = lower(gemm(D, tiles["A"], tiles["B"], D), config={"kind": "f8f6f4"}, **where)
    said = r"holds B in 8 registers b32 of 4 elements, an earlier call in 4 registers b32 of 8 elements"
    with pytest.raises(LayoutError, match=said):
        sequence([packed, product])


# --- what a mistake does ------------------------------------------------------------------------

KERNEL = staged_gemm(sizes=(32, 32, 32))


def edited(found: Sequence, change: Any) -> Sequence:
    """The kernel with one instruction changed: `change(step number, instruction) -> instruction or None`."""
    body = []
    for number, step in enumerate(found.program.steps):
        arguments = [
            a if isinstance(a, Address) else tuple([Slot(r, i) for r, i in a]) for a in step.arguments
        ]
        new = change(number, Instr(step.instruction, tuple(arguments)))
        body += [] if new is None else [new]
    return replace(found, program=replace(found.program, body=tuple(body)))


ACCESSES = [
    (number, k)
    for number, step in enumerate(KERNEL.program.steps)
    for k, a in enumerate(step.arguments)
    if isinstance(a, Address)
]


@pytest.mark.parametrize(("number", "k"), ACCESSES)
@pytest.mark.parametrize("lane", [0, 5, 31])
def test_a_lane_that_points_elsewhere_is_noticed(number: int, k: int, lane: int) -> None:
    """One lane's address moved by 16 bytes, in each access of the kernel in turn."""

    def change(at: int, instr: Instr) -> Instr:
        if at != number:
            return instr
        address = instr.arguments[k]
        assert isinstance(address, Address)
        step = 128 // address.buffer.container
        here = address.coordinate[0]
        only = ((LANE ^ lane) + 31) // 32  # 0 in that lane, 1 in all others
        size = address.buffer.elements
        moved = (here + (1 - only) * step) % size
        return Instr(
            instr.instruction,
            (*instr.arguments[:k], Address(address.buffer, (moved,)), *instr.arguments[k + 1 :]),
        )

    arrays = inputs(KERNEL)
    right = run(KERNEL, arrays)
    try:
        wrong = run(edited(KERNEL, change), arrays)
    except MachineError:
        return
    assert not np.array_equal(right, wrong, equal_nan=True)


def test_a_missing_barrier_is_an_error() -> None:
    with pytest.raises(
        MachineError, match="reads what another thread has written in sA, with no barrier between"
    ):
        run(staged_gemm(sizes=(32, 32, 32), no_barrier=True), inputs(KERNEL))
    removed = edited(KERNEL, lambda _, instr: None if instr.instruction == BAR_SYNC else instr)
    with pytest.raises(MachineError, match="with no barrier between"):
        run(removed, inputs(KERNEL))


def test_a_missing_store_is_an_error() -> None:
    first = next(
        n for n, s in enumerate(KERNEL.program.steps) if s.instruction.name.startswith("store.shared")
    )
    removed = edited(KERNEL, lambda number, instr: None if number == first else instr)
    with pytest.raises(
        MachineError, match=r"ldmatrix.*reads an element of sA that holds nothing \(warp 0, lane 0"
    ):
        run(removed, inputs(KERNEL))


# --- what goes together -------------------------------------------------------------------------


def test_owners_agree_between_compute_and_store() -> None:
    """C51: one layout object says which warp has which rows, for the mma and for the store."""
    found = staged_gemm(sizes=(128, 64, 16), warps=(4, 1))
    check(found)
    lane, warp = np.indices((32, 4))
    for step in found.program.steps:
        for a in step.arguments:
            if isinstance(a, Address) and a.buffer.name == "gD":
                row = evaluate(a.element, {"lane": lane, "warp": warp}) // 64
                assert (row // 32 == warp).all()


def test_parts_must_fit_together() -> None:
    held = Tile("held", (16, 16), "float16", A_FRAG)
    first = Tile("first", (16, 16), "float16", row_major((16, 16)), "shared")
    load = lower(copy(held, first), target="sm_80", scope="warp")
    other = Tile(
        "held", (16, 16), "float16", TileLayout(S[(2, 8, 2, 4, 2) : (4, 4 @ laneid, 2, 1 @ laneid, 1)])
    )
    for bad, said in (
        ([], "no lowered call"),
        (
            [load, lower(copy(other, first), target="sm_80", scope="warp")],
            "two different tiles share the name 'held'",
        ),
        ([load, staged_call()], "is lowered for 4 warps at cta scope"),
    ):
        with pytest.raises(LayoutError, match=said):
            sequence(bad)


def staged_call() -> Any:
    wide = Tile(
        "wide", (64, 16), "float16", TileLayout(S[(4, 16, 2, 8) : (1 @ warpid, 2 @ laneid, 1 @ laneid, 1)])
    )
    return lower(
        copy(wide, Tile("memory", (64, 16), "float16", row_major((64, 16)), "global")),
        target="sm_80", scope="cta", launch=128,
    )  # fmt: skip


# --- text and machine code ----------------------------------------------------------------------


@NVIDIA
@pytest.mark.parametrize("where", list(TARGETS))
def test_the_kernel_assembles_for_every_target(where: str) -> None:
    name = "m16n8k8.f16" if where == "sm_75" else "m16n8k16.f16"
    found = staged_gemm(name, where=where)
    check(found)
    cubin = assemble(ptx_module(found.program, target(where)), target(where))
    assert cubin.spill_bytes == cubin.local_bytes == 0


@NVIDIA
@pytest.mark.parametrize("where", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_the_cuda_text_compiles(where: str) -> None:
    found = staged_gemm("m16n8k8.f16" if where == "sm_75" else "m16n8k16.f16", where=where)
    ptx = compile_cuda(cuda_program(found.program), target(where))
    assert assemble(ptx, target(where)).spill_bytes == 0
    for mnemonic in ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "st.shared.v4.b32", "bar.sync"):
        wanted = sum(s.instruction.mnemonic == mnemonic for s in found.program.steps)
        assert len(re.findall(rf"^\s*{re.escape(mnemonic)}\s", ptx, re.MULTILINE)) == wanted > 0


@NVIDIA
@pytest.mark.parametrize(
    ("name", "K"), [("m16n8k64.s4", 128), ("m16n8k32.s8", 128), ("m16n8k8.tf32", 64), ("m16n8k16.f64", 16)]
)
def test_the_texts_of_every_width_assemble(name: str, K: int) -> None:
    """Gathered nibbles and bytes, vectors of doubles, matrices into float registers."""
    found = staged_gemm(name, sizes=(64, 64, K), where="sm_90")
    check(found)
    for ptx in (
        ptx_module(found.program, target("sm_90")),
        compile_cuda(cuda_program(found.program), target("sm_90")),
    ):
        assert assemble(ptx, target("sm_90"), allow_spills=True).data


@NVIDIA
def test_matrices_go_into_float_registers() -> None:
    """An accumulator's columns as lines of shared memory: ldmatrix and stmatrix on registers of class f32."""
    layout = TileLayout(S[(2, 8, 2, 4) : (1, 4 @ laneid, 2, 1 @ laneid)])
    held = Tile("held", (16, 8), "float32", layout)
    stage = Tile("stage", (16, 8), "float32", row_major((16, 8)), "shared")
    out = Tile("out", (16, 8), "float32", row_major((16, 8)), "global")
    where = {"target": "sm_90", "scope": "warp"}
    calls = [copy(held, out), copy(stage, held), None, copy(held, stage), copy(out, held)]
    found = sequence([BARRIER if c is None else lower(c, **where) for c in calls])
    assert [i.name for i in found.program.instructions if "matrix" in i.name] == [
        "stmatrix.m8n8.x4.b16",
        "ldmatrix.m8n8.x4.b16",
    ]
    for ptx in (
        ptx_module(found.program, target("sm_90")),
        compile_cuda(cuda_program(found.program), target("sm_90")),
    ):
        assert assemble(ptx, target("sm_90")).data


def test_arrays_are_declared_with_their_alignment() -> None:
    """C71: a swizzle of 128 bytes asks for 1024, others for 16."""
    found = staged_gemm(sizes=(32, 64, 32), b_stage=row_major((32, 64)).swizzle(3, 3, 3))
    text = ptx_module(found.program, target("sm_80"))
    assert (
        ".shared .align 16 .b8 kernel_sA[2544];" in text
    )  # 32 rows of 40 halves, the last without its padding
    assert ".shared .align 1024 .b8 kernel_sB[4096];" in text
    assert "dynamic" not in text


@NVIDIA
def test_more_than_48_kib_are_dynamic() -> None:
    """All arrays then lie in dynamic memory: nothing overlaps."""
    found = staged_gemm(sizes=(128, 128, 128), warps=(4, 2))
    text = ptx_module(found.program, target("sm_80"))
    plan = SharedMemory.of(found.program)
    assert plan.dynamic == plan.bytes > 48 * 1024
    assert f".extern .shared .align 16 .b8 dynamic_shared[];  // {plan.bytes} bytes" in text
    ends = sorted((at, at + b.bytes, b.alignment) for b, at in plan.offsets.items())
    assert all(end <= begin for (_, end, _), (begin, _, _) in pairwise(ends))
    assert all(begin % alignment == 0 for begin, _, alignment in ends)
    assert assemble(text, target("sm_80"), allow_spills=True).data
    compiled = compile_cuda(cuda_program(found.program), target("sm_80"))
    assert assemble(compiled, target("sm_80"), allow_spills=True).data


def test_warps_that_share_memory_are_all_there() -> None:
    with pytest.raises(LayoutError, match="the warps of kernel share memory: it takes 128 threads, got 256"):
        ptx_module(KERNEL.program, target("sm_80"), 256)
