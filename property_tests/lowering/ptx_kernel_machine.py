"""Executes the PTX of whole kernels on the CPU: our own texts of structured programs, one CTA after another.

More than `ptx_cta_machine`: parameters of every kind, integers of 64 bits, declared widths that operands must keep,
scopes of labels, barriers that some threads reach before others, mbarriers, and instructions by their records' meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lowering.isa.ldmatrix import LDMATRIX
from lowering.isa.record import Instruction, Place
from lowering.program import Program

from .ptx_cta_machine import COMING, COMPARE, SHARED, UNWRITTEN, Code, CtaMachine
from .ptx_machine import FAR, instruction, registers

WORDS = {"f32": (np.float32, np.uint32), "f64": (np.float64, np.uint64)}
PLACES = ("%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z")


class KernelMachine(CtaMachine):
    """One CTA of a structured program's text.

    `memory` has the arrays by name of the buffer, which change; `values` the numbers of the launch.
    """

    def __init__(
        self,
        ptx: str,
        program: Program,
        memory: Mapping[str, Any],
        values: Mapping[str, int | float],
        place: Sequence[int],
    ) -> None:
        self.program, self.values = program, values
        found = re.search(r"\.reqntid (\d+)", ptx)
        assert found is not None
        buffers = [b for b in program.buffers if b.space == "global"]
        super().__init__(ptx, [memory[b.name] for b in buffers], int(found[1]))
        self.registers["%laneid"] = self.registers["%tid.x"] & np.uint64(31)
        for name, value in zip(PLACES, place, strict=True):
            self.registers[name] = np.full(self.threads, value, np.uint64)
        self.widths = dict(_declared(ptx))
        self.at_barrier: dict[int, Any] = {}
        self.bars: dict[int, list[int]] = {}  # address -> arrivals a phase, still missing, phases complete
        self.asleep: dict[int, list[int]] = {}  # address -> threads that wait for the phase
        self.records: dict[str, Instruction] = {}
        for i in program.instructions:
            function = i.effect == "none" and all(o.is_registers for o in i.operands)
            if function and not i.template.startswith(("{{", "mov.")):
                assert i.mnemonic not in self.records, f"two records of {i.mnemonic}"
                self.records[i.mnemonic] = i

    # --- what the launch gives --------------------------------------------------------------------

    def _parameters(self, ptx: str) -> dict[str, int]:
        head = ptx[ptx.index(".entry") : ptx.index(".reqntid")]
        declared = re.findall(r"\.param \.(\w+) (\w+)", head)
        given = [(i + 1) * FAR for i in range(len(self.arrays))]
        kinds = ["u64"] * len(given)
        for p in self.program.parameters:
            value = self.values[p.name]
            if p.kind in WORDS:
                real, word = WORDS[p.kind]
                value = int(np.asarray(value, real).view(word))
            given.append(int(value) % (1 << 8 * p.bytes))
            kinds.append(p.kind)
        assert [kind for kind, _ in declared] == kinds
        self.kinds = {name: kind for kind, name in declared}
        return {name: value for (_, name), value in zip(declared, given, strict=True)}

    def _place_shared(self, ptx: str) -> None:
        for name, size in re.findall(r"\.extern (\.shared \.align \d+ \.b8 \w+)\[\];  // (\d+) bytes", ptx):
            ptx = f"{name}[{size}]"
        super()._place_shared(ptx)

    # --- steps --------------------------------------------------------------------------------------

    def _code(self, ptx: str) -> tuple[Code, dict[int, int]]:
        return _resolved(ptx)

    def value(self, operand: str, bits: int = 64, signed: bool = False) -> Any:
        """An operand of every thread; a register has that width, a literal fits it."""
        if operand in self.widths:
            assert bits == self.widths[operand], f"{operand} has {self.widths[operand]} bits, not {bits}"
        elif re.fullmatch(r"-?\d+", operand):
            assert -(1 << bits - 1) <= int(operand) < 1 << bits, f"{operand} does not fit {bits} bits"
        return super().value(operand, bits, signed)

    def write(self, name: str, value: Any, bits: int) -> None:
        assert self.widths.get(name, bits) == bits, f"{name} has {self.widths[name]} bits, not {bits}"
        super().write(name, value, bits)

    # --- instructions -----------------------------------------------------------------------------

    def execute(self, opcode: str, operands: list[str]) -> None:
        if opcode in self.records:
            self.by_record(self.records[opcode], operands)
        elif opcode.startswith("ld.param"):
            symbol, kind = operands[1][1:-1], opcode.rsplit(".", 1)[1]
            assert kind == self.kinds[symbol]
            found = np.full(self.threads, self.constants[symbol], np.uint64)
            self.write(operands[0], found, int(kind[1:]))
        elif opcode == "shfl.sync.idx.b32":
            assert self.whole_warps()
            assert operands[3:] == ["31", "0xffffffff"]
            source = np.arange(self.threads) // 32 * 32 + int(operands[2])
            self.write(operands[0], self.value(operands[1], 32)[source], 32)
        elif opcode.startswith("setp.") and ".and." in opcode:
            _, relation, _, kind = opcode.split(".")
            left, right = (self.value(x, int(kind[1:]), kind[0] == "s") for x in operands[1:3])
            self.set_predicate(operands[0], COMPARE[relation](left, right) & self.predicates[operands[3]])
        elif opcode.startswith("bar.sync"):
            self.barrier(int(operands[0]), int(operands[1]) if operands[1:] else self.threads)
        elif opcode.startswith("bar.warp"):
            assert self.whole_warps()
        elif opcode.startswith("mbarrier.") or ".mbarrier." in opcode:
            self.phases(opcode, operands)
        else:
            if opcode.startswith("cp.async."):
                assert self.active.all() or opcode.count(".shared"), "threads form their groups together"
            super().execute(opcode, operands)

    def compute(self, operation: str, kind: str, operands: list[str]) -> None:
        if operation in ("div", "rem"):
            signed, bits = kind[0] == "s", int(kind[1:])
            left, right = (self.value(x, bits, signed) for x in operands[1:])
            right = np.where(right == 0, 1, right)  # what PTX leaves open; no thread may use it
            rest = np.fmod(left, right)  # towards zero
            self.write(operands[0], rest if operation == "rem" else (left - rest) // right, bits)
        elif f"{operation}.{kind}" == "cvt.f32.f16":
            found = self.value(operands[1], 16).astype(np.uint16).view(np.float16).astype(np.float32)
            self.write(operands[0], found.view(np.uint32).astype(np.uint64), 32)
        else:
            super().compute(operation, kind, operands)

    def by_record(self, record: Instruction, operands: list[str]) -> None:
        """What the record says that it computes; the operands in the order of the text."""
        assert not record.collective or self.whole_warps(), f"{record.name} by a part of a warp"
        order = re.findall(r"(?<!{){(\w+)}", record.template)
        named = dict(zip(order, operands, strict=True))
        values: dict[str, Any] = {}
        for o in record.operands:
            if o.reads:
                values[o.name] = self.words(registers(named[o.name]), o.kind == "f64")
        for name, found in record.meaning(values).items():
            operand = next(o for o in record.operands if o.name == name)
            wide = operand.kind == "f64"
            words = np.ascontiguousarray(found, np.uint32).view(np.uint64 if wide else np.uint32)
            for i, register in enumerate(registers(named[name])):
                self.write(
                    register, words.reshape(self.threads, -1)[:, i].astype(np.uint64), 64 if wide else 32
                )

    # --- memory -------------------------------------------------------------------------------------

    def addresses(self, place: str) -> Any:
        base, _, offset = place.strip("[]").replace(" ", "").partition("+")
        assert -(1 << 31) <= int(offset or 0) < 1 << 31
        found = self.value(base, self.widths.get(base, 32)).astype(np.int64)
        return found + np.int64(int(offset or 0))

    def access(self, opcode: str, operands: list[str]) -> None:
        loads, shared = opcode.startswith("ld"), ".shared" in opcode
        held_by, place = operands if loads else operands[::-1]
        names = registers(held_by)
        each = int(opcode.rsplit(".", 1)[1][1:]) // 8
        size, threads = each * len(names), np.flatnonzero(self.active)
        at = self.addresses(place)[threads]
        assert not (at % size).any(), f"{opcode} {place} is not aligned"
        memory, begin = self.bytes_of(int(at[0]), size, shared)
        places = at - (int(at[0]) - begin)
        first = SHARED if shared else 0
        inside = (places >= first) & (places <= memory.size - size)
        assert inside.all(), f"{opcode} {place} is outside its array"
        if shared:
            for t, x in zip(threads, places, strict=True):
                self.note(int(x), size, int(t), loads)
        for i, name in enumerate(names):
            bits = self.widths.get(name, 8 * each)
            where = places[:, None] + i * each + np.arange(each)
            if loads:
                words = np.zeros((self.threads, 8), np.uint8)
                words[threads, :each] = memory[where]
                self.write(name, words.view(np.uint64)[:, 0], bits)
            else:
                words = np.ascontiguousarray(self.value(name, bits)).view(np.uint8).reshape(-1, 8)
                memory[where] = words[threads, :each]

    def note(self, begin: int, size: int, thread: int, reads: bool) -> None:
        """What is read is there; who races with whom is found by the machine for programs."""
        there = self.writer[begin : begin + size]
        assert not (there == COMING).any(), f"byte {begin}: an asynchronous copy is under way"
        assert not reads or not (there == UNWRITTEN).any(), f"byte {begin} of shared memory holds nothing"
        if not reads:
            there[:] = thread

    def _overwrite(self, begin: int, size: int, thread: int) -> None:
        """Whatever it held."""

    def matrices(self, opcode: str, operands: list[str]) -> None:
        """``ldmatrix`` by the warps that have come to it."""
        (move,) = [m for m in LDMATRIX if m.instruction.mnemonic == opcode]
        assert self.whole_warps(), f"{opcode} by a part of a warp"
        at = np.where(self.active, self.addresses(operands[1]), SHARED)
        for t in np.flatnonzero(self.active):
            if t % 32 < move.count * move.lines:
                assert at[t] % 16 == 0
                self.bytes_of(int(at[t]), 16, True)
                self.note(int(at[t]), 16, int(t), True)
        found = move.instruction.meaning({"p": Place(self.shared, at.reshape(-1, 32))})["D"]
        for i, name in enumerate(registers(operands[0])):
            self.write(name, found[..., i].reshape(-1).astype(np.uint64), 32)

    def whole_warps(self) -> bool:
        warps = self.active.reshape(-1, 32)
        return bool((warps.all(1) == warps.any(1)).all())

    # --- barriers -----------------------------------------------------------------------------------

    def barrier(self, number: int, count: int) -> None:
        """Threads arrive, and go on when `count` have."""
        there = self.at_barrier.get(number, np.zeros(self.threads, bool)) | self.active
        self.blocked |= there
        if there.sum() == count:
            self.blocked &= ~there
            there = np.zeros(self.threads, bool)
        self.at_barrier[number] = there

    def phases(self, opcode: str, operands: list[str]) -> None:
        """An mbarrier's initialization, arrivals and tests."""
        if opcode.startswith("mbarrier.init"):
            at = self.addresses(operands[0])
            for t in np.flatnonzero(self.active):
                count = int(self.value(operands[1], 32)[t])
                self.bars[int(at[t])] = [count, count, 0]
        elif "test_wait" in opcode or "try_wait" in opcode:
            at, parity = self.addresses(operands[1]), self.value(operands[2], 32)
            done = np.zeros(self.threads, bool)
            for t in np.flatnonzero(self.active):
                bar = int(at[t])
                done[t] = (self.bars[bar][2] & 1) != int(parity[t])
                if not done[t]:
                    self.blocked[t] = True
                    self.asleep.setdefault(bar, []).append(t)
            self.set_predicate(operands[0], done)
        else:
            if opcode.startswith("cp.async"):  # the copies land first
                for group in self.groups:
                    self._land(group)
                self.groups = [[]]
            at = self.addresses(operands[-1])
            for t in np.flatnonzero(self.active):
                self.arrive(int(at[t]))

    def arrive(self, bar: int) -> None:
        state = self.bars[bar]
        state[1] -= 1
        assert state[1] >= 0
        if not state[1]:
            self.bars[bar] = [state[0], state[0], state[2] + 1]
            for t in self.asleep.pop(bar, []):
                self.blocked[t] = False


