"""Programs: what a variant returns, and the only thing that backends translate.

A program is a small structured text over *registers* (groups of them that each lane has), *buffers* in memory,
addresses as `tilelayout.expr` expressions, and instructions of `isa`.  `For` is constant and fully unrolled; a program
of such loops alone is *straight*, and its steps can be listed.  Whole kernels add the statements of `control`: run-time
variables and loops, and branches on thread roles.  No layout and no backend may enter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tilelayout import LayoutError
from tilelayout.expr import Expr, Index, Var, bounds, render, substitute

from .control import Draw, If, Parameter, Set, TensorMap, While, replaced
from .dtypes import dtype
from .isa.record import SPACES, Instruction
from .storage import Address, Buffer, Registers, Slot, View

Argument = tuple[Slot, ...] | Address | Index | Parameter | TensorMap
"""By the operand's kind: registers, an address, the value of an expression, what a launch gives."""


@dataclass(frozen=True)
class Instr:
    """One instruction with its arguments, in the order of the record's operands.

    Errors: LayoutError for an address in another memory than the operand's, and for a value that may need more than
    the 32 bits it has.
    """

    instruction: Instruction
    arguments: tuple[Argument, ...]

    def __post_init__(self) -> None:
        for operand, argument in zip(self.instruction.operands, self.arguments, strict=False):
            if operand.kind == "value":
                _check_value(self.instruction.name, operand.name, argument)
            if isinstance(argument, Address) and argument.buffer.space != SPACES.get(operand.kind):
                raise LayoutError(
                    self.instruction.name,
                    f"operand {operand.name} is of kind {operand.kind}, {argument.buffer.name} lies in "
                    f"{argument.buffer.space} memory",
                )


