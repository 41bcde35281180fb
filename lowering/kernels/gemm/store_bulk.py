"""The result through shared memory to the copy engine: the rows of one instruction at a time, while others are read."""

from __future__ import annotations

from tilelayout import S, SwizzledLayout, TileLayout
from tilelayout.expr import Index, Var

from ...api import Lowered, lower
from ...compose import relocated
from ...control import Compare, If
from ...dtypes import dtype
from ...fragments import partition
from ...isa.barrier import BAR_WARP
from ...isa.bulk import BULK_COMMIT, BULK_WAIT, BULK_WAIT_READ, FENCE_PROXY_ASYNC
from ...ops import copy
from ...program import Buffer, Instr, Registers, Slot, Statement
from ...target import Target
from ...tile import Tile
from ..epilogue import Finish, epilogue
from .config import Config
from .globals import window
from .problem import Problem
from .schedule import HERE
from .stages import Stages
from .store import Store
from .store_direct import kernels_own, operands

LANE, WARP = Var("lane", 0, 31), Var("warp", 0, 31)
PANELS = {2: (64, 2), 4: (32, 0)}
"""Bytes of an element -> bytes of a row of a box, and bits of the swizzle of its 16-byte units: what ``stmatrix`` of
16-bit elements, and pairs of wider ones, fill without two lanes meeting in a bank."""


def _slots(problem: Problem, config: Config, stages: Stages) -> tuple[Tile, Tile]:
    """One slot of every warp, as rows of the CTA's tile; and of one warp alone."""
    out, high = problem.D.dtype, stages.record.m
    rows, columns = config.warps
    row_bytes, bits = PANELS[problem.D.bytes]
    wide, panel = config.tile[1] // columns, row_bytes // problem.D.bytes
    each, count = config.slots * high * wide, wide // panel

    def swizzled(layout: TileLayout) -> TileLayout | SwizzledLayout:
        return layout.swizzle(bits, 4 - problem.D.bytes // 2, 3) if bits else layout

    every_warp = S[(rows, high, columns, count, panel) : (columns * each, panel, each, high * panel, 1)]
    one_warp = S[(high, count, panel) : (panel, high * panel, 1)]
    return (
        Tile(
            "sD",
            (rows * high, config.tile[1]),
            out,
            swizzled(TileLayout(every_warp)),
            "shared",
            512,
        ),
        Tile("sD", (high, wide), out, swizzled(TileLayout(one_warp)), "shared", 512),
    )


def bulk_store(problem: Problem, config: Config, stages: Stages, target: Target) -> Store:
    """Sums of a tile to D of 16- or 32-bit elements, row-major and aligned to 16 bytes."""
    m, n, _ = config.tile
    layout = partition(stages.record, m, n, stages.record.k, warps=config.warps).D
    c, bias = operands(problem, config)
    rows = Rows(problem, config, stages, target)
    tail = epilogue(
        problem.epilogue, stages.sums, layout, (m, n), rows.statements, target=target, C=c, bias=bias
    )
    statements, beside = kernels_own(problem, tail, tail.statements)
    end = (If(Compare(LANE, "==", 0), (Instr(BULK_WAIT, (0,)),)),)
    return Store(
        tuple(statements),
        end,
        (rows.buffer, *beside),
        (rows.held, *tail.scratch),
        tail.parameters,
    )


class Rows:
    """The tile in blocks of an instruction's rows, each warp with its own slots."""

    def __init__(self, problem: Problem, config: Config, stages: Stages, target: Target) -> None:
        self.problem, self.config, self.stages, self.target = problem, config, stages, target
        every_warp, self.slot = _slots(problem, config, stages)
        parts = partition(stages.record, *every_warp.shape, stages.record.k, warps=config.warps)
        tile = Tile("d", every_warp.shape, problem.D.dtype, parts.D)
        where = {"target": target, "scope": "cta", "launch": 32 * config.multipliers}
        self.collect = lower(copy(every_warp, tile), **where)  # type: ignore[arg-type]
        self.group = self.collect.program.registers[0]
        g = self.group
        self.held = Registers("d_words", "D", problem.D.dtype, g.count, g.kind, g.container)
        self.elements = self.slot.shape[0] * self.slot.shape[1]
        self.each = config.slots * self.elements
        size = (config.multipliers * self.each,)
        self.buffer = Buffer("sD", "sD", problem.D.dtype, size, dtype(problem.D.dtype).bits, "shared", 512)

    def statements(self, finish: Finish) -> list[Statement]:
        """All blocks."""
        out = finish.begin()
        for row in range(self.stages.rows):
            out += self._block(finish, row)
        return out

    def _block(self, finish: Finish, row: int) -> list[Statement]:
        """Into a slot when it has been read; from there by the copy engine."""
        slots, held = self.config.slots, self.held
        shift = row % slots * self.elements
        rows = self.stages.rows
        # Blocks since the slot was last used: for a tile's first ones that was in the tile before.
        before = row - slots if row >= slots else row + (rows - 1 - row) // slots * slots - rows
        younger = row - before - 1
        per_row = self.stages.sums.slots // self.stages.rows
        sums = list(range(row * per_row, (row + 1) * per_row))
        into = [Slot(held, i) for i in range(held.count)]
        collected = relocated(
            self.collect.program.body, {self.group: held}, {_shared(self.collect): (self.buffer, shift)}
        )
        following = sums[-1] + 1
        ahead = list(range(following, following + per_row)) if row + 1 < self.stages.rows else []
        return [
            *finish.fetch(ahead),
            If(Compare(LANE, "==", 0), (Instr(BULK_WAIT_READ, (younger,)),)),
            Instr(BAR_WARP, ()),
            *finish.packed(sums, into),
            *collected,
            Instr(FENCE_PROXY_ASYNC, ()),
            Instr(BAR_WARP, ()),
            If(Compare(LANE, "==", 0), (*self._sent(row, shift), Instr(BULK_COMMIT, ()))),
        ]

    def sent(self, row: int) -> Lowered:
        """A block from a slot of one warp to D; `choose` and a launch see to whole units of 16 bytes in its rows."""
        rows, columns = self.config.warps
        begin, across, _ = HERE.origin(self.config)
        y: Index = begin + WARP // columns * (self.config.tile[0] // rows) + row * self.stages.record.m
        x: Index = across + WARP % columns * self.slot.shape[1]
        batch = HERE.stored_batch(self.config, self.problem.batched)
        there = window(self.problem.D, (y, x), self.slot.shape, batch, self.config.splits)
        return lower(
            copy(there, self.slot.full),
            target=self.target,
            scope="warp",
            dispatch="copy.bulk_tensor",
            config={"whole_units": True},
        )

    def _sent(self, row: int, shift: int) -> list[Statement]:
        send = self.sent(row)
        return relocated(send.program.body, buffers={_shared(send): (self.buffer, WARP * self.each + shift)})


def _shared(piece: Lowered) -> Buffer:
    return next(b for b in piece.program.buffers if b.space == "shared")
