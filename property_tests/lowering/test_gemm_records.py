"""``gemm`` on every dense record of the catalogue, on the reference machine: results, registers, whole kernels."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowering import (
    DispatchError,
    Lowered,
    PluginError,
    Tile,
    gemm,
    lower,
    register_instruction,
    temporary_variants,
)
from lowering.backends.reference import run_kernel
from lowering.isa import DENSE, MMA_INSTRUCTIONS, MmaInstruction
from lowering.isa.registered import added
from tilelayout import S, TileLayout, laneid

from .. import record_cases as cases
from .mma_machine import Parsed

ORIENTATIONS = [(False, False), (False, True), (True, False), (True, True)]


def multiplications(lowered: Lowered) -> list[Any]:
    return [s for s in lowered.program.steps if s.instruction.collective]


def check(record: MmaInstruction, lowered: Lowered, seed: int = 0) -> None:
    """Every bit on small integers, from registers and from memory."""
    call = lowered.call
    arrays = cases.whole(call, np.random.default_rng(seed))
    wanted, _ = cases.answer(record, call, arrays)
    arrays = cases.given(call, arrays)
    for found in (lowered.run(**arrays), run_kernel(lowered.kernel.program, arrays)):
        assert found.dtype == call.tiles["D"].element.numpy
        np.testing.assert_array_equal(found.astype(np.float64), wanted)


def test_every_dense_record_but_three_kinds_is_tried() -> None:
    left_out = [i for i in DENSE if i not in cases.RECORDS]
    assert all(i.scale or i.rule == "quadpair" for i in left_out)
    assert len(cases.RECORDS) + len(left_out) == len(DENSE)
    assert {i.m for i in cases.RECORDS} == {8, 16}


@pytest.mark.parametrize("record", cases.RECORDS, ids=lambda i: i.name)
def test_one_instruction_in_every_orientation(record: MmaInstruction) -> None:
    for number, (a, b) in enumerate(ORIENTATIONS):
        call = cases.call_of(record, transpose_a=a, transpose_b=b, beta=float(a == b))
        lowered = cases.lowered_of(record, call)
        assert [s.instruction.name for s in multiplications(lowered)] == [record.name]
        assert lowered.variant == f"mma.m{record.m}n8k*"
        check(record, lowered, number)


@pytest.mark.parametrize("record", cases.RECORDS, ids=lambda i: i.name)
def test_any_values(record: MmaInstruction) -> None:
    """Integers wrap or clamp; f32 and f16 are the exact sum rounded once, which float64 comes close to."""
    call = cases.call_of(record)
    arrays = cases.any_values(call, np.random.default_rng(1))
    found = cases.lowered_of(record, call).run(**arrays)
    wanted, magnitude = cases.answer(record, call, arrays)
    if record.d == "int32":
        fits = np.clip(wanted, -(2**31), 2**31 - 1) if record.satfinite else wanted.astype(np.int32)
        np.testing.assert_array_equal(found, fits)
        return
    half_places = {"float64": record.k * 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11}[record.d]
    assert (np.abs(found.astype(np.float64) - wanted) <= magnitude * (half_places + 2.0**-40)).all()
    assert (found.astype(np.float64) != wanted).any()


@pytest.mark.parametrize("record", cases.RECORDS, ids=lambda i: i.name)
def test_registers_are_those_of_the_ptx_formulas(record: MmaInstruction) -> None:
    """Element by element: the lane that the tile's layout names, and the bits of the register that the mma takes."""
    tiling = (3, 2, 3) if record.m == 8 else (2, 2, 3)
    lowered = cases.lowered_of(record, cases.call_of(record, tiling))
    parsed = Parsed(record.instruction.text({o.name: ["%r"] * o.count for o in record.instruction.operands}))
    steps = iter(multiplications(lowered))
    for m in range(tiling[0]):
        for n in range(tiling[1]):
            for k in range(tiling[2]):
                arguments = next(steps).arguments
                corner = {"D": (m, n), "A": (m, k), "B": (k, n)}
                for role, registers in zip("DAB", arguments, strict=True):
                    check_operand(record, lowered, parsed, role, registers, corner[role])


def check_operand(
    record: MmaInstruction, lowered: Lowered, parsed: Parsed, role: Any, registers: Any, at: tuple[int, int]
) -> None:
    tile = lowered.call.tiles[role]
    shape = record.operand_shape(role)
    table = tile.layout.table(tile.shape)
    group = registers[0][0]
    words = [w for _, i in registers for w in range(i * group.bits // 32, (i + 1) * group.bits // 32)]
    assert (len(registers), group.container) == (record.registers(role), record.container(role))
    for element, (lane, i) in parsed.fragment(role).items():
        place = tuple(t * n + x for t, n, x in zip(at, shape, element, strict=True))
        slot = int(table["m"][place])  # type: ignore[call-overload]
        assert int(table["laneid"][place]) == lane  # type: ignore[call-overload]
        word, low, width = parsed.bits_at(role, i)
        inner = 2 if (group.container, width) == (8, 4) else 0
        assert divmod(slot * group.container, 32) == (words[word], low - inner)


SMALL = [i for i in cases.RECORDS if i.k <= 64]


@settings(max_examples=60)
@given(
    record=st.sampled_from(SMALL),
    tiling=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    warps=st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2), (4, 2)]),
    turned=st.sampled_from(ORIENTATIONS),
    beta=st.sampled_from([0.0, 1.0]),
    in_place=st.booleans(),
)
def test_records_times_tilings_times_warps(
    record: MmaInstruction,
    tiling: tuple[int, int, int],
    warps: tuple[int, int],
    turned: tuple[bool, bool],
    beta: float,
    in_place: bool,
) -> None:
    call = cases.call_of(
        record, tiling, warps, transpose_a=turned[0], transpose_b=turned[1], beta=beta, in_place=in_place
    )
    lowered = cases.lowered_of(record, call, warps=warps)
    used = {s.instruction.name: s.instruction for s in multiplications(lowered)}
    (name,) = used  # one of the same types, perhaps of more rows or terms
    chosen = next(i for i in cases.RECORDS if i.name == name)
    assert chosen.signature == record.signature
    assert (chosen.m, chosen.k) >= (record.m, record.k)
    check(record, lowered)


