"""``ldmatrix``: the forms that exist.

Matrices of 16-bit elements with and without ``.trans`` since sm_75; 8-bit elements only as 16 x 16 with ``.trans``, and
6- and 4-bit elements widened to bytes, on the "a" and "f" targets of sm_100 on.  The value lies in the low bits of its
byte.
"""

from __future__ import annotations

from .matrix_move import BYTE_TARGETS, MatrixMove

_SECTION = "Warp-level matrix load instruction: ldmatrix"


def _bytes(shape: str, lines: int, count: int, source_bits: int, transposed: bool) -> MatrixMove:
    return MatrixMove(
        "ldmatrix", shape, lines, count, 8, source_bits, transposed, 100, (8, 6), BYTE_TARGETS, _SECTION
    )


LDMATRIX = (
    *[
        MatrixMove("ldmatrix", "m8n8", 8, count, 16, 16, transposed, 75, (6, 5), (), _SECTION)
        for transposed in (False, True)
        for count in (1, 2, 4)
    ],
    *[_bytes("m16n16", 16, count, bits, True) for bits in (8, 6, 4) for count in (1, 2)],
    *[_bytes("m8n16", 8, count, bits, False) for bits in (6, 4) for count in (1, 2, 4)],
)
