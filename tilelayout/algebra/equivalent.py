"""Are two layouts the same function, and if not, where do they differ?

The places of an element are one displacement and the set of distances that the replica adds, which is the same for
every element.  Displacements are compared by the fused shard, whose form is unique; the sets of distances by the
canonical replica and, where that isn't unique, element by element.
"""

from __future__ import annotations

from itertools import pairwise
from math import gcd, prod

from ..errors import LayoutError, Undecided
from ..parts import product
from .canonicalize import fuse, fuse_replica
from .integers import at_most, divided, if_equal, same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..axis import Axis
    from ..parts import Integer, Parts, RawIter

LIST_LIMIT = 2**16  # choices of copies that are listed on one axis, or
BIT_LIMIT = 2**24  # places that they may lie in
OPERATION = "equivalent"


def difference(one: Parts, other: Parts) -> Integer | None:
    """A flat index at which the owners differ; None where the functions are the same.

    Layouts of different sizes differ at the first index that only one of them has.
    Errors: Undecided where the copies of both are too many to list; LayoutError where it depends on symbols.
    """
    if one == other:
        return None
    offsets, replicas = [one[2], other[2]], [one[1], other[1]]
    if one[1] or other[1]:
        for k in range(2):
            replicas[k], offsets[k] = fuse_replica(replicas[k], offsets[k])
        if replicas[0] != replicas[1] and not _same_copies(*replicas):
            return 0
    for a in {**offsets[0], **offsets[1]}:
        x, y = offsets[0].get(a, 0), offsets[1].get(a, 0)
        if not same(x, y):
            if _apart(x, y):
                return 0
            raise _open(f"the offsets on {a}, {x} and {y}, are equal", if_equal(x, y))
    return _first_step(fuse(one[0]), fuse(other[0]))


def _first_step(one: tuple[RawIter, ...], other: tuple[RawIter, ...]) -> Integer | None:
    """The first index at which fused shards differ, found at a digit and not by counting."""
    if one == other:
        return None
    weight: Integer = 1
    for (e1, s1, a1), (e2, s2, a2) in zip(reversed(one), reversed(other), strict=False):
        if a1 is not a2 or not same(s1, s2):
            if not (at_most(2, e1) and at_most(2, e2)):
                break
            if a1 is a2 and not _apart(s1, s2):
                raise _open(f"the strides {s1} and {s2} on {a1} are equal", if_equal(s1, s2))
            # Fused, so a stride of 0 is on `m` and strides on different axes move apart, if they are known to move.
            if a1 is not a2 and not (_apart(s1, 0) or _apart(s2, 0)):
                raise _open(f"the strides {s1} on {a1} and {s2} on {a2} both move nothing")
            return weight
        if not same(e1, e2):
            # The shorter digit ends, and fused digits don't count on through their end.
            if type(e1) is int and type(e2) is int and _plain(one) and _plain(other):
                return weight * min(e1, e2)
            break
        weight = weight * e1
    else:
        if len(one) == len(other):
            return None
        if _plain(one) and _plain(other):
            return weight
    sizes = [product(it[0] for it in shard) for shard in (one, other)]
    if not same(*sizes) and _apart(*sizes):
        return sizes[0] if at_most(*sizes) else sizes[1]
    texts = [
        ", ".join(f"{e}:{s}" if a == "m" else f"{e}:{s}@{a}" for e, s, a in shard) for shard in (one, other)
    ]
    remedy = if_equal(*sizes)
    if remedy is None:  # of one size: do the iters of one of them count on where the other has one iter?
        longer = max(one, other, key=len)
        for (_, s1, a1), (e2, s2, a2) in pairwise(longer):
            remedy = remedy or (if_equal(s1, e2 * s2) if a1 is a2 and len(one) != len(other) else None)
    raise _open(f"the iters ({texts[0]}) and ({texts[1]}) are the same function", remedy)


def _plain(shard: tuple[RawIter, ...]) -> bool:
    return all(type(e) is int and type(s) is int for e, s, _ in shard)


def _apart(x: Integer, y: Integer) -> bool:
    """Whether ``x != y`` is proved."""
    return at_most(x + 1, y) or at_most(y + 1, x)


def _open(question: str, remedy: str | None = None) -> LayoutError:
    return LayoutError(OPERATION, f"it is neither proved nor refuted that {question}", remedy)


# --- copies --------------------------------------------------------------------------------------


def _same_copies(one: tuple[RawIter, ...], other: tuple[RawIter, ...]) -> bool:
    """Whether two canonical replicas reach the same set of distances."""
    axes: dict[Axis, tuple[list[RawIter], list[RawIter]]] = {}
    for k, replica in enumerate((one, other)):
        for it in replica:
            axes.setdefault(it[2], ([], []))[k].append(it)
    for a, (x, y) in axes.items():
        if x == y:
            continue
        if not (_plain(tuple(x)) and _plain(tuple(y))):
            if len(x) == len(y) and all(
                same(i[0], j[0]) and same(i[1], j[1]) for i, j in zip(x, y, strict=True)
            ):
                continue
            raise _open(f"the replicas on {a} make the same copies")
        if not _same_sums(x, y, a):
            return False
    return True


def _same_sums(x: list[RawIter], y: list[RawIter], a: Axis) -> bool:
    """Whether plain iters with positive strides reach the same sums: first by what is cheap to see."""
    lists: list[list[tuple[int, int]]] = [[(s, e) for e, s, _ in z] for z in (x, y)]  # type: ignore[misc]
    least, reach, divisor = zip(
        *[
            (min([s for s, _ in z], default=0), sum((e - 1) * s for s, e in z), gcd(*[s for s, _ in z]))
            for z in lists
        ],
        strict=True,
    )
    if least[0] != least[1] or reach[0] != reach[1] or divisor[0] != divisor[1]:
        return False
    if _gapped(lists[0]) and _gapped(lists[1]):
        return False  # the canonical form is unique where strides leave gaps
    if max(prod([e for _, e in z]) for z in lists) <= LIST_LIMIT:
        return _sums(lists[0]) == _sums(lists[1])
    if reach[0] // divisor[0] <= BIT_LIMIT:
        return _reached(lists[0], divisor[0]) == _reached(lists[1], divisor[0])
    raise Undecided(
        OPERATION,
        f"whether two replicas make the same copies on {a} isn't found by listing {LIST_LIMIT} choices or {BIT_LIMIT} "
        f"places",
    )


def _sums(digits: list[tuple[int, int]]) -> set[int]:
    """Every distance, of few choices."""
    found = {0}
    for s, e in digits:
        found = {v + c * s for v in found for c in range(e)}
    return found


def _reached(digits: list[tuple[int, int]], unit: int) -> int:
    """Every distance as a bit, of few places."""
    bits = 1
    for s, e in digits:
        count = 1
        while count < e:
            more = min(count, e - count)
            bits |= bits << (more * s // unit)
            count += more
    return bits


def _gapped(digits: list[tuple[int, int]]) -> bool:
    """Axe's gap condition: each stride lies beyond extent times stride of the one before it."""
    digits = sorted(digits)
    return all(e * s < t for (s, e), (t, _) in pairwise(digits))


def in_shape(flat: Integer, shape: tuple[Integer, ...]) -> tuple[Integer, ...]:
    """A flat index as a coordinate in `shape`, last dimension fastest."""
    out: list[Integer] = []
    for n in reversed(shape[1:]):
        flat, digit = divided(flat, n)
        out.append(digit)
    out.append(flat)
    return tuple(out[::-1])
