"""The coarsest shape that several shapes of one size can be read off: their minimal common refinement.

Shapes are compared by where their dimensions begin and end.  Boundaries that fall in the same place count once,
as often as the shape has them that has them most often, so a unit dimension stays a dimension.
"""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import product
from .group import check_size, group
from .integers import if_divides, if_equal, quotient, same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..parts import Integer, RawIter


def group_many(
    shard: tuple[RawIter, ...], shapes: Sequence[tuple[Integer, ...]], operation: str = "group_many"
) -> tuple[tuple[RawIter, ...], tuple[tuple[int, ...], ...]]:
    """`group` for several shapes at once: one shard, and the separators of each shape in it.

    Post-conditions: the same function; for each shape those of `group`.  Refused exactly when no such shard exists.
    """
    for shape in shapes:
        if not shape:
            raise LayoutError(
                operation, "a shape of no dimensions has no place for iters", "write it as (1,)"
            )
        check_size(shard, shape, operation)
    dims, cuts = refine(shapes, operation)
    grouped, seps = group(shard, dims, operation)
    return grouped, tuple([tuple([seps[c] for c in mine]) for mine in cuts])


def refine(
    shapes: Sequence[tuple[Integer, ...]], operation: str
) -> tuple[tuple[Integer, ...], list[list[int]]]:
    """The refined shape, and where each shape's dimensions begin and end in it.

    A boundary that another shape has more often is taken at its first place, counted from the outside.

    >>> refine([(2, 12), (4, 6), (24,)], "refine")
    ((2, 2, 6), [[0, 1, 3], [0, 2, 3], [0, 3]])
    >>> refine([(1, 2, 3), (6, 1)], "refine")
    ((1, 2, 3, 1), [[0, 1, 2, 4], [0, 3, 4]])
    """
    found = _refine_plain(shapes)
    if found is not None:
        return found
    dims: list[Integer] = []
    cuts: list[list[int]] = [[0] for _ in shapes]
    need: list[Integer] = [shape[0] for shape in shapes]
    unfinished = list(range(len(shapes)))
    while unfinished:
        ended: list[int] = [k for k in unfinished if need[k] == 1]
        if ended:
            dims.append(1)
        else:
            step = _first_boundary(shapes, cuts, need, unfinished, operation)
            dims.append(step)
            for k in unfinished:
                left = quotient(need[k], step)
                need[k] = 1 if left is None else left  # `step` divides them all
                if same(need[k], 1):
                    ended.append(k)
        for k in ended:
            cuts[k].append(len(dims))
            at = len(cuts[k]) - 1
            if at == len(shapes[k]):
                unfinished.remove(k)
            else:
                need[k] = shapes[k][at]
    for mine in cuts:
        mine[-1] = len(dims)
    return tuple(dims), cuts


def _refine_plain(shapes: Sequence[tuple[Integer, ...]]) -> tuple[tuple[int, ...], list[list[int]]] | None:
    """The same of plain integers, by sorting the boundaries; None where that isn't it."""
    most: dict[int, int] = {}  # boundary -> how often a shape has it
    for shape in shapes:
        at = times = 1
        for n in shape:
            if type(n) is not int:
                return None
            if n != 1:
                if most.get(at, 0) < times:
                    most[at] = times
                at, times = at * n, 0
            times += 1
        if most.get(at, 0) < times:
            most[at] = times
    dims: list[int] = []
    first: dict[int, int] = {}  # boundary -> its first place
    before = 1
    for at in sorted(most):
        if at % before:
            return None
        if at != 1:
            dims.append(at // before)
        first[at] = len(dims)
        dims += [1] * (most[at] - 1)
        before = at
    cuts: list[list[int]] = []
    for shape in shapes:
        at, place, mine = 1, 0, [0]
        for n in shape:
            at = at * n
            place = place + 1 if n == 1 else first[at]  # type: ignore[index]  # plain
            mine.append(place)
        if at != before:
            return None  # of another size
        mine[-1] = len(dims)
        cuts.append(mine)
    return tuple(dims), cuts


def _first_boundary(
    shapes: Sequence[tuple[Integer, ...]],
    cuts: list[list[int]],
    need: list[Integer],
    unfinished: list[int],
    operation: str,
) -> Integer:
    """The extent up to the next boundary of any shape; it divides what each of them has to go."""
    if len(unfinished) == len(shapes):
        plain = [n for n in need if type(n) is int]
        candidates = need if len(plain) < len(need) else [min(plain)]
        for step in candidates:
            if all(quotient(n, step) is not None for n in need):
                return step
        at = candidates[0] if len(candidates) == 1 else need[0]
        i = need.index(at)
        j = next(k for k, n in enumerate(need) if quotient(n, at) is None)
        dimensions = [f"dimension {len(cuts[k]) - 1} of {tuple(shapes[k])}" for k in (i, j)]
        raise LayoutError(
            operation,
            f"{dimensions[0]} and {dimensions[1]} end in places that do not divide: from where both count, {need[i]} "
            f"elements and {need[j]}, so no iters fit both",
            if_divides(need[i], need[j]),
        )
    sizes = [product(shape) for shape in shapes]
    raise LayoutError(
        operation,
        f"the shapes {list(map(tuple, shapes))} are not known to have the same size",
        next((x for size in sizes[1:] if (x := if_equal(sizes[0], size))), None),
    )
