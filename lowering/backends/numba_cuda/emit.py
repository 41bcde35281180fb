"""A register program as LLVM values: words of fragments in, a fragment out.

Moves and constants are plain LLVM values; every other instruction is one inline assembly.  Memory stays outside: a
program over buffers is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from tilelayout import LayoutError

from ...isa import COPY, ZERO
from ...program import Address, Program, Registers, Step, step_text
from . import inline_asm
from .elements import halves, joined
from .fragment import WORD

_ZEROS = {i.name: inline_asm.TYPES[kind] for kind, i in ZERO.items()}
_COPIES = {i.name for i in COPY.values()}

State = dict[tuple[Registers, int], ir.Value]


def check(program: Program) -> Registers:
    """The one output of a program that can be emitted.

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


def emit(builder: ir.IRBuilder, program: Program, fragments: Sequence[ir.Value]) -> ir.Value:
    """Emit the whole program on fragments of its inputs, in their order; returns its output's fragment.

    Words of the output that nothing writes are 0.
    Errors: LayoutError for a step that reads a register which holds nothing, or touches memory.
    """
    output = check(program)
    state: State = {}
    for registers, fragment in zip(program.inputs, fragments, strict=True):
        for i in range(registers.count):
            state[registers, i] = _register(builder, registers, fragment, i)
    for step in program.steps:
        _step(builder, step, state)
    result: ir.Value = ir.Constant(ir.ArrayType(WORD, output.words), None)
    for i in range(output.count):
        if (output, i) in state:
            for at, word in _words(builder, output, state[output, i], i):
                result = builder.insert_value(result, word, at)
    return result


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


def _step(builder: ir.IRBuilder, step: Step, state: State) -> None:
    values: dict[str, list[ir.Value]] = {}
    places: dict[str, Sequence[tuple[Registers, int]]] = {}
    for operand, argument in zip(step.instruction.operands, step.arguments, strict=True):
        if isinstance(argument, Address):
            raise LayoutError(
                "device_function", f"{step_text(step)} touches memory, registers alone are expected"
            )
        places[operand.name] = argument
        if operand.reads:
            empty = [f"{r.name}[{i}]" for r, i in argument if (r, i) not in state]
            if empty:
                raise LayoutError(
                    "device_function", f"{step_text(step)} reads {', '.join(empty)}, which holds nothing"
                )
            values[operand.name] = [state[x] for x in argument]
    for name, results in _execute(builder, step, values).items():
        state.update(zip(places[name], results, strict=True))


def _execute(
    builder: ir.IRBuilder, step: Step, values: dict[str, list[ir.Value]]
) -> dict[str, list[ir.Value]]:
    name = step.instruction.name
    if name in _ZEROS:
        return {"d": [ir.Constant(_ZEROS[name], 0)]}
    if name in _COPIES:
        return {"d": values["a"]}
    return inline_asm.call(builder, step.instruction, values)
