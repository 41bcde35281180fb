"""Sums by the vectorized models against the scalar ones of `scalar_sums`, over all bit patterns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.dtypes import DTYPES
from lowering.isa.numerics import FORMATS, accumulate, bits, drop_to_tfloat32, model
from lowering.isa.numerics.published import ENTRIES

from .scalar_sums import carrier, exact_once, one_step

# From the literature, as (F, products in a step, exponent of a zero term, fraction bits of the result).
SUMS = {
    ("sm_70", "float16", "float32", 4): (23, 4, -131, 23),
    ("sm_75", "float16", "float16", 8): (24, 8, -20, 10),
    ("sm_80", "float16", "float32", 16): (24, 8, -132, 23),
    ("sm_80", "float16", "float16", 16): (24, 8, -20, 10),
    ("sm_80", "bfloat16", "float32", 16): (24, 8, -132, 23),
    ("sm_80", "tfloat32", "float32", 8): (24, 4, -132, 23),
    ("sm_89", "float8_e4m3fn", "float32", 32): (13, 16, -132, 13),
    ("sm_89", "float8_e5m2", "float16", 32): (13, 16, -20, 10),
    ("sm_90", "float16", "float32", 16): (25, 16, -133, 23),
    ("sm_90", "bfloat16", "float32", 8): (25, 8, -133, 23),
    ("sm_90", "tfloat32", "float32", 8): (25, 8, -133, 23),
    ("sm_90", "float16", "float16", 16): (25, 16, -21, 10),
    ("sm_120", "float6_e3m2fn", "float32", 32): (25, 32, -133, 23),
}


def decode(codes: np.ndarray, name: str) -> np.ndarray:
    width = carrier(name).itemsize
    with np.errstate(invalid="ignore"):
        values = codes.astype(f"u{width}").view(carrier(name)).astype(np.float64)
    return drop_to_tfloat32(values) if name == "tfloat32" else values


def _bytes(draw: st.DrawFn, kind: str, count: int) -> np.ndarray:
    """`count` drawn integers of that numpy type: one draw, however many."""
    size = count * np.dtype(kind).itemsize
    return np.frombuffer(draw(st.binary(min_size=size, max_size=size)), kind)


@st.composite
def operands(
    draw: st.DrawFn, name: str, accumulator: str, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One row of A, one column of B, one C: any bit patterns; or exponents near one another, so that bits meet, about 1
    or about the smallest.
    """
    how = draw(st.sampled_from(("bits", "near one", "smallest")))
    a, b, c = ((t, _bytes(draw, "<u4", n)) for t, n in ((name, k), (name, k), (accumulator, 1)))
    zeros = _bytes(draw, "u1", 2 * k + 1) < draw(st.sampled_from((0, 40, 200)))
    found = []
    for (t, words), zero in zip((a, b, c), (zeros[:k], zeros[k : 2 * k], zeros[-1:]), strict=True):
        if how == "bits":
            values = decode(words & (2 ** DTYPES[t].bits - 1), t)
        else:
            least = FORMATS[name].smallest // 2 - 6 if how == "smallest" else 0
            least = 2 * least if t == accumulator else least
            spread = np.ldexp((words >> 8) / 2**23 - 1, (words & 15).astype(int) - 8 + least)
            values = _held(spread, t)
        found.append(np.where(zero, 0.0, values))
    return tuple(found)


def _held(values: np.ndarray, name: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        held = values.astype(carrier(name)).astype(np.float64)
    return drop_to_tfloat32(held) if name == "tfloat32" else held


def same(found: float, wanted: float, accumulator: str) -> bool:
    return bits([found], accumulator)[0] == bits([wanted + 0.0], accumulator)[0]


@pytest.mark.parametrize("case", SUMS, ids=lambda case: "-".join(map(str, case)))
@given(data=st.data())
def test_a_sum_is_that_of_the_scalar_model(case: tuple[str, str, str, int], data: st.DataObject) -> None:
    architecture, name, accumulator, k = case
    F, width, zero, kept = SUMS[case]
    a, b, c = data.draw(operands(name, accumulator, k))
    wanted = float(c[0])
    for i in range(0, k, width):
        types = (name, name, accumulator)
        wanted = one_step(a[i : i + width].tolist(), b[i : i + width].tolist(), wanted, types, F, zero, kept)
    found = accumulate(a[None], b[:, None], c[None], model(architecture, name, name, accumulator, k))
    assert same(float(found[0, 0]), wanted, accumulator)


@pytest.mark.parametrize("architecture", ["sm_90", "sm_100"])
@pytest.mark.parametrize("accumulator", ["float32", "float16"])
@given(data=st.data())
def test_emulated_fp8_is_two_f16_sums_and_an_addition(
    architecture: str, accumulator: str, data: st.DataObject
) -> None:
    a, _, c = data.draw(operands("float8_e4m3fn", accumulator, 32))
    b = data.draw(operands("float8_e5m2", accumulator, 32))[1]
    total = 0.0
    for low in (0, 2):
        picked = np.array([k for k in range(32) if k % 4 in (low, low + 1)])
        types = ("float16", "float16", accumulator)
        zero, kept = (-21, 10) if accumulator == "float16" else (-133, 23)
        total = one_step(a[picked].tolist(), b[picked].tolist(), total, types, 25, zero, kept)
    with np.errstate(all="ignore"):
        wanted = float(np.dtype(accumulator).type(total) + np.dtype(accumulator).type(c[0]))
    entry = model(architecture, "float8_e4m3fn", "float8_e5m2", accumulator, 32)
    found = float(accumulate(a[None], b[:, None], c[None], entry)[0, 0])
    assert bits([found], accumulator)[0] == bits([wanted], accumulator)[0]


@pytest.mark.parametrize("accumulator", ["float32", "float16"])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "tfloat32", "float8_e4m3fn", "float4_e2m1fn"])
@given(data=st.data())
def test_exact_is_the_exact_sum_rounded_once(name: str, accumulator: str, data: st.DataObject) -> None:
    a, b, c = data.draw(operands(name, accumulator, 16))
    found = accumulate(a[None], b[:, None], c[None], model("exact", name, name, accumulator, 16))
    wanted = exact_once(a.tolist(), b.tolist(), float(c[0]), accumulator)
    assert same(float(found[0, 0]) + 0.0, wanted, accumulator)


