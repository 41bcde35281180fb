"""A problem and a way to cut it, as one program."""

from __future__ import annotations

from ...control import Parameter
from ...program import Program
from ...target import Target
from . import by_tma
from .config import Config
from .globals import batch_stride, boxes, global_buffer, leading
from .problem import Problem
from .schedule import BATCHES, COLUMNS, K_TILES, PER_BATCH, ROWS, TILES, K, M, N
from .stages import build_stages
from .store_bulk import bulk_store

ZERO = Parameter("zero", "s32", 0, 1)
"""Always 0, which the assembler does not know."""


def build(problem: Problem, config: Config, target: Target) -> Program:
    """The kernel's program."""
    stages = build_stages(problem, config, target)
    store = bulk_store(problem, config, stages, target)
    pair = tuple([boxes(m, stages.tiles[m.name], problem.batched) for m in (problem.A, problem.B)])
    statements = by_tma.body(
        config,
        problem.batched,
        stages,
        pair,  # type: ignore[arg-type]
        ZERO.variable,
        list(store.statements),
        list(store.end),
        target,
    )
    full, empty = by_tma.barriers(config.stages)
    matrices = (problem.A, problem.B, problem.D)
    strides = [leading(m) for m in matrices]
    if problem.batched:
        strides += [batch_stride(m) for m in matrices]
    return Program(
        "gemm",
        config.all_warps,
        (),
        (),
        tuple(statements),
        (
            *[global_buffer(m) for m in matrices],
            *stages.buffers.values(),
            store.buffer,
            full,
            empty,
        ),
        (stages.sums, *stages.fragments["A"], *stages.fragments["B"], store.scratch),
        (),
        (M, N, K, K_TILES, TILES, PER_BATCH, ROWS, COLUMNS, BATCHES, ZERO, *strides),
        (*[b.map for b in pair], store.map),
        config.resident,
    )
