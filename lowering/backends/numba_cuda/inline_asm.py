"""One instruction record as LLVM inline assembly.

Operands are numbered as LLVM wants them: what is written first, then what is read, then the old values of operands that
are updated in place, tied to their outputs.  A template that needs a label or a scratch register puts itself in
braces, since PTX scopes names by them and an expansion may be duplicated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from llvmlite import ir

from ...isa import Instruction, Operand

TYPES = {"f32": ir.FloatType(), "f64": ir.DoubleType(), "b32": ir.IntType(32)}
"""LLVM type by register class."""

_LETTERS = {"f32": "f", "f64": "d", "b32": "r", "shared": "r", "address": "l", "value": "r"}
_ESCAPES = str.maketrans({"$": "$$", '"': r"\22", "\\": r"\5c", "\n": r"\0a"})

Values = Mapping[str, Sequence[Any]]


def call(builder: ir.IRBuilder, instruction: Instruction, values: Values) -> dict[str, list[ir.Value]]:
    """Emit the instruction on `values`; returns the values that it writes, by operand, of `TYPES`.

    Args:
        builder: where.
        instruction: the record.
        values: by operand: registers of `TYPES`; an address as one integer, of 64 bits or 32 in shared memory, and
            where elements share bytes the lowest bit as a second one; a "value" as one integer.  Integers that are
            Python's are written into the text.

    Errors: TypeError for an instruction with an operand of another kind.
    """
    for operand in instruction.operands:
        if operand.kind not in _LETTERS:
            raise TypeError(f"{instruction.name}: operand {operand.name} is a {operand.kind}, no register")
    written = [o for o in instruction.operands if o.writes]
    read = [o for o in instruction.operands if not o.writes]
    updated = [o for o in written if o.reads]
    results = [TYPES[o.kind] for o in written for _ in range(o.count)]
    constraints = [f"={_LETTERS[o.kind]}" for o in written for _ in range(o.count)]
    numbers = _numbers(written)
    names = {name: [f"${number}" for number in found] for name, found in numbers.items()}
    arguments: list[ir.Value] = []
    for o in read:
        names[o.name] = []
        for i, x in enumerate(values[o.name]):
            if isinstance(x, int):
                names[o.name].append(str(x))
                continue
            names[o.name].append(f"${len(constraints)}")
            constraints.append(_LETTERS[o.kind] if i == 0 or o.kind in TYPES else "r")
            arguments.append(x)
    arguments += [x for o in updated for x in values[o.name]]
    constraints += [str(number) for o in updated for number in numbers[o.name]]
    memory = instruction.effect != "none"
    if memory:
        constraints.append("~{memory}")
    template = replace(instruction, template=instruction.template.translate(_ESCAPES))
    text = template.text(names)

    function = ir.FunctionType(_struct(results), [x.type for x in arguments])
    asm = ir.InlineAsm(function, text, ",".join(constraints), side_effect=memory)
    # Without side effects LLVM may move a call into a branch that some lanes don't take; `convergent` forbids it.
    attributes = [
        *(() if memory else ("readnone",)),
        *(("convergent",) if instruction.collective else ()),
        "nounwind",
    ]
    result = builder.call(asm, arguments, attrs=attributes)
    parts = [result] if len(results) == 1 else [builder.extract_value(result, i) for i in range(len(results))]
    return {o.name: [parts[number] for number in numbers[o.name]] for o in written}


def _numbers(operands: Sequence[Operand]) -> dict[str, range]:
    found: dict[str, range] = {}
    first = 0
    for o in operands:
        found[o.name] = range(first, first + o.count)
        first += o.count
    return found


def _struct(results: list[ir.Type]) -> ir.Type:
    if not results:
        return ir.VoidType()
    return results[0] if len(results) == 1 else ir.LiteralStructType(results)
