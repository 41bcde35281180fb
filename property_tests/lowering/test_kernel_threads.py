"""`launch=` reaches the whole kernel: warps beyond those of the scope do the same work and store the same."""

from __future__ import annotations

import numpy as np
import pytest

from lowering import Lowered, lower
from lowering.backends.numba_cuda import kernel_ptx
from lowering.compose import stage
from property_tests.gemm_cases import one_warp, several_warps
from property_tests.lowering import numba_machine
from property_tests.lowering.ptx_machine import execute
from property_tests.lowering.text_cases import check, inputs
from tilelayout import LayoutError


def lowered_for(scope: str, launch: int | None) -> Lowered:
    in_one = one_warp((1, 1, 1, 16), "float16", 1.0, in_place=False)
    call = in_one if scope == "warp" else several_warps("float16", scope, 2, 2, 1.0)
    return lower(call, target="sm_80", scope=scope, launch=launch)


@pytest.mark.parametrize(
    ("scope", "launch", "threads"),
    [
        ("warp", None, 32), ("warp", 32, 32), ("warp", 128, 128), ("warp", (16, 4), 64), ("warpgroup", None, 128),
        ("warpgroup", 256, 256), ("warpgroup", 160, 160), ("cta", 128, 128),
    ],
)  # fmt: skip
def test_every_text_is_for_the_launched_threads(scope: str, launch: int | None, threads: int) -> None:
    """The PTX that we write and the PTX that numba makes are executed by all the threads, to the same numbers."""
    lowered = lowered_for(scope, launch)
    assert lowered.kernel.threads == threads
    assert f".reqntid {threads}\n" in lowered.ptx
    assert f"__launch_bounds__({threads})" in lowered.cuda
    before = inputs(lowered.kernel)
    check(lowered, execute(lowered.ptx, before), before)
    ptx = kernel_ptx(lowered.kernel, lowered.call.tiles, "sm_80")
    assert f".maxntid {threads}" in ptx
    carried = [x.view(np.uint16) if x.dtype.itemsize == 2 and x.dtype.kind == "V" else x for x in before]
    check(lowered, numba_machine.execute(ptx, carried), before)


def test_the_warps_beyond_count_anew_in_c() -> None:
    assert "const int warp = (threadIdx.x >> 5) % 4;" in lowered_for("warpgroup", 256).cuda
    assert "const int warp = threadIdx.x >> 5;" in lowered_for("warpgroup", None).cuda


def test_fewer_threads_than_the_program_needs_are_refused() -> None:
    lowered = lowered_for("warpgroup", None)
    with pytest.raises(LayoutError, match=r"stage: .* needs 128 threads, the CTA has 96"):
        stage(lowered.program, lowered.call.tiles, 96)
