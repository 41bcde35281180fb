"""The numba.cuda backend, without a GPU: the PTX that numba-cuda makes of it is executed on a machine for text."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types

from lowering import Tile, gemm, lower
from lowering.backends.assemble import assemble
from lowering.backends.numba_cuda import FragmentType, compile_ptx, kernel_ptx
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG
from lowering.target import target
from property_tests.gemm_cases import Case, all_cases, one_warp
from property_tests.lowering.numba_cases import (
    FLOAT,
    HALF,
    LARGE,
    TypingErrors,
    carried,
    lowered_for,
    one_atom,
    operands,
    product,
    unwritten,
)
from property_tests.lowering.numba_machine import execute

# --- whole kernels ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", list(all_cases()), ids=lambda case: case.name)
def test_every_case_computes_the_product(case: Case) -> None:
    lowered = lowered_for(case)
    ptx = kernel_ptx(lowered.kernel, case.call.tiles, "sm_80")
    arrays = operands(lowered)
    result = execute(ptx, [*map(carried, arrays.values()), unwritten(case.call.tiles["D"].shape)])
    np.testing.assert_array_equal(result[-1], product(lowered, arrays))
    collective = sum(step.instruction.collective for step in lowered.program.steps)
    assert ptx.count("mma.sync") == collective
    assert ".local" not in ptx


@pytest.mark.parametrize("name", ["sm_80", "sm_90a", "sm_120a", "sm_120f"])
@pytest.mark.parametrize(
    ("tiling", "dtype", "beta"),
    [
        ((1, 1, 1, 16), "float16", 0.0),
        ((2, 2, 3, 8), "bfloat16", 1.0),
        (LARGE, "float16", 1.0),
        (LARGE, "bfloat16", 0.0),
    ],
)
def test_kernels_assemble_without_spills(
    tiling: tuple[int, int, int, int],
    dtype: str,
    beta: float,
    name: str,
    record_property: Callable[..., None],
) -> None:
    lowered = lower(one_warp(tiling, dtype, beta), target=name, scope="warp")
    begin = time.perf_counter()
    ptx = kernel_ptx(lowered.kernel, lowered.call.tiles, name)
    record_property("compile_seconds", time.perf_counter() - begin)
    assert ptx.count("mma.sync") == tiling[0] * tiling[1] * tiling[2]
    assert f".target {name}\n" in ptx
    cubin = assemble(ptx, target(name))
    assert (cubin.spill_bytes, cubin.local_bytes) == (0, 0)


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_a_region_leaves_the_rest_of_d_as_it_was(beta: float) -> None:
    """D_prev is a parameter of its own, after C where there is one."""
    d = Tile("D", (32, 8), "float32", D_FRAG.tile_to((32, 8), (16, 8)))
    c = Tile("C", (16, 8), "float32", D_FRAG)
    a, b = Tile("A", (16, 16), "float16", A_FRAG), Tile("B", (16, 8), "float16", B_FRAG)
    lowered = lower(gemm(d[16:32], a, b, c, beta=beta), target="sm_80", scope="warp")
    arrays = operands(lowered)
    assert list(arrays) == (["A", "B", "C", "D"] if beta else ["A", "B", "D"])
    ptx = kernel_ptx(lowered.kernel, lowered.call.tiles, "sm_80")
    result = execute(ptx, [*arrays.values(), unwritten(d.shape)])[-1]
    np.testing.assert_array_equal(result[16:], product(lowered, arrays))
    np.testing.assert_array_equal(result[:16], arrays["D"][:16])


# --- a user's own kernels -----------------------------------------------------------------------------


def test_get_and_set_on_every_slot() -> None:
    """Elements of A and B are swapped within words and between them, and put back in D's order."""
    lowered = one_atom()
    f = lowered.device_function
    load_a, get, put = f.load_a, f.get, f.set

    def kernel(A: Any, B: Any, D: Any) -> None:
        a, b = load_a(A), f.load_b(B)
        a = put(put(a, 0, get(a, 7)), 7, get(a, 0))
        b = put(put(b, 1, get(b, 2)), 2, get(b, 1))
        d = f(a, b)
        d = put(put(put(d, 0, get(d, 3)), 3, get(d, 0)), 1, np.float32(2.5))
        f.store(D, d)

    ptx = compile_ptx(kernel, (HALF, HALF, FLOAT), "sm_80", threads=32)
    assert ".local" not in ptx
    arrays = operands(lowered)
    a, b = arrays["A"].copy(), arrays["B"].copy()
    g, t = np.divmod(np.arange(32), 4)
    a[g, 2 * t], a[g + 8, 2 * t + 9] = a[g + 8, 2 * t + 9], a[g, 2 * t]
    b[2 * t + 1, g], b[2 * t + 8, g] = b[2 * t + 8, g], b[2 * t + 1, g]
    expected = a.astype(np.float64) @ b.astype(np.float64)
    expected[g, 2 * t], expected[g + 8, 2 * t + 1] = expected[g + 8, 2 * t + 1], expected[g, 2 * t]
    expected[g, 2 * t + 1] = 2.5
    np.testing.assert_array_equal(execute(ptx, [*arrays.values(), unwritten((16, 8))])[-1], expected)


