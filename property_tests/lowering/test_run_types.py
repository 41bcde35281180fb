"""`Lowered.run` on narrow types and by models of numerics: what goes in, how it is rounded, how it adds up."""

from __future__ import annotations

import doctest
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import Lowered, Tile
from lowering.backends import arrays as arrays_room
from lowering.backends.arrays import as_operand, blank, from_bits, from_memory, to_bits, to_memory
from lowering.dtypes import DTYPES, dtype
from lowering.isa import DENSE
from lowering.isa.numerics import accumulate, model
from tilelayout import LayoutError, S, TileLayout

from .. import record_cases as cases

BY_NAME = {i.name: i for i in DENSE}


def lowered(name: str, **options: Any) -> Lowered:
    return cases.lowered_of(BY_NAME[name], cases.call_of(BY_NAME[name], **options))


def operand(x: Any, element: str) -> Any:
    array = np.asarray(x)
    return as_operand(array, Tile("A", array.shape, element, TileLayout(S[array.shape])), "A")


# --- integers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("element", "low", "high"),
    [("int8", -128, 127), ("uint8", 0, 255), ("int4", -8, 7), ("uint4", 0, 15), ("uint1", 0, 1),
     ("int32", -(2**31), 2**31 - 1)],
)  # fmt: skip
def test_integers_come_by_value(element: str, low: int, high: int) -> None:
    for given_as in (np.int64, np.int32, object):
        values = [low, 0, 1, high]
        if given_as is object:
            found = operand(values, element)  # a list
        else:
            found = operand(np.array(values, given_as), element)
        assert found.dtype == dtype(element).numpy
        assert found.astype(np.int64).tolist() == values
    for wrong in (low - 1, high + 1):
        with pytest.raises(LayoutError, match=rf"A has {wrong}, which is no {element} \({low} to {high}\)"):
            operand(np.array([0, wrong], np.int64), element)
    for floats in ([0.0], np.zeros(1, np.float16), np.zeros(1, ml_dtypes.float8_e4m3fn)):
        with pytest.raises(LayoutError, match="pass integers"):
            operand(floats, element)


def test_integers_of_narrow_types_convert_too() -> None:
    four = np.array([-8, 7], ml_dtypes.int4)
    assert operand(four, "int8").tolist() == [-8, 7]
    assert operand(np.array([0, 15], ml_dtypes.uint4), "int8").tolist() == [0, 15]
    assert operand(np.array([True, False]), "uint4").tolist() == [1, 0]
    with pytest.raises(LayoutError, match="A has -8"):
        operand(four, "uint4")


# --- floats -------------------------------------------------------------------------------------

NARROW = ("float8_e4m3fn", "float8_e5m2", "float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn", "tfloat32")


def values_of(element: str) -> list[Fraction]:
    """Every finite value of a narrow type, exactly, by decoding each of its codes."""
    kind = dtype(element)
    codes = from_bits(np.arange(2**kind.bits, dtype=np.uint8), kind).astype(np.float64)
    return sorted({Fraction(float(x)) for x in codes if np.isfinite(x)})


@pytest.mark.parametrize("element", NARROW[:-1])
@given(numerator=st.integers(-(2**20), 2**20), exponent=st.integers(-24, 0))
def test_wider_floats_are_rounded_once_to_nearest_even(element: str, numerator: int, exponent: int) -> None:
    """Against a search among all values of the type; ties go to the even code."""
    x = float(Fraction(numerator) * Fraction(2) ** exponent)
    values = values_of(element)
    if abs(x) > values[-1]:
        return
    found = Fraction(float(operand(np.array([x]), element).astype(np.float64)[0]))
    nearest = min(abs(Fraction(x) - v) for v in values)
    assert abs(Fraction(x) - found) == nearest
    ties = [v for v in values if abs(Fraction(x) - v) == nearest]
    if len(ties) == 2:
        code = int(to_bits(np.array([float(found)]).astype(dtype(element).numpy), dtype(element))[0])
        assert code % 2 == 0


@pytest.mark.parametrize("element", NARROW)
def test_what_a_narrow_type_does_not_reach_is_refused(element: str) -> None:
    with pytest.raises(LayoutError, match="has no place in"):
        operand(np.array([1e300]), element)


def test_tfloat32_takes_float32_as_it_is_and_rounds_float64() -> None:
    x = np.array([1 + 2**-12, 1 + 2**-10], np.float32)
    assert operand(x, "tfloat32").tolist() == x.tolist()  # the instruction drops the low bits
    found = operand(np.array([1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-12]), "tfloat32")
    assert found.tolist() == [1, 1 + 2**-9, 1]
    with pytest.raises(LayoutError, match="convert it"):
        operand(np.zeros(1, np.float16), "tfloat32")
    a = np.full((16, 8), 1 + 2**-11, np.float32)
    result = lowered("m16n8k8.tf32", beta=0.0).run(A=a, B=np.ones((8, 8), np.float32))
    assert (result == 8).all()


