"""What an instruction record is: text, operands, who has it, and what it computes, in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..target import TARGETS, Target

Access = Literal["read", "write", "update"]
Kind = Literal["f32", "f64", "b32", "address", "shared", "value", "parameter", "map"]
Space = Literal["global", "shared"]

SPACES: dict[str, Space] = {"address": "global", "shared": "shared"}
"""Kind of an address operand -> the memory that it points into."""


@dataclass(frozen=True)
class Operand:
    """One operand of an instruction.

    Attributes:
        name: its name in the template.
        count: registers per lane; more than one is a brace-enclosed vector.  An address counts one.
        kind: the register class; "address" for a place in global memory (64 bits), "shared" for one in shared memory
            (32 bits); "value" for an integer of 32 bits that an expression gives each lane; "parameter" for a number
            that the launch gives; "map" for a tensor map.
        access: "read", "write", or "update" (read and written in place).
        bytes: what an address stands for, from it on, and what it must be a multiple of; 0: one element of the buffer.
        lanes: lanes whose address is used, from 0 on.
    """

    name: str
    count: int
    kind: Kind
    access: Access
    bytes: int = 0
    lanes: int = 32

    @property
    def is_address(self) -> bool:
        return self.kind in SPACES

    @property
    def writes(self) -> bool:
        return self.access != "read"

    @property
    def reads(self) -> bool:
        return self.access != "write"

    @property
    def is_registers(self) -> bool:
        return self.kind in ("f32", "f64", "b32")

    @property
    def words(self) -> int:
        """32-bit words per lane: an f64 register is two, the low one first.  0 for what is no register."""
        return self.count * {"f64": 2, "f32": 1, "b32": 1}.get(self.kind, 0)


@dataclass(frozen=True)
class Emulated:
    """Architectures on which an instruction is not one of the tensor cores' own.

    Attributes:
        first, last: the compute capabilities it holds for, both included; `last` None: all that follow.
        how: what the assembler makes of it there.
    """

    first: int
    last: int | None
    how: str

    def on(self, sm: int) -> bool:
        return self.first <= sm and (self.last is None or sm <= self.last)


@dataclass(frozen=True)
class Instruction:
    """An instruction: its text and its meaning in one place.

    Attributes:
        name: short unique name.
        template: PTX with ``{operand}`` placeholders; literal braces doubled (`str.format`).
        operands: in the order in which a program gives them.
        sm: the first compute capability that has it (major * 10 + minor).
        ptx: the first PTX ISA version that has it.
        section: where the PTX ISA defines it.
        meaning: ``meaning(values) -> written``: operand name -> uint32 array ``[warps, lanes, words]`` in (two words
            for an f64 register, low one first), the same for every register operand that is written out.  An
            address operand comes as a `Place`.  ``values`` may hold "numerics", the name of a model of rounding.
        effect: "none" for a function of its operands, "memory" if it reads or writes memory.
        protocol: for what waits, or is done later: the name of what the reference machine does for it, see
            `isa.protocols`.  Empty: `meaning` says all.
        collective: whether all lanes of the warp must execute it together (``.sync.aligned``).
        specific: for an instruction that only architecture- or family-specific targets have (sm_90a, sm_120f): their
            compute capabilities.  Empty: every target from `sm` on has it.
        family: where there are `specific` ones, whether the family's targets (sm_120f) have it, or the architecture's
            alone (sm_120a).
        emulated: where it is assembled into something else than an instruction of its own.
    """

    name: str
    template: str
    operands: tuple[Operand, ...]
    sm: int
    ptx: tuple[int, int]
    section: str
    meaning: Callable[[Mapping[str, Any]], dict[str, Any]] = field(compare=False, repr=False)
    effect: Literal["none", "memory"] = "none"
    collective: bool = False
    specific: tuple[int, ...] = ()
    emulated: tuple[Emulated, ...] = ()
    family: bool = True
    protocol: str = ""

    @property
    def mnemonic(self) -> str:
        """The opcode with its qualifiers; the record's name where it takes several instructions."""
        return self.name if self.template.startswith("{{") else self.template.split(" ", 1)[0]

    def text(self, registers: Mapping[str, list[str]]) -> str:
        """The PTX statement with those register names, by operand.

        An address operand of elements that share bytes has two: the place of the byte, and the element's lowest bit in
        it, which the template calls ``{operand_bit}``.
        """
        names = {o.name: _operand_text(o, registers[o.name]) for o in self.operands}
        bits = {
            f"{o.name}_bit": registers[o.name][1] for o in self.operands if _has_bit(o, registers[o.name])
        }
        return self.template.format_map(names | bits)

    @property
    def stores(self) -> bool:
        """Whether it writes to the memory that its addresses name."""
        given = [o for o in self.operands if o.is_registers and o.access == "read"]
        return bool(given) and any(o.is_address for o in self.operands)

    def refusal(self, target: Target, version: tuple[int, int] | None = None) -> str:
        """Why the target, or PTX of that version, does not have it; empty where it has.

        Names the first architecture, or the version, that has it.
        """
        return gate_refusal(self.sm, self.ptx, self.specific, target, version, self.family)

    def emulation(self, target: Target) -> str:
        """What the assembler makes of it for the target; empty where it is an instruction of its own."""
        return next((e.how for e in self.emulated if e.on(target.sm)), "")


def gate_refusal(
    sm: int,
    ptx: tuple[int, int],
    specific: tuple[int, ...],
    target: Target,
    version: tuple[int, int] | None = None,
    family: bool = True,
) -> str:
    """Why a target, or PTX of a version, is not past this gate; empty where it is."""
    if specific:
        suffixes = ("a", "f") if family else ("a",)
        if target.sm not in specific or target.specific not in suffixes:
            names = [t.name for t in TARGETS.values() if t.sm in specific and t.specific in suffixes]
            return f"needs {', '.join(names)} (not plain or other architectures), the target is {target}"
    elif sm > target.sm:
        return f"needs sm_{sm} or newer, the target is {target}"
    if version is not None and version < ptx:
        return f"needs PTX {ptx[0]}.{ptx[1]} or newer, this is {version[0]}.{version[1]}"
    return ""


def _has_bit(operand: Operand, names: list[str]) -> bool:
    return operand.is_address and len(names) > 1


def _operand_text(operand: Operand, names: list[str]) -> str:
    if not operand.is_registers:
        return names[0]
    return names[0] if operand.count == 1 and not operand.name.isupper() else "{" + ", ".join(names) + "}"


@dataclass(frozen=True)
class Place:
    """Where an address operand points, for every lane: elements ``flat[index[w, l]]`` of a buffer.

    Where elements share bytes, `data` is bytes, and `bit` the element's lowest bit in its byte.
    """

    data: Any  # flat array of the buffer's element type
    index: Any  # integer array [warps, lanes]
    bit: Any = 0  # likewise
