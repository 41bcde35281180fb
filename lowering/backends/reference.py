"""The reference machine: executes a program on any CPU by each instruction's own meaning.

Registers are ``[warps, lanes, words]`` arrays of 32-bit words (two for an f64 register) with a mask of what was ever
written.  Reading a register
or an element of memory that holds nothing is an error that names the instruction.  Elements get into registers through
the tiles' layouts; the instructions take them out by their own operand maps, so a lowering that picks a wrong register
gives wrong numbers here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelayout.axis import Axis

from ..dtypes import dtype
from ..errors import MachineError
from ..isa.barrier import BAR_SYNC
from ..isa.elements import pack, unpack
from ..isa.numerics import check_numerics
from ..isa.operand_map import LANES
from ..program import Address, Buffer, Program, Registers, Step, step_text
from ..tile import Tile
from .arrays import as_operand, blank, from_bits, from_memory, round_to, to_bits, to_memory
from .memory import Memory, collect_memory, fill_memory, resolve


@dataclass
class File:
    """One register group of all lanes: words, and which elements of them hold a value."""

    words: Any  # uint32 [warps, lanes, words]
    written: Any  # bool [warps, lanes, elements]

    @classmethod
    def empty(cls, registers: Registers, warps: int) -> File:
        words = np.full((warps, LANES, registers.words), 0xFFFFFFFF, np.uint32)  # a NaN in most float types
        return cls(words, np.zeros((warps, LANES, registers.slots), bool))


def run_program(
    program: Program,
    files: dict[Registers, File],
    memory: Mapping[Buffer, Memory] | None = None,
    numerics: str = "exact",
) -> dict[Registers, File]:
    """Execute every step on all lanes of all warps; returns the register files, changed in place.

    `numerics` names the model by which products are added up, see `isa.numerics`.

    Errors: LayoutError for a model that is not known, or not for an instruction.  MachineError naming step, instruction
    and register for a read of what holds nothing, or an address outside its buffer.
    """
    for r in program.registers:
        files.setdefault(r, File.empty(r, program.warps))
    lanes = np.broadcast_to(np.arange(LANES), (program.warps, LANES))
    warps = np.broadcast_to(np.arange(program.warps)[:, None], (program.warps, LANES))
    places = {"lane": lanes, "warp": warps}
    check_numerics(numerics)
    for number, step in enumerate(program.steps):
        _execute(number, step, files, memory or {}, places, numerics)
    return files


def _execute(
    number: int,
    step: Step,
    files: dict[Registers, File],
    memory: Mapping[Buffer, Memory],
    places: Mapping[str, Any],
    numerics: str,
) -> None:
    values: dict[str, Any] = {"lanes": places["lane"].shape, "numerics": numerics}
    if step.instruction == BAR_SYNC:
        for buffer, store in memory.items():
            store.barrier(buffer)
    for operand, argument in zip(step.instruction.operands, step.arguments, strict=True):
        if isinstance(argument, Address):
            values[operand.name] = resolve(number, step, operand, argument, memory, places)
        elif operand.reads:
            values[operand.name] = np.concatenate(
                [_read(number, step, files[r], r, i) for r, i in argument], axis=-1
            )
    written = step.instruction.meaning(values)
    for operand, argument in zip(step.instruction.operands, step.arguments, strict=True):
        if isinstance(argument, Address) or not operand.writes:
            continue
        for position, (r, i) in enumerate(argument):
            _check_number(number, step, r, i)
            files[r].words[..., _words(r, i)] = written[operand.name][..., _words(r, position)]
            files[r].written[..., _slots(r, i)] = True


def _words(r: Registers, i: int) -> slice:
    """The 32-bit words of register i."""
    each = r.bits // 32
    return slice(i * each, (i + 1) * each)


def _slots(r: Registers, i: int) -> slice:
    """The elements of register i."""
    return slice(i * r.per_register, (i + 1) * r.per_register)


def _check_number(number: int, step: Step, r: Registers, i: int) -> None:
    if not 0 <= i < r.count:
        raise MachineError(
            f"step {number}, {step_text(step)}: there is no {r.name}[{i}], the group has {r.count}"
        )


def _read(number: int, step: Step, file: File, r: Registers, i: int) -> Any:
    _check_number(number, step, r, i)
    held = file.written[..., _slots(r, i)]
    if not held.all():
        warp, lane, element = (int(x) for x in np.argwhere(~held)[0])
        raise MachineError(
            f"step {number}, {step_text(step)}: reads {r.name}[{i}], which holds nothing in warp {warp}, lane {lane} "
            f"(element {element} of the register)"
        )
    return file.words[..., _words(r, i)]


# --- arrays in and out --------------------------------------------------------------------------


@dataclass(frozen=True)
class Placement:
    """Where each element of a tile is held: flat element, warp, lane and slot of every holder, as index arrays."""

    element: Any
    warp: Any
    lane: Any
    slot: Any


def placement(tile: Tile, warp_axis: Axis | None) -> Placement:
    """Every holder of every element; offsets on axes outside the scope drop out."""
    table = tile.layout.table(tile.shape)
    size = int(np.prod(tile.shape))

    def base(axis: str | None) -> Any:
        found = table.get(axis)  # type: ignore[arg-type]
        return np.zeros(size, np.int64) if found is None else found.ravel()

    element, lane, slot, warp = np.arange(size), base("laneid"), base("m"), base(warp_axis)
    for e, s, a in tile.layout.replica:
        steps = np.arange(e) * s
        element, lane, slot, warp = (
            (x[:, None] + (steps if a == name else 0 * steps)).ravel()
            for x, name in ((element, ""), (lane, "laneid"), (slot, "m"), (warp, warp_axis))
        )
    return Placement(element, warp, lane, slot)


def _check_places(file: File, tile: Tile, at: Placement) -> None:
    places = {"warp": at.warp, "lane": at.lane, "register slot": at.slot}
    for (what, index), count in zip(places.items(), file.written.shape, strict=True):
        low, high = index.min(), index.max()
        if low < 0 or high >= count:
            raise MachineError(
                f"tile {tile.name}: layout {tile.layout} reaches {what} {low} to {high}, there are {count}"
            )


def fill(file: File, tile: Tile, array: Any, warp_axis: Axis | None) -> None:
    """Put an array's elements into the registers that the tile's layout names.

    Errors: MachineError for a warp, lane or register that is not there.
    """
    at = placement(tile, warp_axis)
    _check_places(file, tile, at)
    container = _container(file)
    codes = unpack(file.words, tile.dtype, container)
    codes[at.warp, at.lane, at.slot] = to_bits(array, tile.element).ravel()[at.element]
    file.words[...] = pack(codes, tile.dtype, container)
    file.written[at.warp, at.lane, at.slot] = True


def collect(file: File, tile: Tile, warp_axis: Axis | None) -> Any:
    """The array that the registers hold; elements that hold nothing come out as all ones (NaN, or -1)."""
    at = placement(tile, warp_axis)
    _check_places(file, tile, at)
    out = to_bits(blank((int(np.prod(tile.shape)),), tile.element), tile.element)
    held = file.written[at.warp, at.lane, at.slot]
    codes = unpack(file.words, tile.dtype, _container(file))
    out[at.element[held]] = codes[at.warp[held], at.lane[held], at.slot[held]]
    return from_bits(out, tile.element).reshape(tile.shape)


def _container(file: File) -> int:
    """Bits that each element takes."""
    return 32 * file.words.shape[2] // file.written.shape[2]


def run(
    program: Program,
    tiles: Mapping[str, Tile],
    arrays: Mapping[str, Any],
    warp_axis: Axis | None,
    numerics: str = "exact",
) -> Any:
    """Arrays by role in, D out: fill the program's inputs, execute by a model of numerics, read D.

    A C that shares D's tile, and D's own earlier content, may be given; inputs stay as they were.
    """
    return run_tiles(program, tiles, arrays, warp_axis, numerics)["D"]


def run_tiles(
    program: Program,
    tiles: Mapping[str, Tile],
    arrays: Mapping[str, Any],
    warp_axis: Axis | None,
    numerics: str = "exact",
) -> dict[str, Any]:
    """Arrays by role in; by role out: what the outputs' registers and the buffers hold at the end.

    Elements go into registers and memory, and come out, through the layouts of the tiles.
    """
    files: dict[Registers, File] = {}
    for r in program.inputs:
        files[r] = File.empty(r, program.warps)
        if r.role in arrays:
            fill(files[r], tiles[r.role], arrays[r.role], warp_axis)
    memory = {b: Memory.empty(b) for b in program.buffers}
    for b, store in memory.items():
        if b.role in arrays:
            fill_memory(store, b, tiles[b.role], arrays[b.role])
    run_program(program, files, memory, numerics)
    found = {r.role: collect(files[r], tiles[r.role], warp_axis) for r in program.outputs}
    return found | {b.role: collect_memory(store, b, tiles[b.role]) for b, store in memory.items()}


def run_kernel(program: Program, arrays: Mapping[str, Any], numerics: str = "exact") -> Any:
    """Execute a program over buffers alone: arrays by role in, the buffer of role D out."""
    memory: dict[Buffer, Memory] = {}
    for b in program.buffers:
        element, given = dtype(b.dtype), b.role in arrays
        array = np.asarray(arrays[b.role], element.numpy) if given else blank(b.shape, element)
        data = np.array(to_memory(array, element, b.container), order="C").ravel()
        memory[b] = Memory(data, np.full(data.size, given))
        memory[b].barrier(b)
    run_program(program, {}, memory, numerics)
    out = next(b for b in program.buffers if b.role == "D")
    rows = (*out.shape[:-1], -1)
    return from_memory(memory[out].data.reshape(rows), dtype(out.dtype), out.container)


__all__ = ["File", "Memory", "Placement", "as_operand", "collect", "fill", "placement", "round_to", "run", "run_kernel",
           "run_program", "run_tiles"]  # fmt: skip