def test_a_loop_over_k_keeps_the_accumulator_in_registers() -> None:
    f = one_atom(1.0).device_function

    def kernel(A: Any, B: Any, D: Any) -> None:
        d = f.zeros_d()
        for k in range(0, A.shape[1], 16):
            d = f(f.load_a(A[:, k : k + 16]), f.load_b(B[k : k + 16, :]), d)
        f.store(D, d)

    ptx = compile_ptx(kernel, (HALF, HALF, FLOAT), "sm_90a", threads=32)
    assert "mma.sync" in ptx
    assert ".local" not in ptx
    assert assemble(ptx, target("sm_90a")).local_bytes == 0


def test_an_mma_stays_before_a_branch_that_lanes_do_not_share() -> None:
    """Its result is used by lane 0 alone; were it moved there, the warp would not execute it together."""
    f = one_atom().device_function

    def kernel(A: Any, B: Any, D: Any) -> None:
        d = f(f.load_a(A), f.load_b(B))
        if cuda.threadIdx.x == 0:
            f.store(D, d)

    for name in ("sm_80", "sm_90a", "sm_100a"):
        ptx = compile_ptx(kernel, (HALF, HALF, FLOAT), name)
        assert ptx.index("mma.sync") < ptx.index("@%p")


@pytest.mark.parametrize("dtype", [types.float16, types.uint16])
def test_arrays_are_reached_through_their_strides(dtype: Any) -> None:
    """A is every other row and column of a matrix, B the transpose of one, D in column-major order."""
    lowered = one_atom()
    f = lowered.device_function

    def kernel(A: Any, B: Any, D: Any) -> None:
        f.store(D, f(f.load_a(A), f.load_b(B)))

    ptx = compile_ptx(kernel, (dtype[:, :], dtype[::1, :], types.float32[::1, :]), "sm_80", threads=32)
    rng = np.random.default_rng(6)
    wide, across = (rng.integers(-8, 9, shape).astype(np.float16) for shape in ((32, 36), (8, 16)))
    column_major = unwritten((8, 16))
    views = (wide[::2, :32:2], across.T, column_major.T)
    result = execute(ptx, [wide, across, column_major], views)[-1]
    np.testing.assert_array_equal(result.T, views[0].astype(np.float64) @ views[1].astype(np.float64))


def test_fragments_pass_through_inlined_functions_and_tuples() -> None:
    lowered = one_atom(1.0)
    f = lowered.device_function

    @cuda.jit(device=True, inline="always")
    def twice(a: Any, b: Any, d: Any) -> Any:
        return f(a, b, f(a, b, d))

    def kernel(A: Any, B: Any, C: Any, D: Any) -> None:
        both = (f.load_a(A), f.load_b(B))
        f.store(D, twice(both[0], both[1], f.load_c(C)))

    arrays = operands(lowered)
    ptx = compile_ptx(kernel, (HALF, HALF, FLOAT, FLOAT), "sm_80", threads=32)
    expected = product(lowered, arrays) + product(lowered, {**arrays, "C": 0})
    np.testing.assert_array_equal(execute(ptx, [*arrays.values(), unwritten((16, 8))])[-1], expected)


def test_a_superfluous_c_is_taken_and_not_read() -> None:
    f = one_atom().device_function

    def kernel(A: Any, B: Any, C: Any, D: Any) -> None:
        f.store(D, f(f.load_a(A), f.load_b(B), f.load_c(C)))

    arrays = operands(one_atom())
    ptx = compile_ptx(kernel, (HALF, HALF, FLOAT, FLOAT), "sm_80", threads=32)
    result = execute(ptx, [*arrays.values(), unwritten((16, 8)), unwritten((16, 8))])[-1]
    np.testing.assert_array_equal(result, product(one_atom(), arrays))


