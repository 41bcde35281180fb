"""Records whose meaning is a protocol: instructions that wait, arrive, fence, or begin what is done later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .record import Instruction, Operand

FENCES = "Parallel Synchronization and Communication Instructions: membar, fence"
"""The section of the PTX ISA that defines fences."""


def nothing(values: Mapping[str, Any]) -> dict[str, Any]:
    """No register changes; the reference machine knows what is ordered."""
    return {}


def ordering(
    name: str,
    template: str,
    operands: tuple[Operand, ...],
    section: str,
    protocol: str,
    sm: int,
    ptx: tuple[int, int],
    *,
    collective: bool = False,
    specific: tuple[int, ...] = (),
) -> Instruction:
    """A record that writes no register, since what it does is the protocol (`isa.protocols`) of that name.

    Its effect is on memory, so that nothing is moved across it.
    """
    return Instruction(
        name,
        template,
        operands,
        sm,
        ptx,
        section,
        nothing,
        effect="memory",
        collective=collective,
        specific=specific,
        protocol=protocol,
    )