def _check_value(instruction: str, operand: str, argument: Argument) -> None:
    if isinstance(argument, int | Expr):
        low, high = bounds(argument)
        if (low is not None and low < -1 << 31) or (high is not None and high >= 1 << 32):
            raise LayoutError(
                instruction,
                f"operand {operand} is an integer of 32 bits, {argument} lies in [{low}, {high}]",
                "bound its variables",
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


Statement = Instr | For | Comment | Set | Draw | If | While


@dataclass(frozen=True)
class Step:
    """One executed instruction: registers resolved to numbers, all else as it was."""

    instruction: Instruction
    arguments: tuple[Any, ...]  # ((registers, number), ...) for registers; an Argument for all else


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
        parameters: numbers that the launch gives, after the buffers in global memory.
        maps: tensor maps, as the last parameters.
        resident: CTAs that must find room on a multiprocessor together, which limits a thread's registers; 0: as many
            as there happen to be room for.
    """

    name: str
    warps: int
    inputs: tuple[Registers, ...]
    outputs: tuple[Registers, ...]
    body: tuple[Statement, ...]
    buffers: tuple[Buffer, ...] = ()
    scratch: tuple[Registers, ...] = ()
    views: tuple[View, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    maps: tuple[TensorMap, ...] = ()
    resident: int = 0

    @property
    def straight(self) -> bool:
        """Whether every statement is an instruction, a comment or a constant loop of such."""
        return all(isinstance(s, Instr | For | Comment) for s in every(self.body))

    @property
    def listed(self) -> bool:
        """Whether it is straight, and its instructions take registers and addresses alone: each is a line of text."""
        given = [a for s in every(self.body) if isinstance(s, Instr) for a in s.arguments]
        alone = not self.parameters and not self.maps
        return self.straight and alone and all(isinstance(a, tuple | Address) for a in given)

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
        """The program fully unrolled.

        Errors: LayoutError for a program that is not straight.
        """
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


def every(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Each statement, however deep, in order of the text."""
    for s in body:
        yield s
        for part in ("body", "orelse"):
            yield from every(getattr(s, part, ()))


def _instructions(body: tuple[Statement, ...]) -> Iterator[Instruction]:
    for s in every(body):
        if isinstance(s, Instr):
            yield s.instruction


def walk(body: tuple[Statement, ...], env: dict[str, int]) -> Iterator[tuple[Comment | Step, dict[str, int]]]:
    """Statements in order of execution, loops unrolled, with the loop variables' values.

    Errors: LayoutError for what only a run can decide.
    """
    for s in every(body):
        if not isinstance(s, Instr | For | Comment):
            raise LayoutError(
                "walk", f"a program with {type(s).__name__} is not straight: only a run knows its steps"
            )
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
        slots = [s for a in instr.arguments if isinstance(a, tuple) for s in a]
        self.groups = [[s.registers for s in a] if isinstance(a, tuple) else None for a in instr.arguments]
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


def unrolled(body: tuple[Statement, ...], env: Mapping[str, int] | None = None) -> tuple[Statement, ...]:
    """The statements without constant loops, which stay as often as they turn; all else is as it was."""
    env = env or {}
    out: list[Statement] = []
    for s in body:
        if isinstance(s, For):
            for i in range(s.count):
                out += unrolled(s.body, {**env, s.var.name: i})
        elif isinstance(s, If):
            out.append(If(replaced(s.condition, env), unrolled(s.body, env), unrolled(s.orelse, env)))
        elif isinstance(s, While):
            out.append(While(replaced(s.condition, env), unrolled(s.body, env), s.hoist))
        elif isinstance(s, Set):
            out.append(Set(s.variable, substitute(s.value, env)))
        elif isinstance(s, Draw):
            out.append(Draw(s.variable, _placed(s.counter, env)))
        elif isinstance(s, Comment):
            out.append(Comment(s.text.format_map(env)))
        else:
            out.append(Instr(s.instruction, tuple([_filled(a, env) for a in s.arguments])) if env else s)
    return tuple(out)


def _filled(argument: Argument, env: Mapping[str, int]) -> Argument:
    if isinstance(argument, tuple):
        return tuple([Slot(s.registers, substitute(s.index, env)) for s in argument])
    if isinstance(argument, Address):
        return _placed(argument, env)
    return substitute(argument, env) if isinstance(argument, Expr) else argument


def _placed(address: Address, env: Mapping[str, int]) -> Address:
    return Address(address.buffer, tuple([substitute(x, env) for x in address.coordinate]))


def _peak(program: Program) -> int:
    """Live ranges over the unrolled steps: an input from its first use, an output until the end."""
    first: dict[tuple[Registers, int], int] = {}
    last: dict[tuple[Registers, int], int] = {}
    end = len(program.steps)
    for at, step in enumerate(program.steps):
        for argument in step.arguments:
            if isinstance(argument, tuple):
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
    """The nest, one instruction a line: unrolled, but for loops and branches of the run."""
    lines = [f"program {program.name}: {program.warps} warp{'s' * (program.warps > 1)}"]
    for b in program.buffers:
        aligned = f", aligned to {b.alignment} bytes" if b.alignment else ""
        shape = "[...]" if b.is_run_time else f"{list(b.shape)} row-major"
        lines.append(f"  buffer {b.name}: {b.dtype}{shape} in {b.space} memory{aligned}")
    for p in program.parameters:
        lines.append(f"  parameter {p.name}: {p.kind}" + (f", {p.lo} to {p.hi}" if p.lo is not None else ""))
    for m in program.maps:
        lines.append(f"  tensor map {m.name}: of {m.buffer.name}, boxes {list(m.box)}, swizzle {m.swizzle}")
    for r in program.registers:
        use = "in" if r in program.inputs else "out" if r in program.outputs else "scratch"
        use = "in, out" if r in program.inputs and r in program.outputs else use
        elements = "" if r.kind == dtype(r.dtype).ptx else f" of {r.dtype}"
        lines.append(f"  registers {r.name}[0..{r.count - 1}]: {r.kind}{elements}  ({r.role}, {use})")
    return "\n".join([*lines, *_body_text(unrolled(program.body), "  ")])


def _body_text(body: tuple[Statement, ...], indent: str) -> Iterator[str]:
    for s in body:
        if isinstance(s, Comment):
            yield f"{indent}# {s.text}"
        elif isinstance(s, Set):
            yield f"{indent}{s.variable.name} = {render(s.value, 'python')}"
        elif isinstance(s, Draw):
            yield f"{indent}{s.variable.name} = drawn from {address_text(s.counter)}"
        elif isinstance(s, If | While):
            yield f"{indent}{'if' if isinstance(s, If) else 'while'} {s.condition}:"
            yield from _body_text(s.body, indent + "    ")
            if isinstance(s, If) and s.orelse:
                yield f"{indent}else:"
                yield from _body_text(s.orelse, indent + "    ")
        else:
            yield indent + instr_text(s)  # type: ignore[arg-type]


def instr_text(instr: Instr) -> str:
    """The instruction with the registers' names in place of numbers."""
    return _named(instr.instruction, [
        [f"{s.registers.name}[{s.index}]" for s in a] if isinstance(a, tuple) else a for a in instr.arguments
    ])  # fmt: skip


def address_text(address: Address) -> str:
    """A place in a buffer."""
    inside = ", ".join(render(x, "python") for x in address.coordinate)
    return f"{address.buffer.name}({inside})"


def step_text(step: Step) -> str:
    """The same of an executed one."""
    return _named(
        step.instruction,
        [[f"{r.name}[{i}]" for r, i in a] if isinstance(a, tuple) else a for a in step.arguments],
    )


def _named(instruction: Instruction, arguments: Sequence[Any]) -> str:
    names: dict[str, list[str]] = {}
    for operand, a in zip(instruction.operands, arguments, strict=True):
        if isinstance(a, Address):
            bit = [f"bit {render(a.bit, 'python')}"] if a.buffer.per_unit > 1 else []
            names[operand.name] = [address_text(a), *bit]
        elif isinstance(a, Parameter | TensorMap):
            names[operand.name] = [a.name]
        else:
            names[operand.name] = a if isinstance(a, list) else [render(a, "python")]
    return instruction.text(names)


__all__ = ["Address", "Argument", "Buffer", "Comment", "Draw", "For", "If", "Instr", "Parameter", "Program",
           "Registers", "Set", "Slot", "Statement", "Step", "TensorMap", "View", "While", "address_text", "compiled",
           "every", "instr_text", "program_text", "step_text", "unrolled", "walk"]  # fmt: skip
