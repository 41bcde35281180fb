"""``movmatrix``: transposes an 8 x 8 matrix of 16-bit elements within the registers of a warp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from tilelayout.display import Displayed

from .operand_map import operand_map
from .record import Instruction, Operand


@dataclass(frozen=True)
class MatrixTranspose(Displayed):
    """``movmatrix.m8n8.trans.b16``: d holds the transpose of the matrix that a holds, both one register a lane.

    In both, lane ``4g + t`` holds columns 2t and 2t + 1 of row g, so element (i, j) goes from lane ``4i + j // 2`` to
    lane ``4j + i // 2``.
    """

    name: str = "movmatrix.m8n8.trans.b16"
    bits: int = 16
    sm: int = 75
    ptx: tuple[int, int] = (7, 8)
    specific: tuple[int, ...] = ()
    section: str = "Warp-level matrix transpose instruction: movmatrix"
    _painter: ClassVar[str] = "lowering.display"
    _explorer: ClassVar[str] = "lowering.explore"

    @property
    def registers(self) -> int:
        return 1

    @cached_property
    def instruction(self) -> Instruction:
        """The record that programs use: operands ``d`` and ``a``."""
        return Instruction(
            self.name,
            "movmatrix.sync.aligned.m8n8.trans.b16 {d}, {a};",
            (Operand("d", 1, "b32", "write"), Operand("a", 1, "b32", "read")),
            self.sm,
            self.ptx,
            self.section,
            self.transpose,
            collective=True,
        )

    def transpose(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The meaning."""
        import numpy as np

        row, column = operand_map(8, 8, 2)
        held = np.ascontiguousarray(values["a"].astype("<u4")).view("<u2")
        matrix = np.empty((held.shape[0], 8, 8), held.dtype)
        matrix[:, row, column] = held
        out = np.ascontiguousarray(matrix[:, column, row])  # element (row, column) of the transpose
        return {"d": out.view("<u4").astype(np.uint32)}


MOVMATRIX = (MatrixTranspose(),)
