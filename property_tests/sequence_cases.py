"""Whole kernels of lowered calls that the reference machine and the GPU both run: a gemm through shared memory.

Where a new case goes: here if both should run it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering import BARRIER, LoweredSequence, Tile, copy, gemm, lower, sequence
from lowering.backends.reference import run_tiles
from lowering.compose import Sequence
from lowering.fragments import partition
from lowering.isa import DENSE
from tilelayout import S, TileLayout, laneid, warpid


def row_major(shape: tuple[int, ...], pad: int = 0) -> TileLayout:
    """Rows of `pad` more elements than the tile has."""
    rows, columns = shape
    return TileLayout(S[(rows, columns) : (columns + pad, 1)])


def column_major(shape: tuple[int, ...], pad: int = 0) -> TileLayout:
    """Columns of `pad` more elements than the tile has."""
    rows, columns = shape
    return TileLayout(S[(rows, columns) : (1, rows + pad)])


RECORD = {i.name: i for i in DENSE}


def by_rows(shape: tuple[int, int], warps: int, vector: int) -> TileLayout:
    """Threads along the rows, each a vector, then on from row to row: how global memory is read."""
    turns = shape[0] * shape[1] // (vector * 32 * warps)
    return TileLayout(S[(turns, warps, 32, vector) : (vector, 1 @ warpid, 1 @ laneid, 1)])


def staged_gemm(
    name: str = "m16n8k16.f16",
    sizes: tuple[int, int, int] = (64, 64, 32),
    warps: tuple[int, int] = (2, 2),
    beta: float = 0.0,
    where: str = "sm_90",
    **options: Any,
) -> LoweredSequence:
    """D = A @ B (+ C) of one CTA: A and B through shared memory, D straight to global memory."""
    record, (M, N, K) = RECORD[name], sizes
    parts = partition(record, M, N, K, warps)
    count = warps[0] * warps[1]
    a_stage = options.get("a_stage", row_major((M, K), 8))
    b_stage = options.get("b_stage", row_major((K, N), 8))
    vector = 128 // record.container("A")
    tiles = {
        "A": ((M, K), record.a, parts.A, a_stage),
        "B": ((K, N), record.b, parts.B, b_stage),
    }
    calls: list[Any] = []
    after: list[Any] = []
    operands: dict[str, Tile] = {}
    for role, (shape, kind, layout, stage) in tiles.items():
        memory = Tile(f"g{role}", shape, kind, row_major(shape), "global")
        through = Tile(f"r{role}", shape, kind, by_rows(shape, count, vector))
        staged = Tile(f"s{role}", shape, kind, stage, "shared")
        operands[role] = Tile(role, shape, kind, layout)
        calls += [copy(through, memory), copy(staged, through)]
        after.append(copy(operands[role], staged))
    D = Tile("D", (M, N), record.d, parts.D)
    out = Tile("gD", (M, N), record.d, row_major((M, N)), "global")
    if beta:
        calls.append(copy(D, out))
    after += [gemm(D, operands["A"], operands["B"], D, beta=beta), copy(out, D)]
    where_ = {"target": where, "scope": "cta", "launch": 32 * count}
    barrier = [] if options.get("no_barrier") else [BARRIER]
    return sequence([*[lower(c, **where_) for c in calls], *barrier, *[lower(c, **where_) for c in after]])


def inputs(found: Sequence, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        name: rng.integers(-3, 4, tile.shape).astype(tile.element.numpy)
        for name, tile in found.tiles.items()
        if tile.scope == "global"
    }


def run(found: Sequence, arrays: dict[str, Any]) -> Any:
    return run_tiles(found.program, found.tiles, arrays, found.warp_axis)["gD"]