def test_names_of_numba_see_the_types() -> None:
    f = one_atom(1.0, "bfloat16").device_function
    assert f.roles == ("A", "B", "C")
    assert f.types == {
        "A": FragmentType("bfloat16", 4), "B": FragmentType("bfloat16", 2),
        "C": FragmentType("float32", 4), "D": FragmentType("float32", 4),
    }  # fmt: skip
    assert repr(f) == (
        f"<DeviceFunction {f.program.name}(a: Fragment(bfloat16, 4), b: Fragment(bfloat16, 2), "
        "c: Fragment(float32, 4)) -> Fragment(float32, 4)>"
    )
    assert FragmentType("float16", 4) != FragmentType("bfloat16", 4) != FragmentType("bfloat16", 2)
    assert (FragmentType("float16", 4).slots, FragmentType("float32", 4).slots) == (8, 4)
    with pytest.raises(ValueError, match="1 word or more"):
        FragmentType("float16", 0)
    assert (FragmentType("float64", 4).slots, FragmentType("int4", 4).slots) == (2, 32)
    assert FragmentType("float4_e2m1fn", 4) != FragmentType("float4_e2m1fn", 4, 8)
    with pytest.raises(ValueError, match="3 words are no whole number of float64"):
        FragmentType("float64", 3)
    with pytest.raises(ValueError, match="float6_e2m3fn in 6 bits does not"):
        FragmentType("float6_e2m3fn", 4)


# --- refusals -----------------------------------------------------------------------------------------


A_TYPE, B_TYPE, D_TYPE = "Fragment(float16, 4)", "Fragment(float16, 2)", "Fragment(float32, 4)"
WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "missing": (lambda f: lambda A, B, D: f(f.load_a(A)), f"takes 2 fragments (A {A_TYPE}, B {B_TYPE}), got 1"),
    "too many": (lambda f: lambda A, B, D: f(f.load_a(A), f.load_b(B), f.zeros_d(), 1), "takes 2 fragments"),
    "another size": (lambda f: lambda A, B, D: f(f.load_b(B), f.load_b(B)), f"A is a {A_TYPE}, got {B_TYPE}"),
    "another type": (lambda f: lambda A, B, D: f(f.zeros_d(), f.load_b(B)), f"A is a {A_TYPE}, got {D_TYPE}"),
    "no fragment": (lambda f: lambda A, B, D: f(A, B), f"A is a {A_TYPE}, got array"),
    "more than C": (lambda f: lambda A, B, D: f(f.load_a(A), f.load_b(B), A), f"C is a {D_TYPE}, got array"),
    "by keyword": (lambda f: lambda A, B, D: f(a=f.load_a(A), b=f.load_b(B)), "takes its fragments by position"),
    "array type": (lambda f: lambda A, B, D: f.load_a(D), "2-d array of float16 or uint16 for A, float16 [16, 16]"),
    "array rank": (lambda f: lambda A, B, D: f.load_a(A[0]), "load_a takes a 2-d array"),
    "no array": (lambda f: lambda A, B, D: f.load_a(f.zeros_d()), "load_a takes a 2-d array"),
    "stored fragment": (lambda f: lambda A, B, D: f.store(D, f.load_a(A)), f"store takes the {D_TYPE} of D"),
    "stored to halves": (lambda f: lambda A, B, D: f.store(A, f.zeros_d()), "store takes a 2-d array of float32"),
    "no such helper": (lambda f: lambda A, B, D: f.load_e(A), "Unknown attribute 'load_e'"),
    "private name": (lambda f: lambda A, B, D: f._intrinsic(A), "Unknown attribute '_intrinsic'"),
    "slot outside": (lambda f: lambda A, B, D: f.get(f.zeros_d(), 4), f"slot 4 is not in the 4 slots of {D_TYPE}"),
    "slot of run time": (lambda f: lambda A, B, D: f.get(f.zeros_d(), D.shape[0]), "must be a constant integer"),
    "get of an array": (lambda f: lambda A, B, D: f.get(D, 0), "get takes a Fragment, got array"),
    "set to a fraction": (lambda f: lambda A, B, D: f.set(f.load_a(A), 0, 1.5), "set takes uint16 for an element"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_use_is_a_typing_error_in_words(wrong: str) -> None:
    use, words = WRONG[wrong]
    with pytest.raises(TypingErrors, match=re.escape(words)):
        compile_ptx(use(one_atom().device_function), (HALF, HALF, FLOAT), "sm_80", device=True)


def test_read_only_arrays_are_not_stored_to() -> None:
    f = one_atom().device_function

    def kernel(D: Any) -> None:
        f.store(D, f.zeros_d())

    with pytest.raises(TypingErrors, match="is read-only"):
        compile_ptx(kernel, (types.Array(types.float32, 2, "C", readonly=True),), "sm_80")


def test_outside_of_kernels_a_call_says_where_it_belongs() -> None:
    with pytest.raises(TypeError, match=r"is device code: call it inside a function under @cuda.jit"):
        one_atom().device_function(1, 2)
