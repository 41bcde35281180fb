"""CUDA C++ text of a program with loops, branches and parameters: one ``__global__`` kernel to read, without includes.

Variables keep their names and are declared with the width that their bounds ask for; an expression that 32 bits do not
hold is computed in ``long long``.
"""

from __future__ import annotations

import re
from textwrap import wrap

from tilelayout import LayoutError
from tilelayout.expr import Bitwise, Division, Index, Polynomial, Shift, render, variables

from ..control import (
    GRID,
    Compare,
    Condition,
    Draw,
    Parameter,
    Set,
    TensorMap,
    assigned,
    comparisons,
    mentioned,
)
from ..isa.operand_map import LANES
from ..isa.parameter import LOAD_PARAMETER
from ..isa.record import Instruction, Operand
from ..program import Address, Argument, Comment, If, Instr, Program, Statement, While, every, unrolled
from .address import byte_offset, finite, width
from .cuda_helpers import TENSOR_MAP, is_constant
from .cuda_kernel import KernelText
from .cuda_text import PLAIN, in_sum, no_macro
from .names import comment_line

_NUMBER = {"s32": "int", "s64": "long long", "f32": "float", "f64": "double"}
_INTEGER = {32: "int", 64: "long long"}
_PLACES = {
    "lane": "threadIdx.x & 31",
    # The same in all lanes of a warp, which the compiler cannot see from the thread's number.
    "warp": "__shfl_sync(0xffffffff, threadIdx.x >> 5, 0)",
    **{name: text for name, (_, text) in GRID.items()},
}
_PLAIN = PLAIN | {load.name: "{d} = {p};" for load in LOAD_PARAMETER.values()}
_WIDTH = 100
"""Of a declaration, about."""
_NAME = re.compile(r"[^\W\d]\w*")