def _declared(ptx: str) -> list[tuple[str, int]]:
    """The registers of the text, and their bits."""
    out = []
    for kind, names in re.findall(r"^    \.reg \.(\w+) ([^;]*);", ptx, re.MULTILINE):
        for name in names.split(", ") if kind != "pred" else []:
            bits, family = int(kind[1:]), re.fullmatch(r"(%\w+)<(\d+)>", name)
            members = [f"{family[1]}{i}" for i in range(int(family[2]))] if family else [name]
            out += [(member, bits) for member in members]
    assert len(out) == len(dict(out)), "a register is declared twice"
    return out


def _resolved(ptx: str) -> tuple[Code, dict[int, int]]:
    """(guard, opcode, operands) of each instruction, and where each branch goes."""
    text = re.sub(r"//[^\n]*", "", ptx[ptx.index(".reqntid") :])
    body = text[text.index("{") + 1 : text.rindex("}")]
    code: Code = []
    labels: dict[tuple[int, str], int] = {}
    scopes, count, within = [0], 0, {}
    for part in body.split(";"):
        statement = " ".join(part.split())
        while found := re.match(r"(\w+:|[{}])\s*", statement):
            statement = statement[found.end() :]
            if found[1] == "}":
                scopes.pop()
            elif found[1] == "{":
                count += 1
                scopes.append(count)
            else:
                assert (scopes[-1], found[1][:-1]) not in labels, "a label twice"
                labels[scopes[-1], found[1][:-1]] = len(code)
        if not statement or statement.startswith("."):
            continue
        within[len(code)] = tuple(scopes)
        code.append(instruction(statement))
    targets = {
        i: next(labels[s, operands[-1]] for s in reversed(within[i]) if (s, operands[-1]) in labels)
        for i, (_, opcode, operands) in enumerate(code)
        if opcode.startswith("bra")
    }
    return code, targets


def run_kernel(
    ptx: str,
    program: Program,
    grid: tuple[int, int, int],
    memory: Mapping[str, Any],
    values: Mapping[str, int | float] | None = None,
) -> dict[str, Any]:
    """What the arrays hold after a launch, as `cta_machine.run_grid` gives it."""
    memory = {name: np.array(a) for name, a in memory.items()}
    for z, y, x in np.ndindex(grid[::-1]):
        KernelMachine(ptx, program, memory, values or {}, (x, y, z, *grid)).run()
    return memory
