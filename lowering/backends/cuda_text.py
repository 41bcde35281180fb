"""CUDA C++ text: a kernel to read, which nvrtc and nvcc compile as it is, without includes.

A ``__device__`` helper for each instruction, a ``__device__`` function with the unrolled register program on
plain arrays, and a ``__global__`` kernel that loads the fragments, calls it and stores the result.  Elements
of 16 bits are carried as bits (``unsigned short``, pairs in ``unsigned``), and narrower ones as bytes, so no type of a
header is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tilelayout import LayoutError
from tilelayout.expr import render, variables

from ..compose.staged import Kernel
from ..isa import COPY, GATHER, LOAD_WORD, SCATTER, STORE_WORD, ZERO
from ..isa.operand_map import LANES
from ..isa.record import Instruction
from ..program import Address, Buffer, Comment, Instr, Program, Registers, Slot, Step, walk
from .address import index_bits, packing
from .names import Names, comment_line

KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t
    class compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield
    decltype default delete do double dynamic_cast else enum explicit export extern false float for friend
    goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast requires return short signed sizeof static static_assert
    static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned
    using virtual void volatile wchar_t while xor xor_eq threadIdx blockIdx blockDim gridDim warpSize main
    lane warp
""".split()

REGISTER_TYPE = {"f32": "float", "f64": "double", "b32": "unsigned"}
CONSTRAINT = {"f32": "f", "f64": "d", "b32": "r"}
_FLOATS = {"float32": "float", "float64": "double"}
_UNITS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}  # by bytes
COORDINATES = {"lane": "threadIdx.x & 31", "warp": "threadIdx.x >> 5"}

# What C++ says by itself; every other instruction gets a helper.
_NOTHING = {"f32": "0.0f", "f64": "0.0", "b32": "0u"}
PLAIN = {
    **{ZERO[kind].name: f"{{d}} = {nothing};" for kind, nothing in _NOTHING.items()},  # type: ignore[index]
    **{copy.name: "{d} = {a};" for copy in COPY.values()},
}
_LOADS = {load.name for load in LOAD_WORD.values()}
_STORES = {store.name for store in STORE_WORD.values()}
_GATHERS = {load.name: width for width, load in GATHER.items()}
_SCATTERS = {store.name: width for width, store in SCATTER.items()}


def cuda_source(kernel: Kernel) -> str:
    """CUDA C++ of a kernel: its helpers, its register program, and the entry ``extern "C" __global__``.

    The entry takes a pointer to global memory for each buffer, in order, and is launched with one CTA of
    ``kernel.threads`` threads.

    Errors: ValueError for a memory instruction that has no C++ here.  LayoutError for an address that C
    cannot spell or 64 bits do not hold.
    """
    return _Source(kernel).text()


def no_macro(name: str) -> str:
    """A tensor's name, out of the way of what compilers define: capitals (``NULL``) and leading underscores."""
    return name if re.fullmatch(r"[A-Z]|(?=\w*[a-z])[A-Za-z]\w*", name, re.ASCII) else f"tensor_{name}"


