"""Python functions of numbers as instructions: their text, executed, against numpy and `math`, and step by step."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelayout import LayoutError

pytest.importorskip("numba.cuda", reason="the extra cuda is not installed")
from lowering.backends.numba_cuda import scalar_instruction
from lowering.isa.scalar.decode import decoded

pytestmark = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)

ALL = {n: f for n, f in vars(math).items() if not n.startswith("_") and callable(f)}
ONE, TWO = "lambda x: math.{}(x)", "lambda x, y: math.{}(x, y)"
NOT_COMPILED = set(
    """cbrt comb dist factorial fsum gcd isqrt lcm perm prod sumprod fma modf frexp isclose ulp
    cos sin tan""".split()
)  # the last row keeps an array in memory
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    math.inf,
    -math.inf,
    math.nan,
    1e-40,
    -1e-40,
    3e38,
    -3e38,
    1e10,
    -1e10,
    80.0,
    -80.0,
]
ULPS = {"gamma": 11, "lgamma": 8, "pow": 8, "erfc": 8, "remainder": 1, "fmod": 1}
"""Units of the last place that NVIDIA states for the function, or more; 4 for the others."""
WITHIN = {
    "acos": 1,
    "asin": 1,
    "atanh": 1,
    "log1p": 1e3,
    "gamma": 20,
    "cosh": 20,
    "sinh": 20,
    "expm1": 20,
    "exp": 20,
}
"""Arguments that are drawn go up to here, 100 for the others."""


def made(text: str, count: int, kind: Any = "f32") -> Any:
    """The instruction of a function of `math`; None where it is refused."""
    function = eval(text, {"math": math})  # noqa: S307 - texts of this file
    try:
        return scalar_instruction(function, "sm_90a", kinds=(kind,) * count, result=kind)
    except LayoutError:
        return None


def computed(record: Any, *arrays: Any) -> Any:
    given = {
        f"x{i}": x.view(np.uint32).reshape(1, len(x), -1)
        for i, x in enumerate(map(np.ascontiguousarray, arrays))
    }
    return record.meaning(given)["d"][0].view(arrays[0].dtype)[:, 0]


def reference(name: str, *arrays: Any) -> Any:
    """Of float64, with infinities and NaNs where `math` raises an error; where it has no say, numpy's."""
    other = {"pow": np.power, "fmod": np.fmod, "hypot": np.hypot, "atan2": np.arctan2, "exp": np.exp, "exp2": np.exp2,
             "sinh": np.sinh, "cosh": np.cosh, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
             "log1p": np.log1p, "atanh": np.arctanh, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
             "nextafter": None}  # fmt: skip
    with np.errstate(all="ignore"):
        if other.get(name) is not None:
            return other[name](*[x.astype(np.float64) for x in arrays])
        out = []
        for x in zip(*[x.astype(np.float64).tolist() for x in arrays], strict=True):
            try:
                out.append(float(ALL[name](*x)))
            except ValueError:
                pole = math.copysign(math.inf, x[0]) if x[0] == 0 else math.nan
                out.append({"gamma": pole, "lgamma": math.inf}.get(name, math.nan))
            except OverflowError:
                out.append(math.inf)
        return np.array(out)


