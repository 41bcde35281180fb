"""What an instruction record is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Access = Literal["read", "write", "update"]
Kind = Literal["f32", "b32", "address"]


@dataclass(frozen=True)
class Operand:
    """One operand of an instruction.

    Attributes:
        name: its name in the template.
        count: 32-bit registers per lane; more than one is a brace-enclosed vector.  An address counts one.
        kind: the register class, or "address" for a place in global memory.
        access: "read", "write", or "update" (read and written in place).
    """

    name: str
    count: int
    kind: Kind
    access: Access

    @property
    def writes(self) -> bool:
        return self.access != "read"

    @property
    def reads(self) -> bool:
        return self.access != "write"


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
        meaning: ``meaning(values) -> written``: operand name -> uint32 array ``[warps, lanes, count]`` in, the same for
            every register operand that is written out.  An address operand comes as a `Place`.
        effect: "none" for a function of its operands, "memory" if it reads or writes memory.
        collective: whether all lanes of the warp must execute it together (``.sync.aligned``).
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

    @property
    def mnemonic(self) -> str:
        """The opcode with its qualifiers; the record's name where it takes several instructions."""
        return self.name if self.template.startswith("{{") else self.template.split(" ", 1)[0]

    def text(self, registers: Mapping[str, list[str]]) -> str:
        """The PTX statement with those register names, by operand."""
        return self.template.format_map({o.name: _operand_text(o, registers[o.name]) for o in self.operands})


def _operand_text(operand: Operand, names: list[str]) -> str:
    if operand.kind == "address":
        return names[0]
    return names[0] if operand.count == 1 and not operand.name.isupper() else "{" + ", ".join(names) + "}"


@dataclass(frozen=True)
class Place:
    """Where an address operand points, for every lane: elements ``flat[index[w, l]]`` of a buffer's bytes."""

    data: Any  # flat array of the buffer's element type
    index: Any  # integer array [warps, lanes]
