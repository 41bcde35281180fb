"""Programs: what a variant returns, and the only thing that backends translate.

A program is a small structured text over *registers* (groups of them that each lane has), *buffers* in memory,
addresses as `tilelayout.expr` expressions, and instructions of `isa`.  Loops here are constant and fully unrolled;
what asynchronous kernels need (run-time loops, thread roles, barriers) gets statements of its own beside these.  No
layout and no backend may enter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilelayout import LayoutError
from tilelayout.expr import Index, Var, render

from .dtypes import dtype
from .isa.record import SPACES, Instruction
from .storage import Address, Buffer, Registers, Slot, View

Argument = tuple[Slot, ...] | Address


@dataclass(frozen=True)
class Instr:
    """One instruction with its arguments, in the order of the record's operands.

    Errors: LayoutError for an address in another memory than the operand's.
    """

    instruction: Instruction
    arguments: tuple[Argument, ...]

    def __post_init__(self) -> None:
        for operand, argument in zip(self.instruction.operands, self.arguments, strict=False):
            if isinstance(argument, Address) and argument.buffer.space != SPACES.get(operand.kind):
                raise LayoutError(
                    self.instruction.name,
                    f"operand {operand.name} is of kind {operand.kind}, {argument.buffer.name} lies in "
                    f"{argument.buffer.space} memory",
                )


@dataclass(frozen=True)
class For:
    """A constant loop, fully unrolled: `var` runs over ``[0, var.hi]``."""

    var: Var
    body: tuple[Statement, ...]

    @property
    def count(self) -> int:
        if self.var.hi is None:
            raise LayoutError("For", f"loop variable {self.var} has no upper bound")
        return self.var.hi + 1


@dataclass(frozen=True)
class Comment:
    """A line for the reader, in every text."""

    text: str


Statement = Instr | For | Comment


@dataclass(frozen=True)
class Step:
    """One executed instruction: registers resolved to numbers."""

    instruction: Instruction
    arguments: tuple[tuple[tuple[Registers, int], ...] | Address, ...]


@dataclass(frozen=True)
class Program:
    """A program for one or several warps, every lane of each executing it together.

    Attributes:
        name: what it is called in emitted text.
        warps: warps that execute it.
        inputs: register groups that hold data when it begins.
        outputs: register groups that are its result.
        scratch: further register groups, empty at the beginning.
        buffers: tensors in memory, as kernel parameters in order.
        views: how the operands' registers are numbered, for the reader and for tests.
        body: the statements.
    """

    name: str
    warps: int
    inputs: tuple[Registers, ...]
    outputs: tuple[Registers, ...]
    body: tuple[Statement, ...]
    buffers: tuple[Buffer, ...] = ()
    scratch: tuple[Registers, ...] = ()
    views: tuple[View, ...] = ()

    @cached_property
    def registers(self) -> tuple[Registers, ...]:
        """Every register group, once, in order of first mention."""
        return tuple(dict.fromkeys((*self.inputs, *self.outputs, *self.scratch)))

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """The distinct instructions, in order of first use."""
        return tuple({i.name: i for i in _instructions(self.body)}.values())

    @cached_property
    def loaded(self) -> frozenset[str]:
        """The roles of the buffers that are read."""
        return frozenset(
            [
                a.buffer.role
                for step in self.steps
                if not step.instruction.stores
                for a in step.arguments
                if isinstance(a, Address)
            ]
        )

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The program fully unrolled."""
        return tuple(_unroll(self.body, {}))

    @cached_property
    def peak_registers(self) -> int:
        """The most 32-bit data registers of a lane that must hold a live value at once, whatever the schedule of loads.

        An input counts from its first use, an output until the end, one that is passed through all along; addresses
        and the compiler's temporaries come on top.
        """
        return _peak(self)

    def __str__(self) -> str:
        return program_text(self)


def _instructions(body: tuple[Statement, ...]) -> Iterator[Instruction]:
    for s in body:
        if isinstance(s, Instr):
            yield s.instruction
        elif isinstance(s, For):
            yield from _instructions(s.body)


def walk(body: tuple[Statement, ...], env: dict[str, int]) -> Iterator[tuple[Comment | Step, dict[str, int]]]:
    """Statements in order of execution, loops unrolled, with the loop variables' values."""
    yield from _walk(_prepared(body, tuple(env)), env)


def _walk(
    body: list[_Resolver | Comment | _Loop], env: dict[str, int]
) -> Iterator[tuple[Comment | Step, dict[str, int]]]:
    for s in body:
        if isinstance(s, _Loop):
            for i in range(s.count):
                yield from _walk(s.body, {**env, s.name: i})
        elif isinstance(s, Comment):
            yield Comment(s.text.format_map(env)), env
        else:
            yield s.step(env), env


