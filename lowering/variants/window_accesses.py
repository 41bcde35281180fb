"""Registers that a lane holds of a window's box, and what moves them from and to global memory at the tensor's rim.

Where the whole box is inside, vectors go as they are.  Else each asks for itself, and one that the rim cuts goes
element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..control import All, Compare, Condition, If
from ..isa import LOADS, STORES
from ..isa.move import ZERO
from ..isa.narrow_memory import LOAD_INTO, STORE_FROM
from ..program import Address, Buffer, Instr, Registers, Slot
from .window_places import Coordinate, Places


@dataclass(frozen=True)
class Access:
    """Neighbors in memory that a lane holds.

    Attributes:
        coordinate: of the first in the box.
        registers: that hold them, in order.
        bit: where in the first register they begin.
        size: bytes of all.
        guard: the threads that take part; None for all.
    """

    coordinate: Coordinate
    registers: tuple[int, ...]
    bit: int
    size: int
    guard: Compare | None = None

    def part(self, group: Registers, bit: int, size: int, coordinate: Coordinate) -> Access:
        """`size` bytes of it from `bit` on, whose first element is at a coordinate."""
        number, within = divmod(self.bit + bit, group.bits)
        count = max(1, 8 * size // group.bits)
        return Access(coordinate, self.registers[number : number + count], within, size, self.guard)


def in_order(group: Registers, coordinate: Coordinate, bit: int, size: int, guard: Compare | None) -> Access:
    """The access of `size` bytes that lie in the registers of a group from `bit` on."""
    first, within = divmod(bit, group.bits)
    count = max(1, 8 * size // group.bits)
    return Access(coordinate, tuple(range(first, first + count)), within, size, guard)


def move(load: bool, group: Registers, a: Access, address: Address) -> Instr:
    """The instruction that moves an access between registers and memory."""
    space = address.buffer.space
    if a.size * 8 < group.bits:
        instruction = (LOAD_INTO if load else STORE_FROM)[space, 8 * a.size, a.bit]  # type: ignore[index]
    else:
        instruction = (LOADS if load else STORES)[space, group.kind, len(a.registers)]  # type: ignore[index]
    slots = tuple([Slot(group, r) for r in a.registers])
    return Instr(instruction, (slots, address) if load else (address, slots))


def zeros(registers: Registers, accesses: Sequence[Access]) -> list[Instr]:
    """Registers that accesses touch, cleared."""
    touched = {r for a in accesses for r in a.registers}
    return [Instr(ZERO[registers.kind], ((Slot(registers, r),),)) for r in sorted(touched)]  # type: ignore[index]


@dataclass(frozen=True)
class Mover:
    """Moves accesses between registers and a window.

    Attributes:
        at: where the window's elements are.
        tensor: its buffer.
        registers: what lanes hold.
        along: the dimension of the coordinate that vectors go along.
        load: whether registers are written.
    """

    at: Places
    tensor: Buffer
    registers: Registers
    along: int
    load: bool

    def statements(self, accesses: Sequence[Access]) -> list[Any]:
        """All of them: in one form where the whole box is known to be inside, else in two.

        Elements outside the tensor are loaded as zeros.
        """
        for a in accesses:
            self.at.family(a.coordinate)
        narrow = [a for a in accesses if a.size * 8 < self.registers.bits]
        clear = zeros(self.registers, narrow) if self.load else []
        inside = clear + _under([(self._guards(a), [self._whole(a)]) for a in accesses])
        interior = self.at.interior
        if not interior.comparisons:
            return [*self.at.statements, *inside]
        rim = (zeros(self.registers, accesses) if self.load else []) + _under(
            [((*self._guards(a), *self._others(a)), self._cut(a)) for a in accesses]
        )
        return [*self.at.statements, If(_one(interior.comparisons), tuple(inside), tuple(rim))]

    def _whole(self, a: Access) -> Instr:
        address = self.at.address(self.tensor, a.coordinate)
        return move(self.load, self.registers, a, address)

    @staticmethod
    def _guards(a: Access) -> tuple[Compare, ...]:
        return () if a.guard is None else (a.guard,)

    def _others(self, a: Access) -> tuple[Compare, ...]:
        """That the access is inside in all dimensions but that which it goes along."""
        mine = self.at.dims[self.along]
        return tuple(
            [c for d in range(len(self.at.window.box)) if d != mine for c in self.at.within(a.coordinate, d)]
        )

    def _cut(self, a: Access) -> list[Any]:
        """The access, or the elements of it that are inside."""
        mine, bits = self.at.dims[self.along], self.tensor.container
        count, unit = 8 * a.size // bits, self.tensor.per_unit
        inside = self.at.within(a.coordinate, mine, count)
        if not inside:
            return [self._whole(a)]
        if count == unit:
            return [If(_one(inside), (self._whole(a),))]
        elements: list[Any] = []
        for k in range(0, count, unit):
            coordinate = tuple([x + k if d == self.along else x for d, x in enumerate(a.coordinate)])
            part = a.part(self.registers, k * bits, unit * bits // 8, coordinate)
            elements.append(If(_one(self.at.within(coordinate, mine, unit)), (self._whole(part),)))
        return [If(_one(inside), (self._whole(a),), tuple(elements))]


def _one(found: tuple[Compare, ...]) -> Condition:
    return found[0] if len(found) == 1 else All(found)


def _under(parts: Sequence[tuple[tuple[Compare, ...], list[Any]]]) -> list[Any]:
    """Statements under their conditions; those that follow one another under the same share one branch."""
    out: list[Any] = []
    groups: list[tuple[tuple[Compare, ...], list[Any]]] = []
    for conditions, body in parts:
        if groups and groups[-1][0] == conditions:
            groups[-1][1].extend(body)
        else:
            groups.append((conditions, list(body)))
    for conditions, body in groups:
        out += [If(_one(conditions), tuple(body))] if conditions else body
    return out


__all__ = ["Access", "Mover", "in_order", "move", "zeros"]
