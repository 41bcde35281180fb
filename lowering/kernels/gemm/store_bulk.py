"""The result through shared memory to the copy engine: 16 rows of a warp at a time, while the next are converted."""

from __future__ import annotations

from dataclasses import dataclass

from tilelayout import S, TileLayout
from tilelayout.expr import Index, Var

from ...api import lower
from ...control import Compare, If, TensorMap
from ...dtypes import dtype
from ...fragments import partition
from ...isa.barrier import BAR_WARP
from ...isa.bulk import BULK_COMMIT, BULK_STORE, BULK_WAIT, BULK_WAIT_READ, FENCE_PROXY_ASYNC
from ...isa.convert import packing
from ...ops import copy
from ...program import Address, Buffer, Instr, Registers, Slot, Statement
from ...target import Target
from ...tile import Tile
from .config import Config
from .globals import batch_stride, global_buffer, leading
from .problem import Problem
from .schedule import BATCH, BATCHES, COLUMN, ROW, M, N
from .stages import Stages

LANE, WARP = Var("lane", 0, 31), Var("warp", 0, 31)
PANEL_BYTES = 64
"""Of a row of a box: what two ``stmatrix`` of 8 columns of 16 bits fill."""


@dataclass(frozen=True)
class BulkStore:
    """The statements that store a tile, and what they need beside."""

    statements: tuple[Statement, ...]
    end: tuple[Statement, ...]
    buffer: Buffer
    scratch: Registers
    map: TensorMap


def bulk_store(problem: Problem, config: Config, stages: Stages, target: Target) -> BulkStore:
    """Sums of a tile to D of 16-bit elements, row-major and aligned to 16 bytes."""
    record = stages.record
    rows, columns = config.warps
    wide = config.tile[1] // columns
    panel = PANEL_BYTES // problem.D.bytes
    high, slot = record.m, record.m * wide
    each = config.slots * slot
    layout = TileLayout(
        S[
            (rows, high, columns, wide // panel, panel) : (
                columns * each,
                panel,
                each,
                high * panel,
                1,
            )
        ]
    )
    bits = {64: 2, 32: 1}[PANEL_BYTES]
    out = problem.D.dtype
    shape = (rows * high, config.tile[1])
    memory = Tile("sD", shape, out, layout.swizzle(bits, 4 - problem.D.bytes // 2, 3), "shared", 512)
    parts = partition(record, *shape, record.k, warps=config.warps)
    lowered = lower(
        copy(memory, Tile("d", shape, out, parts.D)),
        target=target,
        scope="cta",
        launch=32 * config.multipliers,
    )
    buffer = Buffer("sD", "sD", out, (config.multipliers * each,), dtype(out).bits, "shared", 512)
    group = next(r for r in lowered.program.registers)
    held = Registers("d_words", "D", out, group.count, group.kind, group.container)
    boxed, strides = (N.variable, M.variable), (leading(problem.D).variable,)
    box: tuple[int, ...] = (panel, high)
    if problem.batched:
        boxed, strides, box = (
            (*boxed, BATCHES.variable),
            (*strides, batch_stride(problem.D).variable),
            (*box, 1),
        )  # type: ignore[assignment]
    tensor = TensorMap("map_d", global_buffer(problem.D), boxed, strides, box, PANEL_BYTES)
    pack = packing(out, target)
    per_row = stages.sums.count // stages.rows
    statements: list[Statement] = []
    first = (WARP // columns, WARP % columns)
    for row in range(stages.rows):
        shift = row % config.slots * slot
        statements += [
            If(Compare(LANE, "==", 0), (Instr(BULK_WAIT_READ, (config.slots - 1,)),)),
            Instr(BAR_WARP, ()),
        ]
        for i in range(held.count):
            at = row * per_row + 2 * i
            statements.append(
                Instr(pack, ((Slot(held, i),), (Slot(stages.sums, at),), (Slot(stages.sums, at + 1),)))
            )
        for s in lowered.program.steps:
            statements.append(
                Instr(
                    s.instruction,
                    tuple(
                        [
                            Address(buffer, (a.element + shift,))
                            if isinstance(a, Address)
                            else tuple([Slot(held, i) for _, i in a])
                            for a in s.arguments
                        ]
                    ),
                )
            )
        y: Index = ROW + first[0] * (config.tile[0] // rows) + row * high
        x: Index = COLUMN + first[1] * wide
        stores: list[Statement] = []
        for p in range(wide // panel):
            place = Address(buffer, (WARP * each + shift + p * high * panel,))
            where = (x + p * panel, y, *((BATCH,) if problem.batched else ()))
            stores.append(Instr(BULK_STORE[len(where)], (tensor, *where, place)))
        statements += [
            Instr(FENCE_PROXY_ASYNC, ()),
            Instr(BAR_WARP, ()),
            If(Compare(LANE, "==", 0), (*stores, Instr(BULK_COMMIT, ()))),
        ]
    end = (If(Compare(LANE, "==", 0), (Instr(BULK_WAIT, (0,)),)),)
    return BulkStore(tuple(statements), end, buffer, held, tensor)
