"""The numbers in registers of any type, and registers of them: statements, and the scratch registers that they need.

What arithmetic is done on is one number a register, f32 as a rule.  Registers that hold several numbers, or of another
type, are taken apart and made by the conversions of `isa.convert`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tilelayout import LayoutError

from ..errors import fail
from ..isa.convert import packing, unpacking
from ..isa.record import Instruction, Kind
from ..program import Instr, Registers, Slot, Statement
from ..target import Target

TYPES = {"f32": "float32", "f64": "float64", "b32": "int32"}
"""Class of a register of one number -> its type, for the reader."""


@dataclass
class Values:
    """Statements under construction, and which scratch registers are free.

    Attributes:
        target: what conversions are chosen for.
        pools: scratch registers by class.
        statements: so far.
        used: class -> scratch registers that were taken at once at the most.
    """

    target: Target
    pools: dict[Kind, Registers]
    statements: list[Statement] = field(default_factory=list)
    used: dict[Kind, int] = field(default_factory=dict)
    taken: dict[Kind, set[int]] = field(default_factory=dict)

    def take(self, kind: Kind = "f32") -> Slot:
        """A free scratch register."""
        taken = self.taken.setdefault(kind, set())
        number = next(i for i in range(len(taken) + 1) if i not in taken)
        taken.add(number)
        self.used[kind] = max(self.used.get(kind, 0), number + 1)
        return Slot(self.pools[kind], number)

    def release(self, *slots: Slot) -> None:
        """Scratch registers that are no longer needed; others are left alone."""
        for s in slots:
            for kind, pool in self.pools.items():
                if s.registers == pool:
                    self.taken[kind].discard(s.index)  # type: ignore[arg-type]

    def do(self, instruction: Instruction, *slots: Slot) -> None:
        """One instruction on registers of one number each, in the order of its operands."""
        self.statements.append(Instr(instruction, tuple([(s,) for s in slots])))

    def unpack(self, register: Slot, into: list[Slot] | None = None) -> list[Slot]:
        """The f32 numbers of a register, low bits first: the register itself where it is one, else `into` (scratch)."""
        group = register.registers
        if group.dtype == "float32" and into is None:
            return [register]
        out = into or [self.take() for _ in range(group.per_register)]
        self.do(unpacking(group.dtype, self.target), *out, register)
        return out

    def pack(self, register: Slot, numbers: list[Slot]) -> None:
        """A register of its f32 numbers, which are released."""
        self.do(packing(register.registers.dtype, self.target), register, *numbers)
        self.release(*numbers)


def scratch(name: str, kind: Kind, count: int) -> Registers:
    """A group of scratch registers of one number each."""
    return Registers(name, "scratch", TYPES[kind], count, kind)


def with_scratch(
    target: Target,
    name: str,
    build: Callable[[Values], None],
    kinds: tuple[Kind, ...] = ("f32", "f64", "b32"),
) -> tuple[list[Statement], tuple[Registers, ...]]:
    """The statements that `build` makes, with as many scratch registers of each class as they need.

    `build` is called twice: how many it takes decides what the groups are, and statements name their groups.
    """
    most: dict[Kind, Registers] = {kind: scratch(f"{name}_{kind}", kind, 255) for kind in kinds}
    trial = Values(target, most)
    build(trial)
    pools: dict[Kind, Registers] = {
        kind: scratch(f"{name}_{kind}", kind, n) for kind, n in trial.used.items()
    }
    found = Values(target, pools)
    build(found)
    if found.used != trial.used:
        raise LayoutError("values", f"{name} took {trial.used} scratch registers, then {found.used}")
    return found.statements, tuple(pools.values())


def converted(
    target: Target, name: str, build: Callable[[Values], None]
) -> tuple[list[Statement], tuple[Registers, ...]]:
    """The same for a variant: declines for a conversion that the target lacks."""
    try:
        return with_scratch(target, name, build)
    except LayoutError as error:
        return fail(error.rule)
