"""Parts of K that different CTAs have added up, put together: the second kernel of a problem with ``splits``.

The first kernel stores the sums of each part as they are, one part after the other, and takes no epilogue; this one
adds the parts in order, so that results do not depend on which CTA is first, and ends as the one kernel would.
"""

from __future__ import annotations

from dataclasses import replace

from tilelayout import LayoutError, S, TileLayout, laneid, warpid
from tilelayout.expr import Index

from ...api import Lowered, lower
from ...compose import relocated
from ...control import Compare, Set, While
from ...isa import ZERO
from ...isa.arithmetic import ADD
from ...ops import copy
from ...program import Instr, Program, Registers, Slot, Statement
from ...target import Target
from ...tile import Tile
from ..epilogue import direct_epilogue
from .config import Config
from .globals import batch_stride, global_buffer, leading, moved_to, window
from .problem import Matrix, Problem
from .schedule import BATCHES, COLUMNS, HERE, K_TILES, PARTS, PER_BATCH, ROWS, TILES, K, M, N
from .store_direct import kernels_own, operands

REDUCTION = Config((16, 128, 16), (2, 2), 2, "registers")
"""How the result is cut: 16 rows of 128 columns for four warps, each lane with four neighbors of four rows."""
_LAYOUT = TileLayout(S[(4, 4, 32, 4) : (4, 1 @ warpid, 1 @ laneid, 1)])
SUMS = ("float32", "float64")
"""Types of sums that are added here."""


def parts(problem: Problem) -> Matrix:
    """All parts as one matrix of many batches: those of the first part, then those of the second, ..."""
    return Matrix("parts", problem.accumulator, "row", 16)


def first_problem(problem: Problem) -> Problem:
    """What the first kernel does: the products alone, stored as parts.

    Errors: LayoutError for sums that are not added here.
    """
    if problem.accumulator not in SUMS:
        raise LayoutError(
            "gemm",
            f"parts of {problem.accumulator} sums are not added up",
            f"splits=1; {', '.join(SUMS)} are",
        )
    out = Matrix("D", problem.accumulator, "row", 16)
    return replace(problem, C=None, D=out, bias="", scaled=False, function=None, batched=True)


def multiplied(problem: Problem, config: Config) -> Problem:
    """The problem of the kernel that multiplies: where K is divided, whose results are the parts."""
    return first_problem(problem) if config.splits > 1 else problem


def load_of_part(problem: Problem, target: Target) -> Lowered:
    """The copy of a tile of part `HERE.part` to registers."""
    m, n, _ = REDUCTION.tile
    row, column, _ = HERE.origin(REDUCTION)
    batch: Index = HERE.batch if problem.batched else 0
    held = Tile("part_sums", (m, n), problem.accumulator, _LAYOUT)
    there = window(
        parts(problem), (row, column), (m, n), HERE.part * BATCHES.variable + batch, PARTS.variable
    )
    return lower(
        copy(held, there),  # type: ignore[arg-type]
        target=target,
        scope="cta",
        launch=32 * REDUCTION.multipliers,
        dispatch="copy.predicated",
    )


def build_reduction(problem: Problem, target: Target) -> Program:
    """The second kernel: its tensors are the parts, of which a launch says how many, those of the epilogue, and D."""
    config = REDUCTION
    m, n, _ = config.tile
    row, column, _ = HERE.origin(config)
    whole = parts(problem)
    load = load_of_part(problem, target).program
    found = load.registers[0]
    sums = Registers("sums", "D", problem.accumulator, found.count, found.kind, found.container)
    loaded = replace(sums, name="part_sums", role="part")
    there_d = window(problem.D, (row, column), (m, n), HERE.batch if problem.batched else None)
    c, bias = operands(problem, config)
    tail = direct_epilogue(problem.epilogue, sums, _LAYOUT, there_d, target=target, C=c, bias=bias)
    ending, beside = kernels_own(problem, tail, tail.statements)
    adding: list[Statement] = [
        *relocated(load.body, {found: loaded}, moved_to(load, whole)),
        *[
            Instr(ADD[sums.kind], ((Slot(sums, i),), (Slot(sums, i),), (Slot(loaded, i),)))
            for i in range(sums.count)
        ],  # type: ignore[index]
        Set(HERE.part, HERE.part + 1),
    ]
    body: list[Statement] = [
        *HERE.first(),
        While(
            HERE.more,
            (
                *HERE.find(config, problem.batched),
                *[Instr(ZERO[sums.kind], ((Slot(sums, i),),)) for i in range(sums.count)],  # type: ignore[index]
                Set(HERE.part, 0),
                While(Compare(HERE.part, "<", PARTS.variable), tuple(adding), hoist=False),
                *ending,
                *HERE.next(),
            ),
            hoist=False,
        ),
    ]
    matrices = [whole, *[x for x in (problem.C, problem.D) if x is not None]]
    scratch = [r for r in load.registers if r != found]
    return Program(
        "gemm_reduce",
        config.all_warps,
        (),
        (),
        tuple(body),
        (*[global_buffer(x) for x in matrices], *beside),
        (sums, loaded, *scratch, *tail.scratch),
        (),
        (
            *(M, N, K, K_TILES, TILES, PER_BATCH, ROWS, COLUMNS, BATCHES, PARTS),
            *[leading(x) for x in matrices if x.layout is None],
            *[batch_stride(x) for x in matrices if problem.batched or x is whole],
            *tail.parameters,
        ),
    )