def _prepared(body: tuple[Statement, ...], names: tuple[str, ...]) -> list[_Resolver | Comment | _Loop]:
    return [
        _Resolver(s, names) if isinstance(s, Instr) else _Loop(s, names) if isinstance(s, For) else s
        for s in body
    ]


class _Loop:
    """A loop whose body is prepared once, however often the loops around it turn."""

    def __init__(self, loop: For, names: tuple[str, ...]) -> None:
        self.name, self.count = loop.var.name, loop.count
        self.body = _prepared(loop.body, (*names, self.name))


class _Resolver:
    """An instruction whose register numbers are compiled to one function of the loop variables."""

    def __init__(self, instr: Instr, names: tuple[str, ...]) -> None:
        self.instr = instr
        slots = [s for a in instr.arguments if not isinstance(a, Address) for s in a]
        self.groups = [None if isinstance(a, Address) else [s.registers for s in a] for a in instr.arguments]
        self.numbers = compiled([s.index for s in slots], names)

    def step(self, env: dict[str, int]) -> Step:
        numbers = iter(self.numbers(*env.values()))
        arguments = [
            a if groups is None else tuple([(r, next(numbers)) for r in groups])
            for a, groups in zip(self.instr.arguments, self.groups, strict=True)
        ]
        return Step(self.instr.instruction, tuple(arguments))  # type: ignore[arg-type]


def compiled(indices: Sequence[Index], names: tuple[str, ...]) -> Callable[..., tuple[int, ...]]:
    """One Python function of the named variables that gives all the indices; expressions print as Python."""
    text = "".join(f"{x}, " for x in indices)
    return eval(f"lambda {', '.join(names)}: ({text})", {"__builtins__": {}})  # type: ignore[no-any-return]  # noqa: S307


def _unroll(body: tuple[Statement, ...], env: dict[str, int]) -> Iterator[Step]:
    for s, _ in walk(body, env):
        if isinstance(s, Step):
            yield s


def _peak(program: Program) -> int:
    """Live ranges over the unrolled steps: an input from its first use, an output until the end."""
    first: dict[tuple[Registers, int], int] = {}
    last: dict[tuple[Registers, int], int] = {}
    end = len(program.steps)
    for at, step in enumerate(program.steps):
        for argument in step.arguments:
            if not isinstance(argument, Address):
                for register in argument:
                    first.setdefault(register, at)
                    last[register] = at
    outputs = set(program.outputs)
    for r in outputs.intersection(program.inputs):
        for register in [(r, i) for i in range(r.count) if (r, i) not in first]:  # passed through untouched
            first[register] = 0
    change = [0] * (end + 2)
    for register, begin in first.items():
        width = register[0].bits // 32
        change[begin] += width
        change[(end if register[0] in outputs else last[register]) + 1] -= width
    live = peak = 0
    for step_change in change:
        live += step_change
        peak = max(peak, live)
    return peak


# --- text ---------------------------------------------------------------------------------------


def program_text(program: Program) -> str:
    """The unrolled nest, one instruction a line."""
    lines = [f"program {program.name}: {program.warps} warp{'s' * (program.warps > 1)}"]
    for b in program.buffers:
        aligned = f", aligned to {b.alignment} bytes" if b.alignment else ""
        lines.append(f"  buffer {b.name}: {b.dtype}{list(b.shape)} row-major in {b.space} memory{aligned}")
    for r in program.registers:
        use = "in" if r in program.inputs else "out" if r in program.outputs else "scratch"
        use = "in, out" if r in program.inputs and r in program.outputs else use
        elements = "" if r.kind == dtype(r.dtype).ptx else f" of {r.dtype}"
        lines.append(f"  registers {r.name}[0..{r.count - 1}]: {r.kind}{elements}  ({r.role}, {use})")
    for s, _ in walk(program.body, {}):
        lines.append("  " + (f"# {s.text}" if isinstance(s, Comment) else step_text(s)))
    return "\n".join(lines)


def step_text(step: Step) -> str:
    """The instruction with the registers' names in place of numbers."""
    names: dict[str, list[str]] = {}
    for operand, argument in zip(step.instruction.operands, step.arguments, strict=True):
        if isinstance(argument, Address):
            inside = ", ".join(render(x, "python") for x in argument.coordinate)
            bit = [f"bit {render(argument.bit, 'python')}"] if argument.buffer.per_unit > 1 else []
            names[operand.name] = [f"{argument.buffer.name}({inside})", *bit]
        else:
            names[operand.name] = [f"{r.name}[{i}]" for r, i in argument]
    return step.instruction.text(names)


__all__ = [
    "Address", "Buffer", "Comment", "For", "Instr", "Program", "Registers", "Slot", "Statement", "Step", "View",
    "compiled", "program_text", "step_text", "walk",
]  # fmt: skip
