"""``mma``: the register tables are the operand maps of the records, in every format and both ways."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from lowering.cli.operands import Operand, operands, record_named
from lowering.isa.catalogue import CATALOGUE, FAMILIES
from lowering.isa.elements import unpack
from lowering.isa.matrix_move import MatrixMove
from lowering.isa.mma import DENSE, MmaInstruction
from lowering.isa.sparse import MMA_SP
from lowering.isa.wgmma import WGMMA_FRAGMENTS
from property_tests.cli.shell import answer, run
from tilelayout import TileLayout

SOME = [
    "m16n8k16.f16", "m16n8k32.s8", "m16n8k64.s4", "m16n8k4.tf32", "m8n8k4.f64", "m16n8k256.b1.xor",
    "m8n8k4.row.row.f16", "sp.m16n8k32.f16", "wgmma.m64n16k16.f32.f16", "ldmatrix.m8n8.x4.trans.b16",
    "movmatrix.m8n8.trans.b16",
]  # fmt: skip


PACKED = list({(r.a, r.container("A")): r for r in DENSE if r.k_pack > 1 and r.rule == "warp"}.values())
"""A record for each type of A and the width of its place in a register."""


def rows(name: str, role: str) -> list[dict[str, int]]:
    text = answer("mma", name, "--operand", role, "--format", "csv")
    return [{k: int(v) for k, v in row.items()} for row in csv.DictReader(io.StringIO(text))]


def held_by_map(record: Any, role: str) -> dict[tuple[int, ...], tuple[int, int]]:
    """Element -> (lane, slot), read off the record's own operand map, which no layout enters."""
    index = record.index(role)
    return {
        tuple(int(x[lane, slot]) for x in index): (lane, slot)
        for lane in range(index[0].shape[0])
        for slot in range(index[0].shape[1])
    }


