"""What the tests of the numba.cuda backend share: programs, their operands and products."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
from numba.core import errors
from numba.cuda import types
from numba.cuda.core import errors as cuda_errors

from lowering import Lowered, lower
from property_tests.gemm_cases import Case, one_warp

HALF, FLOAT = types.float16[:, ::1], types.float32[:, ::1]
LARGE = (4, 8, 4, 16)
TypingErrors = (errors.TypingError, cuda_errors.TypingError)  # numba-cuda raises its own, or numba's


def lowered_for(case: Case, name: str = "sm_80") -> Lowered:
    return lower(case.call, target=name, scope=case.scope, launch=case.launch)


def one_atom(beta: float = 0.0, dtype: str = "float16") -> Lowered:
    return lower(one_warp((1, 1, 1, 16), dtype, beta), target="sm_80", scope="warp")


def operands(lowered: Lowered) -> dict[str, Any]:
    """Small integers by role, for what the program reads."""
    tiles = lowered.call.tiles
    rng = np.random.default_rng(5)
    draw = {r.role: rng.integers(-8, 9, tiles[r.role].shape) for r in lowered.program.inputs}
    return {role: x.astype(tiles[role].element.numpy) for role, x in draw.items()}


def carried(x: Any) -> Any:
    return x.view(np.uint16) if x.dtype == ml_dtypes.bfloat16 else x


def product(lowered: Lowered, arrays: dict[str, Any]) -> Any:
    a, b = arrays["A"].astype(np.float64), arrays["B"].astype(np.float64)
    a, b = a.T if lowered.call.transpose_a else a, b.T if lowered.call.transpose_b else b
    return a @ b + arrays.get("C", 0)


def unwritten(shape: tuple[int, ...]) -> Any:
    return np.full(shape, np.nan, np.float32)


def in_subprocess(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