def test_exact_survives_cancellation_that_float64_does_not() -> None:
    a, b = np.zeros((1, 16)), np.zeros((16, 1))
    a[0, :4], b[:4, 0] = (2.0**100, -(2.0**100), 1, 2.0**-40), (2.0**20, 2.0**20, 1, 2.0**-40)
    bf16 = model("exact", "bfloat16", "bfloat16", "float32", 16)
    assert accumulate(a, b, np.zeros((1, 1)), bf16)[0, 0] == 1
    # Just above the middle of two float32: a second rounding would fall to even.
    assert accumulate(a, b, np.array([[2.0**-24]]), bf16)[0, 0] == 1 + 2.0**-23
    # The same where the sum only just outgrows a float64: 2**12 + 2**-12 + 2**-48.
    a[0, :4], b[:4, 0] = (2.0**-6, 2.0**-24, 0, 0), (2.0**-6, 2.0**-24, 0, 0)
    f16 = model("exact", "float16", "float16", "float32", 16)
    assert accumulate(a, b, np.array([[2.0**12]]), f16)[0, 0] == 2.0**12 + 2.0**-11
    a[0, 1] = 0
    assert accumulate(a, b, np.array([[2.0**12]]), f16)[0, 0] == 2.0**12


MODELS = [(unit, entry) for unit, rows in ENTRIES.items() for entry in rows if not entry.scale]


@pytest.mark.parametrize(("unit", "entry"), MODELS, ids=lambda x: str(x).replace(" ", ""))
def test_small_integers_are_exact_in_every_model(unit: str, entry) -> None:
    rng = np.random.default_rng(7)
    top = 2 if FORMATS[entry.a].fraction < 2 or FORMATS[entry.b].fraction < 2 else 3
    a, b = rng.integers(-top, top + 1, (3, 5, entry.k)), rng.integers(-top, top + 1, (3, entry.k, 4))
    c = rng.integers(-50, 50, (3, 5, 4))
    assert (accumulate(a, b, c, entry) == a @ b + c).all()


@pytest.mark.parametrize(("unit", "entry"), MODELS, ids=lambda x: str(x).replace(" ", ""))
def test_a_lone_product_is_exact_where_the_result_has_its_bits(unit: str, entry) -> None:
    """A product has at most 22 bits: float32 results with 23 keep them all."""
    if entry.kept < 23:
        return
    rng = np.random.default_rng(8)
    a, b = np.zeros((entry.k, 1, entry.k)), np.zeros((entry.k, entry.k, 1))
    for k in range(entry.k):  # one product at each place along K
        a[k, 0, k], b[k, k, 0] = (_held(rng.normal(size=1), t)[0] for t in (entry.a, entry.b))
    found = accumulate(a, b, np.zeros((entry.k, 1, 1)), entry)
    assert (found == a @ b).all()


@given(seed=st.integers(0, 2**32 - 1))
def test_an_aligned_sum_is_off_by_what_is_cut_at_most(seed: int) -> None:
    """At most 2**(E - F) a term and step, and one place of the result; more bits cannot be worse than that."""
    rng = np.random.default_rng(seed)
    a, b = (_held(rng.normal(size=s) * 2.0 ** rng.integers(-6, 6, s), "float16") for s in ((4, 16), (16, 5)))
    c = _held(rng.normal(size=(4, 5)) * 2.0 ** rng.integers(-6, 6, (4, 5)), "float32")
    size = np.abs(a) @ np.abs(b) + np.abs(c)  # more than any 2**E
    for architecture in ("sm_80", "sm_90"):
        entry = model(architecture, "float16", "float16", "float32", 16)
        allowed = len(entry.steps) * (18 * 2.0**-entry.fraction + 2.0**-22) * size
        assert (np.abs(accumulate(a, b, c, entry) - (a @ b + c)) <= allowed).all()


def test_a_batch_is_its_parts() -> None:
    rng = np.random.default_rng(9)
    a, b, c = (_held(rng.normal(size=s), "float16") for s in ((2, 3, 16, 16), (2, 3, 16, 8), (2, 3, 16, 8)))
    for architecture in ("exact", "sm_80", "sm_90"):
        entry = model(architecture, "float16", "float16", "float32", 16)
        whole = accumulate(a, b, c, entry)
        for i, j in np.ndindex(2, 3):
            assert (whole[i, j] == accumulate(a[i, j], b[i, j], c[i, j], entry)).all()
            assert (
                whole[i, j, 3, 5] == accumulate(a[i, j, 3:4], b[i, j, :, 5:6], c[i, j, 3:4, 5:6], entry)[0, 0]
            )
