"""CUDA C++ text of a program over buffers, global and shared: one ``__global__`` kernel to read, without includes.

Every instruction but moves and constants is a ``__device__`` helper around its PTX, memory accesses too: what is read
here is what the record says.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tilelayout import LayoutError
from tilelayout.expr import render, variables

from ..isa.operand_map import LANES
from ..isa.record import Instruction, Operand
from ..program import Address, Comment, Program, Registers, Step, walk
from .address import index_bits, packing
from .cuda_text import (
    CONSTRAINT,
    COORDINATES,
    KEYWORDS,
    PLAIN,
    REGISTER_TYPE,
    element_type,
    function,
    in_sum,
    no_macro,
)  # fmt: skip
from .names import Names, comment_line
from .shared_memory import SharedMemory

POINTER = {"address": ("const void *", "l"), "shared": ("unsigned ", "r")}
"""Kind of an address operand -> the type of a helper's parameter, and its constraint."""

SHARED_ADDRESS = """__device__ __forceinline__ unsigned {name}(const void *place)
{{
    return static_cast<unsigned>(__cvta_generic_to_shared(place));
}}"""

Key = tuple[str, tuple[str, ...]]
"""A helper: the instruction's name, and the class of each operand's registers (which may be another than it says)."""


def cuda_program(program: Program) -> str:
    """CUDA C++ of a program over buffers alone; the entry is ``extern "C" __global__``.

    The entry takes a pointer to each buffer in global memory, in order, and is launched with one CTA of
    ``32 * program.warps`` threads, with as much dynamic shared memory as `shared_memory.SharedMemory` says.

    Errors: ValueError for a program that starts from or ends in registers.  LayoutError for an address that C cannot
    spell or 64 bits do not hold.
    """
    if program.inputs or program.outputs:
        names = ", ".join(r.name for r in (*program.inputs, *program.outputs))
        raise ValueError(f"program {program.name} passes registers ({names}): a kernel passes buffers alone")
    return _Text(program).text()


class _Text:
    """The text under construction."""

    def __init__(self, program: Program) -> None:
        self.program, self.names = program, Names(KEYWORDS)
        self.shared = SharedMemory.of(program)
        self.entry = self.names.one(program.name)
        self.arrays = {r: self.names.one(r.name) for r in program.registers}
        self.pointers = {b: self.names.one(no_macro(b.name)) for b in program.buffers}
        self.dynamic, self.place_of = self.names.one("dynamic_shared"), self.names.one("shared_address")
        self.helpers: dict[Key, tuple[str, Instruction]] = {}

    def text(self) -> str:
        lines = [self.line(s) for s, _ in walk(self.program.body, {})]
        registers = [f"{REGISTER_TYPE[r.kind]} {name}[{r.count}];" for r, name in self.arrays.items()]
        passed = [b for b in self.program.buffers if b.space == "global"]
        written = {
            a.buffer
            for step in self.program.steps
            if step.instruction.stores
            for a in step.arguments
            if isinstance(a, Address)
        }
        parameters = [
            f"{'' if b in written else 'const '}{element_type(b)} *{self.pointers[b]}" for b in passed
        ]
        notes = [f"// {self.pointers[b]}: {b.dtype}{list(b.shape)}{packing(b)}" for b in self.program.buffers]
        body = [*self.shared_arrays(), *self.coordinates(), *registers, "", *lines]
        threads = LANES * self.program.warps
        head = f'extern "C" __global__ __launch_bounds__({threads}) void {self.entry}('
        kernel = "\n".join([*notes, function(head, parameters, body)])
        first = [SHARED_ADDRESS.format(name=self.place_of)] if self.shared.offsets else []
        helpers = [_helper(i, name, key) for key, (name, i) in self.helpers.items()]
        return "\n\n".join([*first, *helpers, kernel]) + "\n"

    def shared_arrays(self) -> list[str]:
        """Each array by itself, or all within dynamic shared memory."""
        if not self.shared.dynamic:
            return [
                f"__shared__ __align__({b.alignment}) {element_type(b)} {self.pointers[b]}[{b.bytes // b.unit_bytes}];"
                for b in self.shared.offsets
            ]
        most = max(b.alignment for b in self.shared.offsets)
        array = f"extern __shared__ __align__({most}) unsigned char {self.dynamic}[];  // {self.shared.dynamic} bytes"
        return [array] + [
            f"{element_type(b)} *const {self.pointers[b]} = "
            f"reinterpret_cast<{element_type(b)} *>({self.dynamic} + {at});"
            for b, at in self.shared.offsets.items()
        ]

    def coordinates(self) -> list[str]:
        """Declarations of the coordinates that are used, wide enough for every index."""
        addresses = [a for step in self.program.steps for a in step.arguments if isinstance(a, Address)]
        kind = "long long" if any(index_bits(a) == 64 for a in addresses) else "int"
        used = {v.name for a in addresses for v in variables(a.element)}
        if not used <= COORDINATES.keys():
            raise LayoutError(
                f"cuda_program {self.program.name}",
                f"an address uses {', '.join(sorted(used - COORDINATES.keys()))}",
                f"a kernel has {' and '.join(COORDINATES)}",
            )
        return [f"const {kind} {v} = {value};" for v, value in COORDINATES.items() if v in used]

    def line(self, statement: Comment | Step) -> str:
        if isinstance(statement, Comment):
            return f"// {comment_line(statement.text)}".rstrip()
        instruction = statement.instruction
        texts = {
            operand.name: self.argument(operand, argument, instruction)
            for operand, argument in zip(instruction.operands, statement.arguments, strict=True)
        }
        plain = PLAIN.get(instruction.name)
        if plain is not None:
            return plain.format_map({name: found[0] for name, found in texts.items()})
        arguments = ", ".join([text for found in texts.values() for text in found])
        return f"{self.helper(statement)}({arguments});"

    def argument(
        self,
        operand: Operand,
        argument: Address | tuple[tuple[Registers, int], ...],
        instruction: Instruction,
    ) -> list[str]:
        """The arguments of a helper for one operand."""
        if not isinstance(argument, Address):
            return [f"{self.arrays[r]}[{i}]" for r, i in argument]
        unit = argument.unit
        pointer = self.pointers[argument.buffer]
        place = pointer if unit == 0 else f"{pointer} + {in_sum(render(unit, 'c'))}"
        out = [f"{self.place_of}({place})" if argument.buffer.space == "shared" else place]
        return [*out, render(argument.bit, "c")] if _has_bit(operand, instruction) else out

    def helper(self, step: Step) -> str:
        """The name of the function around an instruction, for registers of these classes."""
        kinds = tuple([
            operand.kind if isinstance(a, Address) else a[0][0].kind
            for operand, a in zip(step.instruction.operands, step.arguments, strict=True)
        ])  # fmt: skip
        key = (step.instruction.name, kinds)
        if key not in self.helpers:
            wish = "ptx_" + re.sub(r"\W+", "_", step.instruction.mnemonic)
            self.helpers[key] = self.names.one(wish), step.instruction
        return self.helpers[key][0]


