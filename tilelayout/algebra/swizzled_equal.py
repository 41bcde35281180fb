"""Is a swizzled layout the same function as another layout?  Decided on the residues of its values.

Only `m` is swizzled, so only `m` is compared here; the other axes are those of `equivalent`.  ``h(A(x)) == B(x)`` says
that B is farther than A by the distance that h moves the residue of A(x).  Over the digits that A and B have in common
this is checked step by step: whatever a step leads to is the value of some x.
"""

from __future__ import annotations

from itertools import pairwise

from ..errors import LayoutError, Undecided
from ..parts import M, product
from .canonicalize import fuse, fuse_replica
from .equivalent import difference
from .group import split
from .residues import Residues, distances, steps
from .window import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    from ..parts import Integer, Parts, RawIter

    Map = Callable[[Any], Any]

LIST_LIMIT: Final = 2**16
"""Places that are listed where arithmetic doesn't decide."""


def swizzled_difference(a: Parts, b: Parts, apply: Map, width: int, operation: str) -> Integer | None:
    """A flat index at which the owners differ, `apply` taken of the values of `a` on `m`; None where there is none.

    Pre-condition: `apply` is linear and a bijection of the low `width` bits.  Layouts of different sizes differ at the
    first index that only one of them has.
    Errors: Undecided where neither arithmetic nor a list of `LIST_LIMIT` places tells; LayoutError for symbols.
    """
    if not width:
        return difference(a, b)
    found = difference(*[_elsewhere(x) for x in (a, b)])
    if found is not None:
        return found
    one, other = _on_memory(a, operation), _on_memory(b, operation)
    if one[1] == other[1]:
        try:
            found = _stepwise(one, other, apply, width, operation)
        except Undecided:
            return _listed(one, other, apply, operation)
        if found is None or not one[1]:
            return found
    return _listed(one, other, apply, operation)


def _elsewhere(parts: Parts) -> Parts:
    """What happens on the other axes."""
    shard, replica, offset = parts
    still = tuple([(e, 0 if a is M else s, a) for e, s, a in shard])
    return (
        still,
        tuple([it for it in replica if it[2] is not M]),
        {a: v for a, v in offset.items() if a is not M},
    )


def _on_memory(parts: Parts, operation: str) -> Parts:
    """What happens on `m`, in plain numbers and canonical form."""
    shard, replica, offset = parts
    for x in (*[x for it in (*shard, *replica) for x in it[:2]], *offset.values()):
        if type(x) is not int:
            raise LayoutError(operation, f"{x} is symbolic", "substitute a number first")
    moving = tuple([(e, s if a is M else 0, M) for e, s, a in shard])
    copies, start = fuse_replica(tuple([it for it in replica if it[2] is M]), {M: offset.get(M, 0)})
    return fuse(moving), copies, start


def _stepwise(a: Parts, b: Parts, apply: Map, width: int, operation: str) -> int | None:
    """A flat index at which some copy differs from its namesake; None where there is none."""
    base, other = int(a[2].get(M, 0)), int(b[2].get(M, 0))
    if apply(base) != other:
        return 0
    both = common_digits(a[0], b[0])
    if both is None:
        raise Undecided(operation, "the digits of both layouts have no common splitting")
    both += [(int(e), int(s), int(s), 0) for e, s, _ in a[1]]
    reached = Residues(width, base, [(e, s) for e, s, _, _ in both], operation)
    delta = distances(apply, reached.bits)
    for e, s, t, weight in both:
        for count in steps(e):
            stray = reached.stray(delta, count * s, count * (t - s))
            if stray is not None:
                return reached.way(stray) + count * weight
            reached.add(count * s, count * weight)
    return None


def common_digits(a: tuple[RawIter, ...], b: tuple[RawIter, ...]) -> list[tuple[int, int, int, int]] | None:
    """(extent, stride in a, stride in b, weight) over the coarsest common splitting; None where there is none.

    >>> (
    ...     common_digits(((8, 1, M),), ((2, 9, M), (4, 1, M))),
    ...     common_digits(((2, 7, M), (3, 1, M)), ((3, 7, M), (2, 1, M))),
    ... )
    ([(2, 4, 9, 4), (4, 1, 1, 1)], None)
    """
    weights = {1}
    for shard in (a, b):
        weight = 1
        for it in reversed(shard):
            weight *= int(it[0])
            weights.add(weight)
    rising = sorted(weights)
    shape: list[int] = []
    for fewer, more in pairwise(rising):
        if more % fewer:
            return None
        shape.insert(0, more // fewer)
    halves = [split(shard, tuple(shape)) for shard in (a, b)]
    if halves[0] is None or halves[1] is None:
        return None
    digits = zip(halves[0][0], halves[1][0], rising[-2::-1], strict=True)
    return [(int(e), int(s), int(t), weight) for (e, s, _), (_, t, _), weight in digits]


def _listed(a: Parts, b: Parts, apply: Map, operation: str) -> int | None:
    """By the places of every element; those at which digits end first, since layouts mostly differ there."""
    size = int(product(it[0] for it in a[0]))
    copies = max([int(product(it[0] for it in x[1])) for x in (a, b)])
    ends = {0, size - 1}
    for shard, _, _ in (a, b):
        weight = 1
        for it in reversed(shard):
            ends.update((weight % size, weight - 1))
            weight *= int(it[0])

    def differ(flat: int) -> bool:
        return _places(a, flat, apply) != _places(b, flat, lambda v: v)

    if copies * len(ends) <= LIST_LIMIT:
        for flat in sorted(ends):
            if differ(flat):
                return flat
    if copies * size > LIST_LIMIT:
        raise Undecided(
            operation,
            f"the digits of both layouts have no common splitting that tells, and {copies * size} places are too many "
            f"to list ({LIST_LIMIT} at most)",
            "compare slices",
        )
    return next((flat for flat in range(size) if differ(flat)), None)


def _places(parts: Parts, flat: int, apply: Map) -> set[int]:
    """The values on `m` of the copies of an element, `apply` taken of each."""
    shard, replica, offset = parts
    start = value([(it[0], {it[2]: it[1]}) for it in reversed(shard)], flat).get(M, 0)
    out: set[int] = {int(offset.get(M, 0) + start)}
    for e, s, _ in replica:
        out = {v + c * int(s) for v in out for c in range(int(e))}
    return {apply(v) for v in out}
