"""The reference machine's memory: which elements hold a value, who touched them last, and what an address may be.

Global buffers and shared ones of a CTA are alike but for one thing: what a thread reads from shared memory must have
been written by itself or before a barrier, and what others read must not be overwritten without one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tilelayout import LayoutError, SwizzledLayout
from tilelayout.axis import axis
from tilelayout.expr import evaluate

from ..dtypes import dtype
from ..errors import MachineError
from ..isa.record import Operand, Place
from ..program import Address, Buffer, Step, step_text
from ..tile import Tile
from .arrays import blank, from_bits, from_memory, to_bits, to_memory

Where = Callable[[], str]
"""Names step and instruction, when it is asked."""

NOBODY, SEVERAL = -1, -2
"""In place of a thread's number: none since the last barrier; more than one."""


@dataclass
class Memory:
    """A buffer: elements, flat, and which of them hold a value; bytes where elements share them.

    `writer` and `reader` are the threads that touched each since the last barrier, kept for shared memory alone.
    """

    data: Any
    written: Any
    writer: Any = None
    reader: Any = None

    @classmethod
    def empty(cls, buffer: Buffer) -> Memory:
        """Nothing in it."""
        element = dtype(buffer.dtype)
        data = np.array(to_memory(blank(buffer.shape, element), element, buffer.container), order="C").ravel()
        found = cls(data, np.zeros(data.size, bool))
        found.barrier(buffer)
        return found

    def barrier(self, buffer: Buffer) -> None:
        """All threads have met: what they did before is done."""
        if buffer.space == "shared":
            self.writer, self.reader = (np.full(self.data.size, NOBODY, np.int64) for _ in range(2))


