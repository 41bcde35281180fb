"""What copies between a window and a tile have in common: the two sides, checked, dimension matched to dimension."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

from ..dispatch import predicate
from ..errors import fail
from ..ops import CopyCall
from ..program import Address, Buffer
from ..scope import Context
from ..storage import RUN_TIME
from ..tile import TileRegion
from ..window import Window
from .copy_operands import container_bits, memory_place
from .regions import Sliced, same_shape


def _window_and_shared(call: CopyCall, context: Context) -> Any:
    """One side is a window, the other lies in shared memory."""
    tile = next((x for _, x in call.operands() if not isinstance(x, Window)), None)
    if sum(isinstance(x, Window) for _, x in call.operands()) != 1 or tile is None:
        return f"copies {call}: one side must be a Window on a tensor in global memory"
    return (
        tile.tile.scope == "shared"
        or f"{tile} is in {tile.tile.scope} scope, the tile must be in shared memory"
    )


WINDOW_AND_SHARED = predicate("window_and_shared", _window_and_shared)


@dataclass(frozen=True)
class Sides:
    """A copy between a window and a tile in shared memory.

    Attributes:
        load: whether shared memory is written.
        window, region: the two sides.
        source: the tensor's buffer, of the window.
        shape: extents of the box that are not 1.
        dims: which dimension of the window each of them is.
        shared: where the tile's elements are.
        buffer: shared memory.
    """

    load: bool
    window: Window
    region: TileRegion
    source: Buffer
    shape: tuple[int, ...]
    dims: tuple[int, ...]
    shared: Sliced
    buffer: Buffer

    @property
    def bits(self) -> int:
        """That an element takes in memory."""
        return self.buffer.container

    @property
    def alignment(self) -> int:
        """Bytes that the region's first byte is a multiple of, wherever it begins."""
        return gcd(self.buffer.alignment, self.shared.step * self.bits // 8)

    @property
    def alignment_text(self) -> str:
        """The same, for messages."""
        moves = f", and moves by {self.shared.step * self.bits // 8}" if self.shared.step else ""
        return f"{self.buffer.name} is aligned to {self.buffer.alignment} bytes{moves}"

    def position(self, coordinate: tuple[Any, ...]) -> Any:
        """Of an element in shared memory, in elements, without the shift of a run-time begin."""
        return self.shared.layout.apply(*coordinate, shape=self.shape).get("m", 0)

    def address(self, coordinate: tuple[Any, ...]) -> Address:
        """Of that element."""
        return Address(self.buffer, (self.position(coordinate) + self.shared.shift,))

    def positions(self) -> Any:
        """Of all elements, ``[*shape]``, from the layout's table rather than from what will be emitted."""
        import numpy as np

        found = self.shared.layout.table(self.shape).get("m")
        return np.zeros(self.shape, np.int64) if found is None else np.asarray(found)


def sides(call: CopyCall, context: Context) -> Sides:
    """The two sides of a copy between a window and shared memory, or DispatchFail with what is in the way."""
    load = isinstance(call.src, Window)
    window, region = (call.src, call.dst) if load else (call.dst, call.src)
    if not isinstance(window, Window) or isinstance(region, Window):
        return fail(f"copies {call}: one side must be a Window on a tensor in global memory")
    roles = ("src", "dst") if load else ("dst", "src")
    shape = same_shape(call)
    container = container_bits(window.dtype, context)
    shared, buffer = memory_place(region, roles[1], container, load)
    dims = tuple([d for d, n in enumerate(window.box) if n != 1]) or (0,)
    return Sides(load, window, region, tensor(window, roles[0], container), shape, dims, shared, buffer)


def tensor(window: Window, role: str, container: int) -> Buffer:
    """The buffer of a window's tensor, as long as a launch gives it."""
    return Buffer(window.name, role, window.dtype, (RUN_TIME,), container, "global", window.alignment)


__all__ = ["WINDOW_AND_SHARED", "Sides", "sides", "tensor"]
