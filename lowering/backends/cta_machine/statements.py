"""Statements, compiled once: straight runs of instructions as lists, branches and loops as generators over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...control import Draw, If, Set, While
from ...errors import MachineError
from ...isa.counting import COUNT
from ...program import Comment, Instr, Statement, instr_text
from .access import AddressOperand
from .expressions import Expressions, Truth, check_bounds
from .instructions import Functions, General, RegisterUse, check_together
from .lanes import Lanes, lanes_of
from .order import COUNTED
from .plan import Plan
from .protocols import PROTOCOLS, Protocol, Waiting
from .waits import Wait

if TYPE_CHECKING:
    from .warp import Warp

AT_ONCE = 32
"""Instructions that are executed as one, at the most."""

Steps = Iterator[Wait | None]
"""What a warp yields: what it waits for, or None where another may go on."""


class Straight:
    """Instructions and assignments that no branch, loop or wait divides."""

    def __init__(self, plan: Plan, body: list[Instr]) -> None:
        self._items: list[Any] = []
        open_runs: dict[int, Functions] = {}  # by record

        def close(meets: RegisterUse | None) -> None:
            for key, run in list(open_runs.items()):
                if meets is None or run.meets(meets):
                    self._items.append(open_runs.pop(key).close())

        for instr in body:
            record = instr.instruction
            if record.effect == "none" and not record.protocol and _only_registers(instr):
                use = RegisterUse(plan, instr)
                close(use)
                run = open_runs.setdefault(id(record), Functions(record))
                run.add(instr, use)
                if run.count == AT_ONCE:
                    self._items.append(open_runs.pop(id(record)).close())
                continue
            item = _protocol(plan, instr) if record.protocol else General(plan, instr)
            close(None if getattr(item, "orders", False) else item.use)
            self._items.append(item)
        close(None)

    def run(self, warp: Warp, lanes: Lanes) -> Steps:
        """All of them; then others may go on."""
        for item in self._items:
            item.run(warp, lanes)
        yield None


def _only_registers(instr: Instr) -> bool:
    return all(isinstance(a, tuple) for a in instr.arguments)


def _protocol(plan: Plan, instr: Instr) -> Protocol:
    name = instr.instruction.protocol
    if name not in PROTOCOLS:
        raise MachineError(f"{instr_text(instr)}: the machine knows no protocol {name!r}")
    return PROTOCOLS[name](plan, instr)  # type: ignore[no-any-return]


class Await:
    """An instruction that may block."""

    def __init__(self, item: Waiting) -> None:
        self._item = item

    def run(self, warp: Warp, lanes: Lanes) -> Steps:
        """Begin, yield until it is done, end."""
        wait = self._item.begin(warp, lanes)
        reported = Wait(wait.done, lambda: f"{self._item.where()}: {wait.why()}")
        while not wait.done():
            yield reported
        self._item.end(warp, lanes)
        yield None


class Assign:
    """``variable = value``."""

    def __init__(self, statement: Set) -> None:
        self._variable = statement.variable
        self._value = Expressions((statement.value,), self._where)
        self._text = f"{statement.variable.name} = {statement.value}"

    def _where(self) -> str:
        return self._text

    def run(self, warp: Warp, lanes: Lanes) -> None:
        """Assign for those lanes; the others keep what they hold."""
        name, held = self._variable.name, warp.held.get(self._variable.name, 0)
        found: Any = self._value(warp, lanes)[0]
        check_bounds(
            found, self._variable.lo, self._variable.hi, lanes, lambda x: self._outside(warp, lanes, x)
        )
        if type(found) is not int and lanes.count == 1:
            found = int(found[lanes.index[0]])
        if held & ~lanes.mask:  # other lanes keep what they have
            found = np.where(lanes.flags, found, warp.values[name])
        elif type(found) is not int and not lanes.all:
            found = filled(found, lanes)
        warp.values[name] = found
        warp.held[name] = held | lanes.mask

    def _outside(self, warp: Warp, lanes: Lanes, found: int) -> None:
        v = self._variable
        warp.fault(
            self._text, int(lanes.index[0]), f"{found} is outside the bounds {v.lo} to {v.hi} of {v.name}"
        )


class Drawing:
    """``Draw``: the warp's lanes, which are all there, have the same number."""

    def __init__(self, plan: Plan, statement: Draw) -> None:
        self._variable = statement.variable
        text = f"{self._variable.name} = draw [{{counter}}];"
        self._instr = Instr(replace(COUNT, name="draw", template=text), (statement.counter,))
        self._counter = AddressOperand(plan, self._instr, COUNT.operands[0], statement.counter)

    def run(self, warp: Warp, lanes: Lanes) -> None:
        """Take the number and count it."""
        check_together(warp, lanes, self._instr)
        (_, at), data = self._counter.counter(warp, lanes, True)
        found, v = int(data[at]), self._variable
        data[at] = (found + 1) % COUNTED
        outside = f"{found} is outside the bounds {v.lo} to {v.hi} of {v.name}"
        check_bounds(found, v.lo, v.hi, lanes, lambda _: warp.fault(instr_text(self._instr), 0, outside))
        warp.values[v.name], warp.held[v.name] = found, lanes.mask


