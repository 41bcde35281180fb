"""The kernel that the copy engine feeds: one thread copies stage after stage, warps multiply, barriers between them.

Every stage has two barriers: *full* completes when the engine has written it, *empty* when all warps have read it.  The
multiplying warps look one stage ahead, also from the last stage of a tile to the first of the next, so the feeder
copies one stage more at its end.
"""

from __future__ import annotations

from tilelayout.expr import Index, Var

from ...api import Lowered, lower
from ...compose import relocated
from ...control import All, Compare, If, Set, While
from ...isa import BAR_SYNC, ZERO
from ...isa.budget import setmaxnreg
from ...isa.bulk import PREFETCH_MAP
from ...isa.mbarrier import (
    MBARRIER_EXPECT,
    MBARRIER_FENCE,
    MBARRIER_INIT,
    MBARRIER_WAIT,
)
from ...ops import copy
from ...program import Address, Buffer, Instr, Slot, Statement
from ...target import Target
from ...variants.copy_bulk_tensor import bulk_bytes
from .config import PRODUCERS, Config
from .globals import window
from .problem import Problem
from .schedule import HERE, K_TILES, LIMIT
from .stages import Stages
from .store import Store, tensor_maps
from .turn import arrive_behind, loads_of, stage_turn

LANE, WARP = Var("lane", 0, 31), Var("warp", 0, 31)
STAGE, PARITY = Var("stage", 0, 63), Var("parity", 0, 1)
NEXT_STAGE, NEXT_PARITY = Var("next_stage", 0, 63), Var("next_parity", 0, 1)
LEFT = Var("k_left", 0, LIMIT)

FEEDER_REGISTERS = 24
"""That each thread of the feeding warpgroup keeps."""
REGISTERS = 65536
"""Of a multiprocessor."""


def barriers(stages: int) -> tuple[Buffer, Buffer]:
    """The full and the empty ones."""
    return tuple([Buffer(n, n, "uint64", (stages,), 64, "shared", 8) for n in ("full", "empty")])  # type: ignore[return-value]


