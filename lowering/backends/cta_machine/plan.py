"""What all runs of a program share: numbers of registers, places of shared buffers, granules, mbarriers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilelayout import LayoutError

from ...control import TensorMap
from ...dtypes import dtype
from ...errors import MachineError
from ...isa.protocols import BULK_LOAD, BULK_STORE, CP_ASYNC, CP_ASYNC_ARRIVE
from ...isa.record import Instruction, Operand
from ...program import (
    Address,
    Buffer,
    Instr,
    Program,
    Registers,
    Slot,
    Statement,
    every,
    instr_text,
    unrolled,
)
from ...storage import RUN_TIME
from ..arrays import blank, to_memory
from ..shared_memory import SharedMemory

BARRIER_BYTES = 8
_BULK_GRANULE = 16
"""Bytes of which the copy engine moves a multiple."""
_BARRIER_OPERAND = "bar"


@dataclass(frozen=True)
class Shared:
    """A buffer in shared memory.

    Attributes:
        buffer: the buffer.
        offset: of its first byte.
        granule: bytes of its narrowest access.
        by_threads: whether neither the copy engine writes it nor copies that arrive at mbarriers.
        barriers: whether it holds mbarriers, and the number of the first.
    """

    buffer: Buffer
    offset: int
    granule: int
    by_threads: bool
    barriers: bool
    first_barrier: int


class Plan:
    """The plan of a program, which it does not keep.

    Attributes:
        warps: warps of a CTA.
        body: its statements without constant loops.
        words: 32-bit words of the registers of a lane.
        shared: the buffers in shared memory, by name.
        bytes: of shared memory.
        barriers: mbarriers that there is room for.
        copies_arrive: whether copies of threads arrive at mbarriers.
        constants: names of the variables that a launch gives.

    Errors: LayoutError for a program with registers as inputs, or buffers of one name.  MachineError for mbarriers in a
    buffer that other instructions use.
    """

    def __init__(self, program: Program) -> None:
        if program.inputs:
            raise LayoutError(
                "run_grid",
                f"program {program.name} takes registers {program.inputs[0].name} as input",
                "a grid runs kernels, which read memory",
            )
        names = [b.name for b in program.buffers]
        if len(set(names)) < len(names):
            raise LayoutError("run_grid", f"program {program.name} has two buffers of one name: {names}")
        self.warps = program.warps
        self.body: tuple[Statement, ...] = unrolled(program.body)
        self._base: dict[Registers, int] = {}
        self.words = 0
        self._number_registers(program)
        places = SharedMemory.of(program)
        self.bytes = places.bytes
        self.barriers = 0
        self.copies_arrive = any(i.instruction.protocol == CP_ASYNC_ARRIVE for i in _instrs(self.body))
        self.shared: dict[str, Shared] = {}
        self._place(places)

    def _number_registers(self, program: Program) -> None:
        declared = program.registers
        used = [
            s.registers for i in _instrs(self.body) for a in i.arguments if isinstance(a, tuple) for s in a
        ]
        for r in dict.fromkeys((*declared, *used)):
            self._base[r] = self.words
            self.words += r.words

    def numbers(self, slots: tuple[Slot, ...], instr: Instr) -> list[int]:
        """The words of registers, in order.

        Errors: MachineError for a register that the group does not have.
        """
        found: list[int] = []
        for slot in slots:
            r, i = slot.registers, slot.index
            if not isinstance(i, int) or not 0 <= i < r.count:
                raise MachineError(f"{instr_text(instr)}: there is no {r.name}[{i}], the group has {r.count}")
            each = r.bits // 32
            begin = self._base[r] + i * each
            found += range(begin, begin + each)
        return found

    def register_name(self, word: int) -> str:
        """What the program calls the register of a word."""
        r, base = next((r, b) for r, b in reversed(self._base.items()) if b <= word)
        return f"{r.name}[{(word - base) // (r.bits // 32)}]"

    # --- shared memory --------------------------------------------------------------------------

    def _place(self, places: SharedMemory) -> None:
        granules: dict[Buffer, int] = {}
        engine: set[Buffer] = set()
        not_threads = (BULK_LOAD, CP_ASYNC) if self.copies_arrive else (BULK_LOAD,)
        barriers: dict[Buffer, str] = {}
        data: set[Buffer] = set()
        for instr in _instrs(self.body):
            for operand, address in _shared(instr):
                buffer = address.buffer
                if buffer not in places.offsets:
                    raise LayoutError(
                        "run_grid", f"{instr_text(instr)}: the program has no buffer {buffer.name}"
                    )
                if operand.name == _BARRIER_OPERAND and instr.instruction.protocol:
                    barriers[buffer] = instr_text(instr)
                    continue
                data.add(buffer)
                size = access_bytes(instr.instruction, operand, buffer)
                granules[buffer] = min(size, granules.get(buffer, size))
                if instr.instruction.protocol in not_threads:
                    engine.add(buffer)
        both = data & barriers.keys()
        if both:
            name = min(b.name for b in both)
            raise MachineError(f"buffer {name} holds mbarriers, and other instructions read or write it")
        for buffer, offset in places.offsets.items():
            self.shared[buffer.name] = Shared(
                buffer,
                offset,
                granules.get(buffer, buffer.unit_bytes),
                buffer not in engine,
                buffer in barriers,
                self.barriers,
            )
            if buffer in barriers:
                self.barriers += buffer.bytes // BARRIER_BYTES


def access_bytes(instruction: Instruction, operand: Operand, buffer: Buffer) -> int:
    """Bytes that an address operand stands for."""
    if instruction.protocol in (BULK_LOAD, BULK_STORE) and operand.name != _BARRIER_OPERAND:
        return min(_BULK_GRANULE, buffer.bytes)
    return operand.bytes or buffer.unit_bytes


def held_type(buffer: Buffer) -> Any:
    """The numpy type that memory holds a buffer's elements in."""
    element = dtype(buffer.dtype)
    return to_memory(blank((8,), element), element, buffer.container).dtype


def _instrs(body: tuple[Statement, ...]) -> Iterator[Instr]:
    return (s for s in every(body) if isinstance(s, Instr))


def _shared(instr: Instr) -> Iterator[tuple[Operand, Address]]:
    for operand, argument in zip(instr.instruction.operands, instr.arguments, strict=True):
        if isinstance(argument, Address) and argument.buffer.space == "shared":
            yield operand, argument


def maps_of(program: Program, body: tuple[Statement, ...]) -> tuple[TensorMap, ...]:
    """The program's tensor maps.

    Errors: LayoutError for an instruction that uses another.
    """
    for instr in _instrs(body):
        for argument in instr.arguments:
            if isinstance(argument, TensorMap) and argument not in program.maps:
                raise LayoutError(
                    "run_grid", f"{instr_text(instr)}: the program has no tensor map {argument.name}"
                )
    return program.maps


__all__ = ["BARRIER_BYTES", "RUN_TIME", "Plan", "Shared", "access_bytes", "held_type", "maps_of"]
