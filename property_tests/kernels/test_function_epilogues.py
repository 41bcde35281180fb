"""A Python function at the end of a whole kernel: what simulate computes is what the kernel's PTX does."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilelayout import LayoutError

pytest.importorskip("numba.cuda", reason="the extra cuda is not installed")
from lowering.backends.numba_cuda import scalar_instruction
from lowering.kernels import gemm

pytestmark = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)

SUMS = np.float32([[0.0, -0.0, 1, -2.5, 100, 6e4, -6e4, 0.3, 2.5, 3.5, np.inf, -np.inf, np.nan, 1e-4, 7, -7]])


def finished(function: Callable[[float], Any], sums: Any = SUMS) -> Any:
    """A row of float16 numbers times 1, in float32, with the function done to each."""
    row = sums.astype(np.float16)
    kernel = gemm("float16", epilogue=function, out="float32", target="sm_90a")
    # A sum of 0 and -0 is 0.
    return kernel.simulate(np.ones((1, 1), np.float16), row)[0], row[0].astype(np.float32) + np.float32(0)


CASES: list[tuple[Callable[[float], Any], Callable[[Any], Any]]] = [
    (lambda x: max(x, 0.0), lambda x: np.fmax(x, 0)),
    (lambda x: max(x, 0), lambda x: np.maximum(x, 0)),
    (lambda x: min(x, 6.0), lambda x: np.fmin(x, 6)),
    (lambda x: x if x > 0 else 0.0, lambda x: np.where(x > 0, x, 0)),
    (lambda x: math.floor(x), np.floor),
    (lambda x: math.ceil(x), np.ceil),
    (lambda x: math.trunc(x), np.trunc),
    (lambda x: x**-1, lambda x: np.float32(1) / x),
    (lambda x: 1 / x, lambda x: np.float32(1) / x),
    (lambda x: x / 3, lambda x: x / np.float32(3)),
    (lambda x: (x + 0.1) - 0.1, lambda x: (x + np.float32(0.1)) - np.float32(0.1)),
    (lambda x: math.fmod(x, 3.0), lambda x: np.fmod(x, np.float32(3))),
]


@pytest.mark.parametrize(("function", "exact"), CASES)
def test_every_step_is_that_of_float32(function: Any, exact: Any) -> None:
    found, row = finished(function)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, exact(row))


def test_what_overflows_on_the_way_is_infinite() -> None:
    found, _ = finished(lambda x: math.exp(x) / (1 + math.exp(x)))
    assert np.isnan(found[4])  # an infinity by an infinity, of 100
    assert found[0] == 0.5
    found, _ = finished(lambda x: x * 1e30 * 1e30 * 1e-30)
    np.testing.assert_array_equal(found[2:4], [np.inf, -np.inf])


def test_the_rim_does_not_stop_a_power() -> None:
    """Beyond the matrix there are zeros, to which the function is done as well."""
    kernel = gemm("float16", epilogue=lambda x: x**-2, out="float32", target="sm_80")
    found = kernel.simulate(np.ones((16, 16), np.float16), np.ones((16, 8), np.float16))
    np.testing.assert_array_equal(found, np.full((16, 8), np.float32(1 / 256)))


def test_the_remainder_to_the_nearest() -> None:
    found, row = finished(lambda x: math.remainder(x, 3.0))
    wanted = [math.remainder(x, 3.0) if math.isfinite(x) else math.nan for x in row.tolist()]
    np.testing.assert_array_equal(found, np.float32(wanted))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_a_kernel_with_a_function_can_be_sent_elsewhere(dtype: str) -> None:
    slope = 0.25
    kernel = gemm(dtype, epilogue=lambda x: x if x > 0 else slope * x, target="sm_90a")
    again = pickle.loads(pickle.dumps(kernel))
    rng = np.random.default_rng(3)
    a, b = rng.integers(-4, 5, (20, 24)).astype(dtype), rng.integers(-4, 5, (24, 12)).astype(dtype)
    exact = a.astype(float) @ b.astype(float)
    for k in (kernel, again):
        np.testing.assert_array_equal(
            k.simulate(a, b), np.where(exact > 0, exact, slope * exact).astype(dtype)
        )
    assert again.ptx == kernel.ptx


WITHOUT = """
import pickle, sys
sys.modules["numba"] = None  # which cannot be imported then
import numpy as np
kernel = pickle.load(sys.stdin.buffer)
one = np.ones((2, 2), np.float16)
print(kernel.simulate(one, -3 * one).tolist())
"""


def test_a_kernel_with_a_function_is_simulated_where_there_is_no_numba() -> None:
    kernel = gemm("float16", epilogue=lambda x: x if x > 0 else 0.5 * x, target="sm_80")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], input=pickle.dumps(kernel), capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == "[[-3.0, -3.0], [-3.0, -3.0]]"


def test_an_instruction_for_another_target_is_refused_with_both() -> None:
    function = scalar_instruction(lambda x: max(x, 0.0), "sm_90a", name="relu")
    with pytest.raises(LayoutError) as refused:
        gemm("float16", epilogue=function, target="sm_80")
    text = str(refused.value)
    for words in (
        "gemm: epilogue=relu.",
        "needs sm_90 or newer",
        "the target is sm_80",
        "remedy: one made for sm_80",
    ):
        assert words in text
    for where in ("sm_90", "sm_90a", "sm_100"):
        assert gemm("float16", epilogue=function, target=where).ptx
    assert gemm("float16", epilogue=scalar_instruction(lambda x: max(x, 0.0), "sm_80"), target="sm_80").ptx
