"""The numbers of a launch: what a kernel's integer parameters are for extents, strides and a way to cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilelayout import LayoutError

from .config import Config
from .globals import BATCH_LIMIT, LEADING_LIMIT
from .operands import SWAPPED
from .problem import Problem
from .schedule import LIMIT, MOST_BATCHES


@dataclass(frozen=True)
class Extents:
    """Of one launch.

    Attributes:
        M, N, K, batches: the product's.
        leading: matrix's name -> elements between neighbors along its other than contiguous dimension.
        batch: matrix's name -> elements from one batch to the next.
        multiprocessors: of the GPU.
    """

    M: int
    N: int
    K: int
    batches: int
    leading: Mapping[str, int]
    batch: Mapping[str, int]
    multiprocessors: int = 132

    @property
    def empty(self) -> bool:
        """Whether the result has no element."""
        return self.M == 0 or self.N == 0 or self.batches == 0


def tiles_of(config: Config, extents: Extents) -> tuple[int, int]:
    """Rows and columns of tiles."""
    return -(-extents.M // config.tile[0]), -(-extents.N // config.tile[1])


def first_tiles(config: Config, extents: Extents) -> tuple[int, int]:
    """Rows and columns of tiles, from the first on, that hold the first tile of every CTA; of one batch."""
    rows, columns = tiles_of(config, extents)
    ctas = grid_size(config, rows * columns, extents.multiprocessors)
    height = min(config.group, rows)
    if ctas <= height * columns:
        return height, -(-ctas // max(1, height))
    return min(rows, -(-ctas // (height * columns)) * height), columns


def k_tiles(config: Config, extents: Extents) -> int:
    """Stages of each tile and each part of K, a multiple of the unrolling."""
    stages = -(-extents.K // config.tile[2])
    part = -(-stages // config.splits)
    return -(-part // config.unroll) * config.unroll


def parts_of(config: Config, extents: Extents) -> int:
    """Parts of K that are carried out: ``splits``, or as many as have a stage, where there are fewer; at least 1."""
    stages = -(-extents.K // config.tile[2])
    return -(-stages // max(1, k_tiles(config, extents))) or 1


def check_limits(found: Extents, transposed: bool = False) -> None:
    """Refuse extents and strides beyond what a kernel's arithmetic holds, in the words of the caller.

    Args:
        found: of the kernel's problem.
        transposed: whether that is the transposed one of the caller's.

    Errors: LayoutError.
    """
    m, n = (found.N, found.M) if transposed else (found.M, found.N)
    rows: list[tuple[str, int, int]] = [(x, size, LIMIT) for x, size in (("M", m), ("N", n), ("K", found.K))]
    rows.append(("batches", found.batches, MOST_BATCHES))
    for name, stride in found.leading.items():
        own = SWAPPED.get(name, name) if transposed else name
        rows.append((f"the leading dimension of {own}", stride, LEADING_LIMIT))
    for name, stride in found.batch.items():
        own = SWAPPED.get(name, name) if transposed else name
        rows.append((f"the stride between batches of {own}", stride, BATCH_LIMIT))
    for name, value, most in rows:
        if value > most:
            raise LayoutError(
                "gemm",
                f"{name} = {value} is beyond {most}, which the kernel's arithmetic holds",
                "divide the problem",
            )


def numbers(problem: Problem, config: Config, extents: Extents) -> dict[str, int]:
    """Integer parameter -> its value.

    Errors: LayoutError for extents or strides beyond what the kernel's arithmetic holds.
    """
    rows, columns = tiles_of(config, extents)
    tiles = rows * columns * extents.batches * parts_of(config, extents)
    out = {
        "M": extents.M,
        "N": extents.N,
        "K": max(1, extents.K),  # a window has no extent 0; without stages nothing of it is read
        "k_tiles": k_tiles(config, extents),
        "tiles": tiles,
        "tiles_per_batch": max(1, rows * columns),
        "row_tiles": max(1, rows),
        "column_tiles": max(1, columns),
        "batches": max(1, extents.batches),
        "k_parts": parts_of(config, extents),
        "zero": 0,
    }
    for name, stride in extents.leading.items():
        out[f"ld{name.lower()}"] = stride
    if problem.batched:
        for name, stride in extents.batch.items():
            out[f"batch_{name.lower()}"] = stride
    for name, value in out.items():
        if value > _most(name):
            raise LayoutError(
                "gemm", f"{name} = {value} is beyond {_most(name)}, which the kernel's arithmetic holds"
            )
    return out


def _most(name: str) -> int:
    """The upper bound of a parameter."""
    if name == "batches":
        return MOST_BATCHES
    return BATCH_LIMIT if name.startswith("batch_") else LEADING_LIMIT if name.startswith("ld") else LIMIT


def grid_size(config: Config, tiles: int, multiprocessors: int) -> int:
    """CTAs of a launch: as many as the multiprocessors hold, each with several tiles, and no more than tiles."""
    return max(1, min(tiles, multiprocessors * config.resident))