@pytest.mark.parametrize("record", [r for r in DENSE if r.name in SOME], ids=lambda r: r.name)
@pytest.mark.parametrize("role", ["A", "B", "C", "D"])
def test_the_table_is_the_operand_map(record: MmaInstruction, role: str) -> None:
    container = record.container(role)  # type: ignore[arg-type]
    width = max(32, container)
    found = {}
    for row in rows(record.name, role):
        fields = dict(row)
        lane, register, low, high = (fields.pop(k) for k in ("lane", "register", "low_bit", "high_bit"))
        assert 0 <= low <= high < width
        found[tuple(fields.values())] = (lane, (register * width + low) // container)
    if record.rule == "warp":
        assert found == held_by_map(record, role)
    assert len(found) == record.elements(role) * 32  # type: ignore[arg-type]


@pytest.mark.parametrize("record", PACKED, ids=lambda r: r.name)
def test_the_bits_are_those_that_the_machine_unpacks(record: MmaInstruction) -> None:
    """A single element set in the bits of the table is what the reference machine finds there, whole."""
    import numpy as np

    operand = operands(record)["A"]
    by_slot = {(h.lane, h.register, h.low): h for h in operand.table()}
    words = np.zeros(operand.registers, np.uint32)
    for (lane, register, low), h in by_slot.items():
        if lane:
            continue
        words[:] = 0
        words[register] = ((1 << (h.high - h.low + 1)) - 1) << low
        found = unpack(words, record.a, record.container("A"))
        hit = np.flatnonzero(found)
        assert hit.tolist() == [register * (32 // record.container("A")) + low // record.container("A")]
        assert int(found[hit[0]]) == (1 << operand.bits) - 1


@pytest.mark.parametrize("name", SOME)
def test_every_format_has_the_same_table(name: str) -> None:
    for role, operand in operands(record_named(name)).items():
        as_csv = rows(name, role)
        assert json.loads(answer("mma", name, "--operand", role, "--format", "json")) == as_csv
        assert len(as_csv) == len({tuple(row.values()) for row in as_csv})
        markdown = answer("mma", name, "--operand", role, "--format", "markdown").splitlines()
        cells = re.findall(rf"{role}\[([\d,]+)\]", "\n".join(markdown))
        assert sorted(cells) == sorted(",".join(str(row[d]) for d in operand.dimensions) for row in as_csv)
        assert len({line.count("|") for line in markdown}) == 1
        assert answer("mma", name, "--operand", role).startswith(f"{role}: ")
        text = answer("mma", name, "--operand", role, "--format", "layout").strip()
        assert TileLayout.parse(text) == operand.layout


@pytest.mark.parametrize("name", SOME)
def test_an_element_and_its_place_are_each_others_answer(name: str) -> None:
    for role, operand in operands(record_named(name)).items():
        for held in operand.table()[:: max(1, len(operand.table()) // 3)]:
            at = answer("mma", name, "--at", role, ",".join(map(str, held.element)))
            said = f"lane {held.lane}, register {held.register}, "
            assert said in at
            assert f" {held.bits}\n" in at
            back = answer(
                "mma", name, "--operand", role, "--lane", str(held.lane), "--register", str(held.register)
            )
            assert at.splitlines()[0] in back.splitlines()


def test_the_manuals_figure_by_hand() -> None:
    """A of m16n8k16: row = g for registers 0 and 2, else g + 8; column = 2t + i for 0 and 1, else 2t + i + 8."""
    for row in rows("m16n8k16.f16", "A"):
        g, t = divmod(row["lane"], 4)
        i, register = row["low_bit"] // 16, row["register"]
        assert row["M"] == g + 8 * (register in (1, 3))
        assert row["K"] == 2 * t + i + 8 * (register in (2, 3))
    assert answer("mma", "m16n8k16.f16", "--at", "a", "5,9") == "A[5, 9]: lane 20, register 2, bits 16-31\n"


def test_nothing_there_is_exit_code_1() -> None:
    """The scale factors of A are in lanes 4g and 4g + 1 alone."""
    record = next(r for r in DENSE if r.scale is not None)
    operand = operands(record)["SFA"]
    empty = next(lane for lane in range(32) if lane not in {h.lane for h in operand.table()})
    text = answer("mma", record.name, "--operand", "SFA", "--lane", str(empty), code=1)
    assert text == "no element of SFA is there\n"


@pytest.mark.parametrize("record", [*DENSE, *MMA_SP][::9], ids=lambda r: r.name)
def test_registers_are_the_records(record: Any) -> None:
    text = answer("mma", record.name)
    assert record.mnemonic in text
    assert record.section in text
    for role in ("A", "B", "D"):
        operand = operands(record)[role]
        assert operand.registers == record.registers(role)
    by_mnemonic = {}
    for one in CATALOGUE:
        by_mnemonic.setdefault(one.instruction.mnemonic, one)
    if by_mnemonic[record.mnemonic] is record:
        assert answer("mma", record.mnemonic) == text


def test_the_list_is_the_catalogue() -> None:
    listed = json.loads(answer("mma", "--format", "json"))
    assert [row["name"] for row in listed] == [r.name for r in CATALOGUE]
    for family, records in FAMILIES.items():
        text = answer("mma", "--family", family, "--format", "csv")
        assert [line.split(",")[0] for line in text.splitlines()[1:]] == [r.name for r in records]
    assert len(answer("mma", "--family", "wgmma").splitlines()) == 1 + len(WGMMA_FRAGMENTS)


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_120a"])
def test_a_target_lists_what_it_has(target: str) -> None:
    from lowering.target import TARGETS

    listed = {row["name"] for row in json.loads(answer("mma", "--target", target, "--format", "json"))}
    assert listed == {r.name for r in CATALOGUE if not r.instruction.refusal(TARGETS[target])}


@pytest.mark.parametrize("family", [*FAMILIES, "wgmma"])
def test_the_first_target_is_one_that_lists_it(family: str) -> None:
    from lowering.target import TARGETS

    first = {
        row["name"]: row["first target"]
        for row in json.loads(answer("mma", "--family", family, "--format", "json"))
    }
    missing = set(first)
    for target in TARGETS:  # in their order: none before has it
        command = ("mma", "--family", family, "--target", target, "--format", "json")
        ran = run(*command)
        has = {row["name"] for row in json.loads(ran.out)} if ran.code == 0 else set()
        assert {name for name in missing if first[name] == target} == has & missing
        missing -= has
    assert missing == set()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        (
            "wgmma.m64n8k16",
            "there are wgmma.m64n8k16.f16.f16, wgmma.m64n8k16.f32.f16, wgmma.m64n8k16.f32.bf16",
        ),
        ("wgmma.m64n8k16.f32.fp16", "did you mean 'wgmma.m64n8k16.f32.f16'?"),
        ("m16n8k23.s8", "did you mean 'm16n8k32.s8'?"),
    ],
)
def test_an_unknown_instruction_is_refused_with_the_nearest_of_all(name: str, near: str) -> None:
    ran = run("mma", name)
    assert ran.code == 2
    assert near in ran.err


def test_a_target_without_a_family_is_a_no() -> None:
    assert answer("mma", "--family", "wgmma", "--target", "sm_80", code=1) == "sm_80 has no wgmma\n"


def test_types_may_be_written_as_ptx_does() -> None:
    assert answer("mma", "--a", "bf16") == answer("mma", "--a", "bfloat16")
    found = json.loads(answer("mma", "--a", "s8", "--b", "u8", "--format", "json"))
    assert {row["operands"].split()[0] for row in found} == {"int8"}


def test_pictures_are_drawn() -> None:
    whole = answer("mma", "m16n8k16.f16", "--svg", "-")
    one = answer("mma", "m16n8k16.f16", "--operand", "A", "--svg", "-")
    move = answer("mma", "ldmatrix.m8n8.x4.b16", "--svg", "-")
    for text in (whole, one, move):
        assert ElementTree.fromstring(text).tag.endswith("svg")
    assert whole.rstrip("\n") == record_named("m16n8k16.f16").draw().svg().rstrip("\n")
    ran = run("mma", "sp.m16n8k32.f16", "--svg", "-")
    assert ran.code == 2
    assert "--operand A or B" in ran.err


def test_every_record_can_be_asked() -> None:
    """One of each form of record; the operands of the others come from the same functions."""
    seen: set[Any] = set()
    for record in (*CATALOGUE, *WGMMA_FRAGMENTS):
        key = (type(record), getattr(record, "container", lambda _: 0)("A"), getattr(record, "rule", ""))
        if isinstance(record, MatrixMove):
            key = (record.operation, record.shape, record.transposed, record.source_bits)
        if key in seen:
            continue
        seen.add(key)
        for operand in operands(record).values():
            assert isinstance(operand, Operand)
            table = operand.table()
            assert {h.element for h in table} == {tuple(h) for h in _all(operand.shape)}, (
                f"{record.name} {operand.role}"
            )
            assert max(h.register for h in table) < operand.registers
    assert len(seen) >= 10


def _all(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    import itertools

    return list(itertools.product(*[range(n) for n in shape]))
