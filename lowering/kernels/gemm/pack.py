"""A factor copied to rows of whole cache lines: a kernel before the product, for arrays that lie badly.

Rows that begin anywhere are read element by element, which costs more than the product of large matrices.  Read once,
and written to memory of the call's own, a factor is as well aligned as can be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilelayout import S, TileLayout, laneid, warpid
from tilelayout.expr import Index

from ...api import Lowered, lower
from ...compose import relocated
from ...control import While
from ...ops import copy
from ...program import Program
from ...target import Target
from ...tile import Tile
from ...window import Window
from .config import Config
from .globals import batch_stride, global_buffer, leading, moved_to, window
from .numbers import Extents
from .placed import WIDEST
from .problem import Matrix, Problem
from .schedule import BATCHES, COLUMNS, HERE, K_TILES, PER_BATCH, ROWS, TILES, K, M, N

ROW_UNIT = 128
"""Bytes that rows of the copy are a multiple of: a line of the caches."""
WORD = 4
"""Bytes that a lane has of a row, so that it stores whole words."""
RESIDENT = 16
"""CTAs of a multiprocessor: what they have under way hides the latency of memory."""
WARPS, ROWS_EACH, WORDS_EACH = 4, 2, 4
"""Of a CTA; and what each lane has of a tile, in rows and in words of a row."""


@dataclass(frozen=True)
class Packing:
    """The copy of one factor.

    Attributes:
        factor: "A" or "B".
        matrix: how it lies.
        batched: whether there are several.
    """

    factor: str
    matrix: Matrix
    batched: bool

    @property
    def source(self) -> Matrix:
        """The factor as rows along its contiguous dimension."""
        return Matrix("source", self.matrix.dtype, "row", self.matrix.alignment)

    @property
    def packed(self) -> Matrix:
        """Its copy."""
        return Matrix("packed", self.matrix.dtype, "row", WIDEST)

    @property
    def problem(self) -> Problem:
        """What the schedule and the numbers of a launch see: the copy is the result."""
        kind = self.matrix.dtype
        return Problem(self.source, self.source, self.packed, kind, batched=self.batched)

    @property
    def cut(self) -> Config:
        """How the copy is cut into tiles."""
        return Config(
            (WARPS * ROWS_EACH, words_of(self.matrix, WORDS_EACH), 16),
            (WARPS, 1),
            2,
            "registers",
            resident=RESIDENT,
        )

    def extents(self, found: Extents) -> Extents:
        """Of the copy, for those of the product; a factor that all batches share is copied once.

        M are the rows, N what each has in the copy, and K what it has in the factor.
        """
        across, along = factor_extents(self.factor, self.matrix, found)
        batches = found.batches if found.batch.get(self.factor, 0) else 1
        row = packed_row(self.matrix, along)
        leads = {"source": found.leading[self.factor], "packed": row}
        steps = {"source": found.batch.get(self.factor, 0), "packed": across * row}
        return Extents(across, row, along, batches, leads, steps)


def factor_extents(factor: str, matrix: Matrix, found: Extents) -> tuple[int, int]:
    """Rows across and elements along the contiguous dimension."""
    both = (found.M, found.K) if factor == "A" else (found.K, found.N)
    return both[1 - matrix.contiguous], both[matrix.contiguous]


def packed_row(matrix: Matrix, along: int) -> int:
    """Elements from one row of the copy to the next."""
    unit = max(1, ROW_UNIT // matrix.bytes)
    return -(-along // unit) * unit


def packed_elements(packing: Packing, found: Extents) -> int:
    """That the copy takes."""
    e = packing.extents(found)
    return e.M * e.leading["packed"] * e.batches


def laid_packed(problem: Problem, letters: str, found: Extents) -> Extents:
    """The extents of the product with the leading dimensions of the copies."""
    leads, steps = dict(found.leading), dict(found.batch)
    for x in letters:
        matrix = getattr(problem, x)
        across, along = factor_extents(x, matrix, found)
        leads[x] = packed_row(matrix, along)
        if steps.get(x):
            steps[x] = across * leads[x]
    return replace(found, leading=leads, batch=steps)


def packed_problem(problem: Problem, letters: str) -> Problem:
    """The problem of the kernel that reads the copies of these factors."""
    return problem.aligned(**dict.fromkeys(letters, WIDEST))


def packing_copies(packing: Packing, target: Target) -> tuple[Lowered, Lowered]:
    """The two copies of a tile: from ``source`` to registers, and from there to ``packed``."""
    cut = packing.cut
    row, column, _ = HERE.origin(cut)
    batch: Index | None = HERE.batch if packing.batched else None
    source, packed = (window(x, (row, column), cut.tile[:2], batch) for x in (packing.source, packing.packed))
    source = replace(source, sizes=(*source.sizes[:-1], K.variable))
    return lane_copies(packing.matrix, source, packed, target, WARPS, WORDS_EACH)


def words_of(matrix: Matrix, words_each: int) -> int:
    """Elements of a row that the lanes of a warp have in so many words each."""
    return 32 * words_each * max(1, WORD // matrix.bytes)


def lane_copies(
    matrix: Matrix, source: Window, packed: Window, target: Target, warps: int, words_each: int
) -> tuple[Lowered, Lowered]:
    """The copies of a box by way of registers: each lane has `words_each` words of some rows."""
    each = max(1, WORD // matrix.bytes)
    m, n = source.box[-2:]
    words = S[
        (m // warps, warps, words_each, 32, each) : (words_each * each, 1 @ warpid, each, 1 @ laneid, 1)
    ]
    held = Tile("held", (m, n), matrix.dtype, TileLayout(words))
    where = {"target": target, "scope": "cta", "launch": 32 * warps, "dispatch": "copy.predicated"}
    return lower(copy(held, source), **where), lower(copy(packed, held), **where)  # type: ignore[arg-type]


def build_packing(packing: Packing, target: Target) -> Program:
    """The kernel: its tensors are ``source`` and ``packed``, whose rows end with zeros."""
    cut = packing.cut
    load, store = (x.program for x in packing_copies(packing, target))
    registers = load.registers[0]
    body = (
        *HERE.first(),
        While(
            HERE.more,
            (
                *HERE.find(cut, packing.batched),
                *relocated(load.body, None, moved_to(load, packing.source)),
                *relocated(store.body, {store.registers[0]: registers}, moved_to(store, packing.packed)),
                *HERE.next(),
            ),
            hoist=False,
        ),
    )
    matrices = (packing.source, packing.packed)
    scratch = [r for p in (load, store) for r in p.registers[1:]]
    return Program(
        "gemm_pack",
        cut.all_warps,
        (),
        (),
        body,
        tuple([global_buffer(x) for x in matrices]),
        (registers, *dict.fromkeys(scratch)),
        (),
        (
            *(M, N, K, K_TILES, TILES, PER_BATCH, ROWS, COLUMNS, BATCHES),
            *[leading(x) for x in matrices],
            *[batch_stride(x) for x in matrices if packing.batched],
        ),
    )
