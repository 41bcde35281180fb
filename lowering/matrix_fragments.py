"""Tile layouts of what `fragments` does not cover: matrix moves, ``wgmma``, and the operands of ``mma.sp``.

Each is derived from the record's numbers and proved, element by element, against the maps of `isa`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from tilelayout import LayoutError, S, TileLayout, laneid, wid_in_wg

from .isa.matrix_move import MatrixMove
from .isa.mma.record import Role
from .isa.sparse.metadata import ROWS
from .isa.sparse.record import SparseMma
from .isa.wgmma import WARPS, M, Wgmma

MOVMATRIX_SOURCE = TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)])
"""Where ``movmatrix`` finds element (i, j) of an 8 x 8 matrix, in its operand a."""

MOVMATRIX_RESULT = TileLayout(S[(4, 2, 8) : (1 @ laneid, 1, 4 @ laneid)])
"""Where it puts that element, in d: the place that element (j, i) had in a."""


@cache
def move_layout(move: MatrixMove) -> TileLayout:
    """The layout of the matrices as they lie in shared memory: (matrix, line, element of the line) -> (laneid, slot).

    >>> from lowering.isa.ldmatrix import LDMATRIX
    >>> print(move_layout(LDMATRIX[2]))  # ldmatrix.m8n8.x4.b16
    S[(4, 32, 2) : (2, 1 @ laneid, 1)]
    """
    e, v, count = move.per_register, move.lines // 4, move.count
    if move.transposed:
        high = move.elements // 8
        found = TileLayout(S[(count, 4, v, high, 8) : (move.slots, 1 @ laneid, 1, v, 4 @ laneid)])
    else:
        found = TileLayout(S[(count, 8, 4, e) : (move.slots, 4 @ laneid, 1 @ laneid, 1)])
    return _proved(found, (count, move.lines, move.elements), move.fragment, move.name)


@cache
def address_layout(move: MatrixMove) -> TileLayout:
    """Which lane gives the address of which line: (matrix, line) -> laneid."""
    return TileLayout(S[(move.count, move.lines) : (move.lines @ laneid, 1 @ laneid)])


@cache
def wgmma_layout(record: Wgmma, role: Literal["A", "D"]) -> TileLayout:
    """The layout of D (M, N), or of an A (M, K) from registers, over wid_in_wg, laneid and the lane's slots.

    >>> from lowering.isa.wgmma import WGMMA_FRAGMENTS
    >>> print(wgmma_layout(WGMMA_FRAGMENTS[1], "D"))  # m64n16k16
    S[(4, 2, 8, 2, 4, 2) : (1 @ wid_in_wg, 2, 4 @ laneid, 4, 1 @ laneid, 1)]
    """
    width, e = record.shape(role)[1], record.neighbors(role)
    found = TileLayout(
        S[
            (WARPS, 2, 8, width // (4 * e), 4, e) : (
                1 @ wid_in_wg, e, 4 @ laneid, 2 * e, 1 @ laneid, 1,
            )
        ]
    )  # fmt: skip
    return _proved(found, (M, width), record.fragment(role), f"{role} of {record.name}", wid_in_wg)


@cache
def sparse_layout(record: SparseMma, role: Role | Literal["metadata"]) -> TileLayout:
    """The layout of an operand of ``mma.sp``: A (M, K/2) as stored, B (K, N), C and D (M, N), metadata (M, groups).

    Slots count elements; those of the metadata count codes of 4 bits in the lane's word.

    >>> from lowering.isa.sparse import MMA_SP
    >>> print(sparse_layout(MMA_SP[0], "metadata"))  # m16n8k32.f16
    S[(2, 8, 2, 4) : (4, 4 @ laneid, 1 @ laneid, 1)]
    """
    if role == "metadata":
        return _metadata_layout(record)
    if role not in ("A", "B", "C", "D"):
        raise LayoutError("fragment", f"role must be A, B, C, D or metadata, got {role!r}")
    e = 2 if role in "CD" else record.dense.k_pack
    shape = record.operand_shape(role)
    if role == "B":
        found = TileLayout(S[(shape[0] // (4 * e), 4, e, 8) : (e, 1 @ laneid, 1, 4 @ laneid)])
    else:
        high = shape[1] // (4 * e)
        found = TileLayout(S[(2, 8, high, 4, e) : (e, 4 @ laneid, 2 * e, 1 @ laneid, 1)])
    return _proved(found, shape, record.index(role), f"{role} of {record.name}")


def _metadata_layout(record: SparseMma) -> TileLayout:
    import numpy as np

    sparsity = record.sparsity
    lanes = sparsity.lanes
    first = lanes * record.selector
    if sparsity.rows_of_word == 2:
        found = TileLayout(S[(2, 8, lanes, 4) : (4, 4 @ laneid, 1 @ laneid, 1)] + first @ laneid)
    else:
        found = TileLayout(
            S[(2, 8, lanes // 2, 8) : (1 @ laneid, 4 @ laneid, 2 @ laneid, 1)] + first @ laneid
        )
    shape = (ROWS, sparsity.groups)
    table: dict[Any, Any] = dict(found.table(shape))
    wanted = np.array([[sparsity.place(r, g, record.selector) for g in range(shape[1])] for r in range(ROWS)])
    if not ((table[laneid] == wanted[..., 0]).all() and (table["m"] == wanted[..., 1]).all()):
        raise ValueError(f"{found} is not the metadata of {record.name}")
    return found.canonicalize()


def _proved(
    found: TileLayout, shape: tuple[int, ...], index: tuple[Any, ...], what: str, *warps: Any
) -> TileLayout:
    """`found` in canonical form, if it puts every element where the index arrays ``[(warps,) lanes, slots]`` do."""
    import numpy as np

    table: dict[Any, Any] = dict(found.table(shape))
    held_by: tuple[int, ...] = index[0].shape
    places: tuple[Any, ...] = tuple(np.indices(held_by))
    axes: tuple[Any, ...] = (*warps, laneid, "m")
    for axis, wanted in zip(axes, places, strict=True):
        held: Any = table.get(axis)
        if not np.array_equal((np.zeros(shape, int) if held is None else held)[index], wanted):
            raise ValueError(f"{found} is not the operand map of {what}")
    return found.canonicalize()


__all__ = [
    "MOVMATRIX_RESULT", "MOVMATRIX_SOURCE", "address_layout", "move_layout", "sparse_layout", "wgmma_layout",
]  # fmt: skip
