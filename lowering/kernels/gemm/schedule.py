"""Which tile of the result is whose turn: tiles in groups of rows, so that CTAs at work together share A and B.

Of `group` rows of tiles all columns come before the next rows; within them, tiles go down the rows first.
"""

from __future__ import annotations

from tilelayout.expr import Index, Var

from ...control import CTA, CTAS, Compare, If, Parameter, Set
from ...program import Statement
from .config import Config

LIMIT = (1 << 30) - 1

M, N, K = (Parameter(name, "s32", 1, LIMIT) for name in "MNK")
K_TILES = Parameter("k_tiles", "s32", 0, LIMIT)
"""Stages that each tile takes, a multiple of the unrolling; what is beyond K reads as zeros."""
TILES = Parameter("tiles", "s32", 0, LIMIT)
"""Of all batches and parts of K."""
PER_BATCH = Parameter("tiles_per_batch", "s32", 1, LIMIT)
ROWS = Parameter("row_tiles", "s32", 1, LIMIT)
COLUMNS = Parameter("column_tiles", "s32", 1, LIMIT)
BATCHES = Parameter("batches", "s32", 1, LIMIT)

TILE = Var("tile", 0, 2 * LIMIT)
ROW_TILE, COLUMN_TILE, DEPTH_TILE = (
    Var(name, 0, LIMIT) for name in ("row_tile", "column_tile", "depth_tile")
)
"""Which tile of rows, of columns, and along K."""
BATCH, PART = Var("batch", 0, LIMIT), Var("part", 0, LIMIT)


def origin(config: Config) -> tuple[Index, Index, Index]:
    """The first row, column and depth of the tile, in elements."""
    tiles = (ROW_TILE, COLUMN_TILE, DEPTH_TILE)
    row, column, depth = (Var(v.name, 0, LIMIT // n) * n for v, n in zip(tiles, config.tile, strict=True))
    return row, column, depth


def first_tile() -> list[Statement]:
    """The CTA's first tile."""
    return [Set(TILE, CTA)]


def next_tile() -> list[Statement]:
    """The CTA's next tile."""
    return [Set(TILE, TILE + CTAS)]


MORE: Compare = Compare(TILE, "<", TILES.variable)
"""Whether the tile is one."""


def place_tile(config: Config, batched: bool) -> list[Statement]:
    """Set where the tile is: `ROW_TILE`, `COLUMN_TILE`, and with several batches or parts of K those."""
    rows, columns = ROWS.variable, COLUMNS.variable
    within: Index = TILE
    out: list[Statement] = []
    if batched or config.splits > 1:
        number = Var("number", 0, LIMIT)
        out.append(Set(number, TILE % PER_BATCH.variable))
        rest: Index = TILE // PER_BATCH.variable
        if config.splits > 1:
            out.append(Set(PART, rest % config.splits))
            rest = rest // config.splits
        if batched:
            out.append(Set(BATCH, rest))
        within = number
    first, high, inner = (Var(name, 0, LIMIT) for name in ("first_row", "group_rows", "in_group"))
    height = Var("group_rows", 1, LIMIT)
    out += [
        Set(first, within // (config.group * columns) * config.group),
        Set(inner, within % (config.group * columns)),
        Set(high, config.group),
        If(Compare(rows - first, "<", config.group), (Set(high, rows - first),)),
        Set(ROW_TILE, first + inner % height),
        Set(COLUMN_TILE, inner // height),
    ]
    return out
