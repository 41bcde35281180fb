"""Which element of a matrix operand a lane's register bits hold: one rule for every warp-level mma operand.

For lane `t` and element `v`, with ``e = max(1, 32 // bits)`` elements per 32-bit register (accumulators: always 2
neighbors), ``r = v // e``, ``s = v % e`` and ``R = rows // 8``:

    row = t // 4 + 8 * (r % R)          column = 4 * e * (r // R) + e * (t % 4) + s

rows = M for A and C/D and N for B; column = K for A and B and N for C/D.  Source: PTX ISA, the figures of "Matrix
Fragments for mma.m16n8k16" and its siblings, which all follow it (sm_70's m8n8k4.f16 apart).
"""

from __future__ import annotations

from functools import cache
from typing import Any

LANES = 32


@cache
def operand_map(rows: int, columns: int, per_register: int) -> tuple[Any, Any]:
    """(row, column) of every element: two integer arrays ``[32 lanes, elements of a lane]``.

    Checked to be a bijection onto ``rows x columns``.
    """
    import numpy as np

    elements = rows * columns // LANES
    lane = np.arange(LANES)[:, None]
    register, within = np.divmod(np.arange(elements), per_register)[0], np.arange(elements) % per_register
    row_blocks = rows // 8
    row = lane // 4 + 8 * (register % row_blocks)
    column = 4 * per_register * (register // row_blocks) + per_register * (lane % 4) + within
    row, column = np.broadcast_arrays(row, column)
    places = np.bincount((row * columns + column).ravel(), minlength=rows * columns)
    if rows * columns % LANES or places.size != rows * columns or (places != 1).any():
        raise ValueError(
            f"no operand of {rows} x {columns} with {per_register} elements a register: not a bijection"
        )
    row.setflags(write=False), column.setflags(write=False)
    return row, column
