"""PTX text: a program as a complete module with one entry.

Only text is made here; `assemble` makes machine code of it.
"""

from __future__ import annotations

from tilelayout import LayoutError

from ..isa.operand_map import LANES
from ..isa.record import Instruction
from ..program import Program
from ..target import Target
from .ptx_body import Module
from .ptx_parts import ptx_version
from .ptx_structured import StructuredModule


class TargetError(ValueError):
    """An instruction that the target does not have."""


def check_target(instruction: Instruction, target: Target) -> None:
    """Refuse an instruction that the target's architecture does not have.

    Errors: TargetError naming the instruction, the target and the first architecture that has it.
    """
    reason = instruction.refusal(target)
    if reason:
        raise TargetError(f"instruction {instruction.name} ({instruction.mnemonic}) {reason}")


def ptx_module(program: Program, target: Target, threads: int | None = None) -> str:
    """A PTX module with the program as its one entry.

    The entry takes a 64-bit address of global memory for each buffer, in order, and is launched with one CTA
    of `threads`: ``32 * program.warps`` by default, and where there are more, warp w is the program's
    ``w % program.warps``.  Shared buffers lie in shared memory that is declared here or, where that is too small for
    them, in dynamic shared memory, of which the launch must give `shared_memory.SharedMemory(...).dynamic` bytes.

    Errors: TargetError for an instruction that the target does not have.  ValueError for a program that
    starts from or ends in registers.  LayoutError for addresses that 64 bits do not hold or that name unknown
    variables, and more threads than the program's warps where these share memory.
    """
    for instruction in program.instructions:
        check_target(instruction, target)
    if program.inputs or program.outputs:
        names = ", ".join(r.name for r in (*program.inputs, *program.outputs))
        raise ValueError(
            f"program {program.name} passes registers ({names}): a module's entry passes buffers alone; "
            "lowering.compose.stage makes such a program"
        )
    own = LANES * program.warps
    if threads is not None and threads != own and any(b.space == "shared" for b in program.buffers):
        raise LayoutError(
            "ptx_module", f"the warps of {program.name} share memory: it takes {own} threads, got {threads}"
        )
    kind = Module if program.listed else StructuredModule
    return kind(program, target, threads or own).text()


__all__ = ["TargetError", "check_target", "ptx_module", "ptx_version"]
