"""mma.sp: the product by the records' meaning is the dense product; registers are filled by the PTX ISA's words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowering.dtypes import dtype
from lowering.isa.mma import DENSE
from lowering.isa.sparse import MMA_SP, SparseMma
from lowering.matrix_fragments import sparse_layout
from tilelayout import LayoutError, laneid

from . import matrix_isa

RECORDS = {r.name: r for r in MMA_SP}
Matrix = Any


def bits_of(values: Matrix, element: str) -> Matrix:
    """The bits of small integers as elements: uint32."""
    if element.startswith(("int", "uint")):
        return values.astype(np.int64).astype(np.uint32) & np.uint32((1 << dtype(element).bits) - 1)
    carrier = np.float32 if element == "tfloat32" else getattr(ml_dtypes, element, None) or np.dtype(element)
    held = values.astype(np.float32).astype(carrier)
    assert (held.astype(np.float32) == values).all(), "the test's own values must be exact"
    return held.view(f"u{held.dtype.itemsize}").astype(np.uint32)


def put(words: Matrix, lane: int, register: int, place: int, container: int, bits: int, element: str) -> None:
    """One element into its container; those of 4 bits in a byte sit in its middle."""
    middle = 2 if dtype(element).bits == 4 and container == 8 else 0
    words[lane, register] |= np.uint32(int(bits) << (container * place + middle))


def a_words(record: SparseMma, matrix: Matrix, values: Matrix) -> Matrix:
    """Registers of A: of each chunk of columns that a register covers, the kept elements, in order."""
    container = 32 // record.dense.k_pack
    bits = bits_of(values, record.dense.a)
    out = np.zeros((32, record.registers("A")), np.uint32)
    for lane, register, columns in matrix_isa.sparse_a(record.dense.k, container):
        row = matrix_isa.sparse_a_row(lane, register)
        for place, column in enumerate(range(columns.start // 2, columns.stop // 2)):
            put(out, lane, register, place, container, bits[row, column], record.dense.a)
    assert matrix.shape == (16, record.dense.k)
    return out


def b_words(record: SparseMma, matrix: Matrix) -> Matrix:
    """Registers of B, (K, N): thread T has column T / 4; registers go down K."""
    each = record.dense.k_pack
    bits = bits_of(matrix, record.dense.b)
    out = np.zeros((32, record.registers("B")), np.uint32)
    for lane in range(32):
        for register in range(out.shape[1]):
            for place in range(each):
                k = 4 * each * register + each * (lane % 4) + place
                put(out, lane, register, place, 32 // each, bits[k, lane >> 2], record.dense.b)
    return out


def d_words(record: SparseMma, matrix: Matrix) -> Matrix:
    """Registers of C and D: c0 and c1 in row T / 4, c2 and c3 in row T / 4 + 8."""
    bits = bits_of(matrix, record.dense.d)
    half = dtype(record.dense.d).bits == 16
    out = np.zeros((32, 2 if half else 4), np.uint32)
    for lane in range(32):
        for i in range(4):
            value = bits[(lane >> 2) + 8 * (i // 2), 2 * (lane % 4) + i % 2]
            put(
                out,
                lane,
                i // 2 if half else i,
                i % 2 if half else 0,
                16 if half else 32,
                value,
                record.dense.d,
            )
    return out


def sparse_matrix(record: SparseMma, rng: Any, low: int, high: int) -> Matrix:
    """Integers from low to high, thinned out as the record wants it."""
    group = record.sparsity.group
    matrix = rng.integers(low, high + 1, (16, record.sparsity.groups, group))
    for row in matrix:
        for chunk in row:
            if group == 2:
                chunk[rng.integers(2)] = 0
            else:
                for unit in rng.permutation(4)[:2]:
                    chunk[unit * group // 4 : (unit + 1) * group // 4] = 0
    return matrix.reshape(16, record.dense.k)


def scales(record: SparseMma, rng: Any) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Factors (16, vector) and (8, vector), powers of two, and their registers.

    PTX ISA, "Block Scaling for mma.sync", selectors {0, 0}: thread 4g has row g of A's, 4g + 1 row g + 8, thread 4g
    column g of B's; factors along K in bytes from 0 on.
    """
    scale = record.dense.scale
    assert scale is not None
    exponents = [rng.integers(-2, 3, (rows, scale.vector)) for rows in (16, 8)]
    coded = [(e + 127 if scale.type == "float8_e8m0fnu" else (e + 7) << 3) for e in exponents]
    words = [rng.integers(0, 2**32, (32, 1), dtype=np.uint32) for _ in range(2)]
    for rows, code, word, stride in ((16, coded[0], words[0], 1), (8, coded[1], words[1], 0)):
        for row in range(rows):
            lane = 4 * (row % 8) + stride * (row // 8)
            held = [int(x) for x in word[lane].view(np.uint8)]
            held[: scale.vector] = [int(x) for x in code[row]]
            word[lane, 0] = int.from_bytes(bytes(held), "little")
    return 2.0 ** exponents[0], 2.0 ** exponents[1], words[0], words[1]


def run(record: SparseMma, seed: int) -> None:
    """The sparse product of random small integers is the dense one."""
    rng = np.random.default_rng(seed)
    low_a, high_a = (0, 3) if record.dense.a.startswith("uint") else (-3, 3)
    low_b, high_b = (0, 3) if record.dense.b.startswith("uint") else (-3, 3)
    a = sparse_matrix(record, rng, low_a, high_a)
    b = rng.integers(low_b, high_b + 1, (record.dense.k, 8))
    c = rng.integers(-20, 21, (16, 8))
    values, words = record.compress(a)
    assert (record.decompress(values, words) == a).all()
    given_values = {
        "A": a_words(record, a, values)[None],
        "B": b_words(record, b)[None],
        "D": d_words(record, c)[None],
        "e": words[None, :, None],
    }
    # Lanes that do not contribute may hold anything.
    idle = words == 0
    given_values["e"][0, idle, 0] = rng.integers(0, 2**32, int(idle.sum()), dtype=np.uint32)
    wanted = a.astype(float) @ b + c
    if record.dense.scale:
        sfa, sfb, given_values["SFA"], given_values["SFB"] = scales(record, rng)
        given_values["SFA"], given_values["SFB"] = given_values["SFA"][None], given_values["SFB"][None]
        block = record.dense.k // record.dense.scale.vector
        factors_a, factors_b = sfa.repeat(block, axis=1), sfb.T.repeat(block, axis=0)
        wanted = (a * factors_a) @ (b * factors_b) + c
    found = record.instruction.meaning(given_values)["D"]
    assert (found[0] == d_words(record, wanted)).all(), record.name


@pytest.mark.parametrize("record", MMA_SP, ids=lambda r: r.name)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_sparse_product_is_the_dense_one(record: SparseMma, seed: int) -> None:
    run(record, seed)


@pytest.mark.parametrize(
    "name",
    [
        "sp.m16n8k16.f16",
        "sp.ordered.m16n8k32.bf16",
        "sp.m16n8k8.tf32",
        "sp.ordered.m16n8k32.s8",
        "sp.m16n8k64.s4",
    ],
)
def test_every_selector(name: str) -> None:
    record = RECORDS[name]
    for selector in range(record.sparsity.selectors):
        chosen = replace(record, selector=selector)
        run(chosen, selector)
        assert chosen.instruction.template.endswith(f"{{e}}, {selector:#x};")
        assert chosen.name == name + (f".selector{selector}" if selector else "")
    with pytest.raises(LayoutError, match="sparsity selector"):
        replace(record, selector=record.sparsity.selectors)


@pytest.mark.parametrize(
    "record", {r.dense.shape + r.dense.a: r for r in MMA_SP}.values(), ids=lambda r: r.name
)
def test_the_operands_lie_where_ptx_has_them(record: SparseMma) -> None:
    """The stored A by registers and columns, and its layout; bijections both."""
    container = 32 // record.dense.k_pack
    row, column = record.index("A")
    each = record.dense.k_pack
    assert (
        len({(int(r), int(c)) for r, c in zip(row.ravel(), column.ravel(), strict=True)})
        == row.size
        == 8 * record.dense.k
    )
    layout = sparse_layout(record, "A")
    for lane, register, columns in matrix_isa.sparse_a(record.dense.k, container):
        for place in range(each):
            slot = register * each + place
            at = (matrix_isa.sparse_a_row(lane, register), columns.start // 2 + place)
            assert (row[lane, slot], column[lane, slot]) == at
            held = layout.apply(*at, shape=(16, record.dense.k // 2))
            assert (held.get(laneid, 0), held.get("m", 0)) == (lane, slot)
    for role in "BCD":
        index, shape = record.index(role), record.operand_shape(role)  # type: ignore[arg-type]
        table = sparse_layout(record, role).table(shape)  # type: ignore[arg-type]
        lanes, slots = np.indices(index[0].shape)
        assert (table[laneid][index] == lanes).all()  # type: ignore[index]
        assert (table["m"][index] == slots).all()  # type: ignore[index]


def test_integers_wrap_or_are_clamped() -> None:
    for name, wanted in (("sp.m16n8k32.s8", -(2**31) + 7), ("sp.m16n8k32.s8.satfinite", 2**31 - 1)):
        record = RECORDS[name]
        a = np.zeros((16, 32), np.int64)
        a[:, 1], b = 2, np.full((32, 8), 4)
        values, words = record.compress(a)
        c = np.full((16, 8), 2**31 - 1)
        operands = {
            "A": a_words(record, a, values)[None],
            "B": b_words(record, b)[None],
            "e": words[None, :, None],
        }
        found = record.multiply({**operands, "D": d_words(record, c)[None]})["D"]
        assert set(found.view(np.int32).ravel().tolist()) == {wanted}


def test_metadata_that_breaks_the_pattern_is_refused_by_row_and_group() -> None:
    record = RECORDS["sp.ordered.m16n8k32.s8"]
    a = np.zeros((16, 32), np.int64)
    values, words = record.compress(a)
    operands = {"A": a_words(record, a, values)[None], "B": b_words(record, np.zeros((32, 8)))[None]}
    operands["D"] = d_words(record, np.zeros((16, 8)))[None]
    words[4 * 3 + 1] = 0x44454444  # row 11, chunk 4: both indices are 1
    with pytest.raises(LayoutError, match=r"row 11, group 4 \(columns 16 to 19\): code 0b0101"):
        record.multiply({**operands, "e": words[None, :, None]})
    words[4 * 3 + 1] = 0x44414444  # indices 1, 0: falling
    with pytest.raises(LayoutError, match=r"row 11, group 4 .*the lower one first"):
        record.multiply({**operands, "e": words[None, :, None]})
    plain = RECORDS["sp.m16n8k32.s8"]
    assert (plain.multiply({**operands, "e": words[None, :, None]})["D"] == 0).all()


def test_no_model_of_numerics_is_made_up() -> None:
    record = RECORDS["sp.m16n8k32.f16"]
    zeros = {o.name: np.zeros((1, 32, o.count), np.uint32) for o in record.instruction.operands}
    zeros["e"][:] = 0x44444444
    assert (record.multiply({**zeros, "numerics": "exact"})["D"] == 0).all()
    assert (record.multiply({**zeros, "numerics": "sm_90"})["D"] == 0).all()
    with pytest.raises(LayoutError, match=r"K = 16 on sm_80's mma\.sp .*sm_90 \(K = 8\), sm_90 \(K = 16\)"):
        record.multiply({**zeros, "numerics": "sm_80"})
    whole = RECORDS["sp.m16n8k32.s8"]
    zeros = {o.name: np.zeros((1, 32, o.count), np.uint32) for o in whole.instruction.operands}
    zeros["e"][:] = 0x44444444
    assert (whole.multiply({**zeros, "numerics": "sm_90"})["D"] == 0).all()


@pytest.mark.parametrize("name", ["sp.m16n8k32.f16", "sp.ordered.m16n8k16.tf32", "sp.m16n8k64.e5m2"])
def test_what_meets_no_kept_element_takes_no_part(name: str) -> None:
    """B is infinite wherever row 5 keeps nothing; other rows keep some of that."""
    record = RECORDS[name]
    rng = np.random.default_rng(5)
    a = sparse_matrix(record, rng, 1, 3)
    values, words = record.compress(a)
    kept = record.sparsity.columns_of(record.sparsity.codes_of(words))
    meets = np.isin(np.arange(record.dense.k), kept[5])
    b = np.where(meets[:, None], rng.integers(-2, 3, (record.dense.k, 8)), np.inf)
    operands = {
        "A": a_words(record, a, values)[None],
        "B": b_words(record, b)[None],
        "D": d_words(record, np.zeros((16, 8)))[None],
        "e": words[None, :, None],
    }
    finite = np.where(np.isfinite(b), b, 0)
    for numerics in ("exact", "sm_90"):
        found = record.multiply({**operands, "numerics": numerics})["D"][0]
        numbers = found.view(np.float32).reshape(8, 4, 2, 2).transpose(2, 0, 1, 3).reshape(16, 8)
        assert (numbers[5] == a[5] @ finite).all()
        others = [row for row in range(16) if not np.isin(kept[row], kept[5]).all()]
        assert others
        assert not np.isfinite(numbers[others]).any()


def test_the_table_is_whole() -> None:
    assert len(RECORDS) == len(MMA_SP) == 167
    both = [r for r in MMA_SP if not r.dense.kind]
    assert len([r for r in both if r.ordered]) == len([r for r in both if not r.ordered]) == 44
    assert all(r.ordered for r in MMA_SP if r.dense.kind)
    counts = {
        kind: sum(r.dense.kind == kind for r in MMA_SP) for kind in ("f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4")
    }
    assert counts == {"f8f6f4": 50, "mxf8f6f4": 25, "mxf4": 1, "mxf4nvf4": 3}
    for record in MMA_SP:
        assert record.registers("A") * 2 == record.dense.registers("A")
        assert record.registers("A") in (2, 4)
        assert record.registers("B") == record.registers("A")
        assert record.dense.k * 32 // record.dense.k_pack in (256, 512)


def test_a_product_that_has_no_sparse_twin_is_refused() -> None:
    eight_rows = next(r for r in DENSE if r.m == 8 and r.a == "int8")
    with pytest.raises(LayoutError, match="no sparse m8n8k16"):
        SparseMma(eight_rows, True, 80, (8, 5))
    one_bit = next(r for r in DENSE if r.a == "uint1" and r.m == 16)
    with pytest.raises(LayoutError, match="no sparse m16n8k256"):
        SparseMma(one_bit, True, 80, (8, 5))
