"""The reference machine: executes a program on any CPU by each instruction's own meaning.

Registers are ``[warps, lanes, count]`` arrays of 32-bit words with a mask of what was ever written.  Reading a register
or an element of memory that holds nothing is an error that names the instruction.  Elements get into registers through
the tiles' layouts; the instructions take them out by their own operand maps, so a lowering that picks a wrong register
gives wrong numbers here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelayout import LayoutError
from tilelayout.axis import Axis
from tilelayout.expr import evaluate

from ..dtypes import dtype
from ..errors import MachineError
from ..isa.operand_map import LANES
from ..isa.record import Place
from ..program import Address, Buffer, Program, Registers, Step, step_text
from ..tile import Tile


@dataclass
class File:
    """One register group of all lanes: words, and which elements of them hold a value."""

    words: Any  # uint32 [warps, lanes, count]
    written: Any  # bool [warps, lanes, elements]

    @classmethod
    def empty(cls, registers: Registers, warps: int) -> File:
        per = 32 // dtype(registers.dtype).bits
        words = np.full((warps, LANES, registers.count), 0xFFFFFFFF, np.uint32)  # a NaN in every float type
        return cls(words, np.zeros((warps, LANES, registers.count * per), bool))

    @property
    def per_word(self) -> int:
        return self.written.shape[2] // self.words.shape[2]


@dataclass
class Memory:
    """A buffer in global memory: elements, flat, and which of them hold a value."""

    data: Any
    written: Any


def run_program(
    program: Program, files: dict[Registers, File], memory: Mapping[Buffer, Memory] | None = None
) -> dict[Registers, File]:
    """Execute every step on all lanes of all warps; returns the register files, changed in place.

    Errors: MachineError naming step, instruction and register for a read of what holds nothing, or an address
    outside its buffer.
    """
    for r in program.registers:
        files.setdefault(r, File.empty(r, program.warps))
    lanes = np.broadcast_to(np.arange(LANES), (program.warps, LANES))
    warps = np.broadcast_to(np.arange(program.warps)[:, None], (program.warps, LANES))
    places = {"lane": lanes, "warp": warps}
    for number, step in enumerate(program.steps):
        _execute(number, step, files, memory or {}, places)
    return files


def _execute(
    number: int,
    step: Step,
    files: dict[Registers, File],
    memory: Mapping[Buffer, Memory],
    places: Mapping[str, Any],
) -> None:
    values: dict[str, Any] = {"lanes": places["lane"].shape}
    stores = any(
        not isinstance(a, Address) and o.reads
        for o, a in zip(step.instruction.operands, step.arguments, strict=True)
    )
    for operand, argument in zip(step.instruction.operands, step.arguments, strict=True):
        if isinstance(argument, Address):
            values[operand.name] = _place(number, step, argument, memory, places, stores)
        elif operand.reads:
            values[operand.name] = np.stack(
                [_read(number, step, files[r], r, i) for r, i in argument], axis=-1
            )
    written = step.instruction.meaning(values)
    for operand, argument in zip(step.instruction.operands, step.arguments, strict=True):
        if isinstance(argument, Address) or not operand.writes:
            continue
        for position, (r, i) in enumerate(argument):
            _check_number(number, step, r, i)
            file = files[r]
            file.words[:, :, i] = written[operand.name][..., position]
            file.written[:, :, i * file.per_word : (i + 1) * file.per_word] = True


def _check_number(number: int, step: Step, r: Registers, i: int) -> None:
    if not 0 <= i < r.count:
        raise MachineError(
            f"step {number}, {step_text(step)}: there is no {r.name}[{i}], the group has {r.count}"
        )


def _read(number: int, step: Step, file: File, r: Registers, i: int) -> Any:
    _check_number(number, step, r, i)
    held = file.written[:, :, i * file.per_word : (i + 1) * file.per_word]
    if not held.all():
        warp, lane, element = (int(x) for x in np.argwhere(~held)[0])
        raise MachineError(
            f"step {number}, {step_text(step)}: reads {r.name}[{i}], which holds nothing in warp {warp}, lane {lane} "
            f"(element {element} of the register)"
        )
    return file.words[:, :, i]


def _place(
    number: int,
    step: Step,
    address: Address,
    memory: Mapping[Buffer, Memory],
    places: Mapping[str, Any],
    stores: bool,
) -> Place:
    """Resolve an address for every lane, and check what it touches: one 32-bit word, or one element of a pair."""
    store = memory[address.buffer]
    index = np.broadcast_to(evaluate(address.element, places), places["lane"].shape)
    addresses = sum(isinstance(a, Address) for a in step.arguments)
    count = 1 if addresses > 1 else 4 // store.data.dtype.itemsize
    if index.min() < 0 or index.max() + count > store.data.size:
        raise MachineError(
            f"step {number}, {step_text(step)}: touches elements {index.min()} to {index.max() + count - 1} of "
            f"{address.buffer.name}, which has {store.data.size}"
        )
    if (index % count).any():
        raise MachineError(
            f"step {number}, {step_text(step)}: an address in {address.buffer.name} is no multiple of 4 bytes"
        )
    for i in range(count):
        if stores:
            store.written[index + i] = True
        elif not store.written[index + i].all():
            raise MachineError(
                f"step {number}, {step_text(step)}: reads an element of {address.buffer.name} that holds nothing"
            )
    return Place(store.data, index)


# --- arrays in and out --------------------------------------------------------------------------


def as_operand(x: Any, tile: Tile, role: str) -> Any:
    """An array for a tile: of its shape, of its type or of a wider float type (rounded to nearest even).

    Errors: LayoutError for another shape, or a type that would not convert by rounding once.
    """
    array = np.asarray(x)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.shape != tile.shape:
        raise LayoutError("run", f"{role} has shape {array.shape}, tile {tile.name} has {tile.shape}")
    wanted = dtype(tile.dtype).numpy
    if array.dtype == wanted:
        return np.array(array, order="C")
    kinds = (
        array.dtype.name in ("float64", "float32", "float16", "bfloat16"),
        wanted.name in ("float32", "float16", "bfloat16"),
    )
    if not all(kinds) or array.dtype.itemsize <= wanted.itemsize:
        raise LayoutError(
            "run",
            f"{role} has dtype {array.dtype}, tile {tile.name} holds {tile.dtype}",
            "convert it, or pass a wider float array",
        )
    return round_to(array, wanted)


def round_to(array: Any, wanted: Any) -> Any:
    """Round a float array once, to nearest even.

    float64 reaches bfloat16 through float32, so the first step rounds to odd: then the second decides as if it saw
    all bits.  (Boldo and Melquiond, "When double rounding is odd".)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if array.dtype != np.float64 or wanted.name != "bfloat16":
            return array.astype(wanted)
        single = array.astype(np.float32)
        inexact = np.isfinite(array) & np.isfinite(single) & (single.astype(np.float64) != array)
        away = inexact & (np.abs(single.astype(np.float64)) > np.abs(array))
        bits = single.view(np.uint32)
        bits = np.where(away, bits - np.uint32(1), bits)
        bits = np.where(inexact, bits | np.uint32(1), bits)
        return bits.view(np.float32).astype(wanted)


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
    raw = np.dtype(f"u{array.dtype.itemsize}")
    file.words.view(raw)[at.warp, at.lane, at.slot] = array.ravel().view(raw)[at.element]
    file.written[at.warp, at.lane, at.slot] = True


