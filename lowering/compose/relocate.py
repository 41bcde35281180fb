"""A program's statements on other registers and other memory: how pieces become one kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilelayout.expr import Expr, Index, substitute

from ..control import Draw, If, Set, TensorMap, While, replaced
from ..program import Address, Buffer, Comment, Instr, Registers, Slot, Statement, unrolled


def relocated(
    body: tuple[Statement, ...],
    registers: Mapping[Registers, Registers] | None = None,
    buffers: Mapping[Buffer, tuple[Buffer, Index]] | None = None,
    values: Mapping[str, Index] | None = None,
) -> list[Statement]:
    """The statements, constant loops unrolled, with other registers and places.

    Args:
        body: of a program.
        registers: group -> the group that takes its place; others stay.
        buffers: buffer of one dimension -> the buffer that takes its place, and how many elements on from there.
        values: variable, by name -> what takes its place, in every expression but the target of a `Set`.
    """
    return [_Move(registers or {}, buffers or {}, dict(values or {})).statement(s) for s in unrolled(body)]


class _Move:
    def __init__(
        self,
        registers: Mapping[Registers, Registers],
        buffers: Mapping[Buffer, tuple[Buffer, Index]],
        values: dict[str, Index],
    ) -> None:
        self.registers, self.buffers, self.values = registers, buffers, values

    def statement(self, s: Statement) -> Statement:
        if isinstance(s, Instr):
            return Instr(s.instruction, tuple([self.argument(a) for a in s.arguments]))
        if isinstance(s, If):
            return If(replaced(s.condition, self.values), self.all(s.body), self.all(s.orelse))
        if isinstance(s, While):
            return While(replaced(s.condition, self.values), self.all(s.body), s.hoist)
        if isinstance(s, Set):
            return Set(s.variable, self.index(s.value))
        if isinstance(s, Draw):
            return Draw(s.variable, self.address(s.counter))
        return Comment(s.text.replace("{", "{{").replace("}", "}}")) if isinstance(s, Comment) else s

    def all(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple([self.statement(s) for s in body])

    def argument(self, a: Any) -> Any:
        if isinstance(a, tuple):
            return tuple([Slot(self.registers.get(s.registers, s.registers), s.index) for s in a])
        if isinstance(a, Address):
            return self.address(a)
        if isinstance(a, TensorMap) or not isinstance(a, Expr):
            return a
        return self.index(a)

    def address(self, a: Address) -> Address:
        coordinate = tuple([self.index(x) for x in a.coordinate])
        if a.buffer not in self.buffers:
            return Address(a.buffer, coordinate)
        buffer, shift = self.buffers[a.buffer]
        return Address(buffer, (coordinate[0] + shift,))

    def index(self, x: Index) -> Index:
        return substitute(x, self.values) if self.values and isinstance(x, Expr) else x
