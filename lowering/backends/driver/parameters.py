"""What a kernel is launched with, in the memory that the driver copies it from.

The entry's parameters, in order: the addresses of the buffers in global memory, the program's parameters, its tensor
maps.  The driver is told where each lies here and copies it to where the kernel looks for it, which is the assembler's
choice: it aligns a map's absolute place, so that one aligned to 64 may lie at byte 48 of the parameters (seen on
sm_90).  No driver may enter.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from typing import Any

from tilelayout import LayoutError

from ...program import Program

_CODES = {"s32": "i", "s64": "q", "f32": "f", "f64": "d"}
_POINTER = 8
_MAP, _MAP_ALIGNMENT = 128, 64

Places = tuple[tuple[int, int], ...]
"""Offset and size of each parameter, in bytes."""


class ParameterBlock:
    """The parameters of a program's kernel.

    With `places`, those of the kernel as `LoadedKernel.places` has them, their sizes are compared.

    Attributes:
        names: of the parameters, in order.
        places: offset and size of each in the memory that is filled, in bytes.
        size: bytes of them all.
        offsets: those of `places`.
        addressing: writes the addresses of them all.
        room: bytes of the parameters and, behind them, those addresses.
        packing: writes them all, gaps included.
        counts: how many are addresses, numbers and maps.
        floats: which of the numbers are no integers.

    Errors: LayoutError for sizes that are not those of the program's parameters.
    """

    def __init__(self, program: Program, places: Places | None = None) -> None:
        self._program, self._parameters = program, program.parameters
        buffers = [b for b in program.buffers if b.space == "global"]
        rows = [(b.name, "Q", _POINTER, _POINTER) for b in buffers]
        rows += [(p.name, _CODES[p.kind], p.bytes, p.bytes) for p in program.parameters]
        rows += [(m.name, f"{_MAP}s", _MAP, _MAP_ALIGNMENT) for m in program.maps]
        self.names = tuple([row[0] for row in rows])
        self.places = _natural([(size, alignment) for *_, size, alignment in rows])
        if places is not None and [size for _, size in places] != [size for _, size in self.places]:
            raise self.refused(
                f"the kernel has parameters of {[size for _, size in places]} bytes, the program has "
                f"{dict(zip(self.names, [size for _, size in self.places], strict=True))}"
            )
        self.size = max([offset + size for offset, size in self.places], default=0)
        self.offsets = tuple([offset for offset, _ in self.places])
        self.addressing = struct.Struct(f"{len(rows)}Q")
        self.room = -(-self.size // _POINTER) * _POINTER + self.addressing.size
        self.packing = _packing(self.places, [row[1] for row in rows])
        self.counts = len(buffers), len(program.parameters), len(program.maps)
        self._bounds = tuple([(i, p) for i, p in enumerate(self._parameters) if p.lo is not None])
        self.floats = tuple([i for i, p in enumerate(self._parameters) if p.kind in ("f32", "f64")])
        self._local = threading.local()

    def frame(self) -> Frame:
        """This thread's own memory for the parameters, the same at each call: filled, launched with, filled again."""
        try:
            return self._local.frame  # type: ignore[no-any-return]
        except AttributeError:
            frame = self._local.frame = Frame(self)
            return frame

    def check_numbers(self, numbers: Sequence[Any]) -> None:
        """LayoutError for an integer parameter beyond the bounds that its program relies on."""
        if len(numbers) != len(self._parameters):
            raise self.refused(f"{len(numbers)} numbers for parameters {[p.name for p in self._parameters]}")
        for i, p in self._bounds:
            if not p.lo <= numbers[i] <= p.hi:  # type: ignore[operator]
                raise self.refused(f"{p.name} = {numbers[i]} is not from {p.lo} to {p.hi}")

    def refused(self, rule: str) -> LayoutError:
        """The error of a launch of the program."""
        return LayoutError(f"launch of {self._program.name}", rule)


def _natural(sizes: Sequence[tuple[int, int]]) -> Places:
    places: list[tuple[int, int]] = []
    end = 0
    for size, alignment in sizes:
        begin = -(-end // alignment) * alignment
        places.append((begin, size))
        end = begin + size
    return tuple(places)


def _packing(places: Places, codes: Sequence[str]) -> struct.Struct:
    """What writes values of those codes to their places, which rise."""
    form, end = "<", 0
    for (offset, size), code in zip(places, codes, strict=True):
        form += f"{offset - end}x{code}"
        end = offset + size
    return struct.Struct(form)


class Frame:
    """Memory of the parameters of one launch.

    Attributes:
        arguments: the address of the parameters' addresses (``kernelParams`` of ``cuLaunchKernel``).
        filled: for whoever fills it: what it was filled from, to know that it need not be filled again.
    """

    def __init__(self, block: ParameterBlock) -> None:
        self._block, self._pack, self._counts = block, block.packing.pack_into, block.counts
        self.filled: Any = None
        self._numbers: tuple[Any, ...] | None = None
        self._given: tuple[Any, ...] | None = None
        self._zeros: tuple[tuple[int, Any], ...] = ()
        self._memory = ctypes.create_string_buffer(block.room + _MAP_ALIGNMENT)
        begin = ctypes.addressof(self._memory)
        self._begin = -begin % _MAP_ALIGNMENT
        begin += self._begin
        table = block.room - block.addressing.size  # behind the parameters
        self.arguments = begin + table
        self._view = memoryview(self._memory)
        block.addressing.pack_into(self._view, self._begin + table, *[begin + at for at in block.offsets])

    def fill(self, pointers: Sequence[int], numbers: Sequence[Any] = (), maps: Sequence[bytes] = ()) -> int:
        """Write the parameters, and give `arguments`.

        `pointers` are addresses of the program's buffers in global memory, `numbers` its parameters, `maps` its tensor
        maps of 128 bytes, each in the program's order.  Tuples are quicker than lists.

        Errors: LayoutError for another number of them, and for a number that its parameter does not hold.
        """
        given = pointers, numbers, maps
        if given == self._given:
            for i, zero in self._zeros:
                if numbers[i] is not zero:  # zeros of both signs are equal, and not the same number
                    break
            else:
                return self.arguments
        self._given = self.filled = None
        if numbers != self._numbers:
            self._block.check_numbers(numbers)
            self._numbers = tuple(numbers)  # a list could change meanwhile, and is checked at each call
        for m in maps:
            if len(m) != _MAP:
                raise self._block.refused(f"a tensor map of {len(m)} bytes, not {_MAP}")
        if len(pointers) != self._counts[0] or len(maps) != self._counts[2]:
            raise self._block.refused(
                f"{len(pointers)} addresses and {len(maps)} tensor maps for {self._counts[0]} and {self._counts[2]}"
            )
        try:
            self._pack(self._view, self._begin, *pointers, *numbers, *maps)
        except (struct.error, OverflowError, TypeError) as error:
            values = dict(zip(self._block.names, (*pointers, *numbers), strict=False))
            raise self._block.refused(f"parameters {values} do not fit: {error}") from None
        if type(pointers) is type(numbers) is type(maps) is tuple:
            self._given = given
            self._zeros = tuple([(i, numbers[i]) for i in self._block.floats if numbers[i] == 0])
        return self.arguments

    def packed(self) -> bytes:
        """The parameters, each in its place."""
        return bytes(self._view[self._begin : self._begin + self._block.size])
