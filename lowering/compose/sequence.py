"""Lowered calls one after another, as one kernel of one CTA.

Tiles are what connects them: two calls that name the same tile work on the same registers or the same memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tilelayout import LayoutError
from tilelayout.axis import Axis

from ..isa import BAR_SYNC
from ..program import Address, Buffer, Comment, Instr, Program, Registers, Slot, Statement, Step, walk
from ..scope import Context
from ..tile import Tile

BARRIER = Instr(BAR_SYNC, ())
"""All threads of the CTA wait for one another: between a store to shared memory and what other threads load of it."""


class Part(Protocol):
    """A lowered call, as `lowering.lower` returns it."""

    @property
    def call(self) -> Any: ...
    @property
    def program(self) -> Program: ...
    @property
    def context(self) -> Context: ...


@dataclass(frozen=True)
class Sequence:
    """A whole kernel of lowered calls.

    Attributes:
        program: over buffers alone; the role of a register group and of a buffer is the name of its tile.
        tiles: by name.
        warp_axis: the axis that numbers the warps, None for one warp.
    """

    program: Program
    tiles: dict[str, Tile]
    warp_axis: Axis | None

    @property
    def threads(self) -> int:
        return 32 * self.program.warps

    def __str__(self) -> str:
        return str(self.program)


def sequence(parts: Iterable[Part | Instr], name: str = "kernel") -> Sequence:
    """The kernel that carries out lowered calls, and barriers, in order.

    Tiles in global memory become its parameters, in order of first mention, each as its layout says; tiles in shared
    memory and registers hold nothing at the beginning.

    Errors: LayoutError for parts of different scopes or numbers of warps, for different tiles of one name, for a tile
    whose registers two parts number differently, and for a kernel of no calls.
    """
    found = _Composer()
    for part in parts:
        if isinstance(part, Instr):
            found.body.append(part)
        else:
            found.add(part)
    return found.sequence(name)


class _Composer:
    """The kernel under construction."""

    def __init__(self) -> None:
        self.body: list[Statement] = []
        self.tiles: dict[str, Tile] = {}
        self.registers: dict[str, Registers] = {}
        self.buffers: dict[str, Buffer] = {}
        self.first: Part | None = None

    def add(self, part: Part) -> None:
        self.first = self.first or part
        mine, others = part.context, self.first.context
        if (mine.scope, mine.warps) != (others.scope, others.warps):
            raise LayoutError(
                "sequence",
                f"{part.call} is lowered for {mine.warps} warps at {mine.scope} scope, {self.first.call} for "
                f"{others.warps} at {others.scope} scope",
            )
        tiles: dict[str, Tile] = part.call.tiles
        for tile in tiles.values():
            if self.tiles.setdefault(tile.name, tile) != tile:
                raise LayoutError("sequence", f"two different tiles share the name {tile.name!r}")
        groups = {
            r: self.group(r, tiles[r.role], part) if r.role in tiles else self.private(r)
            for r in part.program.registers
        }
        buffers = {b: self.buffer(b, tiles[b.role], part) for b in part.program.buffers}
        self.body.append(Comment(_escaped(str(part.call))))
        for statement, _ in walk(part.program.body, {}):
            self.body.append(
                Comment(_escaped(statement.text))
                if isinstance(statement, Comment)
                else _moved(statement, groups, buffers)
            )

    def private(self, registers: Registers) -> Registers:
        """Registers of one call alone, under a name of their own."""
        name = registers.name
        while name in self.registers or name in self.tiles:
            name += "_"
        self.registers[name] = replace(registers, name=name)
        return self.registers[name]

    def group(self, registers: Registers, tile: Tile, part: Part) -> Registers:
        wanted = replace(registers, name=tile.name, role=tile.name)
        found = self.registers.setdefault(tile.name, wanted)
        if found != wanted:
            raise LayoutError(
                "sequence",
                f"{part.call} holds {tile.name} in {_group_text(wanted)}, an earlier call in {_group_text(found)}",
            )
        return found

    def buffer(self, buffer: Buffer, tile: Tile, part: Part) -> Buffer:
        wanted = replace(buffer, role=tile.name)
        found = self.buffers.setdefault(tile.name, wanted)
        if found != wanted:
            raise LayoutError(
                "sequence",
                f"{part.call} takes {wanted.container} bits for an element of {tile.name}, an earlier call "
                f"{found.container}",
            )
        return found

    def sequence(self, name: str) -> Sequence:
        if self.first is None:
            raise LayoutError("sequence", "no lowered call was given")
        program = Program(
            name,
            self.first.context.warps,
            (),
            (),
            tuple(self.body),
            tuple(self.buffers.values()),
            tuple(self.registers.values()),
        )
        return Sequence(program, self.tiles, self.first.context.warp_axis)


def _moved(step: Step, groups: dict[Registers, Registers], buffers: dict[Buffer, Buffer]) -> Instr:
    """A step on the kernel's registers and buffers."""
    arguments = [
        Address(buffers[a.buffer], a.coordinate)
        if isinstance(a, Address)
        else tuple([Slot(groups[r], i) for r, i in a])
        for a in step.arguments
    ]
    return Instr(step.instruction, tuple(arguments))


def _group_text(r: Registers) -> str:
    return f"{r.count} registers {r.kind} of {r.per_register} elements"


def _escaped(text: str) -> str:
    """A comment's text, in which braces would be loop variables."""
    return text.replace("{", "{{").replace("}", "}}")


__all__ = ["BARRIER", "Part", "Sequence", "sequence"]
