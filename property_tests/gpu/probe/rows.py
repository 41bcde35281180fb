"""The rows of a probe: one for every instruction that the device's target has, by name, each run on its own."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lowering.isa.ldmatrix import LDMATRIX
from lowering.isa.mma import DENSE, MmaInstruction
from lowering.isa.movmatrix import MOVMATRIX
from lowering.isa.record import Instruction
from lowering.isa.sparse import MMA_SP, SparseMma
from lowering.isa.stmatrix import STMATRIX
from lowering.target import Target

from .device import Device, GpuError
from .directed import directed
from .moves import probe_move
from .numbers import compare
from .relation import probe

Row = dict[str, Any]
Run = Callable[[Device, int, int], Row]


def plan(where: Target) -> dict[str, Run]:
    """Row name -> what runs it on a device with so many warps, of which it records some."""
    out: dict[str, Run] = {}
    for record in probed(where):
        if isinstance(record, MmaInstruction | SparseMma):
            out[record.name] = lambda device, warps, recorded, record=record: _product(
                record, device, warps, recorded
            )
        else:
            out[record.name] = lambda device, warps, _, record=record: probe_move(record, device, warps)
    return out


def probed(where: Target) -> list[Any]:
    """The records: every one that the target has, without scale factors; sparse ones with each selector."""
    records: list[Any] = [*LDMATRIX, *STMATRIX, *MOVMATRIX, *(r for r in DENSE if r.scale is None)]
    for record in MMA_SP:
        if record.dense.scale is None:
            records += [replace(record, selector=i) for i in range(record.sparsity.selectors)]
    return [r for r in records if not r.instruction.refusal(where)]


def instructions(where: Target) -> list[Instruction]:
    """The instructions of the rows."""
    return [r.instruction for r in probed(where)]


def _product(record: MmaInstruction | SparseMma, device: Device, warps: int, recorded: int) -> Row:
    maps = probe(record, device)
    row: Row = {"map": maps, "emulated": record.instruction.emulation(device.target)}
    numbers = compare(record, device, warps, record_warps=recorded)
    row |= {**numbers, "right": maps["right"] and numbers["right"]}
    if isinstance(record, MmaInstruction):
        row["directed"] = directed(record, device)
    return row


def run_row(name: str, run: Run, device: Device, warps: int, recorded: int = 0) -> tuple[Row, bool]:
    """The row, a failure in it as its "why"; and whether the device is still to be trusted."""
    began, sound = time.perf_counter(), True
    row: Row
    try:
        row = {"name": name, **run(device, warps, recorded)}
    except Exception as error:  # noqa: BLE001  # a failing row must not hide the others
        sound = not isinstance(error, GpuError)
        why = f"{type(error).__name__}: {error}"
        row = {"name": name, "right": False, "why": why[:2000], "trace": traceback.format_exc()[-4000:]}
    row["seconds"] = round(time.perf_counter() - began, 3)
    return row, sound
