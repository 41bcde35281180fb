"""The matrices in global memory: buffers, strides as parameters, and the boxes of the copy engine."""

from __future__ import annotations

from dataclasses import dataclass

from tilelayout.expr import Index

from ...control import Parameter, TensorMap
from ...dtypes import dtype
from ...isa.bulk import BULK_LOAD
from ...program import Address, Buffer, Instr
from ...storage import RUN_TIME
from ...tile import Tile
from .problem import Matrix
from .schedule import BATCHES, K, M, N
from .stages import ROW_BYTES

STRIDE_LIMIT = 1 << 40
"""Elements from one row or batch to the next, at most; the copy engine takes no more bytes."""


def leading(matrix: Matrix) -> Parameter:
    """Elements between neighbors along the dimension that is not contiguous."""
    return Parameter(f"ld{matrix.name.lower()}", "s64", 0, STRIDE_LIMIT)


def batch_stride(matrix: Matrix) -> Parameter:
    """Elements from one batch to the next; 0 where all share the matrix."""
    return Parameter(f"batch_{matrix.name.lower()}", "s64", 0, STRIDE_LIMIT)


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


@dataclass(frozen=True)
class Boxes:
    """A tile of a matrix as boxes of the copy engine.

    Attributes:
        map: the tensor map.
        matrix: in global memory.
        panels: (offset in shared memory in elements, offset along the contiguous dimension, offset across).
    """

    map: TensorMap
    matrix: Matrix
    panels: tuple[tuple[int, int, int], ...]
    batched: bool

    @property
    def bytes(self) -> int:
        """Of the whole tile."""
        return self.map.bytes * len(self.panels)

    def coordinates(
        self, row: Index, column: Index, panel: tuple[int, int, int], batch: Index
    ) -> tuple[Index, ...]:
        """Of a panel of the tile that begins at that row and column, the contiguous dimension first."""
        _, along, across = panel
        place = (row, column)
        c = self.matrix.contiguous
        found: tuple[Index, ...] = (place[c] + along, place[1 - c] + across)
        return (*found, batch) if self.batched else found

    def load(
        self, buffer: Buffer, shift: Index, row: Index, column: Index, batch: Index, barrier: Address
    ) -> list[Instr]:
        """The loads of a tile to the place in shared memory that begins at `shift`."""
        return [
            Instr(
                BULK_LOAD[len(self.map.sizes)],
                (
                    Address(buffer, (shift + panel[0],)),
                    self.map,
                    *self.coordinates(row, column, panel, batch),
                    barrier,
                ),
            )
            for panel in self.panels
        ]


def boxes(matrix: Matrix, tile: Tile, batched: bool) -> Boxes:
    """The boxes of a stage's tile (see `stages.stage_tile`): a panel each, of at most 256 rows."""
    c = matrix.contiguous
    along, across = tile.shape[c], tile.shape[1 - c]
    width = min(along, ROW_BYTES // matrix.bytes)
    height = min(across, 256)
    sizes = extents(matrix)
    strides: tuple[Index, ...] = (leading(matrix).variable,)
    box: tuple[int, ...] = (width, height)
    ordered: tuple[Index, ...] = (sizes[c], sizes[1 - c])
    if batched:
        strides, box = (*strides, batch_stride(matrix).variable), (*box, 1)
        ordered = (*ordered, BATCHES.variable)
    swizzle = width * matrix.bytes if width * matrix.bytes > 16 else 0
    tensor = TensorMap(f"map_{matrix.name.lower()}", global_buffer(matrix), ordered, strides, box, swizzle)
    panels = [
        (x // width * across * width + y * width, x, y)
        for x in range(0, along, width)
        for y in range(0, across, height)
    ]
    return Boxes(tensor, matrix, tuple(panels), batched)
