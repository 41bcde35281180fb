"""Fragment layouts: the tile layouts that an instruction's operands ask for.

Derived from the instruction's shape and proved, element by element, against the operand maps of `isa`.  Tilings and
transposed orientations come from the layout algebra.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from tilelayout import LayoutError, S, TileLayout, laneid
from tilelayout.parts import Iter, as_shape

from .isa.mma import MmaInstruction
from .isa.operand_map import operand_map

Role = Literal["A", "B", "C", "D"]

D_FRAG = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
"""C and D of m16n8, as (M, N) = (16, 8): M = g + 8 rM, N = 2t + rN for lane = 4g + t; slot 2 rM + rN."""

A_FRAG_K8 = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
"""A of m16n8k8 with 16-bit elements, as (M, K) = (16, 8); slot 2 rM + p."""

B_FRAG_K8 = TileLayout(S[(4, 2, 8) : (1 @ laneid, 1, 4 @ laneid)])
"""B of m16n8k8 with 16-bit elements, as (K, N) = (8, 8); slot p."""

A_FRAG = A_FRAG_K8.tile_to((16, 16), (16, 8))
"""A of m16n8k16, as (M, K) = (16, 16); slot 4 kHi + 2 rM + p."""

B_FRAG = B_FRAG_K8.tile_to((16, 8), (8, 8))
"""B of m16n8k16, as (K, N) = (16, 8); slot 2 kHi + p."""


def operand_shape(instruction: MmaInstruction, role: Role) -> tuple[int, int]:
    """The logical shape of an operand: A (M, K), B (K, N), C and D (M, N).  LayoutError for another role."""
    if role not in ("A", "B", "C", "D"):
        raise LayoutError("fragment", f"role must be A, B, C or D, got {role!r}")
    shapes = {"A": (instruction.m, instruction.k), "B": (instruction.k, instruction.n)}
    return shapes.get(role, (instruction.m, instruction.n))


@cache
def layout(instruction: MmaInstruction, role: Role) -> TileLayout:
    """The layout of one operand of one instruction, in the orientation of `operand_shape`.

    Post-condition, proved here: element (row, column) is in the lane and slot that the PTX operand map says, for every
    element.
    """
    rM, kHi, p = instruction.row_blocks, instruction.k_blocks, instruction.k_pack
    if role == "A":
        found = TileLayout(S[(rM, 8, kHi, 4, p) : (p, 4 @ laneid, rM * p, 1 @ laneid, 1)])
    elif role == "B":
        found = TileLayout(S[(kHi, 4, p, 8) : (p, 1 @ laneid, 1, 4 @ laneid)])
    else:
        rN = instruction.column_registers
        found = TileLayout(S[(rM, 8, 4, rN) : (rN, 4 @ laneid, 1 @ laneid, 1)])
    _prove(found, instruction, role)
    return found.canonicalize()


def _prove(found: TileLayout, instruction: MmaInstruction, role: Role) -> None:
    import numpy as np

    shape = operand_shape(instruction, role)
    transposed = role == "B"  # PTX holds B as (N, K)
    rows, columns = (shape[1], shape[0]) if transposed else shape
    row, column = operand_map(
        rows, columns, instruction.k_pack if role in "AB" else instruction.column_registers
    )
    table = found.table(shape)
    at = (column, row) if transposed else (row, column)
    lanes, slots = np.indices(row.shape)
    if not ((table[laneid][at] == lanes).all() and (table["m"][at] == slots).all()):  # type: ignore[call-overload]
        raise ValueError(f"{found} is not the PTX operand map of {role} of {instruction.name}")


def _pair(tiles: tuple[int, int], what: str) -> tuple[int, int]:
    checked = as_shape(tiles, what)
    if len(checked) != 2:
        raise LayoutError(what, f"two numbers of tiles are expected, got {tiles!r}")
    return checked  # type: ignore[return-value]


def tiled(instruction: MmaInstruction, role: Role, tiles: tuple[int, int]) -> TileLayout:
    """`tiles` copies of an operand's fragment in one warp, row-major, by `tile_to`: shape ``tiles * operand_shape``."""
    shape = operand_shape(instruction, role)
    tiles = _pair(tiles, "tiled")
    to = (tiles[0] * shape[0], tiles[1] * shape[1])
    return layout(instruction, role).tile_to(to, shape)


def transposed(fragment: TileLayout, shape: tuple[int, int]) -> TileLayout:
    """The same registers read as a tile of the reversed shape: element (i, j) becomes (j, i)."""
    grouped, seps = fragment.group(shape)
    return grouped.permute_by_groups(seps, (1, 0))


def spread(fragment: TileLayout, shape: tuple[int, int], dimension: int, warps: int, axis: str) -> TileLayout:
    """`warps` copies of a fragment along a dimension, each held by warps of its own.

    Copy i is held by the warps that hold the fragment, moved by i times the number of warps it spans on `axis`: spread
    (or replicate) over the fastest warp digit first.  For an operand that all those warps need whole, use `replicated`.
    """
    if dimension not in (0, 1):
        raise LayoutError("spread", f"dimension must be 0 or 1, got {dimension!r}")
    counts = (warps, 1) if dimension == 0 else (1, warps)
    outer = TileLayout.from_iters([Iter(n, 1 if n == warps else 0, axis) for n in counts])
    return fragment.tile(outer, counts, shape)


def replicated(fragment: TileLayout, warps: int, axis: str) -> TileLayout:
    """The fragment held by `warps` times as many warps on `axis`, each time whole."""
    copies = Iter(warps, fragment.span(axis), axis)
    return TileLayout.from_iters(fragment.shard, (*fragment.replica, copies), fragment.offset)


__all__ = [
    "A_FRAG", "A_FRAG_K8", "B_FRAG", "B_FRAG_K8", "D_FRAG", "layout", "operand_shape", "replicated", "spread", "tiled",
    "transposed",
]  # fmt: skip
