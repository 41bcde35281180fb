"""Feeding by asynchronous copies: a warpgroup of threads copies, and arrives at the full barrier when they have landed.

The copies' addresses and rims are arithmetic that the multiplying warps are kept free of.  Copies and ``ldmatrix`` pass
through the same queues: feeders of large tiles rest between their copies, so that no fragment waits behind many.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilelayout.expr import Index, Var

from ...compose import relocated
from ...control import If
from ...isa.mbarrier import CP_ASYNC_ARRIVE
from ...isa.pace import NANOSLEEP
from ...isa.protocols import CP_ASYNC
from ...program import Address, Instr, Statement
from ...target import Target
from .config import PRODUCERS, Config
from .problem import Problem
from .roles import STAGE, feed
from .roles import body as two_roles
from .schedule import HERE
from .shares import Shares
from .stages import Stages
from .store import Store

PACED = 128 * 128
"""Elements of the smallest tile whose feeders rest: smaller ones wait for memory, not for instructions."""
TOGETHER, REST_NS = 4, 80
"""Copies of a thread between rests, and how long one is."""


def paced(statements: Sequence[Statement], config: Config) -> list[Statement]:
    """The copies, with rests between them where tiles are large."""
    if config.tile[0] * config.tile[1] < PACED:
        return list(statements)
    out: list[Statement] = []
    copies = 0
    for s in statements:
        if isinstance(s, If):
            s = If(s.condition, tuple(paced(s.body, config)), tuple(paced(s.orelse, config)))
        out.append(s)
        if isinstance(s, Instr) and s.instruction.protocol == CP_ASYNC:
            copies += 1
            if copies % TOGETHER == 0:
                out.append(Instr(NANOSLEEP, (REST_NS,)))
    return out


def body(
    problem: Problem, config: Config, stages: Stages, zero: Index, store: Store, target: Target
) -> list[Statement]:
    """The whole kernel."""
    first = config.multipliers
    feeder = Var("warp", first, first + PRODUCERS - 1) - first
    shares = Shares(problem, config, stages, HERE, target)
    copies = relocated(tuple(shares.to(STAGE).both), values={"warp": feeder})

    def arrive(bar: Address) -> list[Statement]:
        return [Instr(CP_ASYNC_ARRIVE, (bar,))]

    feeding = feed(problem, config, target, lambda _: [], paced(copies, config), arrive, arrive)
    return two_roles(problem, config, stages, zero, store, target, feeding, 32 * PRODUCERS)
