"""Products: a layout repeated as another one says, each copy in places that no other has.

The free offsets of A are its complement without an end.  B says which of them the copies take, and in which order:
``C((j, i)) = complement(A)(B(j)) + A(i)``.
"""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import UNIT, M, nonzero, product
from .complement import digits_on_m, gaps_between
from .compose import compose, compose_apart
from .group import group
from .integers import sign
from .recognize import listed, recognized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parts import Integer, Offset, Parts, RawIter


LIST_LIMIT = 2**16
"""Places of all copies that are listed where strides don't nest."""


def copies(a: Parts, b: Parts, operation: str) -> tuple[tuple[RawIter, ...], Offset]:
    """The iters over the copies, and the offset of the whole.

    Pre-conditions: `a` is on `m`, injective, with strides that nest or few places; for one copy it may be anything.
    `b` is on `m` with values from 0 up.
    Refused where the free offsets that `b` names are no layout: 0, 2, 8, 10, 16 are not.
    """
    highest: Integer = b[2].get(M, 0)
    for e, s, _ in b[0]:
        if e != 1 and (s > 0 if type(s) is int else sign(s, operation, "stride of B") > 0):
            highest = highest + (e - 1) * s
    if highest < 0 if type(highest) is int else sign(highest, operation, "the largest value of B") < 0:
        raise LayoutError(
            operation, f"B is negative: at most {highest}; it numbers the free offsets of A from 0 on"
        )
    free: tuple[RawIter, ...] = (UNIT,)
    if highest != 0:
        digits, _, _ = digits_on_m(a, operation)
        try:
            gaps, beyond = gaps_between(digits, operation)
        except LayoutError:
            found = _listed(a, b, highest, operation)
            if found is None:
                raise
            return found
        # As many of the endless outermost digit as can be asked for.
        free = ((highest + 1, beyond, M), *reversed(gaps))
    if not b[1] and not b[2]:
        apart = compose_apart(free[::-1], (), b[0])
        if apart is not None:  # the usual case: nothing to add to the offset
            return apart[1], a[2]
    shard, _, begin = compose((free, (), {}), b, operation)
    return shard, _sum(a[2], begin.get(M, 0))


def _listed(
    a: Parts, b: Parts, highest: Integer, operation: str
) -> tuple[tuple[RawIter, ...], Offset] | None:
    """The same place by place, for strides that don't nest: each copy at the least place that is still free.

    None where a copy meets another there, where the offsets are no layout, and where there is too much to list.
    """
    if type(highest) is not int or not all(type(x) is int for it in (*a[0], *b[0]) for x in it[:2]):
        return None
    places, numbers = listed(a, LIST_LIMIT // (highest + 1)), listed(b, LIST_LIMIT)
    if places is None or numbers is None or min(numbers) < 0 or len(set(places)) < len(places):
        return None
    least = min(places)
    held: set[int] = set()
    free: list[int] = []
    x = 0
    while len(free) <= highest:
        if x not in held:
            copy = {place - least + x for place in places}
            if copy & held:
                return None
            held |= copy
            free.append(x)
        x += 1
    found = recognized([free[n] for n in numbers], len(numbers))
    if found is None:
        return None
    shard: tuple[RawIter, ...] = tuple([(e, s, M) for e, s in reversed(found)])
    return shard or (UNIT,), _sum(a[2], free[numbers[0]])


def _sum(offset: Offset, more: Integer) -> Offset:
    return nonzero({**offset, M: offset.get(M, 0) + more})


def by_dimension(
    a: Parts,
    a_shape: tuple[Integer, ...],
    b: Parts,
    b_shape: tuple[Integer, ...],
    raked: bool,
    operation: str,
) -> tuple[tuple[RawIter, ...], Offset, tuple[Integer, ...]]:
    """The shard, offset and shape of a product whose dimension d runs over dimension d of both.

    Blocked: copies stay whole, the index is ``y[d] * a_shape[d] + x[d]``.  Raked: they are interleaved, the index is
    ``x[d] * b_shape[d] + y[d]``; x is in A and y counts copies.
    """
    if len(a_shape) != len(b_shape):
        raise LayoutError(
            operation,
            f"A's shape {a_shape} and B's shape {b_shape} differ in rank",
            "give both shapes, with dimensions of 1 where one of them has none",
        )
    over, offset = copies(a, b, operation)
    over, over_seps = group(over, b_shape, operation)
    within, within_seps = group(a[0], a_shape, operation)
    out: list[RawIter] = []
    for d in range(len(a_shape)):
        pieces = [over[over_seps[d] : over_seps[d + 1]], within[within_seps[d] : within_seps[d + 1]]]
        if raked:
            pieces.reverse()
        out += pieces[0] + pieces[1]
    return tuple(out), offset, tuple([product(pair) for pair in zip(a_shape, b_shape, strict=True)])
