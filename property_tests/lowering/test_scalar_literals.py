"""Literals that a GPU's numbers do not hold are refused by name; all others are the numbers that they are in Python."""

from __future__ import annotations

import math
import sys
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelayout import LayoutError

pytest.importorskip("numba.cuda", reason="the extra cuda is not installed")
from lowering.backends.numba_cuda import scalar_instruction

pytestmark = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)

N, MINUS, LARGE, HUGE, TINY, TOO_LARGE = 65, -1, 2**40, 10**5000, 1e-50, 1e39


def assigned(x: float) -> float:
    k = 200
    return x * 2**k


def assigned_twice(x: float) -> float:
    k = 3
    k = k + 200
    return x * 2**k


def below(limit: Any) -> Any:
    return lambda x: min(x, limit)


REFUSED = [
    (lambda x: x * 2**65, "`2 ** 65` is beyond the integers of 64 bits"),
    (lambda x: x * -(2**100), "`2 ** 100` is beyond"),
    (lambda x: x * 2**200, "`2 ** 200` is beyond"),
    (lambda x: x * 10**400, "`10 ** 400` is beyond"),
    (lambda x: x * 36893488147419103232, "`36893488147419103232` is beyond"),
    (lambda x: x * 9223372036854775808, "`9223372036854775808` is beyond"),
    (lambda x: x * 2**N, "`2 ** N` is beyond"),
    (lambda x: x + LARGE * LARGE, "`LARGE * LARGE` is beyond"),
    (lambda x: x + (LARGE + LARGE) * LARGE, "`(LARGE + LARGE) * LARGE` is beyond"),
    (lambda x: x * (1 << N), "`1 << N` is beyond"),
    (lambda x: x * 2**MINUS, "`2 ** MINUS`, a power of integers below zero, is 0"),
    (lambda x: min(x, HUGE), "`HUGE = 0x"),
    (below(10**30), "`limit = 1000000000000000000000000000000` is beyond"),
    (assigned, "`2 ** k` is beyond"),
    (assigned_twice, "`2 ** k` is beyond"),
    (lambda x: x * 1e300 * 1e-300, "`1e+300` is beyond float32"),
    (lambda x: 1e-50 * x * 1e50, "`1e-50` is 0 in float32"),
    (lambda x: x * TINY, "`TINY = 1e-50` is 0 in float32"),
    (lambda x: x / TOO_LARGE, "`TOO_LARGE = 1e+39` is beyond float32"),
    (below(-1e300), "`limit = -1e+300` is beyond float32"),
]


@pytest.mark.parametrize(("function", "words"), REFUSED, ids=[w.split("`")[1][:20] for _, w in REFUSED])
def test_what_is_another_number_on_a_gpu_is_refused_by_name(function: Any, words: str) -> None:
    with pytest.raises(LayoutError) as refused:
        scalar_instruction(function, "sm_90a")
    text = str(refused.value)
    assert words in text
    assert "(remedy: " in text
    assert "test_scalar_literals.py, line " in text
    assert len(text) < 400
    if "float32" not in words:
        with pytest.raises(LayoutError, match=r"remedy: a float"):
            scalar_instruction(function, "sm_90a", kinds=("f64",), result="f64")


def computed(function: Any, x: float = 1.0) -> float:
    record = scalar_instruction(function, "sm_90a", kinds=("f64",), result="f64")
    return record.meaning({"x0": np.array([[[x]]]).view(np.uint32)})["d"].view(np.float64).item()


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda x: x * (2**63 - 1), 2.0**63),
        (lambda x: x * -(2**63), -(2.0**63)),
        (lambda x: x * 2**62, 2.0**62),
        (lambda x: x * 2.0**65, 2.0**65),
        (lambda x: x * 2.0**N, 2.0**65),
        (lambda x: x * 2.0**MINUS, 0.5),
        (lambda x: x * 1e300, 1e300),
        (lambda x: x + math.inf, math.inf),
        (lambda x: x * 3**5 - 4**3, 179.0),
        (lambda x: x * (LARGE + LARGE), 2.0**41),
    ],
)
def test_what_is_held_is_the_number(function: Any, wanted: float) -> None:
    assert computed(function) == wanted


def test_float32_takes_what_it_holds() -> None:
    for function in (lambda x: x * 3.4e38, lambda x: x * 1e-45, lambda x: x - math.inf, lambda x: x + 0.0):
        assert scalar_instruction(function, "sm_90a").template
    assert ".f64" in scalar_instruction(lambda x: x * 1e300 * 1e-300, "sm_90a", literals="python").template


@settings(max_examples=40)
@given(st.integers(-12, 12), st.integers(0, 70), st.sampled_from("+-*"), st.integers(-(2**40), 2**40))
def test_a_power_is_right_or_refused(base: int, exponent: int, sign: str, other: int) -> None:
    exact = eval(f"base**exponent {sign} other", {"base": base, "exponent": exponent, "other": other})  # noqa: S307
    text = f"lambda x: x * (base**exponent {sign} other)"
    function = eval(text, {"base": base, "exponent": exponent, "other": other})  # noqa: S307 - drawn here
    if max(abs(base) ** exponent, abs(exact)) < 2**63:
        assert computed(function) == float(exact)
        return
    with (
        pytest.raises(LayoutError, match="beyond the integers of 64 bits")
        if exact != -(2**63)
        else nullcontext()
    ):
        computed(function)
