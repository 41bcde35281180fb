"""The rest of the factors' copies, made beside the product by those warps of the feeding warpgroup that have time.

Before the product, kernels of their own have copied what the CTAs' first tiles need (`pack`).  The rest is cut into
panels, what a row or a column of tiles reads; these into lines of chunks; and lines into runs.  Whichever warp has time
draws the next run, so that all get done however many CTAs are there, and counts it for its panel when it is copied; who
feeds waits for the panels of its tile.  Columns' runs come before rows': tiles go through all columns of their first
rows before they come to others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilelayout import LayoutError
from tilelayout.expr import Index, Var

from ...api import Lowered
from ...compose import relocated
from ...control import CTA, All, Compare, Draw, If, Parameter, Set, While
from ...isa import STORE_WORD, ZERO
from ...isa.counting import COUNT, COUNT_WAIT
from ...program import Address, Buffer, Instr, Program, Registers, Slot, Statement
from ...storage import RUN_TIME
from ...target import Target
from ...window import Window
from .config import Config
from .globals import extents, global_buffer, leading, moved_to
from .numbers import Extents, first_tiles, tiles_of
from .pack import WARPS, Packing, factor_extents, lane_copies, packed_row, words_of
from .problem import Matrix, Problem
from .schedule import HERE, LIMIT, MOST_TILES

PROGRESS = Buffer("progress", "progress", "int32", (RUN_TIME,), 32, "global", 4)
"""Counters: of runs that were drawn; behind a line of the caches those of panels, A's and B's in turn."""
DRAWN_AT, PANELS_AT = 0, 32
"""Where they begin."""
COUNTERS = Parameter("counters", "s32", 1, LIMIT)
"""How many elements it has; of the kernels that come before."""
CHUNK_ROWS, CHUNK_WORDS = 4, 2
"""What a lane has of a chunk, in rows of the copy and in words of a row, at most: as much as the registers of a feeding
warp hold."""
RUN = 8
"""Chunks of a line that are drawn, and counted, together: each takes as long as a chunk."""
FIRST = {
    "A": Parameter("first_rows", "s32", 0, MOST_TILES),
    "B": Parameter("first_columns", "s32", 0, MOST_TILES),
}
"""Rows and columns of tiles whose panels have been copied before."""
DRAWN, OWN, LEFT = Var("run", 0, 2 * LIMIT), Var("own_run", 0, LIMIT), Var("chunks_left", 0, RUN)
"""The run that was drawn, of all and of its factor's; and what is left of it."""
_LANE, _WARP = Var("lane", 0, 31), Var("warp", 0, 31)


