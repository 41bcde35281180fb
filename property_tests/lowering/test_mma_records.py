"""Every dense mma.sync: where its elements are, by the PTX ISA's formulas; counts, names, what a record must be."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace

import numpy as np
import pytest
import sympy

from lowering.dtypes import DTYPES, dtype
from lowering.fragments import layout, operand_shape
from lowering.isa import DENSE, MMA_INSTRUCTIONS, BlockScale, MmaInstruction
from lowering.isa.elements import pack, shift_within, unpack
from lowering.isa.mma import QUADPAIR, ROLES
from lowering.isa.operand_map import as_arrays, operand_map, quadpair_places, scale_map
from lowering.isa.record import Emulated
from lowering.target import TARGETS, target
from tilelayout import LayoutError, laneid

from .mma_isa import fragment, quadpair, scale_lane

BY_NAME = {r.name: r for r in DENSE}

# What the PTX ISA calls a record's place for an element of A and B, by hand: the tests don't ask the record.
PLACE = {"f64": 64, "tf32": 32, "f16": 16, "bf16": 16, "s4": 4, "u4": 4, "b1": 1}


def place_of(record: MmaInstruction) -> int:
    if record.kind in ("mxf4", "mxf4nvf4"):
        return 4
    return PLACE.get(dtype(record.a).ptx, 8)


def fragment_of(record: MmaInstruction, role: str) -> dict:
    if record in QUADPAIR:
        order = {"A": record.a_layout, "B": record.b_layout}.get(role, "")
        return quadpair(role, order, dtype(getattr(record, role.lower())).ptx)
    return fragment(role, record.shape, place_of(record))


@pytest.mark.parametrize("record", DENSE, ids=lambda r: r.name)
def test_every_operand_is_where_ptx_has_it(record: MmaInstruction) -> None:
    """C40, and the same for every other operand: map, layout and formula agree, and nothing is held twice."""
    for role in ROLES:
        wanted = fragment_of(record, role)
        shape = operand_shape(record, role)
        assert len(wanted) == np.prod(shape) == 32 * record.elements(role)
        index = record.index(role)
        table = {"m": np.zeros(shape, int)} | dict(layout(record, role).table(shape))
        for element, (lane, i) in wanted.items():
            assert tuple(int(x[lane, i]) for x in index) == element, (role, element)
            assert (table[laneid][element], table["m"][element]) == (lane, i), (role, element)


def test_c40_the_int4_operand_b() -> None:
    record = BY_NAME["m16n8k32.s4"]
    k, n = record.index("B")
    found = {(lane, i): int(n[lane, i] + 8 * k[lane, i]) for lane in range(32) for i in range(8)}
    right = {(4 * g + t, v): 64 * t + g + 8 * v for g in range(8) for t in range(4) for v in range(8)}
    published = {(4 * g + t, v): 32 * t + g + 8 * v for g in range(8) for t in range(4) for v in range(8)}
    assert found == right
    assert sum(found[x] != published[x] for x in found) == 192
    assert (len(set(found.values())), len(set(published.values()))) == (256, 160)


COUNTS = {
    "m16n8k16.f16": ((8, 4, 4), (4, 2, 4)),
    "m16n8k16.bf16": ((8, 4, 4), (4, 2, 4)),
    "m16n8k8.f16": ((4, 2, 4), (2, 1, 4)),
    "m16n8k32.s8": ((16, 8, 4), (4, 2, 4)),
    "m16n8k32.f32.e4m3.e5m2.f32": ((16, 8, 4), (4, 2, 4)),
    "m16n8k32.f16.e4m3.e5m2.f16": ((16, 8, 4), (4, 2, 2)),
    "m16n8k16.u8": ((8, 4, 4), (2, 1, 4)),
    "m16n8k64.s4": ((32, 16, 4), (4, 2, 4)),
    "m16n8k32.u4": ((16, 8, 4), (2, 1, 4)),
    "m16n8k8.tf32": ((4, 2, 4), (4, 2, 4)),
    "m16n8k4.tf32": ((2, 1, 4), (2, 1, 4)),
    "m16n8k16.f64": ((8, 4, 4), (8, 4, 4)),
    "m8n8k4.f64": ((1, 1, 2), (1, 1, 2)),
    "m8n8k16.s8": ((4, 4, 2), (1, 1, 2)),
    "m16n8k256.b1.and": ((128, 64, 4), (4, 2, 4)),
    "m16n8k16.f16.f16.f16.f16": ((8, 4, 4), (4, 2, 2)),
    "m16n8k32.f8f6f4.e2m1": ((16, 8, 4), (4, 2, 4)),
    "m16n8k64.mxf4.e2m1.2X.ue8m0": ((32, 16, 4), (4, 2, 4)),
    "m8n8k4.row.col.f16": ((4, 4, 8), (2, 2, 8)),
    "m8n8k4.row.col.f16.f16.f16.f16": ((4, 4, 8), (2, 2, 4)),
}


@pytest.mark.parametrize("name", COUNTS)
def test_c48_elements_and_registers_of_a_lane(name: str) -> None:
    record, (elements, registers) = BY_NAME[name], COUNTS[name]
    assert tuple(record.elements(role) for role in "ABD") == elements
    assert tuple(record.registers(role) for role in "ABD") == registers
    assert (record.a_registers, record.b_registers, record.d_registers) == registers
    counts = {o.name: o for o in record.instruction.operands}
    assert tuple(counts[role].count for role in "ABD") == registers
    bits = sum(o.words for o in record.instruction.operands if o.name in "AB") * 32 * 32
    used = (record.m + record.n) * record.k * record.products * place_of(record)
    assert bits == used


def test_the_records_are_the_families_that_there_are() -> None:
    """By the PTX ISA's syntax of mma: how many forms each line of it has."""
    families: dict[tuple, int] = {}
    for r in DENSE:
        families[r.kind, dtype(r.a).bits] = families.get((r.kind, dtype(r.a).bits), 0) + 1
    assert families == {
        ("", 64): 4,
        ("", 32): 2,
        ("", 16): 2 * 2
        + 2
        + 4 * 3,  # f16 in two accumulations, bf16, quadpairs in four orders and three types
        ("", 8): 3 * 4 * 2 + 2 * 4 * 2,  # integers with and without satfinite, fp8 in two accumulations
        ("", 4): 3 * 4 * 2,
        ("", 1): 3 * 2,
        ("f8f6f4", 8): 2 * 5 * 2,
        ("f8f6f4", 6): 2 * 5 * 2,
        ("f8f6f4", 4): 5 * 2,
        ("mxf8f6f4", 8): 2 * 5,
        ("mxf8f6f4", 6): 2 * 5,
        ("mxf8f6f4", 4): 5,
        ("mxf4", 4): 1,
        ("mxf4nvf4", 4): 3,
    }
    assert len(DENSE) == 173
    assert len({r.name for r in DENSE}) == len({r.mnemonic for r in DENSE}) == len(DENSE)
    assert DENSE[:4] == MMA_INSTRUCTIONS


