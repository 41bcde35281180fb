"""wgmma as data: which shapes and types there are, where registers' elements are, what a descriptor looks like."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.dtypes import dtype
from lowering.isa.wgmma import DESCRIPTOR_FIELDS, SWIZZLES, WGMMA_FRAGMENTS, Wgmma, columns, descriptor
from lowering.matrix_fragments import wgmma_layout
from tilelayout import LayoutError, laneid, wid_in_wg

from . import matrix_isa


def check(record: Wgmma, role: str, wanted: dict[tuple[int, int], tuple[int, int, int]]) -> None:
    row, column = record.fragment(role)  # type: ignore[arg-type]
    places = [(warp, lane, i) for warp in range(4) for lane in range(32) for i in range(row.shape[2])]
    assert {(int(row[at]), int(column[at])): at for at in places} == wanted
    assert len(wanted) == len(set(wanted.values())) == 64 * record.shape(role)[1]  # type: ignore[arg-type]
    registers = record.d_registers if role == "D" else record.a_registers
    assert row.shape[2] == registers * record.per_register(role)  # type: ignore[arg-type]


@pytest.mark.parametrize("n", columns("float16"))
def test_every_element_of_an_accumulator_is_where_ptx_has_it(n: int) -> None:
    records = [r for r in WGMMA_FRAGMENTS if r.n == n]
    check(records[0], "D", matrix_isa.wgmma_d(n))
    for record in records:  # whatever the types
        same = zip(record.fragment("D"), records[0].fragment("D"), strict=True)
        assert all(np.array_equal(x, y) for x, y in same)
        assert record.d_registers * record.per_register("D") == n // 2


def test_every_element_of_a_register_operand_is_where_ptx_has_it() -> None:
    first = {r.a: r for r in WGMMA_FRAGMENTS if r.n == 16}
    for record in first.values():
        check(record, "A", matrix_isa.wgmma_a(dtype(record.a).bits))
    assert len(first) == 8
    for record in WGMMA_FRAGMENTS:
        same = zip(record.fragment("A"), first[record.a].fragment("A"), strict=True)
        assert all(np.array_equal(x, y) for x, y in same)


@pytest.mark.parametrize(
    "name", ["m64n8k16.f32.f16", "m64n24k8.f32.tf32", "m64n256k32.f16.e4m3.e5m2", "m64n48k256.s32.b1"]
)
def test_the_layout_says_the_same(name: str) -> None:
    record = next(r for r in WGMMA_FRAGMENTS if r.name == f"wgmma.{name}")
    for role, wanted in (
        ("D", matrix_isa.wgmma_d(record.n)),
        ("A", matrix_isa.wgmma_a(dtype(record.a).bits)),
    ):
        layout = wgmma_layout(record, role)  # type: ignore[arg-type]
        table = layout.table(record.shape(role))  # type: ignore[arg-type]
        for at, (warp, lane, slot) in wanted.items():
            assert (table[wid_in_wg][at], table[laneid][at], table["m"][at]) == (warp, lane, slot)  # type: ignore[index]


def test_all_shapes_and_types_are_there() -> None:
    assert len({r.name for r in WGMMA_FRAGMENTS}) == len(WGMMA_FRAGMENTS)
    kinds = {(r.a, r.b, r.d): r.k for r in WGMMA_FRAGMENTS}
    assert kinds["float16", "float16", "float16"] == kinds["bfloat16", "bfloat16", "float32"] == 16
    assert kinds["tfloat32", "tfloat32", "float32"] == 8
    assert kinds["float8_e5m2", "float8_e4m3fn", "float16"] == kinds["uint8", "uint8", "int32"] == 32
    assert kinds["uint1", "uint1", "int32"] == 256
    assert len(kinds) == 15
    assert ("bfloat16", "bfloat16", "float16") not in kinds
    assert columns("float16") == tuple(range(8, 257, 8))
    assert columns("int8") == (8, 16, 24, *range(32, 257, 16)) == columns("uint1")
    for r in WGMMA_FRAGMENTS:
        assert r.k * dtype(r.a).bits == 256
        assert r.a_registers == 4
        assert r.d_registers == r.n // (4 if r.d == "float16" else 2)
        assert r.transposes == (dtype(r.a).bits == 16)


def test_shapes_and_roles_that_there_are_not() -> None:
    with pytest.raises(LayoutError, match="N = 40 with int8"):
        Wgmma(40, "int8", "int8", "int32")
    with pytest.raises(LayoutError, match="N = 264"):
        Wgmma(264, "float16", "float16", "float32")
    with pytest.raises(LayoutError, match="role must be A or D, got 'B'"):
        WGMMA_FRAGMENTS[0].shape("B")  # type: ignore[arg-type]


FIELDS = {"start_address": (0, 13), "leading_byte_offset": (16, 29), "stride_byte_offset": (32, 45)}
"""PTX ISA, "Matrix Descriptor Format": first and last bit; each is ``(x & 0x3FFFF) >> 4``."""


@given(
    values=st.fixed_dictionaries({name: st.integers(0, 2**14 - 1).map(lambda x: 16 * x) for name in FIELDS}),
    base=st.integers(0, 7),
    swizzle=st.sampled_from([0, 32, 64, 128]),
)
def test_a_descriptor_holds_its_fields(values: dict[str, int], base: int, swizzle: int) -> None:
    found = descriptor(**values, base_offset=base, swizzle=swizzle)
    assert 0 <= found < 2**64
    for name, (low, high) in FIELDS.items():
        assert found >> low & ((1 << (high - low + 1)) - 1) == (values[name] & 0x3FFFF) >> 4
    assert found >> 49 & 7 == base
    assert found >> 62 == {0: 0, 128: 1, 64: 2, 32: 3}[swizzle] == SWIZZLES[swizzle]
    bits = [set(range(low, low + count)) for low, count, _ in DESCRIPTOR_FIELDS.values()]
    assert sum(map(len, bits)) == len(set.union(*bits))
    assert found & ~sum(1 << bit for bit in set.union(*bits)) == 0


def test_values_that_a_field_does_not_hold_are_refused() -> None:
    with pytest.raises(LayoutError, match="start_address 8 is no multiple of 16"):
        descriptor(start_address=8)
    with pytest.raises(LayoutError, match="stride_byte_offset 262144 is no multiple of 16 from 0 to 262128"):
        descriptor(stride_byte_offset=1 << 18)
    with pytest.raises(LayoutError, match="base_offset 8"):
        descriptor(base_offset=8)
    with pytest.raises(LayoutError, match="no swizzle of 16 bytes; there are 0, 32, 64 and 128"):
        descriptor(swizzle=16)
