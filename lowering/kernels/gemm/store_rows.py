"""The result's rows, collected in shared memory: the rows of one instruction at a time, each warp in slots of its own.

From there whole rows of the warp's tile go to memory, where fragments would write them in pieces.
"""

from __future__ import annotations

from tilelayout import S, SwizzledLayout, TileLayout
from tilelayout.expr import Index, Var

from ...api import Lowered, lower
from ...compose import relocated
from ...dtypes import dtype
from ...fragments import partition
from ...ops import copy
from ...program import Buffer, Registers, Slot, Statement
from ...target import Target
from ...tile import Tile
from ...window import Window
from .config import Config
from .globals import window
from .problem import Problem
from .schedule import HERE, stored_times
from .stages import Stages

WARP = Var("warp", 0, 31)
Panel = tuple[int, tuple[int, int, int] | None]
Panels = dict[int, tuple[Panel, ...]]
"""Bytes of an element -> bytes of a row of a panel, and its swizzle: bits, base and shift, in elements."""
BULK: Panels = {2: ((64, (2, 3, 3)),), 4: ((32, None),)}
"""What the copy engine can read, and ``stmatrix`` of 16-bit elements, and pairs of wider ones, fill without two lanes
meeting in a bank."""
THREADS: Panels = {2: ((128, (3, 3, 3)), (64, (2, 3, 3))), 4: ((128, (2, 3, 2)),)}
"""The same for threads, eight of which read all banks; the first whose rows a warp's columns fill."""
LEAST = 32
"""Columns of a warp that are collected: of them there is a whole number of ``stmatrix``."""
HEIGHT = 16
"""Rows of a slot: of the tile of every instruction."""


def slot_bytes(config: Config, element: int) -> int:
    """Of all slots of a CTA, for elements of so many bytes."""
    return config.slots * HEIGHT * config.warps[0] * config.tile[1] * element


def panel_of(config: Config, element: int) -> Panel | None:
    """The panel for elements of so many bytes; None where none fits the warps' columns."""
    wide = config.tile[1] // config.warps[1]
    panels = (BULK if config.sender == "bulk" else THREADS).get(element, ())
    return next((p for p in panels if wide * element % max(p[0], LEAST * element) == 0), None)


def refusal(config: Config, element: int) -> str:
    """Why rows of elements of so many bytes are not collected; empty where they are."""
    if element not in BULK:
        return f"elements of {element} bytes"
    wide = config.tile[1] // config.warps[1]
    return "" if panel_of(config, element) else f"{wide} columns of a warp, no multiple of {LEAST}"


class Rows:
    """The tile in blocks of an instruction's rows, each warp with its own slots.

    Attributes:
        slot: one slot of one warp.
        collect: the lowered copy of a block from registers to all warps' slots.
        held: the registers that a block is rounded into.
        buffer: all slots.
        each: elements of a warp's.
    """

    def __init__(self, problem: Problem, config: Config, stages: Stages, target: Target) -> None:
        self.problem, self.config, self.stages, self.target = problem, config, stages, target
        every_warp, self.slot = self._slots()
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

    def _slots(self) -> tuple[Tile, Tile]:
        """One slot of every warp, as rows of the CTA's tile; and of one warp alone."""
        config, out, high = self.config, self.problem.D.dtype, self.stages.record.m
        rows, columns = config.warps
        bytes_each = self.problem.D.bytes
        row_bytes, swizzle = panel_of(config, bytes_each) or THREADS[bytes_each][0]
        wide, panel = config.tile[1] // columns, row_bytes // bytes_each
        each, count = config.slots * high * wide, wide // panel

        def swizzled(layout: TileLayout) -> TileLayout | SwizzledLayout:
            return layout.swizzle(*swizzle) if swizzle else layout

        every_warp = S[(rows, high, columns, count, panel) : (columns * each, panel, each, high * panel, 1)]
        one_warp = S[(high, count, panel) : (panel, high * panel, 1)]
        all_rows, shape = (rows * high, config.tile[1]), (high, wide)
        return (
            Tile("sD", all_rows, out, swizzled(TileLayout(every_warp)), "shared", 512),
            Tile("sD", shape, out, swizzled(TileLayout(one_warp)), "shared", 512),
        )

    def sums(self, row: int) -> list[int]:
        """The accumulators of a block; none behind the last."""
        per_row = self.stages.sums.slots // self.stages.rows
        return list(range(row * per_row, (row + 1) * per_row)) if row < self.stages.rows else []

    @property
    def into(self) -> list[Slot]:
        """The registers that a block is rounded into."""
        return [Slot(self.held, i) for i in range(self.held.count)]

    def shift(self, row: int) -> int:
        """Elements from a warp's first slot to that of a block."""
        return row % self.config.slots * self.elements

    def younger(self, row: int) -> int:
        """Blocks between this one and the last that used its slot, for a tile's first ones in the tile before."""
        slots, count = self.config.slots, self.stages.rows
        before = row - slots if row >= slots else row + (count - 1 - row) // slots * slots - count
        return row - before - 1

    def collected(self, row: int) -> list[Statement]:
        """The block from registers to its slot."""
        moved = {shared_buffer(self.collect): (self.buffer, self.shift(row))}
        return relocated(self.collect.program.body, {self.group: self.held}, moved)  # type: ignore[arg-type]

    def window(self, row: int) -> Window:
        """Where a block of one warp is in D."""
        rows, columns = self.config.warps
        begin, across, _ = HERE.origin(self.config)
        y: Index = begin + WARP // columns * (self.config.tile[0] // rows) + row * self.stages.record.m
        x: Index = across + WARP % columns * self.slot.shape[1]
        batch = HERE.stored_batch(self.config, self.problem.batched)
        return window(self.problem.D, (y, x), self.slot.shape, batch, stored_times(self.config))

    def of_slot(self, piece: Lowered, row: int) -> dict[Buffer, tuple[Buffer, Index]]:
        """For `relocated`: a copy's shared buffer as the slot of a block, of this warp."""
        return {shared_buffer(piece): (self.buffer, WARP * self.each + self.shift(row))}


def shared_buffer(piece: Lowered) -> Buffer:
    """The buffer in shared memory of a copy that has one."""
    return next(b for b in piece.program.buffers if b.space == "shared")