@pytest.mark.parametrize("record", DENSE, ids=lambda r: r.name)
def test_the_text_says_what_the_record_is(record: MmaInstruction) -> None:
    i = record.instruction
    assert i.mnemonic == record.mnemonic == i.template.split(" ")[0]
    assert i.collective
    assert i.effect == "none"
    assert (i.sm, i.ptx, i.specific, i.emulated) == (record.sm, record.ptx, record.specific, record.emulated)
    assert "Matrix Fragments for mma." + record.shape in i.section
    parts = record.mnemonic.split(".")
    types = ".".join(dtype(x).ptx for x in (record.d, record.a, record.b, record.c))
    assert f".{types}" in record.mnemonic
    assert ("satfinite" in parts) == record.satfinite
    assert (f"kind::{record.kind}" in parts) == bool(record.kind)
    assert parts[3:6] == [record.shape, record.a_layout, record.b_layout]
    in_place = record.c == record.d
    assert [o.name for o in i.operands][:3] == ["D", "A", "B"]
    assert ("C" in [o.name for o in i.operands]) != in_place
    assert {o.name: o.access for o in i.operands}["D"] == ("update" if in_place else "write")
    kinds = {o.name: o.kind for o in i.operands}
    assert kinds["D"] == {"float32": "f32", "float64": "f64"}.get(record.d, "b32")
    assert kinds["A"] == kinds["B"] == ("f64" if record.a == "float64" else "b32")


