"""Grouping: rewrite the shard so that each dimension of a shape is a run of whole iters."""

from __future__ import annotations

from ..errors import LayoutError, shown
from ..parts import UNIT, product
from .canonicalize import fuse
from .integers import if_divides, if_equal, quotient, same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parts import Integer, RawIter


def group(
    shard: tuple[RawIter, ...], shape: tuple[Integer, ...], operation: str = "group"
) -> tuple[tuple[RawIter, ...], tuple[int, ...]]:
    """The regrouped shard and the separators: dimension d is ``shard[seps[d]:seps[d + 1]]``.

    Post-conditions: the same function of the flat index; the extents of each group multiply to its
    dimension; every group has at least one iter (a unit dimension gets one that carries nothing);
    ``seps`` has ``len(shape) + 1`` entries from 0 to ``len(shard)``.
    Iters are split where a boundary needs it and kept otherwise; iters are fused first only where the
    boundary falls across one as it stands.  Refused exactly when no such shard exists.
    """
    found = find(shard, shape, operation)
    if found is None:
        raise LayoutError(operation, _why_not(fuse(shard), shape), _if_only(fuse(shard), shape))
    return found


def find(
    shard: tuple[RawIter, ...], shape: tuple[Integer, ...], operation: str
) -> tuple[tuple[RawIter, ...], tuple[int, ...]] | None:
    """`group`, with None where no such shard exists; a shape of another size is refused."""
    found = split(shard, shape)
    if found is None:
        check_size(shard, shape, operation)
        found = split(fuse(shard), shape)
    return found


def check_size(shard: tuple[RawIter, ...], shape: tuple[Integer, ...], operation: str) -> None:
    """Refuse a shape whose size is not the layout's."""
    size, have = product(shape), product(it[0] for it in shard)
    if not same(size, have):
        raise LayoutError(
            operation,
            f"shape {tuple(shape)} has {shown(size)} elements, the layout has {shown(have)}",
            if_equal(size, have),
        )


def split(
    shard: tuple[RawIter, ...],
    shape: tuple[Integer, ...],
    uncut: list[tuple[Integer, Integer]] | None = None,
) -> tuple[tuple[RawIter, ...], tuple[int, ...]] | None:
    """Walk dimensions and iters together from the innermost; None where an iter cannot be cut.

    What is left there of the dimension and of the iter is added to `uncut`.
    """
    if len(shard) == len(shape):
        for it, n in zip(shard, shape, strict=True):
            if n == 1 or it[0] != n:
                break
        else:  # as it stands
            return shard, tuple(range(len(shape) + 1))
    out: list[RawIter] = []  # innermost first
    seps = [0]  # counted from the inner end
    left = len(shard)
    have: Integer = 1
    pending = UNIT
    for need in reversed(shape):
        while need != 1:
            if have == 1:
                if left == 0:
                    return None
                left -= 1
                pending = shard[left]
                have = pending[0]
                if have == 1:
                    continue
            if type(need) is int and type(have) is int:
                fits = need % have == 0
                if not fits and have % need:
                    return None
                times = need // have if fits else have // need
            else:
                times = quotient(need, have)
                fits = times is not None
                if times is None and (times := quotient(have, need)) is None:
                    if uncut is not None:
                        uncut.append((need, have))
                    return None
            if fits:
                out.append(pending)
                need, have = times, 1
            else:
                _, s, a = pending
                out.append((need, s, a))
                pending = (times, s * need, a)
                need, have = 1, times
        if len(out) == seps[-1]:
            out.append(UNIT)
        seps.append(len(out))
    if have != 1:
        return None
    for k in range(left):
        if shard[k][0] != 1:
            return None
    count = len(out)
    return tuple(out[::-1]), tuple([count - n for n in seps[::-1]])


def _if_only(fused: tuple[RawIter, ...], shape: tuple[Integer, ...]) -> str | None:
    """The remedy where an iter could be cut if one of two sizes was known to divide the other."""
    uncut: list[tuple[Integer, Integer]] = []
    split(fused, shape, uncut)
    for need, have in uncut:
        return if_divides(have, need) if type(have) is int else if_divides(need, have)
    return None


def _why_not(fused: tuple[RawIter, ...], shape: tuple[Integer, ...]) -> str:
    """Name the boundary of the shape that falls inside an iter without dividing it."""
    for d in range(len(shape) - 1, -1, -1):
        tail = tuple(shape[d:])
        if split(fused, (quotient(product(it[0] for it in fused), product(tail)) or 0, *tail)) is None:
            return (
                f"dimension {d} of shape {tuple(shape)} begins at a multiple of {product(tail)} elements, which "
                f"cuts an iter of ({', '.join(str(it[0]) for it in fused)}) unevenly"
            )
    return f"shape {tuple(shape)} does not divide the iters ({', '.join(str(it[0]) for it in fused)})"
