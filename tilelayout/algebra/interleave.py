"""Two shards over the interleaved shape: what tiling and the direct sum have in common."""

from __future__ import annotations

from ..errors import LayoutError
from .group import find, group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parts import Integer, RawIter

    Shape = tuple[Integer, ...]


def interleave(
    left: tuple[RawIter, ...],
    left_shape: Shape,
    right: tuple[RawIter, ...],
    right_shape: Shape,
    operation: str,
    names: tuple[str, str],
) -> tuple[RawIter, ...]:
    """The iters in the order x_0, y_0, x_1, y_1, ...: those of dimension d of `left`, then those of `right`.

    Pre-condition: each side can be grouped to its shape, or to it with dimensions joined between which the other side
    counts one alone (`joined`).
    Errors: LayoutError that names the side (`names`) and the dimension.
    """
    one, two = find(left, left_shape, operation), find(right, right_shape, operation)
    if one is None or two is None:
        shapes = fitting(left, left_shape, right, right_shape, operation, names)
        one, two = group(left, shapes[0], operation), group(right, shapes[1], operation)
    a, a_seps = one
    b, b_seps = two
    shard: list[RawIter] = []
    for d in range(len(a_seps) - 1):
        shard += a[a_seps[d] : a_seps[d + 1]]
        shard += b[b_seps[d] : b_seps[d + 1]]
    return tuple(shard)


def fitting(
    left: tuple[RawIter, ...],
    left_shape: Shape,
    right: tuple[RawIter, ...],
    right_shape: Shape,
    operation: str,
    names: tuple[str, str],
) -> tuple[Shape, Shape]:
    """The shapes to group the two sides by: as given, else joined."""
    sides = (left, left_shape, names[0]), (right, right_shape, names[1])
    if all(find(shard, shape, operation) is not None for shard, shape, _ in sides):
        return left_shape, right_shape
    shapes = joined(left_shape, right_shape)
    for (shard, shape, name), other in zip(sides, shapes, strict=True):
        if find(shard, other, operation) is None:
            try:
                group(shard, shape, operation)
            except LayoutError as error:
                rule = f"the {name} layout: {error.rule}, and {operation} takes shapes that cut no iter"
                raise LayoutError(operation, rule, error.remedy) from None
    return shapes


def joined(left: Shape, right: Shape) -> tuple[Shape, Shape]:
    """Shapes of fewer dimensions with the same interleaved order.

    Where a side counts one, its neighbors are neighbors of the other side: ``x_0, y_0, 1, y_1`` counts as
    ``x_0, y_0*y_1``.

    >>> joined((2, 1, 3), (4, 5, 6)), joined((2, 3), (1, 4))
    (((2, 3), (20, 6)), ((6,), (4,)))
    """
    digits = [(k, n) for pair in zip(left, right, strict=True) for k, n in enumerate(pair) if n != 1]
    out: list[list[Integer]] = []
    last = 1
    for k, n in digits:
        if k == 0 and last == 1:
            out.append([1, 1])
        elif not out:
            out.append([1, 1])
        out[-1][k] = out[-1][k] * n
        last = k
    return tuple([x for x, _ in out]), tuple([y for _, y in out])