def test_element_types() -> None:
    for name, kind in DTYPES.items():
        assert kind.name == name
        assert kind.numpy.itemsize == max(1, kind.bits // 8)
        if not kind.carrier:
            assert dtype(kind.numpy) is kind
    assert dtype(np.bool_) is dtype(bool) is dtype("uint1")
    assert dtype("tfloat32").numpy == dtype("float32").numpy
    assert dtype("float32") is not dtype("tfloat32")
    assert [k.name for k in DTYPES.values() if k.is_integer] == [
        "uint64", "int32", "uint32", "int16", "uint16", "int8", "uint8", "int4", "uint4", "uint1",
    ]  # fmt: skip
    with pytest.raises(LayoutError, match="unknown element type 'tf32'"):
        dtype("tf32")


# --- elements in registers ----------------------------------------------------------------------


def test_c60_small_integers_in_words() -> None:
    def words(values: list[int], element: str) -> list[str]:
        bits = np.array(values).astype(np.int64).astype(np.uint64)
        return [hex(x) for x in pack(bits, element, dtype(element).bits)]

    assert words([-2] * 4, "int8") == ["0xfefefefe"]
    assert words([1, -2, 3, -4, 5, -6, 7, -8], "int4") == ["0x87a5c3e1"]
    assert words([1, 0, 1, 1] + [0] * 28, "uint1") == ["0xd"]


def test_where_narrow_floats_sit_in_a_byte() -> None:
    assert shift_within("float4_e2m1fn", 8) == 2
    assert shift_within("float4_e2m1fn", 4) == shift_within("float6_e3m2fn", 8) == 0
    for element, container in (("float8_e4m3fn", 16), ("int4", 8), ("float16", 32)):
        with pytest.raises(LayoutError, match=f"no {element} is kept in {container} bits"):
            shift_within(element, container)


@pytest.mark.parametrize("record", DENSE, ids=lambda r: r.name)
def test_packing_and_unpacking_are_inverse(record: MmaInstruction) -> None:
    rng = np.random.default_rng(1)
    for role in ROLES:
        element = record.element(role)
        bits = rng.integers(0, 1 << min(63, dtype(element).bits), (2, 32, record.elements(role)), np.uint64)
        words = pack(bits, element, record.container(role))
        assert words.dtype == np.uint32
        wide = 2 if record.container(role) == 64 else 1
        assert words.shape == (2, 32, record.registers(role) * wide)
        assert (unpack(words, element, record.container(role)) == bits).all()


# --- scale factors ------------------------------------------------------------------------------

SCALED = [r for r in DENSE if r.scale]


def selectors(record: MmaInstruction) -> list[MmaInstruction]:
    scale = record.scale
    assert scale
    aligned = range(0, 4, scale.vector)
    chosen = [
        replace(scale, byte_a=byte, thread_a=a, byte_b=other, thread_b=b)
        for byte, other in zip(aligned, reversed(aligned), strict=True)
        for a in range(2)
        for b in range(4)
    ]
    return [replace(record, scale=s) for s in chosen]


@pytest.mark.parametrize("record", SCALED[:1] + SCALED[-4:], ids=lambda r: r.name)
def test_scale_factors_are_where_the_selectors_say(record: MmaInstruction) -> None:
    for chosen in selectors(record):
        assert chosen.scale
        for role, rows, byte, thread in (
            ("SFA", 16, chosen.scale.byte_a, chosen.scale.thread_a),
            ("SFB", 8, chosen.scale.byte_b, chosen.scale.thread_b),
        ):
            shape = operand_shape(chosen, role)  # type: ignore[arg-type]
            found = layout(chosen, role)  # type: ignore[arg-type]
            for row in range(rows):
                for block in range(chosen.scale.vector):
                    at = (row, block) if role == "SFA" else (block, row)
                    place = found.apply(*at, shape=shape)
                    assert place.get(laneid, 0) == scale_lane(role, row, thread)
                    assert place.get("m", 0) == byte + block
        assert chosen.name != record.name or chosen == record
        text = chosen.instruction.text(
            {o.name: [f"%{o.name}"] * o.count for o in chosen.instruction.operands}
        )
        s = chosen.scale
        assert text.endswith(
            f"{{%SFA}}, {{{s.byte_a}, {s.thread_a}}}, {{%SFB}}, {{{s.byte_b}, {s.thread_b}}};"
        )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"vector": 3}, "scale_vec must be 1, 2 or 4, got 3"),
        ({"type": "float16"}, "no scale factor is a 'float16'.*float8_e8m0fnu and float8_ue4m3"),
        ({"byte_a": 4}, "byte_a must be one of 0, 1, 2, 3 for scale_vec::1X, got 4"),
        ({"vector": 2, "byte_a": 1}, "byte_a must be one of 0, 2 for scale_vec::2X, got 1.*aligned"),
        ({"vector": 2, "byte_b": 3}, "byte_b must be one of 0, 2 for scale_vec::2X, got 3.*aligned"),
        ({"vector": 4, "byte_b": 2}, "byte_b must be one of 0 for scale_vec::4X, got 2.*aligned"),
        ({"thread_a": 2}, "thread_a must be one of 0, 1, got 2"),
        ({"thread_b": -1}, "thread_b must be one of 0, 1, 2, 3, got -1"),
        ({"thread_b": True}, "thread_b must be an integer, got bool"),
    ],
)
def test_unaligned_scale_factors_are_refused(fields: dict, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        BlockScale(**{"vector": 1, "type": "float8_e8m0fnu", **fields})


def test_an_instruction_without_scale_factors_has_no_layout_of_them() -> None:
    with pytest.raises(LayoutError, match="role must be A, B, C or D, got 'SFA'"):
        layout(MMA_INSTRUCTIONS[0], "SFA")
    with pytest.raises(LayoutError, match="has no scale factors"):
        MMA_INSTRUCTIONS[0].scale_index("SFA")
    with pytest.raises(LayoutError, match="scale factors have role SFA or SFB, got 'A'"):
        SCALED[0].scale_index("A")  # type: ignore[arg-type]
    with pytest.raises(LayoutError, match="role must be A, B, C or D, SFA or SFB, got 'E'"):
        layout(SCALED[0], "E")  # type: ignore[arg-type]


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"n": 16}, "n must be 8"),
        ({"k": 12}, "k must be a multiple of 8, got 12"),
        ({"m": 4}, "m must be a multiple of 8, got 4"),
        ({"k_pack": 4}, "A: float16 does not fit 8 bits"),
        ({"a": "flaot16"}, "unknown element type 'flaot16'.*float16"),
        ({"rule": "quadpair"}, "quadpairs do m8n8k4, this is m16n8k16"),
        ({"satfinite": True}, "satfinite clamps integers, D is float32"),
        ({"operation": "xor"}, "xor is for factors of one bit"),
        ({"scale": BlockScale(1, "float8_e8m0fnu")}, "scale factors go with kinds mxf8f6f4, mxf4, mxf4nvf4"),
        ({"kind": "mxf4"}, "scale factors go with kinds mxf8f6f4, mxf4, mxf4nvf4"),
        ({"kind": "f4"}, "unknown kind 'f4'"),
        ({"kind": ["mxf4"]}, r"unknown kind \['mxf4'\]"),
        ({"scale": 2}, "scale must be a BlockScale or None, got 2"),
        ({"kind": "f8f6f4"}, "kind f8f6f4 has factors of float8_e4m3fn, .*, not float16"),
        ({"m": 8_000_000}, "A of m8000000n8k16 would take 2000000 registers of a lane, which has 255"),
        ({"k": 16 * 10**30}, "registers of a lane, which has 255"),
        ({"m": 8 * sympy.Symbol("rows", integer=True, positive=True)}, r"m must be a number, got 8\*rows"),
        ({"k_pack": sympy.Symbol("pack", integer=True, positive=True)}, "k_pack must be a number, got pack"),
        ({"a_layout": "col"}, "another order than row and col"),
        ({"a_layout": "diagonal"}, "unknown a_layout 'diagonal'; there are row, col"),
        ({"rule": "warpgroup"}, "unknown rule 'warpgroup'; there are warp, quadpair"),
        ({"operation": "or"}, "unknown operation 'or'; there are xor, and"),
        ({"sm": "80"}, "sm must be an integer, as 80 for sm_80, got '80'"),
        ({"ptx": "7.0"}, r"ptx must be two integers, as \(7, 8\) for PTX 7.8, got '7.0'"),
        ({"ptx": 7.0}, "ptx must be two integers.*got 7.0"),
    ],
)
def test_a_record_that_cannot_be_is_refused(fields: dict, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        replace(MMA_INSTRUCTIONS[0], **fields)


def test_the_largest_record_has_all_registers_of_a_lane() -> None:
    """Of A, 255 words; a row block more, and of D (two words a block) half as many, are refused."""
    wide = replace(MMA_INSTRUCTIONS[0], m=8, k=8 * 255)
    assert wide.registers("A") == wide.registers("B") == 255
    for fields in ({"m": 8, "k": 8 * 256}, {"m": 8 * 128, "k": 8}):
        with pytest.raises(LayoutError, match="would take 256 registers of a lane"):
            replace(MMA_INSTRUCTIONS[0], **fields)


def test_a_kind_goes_with_its_types_and_scale_factors_alone() -> None:
    """A combination of a kind with factors, sums and scale factors is in the table of the PTX ISA, or is refused."""
    scales = [None, *[(v, t) for v in (1, 2, 4) for t in ("float8_e8m0fnu", "float8_ue4m3")]]
    bytewide = "float8_e4m3fn float8_e5m2 float6_e3m2fn float6_e2m3fn float4_e2m1fn".split()
    there = {("f8f6f4", a, d, None) for a in bytewide for d in ("float16", "float32")}
    there |= {("mxf8f6f4", a, "float32", (1, "float8_e8m0fnu")) for a in bytewide}
    four = [
        ("mxf4", 2, "e8m0fnu"),
        ("mxf4nvf4", 2, "e8m0fnu"),
        ("mxf4nvf4", 4, "e8m0fnu"),
        ("mxf4nvf4", 4, "ue4m3"),
    ]
    there |= {(kind, "float4_e2m1fn", "float32", (v, f"float8_{t}")) for kind, v, t in four}
    found = set()
    for kind, a, d, scale in itertools.product(
        ("f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4"),
        (*bytewide, "int8"),
        ("float16", "float32", "int32"),
        scales,
    ):
        made = BlockScale(*scale) if scale else None
        with contextlib.suppress(LayoutError):
            MmaInstruction(16, 8, 32, a, a, d, d, k_pack=4, sm=120, ptx=(8, 7), kind=kind, scale=made)
            found.add((kind, a, d, scale))
    assert found == there
    with pytest.raises(LayoutError) as refused:
        replace(SCALED[0], scale=BlockScale(4, "float8_ue4m3"))
    assert "kind mxf8f6f4 has scale_vec::1X of float8_e8m0fnu, not scale_vec::4X of float8_ue4m3" in str(
        refused.value
    )
    with pytest.raises(
        LayoutError, match=r"kind mxf4nvf4 has scale_vec::2X of float8_e8m0fnu or scale_vec::4X of .*not"
    ):
        replace(SCALED[-1], scale=BlockScale(1, "float8_e8m0fnu"))
    with pytest.raises(LayoutError, match="kind mxf8f6f4 has sums of float32, not float16"):
        replace(SCALED[0], c="float16")


def test_one_bit_factors_need_an_operation() -> None:
    with pytest.raises(LayoutError, match="one bit need an operation, xor or and"):
        replace(BY_NAME["m16n8k128.b1.xor"], operation="")


def test_maps_cannot_be_written() -> None:
    for index in (operand_map(16, 8, 2), as_arrays(quadpair_places("A", "col", "float16"))):
        for x in index:
            with pytest.raises(ValueError, match="read-only"):
                x[0, 0] = 1
    assert scale_map("SFB", 2, 2, 3)[2].max() == 31


# --- who has it ---------------------------------------------------------------------------------


def test_a_gate_names_who_has_it() -> None:
    f16, fp4 = MMA_INSTRUCTIONS[0].instruction, BY_NAME["m16n8k32.f8f6f4.e2m1"].instruction
    assert not f16.refusal(target("sm_80"))
    assert f16.refusal(target("sm_75")) == "needs sm_80 or newer, the target is sm_75"
    assert f16.refusal(target("sm_80"), (6, 5)) == "needs PTX 7.0 or newer, this is 6.5"
    assert not fp4.refusal(target("sm_120a"), (8, 7))
    refused = (
        "needs sm_120a, sm_120f, sm_121a, sm_121f (not plain or other architectures), the target is sm_120"
    )
    assert fp4.refusal(target("sm_120")) == refused
    assert fp4.refusal(target("sm_100a")) == refused.removesuffix("sm_120") + "sm_100a"


@pytest.mark.parametrize(
    ("name", "where", "how"),
    [
        ("m16n8k32.f32.e4m3.e5m2.f32", ("sm_90", "sm_90a", "sm_100", "sm_100a"), "f16 instructions"),
        ("m16n8k64.s4", ("sm_90", "sm_100a", "sm_120"), "8-bit instructions"),
        ("m16n8k256.b1.xor", ("sm_90", "sm_90a"), "two .and products"),
        ("m16n8k256.b1.xor", ("sm_100", "sm_121"), "8-bit instructions"),
        ("m8n8k128.b1.and", ("sm_100", "sm_121"), "8-bit instructions"),
        ("m16n8k16.f64", ("sm_100", "sm_120"), "several m8n8k4"),
        ("m8n8k4.row.col.f16", ("sm_80", "sm_90"), "without tensor cores"),
    ],
)
def test_emulated_is_said(name: str, where: tuple[str, ...], how: str) -> None:
    i = BY_NAME[name].instruction
    for t in where:
        assert how in i.emulation(target(t))
    native = target("sm_75" if name.startswith("m8n8k4.row") else "sm_90" if "f64" in name else "sm_89")
    assert i.emulation(native) == ""


def test_nothing_is_emulated_where_it_is_not_accepted() -> None:
    for r in DENSE:
        for e in r.emulated:
            assert any(e.on(t.sm) and not r.instruction.refusal(t) for t in TARGETS.values()), (r.name, e)
    assert Emulated(90, 99, "x").on(99)
    assert not Emulated(90, 99, "x").on(100)
    assert Emulated(90, None, "x").on(121)
