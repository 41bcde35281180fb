"""All arrays of a launch at once: read, checked and put in order, quickly where that was done for their like before.

What follows from types, shapes and strides is decided once and looked up then; what follows from addresses is decided
at each launch.  No kernel may enter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from .arrays import Form, as_device_array, check_overlap, common_device
from .sight import kinds_of, pointers_of, sight
from .streams import handle_of, stream_of, wait_for

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


class Known(NamedTuple):
    """What was found of arrays of certain types, shapes and strides.

    Attributes:
        forms: how they lie.
        unaligned: bits of an address that are 0 where it is aligned for the widest elements.
        pairs: for each array that is written and each other one: their positions, the least and greatest distance of
            their addresses between which they come near each other, and whether they may be the same.
    """

    forms: tuple[Form, ...]
    unaligned: int
    pairs: tuple[tuple[int, int, int, int, bool], ...]

    def near(self, pointers: Sequence[int]) -> bool:
        """Whether addresses have to be looked at: not all aligned, or arrays close to one that is written."""
        bits = 0
        for pointer in pointers:
            bits |= pointer
        if bits & self.unaligned:
            return True
        for o, i, least, greatest, same in self.pairs:
            distance = pointers[i] - pointers[o]
            if least < distance < greatest and not (same and distance == 0):
                return True
        return False


_taken = cast("Any", tuple.__new__)  # half the time of the constructor of a named tuple


class Operands:
    """The arrays that a kernel takes, in order; `in_place` is the role of one that a written array may be itself, None
    where none may.
    """

    def __init__(self, operands: Sequence[Operand], in_place: str | None = "C") -> None:
        self._operands, self._in_place = tuple(operands), in_place
        pairs = [
            (o, i)
            for o, out in enumerate(operands)
            for i, x in enumerate(operands)
            if out.written and (not x.written or i > o)
        ]
        self._pairs = tuple(pairs)
        self._known: dict[tuple[Any, ...], Known] = {}

    def take(self, arrays: Sequence[Any], stream: Any = None) -> Taken:
        """The arrays, on one GPU, as a kernel finds them; nothing is copied.

        `stream` is what `stream_of` takes.

        Errors: as `as_device_array`, `common_device`, `check_overlap` and `stream_of`.
        """
        seen = sight(arrays, stream)
        if seen is None:
            return self._slowly(arrays, stream, None)
        kinds, pointers = kinds_of(seen), pointers_of(seen)
        known = self.known(kinds)
        if known is None or known.near(pointers):
            return self._slowly(arrays, stream, kinds)
        return _taken(Taken, (pointers, known.forms, seen[-2], seen[-1], arrays))

    def known(self, kinds: tuple[Any, ...]) -> Known | None:
        """What was found of arrays of these kinds, as `kinds_of` has them, when they were first taken."""
        return self._known.get(kinds)

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

    def _learned(self, forms: tuple[Form, ...]) -> Known:
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
        return Known(forms, max([form.width for form in forms]) - 1, tuple(pairs))
