"""A program as LLVM values: words of fragments, places in memory and integers in, fragments out.

Moves and constants are plain LLVM values; every other instruction is one inline assembly, in the order of the text
where it touches memory.  Branches of the program become branches, and what either side writes is joined behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

from tilelayout import LayoutError
from tilelayout.expr import Index

from ...control import Condition, If, Set, comparisons
from ...isa import COPY, ZERO
from ...program import (
    Address,
    Buffer,
    Comment,
    Instr,
    Program,
    Registers,
    Statement,
    Step,
    step_text,
    unrolled,
)
from ..address import split_constant
from . import inline_asm
from .elements import halves, joined
from .fragment import WORD
from .index import IndexValues

_ZEROS = {i.name: inline_asm.TYPES[kind] for kind, i in ZERO.items()}
_COPIES = {i.name for i in COPY.values()}

Register = tuple[Registers, int]


def check(program: Program) -> Registers:
    """The one output of a program of registers alone.

    Errors: LayoutError for a program over buffers, without or with several outputs, or with two inputs of one role.
    """
    if program.buffers:
        names = ", ".join(b.name for b in program.buffers)
        raise LayoutError(
            "device_function", f"program {program.name} works on buffers ({names}), not registers"
        )
    if len(program.outputs) != 1:
        count = len(program.outputs)
        raise LayoutError("device_function", f"program {program.name} has {count} outputs, one is returned")
    roles = [r.role for r in program.inputs]
    if len(set(roles)) != len(roles):
        raise LayoutError(
            "device_function", f"program {program.name} has two inputs of one role: {', '.join(roles)}"
        )
    return program.outputs[0]


def emit(
    builder: ir.IRBuilder,
    program: Program,
    fragments: Sequence[ir.Value],
    memory: Mapping[Buffer, ir.Value] | None = None,
    variables: Mapping[str, ir.Value] | None = None,
) -> list[ir.Value]:
    """Emit the whole program; returns the fragments of its outputs, in their order.

    Args:
        builder: where.
        program: a program.
        fragments: of its inputs, in their order.
        memory: where each buffer begins: an integer of 64 bits, of 32 in shared memory.
        variables: integers of 64 bits by name.

    Words of an output that nothing writes are 0.
    Errors: LayoutError for a step that reads a register which holds nothing, or touches memory that was not given.
    """
    emission = _Emission(builder, IndexValues(builder, variables or {}), memory or {})
    for registers, fragment in zip(program.inputs, fragments, strict=True):
        for i in range(registers.count):
            emission.registers[registers, i] = _register(builder, registers, fragment, i)
    if program.straight:
        for step in program.steps:
            emission.step(step)
    else:
        emission.statements(unrolled(program.body))
    return [emission.fragment(output) for output in program.outputs]


def _register(builder: ir.IRBuilder, r: Registers, fragment: ir.Value, i: int) -> ir.Value:
    """Register i of a fragment, of the LLVM type of its class."""
    each = r.bits // WORD.width
    words = [builder.extract_value(fragment, each * i + part) for part in range(each)]
    return builder.bitcast(words[0] if each == 1 else joined(builder, *words), inline_asm.TYPES[r.kind])


def _words(builder: ir.IRBuilder, r: Registers, value: ir.Value, i: int) -> list[tuple[int, ir.Value]]:
    """The words of register i, with their places in the fragment."""
    each = r.bits // WORD.width
    bits = builder.bitcast(value, ir.IntType(r.bits))
    return list(enumerate([bits] if each == 1 else halves(builder, bits), each * i))


@dataclass
class _Emission:
    """What registers, variables and addresses are at one place of the code."""

    builder: ir.IRBuilder
    index: IndexValues
    memory: Mapping[Buffer, ir.Value]
    registers: dict[Register, ir.Value] = field(default_factory=dict)

    def fragment(self, output: Registers) -> ir.Value:
        """A register group as one value."""
        result: ir.Value = ir.Constant(ir.ArrayType(WORD, output.words), None)
        for i in range(output.count):
            if (output, i) in self.registers:
                for at, word in _words(self.builder, output, self.registers[output, i], i):
                    result = self.builder.insert_value(result, word, at)
        return result

    # --- statements -----------------------------------------------------------------------------

    def statements(self, body: Iterable[Statement]) -> None:
        """Statements without constant loops."""
        for s in body:
            if isinstance(s, Instr):
                self.step(Step(s.instruction, tuple([_resolved(a) for a in s.arguments])))
            elif isinstance(s, Set):
                self.index.assign(s.variable.name, self.index.value(s.value))
            elif isinstance(s, If):
                self._branch(s)
            elif not isinstance(s, Comment):
                raise LayoutError("device_function", f"{type(s).__name__} has no place in a device function")

    def _branch(self, s: If) -> None:
        """Both sides, each from here on, and behind them what either has left."""
        builder = self.builder
        condition = self._condition(s.condition)
        sides = [builder.append_basic_block(name) for name in ("then", "otherwise")]
        behind = builder.append_basic_block("behind")
        builder.cbranch(condition, *sides)
        ends: list[tuple[ir.Block, _Emission]] = []
        for block, body in zip(sides, (s.body, s.orelse), strict=True):
            builder.position_at_end(block)
            inner = _Emission(builder, self.index.inner(), self.memory, dict(self.registers))
            inner.statements(body)
            ends.append((builder.block, inner))
            builder.branch(behind)
        builder.position_at_end(behind)
        self.registers = self._joined([(block, inner.registers) for block, inner in ends])
        met = self._joined([(block, inner.index.variables) for block, inner in ends])
        for name, value in met.items():
            if self.index.variables.get(name) is not value:
                self.index.assign(name, value)

    def _joined(self, ends: list[tuple[ir.Block, dict[Any, ir.Value]]]) -> dict[Any, ir.Value]:
        """What is one value on both sides, and else a choice; what one side does not have is 0 there."""
        found: dict[Any, ir.Value] = {}
        for key in dict.fromkeys([k for _, values in ends for k in values]):
            values = [there.get(key) for _, there in ends]
            if values[0] is values[1]:
                found[key] = values[0]
                continue
            kind = next(v.type for v in values if v is not None)
            zero = ir.Constant(kind, 0)
            found[key] = choice = self.builder.phi(kind)
            for (block, _), value in zip(ends, values, strict=True):
                choice.add_incoming(zero if value is None else value, block)
        return found

    def _condition(self, condition: Condition) -> ir.Value:
        total: ir.Value = ir.Constant(ir.IntType(1), 1)
        for c in comparisons(condition):
            one = self.builder.icmp_signed(c.relation, self.index.value(c.left), self.index.value(c.right))
            total = self.builder.and_(total, one)
        return total

    # --- instructions ---------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """One instruction."""
        values: dict[str, Sequence[Any]] = {}
        places: dict[str, Sequence[Register]] = {}
        for operand, argument in zip(step.instruction.operands, step.arguments, strict=True):
            if isinstance(argument, Address):
                values[operand.name] = self._address(step, argument)
            elif operand.kind == "value":
                values[operand.name] = [self._integer(argument)]
            elif not operand.is_registers:
                raise LayoutError("device_function", f"{step_text(step)} takes what only a launch gives")
            else:
                places[operand.name] = argument
                if operand.reads:
                    values[operand.name] = self._read(step, argument)
        for name, results in self._execute(step, values).items():
            self.registers.update(zip(places[name], results, strict=True))

    def _read(self, step: Step, argument: Sequence[Register]) -> list[ir.Value]:
        empty = [f"{r.name}[{i}]" for r, i in argument if (r, i) not in self.registers]
        if empty:
            raise LayoutError(
                "device_function", f"{step_text(step)} reads {', '.join(empty)}, which holds nothing"
            )
        return [self.registers[x] for x in argument]

    def _integer(self, x: Index) -> Any:
        return x if isinstance(x, int) else self.builder.trunc(self.index.value(x), WORD)

    def _address(self, step: Step, address: Address) -> list[Any]:
        """An address; its constant part is added last, so that the accesses of a lane share the rest."""
        buffer = address.buffer
        if buffer not in self.memory:
            raise LayoutError(
                "device_function", f"{step_text(step)} touches memory, registers alone are expected"
            )
        base = self.memory[buffer]
        moving, fixed = split_constant(address.unit * buffer.unit_bytes)
        key = (buffer, moving)
        if key not in self.index.bases:
            value = self.index.value(moving)
            if base.type.width < value.type.width:
                value = self.builder.trunc(value, base.type)
            self.index.bases[key] = self.builder.add(base, value)
        place = self.builder.add(self.index.bases[key], ir.Constant(base.type, fixed))
        return [place, self._integer(address.bit)] if buffer.per_unit > 1 else [place]

    def _execute(self, step: Step, values: dict[str, Sequence[Any]]) -> dict[str, Sequence[ir.Value]]:
        name = step.instruction.name
        if name in _ZEROS:
            return {"d": [ir.Constant(_ZEROS[name], 0)]}
        if name in _COPIES:
            return {"d": values["a"]}
        return inline_asm.call(self.builder, step.instruction, values)  # type: ignore[return-value]


def _resolved(argument: Any) -> Any:
    """Registers by number, all else as it is."""
    return tuple([(s.registers, s.index) for s in argument]) if isinstance(argument, tuple) else argument
