"""The PTX of small whole kernels, executed: exact products of small integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from lowering.backends import cta_machine
from lowering.backends.ptx import ptx_module
from lowering.kernels import Config, gemm
from lowering.program import Program
from lowering.target import target

from .ptx_kernel_machine import run_kernel

M, N, K = 20, 40, 72


@pytest.mark.parametrize("feed", ["registers", "cp_async"])
def test_small_products(feed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[str] = []

    def run(program: Program, grid: Any, memory: Mapping[str, Any], values: Any, **_: Any) -> dict[str, Any]:
        launches.append(program.name)
        return run_kernel(ptx_module(program, target("sm_80")), program, grid, memory, values)

    monkeypatch.setattr(cta_machine, "run_grid", run)
    random = np.random.default_rng(7)
    a, b, c = (random.integers(-4, 5, shape).astype(np.float16) for shape in ((M, K), (K, N), (M, N)))
    kernel = gemm("float16", C="row", target="sm_80", config=Config((16, 64, 64), (1, 2), 2, feed))
    found = kernel.simulate(a, b, C=c, alpha=2.0, beta=-1.0)
    assert len(launches) == 1
    exact = 2 * a.astype(np.int64) @ b.astype(np.int64) - c.astype(np.int64)
    np.testing.assert_array_equal(found, exact)
