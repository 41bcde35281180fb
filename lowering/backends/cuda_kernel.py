"""What CUDA C++ texts of kernels have in common: names, arrays in shared memory, pointers, calls of helpers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from tilelayout.expr import Index

from ..isa.protocols import BULK_STORE, COUNT
from ..isa.record import Instruction, Operand
from ..program import Address, Buffer, Draw, Instr, Program, Statement, TensorMap, every
from .address import packing
from .cuda_helpers import SHARED_ADDRESS, Helpers, has_bit
from .cuda_text import KEYWORDS, REGISTER_TYPE, element_type, function, in_sum, no_macro
from .names import Names
from .shared_memory import SharedMemory


class KernelText(ABC):
    """The text of a kernel under construction."""

    def __init__(self, program: Program) -> None:
        self.program, self.names = program, Names(KEYWORDS)
        self.shared = SharedMemory.of(program)
        self.entry = self.names.one(program.name)
        self.arrays = {r: self.names.one(r.name) for r in program.registers}
        self.pointers = {b: self.names.one(no_macro(b.name)) for b in program.buffers}
        self.dynamic, self.place_of = self.names.one("dynamic_shared"), self.names.one("shared_address")
        self.helpers = Helpers(self.names)

    @abstractmethod
    def integer(self, x: Index) -> str:
        """An expression in C."""

    def whole(self, before: list[str], bounds: str, parameters: list[str], body: list[str]) -> str:
        """Helpers and the kernel; `before` are types that the kernel needs."""
        notes = [_note(b, name) for b, name in self.pointers.items()]
        head = f'extern "C" __global__ __launch_bounds__({bounds}) void {self.entry}('
        kernel = "\n".join([*notes, function(head, parameters, body)])
        first = [SHARED_ADDRESS.format(name=self.place_of)] if self.shared.offsets else []
        return "\n\n".join([*before, *first, *self.helpers.texts(), kernel]) + "\n"

    def pointer_parameters(self) -> list[str]:
        """A pointer for each buffer in global memory."""
        written = self._written()
        return [
            f"{'' if b.name in written else 'const '}{element_type(b)} *{name}"
            for b, name in self.pointers.items()
            if b.space == "global"
        ]

    def _written(self) -> set[str]:
        """The buffers that are stored to, by threads or by the copy engine."""
        instructions = [s for s in every(self.program.body) if isinstance(s, Instr)]
        by_threads = [s for s in instructions if s.instruction.stores]
        by_engine = [s for s in instructions if s.instruction.protocol == BULK_STORE]
        found = {a.buffer.name for s in by_threads for a in s.arguments if isinstance(a, Address)}
        found |= {a.buffer.name for s in by_engine for a in s.arguments if isinstance(a, TensorMap)}
        return found | {c.buffer.name for c in counters(self.program.body)}

    def register_arrays(self) -> list[str]:
        """A declaration for each group of registers."""
        return [f"{REGISTER_TYPE[r.kind]} {name}[{r.count}];" for r, name in self.arrays.items()]

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

    def address(self, operand: Operand, address: Address, instruction: Instruction) -> list[str]:
        """The arguments of a helper for an address."""
        bit = [self.integer(address.bit)] if has_bit(operand, instruction) else []
        return [self.shared_place(address) if address.buffer.space == "shared" else self.place(address), *bit]

    def place(self, address: Address) -> str:
        """A pointer in C."""
        unit, pointer = address.unit, self.pointers[address.buffer]
        return pointer if unit == 0 else f"{pointer} + {in_sum(self.integer(unit))}"

    def shared_place(self, address: Address) -> str:
        """A place in shared memory, as instructions take it."""
        return f"{self.place_of}({self.place(address)})"


def counters(body: tuple[Statement, ...]) -> Iterator[Address]:
    """What is drawn from, and counted on."""
    for s in every(body):
        if isinstance(s, Draw):
            yield s.counter
        elif isinstance(s, Instr) and s.instruction.protocol == COUNT:
            yield from (a for a in s.arguments if isinstance(a, Address))


def _note(b: Buffer, name: str) -> str:
    shape = "[...]" if b.is_run_time else list(b.shape)
    return f"// {name}: {b.dtype}{shape}{packing(b)}"
