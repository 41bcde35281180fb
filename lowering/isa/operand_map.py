"""Which element of a matrix operand a lane's register bits hold.

One rule covers every warp-level mma operand, sm_70's quadpairs apart.  For lane `t` and element `v`, with `e`
elements per register (for accumulators: always 2 neighbors), ``r = v // e``, ``s = v % e`` and ``R = rows // 8``:

    row = t // 4 + 8 * (r % R)          column = 4 * e * (r // R) + e * (t % 4) + s

rows = M for A and C/D and N for B; column = K for A and B and N for C/D.  e is max(1, 32 // bits), but 4 for the
6- and 4-bit types that sit in bytes.  Source: PTX ISA, the figures of "Matrix Fragments for mma.m16n8k16" and its
siblings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any, Literal

LANES = 32


Places = tuple[tuple[int, ...], ...]
"""For each lane and, within it, each element, in order: the index of the element, one tuple a dimension."""


@cache
def warp_places(rows: int, columns: int, per_register: int) -> Places:
    """(row, column) of every element, by the rule.

    Plain integers, so that a record proves itself without loading numpy.
    Errors: ValueError where it is no bijection onto ``rows x columns``.
    """
    blocks = rows // 8
    found = [
        (lane // 4 + 8 * (r % blocks), 4 * per_register * (r // blocks) + per_register * (lane % 4) + s)
        for lane in range(LANES)
        for r, s in [divmod(v, per_register) for v in range(rows * columns // LANES)]
    ]
    return _proved((rows, columns), found, f"{per_register} elements a register")


@cache
def quadpair_places(role: Literal["A", "B", "C", "D"], order: Literal["row", "col"], element: str) -> Places:
    """(product, row, column) of every element of sm_70's mma.m8n8k4 with f16 factors: four products of a warp.

    Lanes 4q to 4q + 3 and 16 + 4q to 19 + 4q are a *quadpair* and hold the operands of product q: A (8, 4), B (4, 8),
    C and D (8, 8).  `order` is that of A or B; `element`, the type of C or D, tells the two forms of the accumulator
    apart.  Source: PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type".
    """
    shape = (4, 8, 8) if role in "CD" else (4, 8, 4) if role == "A" else (4, 4, 8)
    found: list[tuple[int, int, int]] = []
    for lane in range(LANES):
        product, four, high = lane // 4 % 4, lane % 4, 4 * (lane // 16)
        for i in range(8 if role in "CD" else 4):
            if role in "CD" and element == "float32":
                row, column = lane % 2 + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)
            elif role in "CD":
                row, column = four + high, i
            else:
                along, across = (four + high, i) if (role == "A") == (order == "row") else (four, i + high)
                row, column = (along, across) if order == "row" else (across, along)
            found.append((product, row, column))
    return _proved(shape, found, f"quadpairs, {role} {order}")


def _proved(shape: tuple[int, ...], found: Sequence[tuple[int, ...]], what: str) -> Places:
    """The indices by dimension, if together they are a bijection onto `shape`."""
    inside = all(0 <= x < n for index in found for x, n in zip(index, shape, strict=True))
    if not inside or not len(set(found)) == len(found) == prod(shape):
        text = " x ".join(map(str, shape))
        raise ValueError(f"no operand of {text} with {what}: not a bijection")
    return tuple(zip(*found, strict=True))


@cache
def as_arrays(places: Places) -> tuple[Any, ...]:
    """The same as read-only integer arrays ``[32 lanes, elements of a lane]``."""
    import numpy as np

    out = tuple([np.array(x, np.int64).reshape(LANES, -1) for x in places])
    for x in out:
        x.setflags(write=False)
    return out


def operand_map(rows: int, columns: int, per_register: int) -> tuple[Any, Any]:
    """`warp_places` as arrays: (row, column), each ``[32 lanes, elements of a lane]``.

    >>> row, column = operand_map(16, 8, 2)
    >>> row[5].tolist(), column[5].tolist()
    ([1, 1, 9, 9], [2, 3, 2, 3])
    """
    return as_arrays(warp_places(rows, columns, per_register))  # type: ignore[return-value]


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
