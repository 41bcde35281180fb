"""Bank conflicts of every access that a program makes to shared memory.

The addresses are those that backends emit; how they collide is answered by `tilelayout.analysis`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tilelayout.analysis import Access, BankReport, bank_conflicts
from tilelayout.axis import axis
from tilelayout.expr import Index, Var, bounds, evaluate, variables

from ..control import Compare, comparisons
from ..isa.operand_map import LANES
from ..isa.protocols import CP_ASYNC
from ..isa.record import Instruction, Operand
from ..program import Address, If, Instr, Program, Statement, While, instr_text, unrolled

_RELATIONS = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

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
    """Every access of threads to shared memory, in order of execution, or of the text where only a run knows that.

    Post-condition: an access whose `degree` is 1 takes no more rounds than its width asks for, in any warp.
    """
    warp, lane = np.indices((program.warps, LANES))
    found: list[SharedAccess] = []
    for number, (instr, active) in enumerate(_executed(unrolled(program.body), {"lane": lane, "warp": warp})):
        if instr.instruction.protocol not in ("", CP_ASYNC) or not active.any():
            continue
        for operand, argument in zip(instr.instruction.operands, instr.arguments, strict=True):
            if isinstance(argument, Address) and argument.buffer.space == "shared":
                on = active.any(axis=1)  # of other warps the address may be none
                at = (
                    evaluate(argument.unit, _places(argument.unit, lane[on], warp[on]))
                    * argument.buffer.unit_bytes
                )
                rows = zip(np.broadcast_to(at, lane[on].shape), active[on], strict=True)
                starts = [row[lanes][: operand.lanes].tolist() for row, lanes in rows]
                reports = [_report(instr.instruction, operand, argument, row) for row in starts]
                worst = max(reports, key=lambda r: (r.degree, r.wavefronts))
                found.append(
                    SharedAccess(
                        number, instr.instruction.name, instr_text(instr), argument.buffer.name, worst
                    )
                )
    return tuple(found)


def _executed(
    body: tuple[Statement, ...], where: dict[str, Any], active: Any = True
) -> Iterator[tuple[Instr, Any]]:
    """Every instruction and the threads for which it is: of conditions those count that their places decide."""
    active = np.broadcast_to(active, where["lane"].shape)
    for s in body:
        if isinstance(s, Instr):
            yield s, active
        elif isinstance(s, If | While):
            known = [c for c in comparisons(s.condition) if {v.name for v in _named(c)} <= set(where)]
            holds = np.ones(active.shape, bool)
            for c in known:
                holds &= _holding(c, where, active)
            yield from _executed(s.body, where, active & holds)
            if isinstance(s, If):
                decided = len(known) == len(comparisons(s.condition))
                yield from _executed(s.orelse, where, active & ~holds if decided else active)


def _holding(c: Compare, where: dict[str, Any], active: Any) -> Any:
    """For which of the active threads a comparison holds; to others its expressions may not even apply."""
    holds = np.zeros(active.shape, bool)
    if active.any():
        there = {name: np.asarray(x)[active] for name, x in where.items()}
        holds[active] = _RELATIONS[c.relation](evaluate(c.left, there), evaluate(c.right, there))
    return holds


def _named(c: Compare) -> frozenset[Var]:
    return variables(c.left) | variables(c.right)


def _places(x: Index, lane: Any, warp: Any) -> dict[str, Any]:
    """The threads, and every other variable at its least: what moves all lanes alike changes no conflict."""
    return {v.name: bounds(v)[0] or 0 for v in variables(x)} | {"lane": lane, "warp": warp}


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


def _report(instruction: Instruction, operand: Operand, address: Address, starts: list[int]) -> BankReport:
    """Of one warp; `starts` are the lanes' addresses in bytes."""
    width = operand.bytes or address.buffer.unit_bytes
    mine = np.asarray(starts)
    addresses = (mine[:, None] + np.arange(width)).ravel()
    lanes = [range(k * width, (k + 1) * width) for k in range(len(mine))]
    return bank_conflicts(_Bytes(addresses), Access(addresses.size, lanes, _kind(instruction)), 8)


def _kind(instruction: Instruction) -> Kind:
    name = instruction.name.split(".")[0]
    if name in ("ldmatrix", "stmatrix"):
        return name  # type: ignore[return-value]
    return "store" if instruction.stores or instruction.protocol else "load"


__all__ = ["SharedAccess", "bank_text", "shared_accesses"]