def collect(file: File, tile: Tile, warp_axis: Axis | None) -> Any:
    """The array that the registers hold; elements that hold nothing come out as all ones (NaN)."""
    at = placement(tile, warp_axis)
    _check_places(file, tile, at)
    element = dtype(tile.dtype).numpy
    raw = np.dtype(f"u{element.itemsize}")
    out = np.full(int(np.prod(tile.shape)), np.iinfo(raw).max, raw)
    held = file.written[at.warp, at.lane, at.slot]
    out[at.element[held]] = file.words.view(raw)[at.warp[held], at.lane[held], at.slot[held]]
    return out.view(element).reshape(tile.shape)


def run(
    program: Program, tiles: Mapping[str, Tile], arrays: Mapping[str, Any], warp_axis: Axis | None
) -> Any:
    """Arrays by role in, D out: fill the program's inputs, execute, read D.

    A C that shares D's tile, and D's own earlier content, may be given; inputs stay as they were.
    """
    files: dict[Registers, File] = {}
    for r in program.inputs:
        files[r] = File.empty(r, program.warps)
        if r.role in arrays:
            fill(files[r], tiles[r.role], arrays[r.role], warp_axis)
    run_program(program, files)
    return collect(files[program.outputs[0]], tiles["D"], warp_axis)


def run_kernel(program: Program, arrays: Mapping[str, Any]) -> Any:
    """Execute a program over buffers alone: arrays by role in, the buffer of role D out."""
    memory: dict[Buffer, Memory] = {}
    for b in program.buffers:
        element = dtype(b.dtype).numpy
        size = int(np.prod(b.shape))
        if b.role in arrays:
            memory[b] = Memory(np.array(arrays[b.role], element, order="C").ravel(), np.ones(size, bool))
        else:
            raw = np.dtype(f"u{element.itemsize}")
            memory[b] = Memory(np.full(size, np.iinfo(raw).max, raw).view(element), np.zeros(size, bool))
    run_program(program, {}, memory)
    out = next(b for b in program.buffers if b.role == "D")
    return memory[out].data.reshape(out.shape)
