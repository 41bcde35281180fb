"""The kernel of two roles: feeders fill stage after stage, other warps multiply, barriers between them.

Every stage has two barriers: *full* completes when it has been filled, *empty* when all warps have read it.  The
multiplying warps look one stage ahead, also from the last stage of a tile to the first of the next, so the feeders give
them one stage more at the end, with nothing in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilelayout.expr import Index, Var

from ...control import All, Compare, If, Set, While
from ...isa import BAR_SYNC, ZERO
from ...isa.budget import setmaxnreg
from ...isa.mbarrier import MBARRIER_FENCE, MBARRIER_INIT, mbarrier_wait
from ...program import Address, Buffer, Instr, Slot, Statement
from ...target import Target
from .config import MOST, PRODUCERS, Config
from .problem import Problem
from .schedule import HERE, K_TILES, LIMIT
from .stages import Stages
from .store import Store
from .turn import arrive_behind, loads_of, stage_turn

LANE, WARP = Var("lane", 0, 31), Var("warp", 0, 31)
STAGE, PARITY = Var("stage", 0, MOST["stages"]), Var("parity", 0, 1)
NEXT_STAGE, NEXT_PARITY = Var("next_stage", 0, MOST["stages"]), Var("next_parity", 0, 1)
LEFT = Var("k_left", 0, LIMIT)

ASKING, COPYING = 24, 40
"""Registers that each thread of the feeding warpgroup keeps, where it can give others back: where one asks the copy
engine for boxes, and where threads copy."""
EVENLY = 128
"""Registers of sums and fragments that leave a thread enough for the rest where all warps have 168."""
OTHERS = 40
"""Registers beside sums and fragments that addresses and the place of a tile take."""
REGISTERS = 65536
"""Of a multiprocessor."""


def barriers(stages: int) -> tuple[Buffer, Buffer]:
    """The full and the empty ones."""
    full, empty = (Buffer(n, n, "uint64", (stages,), 64, "shared", 8) for n in ("full", "empty"))
    return full, empty


def feeder_registers(config: Config) -> int:
    """That each thread of the feeding warpgroup keeps."""
    return ASKING if config.feed == "tma" and not config.beside else COPYING


def consumer_registers(config: Config) -> int:
    """That each multiplying thread can have when the feeders have given theirs back."""
    evenly = (
        REGISTERS // (config.resident * 32 * config.all_warps) // 8 * 8
    )  # that the CTA has, of each thread
    rest = evenly * 32 * config.all_warps - feeder_registers(config) * 32 * PRODUCERS
    return min(240, rest // (32 * config.multipliers) // 8 * 8)


def held(stages: Stages) -> int:
    """Registers of sums and fragments."""
    return stages.sums.words + sum([r.words for x in "AB" for r in stages.fragments[x]])


def keeps_place(config: Config, stages: Stages) -> bool:
    """Whether there are registers to keep through the loop over K where the tile is."""
    each = REGISTERS // (32 * config.all_warps * config.resident)
    return held(stages) <= min(EVENLY, each - OTHERS)


def feed(
    problem: Problem,
    config: Config,
    target: Target,
    announce: Callable[[Address], Sequence[Statement]],
    copies: Sequence[Statement],
    done: Callable[[Address], Sequence[Statement]],
    nothing: Callable[[Address], Sequence[Statement]],
    needs: Sequence[Statement] = (),
) -> list[Statement]:
    """What a feeder does: wait for an empty stage and fill it, tile after tile, the first of which has been found.

    Args:
        problem, config, target: of the kernel.
        announce: what comes before the copies, given the stage's full barrier.
        copies: of A's and B's tile to stage `STAGE`.
        done: what comes behind them.
        nothing: what fills a stage with nothing, for the warps that look one stage ahead.
        needs: what is waited for before a tile is copied.
    """
    full, empty = barriers(config.stages)
    bar = Address(full, (STAGE,))
    emptied = Instr(mbarrier_wait(target), (Address(empty, (STAGE,)), PARITY))
    fill: list[Statement] = [
        emptied,
        *announce(bar),
        *copies,
        *done(bar),
    ]
    advance: list[Statement] = [
        Set(STAGE, STAGE + 1),
        If(Compare(STAGE, "==", config.stages), (Set(STAGE, 0), Set(PARITY, 1 - PARITY))),
    ]
    one_tile: list[Statement] = [
        *needs,
        HERE.first_depth(config),
        Set(LEFT, K_TILES.variable),
        While(Compare(LEFT, "!=", 0), (*fill, *advance, *HERE.next_depth(config), Set(LEFT, LEFT - 1))),
        *HERE.next(),
        If(HERE.more, tuple(HERE.find(config, problem.batched))),
    ]
    return [
        Set(STAGE, 0),
        Set(PARITY, 1),
        While(HERE.more, tuple(one_tile), hoist=False),
        emptied,
        *nothing(bar),
    ]


def multiply(
    problem: Problem, config: Config, stages: Stages, zero: Index, store: Store, target: Target
) -> list[Statement]:
    """What the multiplying warps do.

    Where the tile is stays in registers through the loop over K where there are some to spare.
    """
    find, few = HERE.find(config, problem.batched), keeps_place(config, stages)
    full, empty = barriers(config.stages)
    wait = mbarrier_wait(target)
    around = (
        config.unroll == config.stages
    )  # a turn is all stages: it begins with the first, and only parities change
    first, after = (0, 0) if around else (STAGE, NEXT_STAGE)
    turn: list[Statement] = []
    for u in range(config.unroll):
        last = u + 1 == config.unroll
        stage: Index = first + u
        following, parity = (after, NEXT_PARITY) if last else (first + u + 1, PARITY)
        turn += stage_turn(
            stages,
            stage,
            following,
            [Instr(wait, (Address(full, (following,)), parity))],
            arrive_behind(Address(empty, (stage,)), zero, target),
        )
    cleared = [Instr(ZERO[stages.sums.kind], ((Slot(stages.sums, i),),)) for i in range(stages.sums.count)]  # type: ignore[index]
    ahead: list[Statement] = [Set(NEXT_PARITY, 1 - PARITY)]
    if not around:
        ahead = [
            Set(NEXT_STAGE, STAGE + config.unroll),
            Set(NEXT_PARITY, PARITY),
            If(
                Compare(NEXT_STAGE, "==", config.stages),
                (Set(NEXT_STAGE, 0), Set(NEXT_PARITY, 1 - PARITY)),
            ),
        ]
    loop = While(
        Compare(LEFT, "!=", 0),
        (
            *ahead,
            *turn,
            *([] if around else [Set(STAGE, NEXT_STAGE)]),
            Set(PARITY, NEXT_PARITY),
            Set(LEFT, LEFT - config.unroll),
        ),
        hoist=config.fragments == 2,
    )
    return [
        Set(STAGE, 0),
        Set(PARITY, 0),
        Instr(wait, (Address(full, (0,)), 0)),
        *loads_of(stages, 0, 0, 0),
        While(
            HERE.more,
            (
                *cleared,
                Set(LEFT, K_TILES.variable),
                loop,
                *([] if few else find),
                *store.statements,
                *HERE.next(),
                *([If(HERE.more, tuple(find))] if few else []),
            ),
            hoist=False,
        ),
        *store.end,
    ]


def body(
    problem: Problem,
    config: Config,
    stages: Stages,
    zero: Index,
    store: Store,
    target: Target,
    feeding: Sequence[Statement],
    arrivals: int,
    before: Sequence[Statement] = (),
) -> list[Statement]:
    """The whole kernel.

    Args:
        problem, config, stages, zero, store, target: of the kernel.
        feeding: what the feeding warps do.
        arrivals: that fill a stage.
        before: what one thread does first.
    """
    full, empty = barriers(config.stages)
    init: list[Statement] = list(before)
    for i in range(config.stages):
        init.append(Instr(MBARRIER_INIT, (Address(full, (i,)), arrivals)))
        init.append(Instr(MBARRIER_INIT, (Address(empty, (i,)), config.multipliers)))
    if config.feed == "tma":
        init.append(Instr(MBARRIER_FENCE, ()))
    fewer = setmaxnreg(feeder_registers(config), False)
    most = consumer_registers(config)
    few = keeps_place(config, stages)
    beginning = [*HERE.first(), *HERE.find(config, problem.batched)]
    moves = not fewer.refusal(target) and held(stages) > EVENLY and most > feeder_registers(config)
    return [
        If(All((Compare(WARP, "==", 0), Compare(LANE, "==", 0))), tuple(init)),
        *(beginning if few else ()),  # divisions, while barriers are made
        Instr(BAR_SYNC, ()),
        If(
            Compare(WARP, ">=", config.multipliers),
            (*([Instr(fewer, ())] if moves else []), *(() if few else beginning), *feeding),
            (
                *([Instr(setmaxnreg(most, True), ())] if moves else []),
                *(() if few else HERE.first()),
                *multiply(problem, config, stages, zero, store, target),
            ),
        ),
    ]
