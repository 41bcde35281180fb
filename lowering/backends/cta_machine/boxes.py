"""Boxes of tensors: which elements of global memory a box has, and where each goes in shared memory.

Dimension 0 is the contiguous one.  In shared memory a box lies without gaps, rows of ``box[0]`` elements; a swizzle of
S bytes permutes its units of 16 bytes by their address: bits 4 on of the address are combined by exclusive or with as
many from bit 7 on, ``log2(S / 16)`` of them.  Source: CUDA driver API, "Tensor Map Object Management"; CUDA programming
guide, "Using TMA to transfer multi-dimensional arrays", "Swizzle modes".

Along dimension 0 the engine counts in units of 16 bytes.  A box begins at a multiple of them; other coordinates are an
illegal instruction.  A store writes whole ones: where a row of the tensor ends within one, the rest of it is
overwritten with what the box has there, while a load reads zeros there (measured on an H200).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilelayout import LayoutError
from tilelayout.expr import Expr, evaluate

from ...control import TensorMap

UNIT = 16
"""Bytes that a swizzle moves together, that strides and coordinates are multiples of, and that stores write whole."""


def swizzled_units(address: int, count: int, swizzle: int) -> Any:
    """The 16-byte units of shared memory, by number, where the units of a box from that address on lie.

    >>> swizzled_units(1024, 16, 128).tolist()
    [64, 65, 66, 67, 68, 69, 70, 71, 73, 72, 75, 74, 77, 76, 79, 78]
    """
    units = address // UNIT + np.arange(count)
    return units if not swizzle else units ^ (units >> 3 & swizzle // UNIT - 1)


class Boxes:
    """A tensor map with the numbers of a launch.

    Errors: LayoutError for sizes below 1, strides that are no multiple of 16 bytes, a broken promise of whole units.
    """

    def __init__(self, tensor: TensorMap, values: Mapping[str, int]) -> None:
        self.map = tensor
        sizes = [_number(x, values) for x in tensor.sizes]
        strides = [_number(x, values) for x in tensor.strides]
        bits = tensor.buffer.container
        if any(n < 1 for n in sizes) or any(s * bits % (8 * UNIT) or s < 0 for s in strides):
            raise LayoutError(
                "run_grid",
                f"tensor map {tensor.name} has sizes {sizes}, strides {strides} of {bits} bits",
                f"sizes of 1 on, strides of a multiple of {UNIT} bytes",
            )
        if tensor.whole_units and sizes[0] * bits % (8 * UNIT):
            raise LayoutError(
                "run_grid",
                f"tensor map {tensor.name} promises rows of whole units of {UNIT} bytes, they have {sizes[0]} elements "
                f"of {bits} bits",
                "store without the copy engine",
            )
        per = tensor.buffer.per_unit  # from here on dimension 0 counts units, as memory does
        self._bits = bits
        self._sizes = [-(-sizes[0] // per), *sizes[1:]]
        unit = UNIT // tensor.buffer.unit_bytes
        self._stored = [-(-self._sizes[0] // unit) * unit, *sizes[1:]]
        self._strides = [1, *[s // per for s in strides]]
        self._box = [tensor.box[0] // per, *tensor.box[1:]]
        self._offsets = self._sum([np.arange(n) * s for n, s in zip(self._box, self._strides, strict=True)])

    def places(self, coordinates: Sequence[int], stored: bool = False) -> tuple[Any, Any]:
        """(element of the tensor, whether it has it) of each element of the box at those coordinates, flat.

        With `stored` whether a store writes it: also the rest of the unit in which a row of the tensor ends.

        Errors: LayoutError for a coordinate inside a unit.
        """
        if coordinates[0] * self._bits % (8 * UNIT):
            raise LayoutError(
                f"tensor map {self.map.name}",
                f"coordinate {coordinates[0]} of dimension 0, elements of {self._bits} bits, is no multiple of {UNIT} "
                f"bytes: an illegal instruction",
            )
        at = [coordinates[0] // self.map.buffer.per_unit, *coordinates[1:]]
        first = sum(x * s for x, s in zip(at, self._strides, strict=True))
        inside = np.ones(1, bool)
        ends = list(zip(at, self._box, self._stored if stored else self._sizes, strict=True))
        if all(0 <= x and x + n <= size for x, n, size in ends):
            return self._offsets + first, np.broadcast_to(inside, self._offsets.shape)
        for x, n, size in ends:
            along = x + np.arange(n)
            inside = (((along >= 0) & (along < size))[:, None] & inside).ravel()
        return self._offsets + first, inside

    def _sum(self, parts: Sequence[Any]) -> Any:
        """Sums of one of each, the first varying fastest."""
        total = np.zeros(1, np.int64)
        for part in parts:
            total = (part[:, None] + total).ravel()
        return total


def _number(x: Any, values: Mapping[str, int]) -> int:
    return int(evaluate(x, values)) if isinstance(x, Expr) else int(x)
