"""A kernel of several calls says what it is, runs by the names of its tiles, and is assembled, as a lowered call is."""

from __future__ import annotations

import doctest
import importlib
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowering import BARRIER, LoweredSequence, MachineError, Tile, copy, lower, sequence
from lowering.backends.assemble import AssemblerError, assemble, compile_cuda
from lowering.backends.banks import shared_accesses
from lowering.backends.cubin_info import kernel_info
from lowering.backends.cuda_program import cuda_program
from lowering.backends.ptx import ptx_module
from lowering.backends.shared_memory import SharedMemory
from lowering.fragments import A_FRAG
from lowering.target import target
from tilelayout import LayoutError, S, TileLayout, laneid

from ..sequence_cases import inputs, row_major, staged_gemm

NVIDIA = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)
SIZES = (32, 32, 32)
KERNEL = staged_gemm(sizes=SIZES)
WITH_C = staged_gemm(sizes=SIZES, beta=1.0)
CONFLICTS = staged_gemm(sizes=(32, 32, 64), a_stage=row_major((32, 64)), b_stage=row_major((64, 32)))
LARGE = staged_gemm(sizes=(128, 128, 128), warps=(4, 2))

KERNELS = pytest.mark.parametrize("kernel", [KERNEL, WITH_C, CONFLICTS, LARGE])


# --- what it says of itself ---------------------------------------------------------------------


def test_its_short_form() -> None:
    assert repr(KERNEL) == (
        "<LoweredSequence kernel: 8 calls and 1 barrier, gA, gB -> gD, for sm_90 in 128 threads>"
    )
    assert "9 calls and 1 barrier, gA, gB, gD -> gD" in repr(WITH_C)
    assert str(KERNEL) == str(KERNEL.program)


@KERNELS
def test_explain_accounts_for_every_call_and_access(kernel: LoweredSequence) -> None:
    """Each call with its variant, in order; the accesses of the whole program, none twice and none left out."""
    text = kernel.explain()
    calls = re.findall(r"^ +(\d+) (\S.*)\n +(\S+): ", text, re.MULTILINE)
    assert calls == [(str(i), str(c.call), c.variant) for i, c in enumerate(kernel.calls, 1)]
    assert text.count("bar.sync") == kernel.parts.count(BARRIER) == 1
    told: dict[tuple[str, str, int], int] = {}
    for count, name, tile, degree in re.findall(
        r"^ +(\d+) of (\S+) on (\w+): (no|\d+-way) bank", text, re.MULTILINE
    ):
        kind = name, tile, 1 if degree == "no" else int(degree[:-4])
        told[kind] = told.get(kind, 0) + int(count)
    real: dict[tuple[str, str, int], int] = {}
    for a in shared_accesses(kernel.program):
        kind = a.instruction, a.buffer, a.degree
        real[kind] = real.get(kind, 0) + 1
    assert told == real
    if kernel in (CONFLICTS, LARGE):  # rows of 128 bytes, and of 272
        assert (max(degree for _, _, degree in real) > 1) == (kernel is CONFLICTS)
    assert f"registers: {kernel.program.peak_registers} of a thread" in text


@KERNELS
def test_explain_maps_shared_memory(kernel: LoweredSequence) -> None:
    """Sizes and alignments of all arrays; where they begin in dynamic memory, without overlaps."""
    text = kernel.explain()
    shared = SharedMemory.of(kernel.program)
    assert kernel.shared_memory == shared
    told = re.findall(
        r"^ +(\w+): (\d+) bytes(?: from byte (\d+))?, \w+, aligned to (\d+)$", text, re.MULTILINE
    )
    assert {name: (int(size), int(alignment)) for name, size, _, alignment in told} == {
        b.role: (b.bytes, b.alignment) for b in shared.offsets
    }
    assert f"shared memory: {shared.bytes} bytes {'dynamic' if kernel is LARGE else 'in declared'}" in text
    assert all((begin != "") == (kernel is LARGE) for _, _, begin, _ in told)
    if kernel is LARGE:
        taken = [x for _, size, begin, _ in told for x in range(int(begin), int(begin) + int(size))]
        assert len(set(taken)) == len(taken)
        assert max(taken) == shared.bytes - 1


