"""The text of a program with loops, branches and parameters: one PTX entry.

Its parameters are the buffers' addresses in order, the program's numbers, and its tensor maps.
"""

from __future__ import annotations

from tilelayout import LayoutError
from tilelayout.expr import Index, Var

from ..control import (
    GRID,
    RELATIONS,
    Compare,
    Condition,
    Draw,
    Parameter,
    Set,
    TensorMap,
    assigned,
    comparisons,
)
from ..isa.operand_map import LANES
from ..program import (
    Address,
    Argument,
    Buffer,
    Comment,
    If,
    Instr,
    Program,
    Registers,
    Statement,
    While,
    unrolled,
)
from ..target import Target
from .address import byte_offset, split_constant, width
from .names import Names, comment_line
from .ptx_parts import SPECIAL, buffer_address, dynamic_array, module_text, register_groups, shared_array
from .scopes import ScopedCode, flat
from .shared_memory import SharedMemory

LANE = Var("lane", 0, LANES - 1)
_IMMEDIATE = 1 << 30
"""Immediate offsets are signed numbers of 32 bits."""
_BASE = {"global": ("_global_{}", (1 << 62) - 1), "shared": ("_shared_{}", (1 << 24) - 1)}
"""Memory -> the variable of a buffer's address, and its largest value."""


