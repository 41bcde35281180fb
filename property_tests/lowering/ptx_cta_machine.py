"""Executes the PTX of a whole CTA on the CPU: shared memory, barriers, asynchronous copies, branches and loops.

For the texts that nvrtc and numba-cuda make of kernels.  Threads run at their own places; of those that differ the one
that is furthest behind goes on, so that they meet again where their ways do.  An access that is not aligned or outside
its array, a read of shared memory that nothing has written or another thread has written since the last barrier, and a
read of what an asynchronous copy has not brought yet are errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowering.isa import DENSE
from lowering.isa.ldmatrix import LDMATRIX
from lowering.isa.record import Place
from lowering.isa.stmatrix import STMATRIX

from .ptx_machine import FAR, Instruction, instruction, mma_operands, parameters, registers

NOBODY, UNWRITTEN, COMING, SEVERAL = -1, -2, -3, -4
"""Who wrote, or read, a byte of shared memory since the last barrier; a thread's number from 0 on."""
SPECIAL = ("%tid.x", "%ctaid.x", "%ctaid.y", "%nctaid.x", "%nctaid.y")
SHARED = 1 << 12
"""Address of the first array in shared memory; shared and generic addresses are the same here."""
MOST = 20_000
"""Steps of a CTA."""

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
FLOATS: dict[str, Callable[..., Any]] = {
    "max": np.fmax, "min": np.fmin, "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative,
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "mul.lo": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "min": np.minimum, "max": np.maximum, "mul.wide": np.multiply,
}  # fmt: skip


Code = list[Instruction]


