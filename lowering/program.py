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
from .isa.record import Instruction


@dataclass(frozen=True)
class Registers:
    """A group of registers of every lane, cut into containers of one element each, low bits first.

    Attributes:
        name: base name in every text, e.g. "a_words".
        role: the operand that lives there, "A", "B", "C" or "D".
        dtype: type of the elements.
        count: registers per lane.
        kind: register class, "f32", "f64" or "b32".  An f64 register is 64 bits wide, the others 32.
        container: bits that each element takes; the width of its type unless an instruction says otherwise (a byte for
            the 6- and 4-bit types of ``kind::f8f6f4``).

    Errors: LayoutError for a container that does not divide the register or does not hold the element.
    """

    name: str
    role: str
    dtype: str
    count: int
    kind: str
    container: int = 0

    def __post_init__(self) -> None:
        width = dtype(self.dtype).bits
        object.__setattr__(self, "container", self.container or width)
        if self.container < width or self.bits % self.container:
            raise LayoutError(
                f"registers {self.name}",
                f"{self.container} bits for each {self.dtype} do not cut a register of {self.bits}",
            )

    @property
    def bits(self) -> int:
        """Of one register."""
        return 64 if self.kind == "f64" else 32

    @property
    def per_register(self) -> int:
        """Elements that share a register."""
        return self.bits // self.container

    @property
    def words(self) -> int:
        """32-bit registers that the whole group takes of a lane."""
        return self.count * (self.bits // 32)

    @property
    def slots(self) -> int:
        """Elements that a lane holds."""
        return self.count * self.per_register


@dataclass(frozen=True)
class Buffer:
    """A row-major tensor in global memory, a parameter of a kernel.

    Attributes:
        name, role, dtype, shape: of the tensor.
        container: bits that each element takes, as in `Registers`.  Elements of less than a byte are packed, the one
            with the lower index in the lower bits; 6- and 4-bit types with a byte each sit in it as in a register.

    Errors: LayoutError for a container that is neither bytes nor a part of one, and for packed rows that are no whole
    bytes.
    """

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    container: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "container", self.container or dtype(self.dtype).bits)
        if self.container % 8 and 8 % self.container:
            raise LayoutError(
                f"buffer {self.name}", f"{self.container} bits for each {self.dtype} do not cut bytes"
            )
        if self.shape and self.shape[-1] * self.container % 8:
            raise LayoutError(
                f"buffer {self.name}",
                f"a row of {self.shape[-1]} {self.dtype} is no whole number of bytes, {self.per_unit} of them are one",
                "pad the rows",
            )

    @property
    def per_unit(self) -> int:
        """Elements in what memory is addressed by: 1, or those that share a byte."""
        return max(1, 8 // self.container)

    @property
    def unit_bytes(self) -> int:
        """Bytes of what memory is addressed by: an element, or the byte that several share."""
        return max(1, self.container // 8)


@dataclass(frozen=True)
class Slot:
    """Register number `index` of a group; the index may use loop variables."""

    registers: Registers
    index: Index


@dataclass(frozen=True)
class Address:
    """The element of a buffer at a logical coordinate, in terms of `lane` and `warp`."""

    buffer: Buffer
    coordinate: tuple[Index, ...]

    @property
    def element(self) -> Index:
        """Row-major offset in elements."""
        flat: Index = 0
        for x, n in zip(self.coordinate, self.buffer.shape, strict=True):
            flat = flat * n + x
        return flat

    @property
    def unit(self) -> Index:
        """`element` in what memory is addressed by: elements, or bytes where several share one."""
        per = self.buffer.per_unit
        return self.element // per if per > 1 else self.element

    @property
    def bit(self) -> Index:
        """The element's lowest bit in its unit; 0 unless several share a byte."""
        per = self.buffer.per_unit
        return self.element % per * self.buffer.container if per > 1 else 0


@dataclass(frozen=True)
class View:
    """An array view of a register group, in element slots: ``slot = offset + sum(index * stride)``."""

    registers: Registers
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def slot(self, *index: Index) -> Index:
        """The element slot of an index (which may use loop variables)."""
        total: Index = self.offset
        for x, n, s in zip(index, self.shape, self.strides, strict=True):
            if n > 1:
                total = total + x * s
        return total

    def word(self, *index: Index) -> Index:
        """The number of the register that holds the element at `index`."""
        return self.slot(*index) // self.registers.per_register

    def slots(self) -> list[int]:
        """Every slot, in row-major order of the index."""
        out = [self.offset]
        for n, s in zip(self.shape, self.strides, strict=True):
            out = [x + i * s for x in out for i in range(n)]
        return out


Argument = tuple[Slot, ...] | Address


@dataclass(frozen=True)
class Instr:
    """One instruction with its arguments, in the order of the record's operands."""

    instruction: Instruction
    arguments: tuple[Argument, ...]


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
        lines.append(f"  buffer {b.name}: {b.dtype}{list(b.shape)} row-major in global memory")
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
            names[operand.name] = [f"{argument.buffer.name}({inside})"]
        else:
            names[operand.name] = [f"{r.name}[{i}]" for r, i in argument]
    return step.instruction.text(names)
