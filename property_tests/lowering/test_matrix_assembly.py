"""Every matrix move, wgmma and mma.sp through the assembler, for every target: what passes and what does not.

A record's gate (architecture, specific targets, PTX version) and the assembler must agree in both directions.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from lowering.backends.assemble import AssemblerError, assemble
from lowering.dtypes import dtype
from lowering.isa.ldmatrix import LDMATRIX
from lowering.isa.movmatrix import MOVMATRIX
from lowering.isa.record import Instruction, gate_refusal
from lowering.isa.sparse import MMA_SP
from lowering.isa.stmatrix import STMATRIX
from lowering.isa.wgmma import WGMMA_FRAGMENTS, Wgmma
from lowering.target import TARGETS, Target, target

from .instruction_ptx import check_version, module_of, refusal_of

pytestmark = pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)

MOVES = [r.instruction for r in (*LDMATRIX, *STMATRIX, *MOVMATRIX)]
SPARSE = [r.instruction for r in MMA_SP]
GATES = {(i.sm, i.ptx, i.specific): i for i in (*SPARSE, *MOVES)}


def assembles(ptx: str, where: Target) -> bool:
    try:
        assemble(ptx, where, allow_spills=True)
    except AssemblerError:
        return False
    return True


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("records", [MOVES, SPARSE], ids=["moves", "mma.sp"])
def test_what_a_target_has_assembles(name: str, records: list[Instruction]) -> None:
    where = target(name)
    accepted = [i for i in records if not i.refusal(where)]
    if accepted:
        assemble(module_of(accepted, where), where, allow_spills=True)
    else:
        assert (name, records) == ("sm_75", SPARSE)


def refused_alone(instruction: Instruction, where: Target) -> None:
    message = instruction.refusal(where)
    assert message
    assert where.name in message
    assert refusal_of(instruction, where), f"{instruction.name} assembles for {where}"


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("gate", GATES, ids=str)
def test_what_a_target_lacks_does_not_assemble(name: str, gate: Any) -> None:
    where = target(name)
    if GATES[gate].refusal(where):
        refused_alone(GATES[gate], where)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_no_record_that_a_target_lacks_assembles(name: str) -> None:
    where = target(name)
    for instruction in (*MOVES, *SPARSE):
        if instruction.refusal(where):
            refused_alone(instruction, where)


@pytest.mark.parametrize("gate", GATES, ids=str)
def test_an_older_version_of_ptx_does_not_have_it(gate: Any) -> None:
    check_version(GATES[gate])


def test_forms_that_do_not_exist() -> None:
    """Why the tables end where they do: each is refused where everything newer is there."""
    where = target("sm_120a")
    first = next(i for i in MOVES if i.name == "ldmatrix.m8n8.x1.b16")
    good = module_of([first], where, (8, 8))
    assert assembles(good, where)
    for shape in ("m8n8.x1.shared.b8", "m16n16.x1.shared.b8", "m8n16.x1.trans.shared.b8x16.b4x16_p64"):
        assert not assembles(good.replace("m8n8.x1.shared.b16", shape), where), shape
    byte = next(i for i in MOVES if i.name == "ldmatrix.m16n16.x2.trans.b8")
    good = module_of([byte], where)
    assert assembles(good, where)
    assert not assembles(good.replace(".x2.", ".x4."), where)
    assert not assembles(good.replace(".trans.", "."), where)
    sparse = next(i for i in SPARSE if i.name == "sp.ordered.m16n8k64.f8f6f4.e4m3")
    good = module_of([sparse], where)
    assert assembles(good, where)
    assert not assembles(good.replace("::ordered_metadata", ""), where)
    assert not assembles(good.replace(", 0x0;", ", 0x1;"), where)


@pytest.mark.parametrize(
    "record", [r for r in MMA_SP if r.sparsity.selectors > 1 and not r.ordered], ids=lambda r: r.name
)
def test_every_selector_assembles(record: Any) -> None:
    where = target("sm_80")
    every = [replace(record, selector=s).instruction for s in range(record.sparsity.selectors)]
    assert assembles(module_of(every, where), where)


# --- wgmma ----------------------------------------------------------------------------------------


def wgmma_module(records: list[Wgmma], where: Target, registers: bool) -> str:
    """A from registers or from shared memory; the immediates are those that the types take."""
    body = []
    for number, r in enumerate(records):
        kind = "f32" if r.d == "float32" else "b32"
        d = [f"%d{number}_{i}" for i in range(r.d_registers)]
        a = [f"%a{number}_{i}" for i in range(r.a_registers)]
        body.append(f".reg .{kind} {', '.join(d)}; .reg .b32 {', '.join(a)};")
        body += [f"ld.global.b32 {x}, [%o];" for x in (*d, *(a if registers else ()))]
        transposes = [", 0"] * ((1 if registers else 2) if r.transposes else 0)
        immediates = ", 1, 1" * r.scales + "".join(transposes)
        source = "{" + ", ".join(a) + "}" if registers else "%desc"
        body.append(f"{r.mnemonic} {{{', '.join(d)}}}, {source}, %desc, %p{immediates};")
    major, minor = max(where.ptx, (8, 0))
    head = f".version {major}.{minor}\n.target {where}\n.address_size 64\n"
    lines = "\n".join(body)
    return (
        f"{head}.visible .entry kernel(.param .u64 memory)\n.reqntid 128\n{{\n.reg .b64 %o, %desc; .reg .pred %p;\n"
        "ld.param.u64 %o, [memory]; ld.global.b64 %desc, [%o]; setp.ne.b64 %p, %o, 0;\n"
        f"wgmma.fence.sync.aligned;\n{lines}\nwgmma.commit_group.sync.aligned;\n"
        "wgmma.wait_group.sync.aligned 0;\nret;\n}\n"
    )


TYPES = sorted({(r.a, r.b, r.d) for r in WGMMA_FRAGMENTS})


@pytest.mark.parametrize("registers", [False, True], ids=["shared", "registers"])
@pytest.mark.parametrize("types", TYPES, ids=lambda t: ".".join(dtype(x).ptx for x in t))
def test_wgmma_assembles_for_sm_90a_alone(types: Any, registers: bool) -> None:
    found = [r for r in WGMMA_FRAGMENTS if (r.a, r.b, r.d) == types and r.n <= 48]
    for name in ("sm_90a", "sm_90", "sm_100a", "sm_120a"):
        where = target(name)
        accepted = not gate_refusal(found[0].sm, found[0].ptx, found[0].specific, where)
        assert accepted == (name == "sm_90a")
        assert assembles(wgmma_module(found, where, registers), where) == accepted


@pytest.mark.slow
@pytest.mark.parametrize("record", [r for r in WGMMA_FRAGMENTS if r.n > 48], ids=lambda r: r.name)
def test_every_wide_wgmma_assembles(record: Wgmma) -> None:
    assert assembles(wgmma_module([record], target("sm_90a"), False), target("sm_90a"))


def test_wgmma_of_other_shapes_and_types_does_not_assemble() -> None:
    where = target("sm_90a")
    half = next(r for r in WGMMA_FRAGMENTS if r.name == "wgmma.m64n8k16.f32.f16")
    whole = next(r for r in WGMMA_FRAGMENTS if r.name == "wgmma.m64n8k32.s32.s8")
    good = wgmma_module([half], where, False)
    for wrong in ("m64n12k16", "m64n8k8", "m128n8k16", "m64n264k16"):
        assert not assembles(good.replace("m64n8k16", wrong), where), wrong
    assert not assembles(good.replace("f32.f16.f16", "f32.f16.bf16"), where)
    assert not assembles(wgmma_module([whole], where, False).replace("s32.s8.s8", "s32.s8.u8"), where)
    assert not assembles(wgmma_module([whole], where, False).replace("m64n8k32", "m64n40k32"), where)
