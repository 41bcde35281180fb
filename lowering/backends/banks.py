"""Bank conflicts of every access that a program makes to shared memory.

The addresses are those that backends emit; how they collide is answered by `tilelayout.analysis`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tilelayout.analysis import Access, BankReport, bank_conflicts
from tilelayout.axis import axis
from tilelayout.expr import evaluate

from ..isa.operand_map import LANES
from ..isa.record import Operand
from ..program import Address, Program, Step, step_text

Kind = Literal["load", "store", "ldmatrix", "stmatrix"]


@dataclass(frozen=True)
class SharedAccess:
    """One address operand of one instruction.

    Attributes:
        step: number of the instruction in the program.
        instruction: its name.
        text: it with its arguments.
        buffer: name of the array.
        report: of the warp with the most conflicts.
    """

    step: int
    instruction: str
    text: str
    buffer: str
    report: BankReport

    @property
    def degree(self) -> int:
        """1 where no lane waits for another."""
        return self.report.degree


def shared_accesses(program: Program) -> tuple[SharedAccess, ...]:
    """Every access to shared memory, in order of execution.

    Post-condition: an access whose `degree` is 1 takes no more rounds than its width asks for, in any warp.
    """
    warp, lane = np.indices((program.warps, LANES))
    found: list[SharedAccess] = []
    for number, step in enumerate(program.steps):
        for operand, argument in zip(step.instruction.operands, step.arguments, strict=True):
            if isinstance(argument, Address) and argument.buffer.space == "shared":
                at = evaluate(argument.unit, {"lane": lane, "warp": warp}) * argument.buffer.unit_bytes
                reports = [
                    _report(step, operand, argument, row) for row in np.broadcast_to(at, lane.shape).tolist()
                ]
                worst = max(reports, key=lambda r: (r.degree, r.wavefronts))
                found.append(
                    SharedAccess(number, step.instruction.name, step_text(step), argument.buffer.name, worst)
                )
    return tuple(found)


def bank_text(program: Program) -> str:
    """The conflicts of a program's accesses to shared memory, for the reader; empty where it makes none."""
    accesses = shared_accesses(program)
    if not accesses:
        return ""
    bad = [a for a in accesses if a.degree > 1]
    many = "access" if len(accesses) == 1 else "accesses"
    lines = [f"  shared memory: {len(accesses)} {many} of a warp, {len(bad) or 'none'} with bank conflicts"]
    kinds = [(a.instruction, a.buffer, a.degree) for a in bad]
    for kind in dict.fromkeys(kinds):
        name, buffer, degree = kind
        lines.append(f"    {kinds.count(kind)} of {name} on {buffer}: {degree}-way")
    return "\n".join(lines)


@dataclass(frozen=True)
class _Bytes:
    """Bytes at given addresses, as a layout of their own."""

    addresses: Any

    def table(self, shape: Any, /) -> dict[Any, Any]:
        return {axis("m"): self.addresses.reshape(shape)}


def _report(step: Step, operand: Operand, address: Address, starts: list[int]) -> BankReport:
    """Of one warp; `starts` are the lanes' addresses in bytes."""
    width = operand.bytes or address.buffer.unit_bytes
    mine = np.asarray(starts[: operand.lanes])
    addresses = (mine[:, None] + np.arange(width)).ravel()
    lanes = [range(k * width, (k + 1) * width) for k in range(len(mine))]
    return bank_conflicts(_Bytes(addresses), Access(addresses.size, lanes, _kind(step)), 8)


def _kind(step: Step) -> Kind:
    name = step.instruction.name.split(".")[0]
    if name in ("ldmatrix", "stmatrix"):
        return name  # type: ignore[return-value]
    return "store" if step.instruction.stores else "load"


__all__ = ["SharedAccess", "bank_text", "shared_accesses"]