@dataclass(frozen=True)
class Rest:
    """What a kernel copies beside the product.

    Attributes:
        copying: of a warp that copies.
        needs: of who feeds, before a tile.
        buffers, scratch, parameters: further ones of the program.
    """

    copying: tuple[Statement, ...]
    needs: tuple[Statement, ...]
    buffers: tuple[Buffer, ...]
    scratch: tuple[Registers, ...]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Lines:
    """How the rest of a factor is cut.

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
    def by_rows(self) -> bool:
        """Whether panels follow one another across the rows of the copy: lines lie along these then, else across."""
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
        """Elements of a chunk in the direction that panels follow one another in, which `side` is a multiple of."""
        return self.chunk[0 if self.by_rows else 1]

    @property
    def in_panel(self) -> int:
        """Lines of a panel."""
        return self.side // self.unit

    @property
    def place(self) -> tuple[Var, Var]:
        """Which chunk of the rest, across rows and along them."""
        high, wide = self.chunk
        return Var(f"chunk_across_{self.name}", 0, LIMIT // high), Var(
            f"chunk_along_{self.name}", 0, LIMIT // wide
        )

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
        """How many there are in all."""
        return Parameter(f"runs_{self.name}", "s32", 0, LIMIT)

    @property
    def line_runs(self) -> Parameter:
        """How many a line has."""
        return Parameter(f"line_runs_{self.name}", "s32", 1, LIMIT)

    @property
    def line_chunks(self) -> Parameter:
        """And chunks."""
        return Parameter(f"line_chunks_{self.name}", "s32", 1, LIMIT)

    @property
    def row(self) -> Parameter:
        """Elements of a row of the copy."""
        return Parameter(f"row_{self.name}", "s32", 1, LIMIT)

    @property
    def given(self) -> Matrix:
        """The factor beside its copy, which has its name."""
        return given(self.matrix)

    @property
    def packed(self) -> Matrix:
        """The copy."""
        return replace(Packing(self.matrix.name, self.matrix, False).packed, name=self.matrix.name)

    def counter(self, panel: Index) -> Address:
        """Of runs of a panel of the rest that are copied."""
        return Address(PROGRESS, (panel * 2 + (PANELS_AT + (self.matrix.name == "B")),))


def given(matrix: Matrix) -> Matrix:
    """The factor as it is given, beside its copy, which has its name."""
    return replace(matrix, name=f"given_{matrix.name}")


def lines(problem: Problem, config: Config, factor: str) -> Lines:
    """Of a factor of a problem that is cut in a way."""
    return Lines(getattr(problem, factor), config.tile[0 if factor == "A" else 1])


# --- the program ------------------------------------------------------------------------------------


def build_reset() -> Program:
    """What sets the counters to 0, of a kernel that comes before."""
    none, at = Registers("none", "none", PROGRESS.dtype, 1, "b32"), Var("counter", 0, 2 * LIMIT)
    word = (Slot(none, 0),)
    one = (Instr(STORE_WORD["b32"], (Address(PROGRESS, (at,)), word)), Set(at, at + 1))
    first = All((Compare(CTA, "==", 0), Compare(_WARP, "==", 0), Compare(_LANE, "==", 0)))
    thread = (Set(at, 0), While(Compare(at, "<", COUNTERS.variable), one, hoist=False))
    body = (Instr(ZERO["b32"], (word,)), If(first, thread))
    return Program("reset", WARPS, (), (), body, (PROGRESS,), (none,), (), (COUNTERS,))


def build_rest(problem: Problem, config: Config, target: Target) -> Rest:
    """What is copied beside the product of a problem whose factors lie as they are given.

    Errors: LayoutError for what has no copy.
    """
    order = [lines(problem, config, x) for x in "BA" if x in config.packed]
    bodies: list[tuple[Statement, ...]] = []
    scratch: dict[Registers, None] = {}
    for x in order:
        body, registers = _run(x, target)
        bodies.append((*body, Instr(COUNT, (x.counter(x.line // x.in_panel),))))
        scratch |= dict.fromkeys(registers)
    draw = Draw(DRAWN, Address(PROGRESS, (DRAWN_AT,)))
    total: Index = sum([x.runs.variable for x in order])
    count = order[0].runs.variable
    one: list[Statement] = [Set(OWN, DRAWN), *bodies[0]]
    if len(order) > 1:
        one = [If(Compare(DRAWN, "<", count), tuple(one), (Set(OWN, DRAWN - count), *bodies[1]))]
    return Rest(
        (draw, While(Compare(DRAWN, "<", total), (*one, draw), hoist=False)),
        tuple([_need(x) for x in order]),
        (*[global_buffer(x.given) for x in order], PROGRESS),
        tuple(scratch),
        (
            *[p for x in order for p in (FIRST[x.matrix.name], x.runs, x.line_runs, x.line_chunks, x.row)],
            *[leading(x.given) for x in order],
        ),
    )


def _need(x: Lines) -> If:
    """The wait of who feeds for the panel of its tile."""
    tile, first = (HERE.row if x.matrix.name == "A" else HERE.column), FIRST[x.matrix.name].variable
    all_runs = Var(x.line_runs.name, 1, LIMIT // x.in_panel) * x.in_panel
    return If(Compare(tile, ">=", first), (Instr(COUNT_WAIT, (x.counter(tile - first), all_runs)),))


def rest_copies(x: Lines, target: Target) -> tuple[Lowered, Lowered]:
    """The two copies of a chunk: from the factor as it is given to registers, and from there to its copy."""
    matrix = x.matrix
    begin: list[Index] = [v * n for v, n in zip(x.place, x.chunk, strict=True)]
    begin[0 if x.by_rows else 1] += Var(FIRST[matrix.name].name, 0, LIMIT // x.side) * x.side
    sizes = extents(matrix)
    rows, length = sizes[1 - matrix.contiguous], sizes[matrix.contiguous]
    source, packed = _window(x.given, (rows, length), begin, x.chunk), x.packed
    return lane_copies(
        matrix, source, _window(packed, (rows, x.row.variable), begin, x.chunk), target, 1, x.words
    )


def _run(x: Lines, target: Target) -> tuple[list[Statement], tuple[Registers, ...]]:
    """The copies of run `OWN`, and their registers."""
    load, store = (y.program for y in rest_copies(x, target))
    chunk = (
        *relocated(load.body, None, moved_to(load, x.given)),
        *relocated(store.body, {store.registers[0]: load.registers[0]}, moved_to(store, x.packed)),
        Set(x.along, x.along + 1),
        Set(LEFT, LEFT - 1),
    )
    more = All((Compare(LEFT, "!=", 0), Compare(x.along, "<", x.line_chunks.variable)))
    body: list[Statement] = [
        Set(x.line, OWN // x.line_runs.variable),
        Set(x.along, OWN % x.line_runs.variable * RUN),
        Set(LEFT, RUN),
        While(more, chunk, hoist=False),
    ]
    return body, (load.registers[0], *[r for p in (load, store) for r in p.registers[1:]])


def _window(matrix: Matrix, sizes: tuple[Index, Index], begin: list[Index], box: tuple[int, int]) -> Window:
    """A box of rows along the contiguous dimension."""
    dims = (((sizes[0], leading(matrix).variable),), ((sizes[1], 1),))
    return Window(matrix.name, matrix.dtype, dims, sizes, tuple(begin), box, matrix.alignment)


# --- the numbers of a launch ------------------------------------------------------------------------


def counters(config: Config, found: Extents) -> int:
    """Elements of `PROGRESS`."""
    return PANELS_AT + 2 * max(tiles_of(config, found))


def before(problem: Problem, config: Config, factor: str, found: Extents) -> Extents:
    """The extents of the copy that comes before the product: of the part that the first tiles need."""
    x = lines(problem, config, factor)
    e = Packing(factor, x.matrix, problem.batched).extents(found)
    if not config.beside:
        return e
    ready = first_tiles(config, found)[0 if factor == "A" else 1] * x.side
    if x.by_rows:
        return replace(e, M=min(e.M, ready))
    return e if ready >= e.K else replace(e, N=ready, K=ready)


def rest_numbers(problem: Problem, config: Config, found: Extents) -> dict[str, int]:
    """The program's further parameters; `found` has the strides of the factors as they are given.

    Errors: LayoutError for so many runs that the kernel's arithmetic does not hold them.
    """
    firsts = first_tiles(config, found)
    out = dict(zip([p.name for p in FIRST.values()], firsts, strict=True))
    for factor in config.packed:
        x, which = lines(problem, config, factor), 0 if factor == "A" else 1
        rows, length = factor_extents(factor, x.matrix, found)
        row = packed_row(x.matrix, length)
        high, wide = x.chunk
        chunks = max(1, -(-row // wide) if x.by_rows else -(-rows // high))
        panels = tiles_of(config, found)[which] - firsts[which]
        runs = -(-chunks // RUN)
        out |= {
            x.runs.name: panels * x.in_panel * runs,
            x.line_runs.name: runs,
            x.line_chunks.name: chunks,
            x.row.name: row,
            leading(x.given).name: found.leading[factor],
        }
        if out[x.runs.name] > LIMIT:
            raise LayoutError(
                "gemm",
                f"{factor} is copied beside the product in {out[x.runs.name]} runs, beyond {LIMIT}, which the kernel's "
                "arithmetic holds",
                "beside=False",
            )
    return out


def refusal(problem: Problem, config: Config) -> str:
    """Why nothing can be copied beside a product; empty where it can."""
    if not config.packed:
        return "nothing is packed"
    if config.feed != "tma":
        return f"feed={config.feed!r} leaves no warp to copy"
    if config.splits > 1:
        return f"splits={config.splits} has CTAs begin in several parts of K"
    if problem.batched:
        return "the kernel is batched"
    for factor in config.packed:
        x = lines(problem, config, factor)
        if x.side % x.unit:
            field = "tile[0]" if factor == "A" else "tile[1]"
            return f"{field} = {x.side} is no multiple of {x.unit}, which a warp copies of a row"
    return ""


__all__ = ["COUNTERS", "PROGRESS", "Lines", "Rest", "before", "build_reset", "build_rest", "counters", "given",
           "lines", "refusal", "rest_copies", "rest_numbers"]  # fmt: skip
