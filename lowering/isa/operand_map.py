"""Which element of a matrix operand a lane's register bits hold.

One rule covers every warp-level mma operand, sm_70's quadpairs apart.  For lane `t` and element `v`, with `e`
elements per register (for accumulators: always 2 neighbors), ``r = v // e``, ``s = v % e`` and ``R = rows // 8``:

    row = t // 4 + 8 * (r % R)          column = 4 * e * (r // R) + e * (t % 4) + s

rows = M for A and C/D and N for B; column = K for A and B and N for C/D.  e is max(1, 32 // bits), but 4 for the
6- and 4-bit types that sit in bytes.  Source: PTX ISA, the figures of "Matrix Fragments for mma.m16n8k16" and its
siblings.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

LANES = 32


@cache
def operand_map(rows: int, columns: int, per_register: int) -> tuple[Any, Any]:
    """(row, column) of every element: two integer arrays ``[32 lanes, elements of a lane]``.

    Checked to be a bijection onto ``rows x columns``.

    Errors: ValueError where it is none.

    >>> row, column = operand_map(16, 8, 2)
    >>> row[5].tolist(), column[5].tolist()
    ([1, 1, 9, 9], [2, 3, 2, 3])
    """
    import numpy as np

    elements = rows * columns // LANES
    lane = np.arange(LANES)[:, None]
    register, within = np.divmod(np.arange(elements), per_register)[0], np.arange(elements) % per_register
    row_blocks = rows // 8
    row = lane // 4 + 8 * (register % row_blocks)
    column = 4 * per_register * (register // row_blocks) + per_register * (lane % 4) + within
    return _proved((rows, columns), (row, column), f"{per_register} elements a register")  # type: ignore[return-value]


@cache
def quadpair_map(
    role: Literal["A", "B", "C", "D"], order: Literal["row", "col"], element: str
) -> tuple[Any, Any, Any]:
    """(product, row, column) of every element of sm_70's mma.m8n8k4 with f16 factors: four products of a warp.

    Lanes 4q to 4q + 3 and 16 + 4q to 19 + 4q are a *quadpair* and hold the operands of product q: A (8, 4), B (4, 8),
    C and D (8, 8).  `order` is that of A or B; `element`, the type of C or D, tells the two forms of the accumulator
    apart.  Source: PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type".
    """
    import numpy as np

    lane = np.arange(LANES)[:, None]
    i = np.arange(8 if role in "CD" else 4)
    product, four, high = lane // 4 % 4, lane % 4, 4 * (lane // 16)
    if role in "CD":
        shape = (4, 8, 8)
        if element == "float32":
            row, column = lane % 2 + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)
        else:
            row, column = four + high, i
    else:
        shape = (4, 8, 4) if role == "A" else (4, 4, 8)
        along, across = (four + high, i) if (role == "A") == (order == "row") else (four, i + high)
        row, column = (along, across) if order == "row" else (across, along)
    return _proved(shape, (product, row, column), f"quadpairs, {role} {order}")  # type: ignore[return-value]


@cache
def scale_map(role: Literal["SFA", "SFB"], vector: int, byte: int, thread: int) -> tuple[Any, Any, Any, Any]:
    """(row, block, lane, byte) of every scale factor: four integer arrays ``[rows, vector]``, rows M or N.

    Row m of A is scaled by bytes `byte` to ``byte + vector - 1`` of the register in lane ``4 * (m % 8) + 2 * thread +
    m // 8``, column n of B by those in lane ``4 * n + thread``; block j scales the j-th of `vector` equal parts of K.
    Source: PTX ISA, "Block Scaling for mma.sync"; the layouts SFALayout and SFBLayout of CUTLASS's
    ``mma_traits_sm120.hpp``.
    """
    import numpy as np

    row, block = np.indices((16 if role == "SFA" else 8, vector))
    lane = 4 * (row % 8) + (2 * thread + row // 8 if role == "SFA" else thread)
    return row, block, lane, byte + block


def _proved(shape: tuple[int, ...], index: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    """The index arrays, read-only, if together they are a bijection onto `shape`."""
    import numpy as np

    size = int(np.prod(shape))
    index = tuple(np.ascontiguousarray(x) for x in np.broadcast_arrays(*index))
    inside = all((x >= 0).all() and (x < n).all() for x, n in zip(index, shape, strict=True))
    if not inside or index[0].size != size or np.unique(np.ravel_multi_index(index, shape)).size != size:
        text = " x ".join(map(str, shape))
        raise ValueError(f"no operand of {text} with {what}: not a bijection")
    for x in index:
        x.setflags(write=False)
    return index
