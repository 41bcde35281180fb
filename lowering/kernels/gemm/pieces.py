"""The lowered calls that a kernel is made of, for whoever wants to know how it was made."""

from __future__ import annotations

from dataclasses import dataclass

from ...api import Lowered, registered
from ...dispatch import Declined, attempt
from ...program import Instr, Program, every, unrolled
from . import by_tma
from .beside import chunk_copies
from .built import Built, FirstPanels, Packer, Reduction
from .pack import packing_copies
from .panels import lines
from .reduce import load_of_part, multiplied
from .schedule import HERE
from .shares import Shares
from .stages import build_stages
from .store_collected import sent
from .store_rows import Rows


@dataclass(frozen=True)
class Piece:
    """A part of the kernel.

    Attributes:
        what: it does.
        lowered: the call, its variant and its program.
        declined: the other variants: those that came first and declined, or for a call that the configuration gave to
            one variant, all others.
        instructions: name -> how many of the call's program the kernel has.
    """

    what: str
    lowered: Lowered
    declined: tuple[Declined, ...]
    instructions: dict[str, int]


def counted(program: Program) -> dict[str, int]:
    """Name of an instruction -> how often a program has it, in order of first use."""
    out: dict[str, int] = {}
    for s in every(unrolled(program.body)):
        if isinstance(s, Instr):
            out[s.instruction.name] = out.get(s.instruction.name, 0) + 1
    return out


def pieces(built: Built) -> tuple[Piece, ...]:
    """The copies to shared memory, those to registers, the products, and what collects and sends the result; of a
    kernel that runs before or after, its copies.

    Post-condition: lowered again from the same problem and configuration, they are those of the program.
    """
    if isinstance(built, Packer):
        return tuple(_repacked(built.factor, packing_copies(built.packing, built.target)))
    if isinstance(built, FirstPanels):
        both = [(x, lines(built.problem, built.config, x)) for x in built.config.packed]
        return tuple([p for x, cut in both for p in _repacked(x, chunk_copies(cut, built.target, False))])
    if isinstance(built, Reduction):
        return (_asked("a part, global to registers", load_of_part(built.problem, built.target)),)
    problem, config, target = multiplied(built.inner, built.config), built.config, built.target
    stages = build_stages(problem, config, target)
    out: list[Piece] = []
    feeding = f"the configuration feeds by {config.feed}"
    if config.feed == "tma":
        for x, piece in zip("AB", by_tma.copies(problem, config, stages, target), strict=True):
            out.append(_asked(f"{x}, global to shared", piece, feeding))
    else:
        for (x, part), piece in Shares(problem, config, stages, HERE, target).lowered.items():
            way = {"load": "global to registers", "store": "registers to shared", "": "global to shared"}[
                part
            ]
            out.append(_asked(f"{x}, {way}", piece, feeding))
    for x in config.packed if config.beside else "":
        out += _repacked(f"the rest of {x}", chunk_copies(lines(built.problem, config, x), target, True))
    for x in "AB":
        piece = stages.loads[x, 0]
        out.append(_chosen(f"{x}, shared to fragments, a step", piece))
    record = stages.record.instruction.name
    products = {record: stages.rows * stages.columns}
    out.append(Piece("products of a step", stages.products, stages.products.declined, products))
    if config.slots:
        rows = Rows(problem, config, stages, target)
        out.append(_chosen("D, fragments to shared", rows.collect))
        out.append(_asked("D, shared to global", sent(rows), feeding))
    return tuple(out)


def _repacked(what: str, copies: tuple[Lowered, Lowered]) -> list[Piece]:
    """A factor by way of registers."""
    ways = "global to registers", "registers to global, in whole rows"
    return [_asked(f"{what}, {way}", x) for way, x in zip(ways, copies, strict=True)]


def _chosen(what: str, piece: Lowered) -> Piece:
    return Piece(what, piece, piece.declined, counted(piece.program))


def _asked(what: str, piece: Lowered, why: str = "") -> Piece:
    """A piece that was given to one variant, and why, with what the others say of it."""
    declined: list[Declined] = []
    for v in registered(piece.call.primitive):
        if v.name != piece.variant:
            found = attempt(v, piece.call, piece.context)
            reasons = (f"could do it; {why or f'this kernel takes {piece.variant}'}",)
            declined.append(Declined(v.name, v.priority, reasons if isinstance(found, Program) else found))
    return Piece(what, piece, tuple(declined), counted(piece.program))


__all__ = ["Piece", "counted", "pieces"]
