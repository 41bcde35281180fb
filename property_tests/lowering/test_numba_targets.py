"""The numba.cuda backend and what is around it: architectures, drivers, launches, absence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numba import cuda
from numba.cuda.core import config
from numba.cuda.cudadrv import driver, nvrtc

from lowering.backends import numba_cuda
from lowering.backends.numba_cuda import CompileError, kernel_ptx, staged
from lowering.backends.numba_cuda.ptx import compiled_for
from property_tests.gemm_cases import Case, all_cases
from property_tests.lowering.numba_cases import (
    FLOAT,
    HALF,
    TypingErrors,
    in_subprocess,
    lowered_for,
    one_atom,
    operands,
    product,
)
from property_tests.lowering.numba_machine import execute
from tilelayout import LayoutError

# --- architectures, drivers, absence --------------------------------------------------------------------


def test_an_unknown_target_is_refused_with_its_neighbors() -> None:
    lowered = one_atom()
    with pytest.raises(ValueError, match="unknown target 'sm_99': nearest known are sm_90a and sm_100"):
        kernel_ptx(lowered.kernel, lowered.call.tiles, "sm_99")


def test_an_instruction_that_the_target_lacks_is_refused() -> None:
    lowered = one_atom()
    with pytest.raises(CompileError, match=r"m16n8k16\.f16 needs sm_80 or newer, the target is sm_75"):
        kernel_ptx(lowered.kernel, lowered.call.tiles, "sm_75")


@pytest.mark.parametrize("capability", [(7, 5), (7, 5, "")])
def test_a_user_s_kernel_for_a_target_that_lacks_the_instruction_is_refused_by_name(
    capability: tuple,
) -> None:
    """By numba's typing of the user's kernel, with our names, before an assembler sees a line."""
    lowered = one_atom()
    f = lowered.device_function

    def kernel(A: Any, B: Any, D: Any) -> None:
        f.store(D, f(f.load_a(A), f.load_b(B)))

    arrays = (HALF, HALF, FLOAT)
    with pytest.raises(TypingErrors, match=r"m16n8k16\.f16 needs sm_80 or newer, the target is sm_75"):
        cuda.compile(kernel, arrays, cc=capability, device=False, abi="numba", output="ptx")
    for fine in ((8, 0), (9, 0), (9, 0, "a"), (12, 0)):
        ptx, _ = cuda.compile(kernel, arrays, cc=fine, device=False, abi="numba", output="ptx")
        assert "mma.sync" in ptx


def test_the_target_that_numba_makes_code_for_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [t.name for t in compiled_for((9, 0))] == ["sm_90", "sm_90a"]
    assert [t.name for t in compiled_for((9, 0, ""))] == ["sm_90"]
    assert [t.name for t in compiled_for((9, 0, "a"))] == ["sm_90a"]
    assert [t.name for t in compiled_for((8, 6))] == ["sm_86"]
    monkeypatch.setattr(config, "FORCE_CUDA_CC", (7, 5))
    assert [t.name for t in compiled_for((9, 0, "a"))] == ["sm_75"]
    monkeypatch.setattr(config, "FORCE_CUDA_CC", (8, 8))
    assert [t.name for t in compiled_for((9, 0, "a"))] == ["sm_88"]
    monkeypatch.setattr(config, "FORCE_CUDA_CC", (99, 0))  # newer than the table of targets
    with pytest.raises(CompileError, match="unknown target 'sm_990'"):
        compiled_for((9, 0))


def test_a_target_that_the_libraries_lack_is_refused_not_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = one_atom()
    monkeypatch.setattr(nvrtc, "get_supported_ccs", lambda: [(8, 0), (9, 0)])
    with pytest.raises(
        CompileError, match=r"cannot compile for sm_89: they know compute capability 8.0, 9.0"
    ):
        kernel_ptx(lowered.kernel, lowered.call.tiles, "sm_89")


def test_a_target_that_numba_replaces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = one_atom()
    monkeypatch.setattr(config, "FORCE_CUDA_CC", (8, 0))
    with pytest.raises(CompileError, match=r"PTX for sm_86 was asked for, and numba-cuda made it for sm_80"):
        kernel_ptx(lowered.kernel, lowered.call.tiles, "sm_86")


def test_nothing_but_launch_asks_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any) -> None:
        raise OSError("the driver was asked")

    monkeypatch.setattr(driver.Driver, "ensure_initialized", refuse)
    lowered = one_atom()
    tiles = lowered.call.tiles
    assert numba_cuda.kernel(lowered.kernel, tiles)
    assert kernel_ptx(lowered.kernel, tiles, "sm_90a")
    with pytest.raises(OSError, match="the driver was asked"):
        numba_cuda.gpu_target()


def test_launch_says_that_it_needs_a_driver() -> None:
    code = """
