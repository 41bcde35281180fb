"""What the tests of refusals share: small operands, a kernel for an H200, and what a refusal must say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lowering.kernels import Config, GemmKernel, gemm
from lowering.kernels.gemm.config import Feed
from tilelayout import LayoutError

A, B = np.ones((32, 64), np.float16), np.ones((64, 40), np.float16)
C = np.full((32, 40), 3, np.float16)
TMA = Config((64, 64, 64), (2, 2), 3, "tma")
FEEDS: tuple[Feed, ...] = ("tma", "cp_async", "registers")


def kernel(dtype: Any = "float16", target: str = "sm_90a", **more: Any) -> GemmKernel:
    return gemm(dtype, target=target, **more)


def refused(call: Callable[[], Any], *words: str, without: tuple[str, ...] = ()) -> None:
    with pytest.raises(LayoutError) as error:
        call()
    said = " ".join(str(error.value).split())
    assert not [w for w in words if w not in said], said
    assert not [w for w in without if w in said], said
