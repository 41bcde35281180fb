"""What a GEMM kernel is asked to do: types, and how each matrix lies in global memory.

Extents and strides are numbers of the launch; what is decided here is which dimension of each matrix is contiguous, and
what its addresses are multiples of.  Data only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tilelayout import LayoutError, TileLayout

from ...dtypes import dtype
from ..epilogue import Epilogue

ORDERS = ("row", "column")
OUTPUTS = {"float64": "float64", "tfloat32": "float32", "float16": "float16", "bfloat16": "bfloat16", "int8": "int32",
           "uint8": "int32", "float8_e4m3fn": "float16", "float8_e5m2": "float16"}  # fmt: skip
"""Type of A -> the type of D when none is asked for."""
ACCUMULATORS = {"float64": "float64", "int8": "int32", "uint8": "int32"}
"""Type of A -> the type in which products are added up; float32 for all others."""


@dataclass(frozen=True)
class Matrix:
    """One matrix in global memory.

    Attributes:
        name: "A" (M, K), "B" (K, N), "C" or "D" (M, N).
        dtype: of its elements.
        order: "row" where the last dimension is contiguous, "column" where the first is.
        alignment: bytes that its address, and its leading dimension in bytes, are multiples of; of what a layout places
            that its strides and runs of neighbors are, too.
        layout: where each element is, for a matrix that no leading dimension describes; its extents are fixed then.
        shape: of such a matrix.
    """

    name: str
    dtype: str
    order: str
    alignment: int
    layout: TileLayout | None = None
    shape: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise LayoutError(f"matrix {self.name}", f"order {self.order!r}", f"one of {', '.join(ORDERS)}")

    @property
    def contiguous(self) -> int:
        """The dimension of stride 1."""
        return 1 if self.order == "row" else 0

    @property
    def bytes(self) -> int:
        """Of an element."""
        return dtype(self.dtype).bits // 8


@dataclass(frozen=True)
class Problem:
    """Types and orders of all matrices, and what is done to the sums.

    Attributes:
        A, B, D: the matrices.  D is row-major: a column-major D is the row-major one of the transposed problem.
        C: added to the product times beta; None for a kernel that reads none.
        accumulator: the type in which products are added up.
        bias: "" for none, "row" for a vector along N, "column" for one along M; of D's type.
        scaled: whether the sums are multiplied by alpha.
        batched: whether there are several products, a stride apart.
        function: what else is done to each element before it is rounded: an instruction of one result and one operand;
            None for nothing.
    """

    A: Matrix
    B: Matrix
    D: Matrix
    accumulator: str
    C: Matrix | None = None
    bias: str = ""
    scaled: bool = False
    batched: bool = False
    function: Any = None

    def aligned(self, **bytes_of: int) -> Problem:
        """The same with other alignments, by the matrix's name."""
        changed = {
            name: replace(getattr(self, name), alignment=n)
            for name, n in bytes_of.items()
            if getattr(self, name) is not None
        }
        return replace(self, **changed)

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """All that there are, in the order of a kernel's parameters."""
        return tuple([m for m in (self.A, self.B, self.C, self.D) if m is not None])

    @property
    def epilogue(self) -> Epilogue:
        """What is done to the sums."""
        return Epilogue(
            self.D.dtype, self.accumulator, self.scaled, self.C is not None, self.bias, self.function
        )
