"""Feeding by the copy engine: one thread asks for boxes, and the engine counts their bytes at the full barrier."""

from __future__ import annotations

from tilelayout.expr import Index

from ...api import Lowered, lower
from ...compose import relocated
from ...control import All, Compare, If
from ...isa.bulk import PREFETCH_MAP
from ...isa.mbarrier import MBARRIER_ARRIVE, MBARRIER_EXPECT
from ...ops import copy
from ...program import Address, Instr, Statement
from ...target import Target
from ...variants.copy_bulk_tensor import bulk_bytes
from .beside import Rest
from .config import Config
from .globals import window
from .problem import Problem
from .roles import LANE, STAGE, WARP, barriers, feed
from .roles import body as two_roles
from .schedule import HERE
from .stages import Stages
from .store import Store, tensor_maps


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


def body(
    problem: Problem,
    config: Config,
    stages: Stages,
    zero: Index,
    store: Store,
    target: Target,
    rest: Rest | None = None,
) -> list[Statement]:
    """The whole kernel; `rest` is what the feeding warpgroup's other warps copy."""
    pieces = [p.program for p in copies(problem, config, stages, target)]
    moved = [
        s
        for x, p in zip("AB", pieces, strict=True)
        for s in relocated(p.body, buffers=stages.at(x, p, STAGE))
    ]
    total = sum(map(bulk_bytes, pieces))

    def announce(bar: Address) -> list[Statement]:
        return [Instr(MBARRIER_EXPECT, (bar, total))]

    def nothing(bar: Address) -> list[Statement]:
        return [Instr(MBARRIER_ARRIVE, (bar,))]

    needs = rest.needs if rest is not None else ()
    feeding = feed(problem, config, target, announce, moved, lambda _: [], nothing, needs)
    prefetched = [Instr(PREFETCH_MAP, (m,)) for m in tensor_maps(feeding)]
    asks, first = Compare(WARP, "==", config.multipliers), Compare(LANE, "==", 0)
    if rest is None:
        warpgroup = If(All((asks, first)), tuple(feeding))
    else:
        warpgroup = If(asks, (If(first, tuple(feeding)),), rest.copying)
    return two_roles(problem, config, stages, zero, store, target, [warpgroup], 1, prefetched)
