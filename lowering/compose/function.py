"""A program over memory and registers as a function: which register groups it takes, and which it gives back."""

from __future__ import annotations

from dataclasses import replace

from ..program import Program, Registers


def as_function(program: Program) -> Program:
    """The straight program with its inputs and outputs said.

    A group is an input where one of its registers is read before anything has written it, and an output where the last
    step that touches it writes it: what is loaded only to be used stays inside.

    Errors: LayoutError for a program that is not straight.
    """
    written: set[tuple[Registers, int]] = set()
    exposed: dict[Registers, None] = {}
    last: dict[Registers, bool] = {}
    for step in program.steps:
        operands = list(zip(step.instruction.operands, step.arguments, strict=True))
        for operand, argument in operands:
            if operand.is_registers and operand.reads:
                exposed.update(dict.fromkeys([r for r, i in argument if (r, i) not in written]))
                last.update(dict.fromkeys([r for r, _ in argument], False))
        for operand, argument in operands:
            if operand.is_registers and operand.writes:
                written.update(argument)
                last.update(dict.fromkeys([r for r, _ in argument], True))
    inputs = tuple(exposed)
    outputs = tuple([r for r in program.registers if last.get(r)])
    rest = tuple([r for r in program.registers if r not in inputs and r not in outputs])
    return replace(program, inputs=inputs, outputs=outputs, scratch=rest)


__all__ = ["as_function"]
