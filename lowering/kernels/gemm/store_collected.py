"""The store of a tile through shared memory, by whoever the configuration says sends it on."""

from __future__ import annotations

from ...api import Lowered
from ...fragments import partition
from ...program import Statement
from ...target import Target
from ..epilogue import Finish, epilogue
from . import store_bulk, store_threads
from .config import Config
from .problem import Problem
from .stages import Stages
from .store import Store
from .store_direct import kernels_own, operands
from .store_rows import Rows


def sent(rows: Rows) -> Lowered:
    """The copy of the first block from shared memory to D."""
    return (store_bulk if rows.config.sender == "bulk" else store_threads).sent(rows, 0)


def collected_store(problem: Problem, config: Config, stages: Stages, target: Target) -> Store:
    """Sums of a tile to D of 16- or 32-bit elements, row-major."""
    m, n, _ = config.tile
    layout = partition(stages.record, m, n, stages.record.k, warps=config.warps).D
    c, bias = operands(problem, config)
    rows = Rows(problem, config, stages, target)
    bulk = config.sender == "bulk"
    block = (store_bulk if bulk else store_threads).block

    def blocks(finish: Finish) -> list[Statement]:
        return [*finish.begin(), *[s for row in range(stages.rows) for s in block(rows, finish, row)]]

    tail = epilogue(problem.epilogue, stages.sums, layout, (m, n), blocks, target=target, C=c, bias=bias)
    statements, beside = kernels_own(problem, tail, tail.statements)
    return Store(
        tuple(statements),
        store_bulk.END if bulk else (),
        (rows.buffer, *beside),
        (rows.held, *(() if bulk else store_threads.scratch(rows)), *tail.scratch),
        tail.parameters,
    )
