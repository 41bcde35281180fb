"""What the text backends and numba make of every dense record: it assembles, and gives the numbers it should.

The texts are executed on a machine for PTX text: our own, that nvrtc makes of our CUDA C++, and that numba-cuda makes.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from lowering import Lowered
from lowering.backends import numba_cuda
from lowering.backends.arrays import blank, from_memory, to_memory
from lowering.backends.assemble import assemble, compile_cuda
from lowering.isa import MmaInstruction
from lowering.program import Buffer
from lowering.target import target

from .. import record_cases as cases
from .numba_machine import execute as execute_numba
from .ptx_machine import execute

assembles = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)

ORIENTATIONS = [(False, False), (True, False), (False, True), (True, True)]
TILED_FOR = ("sm_90a", *[pytest.param(name, marks=pytest.mark.slow) for name in ("sm_80", "sm_120a")])


def lowered_in(record: MmaInstruction, turned: tuple[bool, bool], **options: Any) -> Lowered:
    call = cases.call_of(record, transpose_a=turned[0], transpose_b=turned[1], **options)
    return cases.lowered_of(record, call)


def held(buffer: Buffer, tiles: Any, arrays: dict[str, Any]) -> Any:
    """What a kernel's tensor holds before: its operand, or all bits 1 for D."""
    element = tiles[buffer.role].element
    array = blank(buffer.shape, element) if buffer.role == "D" else arrays[buffer.role]
    return to_memory(array, element, buffer.container)


def check(record: MmaInstruction, lowered: Lowered, run: Any, seed: int = 0) -> None:
    """`run(arrays)` on the kernel's tensors gives the product in D's and leaves the others as they were."""
    call, buffers = lowered.call, lowered.kernel.buffers
    arrays = cases.whole(call, np.random.default_rng(seed))
    before = [held(b, call.tiles, arrays) for b in buffers]
    after = run(before)
    wanted, _ = cases.answer(record, call, arrays)
    for buffer, x, y in zip(buffers, after, before, strict=True):
        if buffer.role == "D":
            element = call.tiles["D"].element
            found = from_memory(x.view(element.numpy), element, buffer.container)
            np.testing.assert_array_equal(found.astype(np.float64), wanted)
        else:
            np.testing.assert_array_equal(x.view(np.uint8), y.view(np.uint8))


# --- PTX ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", cases.RECORDS, ids=lambda i: i.name)
def test_our_ptx_computes_the_product(record: MmaInstruction) -> None:
    for number, turned in enumerate(ORIENTATIONS[:: 3 if record not in cases.FAMILIES else 1]):
        lowered = lowered_in(record, turned)
        check(record, lowered, lambda x, text=lowered.ptx: execute(text, x), number)


@assembles
@pytest.mark.parametrize("record", cases.RECORDS, ids=lambda i: i.name)
def test_our_ptx_assembles(record: MmaInstruction) -> None:
    """For the first target that has the record; nothing is kept in local memory."""
    assert lowered_in(record, (False, True)).cubin.local_bytes == 0


@assembles
@pytest.mark.parametrize("name", TILED_FOR)
@pytest.mark.parametrize("record", cases.FAMILIES, ids=lambda i: i.name)
def test_tilings_assemble_in_both_orientations(record: MmaInstruction, name: str) -> None:
    where = target(name)
    if record.instruction.refusal(where):
        where = cases.first_target(record)
    for turned in ((False, False), (True, True)):
        call = cases.call_of(record, (2, 2, 2), transpose_a=turned[0], transpose_b=turned[1])
        lowered = cases.lowered_of(record, call, where)
        assert (lowered.cubin.local_bytes, lowered.cubin.spill_bytes) == (0, 0)


# --- CUDA C++ -----------------------------------------------------------------------------------


@assembles
@pytest.mark.parametrize("record", cases.FAMILIES, ids=lambda i: i.name)
def test_our_cuda_text_compiles_and_computes_the_product(record: MmaInstruction) -> None:
    for turned in ((False, True), (True, False)):
        lowered = lowered_in(record, turned)
        assert "#include" not in lowered.cuda
        ptx = compile_cuda(lowered.cuda, lowered.context.target)
        assert ".local" not in ptx
        check(record, lowered, lambda x, text=ptx: execute(text, x))


@assembles
@pytest.mark.parametrize(
    "record", [i for i in cases.RECORDS if i not in cases.FAMILIES], ids=lambda i: i.name
)
@pytest.mark.slow
def test_the_cuda_text_of_the_others_compiles(record: MmaInstruction) -> None:
    lowered = lowered_in(record, (False, False))
    compile_cuda(lowered.cuda, lowered.context.target)


# --- numba --------------------------------------------------------------------------------------


@assembles
@pytest.mark.parametrize("record", cases.FAMILIES, ids=lambda i: i.name)
def test_numba_kernels_compute_the_product(record: MmaInstruction) -> None:
    for turned in ((False, True), (True, False)):
        lowered = lowered_in(record, turned)
        where = lowered.context.target
        ptx = numba_cuda.kernel_ptx(lowered.kernel, lowered.call.tiles, where)
        assert ".local" not in ptx
        assemble(ptx, where)
        check(record, lowered, lambda x, text=ptx: execute_numba(text, x))
