"""Registers from and to memory: whole, element by element, and out of bytes that elements share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering import Tile, gemm
from lowering.backends.arrays import from_bits, to_bits, to_memory
from lowering.backends.ptx import ptx_module
from lowering.backends.reference import run_kernel
from lowering.compose import stage
from lowering.dtypes import dtype
from lowering.isa import GATHER, LOAD_WORD, SCATTER, STORE_WORD, Instruction
from lowering.program import Address, Buffer, Instr, Program, Registers, Slot, View
from lowering.registers import LANE
from lowering.target import target
from tilelayout import LayoutError, S, TileLayout, laneid

from .. import record_cases as cases
from .ptx_machine import execute

ELEMENTS = {16: "float16", 8: "uint8", 4: "uint4", 1: "uint1"}
"""A type for each width that is gathered."""

Arguments = tuple[Any, ...]


def moved(
    load: Instruction, places: list[Any], store: Instruction, to: list[Any], element: str, columns: int
) -> tuple[Any, Any, Any]:
    """32 rows of codes, and what a program that loads one register of each lane and stores it makes of them: on the
    reference machine, and as PTX text.
    """
    kind = dtype(element)
    codes = np.random.default_rng(0).integers(0, 2**kind.bits, (32, columns)).astype(np.uint64)
    word = Registers("w", "A", element, 1, "b32")
    x, y = Buffer("x", "A", element, (32, columns)), Buffer("y", "D", element, (32, columns))
    slot = (Slot(word, 0),)
    body = (
        Instr(load, (slot, *[Address(x, p) for p in places])),
        Instr(store, (*[Address(y, p) for p in to], slot)),
    )
    program = Program("move", 1, (), (), body, (x, y), (word,))
    values = from_bits(codes, kind)
    reference = to_bits(run_kernel(program, {"A": values}), kind)
    before = [to_memory(v, kind, kind.bits) for v in (values, np.zeros_like(values))]
    after = execute(ptx_module(program, target("sm_80")), before)
    return codes, reference.astype(np.uint64), after[1]


@pytest.mark.parametrize("width", GATHER)
def test_a_register_is_gathered_from_anywhere(width: int) -> None:
    """Lane t takes element (7 i + 3 t) % columns of row 31 - t as its i-th; stored as a whole."""
    per = 32 // width
    columns = 2 * per
    places = [(31 - LANE, (7 * i + 3 * LANE) % columns) for i in range(per)]
    codes, reference, text = moved(
        GATHER[width], places, STORE_WORD["b32"], [(LANE, 0)], ELEMENTS[width], columns
    )
    lane, i = np.arange(32)[:, None], np.arange(per)
    wanted = codes[31 - lane, (7 * i + 3 * lane) % columns]
    np.testing.assert_array_equal(reference[:, :per], wanted)
    held = to_memory(from_bits(wanted, dtype(ELEMENTS[width])), dtype(ELEMENTS[width]), width)
    np.testing.assert_array_equal(text.view(np.uint8)[:, :4], held.view(np.uint8))
    assert not text.view(np.uint8)[:, 4:].any()


@pytest.mark.parametrize("width", SCATTER)
def test_a_register_is_scattered_anywhere(width: int) -> None:
    per = 32 // width
    columns = 2 * per
    to = [(31 - LANE, (3 * i + LANE) % columns) for i in range(per)]
    codes, reference, text = moved(
        LOAD_WORD["b32"], [(LANE, per)], SCATTER[width], to, ELEMENTS[width], columns
    )
    lane, i = np.arange(32)[:, None], np.arange(per)
    wanted = np.zeros_like(codes)
    wanted[31 - lane, (3 * i + lane) % columns] = codes[:, per:]
    np.testing.assert_array_equal(text.view(f"u{width // 8}"), wanted)
    written = np.zeros(codes.shape, bool)
    written[31 - lane, (3 * i + lane) % columns] = True
    np.testing.assert_array_equal(reference[written], wanted[written])


@pytest.mark.parametrize("width", [8, 4, 1])
def test_whole_registers_of_narrow_types(width: int) -> None:
    per = 32 // width
    codes, reference, text = moved(
        LOAD_WORD["b32"], [(LANE, per)], STORE_WORD["b32"], [(31 - LANE, 0)], ELEMENTS[width], 2 * per
    )
    np.testing.assert_array_equal(reference[:, :per], codes[::-1, per:])
    element = dtype(ELEMENTS[width])
    held = to_memory(from_bits(codes, element), element, width)
    np.testing.assert_array_equal(text[:, : text.shape[1] // 2], held[::-1, held.shape[1] // 2 :])


# --- kernels ------------------------------------------------------------------------------------


def named(name: str) -> Any:
    return next(i for i in cases.RECORDS if i.name == name)


def test_columns_of_half_registers_are_scattered() -> None:
    """A consistent permutation of N: the two halves of a register of D are columns n and n + 4."""
    record = named("m16n8k16.f16.f16.f16.f16")
    plain = cases.call_of(record)
    d = Tile("D", (16, 8), "float16", TileLayout(S[(2, 8, 2, 4) : (2, 4 @ laneid, 1, 1 @ laneid)]))
    c = Tile("C", (16, 8), "float16", d.layout)
    b = Tile(
        "B", (16, 8), "float16", TileLayout(S[(2, 4, 2, 2, 4) : (2, 1 @ laneid, 1, 4 @ laneid, 8 @ laneid)])
    )
    lowered = cases.lowered_of(record, gemm(d, plain.A, b, c, beta=1.0))
    assert SCATTER[16] in lowered.kernel.program.instructions
    arrays = cases.whole(lowered.call, np.random.default_rng(0))
    wanted, _ = cases.answer(record, lowered.call, arrays)
    np.testing.assert_array_equal(lowered.run(**arrays).astype(np.float64), wanted)
    np.testing.assert_array_equal(run_kernel(lowered.kernel.program, arrays).astype(np.float64), wanted)
    before = [
        arrays[b.role] if b.role != "D" else np.zeros((16, 8), np.float16) for b in lowered.kernel.buffers
    ]
    np.testing.assert_array_equal(execute(lowered.ptx, before)[-1].astype(np.float64), wanted)


@pytest.mark.parametrize(
    "name", ["m16n8k16.f16", "m16n8k16.s8", "m16n8k32.s4", "m16n8k32.e4m3", "m16n8k128.b1.and"]
)
def test_c44_operands_across_memory_are_gathered_element_by_element(name: str) -> None:
    """B as (K, N): a register's elements are of neighboring rows; as (N, K) they are neighbors."""
    record = named(name)
    for across in (True, False):
        lowered = cases.lowered_of(record, cases.call_of(record, transpose_b=not across))
        (b,) = [x for x in lowered.kernel.buffers if x.role == "B"]
        loads = [
            i
            for i in lowered.kernel.loads
            if any(isinstance(x, Address) and x.buffer == b for x in i.arguments)
        ]
        gather = GATHER[record.container("B")]
        assert {i.instruction.name for i in loads} == {gather.name if across else LOAD_WORD["b32"].name}


