"""The numba type of a fragment: one value of `count` 32-bit words, whatever the element type.

Hundreds of scalar variables cost numba seconds of type inference; one opaque value costs nothing.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import core_models, register_model

from ...dtypes import dtype
from ...program import Registers
from ...registers import register_span
from ...tile import Tile

WORD = ir.IntType(32)


class FragmentType(types.Type):
    """Registers of one lane that hold elements of `dtype`, low bits first.  Two are equal when both arguments are.

    Args:
        dtype: the element type's name, e.g. "bfloat16".
        count: 32-bit words.

    Errors: LayoutError for an unknown element type; ValueError for a count below 1 or elements wider than a word.
    """

    def __init__(self, dtype_name: str, count: int) -> None:
        self.element = dtype(dtype_name)
        self.count = count
        if type(count) is not int or count < 1:
            raise ValueError(f"a fragment has 1 word or more, got {count!r}")
        if self.element.bits > WORD.width:
            raise ValueError(
                f"a fragment's elements share or fill a 32-bit word; {self.element.name} is wider"
            )
        super().__init__(name=f"Fragment({self.element.name}, {count})")

    @property
    def key(self) -> tuple[str, int]:
        return self.element.name, self.count

    @property
    def per_word(self) -> int:
        """Elements that share a word."""
        return WORD.width // self.element.bits

    @property
    def slots(self) -> int:
        """Elements of a lane."""
        return self.count * self.per_word

    @property
    def value_type(self) -> types.Type:
        """What numba code sees of one element: float32 as it is, narrower types as bits."""
        if self.element.name == "float32":
            return types.float32
        return {32: types.uint32, 16: types.uint16, 8: types.uint8}[self.element.bits]


@register_model(FragmentType)
class FragmentModel(core_models.PrimitiveModel):
    """An LLVM array of words, which LLVM takes apart into registers."""

    def __init__(self, dmm: Any, fe_type: FragmentType) -> None:
        super().__init__(dmm, fe_type, ir.ArrayType(WORD, fe_type.count))


def of_registers(registers: Registers) -> FragmentType:
    """The type of a program's register group."""
    return FragmentType(registers.dtype, registers.count)


def of_tile(tile: Tile) -> FragmentType:
    """The type of all registers that a lane holds of a tile, gaps included."""
    return FragmentType(tile.dtype, -(-register_span(tile.layout) * tile.element.bits // WORD.width))