def test_explain_without_shared_memory() -> None:
    x, y = (Tile(n, (16, 16), "float16", row_major((16, 16)), "global") for n in ("x", "y"))
    held = Tile("held", (16, 16), "float16", A_FRAG)
    kernel = sequence([lower(c, target="sm_80", scope="warp") for c in (copy(held, x), copy(y, held))])
    assert "shared memory: none" in kernel.explain()
    assert "2 calls and no barrier, x -> y, for sm_80 in 32 threads" in repr(kernel)
    assert kernel.shared_memory.bytes == 0


# --- running ------------------------------------------------------------------------------------


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_it_runs_by_the_names_of_its_tiles(seed: int, with_c: bool) -> None:
    kernel = WITH_C if with_c else KERNEL
    arrays = inputs(kernel, seed)
    wanted = arrays["gA"].astype(np.float64) @ arrays["gB"].astype(np.float64) + with_c * arrays["gD"]
    before = {name: x.copy() for name, x in arrays.items()}
    found = kernel.run(**arrays)
    assert list(found) == ["gD"]
    np.testing.assert_array_equal(found["gD"], wanted)
    np.testing.assert_array_equal(kernel.run(arrays)["gD"], wanted)
    wider = {name: x.astype(np.float64) for name, x in arrays.items()}
    np.testing.assert_array_equal(kernel.run(wider)["gD"], wanted)
    assert all(np.array_equal(arrays[name], x) for name, x in before.items())


def test_names_of_tiles_may_be_those_of_arguments() -> None:
    """Tiles called `self`, `numerics` and `arrays`; the second only fits into the mapping."""
    names = ("self", "numerics", "arrays")
    tiles = [Tile(n, (16, 16), "float16", row_major((16, 16)), "global") for n in names]
    held = [Tile(f"held{i}", (16, 16), "float16", A_FRAG) for i in range(2)]
    calls = [
        copy(held[0], tiles[0]),
        copy(tiles[1], held[0]),
        copy(held[1], tiles[0]),
        copy(tiles[2], held[1]),
    ]
    kernel = sequence([lower(c, target="sm_80", scope="warp") for c in calls])
    x = np.arange(256, dtype=np.float16).reshape(16, 16)
    for found in (
        kernel.run({"self": x}),
        kernel.run(self=x),
        kernel.run({"self": x, "numerics": x, "arrays": x}),
    ):
        assert list(found) == ["numerics", "arrays"]
        assert all((y == x).all() for y in found.values())


def test_what_run_refuses() -> None:
    arrays = inputs(KERNEL)
    wrong = {name: arrays[name] for name in ("gA", "gB")}
    for given_, said in (
        ({**wrong, "gC": arrays["gD"]}, r"no tile 'gC', .*\n?.*it takes gA, gB, gD"),
        ({**wrong, "sA": arrays["gA"]}, "sA is in shared memory, which holds nothing when the kernel begins"),
        ({**wrong, "A": arrays["gA"]}, "A is in local memory"),
        ({"gB": arrays["gB"]}, "gA is read and was not given"),
        ({"gA": None, "gB": arrays["gB"]}, "gA is read and was not given"),
        ({}, "gA, gB is read and was not given"),
        ({**wrong, "gA": arrays["gA"][:16]}, r"gA has shape \(16, 32\)"),
        ({**wrong, "gA": arrays["gA"].astype(int)}, "gA has dtype int64"),
    ):
        with pytest.raises(LayoutError, match=said):
            KERNEL.run(given_)
    with pytest.raises(LayoutError, match="sm_1"):
        KERNEL.run(wrong, numerics="sm_1")
    with pytest.raises(MachineError, match="gD that holds nothing"):
        WITH_C.run(wrong)
    with pytest.raises(MachineError, match="with no barrier between"):
        staged_gemm(sizes=SIZES, no_barrier=True).run(wrong)