def test_c60_packed_rows_of_odd_length_are_refused() -> None:
    record = named("m8n8k32.s4")
    plain = cases.call_of(record)
    from lowering.fragments import layout

    stack = Tile("B", (32, 8, 1), "int4", layout(record, "B"))
    lowered = cases.lowered_of(record, gemm(plain.D, plain.A, stack, plain.D))
    with pytest.raises(LayoutError, match="a row of 1 int4 is no whole number of bytes, 2 of them are one"):
        _ = lowered.kernel
    arrays = cases.whole(lowered.call, np.random.default_rng(0))
    found = lowered.run(A=arrays["A"], B=arrays["B"])  # registers have no rows
    a, b = arrays["A"].astype(int), arrays["B"][:, :, 0].astype(int)
    np.testing.assert_array_equal(found, a @ b)


def test_registers_and_buffers_say_what_they_hold() -> None:
    for arguments, words in (
        (("a", "A", "float64", 2, "b32"), "64 bits for each float64 do not cut a register of 32"),
        (("a", "A", "float6_e2m3fn", 2, "b32"), "6 bits for each float6_e2m3fn do not cut"),
        (("a", "A", "float16", 2, "b32", 8), "8 bits for each float16"),
    ):
        with pytest.raises(LayoutError, match=words):
            Registers(*arguments)  # type: ignore[arg-type]
    with pytest.raises(LayoutError, match="6 bits for each float6_e2m3fn do not cut bytes"):
        Buffer("x", "A", "float6_e2m3fn", (4, 4))
    f64, f4 = Registers("d", "D", "float64", 3, "f64"), Registers("a", "A", "float4_e2m1fn", 2, "b32", 8)
    assert (f64.bits, f64.per_register, f64.words, f64.slots) == (64, 1, 6, 3)
    assert (f4.bits, f4.per_register, f4.words, f4.slots) == (32, 4, 2, 8)
    assert View(f64, (3,), (1,), 0).word(2) == 2
    assert View(f4, (2,), (4,), 0).word(1) == 1


def test_results_that_share_bytes_are_stored_whole_or_not_at_all() -> None:
    d = Registers("d", "D", "int4", 1, "b32")
    core = Program("p", 1, (), (d,), ())
    rows = Tile("D", (32, 8), "int4", TileLayout(S[(32, 8) : (1 @ laneid, 1)]))
    assert [i.instruction for i in stage(core, {"D": rows}).stores] == [STORE_WORD["b32"]]
    columns = Tile("D", (8, 32), "int4", TileLayout(S[(8, 32) : (1, 1 @ laneid)]))
    with pytest.raises(LayoutError, match="2 int4 share a byte of memory, and no lane has all of one"):
        stage(core, {"D": columns})