class _Source:
    """The text under construction."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.core = kernel, kernel.core
        self.shared = Names(KEYWORDS)
        self.helpers: dict[str, str] = {
            i.name: self.shared.one("ptx_" + re.sub(r"\W+", "_", i.mnemonic))
            for i in self.core.instructions
            if i.name not in PLAIN
        }
        self.function = self.shared.one(self.core.name)
        self.entry = self.shared.one(kernel.name)
        self.arrays: dict[Registers, str] = {r: self.shared.one(r.name) for r in self.core.registers}
        self.pointers: dict[Buffer, str] = {b: self.shared.one(no_macro(b.name)) for b in kernel.buffers}

    def text(self) -> str:
        functions = [self.device_function(), self.global_function()]
        instructions = {i.name: i for i in self.core.instructions}
        helpers = [_helper(instructions[name], function) for name, function in self.helpers.items()]
        return "\n\n".join([*helpers, *functions]) + "\n"

    # --- the register program -----------------------------------------------------------------------

    def device_function(self) -> str:
        written = _written(self.core)
        passed = tuple(dict.fromkeys((*self.core.outputs, *self.core.inputs)))
        parameters = [f"{'' if r in written else 'const '}{self.declaration(r)}" for r in passed]
        lines = [f"{self.declaration(r)};" for r in self.core.registers if r not in passed]
        for statement, _ in walk(self.core.body, {}):
            if isinstance(statement, Comment):
                lines.append(comment_line(statement.text))
            else:
                lines.append(self.statement(statement))
        head = f"__device__ __forceinline__ void {self.function}("
        return function(head, parameters, lines)

    def declaration(self, r: Registers) -> str:
        return f"{REGISTER_TYPE[r.kind]} {self.arrays[r]}[{r.count}]"

    def statement(self, step: Step) -> str:
        registers: dict[str, list[str]] = {}
        for operand, argument in zip(step.instruction.operands, step.arguments, strict=True):
            if isinstance(argument, Address):
                raise ValueError(
                    f"{self.core.name}: {step.instruction.name} is a memory access in a register program"
                )
            registers[operand.name] = [f"{self.arrays[r]}[{i}]" for r, i in argument]
        plain = PLAIN.get(step.instruction.name)
        if plain is not None:
            return plain.format_map({name: texts[0] for name, texts in registers.items()})
        arguments = ", ".join([text for texts in registers.values() for text in texts])
        return f"{self.helpers[step.instruction.name]}({arguments});"

    # --- what surrounds it ----------------------------------------------------------------------------

    def global_function(self) -> str:
        stored = {a.buffer for i in self.kernel.stores for a in i.arguments if isinstance(a, Address)}
        parameters = [
            f"{'' if b in stored else 'const '}{element_type(b)} *{name}" for b, name in self.pointers.items()
        ]
        notes = [
            f"// {name}: {b.dtype}{list(b.shape)}, row-major{packing(b)}" for b, name in self.pointers.items()
        ]
        loads = [self.load(i) for i in self.kernel.loads]
        stores = [self.store(i) for i in self.kernel.stores]
        passed = tuple(dict.fromkeys((*self.core.outputs, *self.core.inputs)))
        call = f"{self.function}({', '.join([self.arrays[r] for r in passed])});"
        declarations = [*self.coordinates(), *[f"{self.declaration(r)};" for r in passed]]
        lines = [*declarations, "", *loads, "", call, "", *stores]
        head = f'extern "C" __global__ __launch_bounds__({self.kernel.threads}) void {self.entry}('
        return "\n".join([*notes, function(head, parameters, lines)])

    def coordinates(self) -> list[str]:
        """Of warps beyond the program's, each is again one of them."""
        arguments = [a for i in (*self.kernel.loads, *self.kernel.stores) for a in i.arguments]
        warps = self.core.warps
        again = {"warp": f"({COORDINATES['warp']}) % {warps}"} if self.kernel.threads > LANES * warps else {}
        return coordinate_lines(f"cuda_source {self.kernel.name}", arguments, COORDINATES | again)

    def load(self, i: Instr) -> str:
        target, *places = i.arguments
        register = self.register(target)
        width = _GATHERS.get(i.instruction.name)
        if width is not None:
            parts = [self.bits(place, width) for place in places]
            shifted = [f"{part} << {width * n}" if n else part for n, part in enumerate(parts)]
            return f"{register} = {' | '.join(shifted)};"
        if i.instruction.name not in _LOADS:
            raise ValueError(f"{self.kernel.name}: {i.instruction.name} has no C++ as a load")
        return f"{register} = {self.word(places[0], i.instruction.operands[0].kind, 'const ')};"

    def store(self, i: Instr) -> str:
        *places, source = i.arguments
        width = _SCATTERS.get(i.instruction.name)
        if width is not None:
            register = self.register(source)
            parts = [f"{register} >> {width * n}" if n else register for n in range(len(places))]
            kind = _UNITS[width // 8]
            return " ".join(
                [f"{self.element(p)} = ({kind})({x});" for p, x in zip(places, parts, strict=True)]
            )
        if i.instruction.name not in _STORES:
            raise ValueError(f"{self.kernel.name}: {i.instruction.name} has no C++ as a store")
        return f"{self.word(places[0], i.instruction.operands[1].kind, '')} = {self.register(source)};"

    def register(self, argument: object) -> str:
        if not (isinstance(argument, tuple) and len(argument) == 1 and isinstance(argument[0], Slot)):
            raise ValueError(f"{self.kernel.name}: one register is expected, got {argument}")
        return f"{self.arrays[argument[0].registers]}[{argument[0].index}]"

    def element(self, place: object) -> str:
        buffer, index = self.place(place)
        return f"{self.pointers[buffer]}[{index}]"

    def bits(self, place: object, width: int) -> str:
        """An element as an unsigned rvalue, nothing above its bits."""
        element = f"(unsigned){self.element(place)}"
        if not isinstance(place, Address) or place.buffer.per_unit == 1:
            return element
        return f"({element} >> {in_sum(render(place.bit, 'c'))} & {(1 << width) - 1}u)"

    def word(self, place: object, kind: str, qualifier: str) -> str:
        """The bits of a register at an address as an lvalue of its type."""
        buffer, index = self.place(place)
        if element_type(buffer) == REGISTER_TYPE[kind]:
            return f"{self.pointers[buffer]}[{index}]"
        return f"*reinterpret_cast<{qualifier}{REGISTER_TYPE[kind]} *>({self.pointers[buffer]} + {in_sum(index)})"

    def place(self, place: object) -> tuple[Buffer, str]:
        if not isinstance(place, Address):
            raise ValueError(f"{self.kernel.name}: an address is expected, got {place}")
        return place.buffer, render(place.unit, "c")


def coordinate_lines(
    text: str, arguments: Iterable[object], spelled: Mapping[str, str] = COORDINATES
) -> list[str]:
    """Declarations of the coordinates that addresses among the arguments use, wide enough for every index.

    Errors: LayoutError, naming the text, for an address with another variable.
    """
    addresses = [a for a in arguments if isinstance(a, Address)]
    # C computes in the type of the variables.
    kind = "long long" if any(index_bits(a) == 64 for a in addresses) else "int"
    used = {v.name for a in addresses for v in variables(a.element)}  # of its unit and bit too
    if not used <= spelled.keys():
        raise LayoutError(
            text,
            f"an address uses {', '.join(sorted(used - spelled.keys()))}",
            f"a kernel has {' and '.join(spelled)}",
        )
    return [f"const {kind} {v} = {value};" for v, value in spelled.items() if v in used]


def in_sum(index: str) -> str:
    return index if index.isalnum() else f"({index})"


def element_type(buffer: Buffer) -> str:
    return _FLOATS.get(buffer.dtype) or _UNITS[buffer.unit_bytes]


def _written(program: Program) -> set[Registers]:
    """The groups that some instruction writes."""
    return {
        register
        for step in program.steps
        for operand, argument in zip(step.instruction.operands, step.arguments, strict=True)
        if operand.writes and not isinstance(argument, Address)
        for register, _ in argument
    }


def function(head: str, parameters: list[str], lines: list[str]) -> str:
    body = "\n".join([f"    {line}".rstrip() for line in lines])
    inside = f"\n    {f',{chr(10)}    '.join(parameters)}" if parameters else ""
    return f"{head}{inside})\n{{\n{body}\n}}"


def _helper(instruction: Instruction, name: str) -> str:
    """A function with one instruction as inline asm; its parameters are the operands' registers, in order."""
    parameters: list[str] = []
    constraints: dict[bool, list[str]] = {True: [], False: []}
    places: dict[str, list[str]] = {}
    # Outputs come first in an asm statement, and are numbered first.
    for operand in sorted(instruction.operands, key=lambda o: not o.writes):
        names = [f"{operand.name.lower()}{i}" for i in range(operand.count)]
        first = sum(map(len, places.values()))
        places[operand.name] = [f"%{first + i}" for i in range(operand.count)]
        sign = {"update": "+", "write": "=", "read": ""}[operand.access]
        constraints[operand.writes] += [f'"{sign}{CONSTRAINT[operand.kind]}"({n})' for n in names]
    for operand in instruction.operands:
        reference = "&" if operand.writes else ""
        kind = REGISTER_TYPE[operand.kind]
        parameters.append(
            ", ".join([f"{kind} {reference}{operand.name.lower()}{i}" for i in range(operand.count)])
        )
    volatile = " volatile" if instruction.collective or instruction.effect != "none" else ""
    # In inline asm a % names an operand, unless it is doubled.
    doubled = replace(instruction, template=instruction.template.replace("%", "%%"))
    text = doubled.text(places).replace("\n", "\\n")
    lines = [
        f'asm{volatile}("{text}"',
        f"    : {', '.join(constraints[True])}",
        f"    : {', '.join(constraints[False])});",
    ]
    return function(f"__device__ __forceinline__ void {name}(", parameters, lines)