def test_calls_for_different_targets_are_refused() -> None:
    x, y = (Tile(n, (16, 16), "float16", row_major((16, 16)), "global") for n in ("x", "y"))
    held = Tile("held", (16, 16), "float16", A_FRAG)
    first = lower(copy(held, x), target="sm_80", scope="warp")
    with pytest.raises(LayoutError, match=r"y \(global\) = .* is lowered for sm_90, held .* for sm_80"):
        sequence([first, lower(copy(y, held), target="sm_90", scope="warp")])
    with pytest.raises(LayoutError, match="no lowered call was given"):
        sequence([BARRIER])


# --- text and machine code ----------------------------------------------------------------------


def test_its_texts_are_those_of_its_program() -> None:
    assert KERNEL.ptx == ptx_module(KERNEL.program, target("sm_90"))
    assert KERNEL.cuda == cuda_program(KERNEL.program)
    assert sequence(KERNEL.parts, "other").ptx.count(".entry other(") == 1


@NVIDIA
@KERNELS
def test_its_machine_code_is_explained(kernel: LoweredSequence) -> None:
    (info,) = kernel_info(kernel.cubin.data)
    assert (info.name, info.local_bytes) == ("kernel", 0)
    assert f"machine code: {info.registers} registers and no local memory a thread" in kernel.explain(
        assembled=True
    )
    assert "machine code" not in kernel.explain()


@NVIDIA
def test_local_memory_is_explained_and_not_assembled() -> None:
    """Two fragments that are live at once, of more registers together than a thread has."""
    shape = (80, 64)
    memory = [Tile(n, shape, "float32", row_major(shape), "global") for n in ("a", "b", "c", "d")]
    layout = TileLayout(S[(80, 2, 32) : (2, 1, 1 @ laneid)])
    held = [Tile(f"held{i}", shape, "float32", layout) for i in range(2)]
    calls = [*map(copy, held, memory[:2]), *map(copy, memory[2:], held)]
    kernel = sequence([lower(c, target="sm_80", scope="warp") for c in calls])
    with pytest.raises(AssemblerError, match="bytes of local memory"):
        _ = kernel.cubin
    text = kernel.explain(assembled=True)
    assert re.search(r"machine code: 255 registers and \d+ bytes of local memory a thread", text)
    assert "registers: 320 of a thread" in text


@NVIDIA
@settings(max_examples=10, deadline=None)
@given(st.lists(st.from_regex(r"[a-c]_?[0-9]{0,2}", fullmatch=True), min_size=4, max_size=4, unique=True))
def test_tiles_of_any_names_assemble(names: list[str]) -> None:
    """Names that end in digits, and that others are the beginnings of."""
    shape = (16, 16)
    memory = [Tile(n, shape, "float16", row_major(shape), "global") for n in names[:2]]
    held = [Tile(n, shape, "float16", A_FRAG) for n in names[2:]]
    calls = [
        copy(held[0], memory[0]),
        copy(held[1], memory[1]),
        copy(memory[1], held[0]),
        copy(memory[0], held[1]),
    ]
    kernel = sequence([lower(c, target="sm_80", scope="warp") for c in calls])
    assert (
        kernel.cubin.local_bytes
        == assemble(compile_cuda(kernel.cuda, kernel.target), kernel.target).local_bytes
        == 0
    )
    assert set(kernel.run({n: np.zeros(shape, np.float16) for n in names[:2]})) == set(names[:2])


def test_it_is_a_value_whose_program_can_be_exchanged() -> None:
    """As the tests of mistakes do: what it runs is its program."""
    nothing = replace(KERNEL, program=replace(KERNEL.program, body=()))
    assert nothing.results == ()
    assert nothing.run() == {}


@pytest.mark.parametrize(("name", "least"), [("lowering.joined", 10), ("lowering.backends.names", 3)])
def test_the_examples_hold(name: str, least: int) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert (found.failed, found.attempted >= least) == (0, True)
