"""The assembly matrix of the dense mma.sync: every record for every target, what passes and what does not.

A record's gate (architecture, specific targets, PTX version) and the assembler must agree in both directions.
"""

from __future__ import annotations

import re
import sys

import pytest

from lowering.backends.assemble import AssemblerError, assemble
from lowering.isa import DENSE, MMA_INSTRUCTIONS
from lowering.target import TARGETS, target

from .instruction_ptx import check_version, module_of, refusal_of
from .test_mma_records import SCALED, selectors

pytestmark = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)

EVERY = [r.instruction for r in DENSE]
GATES = {(i.sm, i.ptx, i.specific, i.mnemonic.split(".")[3]): i for i in EVERY}
"""One instruction for each gate and shape."""


@pytest.mark.parametrize("name", TARGETS)
def test_what_a_target_has_assembles(name: str) -> None:
    where = target(name)
    accepted = [i for i in EVERY if not i.refusal(where)]
    assert accepted
    for at in range(0, len(accepted), 64):  # a kernel of all of them would take the assembler long
        assemble(module_of(accepted[at : at + 64], where), where, allow_spills=True)


@pytest.mark.parametrize("name", TARGETS)
def test_what_a_target_lacks_does_not_assemble(name: str) -> None:
    """All in one module, of which the assembler names every line that it refuses."""
    where = target(name)
    lacking = [i for i in EVERY if i.refusal(where)]
    if not lacking:
        assert where.specific
        assert where.sm >= 120
        return
    text = module_of(lacking, where)
    with pytest.raises(AssemblerError) as refused:
        assemble(text, where)
    lines = text.splitlines()
    said = {lines[int(x) - 1].split(" ")[0] for x in re.findall(r"line (\d+); error", refused.value.log)}
    assert said == {i.mnemonic for i in lacking}


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_each_alone(name: str) -> None:
    where = target(name)
    for i in EVERY:
        assert bool(refusal_of(i, where)) == bool(i.refusal(where)), i.name


@pytest.mark.parametrize("gate", GATES, ids=str)
def test_an_older_version_of_ptx_does_not_have_it(gate: tuple) -> None:
    check_version(GATES[gate])


@pytest.mark.parametrize("record", [*SCALED[:1], *SCALED[-4:]], ids=lambda r: r.name)
def test_every_selector_of_scale_factors_assembles(record) -> None:
    """And no other: what `BlockScale` refuses, the assembler does."""
    where = target("sm_120a")
    every = [r.instruction for r in selectors(record)]
    assemble(module_of(every, where), where, allow_spills=True)
    good = module_of([record.instruction], where)
    assert good.count("{0, 0}") == 2
    vector = record.scale.vector
    for byte in range(5):
        for thread in range(5):
            for times in (1, 2):  # the first is A's, the second B's
                text = good.replace("{0, 0}", "#", times - 1).replace("{0, 0}", f"{{{byte}, {thread}}}", 1)
                fine = byte in range(0, 4, vector) and thread < (2 if times == 1 else 4)
                try:
                    assemble(text.replace("#", "{0, 0}"), where, allow_spills=True)
                except AssemblerError:
                    assert not fine, (byte, thread, times)
                else:
                    assert fine, (byte, thread, times)


# --- C47, C65: what there is not, in the assembler's words ------------------------------------------

NO_SUCH = {
    "int8 has no k8": ("m16n8k16.s8", "m16n8k16", "m16n8k8", "(?i)illegal matrix shape"),
    "f16 has no row.row": ("m16n8k16.f16", ".row.col.", ".row.row.", "(?i)illegal .*layout"),
    "bf16 is not added up in f16": (
        "m16n8k16.f16.f16.f16.f16",
        ".f16.f16.f16.f16",
        ".f16.bf16.bf16.f16",
        "types",
    ),
    "no mixture of 8 and 4 bits": ("m16n8k32.s8", ".s8.s8.", ".s8.s4.", "types"),
    "no mixture of f16 and bf16": ("m16n8k16.f16", ".f16.f16.f32", ".f16.bf16.f32", "types"),
    "f16 adds up as it came": ("m16n8k16.f16", ".f16.f16.f32", ".f16.f16.f16", "Arguments mismatch"),
    "bits do not clamp": ("m16n8k128.b1.and", ".row.col.s32", ".row.col.satfinite.s32", ".*"),
    "fp8 has no k8": ("m16n8k16.e4m3", "m16n8k16", "m16n8k8", ".*"),
}


@pytest.mark.parametrize("case", NO_SUCH)
def test_c47_forms_that_do_not_exist(case: str) -> None:
    name, old, new, said = NO_SUCH[case]
    i = next(r for r in DENSE if r.name == name).instruction
    where = target("sm_120a")
    good = module_of([i], where)
    assert old in good
    assemble(good, where)
    with pytest.raises(AssemblerError, match=said):
        assemble(good.replace(old, new), where)


def test_c47_fp8_with_k16_is_for_ptx_8_7() -> None:
    for name in ("m16n8k16.e4m3", "m16n8k16.f32.e4m3.e5m2.f32", "m16n8k32.f16.e4m3.e4m3.f16"):
        i = next(r for r in DENSE if r.name == name).instruction
        assert i.ptx == (8, 7)
        assert refusal_of(i, target("sm_89"), (8, 4))
        assert refusal_of(i, target("sm_89"), (8, 7)) == ""
    whole = next(r for r in DENSE if r.name == "m16n8k32.e4m3").instruction
    assert refusal_of(whole, target("sm_89"), (8, 4)) == ""


FIRST = {
    "m16n8k8.f16": 75,
    "m16n8k16.f16": 80,
    "m16n8k16.bf16": 80,
    "m16n8k8.bf16": 80,
    "m16n8k8.tf32": 80,
    "m16n8k32.s8": 80,
    "m16n8k32.s4": 80,
    "m16n8k64.s4": 80,
    "m16n8k32.e4m3": 89,
    "m8n8k4.f64": 80,
    "m16n8k16.f64": 90,
}


@pytest.mark.parametrize("name", FIRST)
def test_c65_the_first_architecture(name: str) -> None:
    i = next(r for r in DENSE if r.name == name).instruction
    assert i.sm == FIRST[name]
    for where in TARGETS.values():
        assert (i.refusal(where) == "") == (where.sm >= FIRST[name])
    if i.sm > 75:
        before = [t for t in TARGETS.values() if t.sm < i.sm][-1]
        assert i.refusal(before) == f"needs sm_{i.sm} or newer, the target is {before}"
        assert re.search(rf"requires \.target sm_{i.sm} or higher", refusal_of(i, before))


def test_four_records_stand_in_front() -> None:
    assert [i.name for i in EVERY[:4]] == [r.name for r in MMA_INSTRUCTIONS]
