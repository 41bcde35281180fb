"""Division: a layout read tile by tile.

A tiler B picks the elements of one tile out of a dimension of size n; its complement in ``[0, n)`` is where the tiles
begin.  Together they count through the dimension, so dividing is composing with both at once and cutting between them.
"""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import M, product
from .canonicalize import fuse
from .complement import complement
from .compose import compose, compose_apart
from .group import find, group
from .integers import either, if_divides, quotient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parts import Integer, Offset, Parts, RawIter

    Tiler = Integer | Parts  # so many neighbors, or a layout on `m`
    # A dimension: the iters between tiles, those within one, and how many elements each has.
    Pieces = tuple[tuple[RawIter, ...], tuple[RawIter, ...], Integer, Integer]


def divide(
    a: Parts, shape: tuple[Integer, ...] | None, tilers: tuple[Tiler, ...], operation: str
) -> tuple[list[Pieces], Offset]:
    """Each dimension of `shape` (None: the flat index) cut between tiles and within them, and the offset.

    Post-condition: with r in a dimension's rest and t in its tile, the owners at all (r, t) are those that `a` has
    where each dimension's index is ``complement(tiler, n)(r) + tiler(t)``.  Every group has an iter.
    Refused where a tiler doesn't divide its dimension, or the tile isn't a layout because it runs across an iter.
    """
    shard, _, offset = a
    if shape is None:
        shape, dimensions = (product([it[0] for it in shard]),), [shard]
    else:
        if len(tilers) != len(shape):
            raise LayoutError(operation, f"{len(tilers)} tilers for the {len(shape)} dimensions of {shape}")
        try:
            grouped, seps = group(shard, shape, operation)
        except LayoutError as error:
            rule = f"{error.rule}, and {operation} takes shapes that cut no iter"
            raise LayoutError(operation, rule, error.remedy) from None
        dimensions = [grouped[seps[d] : seps[d + 1]] for d in range(len(shape))]
    out: list[Pieces] = []
    for d, (iters, n, tiler) in enumerate(zip(dimensions, shape, tilers, strict=True)):
        if isinstance(tiler, tuple):
            between, _, begin = complement(tiler, n, operation)
            if type(n) is int and not begin and not tiler[2]:
                apart = compose_apart(fuse(iters)[::-1], between, tiler[0])
                if apart is not None:  # the usual case, without putting together what is cut again
                    rest, tile, size = apart
                    out.append((rest, tile, n // size, size))
                    continue
            size = product([it[0] for it in tiler[0]])
            iters, moved = _selected(iters, tiler, between, begin, operation)
            if moved:
                offset = _sum(offset, moved)
        else:
            size = tiler
        count = quotient(n, size)
        if count is None:
            left = f": {n} % {size} = {n % size}" if type(n) is int and type(size) is int else ""
            raise LayoutError(
                operation,
                f"dimension {d}: the tile of {size} does not divide {n}{left}",
                either(if_divides(size, n), "cover with a larger shape and predicate the rim"),
            )
        found = find(iters, (count, size), operation)
        if found is None:
            extents = ", ".join(str(it[0]) for it in iters)
            raise LayoutError(
                operation,
                f"dimension {d}: a tile of {size} ends within an iter of ({extents}), so tiles aren't alike",
            )
        pieces, seps = found
        out.append((pieces[: seps[1]], pieces[seps[1] :], count, size))
    return out, offset


def _selected(
    iters: tuple[RawIter, ...], tiler: Parts, between: tuple[RawIter, ...], begin: Offset, operation: str
) -> tuple[tuple[RawIter, ...], Offset]:
    """A dimension in the order of a layout tiler and its complement, which is `between` from `begin` on."""
    start = begin.get(M, 0) + tiler[2].get(M, 0)
    both: Parts = (between + tiler[0], (), {M: start} if start != 0 else {})
    shard, _, offset = compose((iters, (), {}), both, operation)
    return shard, offset


def _sum(x: Offset, y: Offset) -> Offset:
    total = dict(x)
    for a, v in y.items():
        total[a] = total.get(a, 0) + v
        if total[a] == 0:
            del total[a]
    return total
