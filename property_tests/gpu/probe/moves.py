"""ldmatrix, stmatrix and movmatrix: numbered elements through the device, then random bits against the meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering.isa.matrix_move import MatrixMove
from lowering.isa.movmatrix import MatrixTranspose
from lowering.isa.operand_map import operand_map
from lowering.isa.record import Instruction

from .device import Device, Machine
from .kernel import LINES, MEMORY_BYTES

UNTOUCHED = 0xFFFF


def probe_move(
    record: MatrixMove | MatrixTranspose, device: Device, warps: int, seed: int = 0
) -> dict[str, Any]:
    """Whether every 16-bit element went where the record says; the share of equal warps on random bits."""
    rng = np.random.default_rng(seed)
    row: dict[str, Any] = {"map": {"right": True}}
    if isinstance(record, MatrixTranspose):
        row["map"] = _verdict(*_transposed(record, device))
    elif record.bits == record.source_bits == 16:
        numbered = _loaded if record.operation == "ldmatrix" else _stored
        row["map"] = _verdict(*numbered(record, device, rng))
    equal = _random(record.instruction, device, warps, rng)
    row["numbers"] = {"exact": {"equal": float(equal.mean())}}
    row["right"] = bool(row["map"]["right"] and equal.all())
    return row


def _verdict(found: Any, wanted: Any) -> dict[str, Any]:
    """Both ``[lanes or lines, places]``: the number of the element that is there."""
    wrong = np.argwhere(found != wanted)
    out: dict[str, Any] = {"right": not wrong.size, "elements": int(wanted.size)}
    if wrong.size:
        out["wrong"] = len(wrong)
        out["first"] = [
            {
                "lane": int(i),
                "slot": int(j),
                "read": int(found[i, j]),
                "record": int(wanted[i, j]),
            }
            for i, j in wrong[:4]
        ]
    return out


def _loaded(record: MatrixMove, device: Device, rng: Any) -> tuple[Any, Any]:
    """By lane and slot the number of the 16-bit element of memory."""
    at, memory = _addresses(rng, 1), np.arange(MEMORY_BYTES // 2, dtype="<u2")
    given = memory.view(np.uint8)[None].copy()
    words = device.run(record.instruction, {"p": at}, given)["D"]
    matrix, line, element = record.fragment
    lane = np.vectorize(record.address_lane)(matrix, line)
    return words.astype("<u4").view("<u2").reshape(32, -1), at[0, lane, 0] // 2 + element


def _stored(record: MatrixMove, device: Device, rng: Any) -> tuple[Any, Any]:
    """By line and element of memory the number of the lane's slot; UNTOUCHED where nothing is stored."""
    at = _addresses(rng, 1)
    matrix, line, element = record.fragment
    numbers: Any = np.arange(32 * record.count * record.slots, dtype="<u2").reshape(32, -1)
    memory = np.full((1, MEMORY_BYTES), 0xFF, np.uint8)
    device.run(record.instruction, {"p": at, "A": numbers.view("<u4")[None]}, memory)
    lane = np.vectorize(record.address_lane)(matrix, line)
    wanted = np.full((LINES, 8), UNTOUCHED)
    wanted[at[0, lane, 0] // 16, element] = numbers
    return memory.view("<u2").reshape(LINES, 8), wanted


def _transposed(record: MatrixTranspose, device: Device) -> tuple[Any, Any]:
    """By lane and slot of d the number of the slot of a."""
    numbers = np.arange(64, dtype="<u2").reshape(32, 2)
    words = device.run(record.instruction, {"a": numbers.view("<u4")[None]})["d"]
    row, column = operand_map(8, 8, 2)
    slot = np.empty((8, 8), np.int64)
    slot[row, column] = numbers
    return words.astype("<u4").view("<u2").reshape(32, 2), slot[column, row]


def _addresses(rng: Any, warps: int) -> Any:
    """Every lane a line of its own, ``[warps, 32, 1]``, in bytes."""
    return 16 * np.stack([rng.permutation(LINES)[:32] for _ in range(warps)])[..., None]


def _random(instruction: Instruction, device: Device, warps: int, rng: Any) -> Any:
    """By warp whether registers and shared memory are what the meaning says, bit for bit."""
    values: dict[str, Any] = {}
    for o in instruction.operands:
        if o.kind == "shared":
            values[o.name] = _addresses(rng, warps)
        elif o.reads:
            values[o.name] = rng.integers(0, 2**32, (warps, 32, o.words), dtype=np.uint32)
    mine = rng.integers(0, 256, (warps, MEMORY_BYTES), dtype=np.uint8)
    theirs = mine.copy()
    wanted = Machine(device.target.name).run(instruction, values, mine)
    found = device.run(instruction, values, theirs)
    equal = (mine == theirs).all(axis=1)
    for name in wanted:
        equal &= (found[name] == wanted[name]).all(axis=(1, 2))
    return equal