from lowering.backends import numba_cuda
from property_tests.lowering.test_numba_cuda import one_atom, operands
lowered = one_atom()
print(numba_cuda.gpu_name())
try:
    numba_cuda.launch(lowered.kernel, lowered.call.tiles, operands(lowered))
except numba_cuda.DriverError as error:
    print(error)
"""
    name, said = in_subprocess(code, CUDA_VISIBLE_DEVICES="-1").splitlines()
    assert name == "None"
    assert said.startswith("launch needs an NVIDIA driver and a GPU, and there is none here: ")


class Device:
    """An array in a memory of its own, as `cuda.to_device` makes it."""

    def __init__(self, array: Any) -> None:
        assert array.dtype != ml_dtypes.bfloat16
        self.array = np.array(array)

    def copy_to_host(self) -> Any:
        return self.array.copy()


@pytest.mark.parametrize("case", [c for c in all_cases() if "2x2" in c.name], ids=lambda case: case.name)
def test_launch_gives_the_kernel_what_it_takes(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything about a launch but the GPU, for which the machine for text stands in."""
    lowered = lowered_for(case)
    ptx = kernel_ptx(lowered.kernel, case.call.tiles, "sm_80")

    def run(*arrays: Device) -> None:
        assert np.isnan(arrays[-1].array).all()
        arrays[-1].array[:] = execute(ptx, [x.array for x in arrays])[-1]

    kernels = {(1, 32 * lowered.program.warps): run}
    monkeypatch.setattr(staged, "check_can_launch", lambda program: None)
    monkeypatch.setattr(staged, "kernel", lambda staged, tiles: kernels)
    monkeypatch.setattr(staged.cuda, "to_device", Device)
    arrays = operands(lowered)
    before = {role: x.copy() for role, x in arrays.items()}
    result = numba_cuda.launch(lowered.kernel, case.call.tiles, arrays)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, product(lowered, arrays))
    assert all(np.array_equal(arrays[role], x) for role, x in before.items())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda given: given.pop("B"), "operand B is read and was not given"),
        (
            lambda given: given.update(A=given["A"].T[:8]),
            r"A is a float16 array of .*, got float16 of shape \(8, 16\)",
        ),
        (lambda given: given.update(B=given["B"].astype(float)), "B is a float16 array .* got float64"),
    ],
)
def test_launch_refuses_arrays_that_do_not_fit(change: Callable[..., Any], words: str) -> None:
    lowered = one_atom()
    given = operands(lowered)
    change(given)
    with pytest.raises(LayoutError, match=words):
        numba_cuda.launch(lowered.kernel, lowered.call.tiles, given)


def test_without_numba_cuda_the_message_names_the_extra() -> None:
    code = """
import sys
sys.modules["numba_cuda"] = None
try:
    import lowering.backends.numba_cuda
except ImportError as error:
    print(error)
"""
    assert "pip install 'tilelayout[cuda]'" in in_subprocess(code)


def test_lowering_and_text_load_no_numba() -> None:
    code = """
import sys
from property_tests.gemm_cases import one_warp
from lowering import lower
lowered = lower(one_warp((1, 1, 1, 16), "float16"), target="sm_80", scope="warp")
str(lowered), lowered.ptx, lowered.cuda
print([name for name in sys.modules if name.split(".")[0] in ("numba", "numba_cuda", "llvmlite", "cuda")])
"""
    assert in_subprocess(code) == "[]\n"
