"""Matrix moves, wgmma's fragments and sparse metadata against CUTLASS's traits, and wgmma's against tensor-layouts."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lowering.isa.ldmatrix import LDMATRIX
from lowering.isa.matrix_move import MatrixMove
from lowering.isa.sparse import MMA_SP, SparseMma
from lowering.isa.stmatrix import STMATRIX
from lowering.isa.wgmma import WGMMA_FRAGMENTS, columns
from property_tests.oracles.cutlass_headers import header, layouts_of, table
from property_tests.oracles.interpreter import interpreter

pytestmark = [pytest.mark.slow, pytest.mark.oracle]

MOVES = {
    "copy_traits_sm75": {
        f"SM75_U{bits}x{registers * 32 // bits}_LDSM_{mode}": f"ldmatrix.m8n8.x{registers}{trans}.b16"
        for bits, mode, trans in ((32, "N", ""), (16, "T", ".trans"))
        for registers in (1, 2, 4)
    },
    "copy_traits_sm90": {
        f"SM90_U{bits}x{registers * 32 // bits}_STSM_{mode}": f"stmatrix.m8n8.x{registers}{trans}.b16"
        for bits, mode, trans in ((32, "N", ""), (16, "T", ".trans"))
        for registers in (1, 2, 4)
    },
    "copy_traits_sm100": {
        "SM100_U8x8_LDSM_T": "ldmatrix.m16n16.x1.trans.b8",
        "SM100_U8x16_LDSM_T": "ldmatrix.m16n16.x2.trans.b8",
        **{f"SM100_SU4_DU8x16_x{n}_LDSM_N": f"ldmatrix.m8n16.x{n}.b8x16.b4x16_p64" for n in (1, 2, 4)},
        **{f"SM100_SU6_DU8x16_x{n}_LDSM_N": f"ldmatrix.m8n16.x{n}.b8x16.b6x16_p32" for n in (1, 2, 4)},
        **{f"SM100_U8x{4 * n}_STSM_T": f"stmatrix.m16n8.x{n}.trans.b8" for n in (1, 2, 4)},
    },
}


def traits_of(python: Path, file: str, name: str) -> dict[str, tuple[Any, Any]]:
    """The layouts of a move; sm_90's stores name those of sm_75's loads, with source and destination exchanged."""
    text = header(python, file)
    loads = re.search(rf"struct Copy_Traits<{name}>.*?Copy_Traits<(SM75_\w+)>::DstLayout", text, re.DOTALL)
    if file != "copy_traits_sm90":
        return layouts_of(text, f"struct Copy_Traits<{name}>")
    assert loads is not None
    assert loads[1] == name.replace("SM90", "SM75").replace("STSM", "LDSM")
    found = layouts_of(header(python, "copy_traits_sm75"), f"struct Copy_Traits<{loads[1]}>")
    return {"SrcLayout": found["DstLayout"], "DstLayout": found["SrcLayout"]}


def bits_moved(traits: dict[str, tuple[Any, Any]], load: bool) -> dict[tuple[int, int], tuple[int, int]]:
    """(line's lane, bit of the line) -> (lane, bit of its registers): CuTe numbers the bits of both sides alike."""
    memory, registers = (
        table(traits[x]) for x in (("SrcLayout", "DstLayout") if load else ("DstLayout", "SrcLayout"))
    )
    where = {bit: (lane, i) for lane, row in enumerate(registers) for i, bit in enumerate(row)}
    out: dict[tuple[int, int], tuple[int, int]] = {}
    seen: set[int] = set()
    for lane, row in enumerate(memory):
        for i, bit in enumerate(row):
            if bit not in seen:  # lanes of stride 0 repeat earlier ones and serve no line
                out[lane, i] = where[bit]
                seen.add(bit)
    return out


def exchanged(name: str, place: tuple[int, int]) -> tuple[int, int]:
    """``copy_sm100.hpp`` makes d0 = {t0.xy, t1.xy}, d1 = {t0.zw, t1.zw} of the bytes of two loaded registers t0, t1."""
    if not name.startswith("SM100_U8x") or "LDSM" not in name:
        return place
    lane, bit = place
    pair, within = divmod(bit, 64)
    d, byte, rest = within // 32, within % 32 // 8, within % 8
    t, byte = byte // 2, 2 * d + byte % 2
    return lane, 64 * pair + 32 * t + 8 * byte + rest


@pytest.mark.parametrize(
    "cutlass", [(file, name) for file, names in MOVES.items() for name in names], ids=lambda x: x[1]
)
def test_a_matrix_move_is_cutlass_s(cutlass: tuple[str, str], tvm_python: Path) -> None:
    file, name = cutlass
    move: MatrixMove = next(m for m in (*LDMATRIX, *STMATRIX) if m.name == MOVES[file][name])
    traits = traits_of(tvm_python, file, name)
    theirs = {x: exchanged(name, y) for x, y in bits_moved(traits, move.operation == "ldmatrix").items()}
    matrix, line, element = move.fragment
    ours = {}
    for lane in range(32):
        for slot in range(matrix.shape[1]):
            for bit in range(move.bits):
                source = move.address_lane(int(matrix[lane, slot]), int(line[lane, slot]))
                ours[source, int(element[lane, slot]) * move.bits + bit] = (lane, slot * move.bits + bit)
    assert ours == theirs


# --- wgmma ------------------------------------------------------------------------------------------


def by_thread(record: Any, role: Any) -> list[list[int]]:
    """Thread of the warpgroup -> element -> row + 64 column."""
    row, column = record.fragment(role)
    return [(row + 64 * column)[t // 32, t % 32].tolist() for t in range(128)]


def test_wgmma_fragments_are_cutlass_s(tvm_python: Path) -> None:
    text = header(tvm_python, "mma_traits_sm90_gmma")
    of_inputs = {r.a: r for r in WGMMA_FRAGMENTS if r.a != "uint1"}
    assert len(of_inputs) == 7
    for record in ({r.n: r for r in WGMMA_FRAGMENTS} | of_inputs).values():
        layouts = layouts_of(text, "using CLayout_64xN", record.n)
        assert by_thread(record, "D") == table(layouts["CLayout_64xN"])
        if record.a != "uint1":
            assert by_thread(record, "A") == table(layouts[f"ALayout_64x{record.k}"])


_ASK = """
import json
from tensor_layouts import atoms_nv as atoms
out = {}
for name in dir(atoms):
    atom = getattr(atoms, name)
    if name.startswith("SM90_64x") and hasattr(atom, "c_layout"):
        m, n, k = atom.shape_mnk
        if "SPARSE" not in name.upper():
            out[name] = [n, k, [[atom.c_layout(t, v) for v in range(n // 2)] for t in range(128)]]
print(json.dumps(out))
"""


def test_wgmma_accumulators_are_those_of_tensor_layouts() -> None:
    python = interpreter("tensor_layouts")
    found = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=True, timeout=300)
    atoms = json.loads(found.stdout)
    assert len(atoms) >= 30
    for name, (n, _, theirs) in atoms.items():
        record = next(r for r in WGMMA_FRAGMENTS if r.n == n)
        assert by_thread(record, "D") == theirs, name
    assert {n for n, _, _ in atoms.values()} <= set(columns("float16"))


# --- mma.sp -----------------------------------------------------------------------------------------


def one(a: str, k: int) -> SparseMma:
    return next(r for r in MMA_SP if r.dense.a == a and r.dense.k == k and r.ordered)


@pytest.mark.parametrize(
    ("file", "after", "record"),
    [
        ("mma_traits_sm120_sparse", "SM120_SPARSE_16x8x64_TN<", one("float8_e4m3fn", 64)),
        ("mma_traits_sm120_sparse", "SM120_SPARSE_16x8x128_TN_VS<", one("float4_e2m1fn", 128)),
        ("mma_traits_sm90_gmma_sparse", "ELayout_64x64", one("int8", 64)),
        ("mma_traits_sm90_gmma_sparse", "ELayout_64x32", one("float16", 32)),
        ("mma_traits_sm90_gmma_sparse", "ELayout_64x16", one("tfloat32", 16)),
    ],
    ids=lambda x: getattr(x, "name", x),
)
def test_metadata_lies_where_cutlass_has_it(
    file: str, after: str, record: SparseMma, tvm_python: Path
) -> None:
    """A word's bits go along CuTe's value mode: every column of a chunk in turn.  Of wgmma's warps, the first."""
    text = header(tvm_python, file)
    warpgroup = after.startswith("ELayout")
    start = (
        f"using {after}"
        if warpgroup
        else f"struct MMA_Traits<SM120::{'BLOCKSCALED::' * ('VS' in after)}SPARSE::{after}"
    )
    layout = layouts_of(text, start)[after if warpgroup else "ELayout"]
    rows = 64 if warpgroup else 16
    sparsity = record.sparsity
    held = set()
    for lane, values in enumerate(table(layout)[:32]):
        selector = lane % 4 // sparsity.lanes
        for v, position in enumerate(values):
            row, column = position % rows, position // rows
            lane_and_code = sparsity.place(row, column // sparsity.group, selector)
            assert lane_and_code == (lane, v // sparsity.group)
            held.add((row, column))
    assert held == {(row, column) for row in range(16) for column in range(record.dense.k)}


@pytest.mark.parametrize(
    "record", [one("float8_e4m3fn", 64), one("float4_e2m1fn", 128)], ids=lambda r: r.name
)
def test_kept_elements_lie_where_cutlass_has_their_columns(record: SparseMma, tvm_python: Path) -> None:
    name = {64: "SPARSE::SM120_SPARSE_16x8x64_TN<", 128: "BLOCKSCALED::SPARSE::SM120_SPARSE_16x8x128_TN_VS<"}
    text = header(tvm_python, "mma_traits_sm120_sparse")
    layouts = layouts_of(text, f"struct MMA_Traits<SM120::{name[record.dense.k]}")
    row, column = record.index("A")
    each = record.dense.k_pack
    for lane, values in enumerate(
        table(layouts["ALayout"])
    ):  # of A written out: twice the columns of a register
        for v, position in enumerate(values):
            slot = v // 2
            assert row[lane, slot] == position % 16
            register = slot // each * each
            first = 2 * int(column[lane, register])
            assert first <= position // 16 < first + 2 * each
    row, column = record.index("B")[::-1]
    for lane, values in enumerate(table(layouts["BLayout"])):
        assert (row + 8 * column)[lane].tolist() == values
