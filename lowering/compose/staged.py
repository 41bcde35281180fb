"""A register program as a complete kernel: load the fragments from global memory, run it, store the result.

One CTA, whose warps carry out the program side by side where it has more of them than the program needs, all with the
same result; each operand is a row-major tensor in global memory, read and written register by register at the
coordinates that its fragment layout gives, whole where its elements are neighbors there and element by element where
not.  Types of less than a byte are packed in memory as `program.Buffer` says.  Simple on purpose: it exists so that a
lowered gemm can be assembled, run and checked on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from tilelayout import LayoutError
from tilelayout.display import Displayed
from tilelayout.expr import Index

from ..isa import GATHER, LOAD_WORD, SCATTER, STORE_WORD
from ..program import Address, Buffer, Comment, Instr, Program, Registers, Slot, Statement, Step, walk
from ..registers import register_file
from ..tile import Tile

LANES = 32


@dataclass(frozen=True)
class Kernel(Displayed):
    """A register program with what surrounds it.

    Attributes:
        core: the register program.
        buffers: the global tensors, in the order A, B, C, D, or that of the program's operands where they are others.
        loads: one instruction per register whose first content the core reads, or passes on to another place.
        stores: one per register of the core's outputs, but for those that stay what their place in memory holds.
        threads: of the CTA: at least the program's warps.
        tiles: (role, tile) of the operands in the order of the buffers; for the reader and for pictures.
    """

    core: Program
    buffers: tuple[Buffer, ...]
    loads: tuple[Instr, ...]
    stores: tuple[Instr, ...]
    threads: int
    tiles: tuple[tuple[str, Tile], ...] = ()
    _painter: ClassVar[str] = "lowering.display"
    _explorer: ClassVar[str] = "lowering.explore"

    @property
    def name(self) -> str:
        return f"{self.core.name}_kernel"

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:
        buffers = ", ".join([f"{b.name}: {b.dtype}{list(b.shape)}" for b in self.buffers])
        return f"<Kernel {self.name} of {self.threads} threads on {buffers}>"

    @cached_property
    def program(self) -> Program:
        """All of it as one straight program over buffers alone.

        Each register is loaded just before it is first used and stored right after it is last written, so that no
        more registers are live than the multiplication needs.
        """
        loads = {_target(i): i for i in self.loads}
        stores = {_source(i): i for i in self.stores}
        last_write: dict[tuple[Registers, int], Step] = {}
        for step in self.core.steps:
            for operand, argument in zip(step.instruction.operands, step.arguments, strict=True):
                if operand.writes and not isinstance(argument, Address):
                    last_write.update(dict.fromkeys(argument, step))
        body: list[Statement] = []
        steps = iter(self.core.steps)  # the very objects that last_write knows
        for statement, _ in walk(self.core.body, {}):
            if isinstance(statement, Comment):
                body.append(statement)
                continue
            step = next(steps)
            used = [x for a in step.arguments if not isinstance(a, Address) for x in a]
            body += [loads.pop(x) for x in used if x in loads]
            body.append(_instr(step))
            body += [stores.pop(x) for x in used if x in stores and last_write.get(x) is step]
        # What the program passes on untouched to another place.
        for x in [x for x in stores if x not in last_write]:
            body += [loads.pop(x)] if x in loads else []
            body.append(stores.pop(x))
        return Program(self.name, self.core.warps, (), (), tuple(body), self.buffers, self.core.registers)


def stage(core: Program, tiles: dict[str, Tile], threads: int | None = None) -> Kernel:
    """The kernel of a register program whose operands live in `tiles` (by role).

    Post-condition: the tensors of the outputs hold what the program makes of the others and of what they held before.
    Only what the program writes is stored: elements of D's tile outside D's region are neither read nor written, so
    that another kernel may write them meanwhile.  (Where C is a region of D's tile and is read, the whole of C's tensor
    comes in beside D's, and they are copied from there.)

    Args:
        core: the register program.
        tiles: the operands' tiles by role.
        threads: of the CTA; default: the program's warps.  Warps beyond those take the places of the program's anew,
            as ``warp % core.warps``, and store what these store.

    Errors: LayoutError for fewer threads than the program's warps; for a tensor whose rows are no whole bytes; for a
    result of less than a byte an element that is not stored in whole registers.
    """
    needed = LANES * core.warps
    if threads is not None and threads < needed:
        raise LayoutError("stage", f"program {core.name} needs {needed} threads, the CTA has {threads}")
    containers = {r.role: r.container for r in (*core.inputs, *core.outputs)}
    known = [role for role in "ABCD" if role in containers]
    buffers = {
        role: Buffer(
            tiles[role].name if role != "C" or tiles["C"] != tiles.get("D") else f"{tiles['C'].name}_in",
            role,
            tiles[role].dtype,
            tiles[role].shape,
            containers[role],
        )
        for role in (*known, *[role for role in containers if role not in known])
    }
    loads = {_target(i): i for r in core.inputs for i in _loads(r, tiles[r.role], buffers[r.role])}
    stores = {_source(i): i for r in core.outputs for i in _stores(r, tiles[r.role], buffers[r.role])}
    read, written = _touched(core)
    for x in [x for x in stores if x not in written and x in loads]:
        if loads[x].arguments[1:] == stores[x].arguments[:-1]:
            del stores[x]
    kept = [i for x, i in loads.items() if x in read or (x in stores and x not in written)]
    held = tuple([(role, tiles[role]) for role in buffers])
    return Kernel(core, tuple(buffers.values()), tuple(kept), tuple(stores.values()), threads or needed, held)


def element_coordinates(registers: Registers, tile: Tile) -> dict[int, tuple[tuple[Index, ...], ...]]:
    """Register number -> the coordinates of the elements packed into it, low bits first; whole registers only."""
    per = registers.per_register
    coordinates = register_file(tile.layout, tile.shape).coordinates
    words: dict[int, tuple[tuple[Index, ...], ...]] = {}
    for word in range(registers.count):
        slots = range(word * per, (word + 1) * per)
        if all(s in coordinates for s in slots):
            words[word] = tuple([coordinates[s] for s in slots])
    return words


def _loads(registers: Registers, tile: Tile, buffer: Buffer) -> Sequence[Instr]:
    out: list[Instr] = []
    for word, elements in element_coordinates(registers, tile).items():
        places = tuple([Address(buffer, x) for x in elements])
        if _neighbors(places):
            instruction, places = LOAD_WORD[registers.kind], places[:1]  # type: ignore[index]
        else:
            instruction = GATHER[registers.container]
        out.append(Instr(instruction, ((Slot(registers, word),), *places)))
    return out


def _stores(registers: Registers, tile: Tile, buffer: Buffer) -> Sequence[Instr]:
    out: list[Instr] = []
    for word, elements in element_coordinates(registers, tile).items():
        places = tuple([Address(buffer, x) for x in elements])
        if _neighbors(places):
            instruction, places = STORE_WORD[registers.kind], places[:1]  # type: ignore[index]
        elif registers.container in SCATTER:
            instruction = SCATTER[registers.container]
        else:
            raise LayoutError(
                "stage",
                f"{tile.name}: {buffer.per_unit} {tile.dtype} share a byte of memory, and no lane has all of one",
            )
        out.append(Instr(instruction, (*places, (Slot(registers, word),))))
    return out


def _neighbors(places: tuple[Address, ...]) -> bool:
    """Whether the elements of one register lie side by side in memory, the first at a multiple of its size."""
    if len(places) == 1:
        return True
    first, *others = [p.element for p in places]
    return all(x - first == i for i, x in enumerate(others, 1)) and first % len(places) == 0


def _touched(core: Program) -> tuple[set[tuple[Registers, int]], set[tuple[Registers, int]]]:
    """The registers whose first content the program reads, and those that it writes."""
    read: set[tuple[Registers, int]] = set()
    written: set[tuple[Registers, int]] = set()
    for step in core.steps:
        operands = list(zip(step.instruction.operands, step.arguments, strict=True))
        for operand, argument in operands:
            if operand.reads and not isinstance(argument, Address):
                read.update([x for x in argument if x not in written])
        for operand, argument in operands:
            if operand.writes and not isinstance(argument, Address):
                written.update(argument)
    return read, written


def _instr(step: Step) -> Instr:
    """A step as a statement again."""
    arguments = [a if isinstance(a, Address) else tuple([Slot(r, i) for r, i in a]) for a in step.arguments]
    return Instr(step.instruction, tuple(arguments))


def _target(i: Instr) -> tuple[Registers, int]:
    return _slot(i.arguments[0])


def _source(i: Instr) -> tuple[Registers, int]:
    return _slot(i.arguments[-1])


def _slot(argument: object) -> tuple[Registers, int]:
    if not (
        isinstance(argument, tuple) and isinstance(argument[0], Slot) and isinstance(argument[0].index, int)
    ):
        raise TypeError(f"a register of constant number is expected, got {argument}")
    return argument[0].registers, argument[0].index
