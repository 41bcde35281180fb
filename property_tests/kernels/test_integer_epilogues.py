"""Sums of integers that stay int32 are exact to the last bit, whatever is added: far beyond what float32 holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering.backends.assemble import assemble
from lowering.kernels import Config, gemm

LEAST, MOST = -(2**31), 2**31 - 1
CUTS = {
    "registers": Config((32, 32, 64), (1, 1), 2, "registers"),
    "rows by threads": Config((32, 64, 64), (1, 2), 2, "cp_async", slots=1, sender="threads"),
    "rows by the engine": Config((32, 64, 64), (1, 2), 2, "tma", slots=2),
}
M, N, K = 40, 72, 2048


def factors() -> tuple[Any, Any]:
    """Whose sums are near 2**25, and odd as often as even."""
    rng = np.random.default_rng(5)
    a, b = np.full((M, K), 127, np.int8), np.full((K, N), 126, np.int8)
    a[:, :9] = rng.integers(-128, 128, (M, 9))
    b[:9] = rng.integers(-128, 128, (9, N))
    return a, np.asfortranarray(b)


def added(which: str) -> dict[str, Any]:
    rng = np.random.default_rng(6)
    out: dict[str, Any] = {}
    if "C" in which:
        out["C"] = rng.integers(-(2**30), 2**30, (M, N)).astype(np.int32)
    if "bias" in which:
        out["bias"] = rng.integers(-(2**29), 2**29, N).astype(np.int32)
    return out


@pytest.mark.parametrize("which", ["C", "bias", "C and bias", "alpha"])
@pytest.mark.parametrize("cut", CUTS)
def test_every_bit_is_right(cut: str, which: str) -> None:
    a, b = factors()
    more = added(which)
    asked = {"C": "row"} if "C" in more else {}
    kernel = gemm(
        "int8", B="column", bias="row" if "bias" in more else None, target="sm_90a", config=CUTS[cut], **asked
    )
    exact = a.astype(np.int64) @ b.astype(np.int64)
    assert abs(exact).max() > 2**24
    for alpha, beta in ((1.0, 1.0), (-3.0, 2.0)) if which != "alpha" else ((0.5, 0.0), (-7.0, 0.0)):
        numbers = {"alpha": alpha, **({"beta": beta} if "C" in more else {})}
        found = kernel.simulate(a, b, **more, **numbers)
        want = alpha * exact + (beta * more["C"] if "C" in more else 0) + more.get("bias", 0)
        np.testing.assert_array_equal(found, np.clip(np.rint(want), LEAST, MOST))


def test_beyond_the_range_it_ends() -> None:
    a, b = factors()
    kernel = gemm("int8", B="column", C="row", target="sm_90a", config=CUTS["registers"])
    c = np.where(np.arange(N) % 2, MOST, LEAST).astype(np.int32) + np.zeros((M, 1), np.int32)
    found = kernel.simulate(a, b, C=c, beta=4.0)
    assert set(found.ravel().tolist()) == {LEAST, MOST}


def test_a_function_works_on_float32() -> None:
    a, b = factors()
    kernel = gemm("int8", B="column", epilogue=lambda x: x * 1.0, target="sm_90a", config=CUTS["registers"])
    exact = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(kernel.simulate(a, b), exact.astype(np.float32).astype(np.int64))


@pytest.mark.slow
@pytest.mark.parametrize("orders", [("row", "column"), ("column", "row")])
@pytest.mark.parametrize(
    "given", [{"C": "row"}, {"bias": "row"}, {"bias": "column"}, {}, {"C": "row", "bias": "row"}]
)
def test_numbers_twice_as_wide_leave_room(orders: tuple[str, str], given: dict[str, str]) -> None:
    """The largest tile needs no local memory for them."""
    built = gemm("int8", A=orders[0], B=orders[1], target="sm_90a", **given).built(scaled=True)
    assert built.config.tile[:2] == (128, 256)
    assert assemble(built.ptx, built.target).spill_bytes == 0
