"""Instructions whose meaning says all: functions of registers, loads and stores.

Neighboring ones of one kind that do not touch each other's registers are executed at once, as if they were warps: most
of the time of a product on the machine goes into calling numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelayout.expr import Expr

from ...control import Parameter
from ...isa.operand_map import LANES
from ...program import Address, Instr, instr_text
from .access import AddressOperand
from .expressions import Expressions, per_lane
from .faults import Wrong
from .lanes import Lanes
from .plan import Plan

if TYPE_CHECKING:
    from .shadow import Pending
    from .warp import Warp


class RegisterUse:
    """The registers that an instruction reads and writes.

    Attributes:
        reads, writes: operand and its words.
        read, written: the words of all operands.
        touched: both.
    """

    def __init__(self, plan: Plan, instr: Instr) -> None:
        self.reads: list[tuple[str, list[int]]] = []
        self.writes: list[tuple[str, list[int]]] = []
        for operand, argument in zip(instr.instruction.operands, instr.arguments, strict=True):
            if isinstance(argument, tuple):
                words = plan.numbers(argument, instr)
                if operand.reads:
                    self.reads.append((operand.name, words))
                if operand.writes:
                    self.writes.append((operand.name, words))
        self.read = frozenset(w for _, words in self.reads for w in words)
        self.written = frozenset(w for _, words in self.writes for w in words)
        self.touched = self.read | self.written


def check_held(warp: Warp, lanes: Lanes, use: RegisterUse, instr: Instr) -> None:
    """Errors: MachineError where an instruction reads a register that holds nothing."""
    missing = warp.missing(use.read, lanes)
    if missing:
        word, lane = missing
        warp.fault(
            instr_text(instr), lane, f"reads {warp.plan.register_name(word)}, {warp.why_missing(word)}"
        )


def check_together(warp: Warp, lanes: Lanes, instr: Instr) -> None:
    """Errors: MachineError where a collective instruction meets a part of a warp."""
    if instr.instruction.collective and not lanes.all:
        absent = next(x for x in range(LANES) if not lanes.mask >> x & 1)
        warp.fault(
            instr_text(instr),
            absent,
            f"all lanes must execute it together, only {lanes.count} of {LANES} are here",
        )


class Functions:
    """Instructions of one record, functions of registers, that do not touch each other's registers.

    Attributes:
        read, touched: the words that they read, and those that they read or write.
    """

    def __init__(self, record: Any) -> None:
        self._record = record
        self._instrs: list[tuple[Instr, RegisterUse]] = []
        self.read: frozenset[int] = frozenset()
        self.written: frozenset[int] = frozenset()
        self._tables: tuple[list[tuple[str, Any]], list[tuple[str, Any]]] | None = None

    @property
    def count(self) -> int:
        return len(self._instrs)

    def add(self, instr: Instr, use: RegisterUse) -> None:
        self._instrs.append((instr, use))
        self.read |= use.read
        self.written |= use.written

    def meets(self, use: RegisterUse) -> bool:
        """Whether the order with such an instruction matters."""
        return not (self.written.isdisjoint(use.touched) and self.read.isdisjoint(use.written))

    def close(self) -> Functions:
        """No more are added."""
        uses = [use for _, use in self._instrs]
        self.touched = self.read | self.written
        self._tables = _table([u.reads for u in uses]), _table([u.writes for u in uses])
        return self

    def run(self, warp: Warp, lanes: Lanes) -> None:
        """Execute all."""
        if self._record.collective and not lanes.all:
            check_together(warp, lanes, self._instrs[0][0])
        if warp.missing(self.read, lanes):
            for instr, use in self._instrs:
                check_held(warp, lanes, use, instr)
        warp.use(self.touched)
        if self._tables is None:
            raise TypeError("instructions that were not closed")
        reads, writes = self._tables
        words: Any = warp.words if lanes.all else warp.words[lanes.index]
        values: dict[str, Any] = {"lanes": (self.count, lanes.count), "numerics": warp.cta.numerics}
        for name, table in reads:  # [instructions, words of each]
            values[name] = np.ascontiguousarray(words.take(table, axis=1).transpose(1, 0, 2))
        found = self._record.meaning(values)
        for name, table in writes:
            put(warp, lanes, table.ravel(), found[name].transpose(1, 0, 2).reshape(lanes.count, -1))
        warp.wrote(self.written, lanes)


def _table(operands: Sequence[list[tuple[str, list[int]]]]) -> list[tuple[str, Any]]:
    names = [name for name, _ in operands[0]]
    return [(name, np.array([x[i][1] for x in operands])) for i, name in enumerate(names)]


def put(warp: Warp, lanes: Lanes, words: Any, found: Any) -> None:
    """Write registers: ``[lanes, words]``."""
    if lanes.all:
        warp.words[:, words] = found
    else:
        warp.words[lanes.index[:, None], words] = found


class General:
    """An instruction with other operands than registers: loads and stores, parameters, values of expressions."""

    def __init__(self, plan: Plan, instr: Instr) -> None:
        self._instr, self._record = instr, instr.instruction
        self._use = RegisterUse(plan, instr)
        self._stores = self._record.stores
        self._addresses: list[AddressOperand] = []
        self._parameters: list[tuple[str, Parameter]] = []
        self._values: list[tuple[str, Expressions]] = []
        for operand, argument in zip(self._record.operands, instr.arguments, strict=True):
            if isinstance(argument, Address):
                self._addresses.append(AddressOperand(plan, instr, operand, argument))
            elif isinstance(argument, Parameter):
                self._parameters.append((operand.name, argument))
            elif isinstance(argument, int | Expr):
                self._values.append((operand.name, Expressions((argument,), self._where)))
        self._reads = [(name, np.array(words)) for name, words in self._use.reads]
        self._writes = [(name, np.array(words)) for name, words in self._use.writes]

    @property
    def use(self) -> RegisterUse:
        return self._use

    def _where(self) -> str:
        return instr_text(self._instr)

    def run(self, warp: Warp, lanes: Lanes) -> None:
        """Execute it."""
        check_together(warp, lanes, self._instr)
        check_held(warp, lanes, self._use, self._instr)
        warp.use(self._use.touched)
        values, loads = self._arguments(warp, lanes)
        found = self._record.meaning(values)
        for name, words in self._writes:
            put(warp, lanes, words, found[name][0])
        warp.wrote(self._use.written, lanes)
        for load in loads:
            warp.begin(load, self._use.written)
            if load.empty:
                warp.lose(self._use.written, lanes, load.event)

    def _arguments(self, warp: Warp, lanes: Lanes) -> tuple[Mapping[str, Any], list[Pending]]:
        """The operands' values, and the loads from shared memory that have begun."""
        loads: list[Pending] = []
        values: dict[str, Any] = {"lanes": (1, lanes.count), "numerics": warp.cta.numerics}
        words = warp.words if lanes.all else warp.words[lanes.index]
        for name, table in self._reads:
            values[name] = words.take(table, axis=1)[None]
        for name, parameter in self._parameters:
            values[name] = warp.cta.launch.words[parameter.name]
        for name, expression in self._values:
            values[name] = per_lane(expression(warp, lanes)[0], lanes)[None]
        for address in self._addresses:
            if address.shared is None:
                values[address.name] = address.in_global(warp, lanes, self._stores)
            else:
                values[address.name] = self._touch(warp, lanes, address, loads)
        return values, loads

    def _touch(self, warp: Warp, lanes: Lanes, address: AddressOperand, loads: list[Pending]) -> Any:
        place, touched = address.in_shared(warp, lanes)
        shadow, event = warp.cta.shared.shadows[address.buffer.name], warp.cta.note(self._instr, warp)
        try:
            if self._stores:
                shadow.write(warp.number, touched, event)
            else:
                loads.append(shadow.read(warp.number, touched, event))
        except Wrong as wrong:
            address.fail(warp, lanes, touched.at, wrong)
        return place
