"""The matrices in global memory: buffers, strides as parameters, and the windows that tiles are copied through."""

from __future__ import annotations

from collections.abc import Sequence

from tilelayout.expr import Index

from ...control import Parameter
from ...dtypes import dtype
from ...program import Buffer, Program
from ...storage import RUN_TIME
from ...window import Window
from .problem import Matrix, Problem
from .schedule import BATCHES, LIMIT, K, M, N

BATCH_LIMIT = 1 << 36
"""Elements from one batch to the next, at most; the copy engine takes no more bytes."""
LEADING_LIMIT = LIMIT >> 1
"""Elements from one row or column to the next, at most, so that 64 bits hold every place in bytes."""


def leading(matrix: Matrix) -> Parameter:
    """Elements between neighbors along the dimension that is not contiguous."""
    return Parameter(f"ld{matrix.name.lower()}", "s64", 0, LEADING_LIMIT)


def batch_stride(matrix: Matrix) -> Parameter:
    """Elements from one batch to the next; 0 where all share the matrix."""
    return Parameter(f"batch_{matrix.name.lower()}", "s64", 0, BATCH_LIMIT)


def extents(matrix: Matrix) -> tuple[Index, Index]:
    """Rows and columns."""
    m, n, k = M.variable, N.variable, K.variable
    return {"A": (m, k), "B": (k, n)}.get(matrix.name, (m, n))


def global_buffer(matrix: Matrix) -> Buffer:
    """The tensor as a kernel's parameter."""
    bits = dtype(matrix.dtype).bits
    return Buffer(
        matrix.name, matrix.name, matrix.dtype, (RUN_TIME,), bits, "global", max(matrix.alignment, bits // 8)
    )


def moved_to(piece: Program, matrix: Matrix) -> dict[Buffer, tuple[Buffer, Index]]:
    """For `relocated`: a piece's tensors as the kernel's."""
    return {b: (global_buffer(matrix), 0) for b in piece.buffers if b.space == "global"}


def window(
    matrix: Matrix, origin: Sequence[Index], box: Sequence[int], batch: Index | None = None, copies: Index = 1
) -> Window:
    """A box of the matrix; with `batch` of a tensor of one dimension more, whose first counts the batches, so many
    times over.  What a layout places is one matrix, the same in all of them.
    """
    if matrix.layout is not None and matrix.shape is not None:
        return Window.of(
            matrix.name, matrix.dtype, matrix.layout, matrix.shape, origin, box, matrix.alignment
        )
    sizes = extents(matrix)
    strides: list[Index] = [leading(matrix).variable] * 2
    strides[matrix.contiguous] = 1
    dims: list[tuple[tuple[Index, Index], ...]] = [((n, s),) for n, s in zip(sizes, strides, strict=True)]
    if batch is not None:
        count = BATCHES.variable * copies
        dims.insert(0, ((count, batch_stride(matrix).variable),))
        sizes, origin, box = (count, *sizes), (batch, *origin), (1, *box)  # type: ignore[assignment]
    return Window(
        matrix.name, matrix.dtype, tuple(dims), tuple(sizes), tuple(origin), tuple(box), matrix.alignment
    )


def bias_window(problem: Problem, origin: Index, extent: int) -> Window | None:
    """The part of the bias that goes with a tile, which begins at `origin` along it; None where there is no bias."""
    if not problem.bias:
        return None
    size = (N if problem.bias == "row" else M).variable
    bytes_each = problem.D.bytes
    return Window("bias", problem.D.dtype, (((size, 1),),), (size,), (origin,), (extent,), bytes_each)
