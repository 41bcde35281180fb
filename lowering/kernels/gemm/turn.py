"""The inner loop: the products of one step with the loads of the next woven between them.

With two sets of fragments a step's are loaded while the products of the step before run.  With one set each fragment is
loaded anew right behind its last use, which leaves registers for a larger tile.  The last step of a stage loads the
first of the next stage, behind a wait for it, and then gives its own stage back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilelayout.expr import Index

from ...isa.mbarrier import mbarrier_arrive_behind
from ...isa.record import Kind
from ...program import Address, Instr, Slot, Statement
from ...target import Target
from .stages import Stages

SPARE = 8
"""Products that come after the last load of a step, so that it has arrived when it is used."""
GROUP = 4
"""Columns of products that go together where each fragment is loaded right behind its last use."""

Release = Callable[[tuple[Slot, ...]], Sequence[Statement]]


def stage_turn(
    stages: Stages,
    stage: Index,
    following: Index,
    wait: Sequence[Statement],
    release: Release | None = None,
) -> list[Statement]:
    """All steps of one stage; afterwards the first fragments of the following stage are loaded.

    Args:
        stages: the tiles and instructions.
        stage, following: numbers of this stage and the next.
        wait: what must be over before the next stage may be read.
        release: what gives this stage back, given registers that hold results of all that was read from it; None for
            nothing.
    """
    out: list[Statement] = []
    sets = len(stages.fragments["A"])
    for step in range(stages.steps):
        using, into, last = step % sets, (step + 1) % sets, step + 1 == stages.steps
        loads = loads_of(stages, 0, into, following) if last else loads_of(stages, step + 1, into, stage)
        order = serpentine(stages) if sets == 2 else grouped(stages)
        products: list[list[Statement]] = [[stages.product(r, c, using)] for r, c in order]
        if last and release is not None:
            at, tied = behind(stages, order, using)
            products[at] += release(tied)
        before = list(wait) if last else []
        if sets == 2:
            out += [*before, *woven([s for p in products for s in p], loads)]
        else:
            out += replaced_in_place(stages, order, products, loads, before)
    return out


def serpentine(stages: Stages) -> list[tuple[int, int]]:
    """(row, column) of the products of a step, in an order in which neighbors share a fragment."""
    columns = range(stages.columns)
    return [(r, c) for r in range(stages.rows) for c in (columns if r % 2 == 0 else reversed(columns))]


def grouped(stages: Stages) -> list[tuple[int, int]]:
    """The same in groups of columns, so that fragments of B are free early."""
    out: list[tuple[int, int]] = []
    for first in range(0, stages.columns, GROUP):
        columns = range(first, min(first + GROUP, stages.columns))
        out += [(r, c) for r in range(stages.rows) for c in (columns if r % 2 == 0 else reversed(columns))]
    return out


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


def replaced_in_place(
    stages: Stages,
    order: Sequence[tuple[int, int]],
    products: Sequence[Sequence[Statement]],
    loads: Sequence[Instr],
    before: Sequence[Statement],
) -> list[Statement]:
    """Each load behind the last product that reads what it replaces; `before` comes before the first load."""
    last_use: dict[Slot, int] = {}
    for i, (r, c) in enumerate(order):
        for argument in stages.product(r, c, 0).arguments[1:3]:
            last_use.update(dict.fromkeys(argument, i))  # type: ignore[arg-type]
    free: dict[int, list[Instr]] = {}
    for load in loads:
        written = [s for a in load.arguments if not isinstance(a, Address) for s in a]  # type: ignore[union-attr]
        free.setdefault(max(last_use[s] for s in written), []).append(load)
    first = max(0, min(free, default=0) - GROUP)
    out: list[Statement] = []
    for i, product in enumerate(products):
        out += [*(before if i == first else ()), *product, *free.get(i, ())]
    return out


def behind(stages: Stages, order: Sequence[tuple[int, int]], using: int) -> tuple[int, tuple[Slot, ...]]:
    """After which product of the last step all of the stage has arrived in registers, and results that prove it.

    A product can't have been carried out before the registers that it reads had arrived, nor one of them before all
    that the same load brings.
    """
    owner: dict[Slot, tuple[str, int]] = {}
    for matrix in "AB":
        for number, load in enumerate(stages.load(matrix, stages.steps - 1, using, 0)):
            for argument in load.arguments:
                if not isinstance(argument, Address):
                    owner.update(dict.fromkeys(argument, (matrix, number)))  # type: ignore[arg-type]
    missing = set(owner.values())
    tied: list[Slot] = []
    at = 0
    for i, (r, c) in enumerate(order):
        product = stages.product(r, c, using)
        reads = {owner[s] for argument in product.arguments[1:3] for s in argument}  # type: ignore[union-attr]
        if reads & missing:
            missing -= reads
            tied.append(product.arguments[0][0])  # type: ignore[index]
            at = i
    return at, tuple(tied)


def arrive_behind(barrier: Address, zero: Index, target: Target) -> Release:
    """A release by an arrival at a barrier that waits for the registers."""

    def release(tied: tuple[Slot, ...]) -> list[Statement]:
        kind: Kind = tied[0].registers.kind  # type: ignore[assignment]
        record = mbarrier_arrive_behind(len(tied), target.sm >= 90, kind)
        return [Instr(record, (barrier, zero, *[(s,) for s in tied]))]

    return release