def resolve(
    number: int,
    step: Step,
    operand: Operand,
    address: Address,
    memory: Mapping[Buffer, Memory],
    places: Mapping[str, Any],
) -> Place:
    """Where an address operand points for every lane, after checking all that it touches there.

    Errors: MachineError naming step, instruction, warp and lane for an address outside its buffer, one that is no
    multiple of what it stands for, a read of what holds nothing, and a race.
    """
    store, buffer = memory[address.buffer], address.buffer
    index, bit = (
        np.broadcast_to(evaluate(x, places), places["lane"].shape) for x in (address.unit, address.bit)
    )
    where = partial(_where, number, step)
    count = max(1, operand.bytes // buffer.unit_bytes)
    _check_address(where, operand, buffer, store.data.size, index, bit, count)
    index_used = index[:, : operand.lanes]
    touched = index_used[..., None] + np.arange(count)
    if step.instruction.stores:
        _check_races(where, buffer, store, touched, True)
        store.written[touched] = True
    else:
        _check(
            where,
            store.written[touched].all(axis=-1),
            index_used,
            f"reads an element of {buffer.name} that holds nothing",
        )
        _check_races(where, buffer, store, touched, False)
    return Place(store.data, index, bit)


def _where(number: int, step: Step) -> str:
    return f"step {number}, {step_text(step)}"


def _check(where: Where, good: Any, index: Any, problem: str) -> None:
    if not good.all():
        warp, lane = (int(x) for x in np.argwhere(~good)[0])
        raise MachineError(f"{where()}: {problem} (warp {warp}, lane {lane}, at {int(index[warp, lane])})")


def _check_address(
    where: Where, operand: Operand, buffer: Buffer, size: int, index: Any, bit: Any, count: int
) -> None:
    unit = "bytes" if buffer.per_unit > 1 else "elements"
    _check(
        where,
        (index >= 0) & (index + count <= size),
        index,
        f"touches {unit} {index.min()} to {index.max() + count - 1} of {buffer.name}, which has {size}",
    )
    if operand.bytes:
        problem = f"an address in {buffer.name} is no multiple of {operand.bytes} bytes"
        _check(where, (index * buffer.unit_bytes % operand.bytes == 0) & (bit == 0), index, problem)
        if buffer.alignment % operand.bytes:
            raise MachineError(
                f"{where()}: takes {operand.bytes} bytes at once, {buffer.name} is aligned to {buffer.alignment}"
            )


def _check_races(where: Where, buffer: Buffer, store: Memory, touched: Any, stores: bool) -> None:
    """Whoever meets another thread's access since the last barrier, one of both a store, races with it."""
    if store.writer is None:
        return
    warps, lanes, _ = touched.shape
    thread = np.broadcast_to(np.arange(warps * lanes).reshape(warps, lanes, 1), touched.shape)
    before = [("written", store.writer)] + ([("read", store.reader)] if stores else [])
    for what, others in before:
        met = others[touched]
        good = ((met == NOBODY) | (met == thread)).all(axis=-1)
        action = "overwrites" if stores else "reads"
        _check(
            where,
            good,
            touched[..., 0],
            f"{action} what another thread has {what} in {buffer.name}, with no barrier between",
        )
    mine = store.writer if stores else store.reader
    if stores:
        mine[touched] = thread
        _check(
            where,
            (mine[touched] == thread).all(axis=-1),
            touched[..., 0],
            f"two threads write one element of {buffer.name}",
        )
    else:
        known = mine[touched]
        mine[touched] = np.where((known == NOBODY) | (known == thread), thread, SEVERAL)
        mine[touched[mine[touched] != thread]] = SEVERAL


# --- arrays in and out --------------------------------------------------------------------------


def _positions(tile: Tile) -> Any:
    """Where each element of a tile is in memory, replica included: integers ``[copies, *shape]``."""
    swizzled = tile.layout if isinstance(tile.layout, SwizzledLayout) else None
    plain = tile.layout if swizzled is None else swizzled.layout
    try:
        table = plain.table(tile.shape)
    except LayoutError as error:
        raise MachineError(f"tile {tile.name}: {error}") from None
    replica = [it for it in plain.replica if it.extent != 1]
    others = [a for a, values in table.items() if a != "m" and np.any(values)]
    others += [it.axis for it in replica if it.axis != "m" and it.stride != 0]
    if others:
        away = ", ".join(dict.fromkeys(map(str, others)))
        raise MachineError(f"tile {tile.name}: layout {tile.layout} leaves memory, along {away}")
    shifts = np.zeros(1, np.int64)
    for e, s, _ in replica:
        shifts = (shifts[:, None] + np.arange(e) * s).ravel()
    base = np.broadcast_to(np.asarray(table.get(axis("m"), 0)), tile.shape)
    at = base[None] + shifts.reshape(-1, *[1] * base.ndim)
    return at if swizzled is None else swizzled.swizzle.apply(at)


def _codes(store: Memory, buffer: Buffer) -> Any:
    """The bits of every element of the buffer, flat."""
    element = dtype(buffer.dtype)
    return to_bits(from_memory(store.data, element, buffer.container), element).ravel()


def fill_memory(store: Memory, buffer: Buffer, tile: Tile, array: Any) -> None:
    """Put an array's elements where the tile's layout says; the rest of the buffer keeps what it held."""
    at = _positions(tile)
    _check_inside(tile, buffer, at)
    codes = _codes(store, buffer)
    codes[at] = np.broadcast_to(to_bits(array, tile.element).reshape(tile.shape), at.shape)
    element = dtype(buffer.dtype)
    store.data[...] = np.array(to_memory(from_bits(codes, element), element, buffer.container)).ravel()
    store.written[at // buffer.per_unit] = True


def collect_memory(store: Memory, buffer: Buffer, tile: Tile) -> Any:
    """The array that the memory holds; elements that hold nothing come out as all ones (NaN, or -1)."""
    at = _positions(tile)[0]
    _check_inside(tile, buffer, at)
    out = to_bits(blank(tile.shape, tile.element), tile.element)
    held = store.written[at // buffer.per_unit]
    out[held] = _codes(store, buffer)[at[held]]
    return from_bits(out, tile.element)


def _check_inside(tile: Tile, buffer: Buffer, at: Any) -> None:
    if at.min() < 0 or at.max() >= buffer.elements:
        raise MachineError(
            f"tile {tile.name}: layout {tile.layout} reaches {at.min()} to {at.max()}, {buffer.name} has "
            f"{buffer.elements} elements"
        )