def _has_bit(operand: Operand, instruction: Instruction) -> bool:
    """Whether the instruction takes an element out of a byte that it shares."""
    return operand.is_address and f"{{{operand.name}_bit}}" in instruction.template


def _helper(instruction: Instruction, name: str, key: Key) -> str:
    """A function with one instruction as inline asm; its parameters are the operands, in order."""
    kinds = {o.name: kind for o, kind in zip(instruction.operands, key[1], strict=True)}
    constraints: dict[bool, list[str]] = {True: [], False: []}
    places: dict[str, list[str]] = {}
    parameters: dict[str, list[str]] = {}
    # Outputs come first in an asm statement, and are numbered first.
    for operand in sorted(instruction.operands, key=lambda o: not o.writes):
        kind, base = kinds[operand.name], operand.name.lower()
        if operand.is_address:
            entries = [(base, *POINTER[kind])]
            entries += [(f"{base}_bit", "unsigned ", "r")] if _has_bit(operand, instruction) else []
        else:
            reference = "&" if operand.writes else ""
            entries = [
                (f"{base}{i}", f"{REGISTER_TYPE[kind]} {reference}", CONSTRAINT[kind])
                for i in range(operand.count)
            ]
        first = sum(map(len, places.values()))
        places[operand.name] = [f"%{first + i}" for i in range(len(entries))]
        parameters[operand.name] = [f"{kind}{name}" for name, kind, _ in entries]
        sign = {"update": "+", "write": "=", "read": ""}[operand.access]
        if operand.writes and instruction.template.startswith("{{"):
            sign += "&" * (sign == "=")  # written before the last input is read
        constraints[operand.writes] += [f'"{sign}{letter}"({name})' for name, _, letter in entries]
    asm = "asm volatile" if instruction.collective or instruction.effect != "none" else "asm"
    clobber = ' : "memory"' if instruction.effect != "none" else ""
    doubled = replace(instruction, template=instruction.template.replace("%", "%%"))
    lines = [
        f'{asm}("{doubled.text(places)}"',
        f"    : {', '.join(constraints[True])}".rstrip(),
        f"    : {', '.join(constraints[False])}{clobber});",
    ]
    given = [text for o in instruction.operands for text in parameters[o.name]]
    return function(f"__device__ __forceinline__ void {name}(", given, lines)
