"""The operands of every dense mma.sync against tensor-layouts' atoms and CUTLASS's traits, all that both have."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lowering.fragments import layout, operand_shape
from lowering.isa import DENSE, MmaInstruction
from lowering.isa.catalogue import named
from property_tests.oracles.cutlass_headers import header, layouts_of, table
from property_tests.oracles.interpreter import interpreter
from tilelayout import laneid

pytestmark = [pytest.mark.slow, pytest.mark.oracle]

ROWS = {"A": "m", "B": "n", "C": "m"}

# Both state B of m16n8k32 with 4-bit factors with a stride of 32 where the PTX formula has 64: see C40.
NO_BIJECTION = {("SM80_16x8x32_S32S4S4S32_TN", "B")}

# CUTLASS's text nests shape and stride of A differently here: ((4, 8), (32, 2)) : ((512, 1), ((16, 8),)).
UNEQUAL_NESTING = {("SM80_16x8x128_S32U1U1S32_TN_XORPOPC", "A")}

# Atoms of tensor-layouts whose text is no instruction of one warp: complex products, and K of 64 for 8-bit floats.
NOT_OURS = re.compile(r"C64|SPARSE|SM120_16x8x64_.*E4M3")

_ASK = """
import json
from tensor_layouts import atoms_nv as atoms

def whole(layout, threads, values):
    return [[layout(t, v) for v in range(values)] for t in range(threads)]

