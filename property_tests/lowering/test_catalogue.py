"""Looking instructions up, refusals that say what there is, the page, and a made-up instruction from one record."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from lowering import catalogue as text
from lowering.fragments import layout, operand_shape, partition
from lowering.isa import DENSE, MmaInstruction
from lowering.isa.catalogue import CATALOGUE, FAMILIES, find, named
from lowering.isa.mma import ROLES
from lowering.isa.wgmma import WGMMA_FRAGMENTS
from lowering.target import TARGETS, target
from tilelayout import LayoutError

from .mma_machine import Parsed, get, number, put, sums

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "instructions.md"


def names(**wanted: object) -> list[str]:
    return [i.name for i in find(**wanted)]  # type: ignore[arg-type]


# --- what is found --------------------------------------------------------------------------------


def test_every_record_is_found_by_name_and_by_mnemonic() -> None:
    for record in CATALOGUE:
        assert named(record.name) is record
    for record in DENSE:
        assert named(record.mnemonic) is record
        same = find(
            record.a, record.b, record.c, record.d, m=record.m, k=record.k, kind=record.kind,
            satfinite=record.satfinite, operation=record.operation,
        )  # fmt: skip
        assert record in same
        assert {(i.signature, i.shape, i.kind) for i in same} == {
            (record.signature, record.shape, record.kind)
        }
    assert len({r.name for r in CATALOGUE}) == len(CATALOGUE) == sum(map(len, FAMILIES.values()))


def test_what_is_not_said_may_be_anything() -> None:
    assert set(names(a="float16", b="float16")) > {
        "m16n8k16.f16",
        "m16n8k16.f16.f16.f16.f16",
        "m8n8k4.row.row.f16",
    }
    assert names(a="float16", b="float16", c="float32", m=16) == ["m16n8k16.f16", "m16n8k8.f16"]
    assert names(a="int8", b="uint8", satfinite=True) == [
        f"{s}.s32.s8.u8.s32.satfinite" for s in ("m16n8k32", "m16n8k16", "m8n8k16")
    ]
    assert names(a="uint1", b="uint1", operation="and", target="sm_80") == [
        f"{s}.b1.and" for s in ("m16n8k256", "m16n8k128", "m8n8k128")
    ]
    assert names(a=np.int8, b=np.dtype("int8"), k=32, satfinite=False) == ["m16n8k32.s8"]


def test_c47_f16_with_k_8_is_its_own_instruction() -> None:
    (found,) = find("float16", "float16", "float32", k=8, target="sm_75")
    assert (found.name, found.elements("A"), found.elements("B")) == ("m16n8k8.f16", 4, 2)
    wanted = {
        "float16": [4, 8, 16], "bfloat16": [8, 16], "tfloat32": [4, 8], "int8": [16, 32], "int4": [32, 64],
        "float64": [4, 8, 16], "uint1": [128, 256],
    }  # fmt: skip
    assert {a: sorted({i.k for i in find(a, a)}) for a in wanted} == wanted
    assert sorted({i.k for i in find("float8_e4m3fn", "float8_e5m2", kind="", ptx=(8, 4))}) == [32]
    assert sorted({i.k for i in find("float8_e4m3fn", "float8_e5m2", kind="", ptx=(8, 7))}) == [16, 32]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"a": "flaot16", "b": "float16"}, "unknown element type 'flaot16'.*did you mean 'float16'"),
        ({"a": "float16", "b": "bfloat16"}, r"a float16 b bfloat16.*float16 @ float16.*bfloat16 @ bfloat16"),
        ({"a": "int8", "b": "int4"}, r"a int8 b int4.*there are int32 = int8 @ int8 \+ int32.*uint4 @ int4"),
        ({"a": "float32", "b": "float32"}, r"declare tfloat32, .*low 13 bits.*float32 = tfloat32 @ tfloat32"),
        ({"a": "int16", "b": "int16"}, "there are factors of float16, bfloat16, tfloat32, float64, int8"),
        (
            {"a": "bfloat16", "b": "bfloat16", "c": "float16"},
            r"no instruction has a bfloat16 b bfloat16 c float16 d float16.*"
            r"there are float32 = bfloat16 @ bfloat16 \+ float32\)$",
        ),
        ({"a": "float16", "b": "float16", "c": "float32", "d": "float16"}, "float32 = float16 @ float16"),
        ({"a": "int8", "b": "int8", "k": 8}, r"int8 @ int8 \+ int32 has k = 8.*there are k = 16, 32\)"),
        ({"a": "float8_e4m3fn", "b": "float8_e4m3fn", "k": 8}, "has k = 8.*there are k = 16, 32"),
        ({"a": "int4", "b": "uint4", "k": 16}, "has k = 16.*there are k = 32, 64"),
        ({"a": "float16", "b": "float16", "m": 32}, "has m = 32.*there are m = 8, 16"),
        ({"a": "uint1", "b": "uint1", "operation": "or"}, "has operation = or.*there are operation = and, xor"),
        ({"a": "float16", "b": "float16", "kind": "f8f6f4"}, "has kind = f8f6f4.*there are kind = none"),
        (
            {"a": "bfloat16", "b": "bfloat16", "target": "sm_75"},
            "sm_75 does not have m16n8k16.bf16, m16n8k8.bf16.*sm_80 is the first that has",
        ),
        ({"a": "float16", "b": "float16", "k": 16, "target": "sm_75"}, "sm_80 is the first"),
        ({"a": "float8_e5m2", "b": "float8_e5m2", "target": "sm_86"}, "sm_89 is the first"),
        ({"a": "float4_e2m1fn", "b": "float6_e3m2fn", "target": "sm_120"}, "sm_120a is the first"),
        (
            {"a": "float8_e4m3fn", "b": "float8_e4m3fn", "c": "float16", "kind": "", "ptx": (8, 4)},
            "PTX 8.4 does not have .*PTX 8.7 is the first that has",
        ),
    ],
)  # fmt: skip
def test_a_search_that_finds_nothing_says_what_there_is(wanted: dict, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        find(**wanted)


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown target 'sm_99': nearest known are sm_90a and sm_100"):
        find("float16", "float16", target="sm_99")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("m16n8k16.fp16", "'m16n8k16.f16'"),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f23",
            "'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32'",
        ),
        ("ldmatrix.m8n8.x5.b16", "ldmatrix.m8n8.x"),
        ("m16n8k16", "there are m16n8k16.f16, m16n8k16.bf16"),
        ("nothing like it", "listed by `tilelayout mma` and in docs/reference/instructions.md"),
    ],
)
def test_an_unknown_mnemonic_is_refused_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(LayoutError, match=f"unknown instruction {re.escape(repr(name))}.*{re.escape(near)}"):
        named(name)


@pytest.mark.parametrize("name", [None, 3, [], ("m16n8k16.f16",)])
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(LayoutError, match=re.escape(f"unknown instruction {name!r}")):
        named(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("ptx", ["7.8", 7.8, 7, (7,), (7, "8"), (True, 0)])
def test_what_is_no_ptx_version_is_refused(ptx: object) -> None:
    with pytest.raises(LayoutError, match=f"ptx must be two integers.*got {re.escape(repr(ptx))}"):
        find("float16", "float16", ptx=ptx)  # type: ignore[arg-type]


# --- the page -------------------------------------------------------------------------------------


def test_the_committed_page_is_what_the_records_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == text.page(), "run `make catalogue`"


def test_the_page_has_every_record_and_every_target() -> None:
    """Read back: each row's marks are the record's gate."""
    rows, columns = {}, []
    for line in text.page().splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")] if line.startswith("|") else []
        if cells[:1] == ["instruction"]:
            columns = [[f"sm_{t}" for t in heading.split()] for heading in cells[5:]]
            assert [t for group in columns for t in group] == list(TARGETS)
        elif cells[:1] == ["D, A and B"]:
            break  # the fragments of wgmma, which are no instructions
        elif len(cells) > 5 and cells[0].startswith("`"):
            rows[cells[0].strip("`")] = {
                t: mark for group, mark in zip(columns, cells[5:], strict=True) for t in group
            }
    assert set(rows) == {r.name for r in CATALOGUE}
    for record in CATALOGUE:
        i = record.instruction
        for name, mark in rows[record.name].items():
            where = target(name)
            assert mark == ("-" if i.refusal(where) else "e" if i.emulation(where) else "+"), (
                record.name,
                name,
            )


def test_the_page_has_the_fragments_of_wgmma() -> None:
    """Read back: types, K, N and registers of each row are those of the records, of every N."""
    rows = [
        line.strip("| ").split(" | ") for line in text.wgmma_section().splitlines() if line.startswith("| `")
    ]
    found = []
    for types, k, columns, d, a, elements, order in rows:
        for run in columns.split(", "):
            first, _, last, _, step = run.split()
            for n in range(int(first), int(last) + 1, int(step)):
                found.append(f"wgmma.m64n{n}k{k}.{types.strip('`')}")
                record = next(r for r in WGMMA_FRAGMENTS if r.name == found[-1])
                assert record.d_registers * int(d.removeprefix("N/")) == n
                assert record.a_registers == int(a)
                assert (order != "K-major") == record.transposes
                counts = [int(x) for x in re.findall(r"\d+(?= x)", elements)][-1], n // 2
                assert counts == tuple([record.fragment(role)[0].shape[2] for role in "AD"])
    assert sorted(found) == sorted(r.name for r in WGMMA_FRAGMENTS)


def test_the_command_prints_and_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert text.main([]) == 0
    assert capsys.readouterr().out == text.page() + "\n"
    assert text.main([str(tmp_path / "new" / "page.md")]) == 0
    assert (tmp_path / "new" / "page.md").read_text(encoding="utf-8") == text.page()
    assert "python -m lowering.catalogue [PAGE]" in (text.__doc__ or "")
    assert "lowering.catalogue docs/reference/instructions.md" in (PAGE.parents[2] / "Makefile").read_text()


# --- a made-up instruction ------------------------------------------------------------------------

MADE_UP = MmaInstruction(
    32, 8, 64, "uint8", "int8", "int32", "int32", k_pack=4, sm=121, ptx=(9, 1), satfinite=True
)
"""There is no such thing.  This record is all that is needed for it."""


def test_a_made_up_instruction_takes_one_record() -> None:
    records = (*DENSE, MADE_UP)
    assert find("uint8", "int8", m=32, records=records) == (MADE_UP,)
    assert named("m32n8k64.s32.u8.s8.s32.satfinite", records) is MADE_UP
    with pytest.raises(LayoutError, match=r"sm_120a does not have m32n8k64.*sm_121 is the first that has"):
        find("uint8", "int8", k=64, target="sm_120a", records=records)
    page = text.page({"mma.sync": records})
    (row,) = [line for line in page.splitlines() if line.startswith("| `m32n8k64")]
    assert "mma.sync.aligned.m32n8k64.row.col.satfinite.s32.u8.s8.s32" in row
    assert "D 8 b32 rw, A 16 b32, B 4 b32" in row
    assert "A 64 x 8, B 16 x 8, D 8 x 32" in row
    i = MADE_UP.instruction
    words = {o.name: [f"%{o.name}{j}" for j in range(o.count)] for o in i.operands}
    assert i.text(words).startswith("mma.sync.aligned.m32n8k64.row.col.satfinite.s32.u8.s8.s32 {%D0, %D1,")
    for role in ROLES:
        shape = operand_shape(MADE_UP, role)
        found = layout(MADE_UP, role)
        places = {
            (p.get("laneid", 0), p.get("m", 0))
            for r in range(shape[0])
            for c in range(shape[1])
            for p in [found.apply(r, c, shape=shape)]
        }
        assert places == {(lane, slot) for lane in range(32) for slot in range(MADE_UP.elements(role))}
    assert partition(MADE_UP, 64, 16, 128, warps=(2, 1)).tiles == (1, 2, 2)


def test_the_made_up_instruction_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the one rule, which is written here once more for its shape."""
    from . import mma_isa

    def row(g: int, i: int, per: int) -> int:
        return g + 8 * (i // per % 4)

    monkeypatch.setitem(
        mma_isa.A, ("m32n8k64", 8), (64, lambda g, t, i: (row(g, i, 4), 16 * (i // 16) + 4 * t + i % 4))
    )
    monkeypatch.setitem(mma_isa.B, ("m32n8k64", 8), (16, lambda g, t, i: (16 * (i // 4) + 4 * t + i % 4, g)))
    monkeypatch.setitem(mma_isa.C, 32, (8, lambda g, t, i: (row(g, i, 2), 2 * t + i % 2)))
    i = MADE_UP.instruction
    p = Parsed(i.text({o.name: [f"%{o.name}{j}" for j in range(o.count)] for o in i.operands}))
    rng = np.random.default_rng(0)
    words = {o.name: rng.integers(0, 2**32, (32, o.words), np.uint32) for o in i.operands}
    put(
        p,
        "D",
        {x: 2**31 - 1 for x in p.fragment("D") if x[0] < 9} | {x: 5 for x in p.fragment("D") if x[0] >= 9},
        words["D"],
    )
    found = get(p, "D", i.meaning({n: x[None] for n, x in words.items()})["D"][0])
    wanted = {x: min(max(int(s), -(2**31)), 2**31 - 1) for x, s in sums(p, words).items()}
    assert {x: number(c, "s32") for x, c in found.items()} == wanted
    assert 2**31 - 1 in wanted.values()
