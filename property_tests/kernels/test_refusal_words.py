"""Refusals name the caller's operands, and their remedies hold; beside them what newcomers had found refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lowering.kernels import Config
from lowering.kernels.gemm.config import Feed
from lowering.kernels.gemm.problem import OUTPUTS
from lowering.kernels.gemm.shapes import Shaped, extents
from lowering.narrow import from_float
from tilelayout import LayoutError

from .refusing import FEEDS, TMA, A, B, C, kernel, refused

# --- what a kernel is asked to be -------------------------------------------------------------------


@pytest.mark.parametrize("given_", ["yes", "", 1, 0, None, [True], np.True_], ids=repr)
def test_batched_is_a_bool(given_: Any) -> None:
    refused(lambda: kernel(batched=given_), f"batched={given_!r}", "True or False")


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("types", [("float16", "bfloat16"), ("int8", "float16"), ("float64", "int8")])
def test_types_are_named_in_the_callers_order(types: tuple[str, str], order: str) -> None:
    refused(lambda: kernel(types, D=order), f"{types[0]} x {types[1]}", without=("int4",))


@pytest.mark.parametrize("where", ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_120"])
def test_the_types_of_a_remedy_are_taken(where: str) -> None:
    with pytest.raises(LayoutError) as error:
        kernel("int8", accumulator="float64", target=where)
    remedy = str(error.value).partition(f"{where} has ")[2].rstrip(")")
    assert remedy
    for each in remedy.split(", "):
        factors, sums = each.split(" + ")
        a, b = factors.split(" x ")
        assert kernel((a, b), accumulator=sums, target=where).problem.accumulator == sums


def test_float64_needs_what_its_oldest_instruction_needs() -> None:
    refused(lambda: kernel("float64", target="sm_75"), "needs sm_80 or newer", without=("sm_90",))
    assert kernel("float64", target="sm_80")


OUT = [("sm_75", "bfloat16", "sm_80"), ("sm_75", "tfloat32", "sm_80"), ("sm_80", "float8_e4m3fn", "sm_89"),
       ("sm_80", "float8_e5m2", "sm_89")]  # fmt: skip


@pytest.mark.parametrize(("where", "out", "needed"), OUT)
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_a_type_that_a_target_does_not_convert_to(dtype: str, where: str, out: str, needed: str) -> None:
    """Refused when the kernel is made; what the remedy offers is what such kernels are built with."""
    with pytest.raises(LayoutError) as error:
        kernel(dtype, out=out, target=where)
    said = str(error.value)
    assert f"out={out!r}" in said
    assert f"needs {needed} or newer, the target is {where}" in said
    a, b = (x.astype(OUTPUTS_OF[dtype]) for x in (A[:, :32], B[:32]))
    for other in said.partition("one of ")[2].rstrip(")").split(", "):
        found = kernel(dtype, out=other, target=where).simulate(a, b)
        assert (found.astype(float) == 32).all()


OUTPUTS_OF = {"float16": np.float16, "int8": np.int8}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", OUTPUTS)
def test_every_type_that_is_accepted_is_built(dtype: str) -> None:
    """Over all targets and results: a kernel that is made has a program."""
    for where in ("sm_75", "sm_80", "sm_90a"):
        for out in (*OUTPUTS, "float32", "int32"):
            try:
                made = kernel(dtype, out=out, target=where)
            except LayoutError:
                continue
            assert made.program.body, (dtype, out, where)


# --- what a call is given -----------------------------------------------------------------------------

NO_NUMBERS = [
    np.full((32, 64), "1"),
    np.full((32, 64), b"1"),
    np.full((32, 64), None),
    np.ones((32, 64), complex),
]


@pytest.mark.parametrize("array", NO_NUMBERS, ids=lambda x: str(x.dtype))
@pytest.mark.parametrize("rows", [32, 0])
def test_arrays_of_no_numbers_are_refused_also_where_they_are_empty(array: Any, rows: int) -> None:
    refused(lambda: kernel().simulate(array[:rows], B), f"A has dtype {array.dtype}", "holds float16")
    refused(lambda: kernel(D="column").simulate(A, array.T[:, :rows]), f"B has dtype {array.dtype}")


def test_float32_is_pointed_to_what_takes_its_arrays() -> None:
    refused(lambda: kernel("float32"), "float32 x float32", "remedy: tfloat32, which takes arrays of float32")
    assert (kernel("tfloat32").simulate(A.astype(np.float32), B.astype(np.float32)) == 64).all()


def test_operands_of_another_rank() -> None:
    several = np.ones((2, 32, 64))
    refused(
        lambda: kernel().simulate(several, B),
        "A has 3 dimensions",
        "remedy: make the kernel with batched=True",
    )
    made = kernel(batched=True)
    refused(lambda: made.simulate(several, B), "B has 2 dimensions", "remedy: B[None], a batch of one")
    assert (made.simulate(several, B[None]) == 64).all()
    refused(lambda: kernel().simulate(None, B), "A is None", "pass an array")


@pytest.mark.parametrize("value", [1000.0, -1e30, np.inf])
def test_numbers_beyond_8_bit_floats_name_the_operand(value: float) -> None:
    """And the remedy holds."""
    made, wide = kernel("float8_e4m3fn"), B.astype(np.float64) * value
    refused(
        lambda: made.simulate(A, wide),
        f"gemm: B: {value!r} has no place in float8_e4m3fn", "lowering.narrow.from_float(..., saturate=True)",
    )  # fmt: skip
    largest = made.simulate(A, from_float(wide, "float8_e4m3fn", saturate=True))
    assert (largest == made.simulate(A, np.sign(wide) * 448.0)).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_empty_arrays_of_numbers_are_as_good_as_others(dtype: Any) -> None:
    assert kernel().simulate(np.zeros((0, 64), dtype), B).shape == (0, 40)
    assert (kernel().simulate(np.zeros((32, 0), dtype), B[:0]) == 0).all()


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", [1e39, -1e39, 3.5e38, 1e308, 10**60])
def test_numbers_beyond_float32(name: str, value: float) -> None:
    refused(
        lambda: kernel(C="row").simulate(A, B, C=C, **{name: value}),
        f"{name} = {float(value):g} is beyond float32", "3.402823e+38",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", [1e-50, -1e-46, 5e-324, Fraction(1, 10**60)])
def test_numbers_that_float32_makes_zero(name: str, value: float) -> None:
    refused(
        lambda: kernel(C="row").simulate(A, B, C=C, **{name: value}),
        f"{name} = {float(value):g} is 0 in float32", "0, or at least 1.401298e-45",
    )  # fmt: skip
    made = kernel(out="float32").simulate(A * 0 + 64, B * 0 + 64, alpha=1.4012985e-45)
    assert (made == np.float32(64.0**3 * 1.4012985e-45)).all()  # the least one is held


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize(
    ("value", "held"),
    [
        (1e39, 3e38),
        (1e-50, 1e-40),
        ((2.0 - 2.0**-24) * 2.0**127, None),
        (2.0**-150, None),
        (-(2.0**-150), None),
    ],
)
def test_a_launch_refuses_the_same_numbers(name: str, value: float, held: float | None) -> None:
    """What float32 rounds to infinity or to zero, and nothing that it does not: up to the last of each."""
    made, given = kernel(C="row"), {"alpha": 1.0, "beta": 1.0, name: value}
    refused(lambda: made.check_operands(C, None, given["beta"], given["alpha"]), f"{name} = {value:g} is")
    inwards = math.copysign(1.0, value)
    given[name] = held or math.nextafter(value, inwards)
    assert np.isfinite(np.float32(given[name]))
    assert np.float32(given[name]) != 0
    assert made.check_operands(C, None, given["beta"], given["alpha"]) == (True, given["beta"])
    kernel("float64", C="row").check_operands(C, None, given["beta"], value)


def test_numbers_that_float32_or_float64_holds() -> None:
    largest = float(np.finfo(np.float32).max)
    wide = kernel("float64").simulate(A.astype(float), B.astype(float), alpha=1e300)
    assert (wide == 64e300).all()
    for alpha in (largest, -largest, math.inf, 0.0, 1e-40):
        found = kernel(out="float32").simulate(A * 0 + 2.0**-8, B * 0 + 2.0**-8, alpha=alpha)
        assert (found == np.float32(2.0**-10) * np.float32(alpha)).all()
    assert np.isnan(kernel().simulate(A, B, alpha=math.nan)).all()
    half = kernel(C="row").simulate(A, B, C=C, alpha=Fraction(1, 2), beta=np.int64(2))
    assert (half == kernel(C="row").simulate(A, B, C=C, alpha=0.5, beta=2.0)).all()


def batches(a: int, b: int, d: int, c: int | None = None) -> dict[str, Shaped]:
    def of(n: int, rows: int, columns: int) -> Shaped:
        return Shaped((n, rows, columns), (rows * columns, columns, 1))

    out = {"A": of(a, 32, 64), "B": of(b, 64, 40), "D": of(d, 32, 40)}
    return out if c is None else {**out, "C": of(c, 32, 40)}


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((1, 1, 1, 2), "C has 2 batches, 1 is needed"),
        ((2, 1, 2, 3), "C has 3 batches, 2 or 1 are needed"),
        ((2, 1, 1), "D has 1 batches, 2 are needed"),
        ((3, 3, 2, 3), "D has 2 batches, 3 are needed"),
        ((2, 3, 3), "A has 2 batches, 3 or 1 are needed"),
    ],
)
@pytest.mark.parametrize("order", ["row", "column"])
def test_the_array_of_other_batches_is_named(counts: tuple[int, ...], words: str, order: str) -> None:
    made = kernel(batched=True, C=order, A=order, B=order, D=order)
    shaped = batches(*counts) if order == "row" else {n: turned(x) for n, x in batches(*counts).items()}
    refused(lambda: made.for_call(made.internal(shaped), 1.0, "C" in shaped, 4), words)


def turned(x: Shaped) -> Shaped:
    """Column-major, of the same shape."""
    n, rows, columns = x.shape
    return Shaped((n, rows, columns), (rows * columns, 1, rows))


def test_all_may_share_both_factors() -> None:
    p = kernel(batched=True, C="row").problem
    assert extents(p, batches(1, 1, 4, 4)).batches == 4
    assert extents(p, batches(1, 1, 4, 1)).batches == 4
    assert extents(p, batches(1, 4, 4, 1)).batches == 4


# --- column-major results: the kernel's operands are the caller's others ------------------------------------


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("name", "AB")
def test_the_callers_operand_is_named(name: str, order: str) -> None:
    """Of an alignment, a stride, an extent: whichever way the problem is carried out."""
    wrong = {"A": Shaped((32, 64), (65, 1)), "B": Shaped((64, 40), (41, 1))}[name]
    right = {"A": Shaped((32, 64), (64, 1)), "B": Shaped((64, 40), (40, 1))}
    d = Shaped((32, 40), (40, 1) if order == "row" else (1, 32))
    other = "BA"["AB".index(name)]

    def call(x: Shaped, **how: Any) -> Callable[[], Any]:
        made = kernel(D=order, **how)
        return lambda: made.for_call(made.internal({**right, "D": d, name: x}), 1.0, False, 4)

    for feed in ("tma", "cp_async"):
        cut = replace(TMA, feed=feed)
        refused(call(wrong, config=cut), f"{name} is aligned to 2 bytes", without=(f": {other} is",))
    turned_ = Shaped(wrong.shape, (1, 64))
    refused(
        call(turned_), f"{name} is row-major in this kernel", f"ask for {name}='column'", str(wrong.shape)
    )
    refused(call(Shaped(wrong.shape, (-64, 1))), f"{name} has a negative stride -64")


def test_shapes_are_told_as_the_caller_has_them() -> None:
    for order in ("row", "column"):
        refused(
            lambda order=order: kernel(D=order).simulate(A, B[:60]),
            "B is (60, 40), (64, 40) is needed",
            "A (32, 64)",
        )
        made = kernel(D=order, bias="row")
        refused(lambda made=made: made.simulate(A, B, bias=C[:, 0]), "bias is (32,), (40,) is needed")
        assert (made.simulate(A, B, bias=C[0]) == 67).all()


def test_lines_of_a_result_that_overlap() -> None:
    for order, strides, word in (("row", (39, 1), "rows of 40"), ("column", (1, 31), "columns of 32")):
        made = kernel(D=order)
        given_ = {
            "A": Shaped((32, 64), (64, 1)),
            "B": Shaped((64, 40), (40, 1)),
            "D": Shaped((32, 40), strides),
        }
        refused(
            lambda m=made, g=given_: m.for_call(m.internal(g), 1.0, False, 4), f"D's {word} elements overlap"
        )


# --- no factor is read --------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("splits", [1, 2])
def test_alpha_0_with_a_configuration_reads_no_factor(feed: Feed, order: str, splits: int) -> None:
    """NaN do not come through, as BLAS has it; a call of another alpha is cut as asked for."""
    cut = Config((64, 64, 64), (2, 2), 3 if feed != "registers" else 2, feed, splits=splits)
    made = kernel(config=cut, C="row", D=order, bias="row")
    none = np.full_like(A, np.nan), np.full_like(B, np.nan)
    found = made.simulate(*none, C=C, bias=C[0], alpha=0.0, beta=2.0)
    assert (found == 9).all()
    assert (made.simulate(A, B, C=C, bias=C[0], alpha=0.5, beta=-1.0) == 32).all()
    assert (made.simulate(A[:, :0], B[:0], C=C, bias=C[0]) == 6).all()
    assert {b.config.feed for _, b in made._built.items()} == {feed, "registers"}
    assert made.config == cut