def arguments(name: str, count: int, kind: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(sum(map(ord, name)))
    most = WITHIN.get(name, 100)
    few = [rng.uniform(-most, most, 300).astype(kind) for _ in range(count)]
    if count == 2:
        pairs = [(x, y) for x in SPECIAL for y in SPECIAL]
        return tuple([np.concatenate([f, np.array([p[i] for p in pairs], kind)]) for i, f in enumerate(few)])
    return (np.concatenate([few[0], np.array(SPECIAL, kind)]),)


@pytest.mark.parametrize("name", ALL)
def test_every_function_of_math_that_compiles_is_executed(name: str) -> None:
    """In float32 and float64, with what is no ordinary number: as near as NVIDIA's functions are."""
    found = [(c, made(t.format(name), c)) for c, t in ((1, ONE), (2, TWO))]
    records = [(c, r) for c, r in found if r is not None]
    assert bool(records) != (name in NOT_COMPILED), "write it down in NOT_COMPILED"
    for count, record in records:
        assert decoded(record.meaning.text)
        if name == "ldexp":  # below, with an integer
            continue
        arrays = arguments(name, count, np.float32)
        if name == "nextafter":
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(computed(record, *arrays), np.nextafter(*arrays))
            continue
        check(name, computed(record, *arrays), reference(name, *arrays), np.float32, arrays)
        double = made((ONE, TWO)[count - 1].format(name), count, "f64")
        if double is not None:
            arrays = arguments(name, count, np.float64)
            check(name, computed(double, *arrays), reference(name, *arrays), np.float64, arrays)


def test_powers_of_two() -> None:
    record = scalar_instruction(lambda x, n: math.ldexp(x, n), "sm_90a", kinds=("f32", "s32"))
    pairs = [(x, n) for x in SPECIAL for n in (-300, -149, -1, 0, 1, 5, 127, 300)]
    x, n = np.float32([p[0] for p in pairs]), np.int32([p[1] for p in pairs])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(computed(record, x, n), np.ldexp(x, n))


def check(name: str, found: Any, wanted: Any, kind: Any, arrays: Any) -> None:
    with np.errstate(all="ignore"):
        near = wanted.astype(kind)
        both = np.isnan(near) & np.isnan(found)
        equal = (near == found) | both
        bound = ULPS.get(name, 4) * np.spacing(np.abs(near).astype(kind))
        close = np.abs(found - near) <= np.where(np.isfinite(bound), bound, 0)
        edge = np.isinf(near) != np.isinf(found)  # the largest numbers may round either way
        edge &= np.abs(np.where(np.isinf(near), found, near)) > np.finfo(kind).max * 0.999
    wrong = ~(equal | close | edge)
    assert not wrong.any(), (name, kind, [x[wrong][:5] for x in arrays], found[wrong][:5], near[wrong][:5])


# --- what each step gives --------------------------------------------------------------------------------------

X = np.float32([100, np.nan, np.inf, -np.inf, 1e20, -1e20, 3e38, 1, 0, -0.0, 2.5, -2.5, 0.3, -7])


def steps(function: Callable[..., Any], x: Any = X) -> Any:
    return computed(scalar_instruction(function, "sm_90a"), x)


def test_every_step_is_rounded_to_float32() -> None:
    assert np.isnan(steps(lambda x: math.exp(x) / (1 + math.exp(x)))[0])  # an infinity by an infinity
    one = np.float32(1)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = (X.astype(np.float64) ** 2 + 1).astype(
            np.float32
        )  # fused: rounded once, and beyond the range
        np.testing.assert_array_equal(steps(lambda x: math.sqrt(x * x + 1)), np.sqrt(squares))
        np.testing.assert_array_equal(steps(lambda x: (x + 1) - 1), (X + one) - one)
        np.testing.assert_array_equal(steps(lambda x: x / 3 * 3), X / np.float32(3) * np.float32(3))


def test_nan_as_a_gpu_has_it() -> None:
    """A number wins over NaN in max and min of floats; an integer is compared, and NaN stays."""
    np.testing.assert_array_equal(steps(lambda x: max(x, 0.0)), np.fmax(X, 0))
    np.testing.assert_array_equal(steps(lambda x: min(x, 6.0)), np.fmin(X, 6))
    np.testing.assert_array_equal(steps(lambda x: max(x, 0)), np.maximum(X, 0))
    np.testing.assert_array_equal(steps(lambda x: x if x > 0 else 0.0), np.where(X > 0, X, 0))


def test_whole_numbers_of_what_has_none() -> None:
    np.testing.assert_array_equal(steps(lambda x: math.floor(x)), np.floor(X))
    np.testing.assert_array_equal(steps(lambda x: math.ceil(x)), np.ceil(X))
    np.testing.assert_array_equal(steps(lambda x: math.trunc(x)), np.trunc(X))
    clamped = np.clip(np.where(np.isnan(X), -(2.0**63), X.astype(np.float64)), -(2.0**63), 2.0**63)
    np.testing.assert_array_equal(steps(lambda x: int(x)), np.trunc(clamped).astype(np.float32))
    np.testing.assert_array_equal(steps(lambda x: round(x)), np.rint(clamped).astype(np.float32))


def test_division_by_zero_does_not_stop() -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(steps(lambda x: x**-1), np.float32(1) / X)
        np.testing.assert_array_equal(steps(lambda x: 1 / x), np.float32(1) / X)
        np.testing.assert_allclose(steps(lambda x: x**-2), np.float32(1) / (X * X), rtol=3e-7)


# --- drawn ---------------------------------------------------------------------------------------------------------

NUMBERS = st.sampled_from([0.5, 0.1, 1.0, 3.0, -2.25, 1e20, -1e-20, 7.0])
DATA = np.float32(
    [0.0, -0.0, 1, -1, 0.3, -0.7, 3.5, 1e20, -1e20, 1e-30, 1e-40, 3e38, np.inf, -np.inf, np.nan, 12345.678]
)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4, factor: bool = False) -> str:
    """Texts of float32 arithmetic in which no product meets a sum, which a compiler may fuse."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(["x", "x", repr(draw(NUMBERS))]))
    kind = draw(st.sampled_from(["abs", "min", "max", "/", "choice", *(["*"] if factor else ["+", "-"])]))
    inner = [draw(expressions(depth - 1, factor)) for _ in range(2)]
    if kind == "abs":
        return f"abs({inner[0]})"
    if kind in ("min", "max"):
        return f"{kind}({inner[0]}, {inner[1]})"
    if kind == "choice":
        return f"({inner[0]} if {draw(st.sampled_from(['x > 0.5', 'x <= 1.0', 'x != x']))} else {inner[1]})"
    return f"({inner[0]} {kind} {inner[1]})"


def by_numpy(text: str) -> Any:
    """The same text on numpy's float32, one number at a time."""
    names = {
        "abs": np.abs,
        "max": lambda a, b: np.maximum(a, b) if not np.isnan(a + b) else np.fmax(a, b),
        "min": lambda a, b: np.minimum(a, b) if not np.isnan(a + b) else np.fmin(a, b),
    }
    with np.errstate(all="ignore"):
        return np.float32([eval(text, {**names, "x": x}) for x in DATA])  # noqa: S307 - drawn here


@settings(max_examples=60)
@given(st.booleans().flatmap(lambda factor: expressions(factor=factor)))
def test_any_expression_is_computed_in_float32_step_by_step(text: str) -> None:
    record = scalar_instruction(eval(f"lambda x: {text} + 0.0 * 1.0"), "sm_90a")  # noqa: S307 - drawn here
    np.testing.assert_array_equal(computed(record, DATA), by_numpy(text))


def test_the_listing_is_of_functions() -> None:
    assert all(inspect.isbuiltin(f) for f in ALL.values())
