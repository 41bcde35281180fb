"""What a launch moves and computes, counted from extents and tiles."""

from __future__ import annotations

from dataclasses import dataclass

from ...dtypes import dtype
from .config import Config
from .numbers import Extents, k_tiles, parts_of, tiles_of
from .problem import Problem


@dataclass(frozen=True)
class Traffic:
    """Of one launch.

    Attributes:
        moved: tensor -> bytes that all CTAs read or write of it, whether a cache gives them or memory.
        least: bytes of all tensors, each once.
        operations: multiplications and additions of the product that is asked for.
        useful: the part of the operations carried out that those are; the others are beyond the matrices' rims.
    """

    moved: dict[str, int]
    least: int
    operations: int
    useful: float

    @property
    def total(self) -> int:
        """Bytes of all tensors."""
        return sum(self.moved.values())


def traffic(problem: Problem, config: Config, extents: Extents) -> Traffic:
    """Of a problem that is cut in a way: each tile reads its rows of A and its columns of B.

    Post-condition: what is moved is no less than `least`; with one tile it is as much.
    """
    m, n, k, batches = extents.M, extents.N, extents.K, extents.batches
    rows, columns = tiles_of(config, extents)
    parts = parts_of(config, extents)
    once = {"A": m * k * problem.A.bytes, "B": k * n * problem.B.bytes, "D": m * n * problem.D.bytes}
    often = {"A": columns, "B": rows}
    if problem.C is not None:
        once["C"] = m * n * problem.C.bytes
    if problem.bias:
        along, across = (n, rows) if problem.bias == "row" else (m, columns)
        once["bias"], often["bias"] = along * problem.D.bytes, across
    shared = {name: 1 if name == "bias" else batches for name in once}
    moved = {name: size * often.get(name, 1) * batches for name, size in once.items()}
    if config.splits > 1:  # the sums of each part are stored, and read again to be added up
        moved["parts"] = 2 * parts * m * n * batches * dtype(problem.accumulator).bits // 8
    for x in config.packed:  # read once, and written
        moved[f"packed {x}"] = 2 * once[x] * batches
    least = sum(size * shared[name] for name, size in once.items())
    tile_m, tile_n, tile_k = config.tile
    done = rows * tile_m * columns * tile_n * k_tiles(config, extents) * parts * tile_k
    return Traffic(moved, least, 2 * m * n * k * batches, m * n * k / done if done else 1.0)


__all__ = ["Traffic", "traffic"]
