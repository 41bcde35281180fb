"""All arrays of a launch at once: read, checked and put in order, quickly where that was done for their like before.

What follows from types, shapes and strides is decided once and looked up then; what follows from addresses is decided
at each launch.  No kernel may enter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from .arrays import Form, as_device_array, check_overlap, common_device
from .readers import is_cupy, is_torch
from .streams import cupy_stream, handle_of, stream_of, torch_stream, wait_for

_REMEMBERED = 1024


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


class _Known(NamedTuple):
    """What was found of arrays of certain types, shapes and strides.

    Attributes:
        forms: how they lie.
        unaligned: bits of an address that are 0 where it is aligned for the widest elements.
        pairs: for each array that is written and each other one: their positions, the least and greatest distance of
            their addresses between which they come near each other, and whether they may be the same.
        negated: positions of torch tensors that may be views whose elements torch negates.
    """

    forms: tuple[Form, ...]
    unaligned: int
    pairs: tuple[tuple[int, int, int, int, bool], ...]
    negated: tuple[int, ...]


_taken = cast("Any", tuple.__new__)  # half the time of the constructor of a named tuple


class Operands:
    """The arrays that a kernel takes, in order; `in_place` is the role of one that a written array may be itself."""

    def __init__(self, operands: Sequence[Operand], in_place: str = "C") -> None:
        self._operands, self._in_place = tuple(operands), in_place
        pairs = [
            (o, i)
            for o, out in enumerate(operands)
            for i, x in enumerate(operands)
            if out.written and (not x.written or i > o)
        ]
        self._pairs = tuple(pairs)
        self._known: dict[tuple[Any, ...], _Known] = {}

    def take(self, arrays: Sequence[Any], stream: Any = None) -> Taken:
        """The arrays, on one GPU, as a kernel finds them; nothing is copied.

        `stream` is what `stream_of` takes.

        Errors: as `as_device_array`, `common_device`, `check_overlap` and `stream_of`.
        """
        first = arrays[0].__class__
        if is_torch(first):
            quick = self._torch(arrays, first, stream)
        elif is_cupy(first):
            quick = self._cupy(arrays, first, stream)
        else:
            return self._slowly(arrays, stream, None)
        return quick if quick.__class__ is Taken else self._slowly(arrays, stream, quick)

    def _torch(self, arrays: Sequence[Any], first: type, stream: Any) -> Any:
        """What is taken, if all are torch tensors on one GPU, of a kind that is known and lie well; else the key of the
        kind, or None.
        """
        device = arrays[0].get_device()
        if device < 0:
            return None
        pointers: list[int] = []
        kinds: list[Any] = []
        try:
            for x in arrays:
                if (x.__class__ is not first and not is_torch(x.__class__)) or x.get_device() != device:
                    return None
                pointers.append(x.data_ptr())
                kinds.append((x.dtype, x.shape, x.stride()))
        except (RuntimeError, AttributeError):  # no plain memory: the slow way says so
            return None
        key = tuple(kinds)
        known = self._known.get(key)
        if known is None or _near(known, pointers):
            return key
        for i in known.negated:
            if arrays[i].is_neg():
                return None
        handle = torch_stream()(device) if stream is None else handle_of(stream, device)
        return _taken(Taken, (tuple(pointers), known.forms, device, handle, arrays))

    def _cupy(self, arrays: Sequence[Any], first: type, stream: Any) -> Any:
        """The same of cupy arrays."""
        device = arrays[0].data.device_id
        pointers: list[int] = []
        kinds: list[Any] = []
        for x in arrays:
            if (x.__class__ is not first and not is_cupy(x.__class__)) or x.data.device_id != device:
                return None
            pointers.append(x.data.ptr)
            kinds.append((x.dtype, x.shape, x.strides))
        key = tuple(kinds)
        known = self._known.get(key)
        if known is None or _near(known, pointers):
            return key
        handle = cupy_stream()(device) if stream is None else handle_of(stream, device)
        return _taken(Taken, (tuple(pointers), known.forms, device, handle, arrays))

    def _slowly(self, arrays: Sequence[Any], stream: Any, key: tuple[Any, ...] | None) -> Taken:
        """The same with every check and its message; arrays of kind `key` are known then."""
        given = None if stream is None else handle_of(stream)
        found = tuple([
            as_device_array(x, o.role, o.dtype, rank=o.rank, written=o.written, stream=given)
            for x, o in zip(arrays, self._operands, strict=True)
        ])  # fmt: skip
        device = common_device(found)
        for o, i in self._pairs:
            check_overlap(found[o], (found[i],), self._in_place)
        handle = stream_of(found, stream)
        wait_for(found, handle)
        forms = tuple([x.form for x in found])
        if key is not None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            forms = self._known.setdefault(key, self._learned(forms)).forms
        return Taken(tuple([x.pointer for x in found]), forms, device, handle, found)

    def _learned(self, forms: tuple[Form, ...]) -> _Known:
        """What can be said of arrays without their addresses."""
        pairs = [
            (
                o,
                i,
                forms[o].low - forms[i].high,
                forms[o].high - forms[i].low,
                self._operands[i].role == self._in_place and forms[i].lies_like(forms[o]),
            )
            for o, i in self._pairs
        ]
        negated = tuple([i for i, form in enumerate(forms) if _may_be_negated(form)])
        return _Known(forms, max([form.width for form in forms]) - 1, tuple(pairs), negated)


def _near(known: _Known, pointers: list[int]) -> bool:
    """Whether addresses have to be looked at: not all aligned, or arrays close to one that is written."""
    bits = 0
    for pointer in pointers:
        bits |= pointer
    if bits & known.unaligned:
        return True
    for o, i, least, greatest, same in known.pairs:
        distance = pointers[i] - pointers[o]
        if least < distance < greatest and not (same and distance == 0):
            return True
    return False


def _may_be_negated(form: Form) -> bool:
    """Whether a torch tensor that lies so may be the imaginary part of conjugates, which torch does not negate in
    memory: as a part of complex numbers it steps over the other part in every dimension.
    """
    return all(n == 1 or s // form.width % 2 == 0 for n, s in zip(form.shape, form.strides, strict=True))
