"""The kernel whose threads feed it by plain loads and stores: for any alignment, and any architecture.

While one of two stages is multiplied, the threads load the next tiles into registers, and store them to the other stage
before they all meet at its end.
"""

from __future__ import annotations

from tilelayout.expr import Var

from ...control import Compare, If, Set, While
from ...isa import BAR_SYNC, ZERO
from ...program import Instr, Registers, Slot, Statement
from ...target import Target
from .config import Config
from .problem import Problem
from .schedule import HERE, K_TILES, LIMIT
from .shares import Shares
from .stages import Stages
from .store import Store
from .turn import loads_of, stage_turn

STAGE, NEXT_STAGE = Var("stage", 0, 1), Var("next_stage", 0, 1)
LEFT, TO_COPY = Var("k_left", 0, LIMIT), Var("k_to_copy", 0, LIMIT)

_MEET = Instr(BAR_SYNC, ())


def body(
    problem: Problem, config: Config, stages: Stages, store: Store, target: Target
) -> tuple[list[Statement], tuple[Registers, ...]]:
    """The whole kernel, and the registers that its copies take."""
    copies = Shares(problem, config, stages, HERE, target)
    first = copies.to(0)
    cleared = [Instr(ZERO[stages.sums.kind], ((Slot(stages.sums, i),),)) for i in range(stages.sums.count)]  # type: ignore[index]
    c = copies.to(NEXT_STAGE)
    some = Compare(TO_COPY, "!=", 0)
    copied = (*HERE.next_depth(config), Set(TO_COPY, TO_COPY - 1))
    stored = If(some, (*c.after, *copied))
    loop = While(
        Compare(LEFT, "!=", 0),
        (
            Set(NEXT_STAGE, 1 - STAGE),
            If(some, c.both),
            *stage_turn(stages, STAGE, NEXT_STAGE, [stored, _MEET]),
            Set(STAGE, NEXT_STAGE),
            Set(LEFT, LEFT - 1),
        ),
    )
    statements: list[Statement] = [
        *HERE.first(),
        While(
            HERE.more,
            (
                *HERE.find(config, problem.batched),
                HERE.first_depth(config),
                Set(TO_COPY, K_TILES.variable),
                If(some, (*first.both, *first.after, *copied)),
                _MEET,
                *loads_of(stages, 0, 0, 0),
                *cleared,
                Set(LEFT, K_TILES.variable),
                Set(STAGE, 0),
                loop,
                *store.statements,
                *HERE.next(),
                _MEET,
            ),
            hoist=False,
        ),
        *store.end,
    ]
    return statements, copies.scratch
