"""The result through shared memory to the copy engine: the rows of one instruction at a time, while others are read."""

from __future__ import annotations

from tilelayout import S, TileLayout
from tilelayout.expr import Index, Var

from ...api import Lowered, lower
from ...compose import relocated
from ...control import Compare, If
from ...dtypes import dtype
from ...fragments import partition
from ...isa.barrier import BAR_WARP
from ...isa.bulk import BULK_COMMIT, BULK_WAIT, BULK_WAIT_READ, FENCE_PROXY_ASYNC
from ...isa.convert import packing
from ...ops import copy
from ...program import Buffer, Instr, Registers, Slot, Statement
from ...target import Target
from ...tile import Tile
from .config import Config
from .globals import global_buffer, window
from .problem import Problem
from .schedule import BATCH, origin
from .stages import Stages
from .store import Store

LANE, WARP = Var("lane", 0, 31), Var("warp", 0, 31)
PANEL_BYTES = 64
"""Of a row of a box: what two ``stmatrix`` of 8 columns of 16 bits fill."""


def _slots(problem: Problem, config: Config, stages: Stages) -> tuple[Tile, Tile]:
    """One slot of every warp, as rows of the CTA's tile; and of one warp alone."""
    out, high = problem.D.dtype, stages.record.m
    rows, columns = config.warps
    wide, panel = config.tile[1] // columns, PANEL_BYTES // problem.D.bytes
    each, count = config.slots * high * wide, wide // panel
    swizzle = (2, 3, 3)  # of rows of 64 bytes, counted in elements of 16 bits
    every_warp = S[(rows, high, columns, count, panel) : (columns * each, panel, each, high * panel, 1)]
    one_warp = S[(high, count, panel) : (panel, high * panel, 1)]
    return (
        Tile(
            "sD",
            (rows * high, config.tile[1]),
            out,
            TileLayout(every_warp).swizzle(*swizzle),
            "shared",
            512,
        ),
        Tile("sD", (high, wide), out, TileLayout(one_warp).swizzle(*swizzle), "shared", 512),
    )


def bulk_store(problem: Problem, config: Config, stages: Stages, target: Target) -> Store:
    """Sums of a tile to D of 16-bit elements, row-major and aligned to 16 bytes."""
    every_warp, slot = _slots(problem, config, stages)
    parts = partition(stages.record, *every_warp.shape, stages.record.k, warps=config.warps)
    held_tile = Tile("d", every_warp.shape, problem.D.dtype, parts.D)
    collect = lower(copy(every_warp, held_tile), target=target, scope="cta", launch=32 * config.multipliers)
    rows, columns = config.warps
    row_begin, column_begin, _ = origin(config)
    elements = slot.shape[0] * slot.shape[1]
    each = config.slots * elements
    buffer = Buffer(
        "sD", "sD", problem.D.dtype, (config.multipliers * each,), dtype(problem.D.dtype).bits, "shared", 512
    )
    group = collect.program.registers[0]
    held = Registers("d_words", "D", problem.D.dtype, group.count, group.kind, group.container)
    pack = packing(problem.D.dtype, target)
    per_row = stages.sums.count // stages.rows
    statements: list[Statement] = []
    for row in range(stages.rows):
        shift = row % config.slots * elements
        statements += [
            If(Compare(LANE, "==", 0), (Instr(BULK_WAIT_READ, (config.slots - 1,)),)),
            Instr(BAR_WARP, ()),
        ]
        for i in range(held.count):
            at = row * per_row + 2 * i
            statements.append(
                Instr(pack, ((Slot(held, i),), (Slot(stages.sums, at),), (Slot(stages.sums, at + 1),)))
            )
        y: Index = row_begin + WARP // columns * (config.tile[0] // rows) + row * stages.record.m
        x: Index = column_begin + WARP % columns * slot.shape[1]
        statements += relocated(collect.program.body, {group: held}, {_shared(collect): (buffer, shift)})
        there = window(problem.D, (y, x), slot.shape, BATCH if problem.batched else None)
        send = lower(copy(there, slot.full), target=target, scope="warp", dispatch="copy.bulk_tensor")
        stores = relocated(send.program.body, buffers={_shared(send): (buffer, WARP * each + shift)})
        statements += [
            Instr(FENCE_PROXY_ASYNC, ()),
            Instr(BAR_WARP, ()),
            If(Compare(LANE, "==", 0), (*stores, Instr(BULK_COMMIT, ()))),
        ]
    end = (If(Compare(LANE, "==", 0), (Instr(BULK_WAIT, (0,)),)),)
    return Store(tuple(statements), end, (buffer, global_buffer(problem.D)), (held,))


def _shared(piece: Lowered) -> Buffer:
    return next(b for b in piece.program.buffers if b.space == "shared")
