"""Executes straight-line PTX text on the CPU, thread by thread: the texts that we write, and those nvrtc makes of ours.

Registers hold unsigned integers, one a thread; reading one that was never written is a KeyError.  Global memory
is a set of arrays far apart, and every access is checked to be aligned and inside.  An mma is carried out by the
meaning of the record with that mnemonic, on the registers that the text names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowering.isa import DENSE

FAR = 1 << 48  # between two buffers; more than any offset in a test

Values = list[int]

BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "mul.wide": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << min(b, 64),
    "shr": lambda a, b: a >> min(b, 64),
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),  # towards zero
    "rem": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
}


def _permuted(both: int, selector: int) -> int:
    """``prmt``: each nibble of the selector names a byte of eight; its top bit would ask for the byte's sign."""
    nibbles = [selector >> 4 * i & 0xF for i in range(4)]
    assert max(nibbles) < 8
    return sum((both >> 8 * nibble & 0xFF) << 8 * i for i, nibble in enumerate(nibbles))


def mma_operands(line: str) -> list[list[str]]:
    """The register names of each braced operand of an instruction."""
    return [[name.strip() for name in group.split(",")] for group in re.findall(r"{([^{}]*)}", line)]


def registers(operand: str) -> list[str]:
    """The register names of an operand, which has braces or is one register."""
    return mma_operands(operand)[0] if operand.startswith("{") else [operand]


Instruction = tuple[str, str, list[str]]
"""Guard, opcode, operands."""


def instruction(statement: str) -> Instruction:
    """A statement taken apart; an empty guard where it has none, and braces and brackets stay around their operands."""
    guard = ""
    if statement[0] == "@":
        guard, statement = statement[1:].split(" ", 1)
    opcode, _, rest = statement.partition(" ")
    return guard, opcode, re.findall(r"{[^}]*}|\[[^]]*\]|[^,\s]+", rest)


def parameters(ptx: str) -> list[str]:
    """The names of the entry's 64-bit parameters; newer compilers say of pointers what they are aligned to."""
    return re.findall(r"\.param \.[ub]64 (?:\.ptr (?:\.\w+ )*?\.align \d+ )?(\w+)", ptx)


def statements(ptx: str) -> list[str]:
    """The instructions of the module's one entry, without comments, declarations and scopes."""
    body = re.sub(r"//.*", "", ptx)
    body = body[body.index("{") + 1 : body.rindex("}")]
    body = re.sub(r"{(\s*\.reg)", r"\1", body).replace("; }", ";")
    found = [" ".join(s.split()) for s in body.split(";")]
    return [s for s in found if s and not s.startswith(".reg")]


