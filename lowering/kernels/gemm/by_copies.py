"""The kernel whose threads feed it by asynchronous copies, with barriers that nobody needs to stand at together.

Copies run `stages - 1` stages ahead of the products, on into the next tiles.  As in the kernel that the copy engine
feeds, every stage has two barriers: *full* completes when all threads' copies have landed, *empty* when all warps have
read it.  A stage that was emptied in one turn is filled in the second half of the next, so that warps may be half a
turn apart.
"""

from __future__ import annotations

from tilelayout.expr import Index, Var

from ...control import All, Compare, If, Set, While
from ...isa import BAR_SYNC, ZERO
from ...isa.mbarrier import CP_ASYNC_ARRIVE, MBARRIER_INIT, mbarrier_wait
from ...program import Address, Instr, Slot, Statement
from ...target import Target
from .by_tma import LANE, WARP, barriers
from .config import Config
from .problem import Problem
from .schedule import HERE, K_TILES, LIMIT, Place
from .shares import Shares
from .stages import Stages
from .store import Store
from .turn import arrive_behind, loads_of, stage_turn

AHEAD = Place("copy_")
"""The tile that is copied."""
STAGE, PARITY = Var("stage", 0, 63), Var("parity", 0, 1)
NEXT_STAGE, NEXT_PARITY = Var("next_stage", 0, 63), Var("next_parity", 0, 1)
FREE, FREE_PARITY = Var("free_stage", 0, 63), Var("free_parity", 0, 1)
"""The stage that is filled next, and what tells whether it has been emptied."""
LEFT, TO_COPY = Var("k_left", 0, LIMIT), Var("k_to_copy", 0, LIMIT)

_COPIED = (Set(AHEAD.depth, AHEAD.depth + 1), Set(TO_COPY, TO_COPY - 1))


def body(
    problem: Problem, config: Config, stages: Stages, zero: Index, store: Store, target: Target
) -> list[Statement]:
    """The whole kernel."""
    copies = Shares(problem, config, stages, AHEAD, target)
    full, empty = barriers(config.stages)
    wait = mbarrier_wait(target)
    init: list[Statement] = []
    for i in range(config.stages):
        init.append(Instr(MBARRIER_INIT, (Address(full, (i,)), 32 * config.multipliers)))
        init.append(Instr(MBARRIER_INIT, (Address(empty, (i,)), config.multipliers)))
    cleared = [Instr(ZERO[stages.sums.kind], ((Slot(stages.sums, i),),)) for i in range(stages.sums.count)]  # type: ignore[index]
    begin: list[Statement] = [*HERE.first(), Set(AHEAD.tile, HERE.tile), *_find(config, problem.batched)]
    for s in range(config.stages - 1):
        begin += [
            *_on(config, problem.batched),
            If(Compare(TO_COPY, "!=", 0), (*copies.to(s).both, *_COPIED)),
            Instr(CP_ASYNC_ARRIVE, (Address(full, (s,)),)),
        ]
    return [
        If(All((Compare(WARP, "==", 0), Compare(LANE, "==", 0))), tuple(init)),
        Instr(BAR_SYNC, ()),
        *begin,
        *[Set(v, 0) for v in (STAGE, PARITY)],
        Set(FREE, config.stages - 1),
        Set(FREE_PARITY, 1),
        Instr(wait, (Address(full, (0,)), 0)),
        *loads_of(stages, 0, 0, 0),
        While(
            HERE.more,
            (
                *cleared,
                Set(LEFT, K_TILES.variable),
                _loop(problem, config, stages, copies, zero, target),
                *HERE.find(config, problem.batched),
                *store.statements,
                *HERE.next(),
            ),
            hoist=False,
        ),
        *store.end,
    ]


def _find(config: Config, batched: bool) -> list[Statement]:
    """Where the tile to copy is, and how much of it there is: nothing beyond the last."""
    found = (*AHEAD.find(config, batched), AHEAD.first_depth(config), Set(TO_COPY, K_TILES.variable))
    return [Set(TO_COPY, 0), If(AHEAD.more, found)]


def _on(config: Config, batched: bool) -> list[Statement]:
    """On to the next tile where this one is copied."""
    return [If(Compare(TO_COPY, "==", 0), (*AHEAD.next(), *_find(config, batched)))]


def _loop(
    problem: Problem, config: Config, stages: Stages, copies: Shares, zero: Index, target: Target
) -> While:
    """Stage after stage: the products of this one, and the copies to the one that was emptied last."""
    full, empty = barriers(config.stages)
    wait = mbarrier_wait(target)
    c = copies.to(FREE)
    half = (stages.steps - 1) // 2
    filled = Instr(CP_ASYNC_ARRIVE, (Address(full, (FREE,)),))
    emptied = Instr(wait, (Address(empty, (FREE,)), FREE_PARITY))
    arrived = [Instr(wait, (Address(full, (NEXT_STAGE,)), NEXT_PARITY))]
    release = arrive_behind(Address(empty, (STAGE,)), zero, target)

    def turn(beside: list[Statement]) -> list[Statement]:
        return stage_turn(stages, STAGE, NEXT_STAGE, [filled, *arrived], release, beside, half)

    woven = turn([emptied, *c.whole])
    rim = If(Compare(TO_COPY, "!=", 0), (*c.rim, *_COPIED)) if c.inside.comparisons else None
    plain = turn([emptied, *([rim] if rim else [])])
    inside = All((Compare(TO_COPY, "!=", 0), *c.inside.comparisons))
    return While(
        Compare(LEFT, "!=", 0),
        (
            Set(NEXT_STAGE, STAGE + 1),
            Set(NEXT_PARITY, PARITY),
            If(
                Compare(NEXT_STAGE, "==", config.stages),
                (Set(NEXT_STAGE, 0), Set(NEXT_PARITY, 1 - PARITY)),
            ),
            *_on(config, problem.batched),
            *c.before,
            If(inside, (*woven, *_COPIED), tuple(plain)),
            Set(FREE, FREE + 1),
            If(Compare(FREE, "==", config.stages), (Set(FREE, 0), Set(FREE_PARITY, 1 - FREE_PARITY))),
            Set(STAGE, NEXT_STAGE),
            Set(PARITY, NEXT_PARITY),
            Set(LEFT, LEFT - 1),
        ),
        hoist=config.fragments == 2,
    )
