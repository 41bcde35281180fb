"""The kernel whose own threads feed it: each copies its share of a stage ahead while it multiplies another.

All stages but one are under way.  At the end of a stage all threads meet: the next one has arrived, and the one that
was just read may be overwritten.
"""

from __future__ import annotations

from tilelayout.expr import Index, Var

from ...api import Lowered, lower
from ...compose import relocated
from ...control import Compare, If, Set, While
from ...isa import BAR_SYNC, ZERO
from ...isa.cp_async import CP_ASYNC_COMMIT, CP_ASYNC_WAIT
from ...ops import copy
from ...program import Instr, Registers, Slot, Statement
from ...target import Target
from .config import Config
from .globals import moved_to, window
from .problem import Problem
from .schedule import BATCH, DEPTH_TILE, K_TILES, LIMIT, MORE, PART, first_tile, next_tile, origin, place_tile
from .stages import Stages
from .store import Store
from .turn import loads_of, stage_turn

STAGE, NEXT_STAGE, FREE = (Var(name, 0, 63) for name in ("stage", "next_stage", "free_stage"))
"""That is read, that is read next, that is written."""
LEFT, TO_COPY = Var("k_left", 0, LIMIT), Var("k_to_copy", 0, LIMIT)


def copies(problem: Problem, config: Config, stages: Stages, target: Target) -> dict[str, Lowered]:
    """The lowered copies of A's and B's tile at depth `DEPTH_TILE`, by all threads."""
    row, column, depth = origin(config)
    places = {"A": (row, depth), "B": (depth, column)}
    batch = BATCH if problem.batched else None
    dispatch = {"cp_async": "copy.cp_async", "registers": "copy.predicated"}[config.feed]
    return {
        x: lower(
            copy(stages.tiles[x].full, window(getattr(problem, x), places[x], stages.tiles[x].shape, batch)),
            target=target,
            scope="cta",
            launch=32 * config.multipliers,
            dispatch=dispatch,
        )
        for x in "AB"
    }


def body(
    problem: Problem, config: Config, stages: Stages, zero: Index, store: Store, target: Target
) -> tuple[list[Statement], tuple[Registers, ...]]:
    """The whole kernel, and the registers that its copies take."""
    pieces = copies(problem, config, stages, target)
    asynchronous = config.feed == "cp_async"

    def copy_stage(stage: Index) -> list[Statement]:
        """The next tiles along K to a stage, where there are any left."""
        moved = [
            s
            for x, piece in pieces.items()
            for s in relocated(
                piece.program.body,
                buffers=stages.at(x, piece.program, stage) | moved_to(piece.program, getattr(problem, x)),
            )
        ]
        guarded = If(
            Compare(TO_COPY, "!=", 0),
            (*moved, Set(DEPTH_TILE, DEPTH_TILE + 1), Set(TO_COPY, TO_COPY - 1)),
        )
        return [guarded, *([Instr(CP_ASYNC_COMMIT, ())] if asynchronous else [])]

    def arrived(pending: int) -> list[Statement]:
        wait = [Instr(CP_ASYNC_WAIT, (pending,))] if asynchronous else []
        return [*wait, Instr(BAR_SYNC, ())]

    ahead = config.stages - 1
    begin: list[Statement] = [
        *place_tile(config, problem.batched),
        Set(DEPTH_TILE, PART * K_TILES.variable if config.splits > 1 else 0),
        Set(TO_COPY, K_TILES.variable),
    ]
    for s in range(ahead):
        begin += copy_stage(s)
    begin += [*arrived(ahead - 1), *loads_of(stages, 0, 0, 0)] if ahead else []
    turn = stage_turn(stages, STAGE, NEXT_STAGE, arrived(config.stages - 2), None)
    loop = While(
        Compare(LEFT, "!=", 0),
        (
            Set(NEXT_STAGE, STAGE + 1),
            If(Compare(NEXT_STAGE, "==", config.stages), (Set(NEXT_STAGE, 0),)),
            *copy_stage(FREE),
            *turn,
            Set(FREE, STAGE),
            Set(STAGE, NEXT_STAGE),
            Set(LEFT, LEFT - 1),
        ),
    )
    cleared = [Instr(ZERO[stages.sums.kind], ((Slot(stages.sums, i),),)) for i in range(stages.sums.count)]  # type: ignore[index]
    statements: list[Statement] = [
        *first_tile(),
        While(
            MORE,
            (
                *begin,
                *cleared,
                Set(LEFT, K_TILES.variable),
                Set(STAGE, 0),
                Set(FREE, config.stages - 1),
                loop,
                *store.statements,
                *next_tile(),
                *arrived(0),
            ),
            hoist=False,
        ),
        *store.end,
    ]
    scratch = [r for piece in pieces.values() for r in piece.program.registers]
    return statements, tuple(dict.fromkeys(scratch))
