"""``__device__`` functions around instructions: what the CUDA C++ text of a kernel calls.

Every instruction but moves and constants is one, memory accesses too: what is read there is what the record says.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ..isa.protocols import BULK_WAIT, BULK_WAIT_READ, CP_ASYNC_WAIT
from ..isa.record import Instruction, Operand
from .cuda_text import CONSTRAINT, REGISTER_TYPE, function
from .names import Names

PASSED = {
    "address": ("const void *", "l"),
    "shared": ("unsigned ", "r"),
    "value": ("unsigned ", "r"),
    "map": ("const TensorMap *", "l"),
}
"""Kind of an operand that is no register -> the type of a helper's parameter, and its constraint."""

SHARED_ADDRESS = """__device__ __forceinline__ unsigned {name}(const void *place)
{{
    return static_cast<unsigned>(__cvta_generic_to_shared(place));
}}"""

TENSOR_MAP = """// What the driver encodes of a tensor for the copy engine.
struct alignas(64) TensorMap {
    unsigned char bytes[128];
};"""

_CONSTANT = (CP_ASYNC_WAIT, BULK_WAIT, BULK_WAIT_READ)
"""Protocols of instructions whose values are a part of the instruction."""
_LABEL = re.compile(r"(?<![\w:])([A-Za-z_]\w*):(?!:)")

Key = tuple[str, tuple[str, ...]]
"""A helper: the instruction's name, and the class of each operand's registers (which may be another than it says)."""


class Helpers:
    """The helpers of one text; each is written once."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._found: dict[Key, tuple[str, Instruction]] = {}

    def name(self, instruction: Instruction, kinds: tuple[str, ...]) -> str:
        """The function around an instruction, for operands of these kinds."""
        key = instruction.name, kinds
        if key not in self._found:
            wish = "ptx_" + re.sub(r"\W+", "_", instruction.mnemonic.rstrip(";"))
            self._found[key] = self._names.one(wish), instruction
        return self._found[key][0]

    def texts(self) -> list[str]:
        """All of them, in order of first use."""
        return [_helper(i, name, key[1]) for key, (name, i) in self._found.items()]


def is_constant(operand: Operand, instruction: Instruction) -> bool:
    """Whether an operand is a part of the instruction: its helper takes it as a template argument."""
    return operand.kind == "value" and instruction.protocol in _CONSTANT


def has_bit(operand: Operand, instruction: Instruction) -> bool:
    """Whether the instruction takes an element out of a byte that it shares."""
    return operand.is_address and f"{{{operand.name}_bit}}" in instruction.template


def _entries(operand: Operand, kind: str, instruction: Instruction) -> list[tuple[str, str, str]]:
    """(name, type, constraint) of the parameters of a helper for one operand."""
    base = operand.name.lower()
    if is_constant(operand, instruction):
        return [(base, "int ", "n")]
    if not operand.is_registers:
        bit = [(f"{base}_bit", "unsigned ", "r")] if has_bit(operand, instruction) else []
        return [(base, *PASSED[kind]), *bit]
    reference = "&" if operand.writes else ""
    return [
        (f"{base}{i}", f"{REGISTER_TYPE[kind]} {reference}", CONSTRAINT[kind]) for i in range(operand.count)
    ]


def _helper(instruction: Instruction, name: str, kinds: tuple[str, ...]) -> str:
    """A function with one instruction as inline asm; its parameters are the operands, in order."""
    kind_of = {o.name: kind for o, kind in zip(instruction.operands, kinds, strict=True)}
    constraints: dict[bool, list[str]] = {True: [], False: []}
    places: dict[str, list[str]] = {}
    parameters: dict[str, list[str]] = {}
    constants: list[str] = []
    # Outputs come first in an asm statement, and are numbered first.
    for operand in sorted(instruction.operands, key=lambda o: not o.writes):
        entries = _entries(operand, kind_of[operand.name], instruction)
        first = sum(map(len, places.values()))
        places[operand.name] = [f"%{first + i}" for i in range(len(entries))]
        given = [f"{kind}{name}" for name, kind, _ in entries]
        constant = is_constant(operand, instruction)
        constants += given if constant else []
        parameters[operand.name] = [] if constant else given
        sign = {"update": "+", "write": "=", "read": ""}[operand.access]
        if operand.writes and instruction.template.startswith("{{"):
            sign += "&" * (sign == "=")  # written before the last input is read
        constraints[operand.writes] += [f'"{sign}{letter}"({name})' for name, _, letter in entries]
    asm = "asm volatile" if instruction.collective or instruction.effect != "none" else "asm"
    clobber = ' : "memory"' if instruction.effect != "none" else ""
    doubled = replace(instruction, template=instruction.template.replace("%", "%%"))
    lines = [
        f'{asm}("{_quoted(doubled.text(places))}"',
        f"    : {', '.join(constraints[True])}".rstrip(),
        f"    : {', '.join(constraints[False])}{clobber});",
    ]
    head = f"template <{', '.join(constants)}>\n" if constants else ""
    passed = [text for o in instruction.operands for text in parameters[o.name]]
    return head + function(f"__device__ __forceinline__ void {name}(", passed, lines)


def _quoted(text: str) -> str:
    """For a C string, labels made unique in each place where the compiler puts the instruction (``%=``)."""
    for label in dict.fromkeys(_LABEL.findall(text)):
        text = re.sub(rf"(?<![\w:]){label}(?!\w|::)", f"{label}_%=", text)
    return text.replace("\n", "\\n")