def filled(value: Any, lanes: Lanes) -> Any:
    """An array of 32 in whose other lanes stands what one of the lanes has: it is in bounds."""
    array = np.asarray(value)
    return np.where(lanes.flags, array, array[lanes.index[0]])


class Branch:
    """``If``: its two sides one after the other, where lanes divide."""

    def __init__(self, plan: Plan, statement: If) -> None:
        self._test = Truth(statement.condition, lambda: f"if {statement.condition}")
        self._body, self._orelse = sequence(plan, statement.body), sequence(plan, statement.orelse)

    def run(self, warp: Warp, lanes: Lanes) -> Steps:
        """The sides that have lanes."""
        mask = self._test(warp, lanes)
        if mask:
            yield from run_all(self._body, warp, lanes_of(mask))
        if lanes.mask & ~mask:
            yield from run_all(self._orelse, warp, lanes_of(lanes.mask & ~mask))


class Loop:
    """``While``."""

    def __init__(self, plan: Plan, statement: While) -> None:
        self._test = Truth(statement.condition, lambda: f"while {statement.condition}")
        self._body = sequence(plan, statement.body)

    def run(self, warp: Warp, lanes: Lanes) -> Steps:
        """Turn after turn."""
        while self._test.together(warp, lanes):
            yield from run_all(self._body, warp, lanes)
            yield None


Compiled = Straight | Await | Assign | Drawing | Branch | Loop


def run_all(parts: list[Compiled], warp: Warp, lanes: Lanes) -> Steps:
    """The statements, in order."""
    for part in parts:
        if isinstance(part, Assign | Drawing):
            part.run(warp, lanes)
        else:
            yield from part.run(warp, lanes)


def sequence(plan: Plan, body: tuple[Statement, ...]) -> list[Compiled]:
    """Statements compiled: without constant loops, which a plan has unrolled."""
    parts: list[Compiled] = []
    straight: list[Instr] = []

    def close() -> None:
        if straight:
            parts.append(Straight(plan, list(straight)))
            straight.clear()

    for s in body:
        if isinstance(s, Comment):
            continue
        if isinstance(s, Instr) and not _waits(s):
            straight.append(s)
            continue
        close()
        if isinstance(s, Instr):
            parts.append(Await(_protocol(plan, s)))  # type: ignore[arg-type]
        elif isinstance(s, Set):
            parts.append(Assign(s))
        elif isinstance(s, Draw):
            parts.append(Drawing(plan, s))
        elif isinstance(s, If):
            parts.append(Branch(plan, s))
        elif isinstance(s, While):
            parts.append(Loop(plan, s))
        else:
            raise MachineError(f"the machine knows no statement {type(s).__name__}")
    close()
    return parts


def _waits(instr: Instr) -> bool:
    found = PROTOCOLS.get(instr.instruction.protocol)
    return isinstance(found, type) and issubclass(found, Waiting)
