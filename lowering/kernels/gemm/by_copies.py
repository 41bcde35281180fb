"""Feeding by asynchronous copies: a warpgroup of threads copies, and arrives at the full barrier when they have landed.

The copies' addresses and rims are arithmetic that the multiplying warps are kept free of.
"""

from __future__ import annotations

from tilelayout.expr import Index, Var

from ...compose import relocated
from ...isa.mbarrier import CP_ASYNC_ARRIVE
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

    feeding = feed(problem, config, target, lambda _: [], copies, arrive, arrive)
    return two_roles(problem, config, stages, zero, store, target, feeding, 32 * PRODUCERS)
