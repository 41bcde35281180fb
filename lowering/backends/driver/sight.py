"""What tells one launch's arrays from another's, read the quickest way: of arrays of one library on one GPU.

All that is decided of a launch follows from what is read here, and from nothing else that an array has.  It is read
anew at each launch: an array may have been given other memory or another shape in place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .readers import is_cupy, is_torch
from .streams import cupy_stream, handle_of, torch_stream

Sight = tuple[Any, ...]
"""Type, shape and strides of each array in turn, the address of each, the number of the GPU, the stream's handle: one
tuple, which is looked up with one hash.  Of different libraries they differ: types do."""


class Reader(NamedTuple):
    """How a library's arrays are read.

    Attributes:
        three: the same as `many` of three arrays, without a loop: a product's.
        many: gives what is seen of arrays, where all are the library's and lie on one GPU, for a stream as `stream_of`
            takes it; None otherwise.

    Errors: LayoutError for what is no stream, or a stream of another GPU.
    """

    three: Callable[[Any, Any, Any, Any], Sight | None]
    many: Callable[[Sequence[Any], Any], Sight | None]


def sight(arrays: Sequence[Any], stream: Any = None) -> Sight | None:
    """What is seen of arrays; see `Reader.many`."""
    reader = READERS[arrays[0].__class__]
    if len(arrays) == 3:
        x, y, z = arrays
        return reader.three(x, y, z, stream)
    return reader.many(arrays, stream)


def kinds_of(seen: Sight) -> tuple[Any, ...]:
    """Of what is seen, types, shapes and strides: what is decided of them holds at any address."""
    return seen[: (len(seen) - 2) // 4 * 3]


def pointers_of(seen: Sight) -> tuple[int, ...]:
    """Of what is seen, the addresses."""
    return seen[(len(seen) - 2) // 4 * 3 : -2]


def _torch() -> Reader:
    current = torch_stream()

    def three(x: Any, y: Any, z: Any, stream: Any) -> Sight | None:
        kind = x.__class__
        if (y.__class__ is not kind and not is_torch(y.__class__)) or (
            z.__class__ is not kind and not is_torch(z.__class__)
        ):
            return None
        try:
            device = x.get_device()
            if device < 0 or y.get_device() != device or z.get_device() != device:
                return None
            # Of such views torch negates the elements when it reads them.
            if x.is_neg() or y.is_neg() or z.is_neg():
                return None
            return (
                x.dtype, x.shape, x.stride(), y.dtype, y.shape, y.stride(), z.dtype, z.shape, z.stride(),
                x.data_ptr(), y.data_ptr(), z.data_ptr(),
                device, current(device) if stream is None else handle_of(stream, device),
            )  # fmt: skip
        except (RuntimeError, AttributeError):  # no plain memory: `as_device_array` says so
            return None

    def many(arrays: Sequence[Any], stream: Any) -> Sight | None:
        kind = arrays[0].__class__
        kinds: list[Any] = []
        pointers: list[int] = []
        try:
            device = arrays[0].get_device()
            if device < 0:
                return None
            for x in arrays:
                if (x.__class__ is not kind and not is_torch(x.__class__)) or x.get_device() != device:
                    return None
                if x.is_neg():
                    return None
                kinds += (x.dtype, x.shape, x.stride())
                pointers.append(x.data_ptr())
        except (RuntimeError, AttributeError):
            return None
        return (*kinds, *pointers, device, current(device) if stream is None else handle_of(stream, device))

    return Reader(three, many)


def _cupy() -> Reader:
    current = cupy_stream()

    def many(arrays: Sequence[Any], stream: Any) -> Sight | None:
        kind, device = arrays[0].__class__, arrays[0].data.device_id
        kinds: list[Any] = []
        pointers: list[int] = []
        for x in arrays:
            if x.__class__ is not kind and not is_cupy(x.__class__):
                return None
            memory = x.data
            if memory.device_id != device:
                return None
            kinds += (x.dtype, x.shape, x.strides)
            pointers.append(memory.ptr)
        return (*kinds, *pointers, device, current(device) if stream is None else handle_of(stream, device))

    def three(x: Any, y: Any, z: Any, stream: Any) -> Sight | None:
        return many((x, y, z), stream)

    return Reader(three, many)


def _nothing(*_: Any) -> None:
    """What is seen of the arrays of other libraries."""


_NONE = Reader(_nothing, _nothing)


class _Readers(dict[type, Reader]):
    """How arrays are read, by the type of the first."""

    def __missing__(self, kind: type) -> Reader:
        found = _NONE
        if is_torch(kind) and "torch" in sys.modules:
            found = _torch()
        elif is_cupy(kind) and "cupy" in sys.modules:
            found = _cupy()
        self[kind] = found
        return found


READERS = _Readers()

__all__ = ["READERS", "Reader", "Sight", "kinds_of", "pointers_of", "sight"]
