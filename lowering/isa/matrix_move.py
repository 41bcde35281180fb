"""``ldmatrix`` and ``stmatrix`` as one kind of record: matrices between shared memory and the registers of a warp.

One instruction moves 1, 2 or 4 matrices.  A matrix lies in shared memory as *lines* of 16 contiguous bytes, each at an
address that one lane gives.  Without ``.trans`` a line is shared out over four lanes; with ``.trans`` its elements go
to different lanes and each lane gets neighboring lines.  For lane ``4g + t`` and ``v = lines / 4``, element j of line i
of matrix q is in

    lane 4i + j // e,        slot j % e                      without .trans (e elements to a register)
    lane 4 (j % 8) + i // v, slot v (j // 8) + i % v         with .trans

slots of matrix q counted from ``q * slots``.  Source: PTX ISA, "Warp-level matrix load instruction: ldmatrix" and "...
store instruction: stmatrix", and their figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from tilelayout.display import Displayed
from tilelayout.errors import LayoutError

from ..errors import MachineError
from .operand_map import LANES, Places, as_arrays
from .record import Instruction, Operand, Place

LINE_BYTES = 16
"""What one address stands for.  It must be a multiple of this."""

BYTE_TARGETS = (100, 103, 110, 120, 121)
"""Compute capabilities whose "a" and "f" targets have the forms for elements below 16 bits."""


@dataclass(frozen=True)
class MatrixMove(Displayed):
    """One form of ``ldmatrix`` or ``stmatrix``.

    Attributes:
        operation: "ldmatrix" or "stmatrix".
        shape: as PTX names it.  With ``.trans`` PTX names the matrix as it is in the registers.
        lines: lines of one matrix in shared memory.
        count: matrices, the number behind ``.x``.
        bits: width of an element's place in a register.
        source_bits: width of an element in shared memory.  Where it is narrower than its place, 16 elements are packed
            from bit 0 of the line on, and the rest of the line is padding.
        transposed: whether it is the ``.trans`` form.
        sm, ptx: the first architecture and PTX version that have it.
        specific: the compute capabilities whose "a" and "f" targets alone have it; empty: all from `sm` on.
        section: where the PTX ISA defines it.

    >>> from lowering.isa.ldmatrix import LDMATRIX
    >>> x4 = next(move for move in LDMATRIX if move.name == "ldmatrix.m8n8.x4.b16")
    >>> x4.address_lane(2, 5), x4.registers
    (21, 4)
    >>> matrix, line, element = x4.fragment  # of every lane and slot
    >>> [(int(matrix[9, s]), int(line[9, s]), int(element[9, s])) for s in (0, 1, 2)]
    [(0, 2, 2), (0, 2, 3), (1, 2, 2)]
    """

    operation: Literal["ldmatrix", "stmatrix"]
    shape: str
    lines: int
    count: int
    bits: int
    source_bits: int
    transposed: bool
    sm: int
    ptx: tuple[int, int]
    specific: tuple[int, ...]
    section: str
    _painter: ClassVar[str] = "lowering.display"
    _explorer: ClassVar[str] = "lowering.explore"

    def __post_init__(self) -> None:
        flat = [
            (matrix * self.lines + line) * self.elements + x
            for matrix, line, x in zip(*self._places(), strict=True)
        ]
        if sorted(flat) != list(range(self.count * self.lines * self.elements)):
            raise LayoutError("MatrixMove", f"{self.name} does not move every element once")
        if self.count * self.lines > LANES:
            raise LayoutError(
                "MatrixMove", f"{self.name} has {self.count * self.lines} lines for {LANES} lanes"
            )

    @property
    def name(self) -> str:
        return f"{self.operation}.{self.shape}.x{self.count}{'.trans' * self.transposed}.{self.type}"

    @property
    def type(self) -> str:
        """The type in the mnemonic: "b16", "b8", or a pair such as "b8x16.b4x16_p64"."""
        if self.source_bits == self.bits:
            return f"b{self.bits}"
        padding = 8 * LINE_BYTES - 16 * self.source_bits
        return f"b{self.bits}x16.b{self.source_bits}x16_p{padding}"

    @property
    def elements(self) -> int:
        """Elements of a line."""
        return 8 * LINE_BYTES // self.bits

    @property
    def per_register(self) -> int:
        return 32 // self.bits

    @property
    def slots(self) -> int:
        """Elements of one matrix that a lane holds."""
        return self.lines * self.elements // LANES

    @property
    def registers(self) -> int:
        """32-bit registers of a lane."""
        return self.count * self.slots // self.per_register

    def address_lane(self, matrix: int, line: int) -> int:
        """The lane whose address is that line's: lanes in order serve the lines in order.

        The addresses of lanes that serve no line are not used.  (sm_75 wants them valid all the same.)
        """
        if not (0 <= matrix < self.count and 0 <= line < self.lines):
            raise LayoutError("address_lane", f"{self.name} has no line {line} of matrix {matrix}")
        return matrix * self.lines + line

    @cached_property
    def fragment(self) -> tuple[Any, Any, Any]:
        """(matrix, line, element of the line) that is in each place: integer arrays ``[32 lanes, slots of a lane]``.

        Register r of a lane is slots ``r * per_register`` on, low bits first.
        """
        return as_arrays(self._places())  # type: ignore[return-value]

    def _places(self) -> Places:
        found: list[tuple[int, int, int]] = []
        v = self.lines // 4
        for lane in range(LANES):
            for matrix, slot in [divmod(place, self.slots) for place in range(self.count * self.slots)]:
                if self.transposed:
                    found.append((matrix, v * (lane % 4) + slot % v, lane // 4 + 8 * (slot // v)))
                else:
                    found.append((matrix, lane // 4, lane % 4 * self.per_register + slot))
        return tuple(zip(*found, strict=True))

    @cached_property
    def instruction(self) -> Instruction:
        """The record that programs use: operands ``D`` or ``A`` (registers) and ``p`` (the lanes' addresses)."""
        load = self.operation == "ldmatrix"
        form = f"{self.shape}.x{self.count}{'.trans' * self.transposed}"
        text = f"{self.operation}.sync.aligned.{form}.shared.{self.type}"
        registers = Operand("D" if load else "A", self.registers, "b32", "write" if load else "read")
        address = Operand("p", 1, "shared", "read", LINE_BYTES, self.count * self.lines)
        return Instruction(
            self.name,
            text + (" {D}, [{p}];" if load else " [{p}], {A};"),
            (registers, address) if load else (address, registers),
            self.sm,
            self.ptx,
            self.section,
            self.load if load else self.store,
            effect="memory",
            collective=True,
            specific=self.specific,
        )

    # --- meaning ------------------------------------------------------------------------------------

    def load(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """``p`` a `Place` in shared memory, one address a lane; writes ``D``, uint32 ``[warps, lanes, registers]``.

        Errors: MachineError for an address that is no multiple of 16 bytes or leaves the buffer.
        """
        import numpy as np

        memory, at = _memory(values["p"]), self._lines(values["p"])
        raw = memory[at[..., None] + np.arange(LINE_BYTES)]  # [warps, matrices * lines, bytes]
        elements = _unpacked(raw, self.source_bits, self.bits)
        matrix, line, element = self.fragment
        held = elements[:, matrix * self.lines + line, element]
        return {"D": np.ascontiguousarray(held).view("<u4").astype(np.uint32)}

    def store(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Writes the lines that ``A``, uint32 ``[warps, lanes, registers]``, holds to the addresses ``p``.

        Errors: MachineError as `load`, and for two lines at one address: which of them stays is not defined.
        """
        import numpy as np

        memory, at = _memory(values["p"]), self._lines(values["p"])
        line_of, counts = np.unique(at, return_counts=True)
        if (counts > 1).any():
            twice = int(line_of[counts > 1][0])
            raise MachineError(
                f"{self.name}: two lanes give address {twice}, and which line stays is not defined"
            )
        matrix, line, element = self.fragment
        held = np.ascontiguousarray(values["A"].astype("<u4")).view(f"<u{self.bits // 8}")
        elements = np.empty((at.shape[0], self.count * self.lines, self.elements), held.dtype)
        elements[:, matrix * self.lines + line, element] = held
        memory[at[..., None] + np.arange(LINE_BYTES)] = elements.view(np.uint8)
        return {}

    def _lines(self, place: Place) -> Any:
        """The byte addresses of the lines, ``[warps, matrices * lines]``, checked."""
        import numpy as np

        item = place.data.dtype.itemsize
        at = np.asarray(place.index)[:, : self.count * self.lines] * item
        wrong = (at % LINE_BYTES != 0) | (at < 0) | (at + LINE_BYTES > place.data.size * item)
        if wrong.any():
            warp, lane = (int(x) for x in np.argwhere(wrong)[0])
            address = int(at[warp, lane])
            rule = (
                f"is no multiple of {LINE_BYTES}"
                if address % LINE_BYTES
                else f"leaves the buffer's {place.data.size * item} bytes"
            )
            raise MachineError(f"{self.name}: byte address {address} of lane {lane} of warp {warp} {rule}")
        return at


def _memory(place: Place) -> Any:
    """The bytes of a buffer in shared memory, whose first is 16-byte aligned."""
    import numpy as np

    return place.data.view(np.uint8)


def _unpacked(raw: Any, source_bits: int, bits: int) -> Any:
    """Bytes ``[..., 16]`` as elements ``[..., 128 / bits]``; element k is from bit ``k * source_bits`` on."""
    import numpy as np

    if source_bits == bits:
        return np.ascontiguousarray(raw).view(f"<u{bits // 8}")
    stream = np.unpackbits(raw, axis=-1, bitorder="little")[..., : 16 * source_bits]
    fields = stream.reshape(*raw.shape[:-1], 16, source_bits)
    return np.packbits(fields, axis=-1, bitorder="little")[..., 0]
