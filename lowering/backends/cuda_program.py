"""CUDA C++ text of a program over buffers, global and shared: one ``__global__`` kernel to read, without includes.

Every instruction but moves and constants is a ``__device__`` helper around its PTX (`cuda_helpers`).
"""

from __future__ import annotations

from tilelayout.expr import Index, render

from ..isa.operand_map import LANES
from ..program import Address, Comment, Program, Step, walk
from .cuda_kernel import KernelText
from .cuda_structured import StructuredText
from .cuda_text import PLAIN, coordinate_lines
from .names import comment_line


def cuda_program(program: Program) -> str:
    """CUDA C++ of a program over buffers alone; the entry is ``extern "C" __global__``.

    The entry takes a pointer to each buffer in global memory, the program's parameters and its tensor maps, in order;
    it is launched with CTAs of ``32 * program.warps`` threads, with as much dynamic shared memory as
    `shared_memory.SharedMemory` says.

    Errors: ValueError for a program that starts from or ends in registers.  LayoutError for an address that C cannot
    spell or 64 bits do not hold.
    """
    if program.inputs or program.outputs:
        names = ", ".join(r.name for r in (*program.inputs, *program.outputs))
        raise ValueError(f"program {program.name} passes registers ({names}): a kernel passes buffers alone")
    if program.listed:
        return _StraightText(program).text()
    return StructuredText(program).text()


class _StraightText(KernelText):
    """The text of a program of one CTA without branches."""

    def text(self) -> str:
        lines = [self.line(s) for s, _ in walk(self.program.body, {})]
        arguments = [a for step in self.program.steps for a in step.arguments]
        places = coordinate_lines(f"cuda_program {self.program.name}", arguments)
        body = [*self.shared_arrays(), *places, *self.register_arrays(), "", *lines]
        return self.whole([], str(LANES * self.program.warps), self.pointer_parameters(), body)

    def integer(self, x: Index) -> str:
        return render(x, "c")

    def line(self, statement: Comment | Step) -> str:
        if isinstance(statement, Comment):
            return comment_line(statement.text)
        instruction = statement.instruction
        kinds: list[str] = []
        texts: dict[str, list[str]] = {}
        for operand, argument in zip(instruction.operands, statement.arguments, strict=True):
            if isinstance(argument, Address):
                kinds.append(operand.kind)
                texts[operand.name] = self.address(operand, argument, instruction)
            else:
                kinds.append(argument[0][0].kind)
                texts[operand.name] = [f"{self.arrays[r]}[{i}]" for r, i in argument]
        plain = PLAIN.get(instruction.name)
        if plain is not None:
            return plain.format_map({name: found[0] for name, found in texts.items()})
        arguments = ", ".join([text for found in texts.values() for text in found])
        return f"{self.helpers.name(instruction, tuple(kinds))}({arguments});"


__all__ = ["cuda_program"]
