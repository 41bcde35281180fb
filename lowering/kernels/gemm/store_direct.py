"""The result from registers to memory, each lane storing what it holds."""

from __future__ import annotations

from collections.abc import Sequence

from tilelayout.expr import Index

from ...compose import relocated
from ...fragments import partition
from ...program import Buffer, Statement
from ...target import Target
from ...window import Window
from ..epilogue import Tail, direct_epilogue
from .config import Config
from .globals import bias_window, global_buffer, window
from .problem import Problem
from .schedule import HERE, stored_times
from .stages import Stages
from .store import Store


def operands(problem: Problem, config: Config) -> tuple[Window | None, Window | None]:
    """C and the bias that go with the tile; None for what there is not."""
    row, column, _ = HERE.origin(config)
    m, n, _ = config.tile
    batch = HERE.batch if problem.batched else None
    c = None if problem.C is None else window(problem.C, (row, column), (m, n), batch)
    along: tuple[Index, int] = (column, n) if problem.bias == "row" else (row, m)
    return c, bias_window(problem, *along)


def kernels_own(
    problem: Problem, tail: Tail, statements: Sequence[Statement]
) -> tuple[list[Statement], list[Buffer]]:
    """The statements on the kernel's own tensors, and the tensors that the matrices are not."""
    own = {m.name: global_buffer(m) for m in problem.matrices}
    moved = {b: (own[b.name], 0) for b in tail.buffers if b.name in own}
    return relocated(tuple(statements), buffers=moved), [b for b in tail.buffers if b.name not in own]  # type: ignore[arg-type]


def direct_store(problem: Problem, config: Config, stages: Stages, target: Target) -> Store:
    """Sums of a tile to D, whatever its type and alignment."""
    row, column, _ = HERE.origin(config)
    m, n, _ = config.tile
    layout = partition(stages.record, m, n, stages.record.k, warps=config.warps).D
    batch = HERE.stored_batch(config, problem.batched)
    there = window(problem.D, (row, column), (m, n), batch, stored_times(config))
    c, bias = operands(problem, config)
    tail = direct_epilogue(problem.epilogue, stages.sums, layout, there, target=target, C=c, bias=bias)
    statements, beside = kernels_own(problem, tail, tail.statements)
    return Store(tuple(statements), (), tuple(beside), tail.scratch, tail.parameters)
