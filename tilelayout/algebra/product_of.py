"""Products: a layout repeated as another one says, each copy in places that no other has.

The free offsets of A are its complement without an end.  B says which of them the copies take, and in which order:
``C((j, i)) = complement(A)(B(j)) + A(i)``.
"""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import UNIT, M, nonzero, product
from .complement import gaps_and_rest
from .compose import compose
from .group import group
from .integers import sign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parts import Integer, Offset, Parts, RawIter


def copies(a: Parts, b: Parts, operation: str) -> tuple[tuple[RawIter, ...], Offset]:
    """The iters over the copies, and the offset of the whole.

    Pre-conditions: `a` is on `m`, injective, its strides nest (whatever it is, for one copy); `b` is on `m` with values
    from 0 up.
    Refused where the free offsets that `b` names are no layout: 0, 2, 8, 10, 16 are not.
    """
    highest: Integer = b[2].get(M, 0)
    for e, s, _ in b[0]:
        if e != 1 and sign(s, operation, "stride of B") > 0:
            highest = highest + (e - 1) * s
    if sign(highest, operation, "the largest value of B") < 0:
        raise LayoutError(
            operation, f"B is negative: at most {highest}; it numbers the free offsets of A from 0 on"
        )
    free: tuple[RawIter, ...] = (UNIT,)
    if highest != 0:  # a single copy asks nothing of A
        gaps, beyond = gaps_and_rest(a, operation)
        # As many of the endless outermost digit as can be asked for.
        free = ((highest + 1, beyond, M), *reversed(gaps))
    shard, _, begin = compose((free, (), {}), b, operation)
    offset = dict(a[2])
    for axis, value in begin.items():
        offset[axis] = offset.get(axis, 0) + value
    return shard, nonzero(offset)


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
