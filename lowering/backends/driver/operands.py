"""All arrays of a launch at once: read, checked and put in order, quickly where that was done for their like before.

What follows from types, shapes and strides is decided once and looked up then; what follows from addresses is decided
at each launch.  No kernel may enter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .arrays import Form, as_device_array, check_overlap, common_device
from .readers import is_cupy, is_torch
from .streams import cupy_stream, handle_of, stream_of, torch_stream, wait_for

_REMEMBERED = 1024

Parts = tuple[list[int], list[Any], int]
"""Pointers; type, shape and strides of one array after the other; the GPU they all lie on."""


class Operand(NamedTuple):
    """What a kernel takes as one of its arrays.

    Attributes:
        role: "A", "D", ...; messages name it.
        dtype: its element type, a name of `lowering.dtypes`.
        rank: dimensions; None for any.
        written: whether the kernel writes it; the others are read.
    """

    role: str
    dtype: str
    rank: int | None = None
    written: bool = False


class Taken(NamedTuple):
    """The arrays of a launch.

    Attributes:
        pointers: the addresses of their first elements.
        forms: how they lie in memory.  Arrays that lie alike have the same forms: a key for all that follows from them.
        device: the number of their GPU.
        stream: the handle of the stream to launch on; it waits for what the arrays are ready after.
        owners: what must live until the kernel is launched.
    """

    pointers: tuple[int, ...]
    forms: tuple[Form, ...]
    device: int
    stream: int
    owners: Sequence[Any]


class Operands:
    """The arrays that a kernel takes, in order; `in_place` is the role of one that a written array may be itself."""

    def __init__(self, operands: Sequence[Operand], in_place: str = "C") -> None:
        self._operands, self._in_place = tuple(operands), in_place
        pairs = [
            (o, i, operands[i].role == in_place)
            for o, out in enumerate(operands)
            for i in range(len(operands))
            if out.written and (not operands[i].written or i > o)
        ]
        self._pairs = tuple(pairs)
        self._known: dict[tuple[Any, ...], tuple[Form, ...]] = {}

    def take(self, arrays: Sequence[Any], stream: Any = None) -> Taken:
        """The arrays, on one GPU, as a kernel finds them; nothing is copied.

        `stream` is what `stream_of` takes.

        Errors: as `as_device_array`, `common_device`, `check_overlap` and `stream_of`.
        """
        first = arrays[0].__class__
        torch = is_torch(first)
        parts = _torch_parts(arrays) if torch else _cupy_parts(arrays) if is_cupy(first) else None
        if parts is not None:
            pointers, key, device = parts
            forms = self._known.get(tuple(key))
            if forms is not None and self._apart(pointers, forms):
                if stream is not None:
                    handle = handle_of(stream, device)
                else:
                    handle = torch_stream()(device) if torch else cupy_stream()(device)
                return Taken(tuple(pointers), forms, device, handle, arrays)
        return self._slowly(arrays, stream, parts)

    def _apart(self, pointers: list[int], forms: tuple[Form, ...]) -> bool:
        """Whether the addresses are aligned, and no array that is written comes near another one."""
        for pointer, form in zip(pointers, forms, strict=True):
            if pointer % form.width:
                return False
        for o, i, in_place in self._pairs:
            out, x, at = forms[o], forms[i], pointers[i] - pointers[o]
            if at + x.low < out.high and out.low < at + x.high and not (in_place and at == 0 and x is out):
                return False
        return True

    def _slowly(self, arrays: Sequence[Any], stream: Any, parts: Parts | None) -> Taken:
        """The same with every check and its message."""
        given = None if stream is None else handle_of(stream)
        found = tuple([
            as_device_array(x, o.role, o.dtype, rank=o.rank, written=o.written, stream=given)
            for x, o in zip(arrays, self._operands, strict=True)
        ])  # fmt: skip
        device = common_device(found)
        for o, i, _ in self._pairs:
            check_overlap(found[o], (found[i],), self._in_place)
        handle = stream_of(found, stream)
        wait_for(found, handle)
        forms = tuple([x.form for x in found])
        if parts is not None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            forms = self._known.setdefault(tuple(parts[1]), forms)
        return Taken(tuple([x.pointer for x in found]), forms, device, handle, found)


def _torch_parts(arrays: Sequence[Any]) -> Parts | None:
    """Of torch tensors on one GPU; None where the arrays are anything else."""
    pointers: list[int] = []
    key: list[Any] = []
    device = arrays[0].get_device()
    try:
        for x in arrays:
            if not is_torch(x.__class__) or x.get_device() != device or x.is_neg():
                return None
            key += (x.dtype, x.shape, x.stride())
            pointers.append(x.data_ptr())
    except (RuntimeError, AttributeError):  # no plain memory: the slow way says so
        return None
    return (pointers, key, device) if device >= 0 else None


def _cupy_parts(arrays: Sequence[Any]) -> Parts | None:
    """Of cupy arrays on one GPU; None where the arrays are anything else."""
    pointers: list[int] = []
    key: list[Any] = []
    device = arrays[0].data.device_id
    for x in arrays:
        if not is_cupy(x.__class__) or x.data.device_id != device:
            return None
        key += (x.dtype, x.shape, x.strides)
        pointers.append(x.data.ptr)
    return pointers, key, device