class PtxMachine:
    """One CTA of a PTX module.

    `arrays` are the buffers, in the order of the entry's parameters; None for one whose content doesn't matter:
    reads give zeros.  `accesses` records (opcode, buffer, byte offsets of the threads) of every access.
    """

    def __init__(self, ptx: str, arrays: Sequence[Any]) -> None:
        threads = re.search(r"\.(?:reqntid|maxntid) (\d+)", ptx)
        assert threads is not None
        self.threads = int(threads[1])
        self.ptx = ptx
        self.arrays = [None if a is None else np.array(a) for a in arrays]
        self.bytes = [None if a is None else a.reshape(-1).view(np.uint8) for a in self.arrays]
        names = parameters(ptx)
        assert len(names) == len(arrays)
        self.parameters = {name: (i + 1) * FAR for i, name in enumerate(names)}
        self.registers: dict[str, Values] = {"%tid.x": list(range(self.threads))}
        self.accesses: list[tuple[str, int, list[int]]] = []

    def run(self) -> list[Any]:
        """The buffers afterwards."""
        for statement in statements(self.ptx):
            _, opcode, operands = instruction(statement)
            if opcode != "ret":
                self.execute(opcode, operands)
        return self.arrays

    def execute(self, opcode: str, operands: list[str]) -> None:
        if opcode.startswith("mma.sync"):
            self.mma(opcode, [mma_operands(o)[0] for o in operands])
            return
        if opcode.startswith(("ld.global", "st.global")):
            self.access(opcode, operands)
            return
        if opcode in ("ld.param.u64", "ld.param.b64"):
            self.registers[operands[0]] = [self.parameters[operands[1].strip("[]")]] * self.threads
            return
        *name, kind = opcode.split(".")
        operation, bits = ".".join(name), int(kind[1:])
        target, *sources = operands
        if target.startswith("{"):
            word = self.value(sources[0], kind)
            for i, half in enumerate(mma_operands(target)[0]):
                self.registers[half] = [x >> 16 * i & 0xFFFF for x in word]
            return
        if operation == "bfi":
            insert, into, at, length = [self.value(s, "b32") for s in sources]
            result = [
                y & ~((1 << n) - 1 << p) | (x & (1 << n) - 1) << p
                for x, y, p, n in zip(insert, into, at, length, strict=True)
            ]
        elif operation == "prmt":
            low, high, selectors = [self.value(s, "b32") for s in sources]
            result = [_permuted(x | y << 32, z) for x, y, z in zip(low, high, selectors, strict=True)]
        elif operation == "mov" and sources[0].startswith("{"):
            low, high = [self.value(s, "b16") for s in mma_operands(sources[0])[0]]
            result = [a | b << 16 for a, b in zip(low, high, strict=True)]
        elif operation in ("mov", "cvta.to.global"):
            result = self.value(sources[0], kind)
        elif operation.startswith("cvt."):
            result, bits = self.value(sources[0], kind), int(operation[5:])
        elif operation == "mad.lo":
            values = [self.value(s, kind) for s in sources]
            result = [a * b + c for a, b, c in zip(*values, strict=True)]
        else:
            # The count of a shift has 32 bits whatever is shifted.
            counts = "u32" if operation in ("shl", "shr") else kind
            left, right = self.value(sources[0], kind), self.value(sources[1], counts)
            result = [BINARY[operation](a, b) for a, b in zip(left, right, strict=True)]
            bits = 2 * bits if operation == "mul.wide" else bits
        self.registers[target] = [x % (1 << bits) for x in result]

    def value(self, operand: str, kind: str) -> Values:
        """An operand as integers of a type: "s32" is signed, all others are not."""
        bits = int(kind[1:])
        if operand.startswith(("0f", "0d")):
            return [int(operand[2:], 16)] * self.threads
        if re.fullmatch(r"-?\d+", operand):
            values = [int(operand)] * self.threads
        else:
            values = self.registers[operand]
        values = [x % (1 << bits) for x in values]
        return [x - (x >> bits - 1 << bits) for x in values] if kind[0] == "s" else values

    def access(self, opcode: str, operands: list[str]) -> None:
        size = int(opcode.rsplit(".", 1)[1][1:]) // 8
        loads = opcode.startswith("ld")
        register, place = operands if loads else operands[::-1]
        base, _, immediate = place.strip("[]").partition("+")
        assert -(1 << 31) <= int(immediate or 0) < 1 << 31
        addresses = [x + int(immediate or 0) for x in self.registers[base]]
        buffer = addresses[0] // FAR - 1
        offsets = [x - (buffer + 1) * FAR for x in addresses]
        self.accesses.append((opcode, buffer, offsets))
        assert all(x % size == 0 for x in offsets), f"{opcode} {place} is not aligned"
        memory = self.bytes[buffer]
        if memory is None:
            if loads:
                self.registers[register] = [0] * self.threads
            return
        assert min(offsets) >= 0, f"{opcode} {place} is before the buffer"
        assert max(offsets) + size <= memory.size, f"{opcode} {place} is behind the buffer"
        for thread, x in enumerate(offsets):
            if loads:
                word = int.from_bytes(memory[x : x + size].tobytes(), "little")
                self.registers.setdefault(register, [0] * self.threads)[thread] = word
            else:
                word = self.registers[register][thread] % (1 << 8 * size)
                memory[x : x + size] = np.frombuffer(word.to_bytes(size, "little"), np.uint8)

    def mma(self, opcode: str, groups: list[list[str]]) -> None:
        (record,) = [i.instruction for i in DENSE if i.instruction.mnemonic == opcode]
        d, a, b, c = groups
        assert d == c, "the accumulator is updated in place"
        wide = {o.name: o.kind == "f64" for o in record.operands}
        values = {"D": self.words(c, wide["D"]), "A": self.words(a, wide["A"]), "B": self.words(b, wide["B"])}
        result = np.ascontiguousarray(record.meaning(values)["D"].reshape(self.threads, -1))
        for i, name in enumerate(d):
            self.registers[name] = [int(x) for x in result.view(np.uint64 if wide["D"] else np.uint32)[:, i]]

    def words(self, names: list[str], wide: bool) -> Any:
        """Registers as uint32 ``[warps, lanes, words]``; of 64-bit registers two each, the low one first."""
        words = np.array([self.registers[name] for name in names], np.uint64 if wide else np.uint32)
        return np.ascontiguousarray(words.T).view(np.uint32).reshape(self.threads // 32, 32, -1)


def execute(ptx: str, arrays: Sequence[Any]) -> list[Any]:
    """The buffers after a CTA has executed the module on copies of `arrays`."""
    return PtxMachine(ptx, arrays).run()