out = {}
for name in dir(atoms):
    atom = getattr(atoms, name)
    if not (isinstance(atom, atoms.MMAAtom) and atom.ptx.startswith("mma.sync")):
        continue
    m, n, k = atom.shape_mnk
    threads = 8 if atom.thr_id is not None else 32
    out[name] = {
        "ptx": atom.ptx,
        "lanes": [atom.thr_id(t) for t in range(8)] if atom.thr_id is not None else list(range(32)),
        "A": whole(atom.a_layout, threads, m * k // threads),
        "B": whole(atom.b_layout, threads, n * k // threads),
        "C": whole(atom.c_layout, threads, m * n // threads),
    }
print(json.dumps(out))
"""


@cache
def atoms() -> dict[str, Any]:
    python = interpreter("tensor_layouts")
    found = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=True, timeout=300)
    return json.loads(found.stdout)  # type: ignore[no-any-return]


def ours(record: MmaInstruction, role: Any, lanes: list[int]) -> list[list[int]]:
    """Lane -> slot -> row + rows * column, as CuTe counts: B by N and K; of quadpairs, the first."""
    shape = operand_shape(record, role)
    where = layout(record, role).table(shape)
    places: dict[tuple[int, int], int] = {}
    rows, columns = shape[-2:]
    for row in range(rows):
        for column in range(columns):
            at = (0,) * (len(shape) - 2) + (row, column)
            slot = int(where["m"][at]) if "m" in where else 0
            flat = column + columns * row if role == "B" else row + rows * column
            places[int(where[laneid][at]), slot] = flat
    return [[places[lane, slot] for slot in range(record.elements(role))] for lane in lanes]


def test_every_operand_that_tensor_layouts_has() -> None:
    compared, apart = 0, set()
    for name, atom in atoms().items():
        if NOT_OURS.search(name):
            continue
        record = named(atom["ptx"], DENSE)
        assert isinstance(record, MmaInstruction)
        for role in "ABC":
            if atom[role] == ours(record, role, atom["lanes"]):
                compared += 1
            else:
                apart.add((name, role))
    assert apart == NO_BIJECTION
    assert compared >= 90


def test_what_is_set_aside_is_no_bijection() -> None:
    for name, role in NO_BIJECTION:
        values = [x for row in atoms()[name][role] for x in row]
        assert len(set(values)) < len(values)


# --- CUTLASS ----------------------------------------------------------------------------------------

_ELEMENTS = {
    "F64": "float64", "F32": "float32", "TF32": "tfloat32", "F16": "float16", "BF16": "bfloat16", "S32": "int32",
    "S8": "int8", "U8": "uint8", "S4": "int4", "U4": "uint4", "U1": "uint1",
}  # fmt: skip
_NAME = re.compile(
    r"SM\d+_(\d+)x(\d+)x(\d+)_(F64|F32|F16|S32)(T?B?F\d+|[SU]\d+)(T?B?F\d+|[SU]\d+)(F64|F32|F16|S32)_TN\w*"
)


def of_cutlass(name: str) -> MmaInstruction | None:
    """The record of that name of an instruction in CUTLASS, or None if it is none of ours."""
    found = _NAME.fullmatch(name)
    if not found:
        return None
    m, n, k = map(int, found.groups()[:3])
    d, a, b, c = (_ELEMENTS[x] for x in found.groups()[3:])
    same = [r for r in DENSE if (r.m, r.n, r.k, *r.signature) == (m, n, k, a, b, c, d) and r.rule == "warp"]
    return same[0] if same else None


@pytest.mark.parametrize(
    ("file", "least"), [("mma_traits_sm75", 2), ("mma_traits_sm80", 10), ("mma_traits_sm90", 3)]
)
def test_operands_are_those_of_cutlass_s_traits(file: str, least: int, tvm_python: Path) -> None:
    """Of each structure that states layouts itself (others refer to one of these)."""
    text = header(tvm_python, file)
    shared = layouts_of(text, "namespace")  # SM80_8x8_Row and its like, by name
    compared, apart = 0, set()
    for name in re.findall(r"struct MMA_Traits<(\w+)>\s*\{", text):
        record = of_cutlass(name)
        if record is None:
            continue
        body = text[text.index(f"struct MMA_Traits<{name}>") :]
        body = body[: body.index("\n};")]
        stated = layouts_of(text, f"struct MMA_Traits<{name}>")
        for role in "ABC":
            alias = re.search(rf"using {role}Layout\s*=\s*(\w+);", body)
            theirs = shared[alias[1]] if alias else stated[f"{role}Layout"]
            if (name, role) in UNEQUAL_NESTING:
                with pytest.raises(TypeError):
                    table(theirs)
                continue
            if table(theirs) == ours(record, role, list(range(32))):  # type: ignore[arg-type]
                compared += 1
            else:
                apart.add((name, role))
    assert apart == {x for x in NO_BIJECTION if file == "mma_traits_sm80"}
    assert compared >= 3 * least - 1


@pytest.mark.parametrize(
    ("after", "name"),
    [
        ("struct MMA_Traits<SM120::BLOCKSCALED::SM120_16x8x32_TN_VS<", "m16n8k32.mxf8f6f4.e4m3.1X.ue8m0"),
        ("struct MMA_Traits<SM120::BLOCKSCALED::SM120_16x8x64_TN_VS<", "m16n8k64.mxf4.e2m1.2X.ue8m0"),
    ],
)
def test_sm_120_s_operands_and_scale_factors_are_cutlass_s(after: str, name: str, tvm_python: Path) -> None:
    """A lane's scale factors there: the lanes of a quad that serve no row repeat those that do."""
    text = header(tvm_python, "mma_traits_sm120")
    record = next(r for r in DENSE if r.name == name)
    found = layouts_of(text, after)
    for role in "AB" if "ALayout" in found else "":  # k32 refers to sm_80's layouts of 8-bit factors
        assert table(found[f"{role}Layout"]) == ours(record, role, list(range(32)))  # type: ignore[arg-type]
    if record.scale is None:
        return
    each = record.k // record.scale.vector
    for role, rows in (("SFA", 16), ("SFB", 8)):
        theirs = table(found[f"{role}Layout"])
        row, block, lane, byte = record.scale_index(role)  # type: ignore[arg-type]
        for r, b, t, i in zip(*(x.ravel().tolist() for x in (row, block, lane, byte)), strict=True):
            of_block = theirs[t][i * each : (i + 1) * each]
            assert {x % rows for x in of_block} == {r}
            assert {x // rows // each for x in of_block} == {b}
