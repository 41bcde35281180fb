"""What a program's instructions work on: registers, memory, and addresses in it.

Data only, and what follows from it: widths, bytes, bits.  No instruction and no layout may enter.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilelayout import LayoutError
from tilelayout.expr import Index

from .dtypes import dtype

RUN_TIME = 0
"""In place of the first extent of a buffer whose length is known when it is launched."""

SPACES = ("global", "shared")
"""Memories that a buffer can lie in."""


@dataclass(frozen=True)
class Registers:
    """A group of registers of every lane, cut into containers of one element each, low bits first.

    Attributes:
        name: base name in every text, e.g. "a_words".
        role: the operand that lives there, "A", "B", "C" or "D".
        dtype: type of the elements.
        count: registers per lane.
        kind: register class, "f32", "f64" or "b32".  An f64 register is 64 bits wide, the others 32.
        container: bits that each element takes; the width of its type unless an instruction says otherwise (a byte for
            the 6- and 4-bit types of ``kind::f8f6f4``).

    Errors: LayoutError for a container that does not divide the register or does not hold the element.
    """

    name: str
    role: str
    dtype: str
    count: int
    kind: str
    container: int = 0

    def __post_init__(self) -> None:
        width = dtype(self.dtype).bits
        object.__setattr__(self, "container", self.container or width)
        if self.container < width or self.bits % self.container:
            raise LayoutError(
                f"registers {self.name}",
                f"{self.container} bits for each {self.dtype} do not cut a register of {self.bits}",
            )

    @property
    def bits(self) -> int:
        """Of one register."""
        return 64 if self.kind == "f64" else 32

    @property
    def per_register(self) -> int:
        """Elements that share a register."""
        return self.bits // self.container

    @property
    def words(self) -> int:
        """32-bit registers that the whole group takes of a lane."""
        return self.count * (self.bits // 32)

    @property
    def slots(self) -> int:
        """Elements that a lane holds."""
        return self.count * self.per_register


@dataclass(frozen=True)
class Buffer:
    """A row-major tensor in global memory, a parameter of a kernel; or an array in the CTA's shared memory.

    A tensor whose elements lie as a layout says is a buffer of one dimension, as long as the layout reaches, and the
    coordinate of an address is what the layout gives.

    Attributes:
        name, role, dtype, shape: of the tensor.  A first extent of `RUN_TIME`, in global memory: as long as what the
            launch gives.
        container: bits that each element takes, as in `Registers`.  Elements of less than a byte are packed, the one
            with the lower index in the lower bits; 6- and 4-bit types with a byte each sit in it as in a register.
        space: "global" or "shared".
        alignment: bytes that its first byte's address is a multiple of; 0 for a global tensor of which nothing is said:
            it is aligned to the registers that are loaded from it.

    Errors: LayoutError for a container that is neither bytes nor a part of one, for packed rows that are no whole
    bytes, an unknown space, and an array in shared memory that says no alignment.
    """

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    container: int = 0
    space: str = "global"
    alignment: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "container", self.container or dtype(self.dtype).bits)
        if self.container % 8 and 8 % self.container:
            raise LayoutError(
                f"buffer {self.name}", f"{self.container} bits for each {self.dtype} do not cut bytes"
            )
        if self.shape and self.shape[-1] * self.container % 8:
            raise LayoutError(
                f"buffer {self.name}",
                f"a row of {self.shape[-1]} {self.dtype} is no whole number of bytes, {self.per_unit} of them are one",
                "pad the rows",
            )
        if self.space not in SPACES or self.alignment < (self.space == "shared"):
            raise LayoutError(
                f"buffer {self.name}", f"in {self.space} memory, aligned to {self.alignment} bytes"
            )

    @property
    def is_run_time(self) -> bool:
        """Whether its length is known when it is launched, no sooner."""
        return self.shape[:1] == (RUN_TIME,)

    @property
    def elements(self) -> int:
        """How many there are; 0 for a length that is known at run time."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """That it takes."""
        return self.elements * self.container // 8

    @property
    def per_unit(self) -> int:
        """Elements in what memory is addressed by: 1, or those that share a byte."""
        return max(1, 8 // self.container)

    @property
    def unit_bytes(self) -> int:
        """Bytes of what memory is addressed by: an element, or the byte that several share."""
        return max(1, self.container // 8)


@dataclass(frozen=True)
class Slot:
    """Register number `index` of a group; the index may use loop variables."""

    registers: Registers
    index: Index


@dataclass(frozen=True)
class Address:
    """The element of a buffer at a logical coordinate, in terms of `lane` and `warp`."""

    buffer: Buffer
    coordinate: tuple[Index, ...]

    @property
    def element(self) -> Index:
        """Row-major offset in elements."""
        flat: Index = 0
        for x, n in zip(self.coordinate, self.buffer.shape, strict=True):
            flat = flat * n + x
        return flat

    @property
    def unit(self) -> Index:
        """`element` in what memory is addressed by: elements, or bytes where several share one."""
        per = self.buffer.per_unit
        return self.element // per if per > 1 else self.element

    @property
    def bit(self) -> Index:
        """The element's lowest bit in its unit; 0 unless several share a byte."""
        per = self.buffer.per_unit
        return self.element % per * self.buffer.container if per > 1 else 0


@dataclass(frozen=True)
class View:
    """An array view of a register group, in element slots: ``slot = offset + sum(index * stride)``."""

    registers: Registers
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def slot(self, *index: Index) -> Index:
        """The element slot of an index (which may use loop variables)."""
        total: Index = self.offset
        for x, n, s in zip(index, self.shape, self.strides, strict=True):
            if n > 1:
                total = total + x * s
        return total

    def word(self, *index: Index) -> Index:
        """The number of the register that holds the element at `index`."""
        return self.slot(*index) // self.registers.per_register

    def slots(self) -> list[int]:
        """Every slot, in row-major order of the index."""
        out = [self.offset]
        for n, s in zip(self.shape, self.strides, strict=True):
            out = [x + i * s for x in out for i in range(n)]
        return out