class StructuredText(KernelText):
    """The text under construction."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.names.one("TensorMap")
        self.body = unrolled(program.body)
        self.numbers = {p: self.names.one(no_macro(p.name)) for p in program.parameters}
        self.maps: dict[TensorMap, str] = {m: self.names.one(no_macro(m.name)) for m in program.maps}
        self.assigned: dict[str, int] = {}  # variable -> bits, the most that an assignment asks for
        for v in assigned(self.body):
            self.assigned[v.name] = max(width(v), self.assigned.get(v.name, 32))
        self.spelled = {p.name: name for p, name in self.numbers.items() if p.kind.startswith("s")}
        self.spelled |= {n: self.names.one(no_macro(n)) for n in self.assigned}
        self.spelled |= {n: n if n in ("lane", "warp") else self.names.one(n) for n in _PLACES}

    def text(self) -> str:
        lines = self.statements(self.body, "")
        before = [TENSOR_MAP] if self.maps else []
        parameters = self.pointer_parameters()
        parameters += [f"{_NUMBER[p.kind]} {name}" for p, name in self.numbers.items()]
        parameters += [f"const __grid_constant__ TensorMap {name}" for name in self.maps.values()]
        bounds = f"{LANES * self.program.warps}"
        bounds += f", {self.program.resident}" if self.program.resident else ""
        declared = [*self.shared_arrays(), *self.places(), *self.variables(), *self.register_arrays()]
        return self.whole(before, bounds, parameters, [*declared, "", *lines])

    # --- declarations -------------------------------------------------------------------------------

    def shared_arrays(self) -> list[str]:
        """One array, and where each buffer begins in it, in bytes: instructions take places of 32 bits."""
        if not self.shared.offsets:
            return []
        most = max(b.alignment for b in self.shared.offsets)
        kind, size = ("extern ", "") if self.shared.dynamic else ("", str(self.shared.bytes))
        array = f"{kind}__shared__ __align__({most}) unsigned char {self.dynamic}[{size}];"
        return [f"{array}  // {self.shared.bytes} bytes"] + [
            f"const unsigned {self.pointers[b]} = {self.place_of}({self.dynamic}{f' + {at}' if at else ''});"
            for b, at in self.shared.offsets.items()
        ]

    def shared_place(self, address: Address) -> str:
        offset, base = byte_offset(address), self.pointers[address.buffer]
        return base if offset == 0 else f"{base} + {in_sum(self.integer(offset))}"

    def places(self) -> list[str]:
        """Where the thread and the CTA are, as far as it is asked."""
        used = self._used()
        return [f"const int {self.spelled[name]} = {text};" for name, text in _PLACES.items() if name in used]

    def variables(self) -> list[str]:
        """What is assigned, by width."""
        out: list[str] = []
        for bits, kind in _INTEGER.items():
            mine = ", ".join([self.spelled[n] for n, own in self.assigned.items() if own == bits])
            out += [f"{kind} {line.rstrip(',')};" for line in wrap(mine, _WIDTH)]
        return out

    def _used(self) -> set[str]:
        """The variables that are read."""
        found: set[str] = set()
        for s in every(self.body):
            if isinstance(s, Set):
                found |= {v.name for v in variables(s.value)}
            elif isinstance(s, Draw):
                found |= {"lane", *[v.name for v in variables(s.counter.element)]}
            elif isinstance(s, If | While):
                found |= {v.name for v in mentioned(s.condition)}
            elif isinstance(s, Instr):
                for a in s.arguments:
                    if not isinstance(a, tuple | Parameter | TensorMap):
                        found |= {v.name for v in variables(a.element if isinstance(a, Address) else a)}
        return found

    # --- integers -----------------------------------------------------------------------------------

    def integer(self, x: Index) -> str:
        """An expression in C, of a type that holds whatever it computes on the way.

        Errors: LayoutError for a variable that the kernel does not have, and what 64 bits do not hold.
        """
        for v in variables(x):
            if v.name not in self.spelled:
                known = ", ".join(self.spelled)
                raise LayoutError("address", f"the kernel has no variable {v.name!r}", f"it has {known}")
        wide = not holds(x, 32)
        if wide and not holds(x, 64):
            raise LayoutError("address", f"{x} has no C form: 64 bits do not hold all that it computes")

        def spelled(found: re.Match[str]) -> str:
            name = found[0]
            widened = "(long long)" if wide and not self._is_wide(name) else ""
            return widened + self.spelled[name]

        return _NAME.sub(spelled, render(x, "cuda"))

    def _is_wide(self, name: str) -> bool:
        """Whether a variable has 64 bits."""
        return self.assigned.get(name) == 64 or any(
            p.name == name and p.kind == "s64" for p in self.program.parameters
        )

    def condition(self, condition: Condition) -> str:
        return " && ".join([self.comparison(c) for c in comparisons(condition)]) or "true"

    def comparison(self, c: Compare) -> str:
        return f"{self.integer(c.left)} {c.relation} {self.integer(c.right)}"

    # --- statements ---------------------------------------------------------------------------------

    def statements(self, body: tuple[Statement, ...], indent: str) -> list[str]:
        out: list[str] = []
        further = indent + "    "
        for s in body:
            if isinstance(s, Comment):
                out.append(indent + comment_line(s.text))
            elif isinstance(s, Set):
                out.append(f"{indent}{self.spelled[s.variable.name]} = {self.integer(s.value)};")
            elif isinstance(s, Draw):
                out += [indent + line for line in self.draw(s)]
            elif isinstance(s, While):
                # The program says how often instructions are repeated in the text; the compiler shall not.
                out += [f"{indent}#pragma unroll 1", f"{indent}while ({self.condition(s.condition)}) {{"]
                out += [*self.statements(s.body, further), f"{indent}}}"]
            elif isinstance(s, If):
                out += [f"{indent}if ({self.condition(s.condition)}) {{", *self.statements(s.body, further)]
                if s.orelse:
                    out += [f"{indent}}} else {{", *self.statements(s.orelse, further)]
                out.append(f"{indent}}}")
            else:
                out.append(indent + self.call(s))  # type: ignore[arg-type]
        return out

    def draw(self, s: Draw) -> list[str]:
        """Lane 0 adds one, and all have what it found."""
        drawn, lane = self.spelled[s.variable.name], self.spelled["lane"]
        return [
            f"if ({lane} == 0) {drawn} = atomicAdd({self.place(s.counter)}, 1);",
            f"{drawn} = __shfl_sync(0xffffffffu, {drawn}, 0);",
        ]

    def call(self, instr: Instr) -> str:
        """One instruction."""
        instruction = instr.instruction
        kinds: list[str] = []
        constants: list[str] = []
        texts: dict[str, list[str]] = {}
        for operand, argument in zip(instruction.operands, instr.arguments, strict=True):
            kinds.append(argument[0].registers.kind if isinstance(argument, tuple) else operand.kind)
            found = self.argument(operand, argument, instruction)
            if is_constant(operand, instruction):
                constants += found
            else:
                texts[operand.name] = found
        plain = _PLAIN.get(instruction.name)
        if plain is not None:
            return plain.format_map({name: found[0] for name, found in texts.items()})
        arguments = ", ".join([text for found in texts.values() for text in found])
        given = f"<{', '.join(constants)}>" if constants else ""
        return f"{self.helpers.name(instruction, tuple(kinds))}{given}({arguments});"

    def argument(self, operand: Operand, argument: Argument, instruction: Instruction) -> list[str]:
        """The arguments of a helper for one operand."""
        if isinstance(argument, tuple):
            return [f"{self.arrays[s.registers]}[{s.index}]" for s in argument]
        if isinstance(argument, Address):
            return self.address(operand, argument, instruction)
        if isinstance(argument, Parameter):
            return [self.numbers[argument]]
        if isinstance(argument, TensorMap):
            return [f"&{self.maps[argument]}"]
        return [self.integer(argument)]


def holds(x: Index, bits: int) -> bool:
    """Whether integers of so many bits hold `x` and all that C computes on the way, in whatever order sums are formed.

    Errors: LayoutError where a variable is unbounded.

    >>> from tilelayout.expr import Var
    >>> i, n = Var("i", 0, (1 << 31) - 1), Var("n", 0, 1 << 30)
    >>> holds(i - n, 32), holds(i + n, 32), holds((i + n) // 4, 32), holds(i + n, 64)
    (True, False, False, True)
    """
    low, high = finite(x)
    if isinstance(x, Polynomial):
        low = high = 0
        for mono, k in x.terms.items():
            ends = [finite(atom) for atom in mono]
            most = abs(k)
            for least, largest in ends:
                most *= max(1, abs(least), abs(largest))  # 1: a product of the others comes before a zero
            signed = k > 0 and all(least >= 0 for least, _ in ends)
            high += 0 if k < 0 and all(least >= 0 for least, _ in ends) else most
            low -= 0 if signed else most
    limit = 1 << bits - 1
    return -limit <= low and high < limit and all(holds(part, bits) for part in _parts(x, bits))


def _parts(x: Index, bits: int) -> tuple[Index, ...]:
    """What an expression is computed from, in integers of so many bits."""
    if isinstance(x, Polynomial):
        return tuple([atom for mono in x.terms for atom in mono])
    if isinstance(x, Division):
        d = x.divisor
        shifted = isinstance(d, int) and not d & d - 1 and d < 1 << bits
        return (x.dividend,) if shifted else (x.dividend, d)
    if isinstance(x, Bitwise):
        return x.operands
    return (x.operand, x.count) if isinstance(x, Shift) else ()


__all__ = ["StructuredText", "holds"]
