"""Tiling a swizzled layout: copies that lie whole periods of the swizzle apart, or at least look so to it."""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import M, nonzero
from .integers import quotient
from .interleave import interleave
from .residues import Residues, distances, memory_digits, steps
from .tile import scaled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..axis import Axis
    from ..parts import Integer, Parts

    Shapes = tuple[tuple[Integer, ...], tuple[Integer, ...]]


def placed(outer: Parts, scale: dict[Axis, Integer]) -> Parts:
    """The outer layout in units of the inner one's spans: strides and offsets times the axis's factor."""
    shard, replica, offset = outer
    return scaled(shard, scale), scaled(replica, scale), {a: v * scale.get(a, 1) for a, v in offset.items()}


def interleaved(inner: Parts, outer: Parts, shapes: Shapes, operation: str) -> Parts:
    """``f(x || y) = f_outer(x) + f_inner(y)`` over the interleaved shape (outer, inner)."""
    if len(shapes[0]) != len(shapes[1]):
        raise LayoutError(operation, f"outer shape {shapes[0]} and inner shape {shapes[1]} differ in rank")
    shard = interleave(outer[0], shapes[0], inner[0], shapes[1], operation, ("outer", "inner"))
    offset = dict(inner[2])
    for name, value in outer[2].items():
        offset[name] = offset.get(name, 0) + value
    return shard, outer[1] + inner[1], nonzero(offset)


def torn(
    inner: Parts, outer: Parts, apply: Callable[[Any], Any], width: int, operation: str
) -> Integer | None:
    """A move of `outer` on `m` that the swizzle doesn't leave alone; None where ``apply(a + b) == a + apply(b)``.

    Whole blocks of ``2**width`` are left alone, whatever b is; of other moves the residues that b reaches decide.
    Errors: LayoutError where they depend on symbols.
    """
    shard, replica, offset = outer
    moves = [offset.get(M, 0), *[it[1] for it in (*shard, *replica) if it[2] is M and it[0] != 1]]
    if all(quotient(x, 1 << width) is not None for x in moves):
        return None
    base, digits, whole = memory_digits(inner, width, operation)
    first, others, more = memory_digits(outer, width, operation)
    every = [*digits, *others, (2, first)]
    reached = Residues(width, base, every, operation, whole or more)
    reached.add_digits(digits)
    delta = distances(apply, reached.bits)
    if reached.stray(delta, first, 0) is not None:
        return first
    reached.move(first)
    for e, s in others:
        for count in steps(e):
            if reached.stray(delta, count * s, 0) is not None:
                return count * s
            reached.add(count * s, 0)
    return None