# --- memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("element", DTYPES)
def test_bits_and_back(element: str) -> None:
    kind = dtype(element)
    codes = np.random.default_rng(0).integers(0, 2 ** min(kind.bits, 62), (4, 32)).astype(np.uint64)
    values = from_bits(codes, kind)
    assert values.dtype == kind.numpy
    np.testing.assert_array_equal(to_bits(values, kind).astype(np.uint64), codes)
    assert (to_bits(blank((3,), kind), kind) == 2**kind.bits - 1).all()
    containers = {kind.bits} if 8 % kind.bits in (0, 8) and kind.bits != 6 else set()
    containers |= {8} if kind.ptx in ("e3m2", "e2m3", "e2m1") else set()
    for container in containers:
        held = to_memory(values, kind, container)
        assert held.nbytes == 4 * 32 * container // 8
        back = from_memory(held, kind, container)
        np.testing.assert_array_equal(to_bits(back, kind).astype(np.uint64), codes)


def test_c60_rows_are_whole_bytes() -> None:
    """Row r of an (M, N) int4 matrix begins at byte r * N / 2; odd N is refused."""
    values = np.array([[1, -2, 3, -4], [5, -6, 7, -8]], ml_dtypes.int4)
    assert to_memory(values, dtype("int4"), 4).tolist() == [[0xE1, 0xC3], [0xA5, 0x87]]
    with pytest.raises(LayoutError, match="no multiple of 2"):
        to_memory(values[:, :3], dtype("int4"), 4)


# --- numerics -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "numerics"),
    [("m16n8k16.f16", "sm_80"), ("m16n8k16.bf16", "sm_90"), ("m16n8k16.f16.f16.f16.f16", "sm_90a"),
     ("m16n8k8.tf32", "sm_80"), ("m16n8k32.e4m3", "sm_89"), ("m16n8k32.e5m2", "sm_90")],
)  # fmt: skip
def test_a_model_is_applied_to_every_instruction_in_turn(name: str, numerics: str) -> None:
    record = BY_NAME[name]
    one = lowered(name, tiling=(1, 1, 3))
    assert one.instructions == (record.mnemonic,)
    rng = np.random.default_rng(2)
    spread = 4 if record.d == "float16" else 1000  # within float16's range
    arrays = {r: (spread ** rng.uniform(-1, 1, x.shape)).astype(np.float32).astype(x.dtype)
              for r, x in cases.any_values(one.call, rng).items()}  # fmt: skip
    a, b, c = (cases.numbers(one.call.tiles[r], arrays[r]) for r in "ABC")
    results = {}
    for chosen in ("exact", numerics):
        how = model(chosen, record.a, record.b, record.d, record.k)
        d = c
        for k in range(0, 3 * record.k, record.k):
            d = accumulate(a[:, k : k + record.k], b[k : k + record.k], d, how)
        results[chosen] = d
        np.testing.assert_array_equal(one.run(**arrays, numerics=chosen).astype(np.float64), d)
    np.testing.assert_array_equal(one.run(**arrays).astype(np.float64), results["exact"])
    if record.d == "float32":  # float16 sums are rounded alike but for rare ties
        assert (results["exact"] != results[numerics]).any()


def test_integers_and_f64_are_the_same_under_every_name() -> None:
    for name in ("m16n8k32.s8", "m16n8k64.u4.satfinite", "m16n8k16.f64"):
        one = lowered(name)
        arrays = cases.any_values(one.call, np.random.default_rng(5))
        wanted = one.run(**arrays)
        for numerics in ("sm_80", "sm_90", "sm_100"):
            assert one.run(**arrays, numerics=numerics).tobytes() == wanted.tobytes()


def test_unknown_models_are_refused() -> None:
    one = lowered("m16n8k16.f16", beta=0.0)
    arrays = cases.given(one.call, cases.whole(one.call, np.random.default_rng(0)))
    for name in ("sm_99", "", "Exact", None):
        with pytest.raises(LayoutError, match=r"unknown model .* \(?known: exact, ") as error:
            one.run(**arrays, numerics=name)  # type: ignore[arg-type]
        assert "sm_90" in str(error.value)
    eight = lowered("m16n8k32.e4m3", beta=0.0)
    arrays = cases.given(eight.call, cases.whole(eight.call, np.random.default_rng(0)))
    with pytest.raises(LayoutError, match="no published model of float8_e4m3fn"):
        eight.run(**arrays, numerics="sm_80")


def test_examples_of_docstrings() -> None:
    failed, tried = doctest.testmod(arrays_room)
    assert (failed, tried > 0) == (0, True)
