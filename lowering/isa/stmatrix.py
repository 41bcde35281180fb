"""``stmatrix``: the forms that exist.

16-bit elements with and without ``.trans`` since sm_90.  8-bit elements only as 16 x 8 with ``.trans``, on the "a"
and "f" targets of sm_100 on: the four elements that a lane has of a 16 x 8 accumulator, narrowed into one register.
"""

from __future__ import annotations

from .matrix_move import BYTE_TARGETS, MatrixMove

_SECTION = "Warp-level matrix store instruction: stmatrix"

STMATRIX = (
    *[
        MatrixMove("stmatrix", "m8n8", 8, count, 16, 16, transposed, 90, (7, 8), (), _SECTION)
        for transposed in (False, True)
        for count in (1, 2, 4)
    ],
    *[
        MatrixMove("stmatrix", "m16n8", 8, count, 8, 8, True, 100, (8, 6), BYTE_TARGETS, _SECTION)
        for count in (1, 2, 4)
    ],
)