class CtaMachine:
    """One CTA of a module with one entry.

    `arrays` are numpy arrays that numba's parameters of the entry describe, in order; what is stored changes them.
    """

    def __init__(
        self, ptx: str, arrays: Sequence[Any], threads: int, cta: tuple[int, int] = (0, 0), grid: Any = (1, 1)
    ) -> None:
        self.threads = threads
        self.arrays = list(arrays)
        self.memory = [a.reshape(-1, order="A").view(np.uint8) for a in arrays]
        self.constants = self._parameters(ptx)
        self.predicates: dict[str, Any] = {}
        self.registers: dict[str, Any] = {"%tid.x": np.arange(threads, dtype=np.uint64)}
        for name, value in zip(SPECIAL[1:], (*cta, *grid), strict=True):
            self.registers[name] = np.full(threads, value, np.uint64)
        self.code, self.targets = self._code(ptx)
        self.blocked = np.zeros(threads, bool)
        self._place_shared(ptx)
        self.groups: list[list[tuple[Any, Any, int, Any, Any]]] = [[]]
        self.executed: dict[str, int] = {}

    def _parameters(self, ptx: str) -> dict[str, int]:
        values: list[int] = []
        for i, a in enumerate(self.arrays):
            data = (i + 1) * FAR
            values += [0, 0, a.size, a.itemsize, data, *a.shape, *a.strides]
        names = parameters(ptx)
        assert len(names) == len(values)
        return dict(zip(names, values, strict=True))

    def _place_shared(self, ptx: str) -> None:
        self.symbols: dict[str, int] = {}
        end = SHARED
        for align, name, size in re.findall(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\]", ptx):
            end += -end % int(align)
            self.symbols[name] = end
            end += int(size)
        self.shared = np.zeros(end, np.uint8)
        self.writer = np.full(end, UNWRITTEN, np.int64)
        self.reader = np.full(end, NOBODY, np.int64)

    def _code(self, ptx: str) -> tuple[Code, dict[int, int]]:
        """(guard, opcode, operands) of each instruction, and where each branch goes."""
        code, labels = _labeled(ptx)
        targets: dict[int, int] = {}
        for at, (_, opcode, operands) in enumerate(code):
            if opcode.startswith("bra"):
                there = labels[operands[-1]]
                targets[at] = next(x for x in there if x > at or "_BB" in operands[-1])
        return code, targets

    def run(self) -> None:
        """Until every thread has returned; those that are `blocked` wait meanwhile."""
        pc = np.zeros(self.threads, np.int64)
        end = len(self.code)
        steps = 0
        while (pc < end).any():
            steps += 1
            assert steps < MOST, "a loop that does not end"
            ready = ~self.blocked & (pc < end)
            assert ready.any(), "a deadlock"
            at = int(pc[ready].min())
            self.active = ready & (pc == at)
            pc[self.active] = at + 1
            guard, opcode, operands = self.code[at]
            if guard:
                held = self.predicates[guard.lstrip("!")]
                self.active = self.active & (~held if guard[0] == "!" else held)
            if opcode == "ret":
                pc[self.active] = end
            elif opcode.startswith("bra"):
                pc[self.active] = self.targets[at]
            elif self.active.any():
                self.executed[opcode] = self.executed.get(opcode, 0) + 1
                self.execute(opcode, operands)

    # --- operands -------------------------------------------------------------------------------

    def value(self, operand: str, bits: int = 64, signed: bool = False) -> Any:
        """An operand of every thread, as integers of a width."""
        if operand in self.symbols:
            found = np.full(self.threads, self.symbols[operand], np.uint64)
        elif operand.startswith(("0f", "0d")):
            found = np.full(self.threads, int(operand[2:], 16), np.uint64)
        elif re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+", operand):
            found = np.full(self.threads, int(operand, 0) % (1 << 64), np.uint64)
        else:
            found = self.registers[operand]
        if bits < 64:
            found = found & np.uint64((1 << bits) - 1)
        if not signed:
            return found
        shift = np.uint64(64 - bits)
        return (found << shift).view(np.int64) >> np.int64(64 - bits)

    def write(self, name: str, value: Any, bits: int) -> None:
        value = np.asarray(value).astype(np.int64).view(np.uint64) if value.dtype != np.uint64 else value
        if bits < 64:
            value = value & np.uint64((1 << bits) - 1)
        before = self.registers.get(name, np.zeros(self.threads, np.uint64))
        self.registers[name] = np.where(self.active, value, before)

    # --- instructions ---------------------------------------------------------------------------

    def execute(self, opcode: str, operands: list[str]) -> None:
        kind = opcode.rsplit(".", 1)[-1]
        if opcode.startswith("mma.sync"):
            self.mma(opcode, operands)
        elif opcode.startswith(("ldmatrix", "stmatrix")):
            self.matrices(opcode, operands)
        elif opcode.startswith(("bar.sync", "barrier.sync")):
            assert self.active.all(), "some threads do not come to the barrier"
            self.writer[self.writer >= 0] = NOBODY
            self.reader[:] = NOBODY
        elif opcode.startswith("cp.async"):
            self.copy(opcode, operands)
        elif opcode.startswith("ld.param"):
            self.write(operands[0], np.full(self.threads, self.constants[operands[1][1:-1]], np.uint64), 64)
        elif opcode.startswith(("ld.", "st.")):
            self.access(opcode, operands)
        elif opcode.startswith("setp."):
            signed, bits = kind[0] == "s", int(kind[1:])
            left, right = (self.value(x, bits, signed) for x in operands[1:])
            self.set_predicate(operands[0], COMPARE[opcode.split(".")[1]](left, right))
        elif kind == "pred":
            self.predicate(opcode.rsplit(".", 1)[0], operands)
        elif operands[0].startswith("{"):
            self.take_apart(operands, int(kind[1:]))
        else:
            self.compute(opcode.rsplit(".", 1)[0], kind, operands)

    def set_predicate(self, name: str, value: Any) -> None:
        before = self.predicates.get(name, np.zeros(self.threads, bool))
        self.predicates[name] = np.where(self.active, value, before)

    def predicate(self, operation: str, operands: list[str]) -> None:
        given = [self.predicates[x] for x in operands[1:]]
        found = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}.get(operation)
        self.set_predicate(operands[0], ~given[0] if operation == "not" else found(*given))  # type: ignore[misc]

    def take_apart(self, operands: list[str], bits: int) -> None:
        parts = mma_operands(operands[0])[0]
        whole, width = self.value(operands[1], bits), bits // len(parts)
        for i, part in enumerate(parts):
            self.write(part, whole >> np.uint64(width * i), width)

    def compute(self, operation: str, kind: str, operands: list[str]) -> None:
        signed, bits = kind[0] == "s", int(kind[1:])
        target, *sources = operands
        if kind == "f32" and operation not in ("mov", "selp"):
            found, bits = self.floats(operation, sources)
        elif operation == "mov" and sources[0].startswith("{"):
            parts = mma_operands(sources[0])[0]
            width = bits // len(parts)
            found = sum(self.value(x, width) << np.uint64(width * i) for i, x in enumerate(parts))
        elif operation == "mov" or operation.startswith("cvta"):
            found = self.value(sources[0], bits)
        elif operation.startswith("cvt."):
            found, bits = self.value(sources[0], bits, signed), int(operation.rsplit(".", 1)[1][1:])
        elif operation in ("shl", "shr"):
            count = np.minimum(self.value(sources[1], 32), np.uint64(63))
            left = self.value(sources[0], bits, signed)
            shift = count.astype(left.dtype)
            found = left << shift if operation == "shl" else left >> shift
        elif operation == "selp":
            yes, no = (self.value(x, bits) for x in sources[:2])
            found = np.where(self.predicates[sources[2]], yes, no)
        elif operation in ("neg", "not"):
            found = self.value(sources[0], bits, True)
            found = -found if operation == "neg" else ~found
        elif operation.startswith("mad."):
            wide = operation == "mad.wide"
            left, right = (self.value(x, bits, signed) for x in sources[:2])
            bits = 2 * bits if wide else bits
            found = left * right + self.value(sources[2], bits, signed)
        elif operation == "mul.hi":
            left, right = (self.value(x, bits, signed).astype(object) for x in sources)
            found = (left * right >> bits) % (1 << 64)
            found = found.astype(np.uint64)
        elif operation == "bfi":
            insert, into, at, length = (self.value(x, bits) for x in sources)
            mask = (np.uint64(1) << length) - np.uint64(1) << at
            found = into & ~mask | insert << at & mask
        elif operation == "prmt":
            low, high, selectors = (self.value(x, 32) for x in sources)
            both = low | high << np.uint64(32)
            nibbles = [selectors >> np.uint64(4 * i) & np.uint64(7) for i in range(4)]
            found = sum(
                (both >> np.uint64(8) * n & np.uint64(255)) << np.uint64(8 * i) for i, n in enumerate(nibbles)
            )
        else:
            assert operation in BINARY, f"unknown instruction {operation}.{kind}"
            left, right = (self.value(x, bits, signed) for x in sources)
            found = BINARY[operation](left, right)
            bits = 2 * bits if operation == "mul.wide" else bits
        self.write(target, found, bits)

    def floats(self, operation: str, sources: list[str]) -> tuple[Any, int]:
        """Arithmetic of float32, and its conversion to halves; words, and how wide they are."""
        given = [self.value(x, 32).astype(np.uint32).view(np.float32) for x in sources]
        if operation == "cvt.rn.f16x2":
            high, low = (x.astype(np.float16).view(np.uint16).astype(np.uint64) for x in given)
            return low | high << np.uint64(16), 32
        found = FLOATS[operation](*given).astype(np.float32)
        return found.view(np.uint32).astype(np.uint64), 32

    # --- memory ---------------------------------------------------------------------------------

    def addresses(self, place: str) -> Any:
        base, _, offset = place.strip("[]").replace(" ", "").partition("+")
        return (self.value(base) + np.uint64(int(offset or 0) % (1 << 64))).astype(np.int64)

    def access(self, opcode: str, operands: list[str]) -> None:
        loads = opcode.startswith("ld")
        held_by, place = operands if loads else operands[::-1]
        names = registers(held_by)
        each = int(opcode.rsplit(".", 1)[1][1:]) // 8
        size = each * len(names)
        at = self.addresses(place)
        assert not (at[self.active] % size).any(), f"{opcode} {place} is not aligned"
        held = {n: self.value(n, 8 * each) if not loads else np.zeros(self.threads, np.uint64) for n in names}
        for thread in np.flatnonzero(self.active):
            memory, begin = self.bytes_of(int(at[thread]), size, ".shared" in opcode)
            if ".shared" in opcode:
                self.note(begin, size, int(thread), loads)
            for i, name in enumerate(names):
                here = memory[begin + i * each : begin + (i + 1) * each]
                if loads:
                    held[name][thread] = int.from_bytes(here.tobytes(), "little")
                else:
                    here[:] = np.frombuffer(int(held[name][thread]).to_bytes(each, "little"), np.uint8)
        if loads:
            for name in names:
                self.write(name, held[name], 8 * each)

    def bytes_of(self, address: int, size: int, shared: bool) -> tuple[Any, int]:
        """The memory of an address, and where in it that is."""
        if shared:
            assert SHARED <= address <= self.shared.size - size, f"{address} is outside shared memory"
            return self.shared, address
        number, begin = address // FAR - 1, address % FAR
        assert 0 <= number < len(self.memory), f"address {address} is in no array"
        assert begin + size <= self.memory[number].size, f"byte {begin} is outside array {number}"
        return self.memory[number], begin

    def note(self, begin: int, size: int, thread: int, reads: bool) -> None:
        """Check and remember who touches shared memory."""
        there = self.writer[begin : begin + size]
        assert not (there == COMING).any(), f"byte {begin}: an asynchronous copy is under way"
        if reads:
            assert not (there == UNWRITTEN).any(), f"byte {begin} of shared memory holds nothing"
            wrong = (there >= 0) & (there != thread)
            assert not wrong.any(), f"byte {begin}: written by thread {there.max()}, no barrier between"
            self._read(begin, size, thread)
        else:
            self._overwrite(begin, size, thread)
            there[:] = thread

    def _read(self, begin: int, size: int, thread: int) -> None:
        there = self.reader[begin : begin + size]
        there[:] = np.where((there == NOBODY) | (there == thread), thread, SEVERAL)

    def _overwrite(self, begin: int, size: int, thread: int) -> None:
        there = self.reader[begin : begin + size]
        wrong = (there != NOBODY) & (there != thread)
        assert not wrong.any(), (
            f"byte {begin}: overwritten while another thread may read it, no barrier between"
        )

    def copy(self, opcode: str, operands: list[str]) -> None:
        if opcode == "cp.async.commit_group":
            self.groups.append([])
        elif opcode == "cp.async.wait_group":
            keep = int(operands[0]) + 1  # the last list is no group yet
            while len(self.groups) > keep:
                self._land(self.groups.pop(0))
        else:
            size, target, source = int(operands[2]), self.addresses(operands[0]), self.addresses(operands[1])
            count = self.value(operands[3], 32).astype(np.int64)
            assert not (target[self.active] % size).any()
            assert not (source[self.active] % size).any()
            for thread in np.flatnonzero(self.active):
                at = int(target[thread])
                self._overwrite(at, size, int(thread))
                self.writer[at : at + size] = COMING
            self.groups[-1].append((self.active.copy(), target, size, source, count))

    def _land(self, group: list[tuple[Any, Any, int, Any, Any]]) -> None:
        for active, target, size, source, count in group:
            for thread in np.flatnonzero(active):
                begin, n = int(target[thread]), int(count[thread])
                self.shared[begin : begin + size] = 0
                if n:
                    memory, at = self.bytes_of(int(source[thread]), n, False)
                    self.shared[begin : begin + n] = memory[at : at + n]
                self.writer[begin : begin + size] = thread

    # --- tensor cores ---------------------------------------------------------------------------

    def matrices(self, opcode: str, operands: list[str]) -> None:
        moves = [*LDMATRIX, *STMATRIX]
        (move,) = [m for m in moves if m.instruction.mnemonic == opcode]
        assert self.active.all()
        loads = move.operation == "ldmatrix"
        held_by, place = operands if loads else operands[::-1]
        names = registers(held_by)
        at = self.addresses(place)
        lines = [t for t in range(self.threads) if t % 32 < move.count * move.lines]
        for t in lines:
            assert at[t] % 16 == 0
            self.bytes_of(int(at[t]), 16, True)
            there = self.writer[at[t] : at[t] + 16]
            assert not loads or (there != UNWRITTEN).all(), "a line of a matrix holds nothing"
            assert (there != COMING).all(), "a line of a matrix is under way"
            assert not ((there >= 0) & (there != t)).any(), "a line of a matrix: no barrier between"
            if loads:
                self._read(int(at[t]), 16, t)
            else:
                self._overwrite(int(at[t]), 16, t)
        values: dict[str, Any] = {"p": Place(self.shared, at.reshape(-1, 32))}
        if not loads:
            values["A"] = self.words(names)
        found = move.instruction.meaning(values)
        if loads:
            for i, name in enumerate(names):
                self.write(name, found["D"][..., i].reshape(-1).astype(np.uint64), 32)
        else:
            for t in lines:
                self.writer[at[t] : at[t] + 16] = t

    def words(self, names: list[str], wide: bool = False) -> Any:
        """``[warps, lanes, words]``; of 64-bit registers two each, the low one first."""
        kind, bits = (np.uint64, 64) if wide else (np.uint32, 32)
        found = np.stack([self.value(x, bits).astype(kind) for x in names], axis=-1)
        return np.ascontiguousarray(found).view(np.uint32).reshape(self.threads // 32, 32, -1)

    def mma(self, opcode: str, operands: list[str]) -> None:
        (record,) = [i.instruction for i in DENSE if i.instruction.mnemonic == opcode]
        assert self.active.all()
        d, a, b, c = (mma_operands(x)[0] for x in operands)
        values = {"D": self.words(c), "A": self.words(a), "B": self.words(b)}
        result = record.meaning(values)["D"].view(np.uint32).reshape(self.threads, -1)
        for i, name in enumerate(d):
            self.write(name, result[:, i].astype(np.uint64), 32)


def _labeled(ptx: str) -> tuple[Code, dict[str, list[int]]]:
    """(guard, opcode, operands) of each instruction, and where each label is; those of scopes may be several."""
    text = re.sub(r"//[^\n]*", "", ptx[ptx.index(".entry") :])
    body = text[text.index("{") + 1 : text.rindex("}")]
    body = re.sub(r"{(\s*\.reg)", r"\1", body)
    body = re.sub(r";(\s*)}", r";\1", body)
    code: Code = []
    labels: dict[str, list[int]] = {}
    for part in body.split(";"):
        statement = " ".join(part.split())
        while found := re.match(r"(\$?\w+):(?:\s+|$)", statement):
            labels.setdefault(found[1], []).append(len(code))
            statement = statement[found.end() :]
        if not statement or statement.startswith("."):
            continue
        code.append(instruction(statement))
    return code, labels


def run(ptx: str, arrays: Sequence[Any], threads: int, grid: tuple[int, int] = (1, 1)) -> list[CtaMachine]:
    """All CTAs of a grid, one after another, on the same arrays, which change."""
    machines = [
        CtaMachine(ptx, arrays, threads, (x, y), grid) for y in range(grid[1]) for x in range(grid[0])
    ]
    for machine in machines:
        machine.run()
    return machines
