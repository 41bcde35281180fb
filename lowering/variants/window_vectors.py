"""How threads share out a box that goes between global and shared memory: which vectors each takes, and how wide.

Lanes go along the dimension in which global memory is contiguous.  A vector is neighbors of one row of it that are
neighbors in shared memory too, whatever swizzles or pads that, aligned on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelayout import LayoutError
from tilelayout.expr import Index, Var, evaluate
from tilelayout.parts import product

from ..control import Compare
from ..errors import fail
from ..isa.operand_map import LANES
from ..program import Buffer
from ..window import Window
from .copy_operands import places
from .window_places import Coordinate
from .window_sides import Sides


@dataclass(frozen=True)
class Vector:
    """What a thread takes in one turn.

    Attributes:
        coordinate: of its first element in the box, in terms of lane and warp.
        guard: the threads that take part in this turn; None for all of them.
    """

    coordinate: Coordinate
    guard: Compare | None


def along(two: Sides) -> int:
    """The dimension of the box that vectors go along: where global memory is contiguous, else the last."""
    contiguous = two.window.contiguous
    return two.dims.index(contiguous) if contiguous in two.dims else len(two.shape) - 1


def problem(two: Sides, width: int) -> str:
    """Why vectors of that many bytes do not serve on both sides; empty where they do."""
    return global_problem(two, width) or shared_problem(two, width)


def global_problem(two: Sides, width: int) -> str:
    """Why global memory has no vectors of that many bytes."""
    count = 8 * width // two.bits
    if count * two.bits != 8 * width:
        return f"they are no whole number of elements of {two.bits} bits"
    return vector_problem(two.window, two.dims, two.shape, along(two), width, count)


def vector_problem(
    window: Window, dims: tuple[int, ...], shape: tuple[int, ...], d: int, width: int, count: int
) -> str:
    """Why `count` elements of a window from multiples of as many on along dimension d of a box are no vector."""
    if window.alignment % width:
        return f"{window.name} and its strides are aligned to {window.alignment} bytes"
    if count == 1:
        return ""
    dimension = dims[d]
    if dimension != window.contiguous:
        has = (
            "no dimension is known to be"
            if window.contiguous is None
            else f"dimension {window.contiguous} is"
        )
        return f"no {count} elements of the box are neighbors in global memory, where {has} contiguous"
    if shape[d] % count:
        return f"extent {shape[d]} along dimension {dimension} is no whole number of {count} elements"
    if window.origin[dimension] % count != 0:
        return f"{window.name} begins at {window.origin[dimension]}, not known to be a multiple of {count} elements"
    inner = window.dims[dimension][-1][0]
    if len(window.dims[dimension]) > 1 and inner % count != 0:
        return f"only {inner} elements of dimension {dimension} are neighbors, {count} would be taken at once"
    return ""


def shared_problem(two: Sides, width: int) -> str:
    """Why shared memory has no vectors of that many bytes along the same dimension."""
    import numpy as np

    count = 8 * width // two.bits
    if two.alignment % width:
        return two.alignment_text
    d = along(two)
    rows = np.moveaxis(two.positions(), d, -1).reshape(-1, count)
    torn = np.argwhere(rows - rows[:, :1] != np.arange(count))
    if len(torn):
        row, k = (int(x) for x in torn[0])
        return (
            f"elements 0 and {k} of a vector along dimension {d} lie at positions {rows[row, 0]} and {rows[row, k]} of "
            f"{two.buffer.name}"
        )
    wrong = rows[:, 0] * two.bits % (8 * width)
    if wrong.any():
        return (
            f"one begins at byte {int(rows[np.argmax(wrong != 0), 0]) * two.bits // 8} of {two.buffer.name}"
        )
    return ""


def vectors(two: Sides, count: int, warps: int, piece: int = 0) -> list[Vector]:
    """The turns that take all vectors of `count` elements, by all lanes of all warps.

    Post-condition, checked here: every element of the box is in exactly one vector of one thread that takes part, and
    each `piece` elements of a vector (default: all) are where the expressions of `two` have them.
    """
    d, threads = along(two), LANES * warps
    thread = Var("lane", 0, LANES - 1) + (LANES * Var("warp", 0, warps - 1) if warps > 1 else 0)
    extents = [n // count if k == d else n for k, n in enumerate(two.shape)]
    order = [d, *[k for k in reversed(range(len(extents))) if k != d]]
    total = product(extents)
    found: list[Vector] = []
    for first in range(0, total, threads):
        number: Index = thread + first
        coordinate: list[Index] = [0] * len(extents)
        reach = 1
        for k in order:
            digit = number // reach if reach > 1 else number
            outermost = k == order[-1]
            coordinate[k] = (digit if outermost else digit % extents[k]) * (count if k == d else 1)
            reach *= extents[k]
        rest = total - first
        found.append(Vector(tuple(coordinate), Compare(thread, "<", rest) if rest < threads else None))
    _prove(two, found, count, warps, piece or count)
    return found


def _prove(two: Sides, found: list[Vector], count: int, warps: int, piece: int) -> None:
    import numpy as np

    where = places(warps)
    taken, table = np.zeros(two.shape, np.int64), two.positions()
    d = along(two)
    for vector in found:
        mine = np.ones(where["lane"].shape, bool)
        if vector.guard is not None:
            mine = evaluate(vector.guard.left, where) < vector.guard.right
        at = [np.broadcast_to(evaluate(x, where), mine.shape)[mine] for x in vector.coordinate]
        for k in range(count):
            element = tuple([x + k if j == d else x for j, x in enumerate(at)])
            np.add.at(taken, element, 1)
            if k % piece:
                continue
            position = two.position(along_by(vector.coordinate, d, k))
            if (np.broadcast_to(evaluate(position, where), mine.shape)[mine] != table[element]).any():
                raise LayoutError("copy", f"{position} is not where {two.region} has its elements")
    if (taken != 1).any():
        raise LayoutError("copy", f"{len(found)} turns of {warps} warps do not take each of {two.shape} once")


def along_by(coordinate: Coordinate, d: int, k: int) -> Coordinate:
    """The coordinate k further along dimension d."""
    return tuple([x + k if j == d else x for j, x in enumerate(coordinate)])


def widest(two: Sides, widths: tuple[int, ...], what: str) -> int:
    """The first of the widths that serves; declines with the reason of each where none does."""
    reasons: list[str] = []
    for width in widths:
        reason = problem(two, width)
        if not reason:
            return width
        reasons.append(f"{what} of {width} bytes: {reason}")
    return fail("; ".join(reasons))


def check_packed(window: Window, d: int, tensor: Buffer) -> None:
    """Elements that share a byte end with it at the tensor's rim in dimension d."""
    if tensor.per_unit > 1 and window.sizes[d] % tensor.per_unit != 0:
        fail(
            f"{window.sizes[d]} elements of {tensor.container} bits in dimension {d} of {window.name} are not known to "
            f"fill their last byte"
        )


def known_inside(config: Any, rank: int) -> frozenset[int]:
    """The dimensions of ``config={"inside": (..)}``, in which the caller knows the box to be within the tensor."""
    given = config.get("inside", ())
    if not isinstance(given, tuple) or not all(type(d) is int and 0 <= d < rank for d in given):
        fail(f"config: inside {given!r} is no tuple of dimensions below {rank}")
    return frozenset(given)


__all__ = ["Vector", "along", "along_by", "check_packed", "global_problem", "known_inside", "problem", "shared_problem",
           "vector_problem", "vectors", "widest"]  # fmt: skip
