"""The kernel whose own threads feed it: each copies its share of a stage ahead while it multiplies another.

All stages but one are under way.  At the end of a stage all threads meet: the next one has arrived, and the one that
was just read may be overwritten.  A turn of the loop comes in two forms: where all that is copied lies within the
matrices, the copies are woven between the products; else they come first, each asking what is inside.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelayout.expr import Index, Var

from ...api import lower
from ...compose import relocated
from ...control import All, Compare, If, Set, While, comparisons
from ...isa import BAR_SYNC, ZERO
from ...isa.cp_async import CP_ASYNC_COMMIT, CP_ASYNC_WAIT
from ...ops import copy
from ...program import Comment, Instr, Program, Registers, Slot, Statement
from ...target import Target
from .config import Config
from .globals import moved_to, window
from .problem import Problem
from .schedule import (
    BATCH,
    DEPTH_TILE,
    K_TILES,
    LIMIT,
    MORE,
    PART,
    first_tile,
    next_tile,
    origin,
    place_tile,
)
from .stages import Stages
from .store import Store
from .turn import loads_of, stage_turn

STAGE, NEXT_STAGE, FREE = (Var(name, 0, 63) for name in ("stage", "next_stage", "free_stage"))
"""That is read, that is read next, that is written."""
LEFT, TO_COPY = Var("k_left", 0, LIMIT), Var("k_to_copy", 0, LIMIT)

_ADVANCE = (Set(DEPTH_TILE, DEPTH_TILE + 1), Set(TO_COPY, TO_COPY - 1))


@dataclass(frozen=True)
class Copies:
    """What brings A's and B's next tiles to a stage.

    Attributes:
        before: statements that come first, at any rate.
        inside: condition under which no copy reaches beyond the matrices.
        whole: the copies then.
        rim: the copies otherwise.
        after: what completes them once they have arrived in registers.
    """

    before: tuple[Statement, ...]
    inside: All
    whole: tuple[Statement, ...]
    rim: tuple[Statement, ...]
    after: tuple[Statement, ...] = ()


class _Feed:
    """Both matrices' copies, to be put to any stage."""

    def __init__(self, problem: Problem, config: Config, stages: Stages, target: Target) -> None:
        self.problem, self.config, self.stages, self.target = problem, config, stages, target
        if config.feed == "cp_async":
            self.first, self.second = self._lowered("copy.cp_async"), {}
        else:
            self.first, self.second = (self._lowered("copy.predicated", part=p) for p in ("load", "store"))
        programs = [*self.first.values(), *self.second.values()]
        self.scratch = tuple(dict.fromkeys(r for p in programs for r in p.registers))

    def _lowered(self, dispatch: str, **config: str) -> dict[str, Program]:
        row, column, depth = origin(self.config)
        places = {"A": (row, depth), "B": (depth, column)}
        batch = BATCH if self.problem.batched else None
        out: dict[str, Program] = {}
        for x in "AB":
            tile = self.stages.tiles[x]
            there = window(getattr(self.problem, x), places[x], tile.shape, batch)
            where = {
                "target": self.target,
                "scope": "cta",
                "launch": 32 * self.config.multipliers,
                "config": config,
            }
            out[x] = lower(copy(tile.full, there), dispatch=dispatch, **where).program
        return out

    def to(self, stage: Index) -> Copies:
        """The copies to a stage."""
        before: list[Statement] = []
        inside: list[Compare] = []
        whole: list[Statement] = []
        rim: list[Statement] = []
        after: list[Statement] = []
        for x in "AB":
            for s in self._moved(x, self.first[x], stage):
                if isinstance(s, If) and s.orelse:
                    inside += comparisons(s.condition)
                    whole += s.body
                    rim += s.orelse
                elif isinstance(s, Set):
                    before.append(s)
                elif not isinstance(s, Comment):
                    whole.append(s)
                    rim.append(s)
            if x in self.second:
                after += self._moved(x, self.second[x], stage)
        return Copies(tuple(before), All(tuple(inside)), tuple(whole), tuple(rim), tuple(after))

    def _moved(self, x: str, piece: Program, stage: Index) -> list[Statement]:
        buffers = moved_to(piece, getattr(self.problem, x))
        if any(b.space == "shared" for b in piece.buffers):
            buffers = buffers | self.stages.at(x, piece, stage)
        return relocated(piece.body, buffers=buffers)


def body(
    problem: Problem, config: Config, stages: Stages, store: Store, target: Target
) -> tuple[list[Statement], tuple[Registers, ...]]:
    """The whole kernel, and the registers that its copies take."""
    feed = _Feed(problem, config, stages, target)
    later = config.feed == "cp_async"
    commit: list[Statement] = [Instr(CP_ASYNC_COMMIT, ())] if later else []

    def arrived(pending: int) -> list[Statement]:
        wait = [Instr(CP_ASYNC_WAIT, (pending,))] if later else []
        return [*wait, Instr(BAR_SYNC, ())]

    def fill(stage: Index) -> list[Statement]:
        """The next tiles along K to a stage at once, where there are any left."""
        c = feed.to(stage)
        both = If(c.inside, c.whole, c.rim) if c.inside.comparisons else None
        copied = (*c.before, *((both,) if both else c.whole), *c.after)
        return [If(Compare(TO_COPY, "!=", 0), (*copied, *_ADVANCE)), *commit]

    ahead = config.stages - 1
    begin: list[Statement] = [
        *place_tile(config, problem.batched),
        Set(DEPTH_TILE, PART * K_TILES.variable if config.splits > 1 else 0),
        Set(TO_COPY, K_TILES.variable),
    ]
    for s in range(ahead):
        begin += fill(s)
    begin += [*arrived(ahead - 1), *loads_of(stages, 0, 0, 0)]
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
                _loop(config, stages, feed.to(FREE), commit, arrived(ahead - 1)),
                *store.statements,
                *next_tile(),
                *arrived(0),
            ),
            hoist=False,
        ),
        *store.end,
    ]
    return statements, feed.scratch


def _loop(
    config: Config, stages: Stages, c: Copies, commit: list[Statement], arrived: list[Statement]
) -> While:
    """Stage after stage: the next copies, and the products of this stage."""
    if c.after:  # what was loaded is stored when the products before the last step are under way
        wait = [If(Compare(TO_COPY, "!=", 0), (*c.after, *_ADVANCE)), *arrived]
        both: tuple[Statement, ...] = (If(c.inside, c.whole, c.rim),) if c.inside.comparisons else c.whole
        turn = [
            If(Compare(TO_COPY, "!=", 0), (*c.before, *both)),
            *stage_turn(stages, STAGE, NEXT_STAGE, wait),
        ]
    else:
        woven = stage_turn(stages, STAGE, NEXT_STAGE, [*commit, *arrived], beside=c.whole)
        plain = stage_turn(stages, STAGE, NEXT_STAGE, [*commit, *arrived])
        turn = [
            *c.before,
            If(
                All((Compare(TO_COPY, "!=", 0), *c.inside.comparisons)),
                (*woven, *_ADVANCE),
                (If(Compare(TO_COPY, "!=", 0), (*c.rim, *_ADVANCE)), *plain),
            ),
        ]
    return While(
        Compare(LEFT, "!=", 0),
        (
            Set(NEXT_STAGE, STAGE + 1),
            If(Compare(NEXT_STAGE, "==", config.stages), (Set(NEXT_STAGE, 0),)),
            *turn,
            Set(FREE, STAGE),
            Set(STAGE, NEXT_STAGE),
            Set(LEFT, LEFT - 1),
        ),
    )
