"""A problem and a way to cut it, as one program."""

from __future__ import annotations

from dataclasses import replace

from tilelayout import LayoutError

from ...backends.shared_memory import SharedMemory
from ...control import Parameter
from ...program import Program
from ...target import Target
from . import by_copies, by_threads, by_tma, roles
from .beside import Rest
from .config import Config
from .globals import batch_stride, global_buffer, leading
from .problem import Problem
from .reduce import multiplied
from .room import SHARED
from .schedule import BATCHES, COLUMNS, K_TILES, PARTS, PER_BATCH, ROWS, TILES, K, M, N
from .stages import build_stages
from .store import tensor_maps
from .store_collected import collected_store
from .store_direct import direct_store

ZERO = Parameter("zero", "s32", 0, 1)
"""Always 0, which the assembler does not know."""


def build(problem: Problem, config: Config, target: Target, rest: Rest | None = None) -> Program:
    """The kernel's program; of a problem in parts (``splits``) the first of two, see `reduce`.

    Args:
        problem: whose factors lie as the kernel reads them.
        config, target: how it is cut, and for what.
        rest: what the kernel copies beside the product.

    Errors: LayoutError for a way to cut that the target has no room for, or that instructions do not divide.
    """
    problem = multiplied(problem, config)
    if config.feed == "registers":  # one stage is used, the other filled
        config = replace(config, stages=2, unroll=1)
    stages = build_stages(problem, config, target)
    store = (collected_store if config.slots else direct_store)(problem, config, stages, target)
    scratch, barriers = store.scratch, roles.barriers(config.stages)
    if config.feed == "tma":
        statements = by_tma.body(problem, config, stages, ZERO.variable, store, target, rest)
    elif config.feed == "cp_async":
        statements = by_copies.body(problem, config, stages, ZERO.variable, store, target)
    else:
        statements, more = by_threads.body(problem, config, stages, store, target)
        scratch, barriers = (*scratch, *more), ()
    matrices = problem.matrices
    buffers = [global_buffer(m) for m in matrices]
    buffers += [b for b in (*store.buffers, *stages.buffers.values()) if b not in buffers]
    strides = [leading(m) for m in matrices if m.layout is None]
    if problem.batched:
        strides += [batch_stride(m) for m in matrices if m.layout is None]
    scratch += () if rest is None else rest.scratch
    buffers += () if rest is None else rest.buffers
    counts = M, N, K, K_TILES, TILES, PER_BATCH, ROWS, COLUMNS, BATCHES
    parts = (PARTS,) if config.splits > 1 else ()
    program = Program(
        "gemm",
        config.all_warps,
        (),
        (),
        tuple(statements),
        (*buffers, *barriers),
        (stages.sums, *stages.fragments["A"], *stages.fragments["B"], *scratch),
        (),
        (*counts, *parts, ZERO, *strides, *(() if rest is None else rest.parameters), *store.parameters),
        tensor_maps(statements),
        config.resident,
    )
    used, room = SharedMemory.of(program).bytes, SHARED[target.sm] * 1024
    if used > room:
        raise LayoutError(
            "gemm",
            f"{config} takes {used} bytes of shared memory, a CTA has {room} on {target}",
            f"fewer {'slots, fewer ' if config.slots else ''}stages, or a smaller tile",
        )
    return program
