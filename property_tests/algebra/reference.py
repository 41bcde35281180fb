"""The model, evaluated as it is written down: digits, displacements, sets of owners.

Written against docs/architecture.md and not against the code: it reads a layout's shard, replica and
offset and calls none of its methods.  Slow on purpose.  Axes with coordinate 0 are left out, so that
places compare equal whether or not they mention an axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

Place = frozenset  # of (axis name, value) pairs, without zeros
Vector = tuple[int, ...]  # the same with the axes in a fixed order


def coordinates(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All coordinates of a shape, last dimension fastest."""
    return product(*[range(n) for n in shape])


def flatten(coord: Sequence[int], shape: Sequence[int]) -> int:
    flat = 0
    for c, n in zip(coord, shape, strict=True):
        flat = flat * n + c
    return flat


def digits(flat: int, extents: Sequence[int]) -> list[int]:
    """``c_k = (flat // prod(e_l for l > k)) % e_k``."""
    return [flat // prod(extents[k + 1 :]) % e for k, e in enumerate(extents)]


def size(layout: Any) -> int:
    return prod(it.extent for it in layout.shard)


def place(values: Mapping[Any, Any]) -> Place:
    """A mapping axis -> value as a value of its own."""
    return frozenset((str(axis), int(value)) for axis, value in values.items() if value != 0)


def displacement(layout: Any, flat: int) -> dict[str, int]:
    """D plus the offset."""
    found: dict[str, int] = {str(axis): value for axis, value in layout.offset.items()}
    for c, it in zip(digits(flat, [it.extent for it in layout.shard]), layout.shard, strict=True):
        found[it.axis.name] = found.get(it.axis.name, 0) + c * it.stride
    return found


def owners(layout: Any, flat: int) -> frozenset[Place]:
    """L: every place that holds the element."""
    base = displacement(layout, flat)
    found = set()
    for choice in coordinates([it.extent for it in layout.replica]):
        copy = dict(base)
        for r, it in zip(choice, layout.replica, strict=True):
            copy[it.axis.name] = copy.get(it.axis.name, 0) + r * it.stride
        found.add(place(copy))
    return frozenset(found)


def function(layout: Any) -> list[frozenset[Place]]:
    """The owners at every flat index."""
    return [owners(layout, flat) for flat in range(size(layout))]


def box(shape: Sequence[int], region: Sequence[tuple[int, int]]) -> list[int]:
    """The flat indices of a box, in the row-major order of the box."""
    return [flatten(coord, shape) for coord in product(*[range(b, e) for b, e in region])]


# --- is a table of values a layout's? ---------------------------------------------------------------


def factorizations(n: int) -> Iterator[tuple[int, ...]]:
    """All ways to write n as an ordered product of factors of at least 2."""
    if n == 1:
        yield ()
    for first in range(2, n + 1):
        if n % first == 0:
            for rest in factorizations(n // first):
                yield (first, *rest)


def is_layout(values: Sequence[Vector]) -> bool:
    """Whether a shard and an offset have these values, by trying every factorization of their number.

    A digit's step is what the values say where that digit is 1 and the others are 0, so no other strides
    need to be tried.  A stride lies on one axis.
    """
    for extents in factorizations(len(values)):
        steps = [subtract(values[prod(extents[k + 1 :])], values[0]) for k in range(len(extents))]
        if any(sum(1 for x in step if x) > 1 for step in steps):
            continue
        if all(value == total(values[0], steps, digits(i, extents)) for i, value in enumerate(values)):
            return True
    return False


def greedy_is_layout(values: Sequence[Vector]) -> bool:
    """The same decided by taking off digits from the inside: quick, for long runs.

    The innermost digit of the coarsest factorization ends where the first step that differs comes.
    """
    values = list(values)
    while len(values) > 1:
        step = subtract(values[1], values[0])
        if sum(1 for x in step if x) > 1:
            return False
        extent = 1
        while extent < len(values) and subtract(values[extent], values[extent - 1]) == step:
            extent += 1
        if len(values) % extent:
            return False
        heads = values[::extent]
        for i, value in enumerate(values):
            if value != total(heads[i // extent], [step], [i % extent]):
                return False
        values = heads
    return True


def subtract(x: Vector, y: Vector) -> Vector:
    return tuple(a - b for a, b in zip(x, y, strict=True))


def total(base: Vector, steps: Iterable[Vector], factors: Iterable[int]) -> Vector:
    out = list(base)
    for step, factor in zip(steps, factors, strict=True):
        for i, s in enumerate(step):
            out[i] += factor * s
    return tuple(out)


def vectors(shard: Sequence[tuple[int, int, Any]], axes: Sequence[Any]) -> list[Vector]:
    """The values of a shard at every flat index, as vectors over `axes`."""
    found: list[Vector] = [(0,) * len(axes)]
    for extent, stride, axis in reversed(shard):
        at = axes.index(axis)
        step = tuple(stride if i == at else 0 for i in range(len(axes)))
        found = [total(inner, [step], [c]) for c in range(extent) for inner in found]
    return found


def is_grouped(values: Sequence[Vector], shape: Sequence[int]) -> bool:
    """Whether some shard with these values falls into runs of iters whose extents multiply to the dimensions.

    Such a shard is a sum of one layout per dimension, and the other way round.
    """
    tails = [prod(shape[d + 1 :]) for d in range(len(shape))]
    dimensions = [[values[c * tail] for c in range(n)] for n, tail in zip(shape, tails, strict=True)]
    for i, value in enumerate(values):
        parts = [subtract(dim[c], values[0]) for dim, c in zip(dimensions, digits(i, shape), strict=True)]
        if value != total(values[0], parts, [1] * len(parts)):
            return False
    return all(is_layout(dim) for dim in dimensions)
