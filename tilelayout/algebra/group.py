"""Grouping: rewrite the shard so that each dimension of a shape is a run of whole iters."""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import UNIT, Iter, product, trusted_iter
from .canonicalize import fuse
from .integers import quotient, same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parts import Integer


def group(shard: tuple[Iter, ...], shape: tuple[Integer, ...], operation: str = "group") -> tuple[tuple[Iter, ...], tuple[int, ...]]:
    """The regrouped shard and the separators: dimension d is ``shard[seps[d]:seps[d + 1]]``.

    Post-conditions: the same function of the flat index; the extents of each group multiply to its
    dimension; every group has at least one iter (a unit dimension gets one that carries nothing);
    ``seps`` has ``len(shape) + 1`` entries from 0 to ``len(shard)``.
    Iters are split where a boundary needs it and kept otherwise; iters are fused first only where the
    boundary falls across one as it stands.  Refused exactly when no such shard exists.
    """
    found = split(shard, shape)
    if found is None:
        check_size(shard, shape, operation)
        fused = fuse(shard)
        found = split(fused, shape)
        if found is None:
            raise LayoutError(operation, _why_not(fused, shape))
    return found


def check_size(shard: tuple[Iter, ...], shape: tuple[Integer, ...], operation: str) -> None:
    """Refuse a shape whose size is not the layout's."""
    size, have = product(shape), product(it[0] for it in shard)
    if not same(size, have):
        raise LayoutError(operation, f"shape {tuple(shape)} has {size} elements, the layout has {have}")


def split(
    shard: tuple[Iter, ...], shape: tuple[Integer, ...]
) -> tuple[tuple[Iter, ...], tuple[int, ...]] | None:
    """Walk dimensions and iters together from the innermost; None where an iter cannot be cut."""
    out: list[Iter] = []  # innermost first
    seps: list[int] = []  # counted from the inner end
    left = len(shard)
    have: Integer = 1
    pending = UNIT
    for need in reversed(shape):
        start = len(out)
        while need != 1:
            if have == 1:
                if left == 0:
                    return None
                left -= 1
                pending = shard[left]
                have = pending[0]
                continue
            if type(need) is int and type(have) is int:
                whole, rest = divmod(need, have)
                if rest == 0:
                    out.append(pending)
                    need, have = whole, 1
                    continue
                outer, rest = divmod(have, need)
                if rest:
                    return None
            elif (more := quotient(need, have)) is not None:
                out.append(pending)
                need, have = more, 1
                continue
            elif (more := quotient(have, need)) is not None:
                outer = more
            else:
                return None
            _, s, a = pending
            out.append(trusted_iter(need, s, a))
            pending = trusted_iter(outer, s * need, a)
            have, need = outer, 1
        if len(out) == start:
            out.append(UNIT)
        seps.append(start)
    if have != 1 or any(it[0] != 1 for it in shard[:left]):
        return None
    count = len(out)
    out.reverse()
    return tuple(out), (0, *[count - s for s in reversed(seps)])


def _why_not(fused: tuple[Iter, ...], shape: tuple[Integer, ...]) -> str:
    """Name the boundary of the shape that falls inside an iter without dividing it."""
    for d in range(len(shape) - 1, -1, -1):
        tail = tuple(shape[d:])
        if split(fused, (quotient(product(it[0] for it in fused), product(tail)) or 0, *tail)) is None:
            return (
                f"dimension {d} of shape {tuple(shape)} begins at a multiple of {product(tail)} elements, which "
                f"cuts an iter of ({', '.join(str(it[0]) for it in fused)}) unevenly"
            )
    return f"shape {tuple(shape)} does not divide the iters ({', '.join(str(it[0]) for it in fused)})"
