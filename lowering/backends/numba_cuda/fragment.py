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

_VALUES = {
    "float64": types.float64, "float32": types.float32, "tfloat32": types.float32, "int32": types.int32,
    "uint32": types.uint32, "int16": types.int16, "uint16": types.uint16, "int8": types.int8, "uint8": types.uint8,
}  # fmt: skip


class FragmentType(types.Type):
    """Registers of one lane that hold elements of `dtype`, low bits first.  Two are equal when all arguments are.

    Args:
        dtype: the element type's name, e.g. "bfloat16".
        count: 32-bit words.
        container: bits that each element takes, see `program.Registers`; by default the width of its type.  A 64-bit
            element takes two words, the low one first.

    Errors: LayoutError for an unknown element type; ValueError for a count below 1, one that cuts an element, or a
    container that does not cut a word.
    """

    def __init__(self, dtype_name: str, count: int, container: int = 0) -> None:
        self.element = dtype(dtype_name)
        self.count = count
        self.container = container or self.element.bits
        if type(count) is not int or count < 1:
            raise ValueError(f"a fragment has 1 word or more, got {count!r}")
        if self.container < self.element.bits or self.container not in (1, 2, 4, 8, 16, 32, 64):
            raise ValueError(
                f"an element of a fragment takes a part of a word, or two words; {self.element.name} in "
                f"{self.container} bits does not"
            )
        if 32 * count % self.container:
            raise ValueError(
                f"{count} words are no whole number of {self.element.name} of {self.container} bits"
            )
        wide = "" if self.container == self.element.bits else f", {self.container} bits each"
        super().__init__(name=f"Fragment({self.element.name}, {count}{wide})")

    @property
    def key(self) -> tuple[str, int, int]:
        return self.element.name, self.count, self.container

    @property
    def slots(self) -> int:
        """Elements of a lane."""
        return 32 * self.count // self.container

    def place(self, slot: int) -> tuple[int, int]:
        """The word that an element is in (the first of two for 64 bits), and its lowest bit there."""
        return divmod(slot * self.container, WORD.width)

    @property
    def value_type(self) -> types.Type:
        """What numba code sees of one element: the type where numba has it, float32 for tfloat32, else the bits of its
        container (uint16 for 16 bits, uint8 for 8 and less).
        """
        known = _VALUES.get(self.element.name)
        if known is not None:
            return known
        return {32: types.uint32, 16: types.uint16}.get(self.container, types.uint8)

    @property
    def array_types(self) -> tuple[types.Type, ...]:
        """The element types of arrays that a fragment is loaded from and stored to.

        Elements that take less than a byte are packed in bytes along the last dimension, the one with the lower index
        in the lower bits.
        """
        return (types.float16, types.uint16) if self.element.name == "float16" else (self.value_type,)


@register_model(FragmentType)
class FragmentModel(core_models.PrimitiveModel):
    """An LLVM array of words, which LLVM takes apart into registers."""

    def __init__(self, dmm: Any, fe_type: FragmentType) -> None:
        super().__init__(dmm, fe_type, ir.ArrayType(WORD, fe_type.count))


def of_registers(registers: Registers) -> FragmentType:
    """The type of a program's register group."""
    return FragmentType(registers.dtype, registers.words, registers.container)


def of_tile(tile: Tile) -> FragmentType:
    """The type of all registers that a lane holds of a tile, gaps included."""
    return FragmentType(tile.dtype, -(-register_span(tile.layout) * tile.element.bits // WORD.width))
