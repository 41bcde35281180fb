"""``mma.sync.aligned.m16n8k*.row.col``: the table that the gemm variant stands on.

Adding an instruction is adding a record to `MMA_INSTRUCTIONS`; counts of registers follow from the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tilelayout.errors import LayoutError
from tilelayout.parts import as_extent

from ..dtypes import dtype
from .operand_map import operand_map
from .record import Instruction, Operand


@dataclass(frozen=True)
class MmaInstruction:
    """One concrete ``mma.sync``: ``d[m, n] = a[m, k] @ b[k, n] + d[m, n]``, d in place.

    Attributes:
        m, n, k: the shape of one instruction.
        a, b, c, d: element types by name.
        k_pack: elements along K that share a 32-bit register of A and B.  Stated, not derived: it is not 32 / bits for
            every type.
        sm, ptx: the first architecture and PTX version that have it.

    Errors: LayoutError naming the extent that is no extent of such an instruction.
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    d: str
    k_pack: int
    sm: int
    ptx: tuple[int, int]

    def __post_init__(self) -> None:
        for name in ("m", "n", "k", "k_pack"):
            object.__setattr__(self, name, as_extent(getattr(self, name), "MmaInstruction", name))
        for name, step in (("m", 8), ("n", 8), ("k", 4 * self.k_pack)):
            if getattr(self, name) % step:
                raise LayoutError(
                    "MmaInstruction", f"{name} must be a multiple of {step}, got {getattr(self, name)}"
                )

    @property
    def name(self) -> str:
        return f"m{self.m}n{self.n}k{self.k}.{dtype(self.a).ptx}"

    @property
    def signature(self) -> tuple[str, str, str, str]:
        """Element types of A, B, C, D."""
        return self.a, self.b, self.c, self.d

    @property
    def row_blocks(self) -> int:
        """rM: blocks of 8 rows of A and D, each a register of its own."""
        return self.m // 8

    @property
    def column_registers(self) -> int:
        """rN: neighboring columns of D that one lane holds."""
        return self.n // 4

    @property
    def k_blocks(self) -> int:
        """kHi: blocks of ``4 * k_pack`` along K, each a register of its own."""
        return self.k // (4 * self.k_pack)

    @property
    def a_registers(self) -> int:
        return self.row_blocks * self.k_blocks

    @property
    def b_registers(self) -> int:
        return self.k_blocks

    @property
    def d_registers(self) -> int:
        return self.row_blocks * self.column_registers

    @cached_property
    def instruction(self) -> Instruction:
        """The record that programs use."""
        types = ".".join(dtype(x).ptx for x in (self.d, self.a, self.b, self.c))
        return Instruction(
            self.name,
            f"mma.sync.aligned.m{self.m}n{self.n}k{self.k}.row.col.{types} {{D}}, {{A}}, {{B}}, {{D}};",
            (
                Operand("D", self.d_registers, "f32", "update"),
                Operand("A", self.a_registers, "b32", "read"),
                Operand("B", self.b_registers, "b32", "read"),
            ),
            self.sm,
            self.ptx,
            "Matrix Fragments for mma.m16n8k*; Warp Level Matrix Instructions: mma",
            self.multiply,
            collective=True,
        )

    def multiply(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The meaning: decode the registers by the PTX operand maps, multiply, encode.

        Products and sums are formed in float64 and rounded once to the accumulator's type; the hardware's order of
        additions is not specified.
        """
        a = self._decode(values["A"], self.m, self.k, self.a)
        b = self._decode(values["B"], self.n, self.k, self.b)  # "col": B is held as (N, K)
        row, column = operand_map(self.m, self.n, self.column_registers)
        import numpy as np

        c = values["D"].view(np.float32)
        product = np.einsum("wmk,wnk->wmn", a, b)
        return {"D": (product[:, row, column] + c.astype(np.float64)).astype(np.float32).view(np.uint32)}

    def _decode(self, words: Any, rows: int, columns: int, element: str) -> Any:
        """Registers ``[warps, lanes, count]`` -> float64 matrices ``[warps, rows, columns]``."""
        import numpy as np

        row, column = operand_map(rows, columns, self.k_pack)
        values = np.ascontiguousarray(words).view(dtype(element).numpy).astype(np.float64)
        out = np.empty((words.shape[0], rows, columns))
        out[:, row, column] = values
        return out


def _sixteen_bit(k: int, element: str, sm: int) -> MmaInstruction:
    return MmaInstruction(
        16, 8, k, element, element, "float32", "float32", k_pack=2, sm=sm, ptx=(7, 0) if sm >= 80 else (6, 5)
    )


MMA_INSTRUCTIONS = (
    _sixteen_bit(16, "float16", 80),
    _sixteen_bit(16, "bfloat16", 80),
    _sixteen_bit(8, "float16", 75),
    _sixteen_bit(8, "bfloat16", 80),
)
"""Tried in this order; the first that fits wins."""