@pytest.mark.parametrize("record", cases.FAMILIES, ids=lambda i: i.name)
def test_a_region_leaves_the_rest_of_its_tile(record: MmaInstruction) -> None:
    """D and C are the right half of a tile; its left half comes out as it went in."""
    wide = cases.call_of(record, (1, 2, 1))
    a, b = wide.A, wide.B[:, 8:]
    d, c = wide.D[:, 8:], wide.C[:, 8:]
    lowered = cases.lowered_of(record, type(wide)(d, a, b, c, False, False, 1.0, 1.0))
    arrays = cases.whole(wide, np.random.default_rng(3))
    wanted, _ = cases.answer(record, wide, arrays)
    before = cases.whole(wide, np.random.default_rng(4))["C"]
    found = lowered.run(**arrays, D=before).astype(np.float64)
    np.testing.assert_array_equal(found[:, 8:], wanted[:, 8:])
    np.testing.assert_array_equal(found[:, :8], before.astype(np.float64)[:, :8])


# --- records that are not of the table ----------------------------------------------------------


MADE_UP = (
    MmaInstruction(16, 8, 32, "bfloat16", "float16", "float32", "float32", k_pack=2, sm=75, ptx=(6, 3)),
    replace(MMA_INSTRUCTIONS[0], k=32),  # the table has its types with another K
    replace(MMA_INSTRUCTIONS[0], m=8),
)


def names_of(call: Any, **config: Any) -> list[str]:
    lowered = lower(call, target="sm_90", scope="warp", config=config)
    return [s.instruction.name for s in multiplications(lowered)]


@pytest.mark.parametrize("record", MADE_UP, ids=lambda i: i.name)
@pytest.mark.parametrize("how", ["registered", "config"])
def test_a_made_up_instruction_takes_one_record_and_no_other_edit(record: MmaInstruction, how: str) -> None:
    call = cases.call_of(record, (1, 1, 3), transpose_b=True)
    with temporary_variants():
        if how == "registered":
            assert register_instruction(record) is record
        config = {"records": [record]} if how == "config" else {}
        lowered = lower(call, target="sm_90", scope="warp", config=config)
        assert [s.instruction.name for s in multiplications(lowered)] == [record.name] * 3
        assert record.mnemonic in lowered.ptx
        check(record, lowered)
    with contextlib.suppress(DispatchError):  # undone: there is none of its types and rows, or another one
        assert record.name not in names_of(call)


def test_the_records_of_a_call_come_before_larger_ones() -> None:
    eight = next(i for i in DENSE if i.name == "m16n8k8.f16")
    call = cases.call_of(MADE_UP[1])
    assert names_of(call) == ["m16n8k16.f16"] * 2
    assert names_of(call, records=[eight]) == ["m16n8k8.f16"] * 4
    assert names_of(call, records=(eight, MADE_UP[1])) == ["m16n8k32.f16"]
    assert names_of(call, records=[]) == names_of(call)


def test_a_name_is_registered_once() -> None:
    with temporary_variants():
        register_instruction(MADE_UP[1])
        where = f"by {__name__} and by {__name__}"
        with pytest.raises(PluginError, match=f"'m16n8k32.f16' is registered twice: {where}"):
            register_instruction(MADE_UP[1])
        with pytest.raises(
            PluginError, match=r"registered twice: by lowering\.isa\.DENSE and by property_tests"
        ):
            register_instruction(replace(MMA_INSTRUCTIONS[0], sm=90))
        with pytest.raises(TypeError, match="takes an MmaInstruction, got 5"):
            register_instruction(5)  # type: ignore[arg-type]
        assert added() == (MADE_UP[1],)
    assert added() == ()


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (5, "must be a list of MmaInstruction, got 5"),
        ([MADE_UP[1], "m16n8k8.f16"], "must be a list of MmaInstruction, got"),
        (
            [replace(MMA_INSTRUCTIONS[0], sm=90)],
            "another record has the name m16n8k16.f16; yours has sm 90, not 80",
        ),
    ],
)
def test_what_is_no_list_of_records_is_refused(records: Any, words: str) -> None:
    with pytest.raises(DispatchError) as caught:
        names_of(cases.call_of(MADE_UP[1]), records=records)
    assert f"config records: {words}".replace("records: must", "records must") in " ".join(
        str(caught.value).split()
    )


def test_a_register_that_holds_a_part_of_what_is_kept_is_refused() -> None:
    record = next(i for i in cases.RECORDS if i.name == "m16n8k16.f16.f16.f16.f16")
    plain = cases.call_of(record)
    for stride, refused in ((4, False), (5, True)):  # of 16 x 8 matrices, four slots of a lane each
        layout = TileLayout(S[(2, 2, 8, 4, 2) : (stride, 2, 4 @ laneid, 1 @ laneid, 1)])
        stack = Tile("D", (2, 16, 8), "float16", layout)
        call = gemm(stack[0], plain.A, plain.B, stack[0])
        if refused:
            with pytest.raises(DispatchError, match=r"only a\s+part of register 2, of 2 elements"):
                cases.lowered_of(record, call)
        else:
            cases.lowered_of(record, call)
