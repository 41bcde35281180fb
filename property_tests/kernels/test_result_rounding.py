"""How results are rounded, what NaN becomes, and how long sums of integers may get: as the documents say it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering.kernels import Config, gemm

LEAST = -(2**31)
LONGEST = {("uint8", "uint8"): 33025, ("uint8", "int8"): 65793, ("int8", "int8"): 131071}
"""Types -> the largest K with which no sum wraps."""


@pytest.mark.parametrize(
    "types",
    [t if t == ("uint8", "uint8") else pytest.param(t, marks=pytest.mark.slow) for t in LONGEST],
    ids="-".join,
)
def test_sums_of_integers_wrap_beyond_the_k_that_is_stated(types: tuple[str, str]) -> None:
    a, b = (np.iinfo(t).max if t == "uint8" else np.iinfo(t).min for t in types)
    kernel = gemm(types, target="sm_80", config=Config((16, 8, 256), (1, 1), 2, "registers"))
    longest = LONGEST[types]
    assert longest == (2**31 - (a * b > 0)) // abs(a * b)
    for k, wraps in ((longest, False), (longest + 1, True)):
        found = kernel.simulate(np.full((1, k), a, types[0]), np.full((k, 1), b, types[1])).item()
        assert (found == a * b * k) != wraps
        assert (found - a * b * k) % 2**32 == 0


def test_ties() -> None:
    """To even, of tfloat32 away from zero."""
    one, kernel = np.ones((1, 1), np.float16), {}
    for out in ("float16", "tfloat32", "int32"):
        kernel[out] = gemm("float16", out=out, target="sm_90a")

    def rounded(out: str, x: float) -> float:
        """x is the sum: alpha times 1."""
        return kernel[out].simulate(one, one, alpha=x).item()

    assert [rounded("int32", x) for x in (0.5, 1.5, 2.5, -2.5)] == [0, 2, 2, -2]
    assert [rounded("float16", 1 + x * 2.0**-11) for x in (1, 3)] == [1, 1 + 2.0**-9]
    for sign in (1, -1):
        for x in (1, 3):  # halves of the last of ten bits
            assert rounded("tfloat32", sign * (1 + x * 2.0**-11)) == sign * (1 + (x + 1) * 2.0**-11)


def computed(types: Any, out: str, **more: Any) -> int:
    kernel = gemm(types, out=out, target="sm_90a")
    one = np.ones((1, 1), types)
    return kernel.simulate(one * more.pop("times", 1), one, **more).item()


def test_nan_as_an_integer() -> None:
    """0 from float32; the least int32 from float64, which int32 sums are scaled in."""
    for out in ("int32", "int8", "uint8"):
        assert computed("float16", out, times=np.float16(np.nan)) == 0
    assert computed("int8", "int32", alpha=float("nan")) == LEAST
    assert computed("int8", "int8", alpha=float("nan")) == 0


def test_integers_saturate() -> None:
    for alpha in (1e20, float("inf")):
        assert computed("float16", "int32", alpha=alpha) == 2**31 - 1
        assert computed("int8", "int32", alpha=-alpha) == LEAST
        assert computed("int8", "int8", alpha=-alpha) == -128
        assert computed("float16", "uint8", alpha=-alpha) == 0
        assert computed("float16", "uint8", alpha=alpha) == 255
