"""PTX modules around single instructions of any record, for the assembler."""

from __future__ import annotations

from collections.abc import Iterable

from lowering.isa.record import Instruction
from lowering.target import Target

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
