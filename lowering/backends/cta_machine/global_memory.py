"""A buffer in global memory: its elements, which of them hold a value, and which may not be touched at all."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelayout import LayoutError

from ...program import Buffer
from .faults import Wrong
from .order import Order
from .plan import held_type

_NEVER = np.iinfo(np.int32).max
"""The time of what is not known to be written."""


class GlobalBuffer:
    """A tensor in global memory, copied from what the caller gave.

    Attributes:
        buffer: the buffer.
        data: its elements, flat; bytes where elements share them.

    CTAs are not ordered but by counters: what one has written no other may read or write that has not waited for a
    count behind it.
    """

    def __init__(self, buffer: Buffer, array: Any, written: Any, guarded: Any, several: bool) -> None:
        self.buffer = buffer
        self.data = _flat(buffer, array)
        self._written = _mask(buffer, "written", written, self.data.size)
        self._guarded = _mask(buffer, "guarded", guarded, self.data.size)
        # The CTA that wrote it, from 1 on, or whoever counts there; and when, by the CTA's own counts.
        self._owner = np.zeros(self.data.size, np.int32) if several else None
        self._time = np.zeros(self.data.size, np.int32) if several else None

    def bytes(self) -> Any:
        """The elements as bytes, the same memory."""
        return self.data.view(np.uint8)

    def check(
        self,
        index: Any,
        count: int,
        stores: bool,
        order: Order,
        under_way: bool = False,
        counter: bool = False,
    ) -> None:
        """Whether a CTA may read, or write, `count` elements from each index ``[n]`` on; writes are noted.

        Args:
            index, count: of the elements.
            stores: whether they are written.
            order: the CTA's.
            under_way: whether they are written some time later, see `written`.
            counter: whether nobody who counts there is in the way.

        Errors: Wrong.
        """
        if not index.size:
            return
        name, size = self.buffer.name, self.data.size
        if index.min() < 0 or index.max() + count > size:
            outside = (index < 0) | (index + count > size)
            unit = "bytes" if self.buffer.per_unit > 1 else "elements"
            which = int(np.flatnonzero(outside)[0])
            first = int(index[which])
            raise Wrong(f"touches {unit} {first} to {first + count - 1} of {name}, which has {size}", which)
        if self._written is None and self._guarded is None and self._owner is None:
            return
        touched = index[:, None] + np.arange(count) if count > 1 else index[:, None]
        verb = "writes" if stores else "reads"
        if self._guarded is not None:
            self._require(~self._guarded[touched], touched, f"{verb} a guarded element of {name}")
        if self._written is not None and not stores:
            self._require(self._written[touched], touched, f"reads an element of {name} that holds nothing")
        if self._owner is not None:
            owner = self._owner[touched]
            good = (owner == 0) | (owner == order.cta + 1) | (self._time[touched] < order.known[owner])
            good |= counter & (owner == order.known.size - 1)
            action = "overwrites" if stores else "reads"
            self._require(good, touched, f"{action} what another CTA has written in {name}")
        if stores:
            if self._written is not None:
                self._written[touched] = True
            if self._owner is not None:
                self._owner[touched] = order.cta + 1
                self._time[touched] = _NEVER if under_way else order.now

    def written(self, index: Any, order: Order) -> None:
        """What a CTA had under way there is written: it knows."""
        if self._owner is not None:
            self._time[index] = order.now

    def counted(self, at: int, order: Order) -> None:
        """A CTA counts at an element: it is nobody's but whoever counts there."""
        if self._owner is not None:
            self._owner[at], self._time[at] = order.known.size - 1, _NEVER

    def _require(self, good: Any, touched: Any, problem: str) -> None:
        if not good.all():
            which, k = np.argwhere(~good)[0]
            raise Wrong(f"{problem}, number {int(touched[which, k])}", int(which))


def _flat(buffer: Buffer, array: Any) -> Any:
    """A copy of what the caller gave, flat, in the type that memory has."""
    wanted = held_type(buffer)
    given = np.asarray(array)
    what = f"buffer {buffer.name}"
    if given.ndim != 1:
        raise LayoutError("run_grid", f"{what} has {given.ndim} dimensions", "give flat arrays")
    if given.dtype != wanted and not (given.dtype == np.uint8 and wanted.itemsize == 1):
        raise LayoutError(
            "run_grid", f"{what} has dtype {given.dtype}, memory holds {buffer.dtype} as {wanted}"
        )
    units = buffer.elements // buffer.per_unit
    if not buffer.is_run_time and given.size != units:
        raise LayoutError("run_grid", f"{what} has {given.size} elements of {wanted}, wanted {units}")
    return given.copy().view(wanted)


def _mask(buffer: Buffer, what: str, mask: Any, size: int) -> Any:
    if mask is None:
        return None
    flags = np.asarray(mask)
    if flags.dtype != np.bool_ or flags.shape != (size,):
        raise LayoutError(
            "run_grid",
            f"`{what}` of buffer {buffer.name} is {flags.dtype} {flags.shape}, wanted bool ({size},), one for each "
            "element of the array",
        )
    return flags.copy()