def consumer_registers(config: Config) -> int:
    """That each multiplying thread can have when the feeders have given theirs back."""
    rest = REGISTERS // config.resident - FEEDER_REGISTERS * 32 * PRODUCERS
    return min(240, rest // (32 * config.multipliers) // 8 * 8)


def copies(problem: Problem, config: Config, stages: Stages, target: Target) -> list[Lowered]:
    """The lowered copies of A's and B's tile to stage `STAGE`."""
    row, column, depth = HERE.origin(config)
    full, _ = barriers(config.stages)
    batch = HERE.batch if problem.batched else None
    places = {"A": (row, depth), "B": (depth, column)}
    return [
        lower(
            copy(stages.tiles[x].full, window(getattr(problem, x), places[x], stages.tiles[x].shape, batch)),
            target=target,
            scope="warp",
            dispatch="copy.bulk_tensor",
            config={"barrier": Address(full, (STAGE,))},
        )
        for x in "AB"
    ]


def feed(problem: Problem, config: Config, stages: Stages, target: Target) -> list[Statement]:
    """What the feeding thread does."""
    full, empty = barriers(config.stages)
    pieces = [p.program for p in copies(problem, config, stages, target)]
    moved = [relocated(p.body, buffers=stages.at(x, p, STAGE)) for x, p in zip("AB", pieces, strict=True)]
    copy_stage = [
        Instr(MBARRIER_WAIT, (Address(empty, (STAGE,)), PARITY)),
        Instr(MBARRIER_EXPECT, (Address(full, (STAGE,)), sum(map(bulk_bytes, pieces)))),
        *moved[0],
        *moved[1],
    ]

    advance: list[Statement] = [
        Set(STAGE, STAGE + 1),
        If(Compare(STAGE, "==", config.stages), (Set(STAGE, 0), Set(PARITY, 1 - PARITY))),
    ]
    one_tile: list[Statement] = [
        *HERE.find(config, problem.batched),
        HERE.first_depth(config),
        Set(LEFT, K_TILES.variable),
        While(
            Compare(LEFT, "!=", 0),
            (*copy_stage, *advance, Set(HERE.depth, HERE.depth + 1), Set(LEFT, LEFT - 1)),
        ),
        *HERE.next(),
    ]
    return [
        *[Set(v, 0) for v in (STAGE, HERE.row, HERE.column, *([HERE.batch] if problem.batched else []))],
        Set(PARITY, 1),
        *HERE.first(),
        While(HERE.more, tuple(one_tile), hoist=False),
        Set(HERE.depth, 0),
        *copy_stage,
    ]


def multiply(
    problem: Problem, config: Config, stages: Stages, zero: Index, store: Store, target: Target
) -> list[Statement]:
    """What the multiplying warps do."""
    full, empty = barriers(config.stages)
    turn: list[Statement] = []
    for u in range(config.unroll):
        last = u + 1 == config.unroll
        stage: Index = STAGE + u
        following, parity = (NEXT_STAGE, NEXT_PARITY) if last else (STAGE + u + 1, PARITY)
        turn += stage_turn(
            stages,
            stage,
            following,
            [Instr(MBARRIER_WAIT, (Address(full, (following,)), parity))],
            arrive_behind(Address(empty, (stage,)), zero, target),
        )
    cleared = [Instr(ZERO[stages.sums.kind], ((Slot(stages.sums, i),),)) for i in range(stages.sums.count)]  # type: ignore[index]
    loop = While(
        Compare(LEFT, "!=", 0),
        (
            Set(NEXT_STAGE, STAGE + config.unroll),
            Set(NEXT_PARITY, PARITY),
            If(
                Compare(NEXT_STAGE, "==", config.stages),
                (Set(NEXT_STAGE, 0), Set(NEXT_PARITY, 1 - PARITY)),
            ),
            *turn,
            Set(STAGE, NEXT_STAGE),
            Set(PARITY, NEXT_PARITY),
            Set(LEFT, LEFT - config.unroll),
        ),
        hoist=config.fragments == 2,
    )
    return [
        Set(STAGE, 0),
        Set(PARITY, 0),
        Instr(MBARRIER_WAIT, (Address(full, (0,)), 0)),
        *loads_of(stages, 0, 0, 0),
        *HERE.first(),
        While(
            HERE.more,
            (
                *cleared,
                Set(LEFT, K_TILES.variable),
                loop,
                *HERE.find(config, problem.batched),
                *store.statements,
                *HERE.next(),
            ),
            hoist=False,
        ),
        *store.end,
    ]


def body(
    problem: Problem, config: Config, stages: Stages, zero: Index, store: Store, target: Target
) -> list[Statement]:
    """The whole kernel."""
    full, empty = barriers(config.stages)
    feeding = feed(problem, config, stages, target)
    init: list[Statement] = [Instr(PREFETCH_MAP, (m,)) for m in tensor_maps(feeding)]
    for i in range(config.stages):
        init.append(Instr(MBARRIER_INIT, (Address(full, (i,)), 1)))
        init.append(Instr(MBARRIER_INIT, (Address(empty, (i,)), config.multipliers)))
    fewer, more = setmaxnreg(FEEDER_REGISTERS, False), setmaxnreg(consumer_registers(config), True)
    moves = not fewer.refusal(target)
    return [
        If(All((Compare(WARP, "==", 0), Compare(LANE, "==", 0))), (*init, Instr(MBARRIER_FENCE, ()))),
        Instr(BAR_SYNC, ()),
        If(
            Compare(WARP, ">=", config.multipliers),
            (
                *([Instr(fewer, ())] if moves else []),
                If(
                    All((Compare(WARP, "==", config.multipliers), Compare(LANE, "==", 0))),
                    tuple(feeding),
                ),
            ),
            (
                *([Instr(more, ())] if moves else []),
                *multiply(problem, config, stages, zero, store, target),
            ),
        ),
    ]
