"""The text of a straight program: one PTX entry, an instruction a line.

The registers keep the program's names, so that every ``mma.sync`` shows which fragment registers it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelayout.expr import Index

from ..isa.operand_map import LANES
from ..program import Address, Buffer, Comment, Program, Registers, Step, walk
from ..target import Target
from .address import IndexCode, byte_offset, packing, split_constant
from .names import Names, comment_line
from .ptx_parts import SPECIAL, buffer_address, dynamic_array, module_text, register_groups, shared_array
from .shared_memory import SharedMemory

# Immediate offsets are signed numbers of 32 bits; what lies beyond goes to the address register.
_IMMEDIATE = 1 << 31
_PAGE = 1 << 30


@dataclass(frozen=True)
class Base:
    """A buffer: its parameter or its array in shared memory, the register of its address, the base name of addresses
    within it, and their width in bits.
    """

    symbol: str
    register: str
    within: str
    bits: int


class Module:
    """The text under construction."""

    def __init__(self, program: Program, target: Target, threads: int) -> None:
        self.program, self.target, self.threads = program, target, threads
        names = Names(SPECIAL)
        self.thread, lane, warp = (f"%{names.one(n)}" for n in ("thread", "lane", "warp"))
        self.coordinates = {"lane": lane, "warp": warp}
        temporaries = {bits: f"%{names.family(base)}" for bits, base in ((32, "r"), (64, "rd"))}
        self.groups: dict[Registers, str] = {
            r: f"%{names.family(r.name, r.count)}" for r in program.registers
        }
        self.entry = Names().one(program.name)
        parameters = Names([self.entry])
        self.bases: dict[Buffer, Base] = {
            b: Base(
                parameters.one(f"{self.entry}_{b.name}"),
                f"%{names.one(b.name)}",
                f"%{names.family(f'{b.name}_at')}",
                64 if b.space == "global" else 32,
            )
            for b in program.buffers
        }
        self.shared = SharedMemory.of(program)
        self.dynamic = parameters.one("dynamic_shared")
        self.lines: list[str] = []
        self.code = IndexCode(self.lines, self.coordinates, temporaries)
        self.temporaries = temporaries
        self.places: dict[Buffer, dict[str, str]] = {b: {} for b in program.buffers}
        self._known: dict[Address, str] = {}

    def text(self) -> str:
        for statement, _ in walk(self.program.body, {}):
            if isinstance(statement, Comment):
                self.lines.append(comment_line(statement.text))
            else:
                self.lines.append(self.statement(statement))
        passed = [(b, base) for b, base in self.bases.items() if b.space == "global"]
        parameters = [
            f".param .u64 {base.symbol}{',' * (i + 1 < len(passed))}  // {b.dtype}{list(b.shape)}, "
            f"row-major{packing(b)}"
            for i, (b, base) in enumerate(passed)
        ]
        body = [*self.declarations(), "", *self.prologue(), "", *self.lines, "ret;"]
        dynamic = dynamic_array(self.shared, self.dynamic)
        return module_text(self.program, self.target, dynamic, self.entry, parameters, self.threads, body)

    def declarations(self) -> list[str]:
        """The registers, in groups: the program's, addresses, coordinates, temporaries; arrays in shared memory."""
        out = [
            shared_array(b, base.symbol)
            for b, base in self.bases.items()
            if b.space == "shared" and not self.shared.dynamic
        ]
        out += register_groups(self.groups)
        for buffer, base in self.bases.items():
            count = len(self.places[buffer])
            out.append(f".reg .b{base.bits} {base.register}{f', {base.within}<{count}>' if count else ''};")
        if self.code.variables:
            used = [name for variable, name in self.coordinates.items() if variable in self.code.variables]
            out.append(f".reg .b32 {', '.join([self.thread, *used])};")
        out += [
            f".reg .b{bits} {self.temporaries[bits]}<{count}>;"
            for bits, count in self.code.used.items()
            if count
        ]
        return out

    def prologue(self) -> list[str]:
        """Where the thread is, and where the buffers are."""
        out: list[str] = []
        if self.code.variables:
            out.append(f"mov.u32 {self.thread}, %tid.x;")
        if "lane" in self.code.variables:
            out.append(f"and.b32 {self.coordinates['lane']}, {self.thread}, {LANES - 1};")
        if "warp" in self.code.variables:
            warp = self.coordinates["warp"]
            out.append(f"shr.u32 {warp}, {self.thread}, 5;")
            if self.threads > LANES * self.program.warps:
                out.append(f"rem.u32 {warp}, {warp}, {self.program.warps};")
        for buffer, base in self.bases.items():
            out += buffer_address(buffer, base.register, base.symbol, self.shared, self.dynamic)
        return out

    def statement(self, step: Step) -> str:
        """One instruction, after the integer instructions that its addresses need."""
        registers: dict[str, list[str]] = {}
        for operand, argument in zip(step.instruction.operands, step.arguments, strict=True):
            if isinstance(argument, Address):
                bit = [self.code.value(argument.bit, 32)] if argument.buffer.per_unit > 1 else []
                registers[operand.name] = [self.place(argument), *bit]
            else:
                registers[operand.name] = [f"{self.groups[r]}{i}" for r, i in argument]
        return step.instruction.text(registers)

    def place(self, address: Address) -> str:
        """``register+immediate`` of an address, without the brackets."""
        found = self._known.get(address)
        if found is None:
            rest, constant = split_constant(byte_offset(address))
            high = 0 if -_IMMEDIATE <= constant < _IMMEDIATE else constant // _PAGE * _PAGE
            register, low = self.base(address.buffer, rest + high), constant - high
            found = self._known[address] = f"{register}+{low}" if low else register
        return found

    def base(self, buffer: Buffer, offset: Index) -> str:
        """The register that holds the address of a buffer plus an offset in bytes."""
        base, places = self.bases[buffer], self.places[buffer]
        if isinstance(offset, int) and offset == 0:
            return base.register
        distance = self.code.value(offset, base.bits)  # computed in 32 bits where they hold it
        if distance not in places:
            places[distance] = f"{base.within}{len(places)}"
            self.lines.append(f"add.s{base.bits} {places[distance]}, {base.register}, {distance};")
        return places[distance]
