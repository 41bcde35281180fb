"""How factors are copied in two parts, what the CTAs' first tiles need and the rest: panels, lines, chunks and runs.

A panel is what a row or a column of tiles reads of a factor, along all of K.  It is cut into lines along K, these into
chunks, what a warp copies at once, and a few chunks of a line are a run, what a warp takes on at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilelayout import LayoutError
from tilelayout.expr import Index, Var

from ...control import Parameter
from ...program import Address, Buffer
from ...storage import RUN_TIME
from .config import Config
from .globals import leading
from .numbers import Extents, first_tiles, tiles_of
from .pack import WARPS, Packing, factor_extents, packed_row, words_of
from .problem import Matrix, Problem
from .schedule import LIMIT, MOST_TILES

PROGRESS = Buffer("progress", "progress", "int32", (RUN_TIME,), 32, "global", 4)
"""Counters: of runs that were drawn; behind a line of the caches those of panels, A's and B's in turn."""
DRAWN_AT, PANELS_AT = 0, 32
"""Where they begin."""
COUNTERS = Parameter("counters", "s32", 1, LIMIT)
"""How many elements it has."""
CHUNK_ROWS, CHUNK_WORDS = 4, 2
"""What a lane has of a chunk, in rows of the copy and in words of a row, at most: of 16-bit types as much as
the registers of a feeding warp hold."""
RUN = 4
"""Chunks of a run, whose drawing and counting take as long as one chunk: few, so that the first panels' are shared out
evenly."""
FIRST = {
    "A": Parameter("first_rows", "s32", 0, MOST_TILES),
    "B": Parameter("first_columns", "s32", 0, MOST_TILES),
}
"""Rows and columns of tiles whose panels come first."""


@dataclass(frozen=True)
class Lines:
    """How a factor is cut.

    Attributes:
        matrix: the factor as it is given.
        side: elements of a panel across: of a tile along the dimension that tiles follow one another in.
    """

    matrix: Matrix
    side: int

    @property
    def name(self) -> str:
        return self.matrix.name.lower()

    @property
    def which(self) -> int:
        """The dimension of D, and of a tile, that the factor's tiles follow one another in."""
        return 0 if self.matrix.name == "A" else 1

    @property
    def by_rows(self) -> bool:
        """Whether panels follow one another across the rows of the copy, so that lines lie along these."""
        return (self.matrix.name == "A") == (self.matrix.contiguous == 1)

    @property
    def words(self) -> int:
        """Of a row that a lane has of a chunk: panels are whole chunks."""
        most = self.side % words_of(self.matrix, CHUNK_WORDS) == 0
        return CHUNK_WORDS if self.by_rows or most else 1

    @property
    def chunk(self) -> tuple[int, int]:
        """Its rows, and elements along them."""
        return CHUNK_ROWS, words_of(self.matrix, self.words)

    @property
    def unit(self) -> int:
        """Elements of a line across, which `side` is a multiple of."""
        return self.chunk[0 if self.by_rows else 1]

    @property
    def in_panel(self) -> int:
        """Lines of a panel."""
        return self.side // self.unit

    @property
    def place(self) -> tuple[Var, Var]:
        """Which chunk, across rows and along them; of the first panels or the rest."""
        high, wide = self.chunk
        across, along = f"chunk_across_{self.name}", f"chunk_along_{self.name}"
        return Var(across, 0, LIMIT // high), Var(along, 0, LIMIT // wide)

    @property
    def line(self) -> Var:
        """Which line."""
        return self.place[0 if self.by_rows else 1]

    @property
    def along(self) -> Var:
        """Which chunk of it."""
        return self.place[1 if self.by_rows else 0]

    @property
    def runs(self) -> Parameter:
        """How many a kernel copies."""
        return self._number("runs", 0)

    @property
    def line_runs(self) -> Parameter:
        """How many a line has."""
        return self._number("line_runs")

    @property
    def line_chunks(self) -> Parameter:
        """And chunks."""
        return self._number("line_chunks")

    @property
    def row(self) -> Parameter:
        """Elements of a row of the copy."""
        return self._number("row")

    def _number(self, what: str, least: int = 1) -> Parameter:
        return Parameter(f"{what}_{self.name}", "s32", least, LIMIT)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Numbers of a launch that copies."""
        return self.runs, self.line_runs, self.line_chunks, self.row, leading(self.given)

    @property
    def given(self) -> Matrix:
        """The factor as it is given, beside its copy, which has its name."""
        return replace(self.matrix, name=f"given_{self.matrix.name}")

    @property
    def packed(self) -> Matrix:
        """The copy."""
        return replace(Packing(self.matrix.name, self.matrix, False).packed, name=self.matrix.name)

    def counter(self, panel: Index) -> Address:
        """Of runs of a panel of the rest that are copied."""
        return Address(PROGRESS, (panel * 2 + (PANELS_AT + self.which),))


def lines(problem: Problem, config: Config, factor: str) -> Lines:
    """Of a factor of a problem that is cut in a way."""
    return Lines(getattr(problem, factor), config.tile[0 if factor == "A" else 1])


def in_order(problem: Problem, config: Config) -> list[Lines]:
    """Of the factors that are copied: columns first, which tiles go through before they come to other rows."""
    return [lines(problem, config, x) for x in "BA" if x in config.packed]


# --- the numbers of a launch ------------------------------------------------------------------------


def counters(config: Config, found: Extents) -> int:
    """Elements of `PROGRESS`."""
    return PANELS_AT + 2 * max(tiles_of(config, found))


def first_numbers(problem: Problem, config: Config, found: Extents) -> dict[str, int]:
    """The parameters of the kernel that copies the first panels; and `tiles`, how many CTAs have something to do.

    Args:
        problem, config: of the product.
        found: its extents, with the strides of the factors as they are given.

    Errors: LayoutError for so many runs that the kernels' arithmetic does not hold them.
    """
    out, runs = _numbers(problem, config, found, first_tiles(config, found))
    return {**out, COUNTERS.name: counters(config, found), "tiles": -(-runs // WARPS)}


def rest_numbers(problem: Problem, config: Config, found: Extents) -> dict[str, int]:
    """The further parameters of the kernel that copies the rest, as above."""
    firsts = first_tiles(config, found)
    rows, columns = (n - first for n, first in zip(tiles_of(config, found), firsts, strict=True))
    out, _ = _numbers(problem, config, found, (rows, columns))
    return {**out, **dict(zip([p.name for p in FIRST.values()], firsts, strict=True))}


def _numbers(
    problem: Problem, config: Config, found: Extents, panels: tuple[int, int]
) -> tuple[dict[str, int], int]:
    """Of so many of A's panels and of B's; and all their runs."""
    out: dict[str, int] = {}
    total = 0
    for x in in_order(problem, config):
        factor = x.matrix.name
        rows, length = factor_extents(factor, x.matrix, found)
        row = packed_row(x.matrix, length)
        high, wide = x.chunk
        chunks = max(1, -(-row // wide) if x.by_rows else -(-rows // high))
        line_runs = -(-chunks // RUN)
        runs = panels[x.which] * x.in_panel * line_runs
        total += runs
        named = zip(x.parameters, (runs, line_runs, chunks, row, found.leading[factor]), strict=True)
        out |= {p.name: n for p, n in named}
    if total > LIMIT:
        raise LayoutError(
            "gemm",
            f"the factors are copied in {total} runs, beyond {LIMIT}, which the kernel's arithmetic holds",
            "beside=False",
        )
    return out, total


def refusal(problem: Problem, config: Config) -> tuple[str, str]:
    """Why nothing can be copied beside a product, and what else would do; empty where it can."""
    remedy = "beside=False"
    if not config.packed:
        return "nothing is packed", remedy
    if config.feed != "tma":
        return f"feed={config.feed!r} leaves no warp to copy", remedy
    if config.splits > 1:
        return f"splits={config.splits} has CTAs begin in several parts of K", remedy
    if problem.batched:
        return "the kernel is batched", remedy
    for x in in_order(problem, config):
        if x.side % x.unit:
            field = f"tile[{x.which}]"
            larger = f"{field}={-(-x.side // x.unit) * x.unit} or {remedy}"
            return f"{field} = {x.side} is no multiple of {x.unit}, which a warp copies at once", larger
    return "", ""
