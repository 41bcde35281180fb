"""The inner loop: the products of one step with the loads of the next woven between them.

The fragments of a step are loaded while the products of the step before run.  The last step of a stage loads the first
of the next stage, behind a wait for it, and then gives its own stage back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilelayout.expr import Index

from ...isa.mbarrier import mbarrier_arrive_behind
from ...isa.record import Kind
from ...program import Address, Instr, Slot, Statement
from ...target import Target
from .stages import Stages

LEAD = 0
"""Products that come first in the last step, while the wait for the next stage may already be over."""
SPARE = 8
"""Products that come after the last load of a step, so that it has arrived when it is used."""


def serpentine(stages: Stages) -> list[tuple[int, int]]:
    """(row, column) of the products of a step, in an order in which neighbors share a fragment."""
    columns = range(stages.columns)
    return [(r, c) for r in range(stages.rows) for c in (columns if r % 2 == 0 else reversed(columns))]


def stage_turn(
    stages: Stages,
    stage: Index,
    following: Index,
    wait: Sequence[Statement],
    release: Callable[[tuple[Slot, ...]], Sequence[Statement]] | None = None,
    beside: Sequence[Statement] = (),
    begin: int = 0,
) -> list[Statement]:
    """All steps of one stage; afterwards the first fragments of the following stage are loaded.

    Args:
        stages: the tiles and instructions.
        stage, following: numbers of this stage and the next.
        wait: what must be over before the next stage may be read.
        release: what gives this stage back, given registers that hold results of all that was read from it; None for
            nothing.
        beside: statements that are spread over the steps from `begin` on, but for the last.
        begin: the first of those steps.
    """
    out: list[Statement] = []
    shares = _shares(list(beside), max(1, stages.steps - 1 - begin))
    for step in range(stages.steps):
        using, into, last = step % 2, 1 - step % 2, step + 1 == stages.steps
        loads = loads_of(stages, 0, into, following) if last else loads_of(stages, step + 1, into, stage)
        order = serpentine(stages)
        products: list[Statement] = [stages.product(r, c, using) for r, c in order]
        lead: list[Statement] = []
        if last:
            if release is not None:
                at, tied = behind(stages, order, using)
                products[at + 1 : at + 1] = list(release(tied))
            first = min(LEAD, len(products) // 2)
            lead, products = [*products[:first], *wait], products[first:]
        if shares and step >= begin and not last:
            products = spread(products, shares.pop(0))
        out += [*lead, *woven(products, loads)]
    return out


def _shares(items: list[Statement], count: int) -> list[list[Statement]]:
    """In order, in so many parts of nearly one size."""
    return [items[len(items) * i // count : len(items) * (i + 1) // count] for i in range(count)]


def spread(among: Sequence[Statement], items: Sequence[Statement]) -> list[Statement]:
    """The items evenly among others."""
    out: list[Statement] = []
    done = 0
    for i, s in enumerate(among):
        out.append(s)
        upto = len(items) * (i + 1) // len(among)
        out += items[done:upto]
        done = upto
    return out + list(items[done:])


def loads_of(stages: Stages, step: int, into: int, stage: Index) -> list[Instr]:
    """The loads of a step's fragments: of A's first rows, then of B, then of the rest of A."""
    a, b = (stages.load(x, step, into, stage) for x in "AB")
    return [*a[:1], *b, *a[1:]]


def woven(products: Sequence[Statement], loads: Sequence[Statement]) -> list[Statement]:
    """The loads spread over the products, all before the last few."""
    if not loads:
        return list(products)
    every = max(1, (len(products) - SPARE) // len(loads))
    out: list[Statement] = []
    rest = list(loads)
    for i, product in enumerate(products):
        if i % every == 0 and rest:
            out.append(rest.pop(0))
        out.append(product)
    return out + rest


def behind(stages: Stages, order: Sequence[tuple[int, int]], using: int) -> tuple[int, tuple[Slot, ...]]:
    """After which product of the last step all of the stage has arrived in registers, and results that prove it.

    A product can't have been carried out before the registers that it reads had arrived, nor one of them before all
    that the same load brings.
    """
    owner: dict[tuple[str, int], int] = {}
    for matrix in "AB":
        for number, load in enumerate(stages.load(matrix, stages.steps - 1, using, 0)):
            for argument in load.arguments:
                if not isinstance(argument, Address):
                    owner.update({(matrix, s.index): number for s in argument})  # type: ignore[misc, union-attr]
    missing = {(matrix, number) for (matrix, _), number in owner.items()}
    tied: list[Slot] = []
    at = 0
    for i, (r, c) in reversed(list(enumerate(order))):
        product = stages.product(r, c, using)
        reads = {
            (matrix, owner[matrix, s.index])
            for argument, matrix in zip(product.arguments[1:3], "AB", strict=True)
            for s in argument  # type: ignore[union-attr]
        }
        if reads & missing:
            missing -= reads
            tied.append(product.arguments[0][0])  # type: ignore[index]
            at = max(at, i)
        if not missing:
            break
    return at, tuple(tied)


def arrive_behind(
    barrier: Address, zero: Index, target: Target
) -> Callable[[tuple[Slot, ...]], list[Statement]]:
    """A release by an arrival at a barrier that waits for the registers."""

    def release(tied: tuple[Slot, ...]) -> list[Statement]:
        kind: Kind = tied[0].registers.kind  # type: ignore[assignment]
        record = mbarrier_arrive_behind(len(tied), target.sm >= 90, kind)
        return [Instr(record, (barrier, zero, *[(s,) for s in tied]))]

    return release
