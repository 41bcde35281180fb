"""Memory of a GPU that is ours for a while: filled with a byte, written by a kernel, read on the CPU."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .arrays import Form
from .bindings import call
from .devices import current

if TYPE_CHECKING:
    import numpy as np

_UNIT = 256
"""Bytes that memory of the driver is aligned to."""


class Scratch:
    """Memory for an array that lies as another does, its address as well aligned as the other's.

    Attributes:
        pointer: the address of the first element.
    """

    def __init__(self, base: int, size: int, form: Form, pointer: int, stream: int) -> None:
        self._base, self._size, self._form, self._stream = base, size, form, stream
        self.pointer = base - form.low + (pointer + form.low) % _UNIT

    def fill(self, byte: int) -> None:
        """Every byte."""
        call("cuMemsetD8Async", self._base, byte, self._size, self._stream)

    def read(self) -> np.ndarray[Any, Any]:
        """The elements, as unsigned integers of their width, once the stream is through."""
        import numpy as np

        form = self._form
        raw = np.zeros(max(1, form.high - form.low), np.uint8)
        if form.high > form.low:
            call("cuMemcpyDtoHAsync", raw.ctypes.data, self.pointer + form.low, raw.size, self._stream)
        call("cuStreamSynchronize", self._stream)
        return np.ndarray(form.shape, f"u{form.width}", raw, -form.low, form.strides)


class StreamMemory:
    """Bytes of a GPU that are given back on a stream, behind what is on it by then, when nobody holds this any more.

    Attributes:
        pointer: the address.
    """

    def __init__(self, size: int, stream: int, ordinal: int) -> None:
        self._stream, self._ordinal = stream, ordinal
        with current(ordinal):
            self.pointer = int(call("cuMemAllocAsync", size, stream))

    def __del__(self) -> None:
        if hasattr(self, "pointer"):
            with current(self._ordinal):
                call("cuMemFreeAsync", self.pointer, self._stream)


@contextmanager
def scratch(form: Form, pointer: int, stream: int, ordinal: int) -> Generator[Scratch]:
    """Memory like that of an array of this form at that address, on a GPU; a context of it is current meanwhile.

    Errors: DriverError, also where there is not as much.
    """
    size = form.high - form.low + _UNIT
    with current(ordinal):
        base = int(call("cuMemAlloc", size))
        try:
            yield Scratch(base, size, form, pointer, stream)
        finally:
            call("cuStreamSynchronize", stream)
            call("cuMemFree", base)


__all__ = ["Scratch", "StreamMemory", "scratch"]
