"""PTX modules around single instructions of any record, and what the assembler says of them."""

from __future__ import annotations

from collections.abc import Iterable

from lowering.backends.assemble import AssemblerError, assemble
from lowering.isa.record import Instruction
from lowering.target import TARGETS, Target

_TYPES = {"f32": "f32", "f64": "f64", "b32": "b32", "address": "b64", "shared": "b32"}

VERSIONS = [(6, 3), (6, 4), (6, 5), *[(7, i) for i in range(9)], *[(8, i) for i in range(9)], (9, 0), (9, 1)]


def version_before(version: tuple[int, int]) -> tuple[int, int]:
    return VERSIONS[VERSIONS.index(version) - 1]


def module_of(
    instructions: Iterable[Instruction], target: Target, version: tuple[int, int] | None = None
) -> str:
    """A module whose kernel executes each instruction once, on registers of its own that memory fills and receives.

    `version` is the smallest that has the target and the instructions unless it is given.
    """
    found = list(instructions)
    major, minor = version or max([target.ptx, *[i.ptx for i in found]])
    body: list[str] = []
    at = 0
    for number, instruction in enumerate(found):
        names = {o.name: [f"%x{number}_{o.name}{i}" for i in range(o.count)] for o in instruction.operands}
        loads: list[str] = []
        stores: list[str] = []
        for o in instruction.operands:
            kind = _TYPES[o.kind]
            body.append(f".reg .{kind} {', '.join(names[o.name])};")
            for name in names[o.name]:
                place = f"[%base+{8 * at}]"
                at += 1
                if o.reads or o.kind in ("address", "shared"):
                    loads.append(f"ld.global.{kind} {name}, {place};")
                if o.writes:
                    stores.append(f"st.global.{kind} {place}, {name};")
        body += [*loads, instruction.text(names), *stores]
    return "\n".join(
        [
            f".version {major}.{minor}",
            f".target {target}",
            ".address_size 64",
            ".visible .entry kernel(.param .u64 memory)",
            ".reqntid 32",
            "{",
            ".reg .b64 %base;",
            "ld.param.u64 %base, [memory];",
            *body,
            "ret;",
            "}",
            "",
        ]
    )


def refusal_of(instruction: Instruction, where: Target, version: tuple[int, int] | None = None) -> str:
    """What the assembler says against an instruction; empty where it takes it."""
    try:
        assemble(module_of([instruction], where, version), where, allow_spills=True)
    except AssemblerError as error:
        return str(error)
    return ""


def check_version(instruction: Instruction) -> None:
    """PTX of the version before the record's does not have it, on the record's first target.

    The record says so, and the assembler too if that target exists in the older version.
    """
    where = next(t for t in TARGETS.values() if not instruction.refusal(t))
    older = version_before(instruction.ptx)
    assert "needs PTX" in instruction.refusal(where, older)
    assert not instruction.refusal(where, instruction.ptx)
    assert refusal_of(instruction, where, max(instruction.ptx, where.ptx)) == ""
    if where.ptx <= older:
        assert refusal_of(instruction, where, older)