class StructuredModule:
    """The text under construction."""

    def __init__(self, program: Program, target: Target, threads: int) -> None:
        self.program, self.target, self.threads = program, target, threads
        self.names = Names(SPECIAL)
        self.thread = f"%{self.names.one('thread')}"
        temporaries = {bits: f"%{self.names.family(base)}" for bits, base in ((32, "r"), (64, "rd"))}
        self.predicates, self.predicate_count = f"%{self.names.family('p')}", 0
        self.groups: dict[Registers, str] = {
            r: f"%{self.names.family(r.name, r.count)}" for r in program.registers
        }
        self.entry = Names().one(program.name)
        symbols = Names([self.entry])
        self.symbols: dict[Buffer | Parameter | TensorMap, str] = {
            x: symbols.one(f"{self.entry}_{x.name}")
            for x in (*program.buffers, *program.parameters, *program.maps)
        }
        self.shared = SharedMemory.of(program)
        self.dynamic = symbols.one("dynamic_shared")
        self.code = ScopedCode({}, temporaries)
        self.temporaries = temporaries
        self.registers: dict[str, tuple[str, int]] = {}  # variable -> its register and width
        self.bases = {
            b: Var(_BASE[b.space][0].format(i), 0, _BASE[b.space][1]) for i, b in enumerate(program.buffers)
        }
        self.maps: dict[TensorMap, str] = {m: f"%{self.names.one(m.name)}" for m in program.maps}
        self.labels = 0
        for name in ("lane", "warp", *GRID):
            self.declare(Var(name, 0, (1 << 31) - 1), name)
        for p in program.parameters:
            if p.kind.startswith("s"):
                self.declare(p.variable, p.name, int(p.kind[1:]))
        for b, base in self.bases.items():
            self.declare(base, b.name)

    def declare(self, variable: Var, wish: str, bits: int = 0) -> None:
        """A register for a variable."""
        bits = bits or width(variable)
        register = f"%{self.names.one(wish)}"
        self.registers[variable.name] = register, bits
        self.code.declare(variable, register)
        (self.code.wide.add if bits == 64 else self.code.wide.discard)(variable.name)

    # --- the module -----------------------------------------------------------------------------------

    def text(self) -> str:
        self.body(unrolled(self.program.body))
        entry = self.parameters()
        parameters = [f"{line}{',' * (i + 1 < len(entry))}" for i, line in enumerate(entry)]
        body = [*self.declarations(), "", *self.prologue(), "", *flat(self.code.scopes[0].lines), "ret;"]
        dynamic = dynamic_array(self.shared, self.dynamic)
        return module_text(self.program, self.target, dynamic, self.entry, parameters, self.threads, body)

    def parameters(self) -> list[str]:
        found = [f".param .u64 {self.symbols[b]}" for b in self.program.buffers if b.space == "global"]
        found += [f".param .{p.kind} {self.symbols[p]}" for p in self.program.parameters]
        return found + [f".param .align 64 .b8 {self.symbols[m]}[128]" for m in self.program.maps]

    def declarations(self) -> list[str]:
        """Arrays in shared memory, then the registers: the program's, variables, temporaries."""
        out = [] if self.shared.dynamic else [shared_array(b, self.symbols[b]) for b in self.shared.offsets]
        out += register_groups(self.groups)
        out.append(f".reg .b32 {self.thread};")
        for bits in (32, 64):
            mine = [register for register, wide in self.registers.values() if wide == bits]
            mine += list(self.maps.values()) if bits == 64 else []
            out += [f".reg .b{bits} {', '.join(mine)};"] if mine else []
            count = self.code.used[bits]
            out += [f".reg .b{bits} {self.temporaries[bits]}<{count}>;"] if count else []
        if self.predicate_count:
            out.append(f".reg .pred {self.predicates}<{self.predicate_count}>;")
        return out

    def prologue(self) -> list[str]:
        """Where the thread is, what the launch gave, and where the buffers are."""
        lane, warp = self.registers["lane"][0], self.registers["warp"][0]
        out = [f"mov.u32 {self.thread}, %tid.x;", f"and.b32 {lane}, {self.thread}, {LANES - 1};"]
        # The same in all lanes of a warp, which the assembler cannot see from the thread's number.
        out += [f"shr.u32 {warp}, {self.thread}, 5;", f"shfl.sync.idx.b32 {warp}, {warp}, 0, 31, 0xffffffff;"]
        if self.threads > LANES * self.program.warps:
            out.append(f"rem.u32 {warp}, {warp}, {self.program.warps};")
        out += [
            f"mov.u32 {self.registers[name][0]}, {special};"
            for name, (special, _) in GRID.items()
            if name in self.code.variables
        ]
        for p in self.program.parameters:
            if p.kind.startswith("s"):
                out.append(f"ld.param.{p.kind} {self.registers[p.name][0]}, [{self.symbols[p]}];")
        for m, register in self.maps.items():
            out += [f"mov.b64 {register}, {self.symbols[m]};", f"cvta.param.u64 {register}, {register};"]
        for b, base in self.bases.items():
            register = self.registers[base.name][0]
            out += buffer_address(b, register, self.symbols[b], self.shared, self.dynamic)
        return out

    # --- statements -----------------------------------------------------------------------------------

    def body(self, statements: tuple[Statement, ...]) -> None:
        for s in statements:
            if isinstance(s, Comment):
                self.code.line(comment_line(s.text))
            elif isinstance(s, Set):
                self.assign(s)
            elif isinstance(s, Draw):
                self.draw(s)
            elif isinstance(s, If):
                self.branch(s)
            elif isinstance(s, While):
                self.loop(s)
            else:
                self.code.line(self.instruction(s))  # type: ignore[arg-type]

    def assign(self, s: Set) -> None:
        register, bits = self.assigned(s.variable)
        value = self.code.value(s.value, bits)
        self.code.forget(s.variable.name)
        self.code.line(f"mov.b{bits} {register}, {value};")

    def draw(self, s: Draw) -> None:
        """Lane 0 adds one, and all have what it found."""
        register, _ = self.assigned(s.variable)
        place, lane = self.place(s.counter), self.registers["lane"][0]
        self.code.forget(s.variable.name)
        self.code.line(
            f"{{ .reg .pred P; .reg .b32 x; setp.eq.u32 P, {lane}, 0; "
            f"@P atom.relaxed.gpu.global.add.u32 x, [{place}], 1; "
            f"shfl.sync.idx.b32 {register}, x, 0, 31, 0xffffffff; }}"
        )

    def assigned(self, variable: Var) -> tuple[str, int]:
        """The register, and its width, of a variable that a statement assigns."""
        name = variable.name
        if name not in self.registers:
            self.declare(variable, name)
        register, bits = self.registers[name]
        if width(variable) > bits:
            raise LayoutError("Set", f"{name} is assigned with bounds of 64 bits after bounds of 32")
        return register, bits

    def branch(self, s: If) -> None:
        predicate = self.predicate(s.condition)
        if not s.orelse and len(s.body) == 1 and _is_plain(s.body[0]):
            self.code.line(f"@{predicate} {self.instruction(s.body[0])}")  # type: ignore[arg-type]
            return
        end, other = self.label("END"), self.label("ELSE") if s.orelse else ""
        lines = self.code.enter()
        lines.append(f"@!{predicate} bra {other or end};")
        self.body(s.body)
        if s.orelse:
            self.code.line(f"bra {end};")
            self.code.leave()
            lines = self.code.enter()
            lines.append(f"{other}:")
            self.body(s.orelse)
        self.code.line(f"{end}:")
        self.code.leave()

    def loop(self, s: While) -> None:
        """Tested at its beginning, and again at the end of each turn."""
        begin, end = self.label("LOOP"), self.label("END")
        names = frozenset(v.name for v in assigned(s.body))
        for v in assigned(s.body):
            if v.name not in self.registers:
                self.declare(v, v.name)
        predicate = self.predicate(s.condition)
        lines = self.code.enter(names, s.hoist)
        lines += [f"@!{predicate} bra {end};", f"{begin}:"]
        self.body(s.body)
        again = self.predicate(s.condition)
        self.code.line(f"@{again} bra {begin};")
        self.code.line(f"{end}:")
        self.code.leave()

    def label(self, what: str) -> str:
        self.labels += 1
        return f"{what}_{self.labels}"

    def predicate(self, condition: Condition) -> str:
        """The register of a condition: one comparison, and each other one joined to it."""
        found = ""
        for c in comparisons(condition):
            bits = max(width(x) for x in (c.left, c.right))
            left, right = (self.code.value(x, bits) for x in (c.left, c.right))
            if isinstance(c.left, int):
                left = self.code.emit(f"mov.b{bits}", bits, left)
            fresh = f"{self.predicates}{self.predicate_count}"
            self.predicate_count += 1
            relation = f"setp.{RELATIONS[c.relation]}"
            joined = (
                f".and.s{bits} {fresh}, {left}, {right}, {found};"
                if found
                else f".s{bits} {fresh}, {left}, {right};"
            )
            self.code.line(relation + joined)
            found = fresh
        return found or self.predicate(Compare(LANE, ">=", 0))  # of nothing: always

    def instruction(self, instr: Instr) -> str:
        """One instruction, after the integer instructions that its addresses and values need."""
        operands = zip(instr.instruction.operands, instr.arguments, strict=True)
        return instr.instruction.text({operand.name: self.argument(a) for operand, a in operands})

    def argument(self, argument: Argument) -> list[str]:
        if isinstance(argument, tuple):
            return [f"{self.groups[s.registers]}{s.index}" for s in argument]
        if isinstance(argument, Address):
            bit = [self.code.value(argument.bit, 32)] if argument.buffer.per_unit > 1 else []
            return [self.place(argument), *bit]
        if isinstance(argument, Parameter):
            return [self.symbols[argument]]
        if isinstance(argument, TensorMap):
            return [self.maps[argument]]
        return [self.code.value(argument, 32)]

    def place(self, address: Address) -> str:
        """``register+immediate`` of an address, without the brackets."""
        base = self.bases[address.buffer]
        rest, constant = split_constant(byte_offset(address))
        if not -_IMMEDIATE <= constant < _IMMEDIATE:
            rest, constant = rest + constant, 0
        where: Index = base + rest
        register = self.code.value(where, 64 if address.buffer.space == "global" else 32)
        return f"{register}+{constant}" if constant else register


def _is_plain(statement: Statement) -> bool:
    """Whether it is one instruction, which a predicate may stand before."""
    return isinstance(statement, Instr) and not statement.instruction.template.startswith(("{{", "@"))
