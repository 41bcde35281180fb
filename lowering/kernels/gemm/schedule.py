"""Which tile of the result is whose turn: tiles in groups of rows, so that CTAs at work together share A and B.

Of `group` rows of tiles all columns come before the next rows; within them, tiles go down the rows first.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelayout.expr import Index, Var

from ...control import CTA, CTAS, Compare, If, Parameter, Set
from ...program import Statement
from .config import MOST, Config

LIMIT = (1 << 30) - 1
"""Of extents and of what follows from them."""

M, N, K = (Parameter(name, "s32", 1, LIMIT) for name in "MNK")
K_TILES = Parameter("k_tiles", "s32", 0, LIMIT)
"""Stages that each tile takes, a multiple of the unrolling; what is beyond K reads as zeros."""
SOME_STAGES = Var(K_TILES.name, 1, LIMIT)
"""The same, of a kernel that is launched for some."""
TILES = Parameter("tiles", "s32", 0, LIMIT)
"""Of all batches and parts of K."""
PER_BATCH = Parameter("tiles_per_batch", "s32", 1, LIMIT)
MOST_TILES = (LIMIT >> 4) + 1
"""Tiles in one dimension, of at least 16 elements each: so few that 32 bits hold those of a group."""
ROWS = Parameter("row_tiles", "s32", 1, MOST_TILES)
COLUMNS = Parameter("column_tiles", "s32", 1, MOST_TILES)
MOST_BATCHES, MOST_PARTS = (1 << 16) - 1, MOST["splits"]
"""So few that 64 bits hold where each begins, however far apart they are."""
BATCHES = Parameter("batches", "s32", 1, MOST_BATCHES)
PARTS = Parameter("k_parts", "s32", 1, MOST_PARTS)
"""Parts of K that have a stage; of a kernel that is cut into parts."""


@dataclass(frozen=True)
class Place:
    """Variables that say which tile.

    Attributes:
        prefix: of their names.
    """

    prefix: str = ""

    def _var(self, name: str, hi: int, lo: int = 0) -> Var:
        return Var(f"{self.prefix}{name}", lo, hi)

    @property
    def tile(self) -> Var:
        """Number of the tile."""
        return self._var("tile", 2 * LIMIT)

    @property
    def row(self) -> Var:
        """Which tile of rows."""
        return self._var("row_tile", MOST_TILES)

    @property
    def column(self) -> Var:
        """Which tile of columns."""
        return self._var("column_tile", MOST_TILES)

    @property
    def depth(self) -> Var:
        """Which stage along K."""
        return self._var("depth_tile", MOST_TILES)

    @property
    def batch(self) -> Var:
        return self._var("batch", MOST_BATCHES)

    @property
    def part(self) -> Var:
        """Which part of K."""
        return self._var("part", MOST_PARTS)

    @property
    def more(self) -> Compare:
        """Whether there is such a tile."""
        return Compare(self.tile, "<", TILES.variable)

    def origin(self, config: Config) -> tuple[Index, Index, Index]:
        """The first row, column and depth of the tile, in elements."""
        tiles = (self.row, self.column, self.depth)
        row, column, depth = (Var(v.name, 0, LIMIT // n) * n for v, n in zip(tiles, config.tile, strict=True))
        return row, column, depth

    def first(self) -> list[Statement]:
        """The CTA's first tile."""
        return [Set(self.tile, CTA)]

    def next(self) -> list[Statement]:
        """The CTA's next tile."""
        return [Set(self.tile, self.tile + CTAS)]

    def find(self, config: Config, batched: bool) -> list[Statement]:
        """Set where the tile is: `row`, `column`, and with several batches or parts of K those."""
        rows, columns = ROWS.variable, COLUMNS.variable
        within: Index = self.tile
        out: list[Statement] = []
        if batched or config.splits > 1:
            number = self._var("number", LIMIT)
            out.append(Set(number, self.tile % PER_BATCH.variable))
            rest: Index = self.tile // PER_BATCH.variable
            if config.splits > 1:
                out.append(Set(self.part, rest % PARTS.variable))
                rest = rest // PARTS.variable
            if batched:
                out.append(Set(self.batch, rest))
            within = number
        first, inner = self._var("first_row", LIMIT), self._var("in_group", LIMIT)
        height = self._var("group_rows", LIMIT, 1)
        return [
            *out,
            Set(first, within // (config.group * columns) * config.group),
            Set(inner, within % (config.group * columns)),
            Set(height, config.group),
            If(Compare(rows - first, "<", config.group), (Set(height, rows - first),)),
            Set(self.row, first + inner % height),
            Set(self.column, inner // height),
        ]

    def stored_batch(self, config: Config, batched: bool) -> Index | None:
        """Which of the result's batches the tile is: of parts of K those of the first part come first."""
        if config.splits > 1:
            return self.part * BATCHES.variable + self.batch
        return self.batch if batched else None

    def first_depth(self, config: Config) -> Set:
        """`depth` at the first of the tile's stages."""
        return Set(self.depth, self._begin(config) + (self.tile % SOME_STAGES if config.spread else 0))

    def next_depth(self, config: Config) -> list[Statement]:
        """`depth` one further; behind the last of the tile's part of K its first."""
        begin, behind = self._begin(config), Compare(self.depth, "==", self._begin(config) + SOME_STAGES)
        again = [If(behind, (Set(self.depth, begin),))] if config.spread else []
        return [Set(self.depth, self.depth + 1), *again]

    def _begin(self, config: Config) -> Index:
        """The first stage of the tile's part of K."""
        return self.part * K_TILES.variable if config.splits > 1 else 0


def stored_times(config: Config) -> Index:
    """How many results of all batches are stored: one for each part of K."""
    return PARTS.variable if config.splits > 1 else 1


HERE = Place()
"""The tile that is multiplied and stored."""
