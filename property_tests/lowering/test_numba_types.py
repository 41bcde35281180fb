"""Fragments of every element type in numba kernels: `get`, `set`, arrays, refusals.  No GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba.core import errors
from numba.cuda import types
from numba.cuda.core import errors as cuda_errors

from lowering import Lowered, Tile, gemm
from lowering.backends.arrays import blank, to_memory
from lowering.backends.numba_cuda import FragmentType, compile_ptx
from lowering.dtypes import dtype
from lowering.fragments import layout

from .. import record_cases as cases
from .numba_machine import execute

TypingErrors = (errors.TypingError, cuda_errors.TypingError)
NAMES = (
    "m8n8k4.f64", "m16n8k8.tf32", "m16n8k16.f16.f16.f16.f16", "m16n8k8.bf16", "m16n8k16.s8", "m16n8k16.u8",
    "m8n8k32.s4", "m8n8k128.b1.and", "m16n8k32.e5m2", "m16n8k32.f8f6f4.e2m1", "m16n8k32.f8f6f4.e3m2",
)  # fmt: skip


def lowered_of(name: str, **options: Any) -> Lowered:
    record = next(i for i in cases.RECORDS if i.name == name)
    return cases.lowered_of(record, cases.call_of(record, **options))


def slots(lowered: Lowered, role: str) -> Any:
    """The element that sits there, by number: ``[lanes, slots]``."""
    tile = lowered.call.tiles[role]
    table = tile.layout.table(tile.shape)
    lane = table["laneid"].ravel()  # type: ignore[call-overload]
    slot = table.get("m", np.zeros(tile.shape, int)).ravel()  # type: ignore[call-overload]
    out = np.zeros((32, slot.max() + 1), int)
    out[lane, slot] = np.arange(lane.size)
    return out


def with_slots_swapped(lowered: Lowered, role: str, array: Any, first: int, second: int) -> Any:
    at = slots(lowered, role)
    out = np.array(array).ravel()
    out[at[:, first]], out[at[:, second]] = out[at[:, second]].copy(), out[at[:, first]].copy()
    return out.reshape(array.shape)


@pytest.mark.parametrize("name", NAMES)
def test_elements_are_read_and_replaced(name: str) -> None:
    """Two elements of A change places before the product, two of D after it, in every lane."""
    lowered = lowered_of(name)
    f = lowered.device_function
    last = 1 if f.types["A"].slots > 1 else 0

    def kernel(A: Any, B: Any, C: Any, D: Any) -> None:
        a, b, c = f.load_a(A), f.load_b(B), f.load_c(C)
        x, y = f.get(a, 0), f.get(a, last)
        a = f.set(f.set(a, 0, y), last, x)
        d = f(a, b, c)
        x, y = f.get(d, 0), f.get(d, 1)
        f.store(D, f.set(f.set(d, 0, y), 1, x))

    arrays = [types.Array(f.types[r].array_types[0], 2, "C") for r in "ABCD"]
    ptx = compile_ptx(kernel, arrays, lowered.context.target, threads=32)
    assert ".local" not in ptx
    given = cases.whole(lowered.call, np.random.default_rng(1))
    tiles, forms = lowered.call.tiles, f.types
    before = [to_memory(given[r], tiles[r].element, forms[r].container) for r in "ABC"]
    found = execute(ptx, [*before, blank(tiles["D"].shape, tiles["D"].element)])[-1]
    record = next(i for i in cases.RECORDS if i.name == name)
    swapped = {**given, "A": with_slots_swapped(lowered, "A", given["A"], 0, last)}
    wanted, _ = cases.answer(record, lowered.call, swapped)
    np.testing.assert_array_equal(
        found.astype(np.float64), with_slots_swapped(lowered, "D", wanted.astype(np.float64), 0, 1)
    )


@pytest.mark.parametrize(
    ("fragment", "value", "arrays", "slots"),
    [
        (FragmentType("float64", 4), types.float64, (types.float64,), 2),
        (FragmentType("tfloat32", 4), types.float32, (types.float32,), 4),
        (FragmentType("int32", 4), types.int32, (types.int32,), 4),
        (FragmentType("int8", 2), types.int8, (types.int8,), 8),
        (FragmentType("uint4", 2), types.uint8, (types.uint8,), 16),
        (FragmentType("uint1", 1), types.uint8, (types.uint8,), 32),
        (FragmentType("float8_e4m3fn", 1), types.uint8, (types.uint8,), 4),
        (FragmentType("float4_e2m1fn", 1), types.uint8, (types.uint8,), 8),
        (FragmentType("float4_e2m1fn", 1, 8), types.uint8, (types.uint8,), 4),
        (FragmentType("float16", 1), types.uint16, (types.float16, types.uint16), 2),
    ],
    ids=str,
)
def test_what_numba_sees(fragment: FragmentType, value: Any, arrays: Any, slots: int) -> None:
    assert fragment.value_type == value
    assert fragment.array_types == arrays
    assert fragment.slots == slots
    places = [fragment.place(i) for i in range(slots)]
    assert places == sorted(set(places))
    assert places[-1][0] * 32 + places[-1][1] + fragment.container == 32 * fragment.count


def test_packed_arrays_are_named_in_refusals() -> None:
    lowered = lowered_of("m8n8k32.s4")
    f = lowered.device_function

    def kernel(A: Any, D: Any) -> None:
        f.store(D, f(f.load_a(A), f.load_b(A), f.zeros_d()))

    wrong = (types.int8[:, ::1], types.int32[:, ::1])
    with pytest.raises(
        TypingErrors, match=r"2-d array of uint8 for A, int4 \[8, 32\] \(2 elements a byte along the last\)"
    ):
        compile_ptx(kernel, wrong, "sm_80")


def test_rows_that_are_no_whole_bytes_are_refused() -> None:
    record = next(i for i in cases.RECORDS if i.name == "m8n8k32.s4")
    plain = cases.call_of(record)
    b = Tile("B", (32, 8, 1), "int4", layout(record, "B"))
    f = cases.lowered_of(record, gemm(plain.D, plain.A, b, plain.D)).device_function

    def kernel(B: Any) -> None:
        f.load_b(B)

    with pytest.raises(
        TypingErrors, match=r"a row of B, int4 \[32, 8, 1\], is no whole number of bytes of 2 elements"
    ):
        compile_ptx(kernel, (types.uint8[:, :, ::1],), "sm_80")


def test_a_fragment_is_what_registers_are() -> None:
    for bad, words in (
        (("float64", 1), "no whole number"),
        (("float8_e4m3fn", 1, 4), "does not"),
        (("int8", 1, 24), "24"),
    ):
        with pytest.raises(ValueError, match=words):
            FragmentType(*bad)  # type: ignore[arg-type]
    assert dtype("uint1").numpy == np.bool_
