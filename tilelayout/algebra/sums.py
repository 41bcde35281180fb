"""Sums of bounded multiples: every way to write an integer as a combination of strides.

The one search behind injectivity, and behind the question who sits at a place.  It is exact; what can be
decided by the range or the divisor of what is left is decided so, and the budget bounds the rest.
"""

from __future__ import annotations

from math import gcd

from ..errors import Undecided

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Term = tuple[int, int, int]  # (stride, least multiple, largest multiple); the stride is positive


def solutions(terms: Sequence[Term], target: int, budget: int, operation: str) -> Iterator[list[int]]:
    """Every list d with ``low_k <= d_k <= high_k`` and ``sum(d_k * stride_k) == target``.

    Strides that fall from term to term leave the least to be tried.  Each multiple is bounded by what the
    others can still make up, and taken only in the residue class that their common divisor asks for; the last
    two are therefore solved and not searched.
    Errors: Undecided when more than `budget` multiples were tried.
    """
    count = len(terms)
    least, most, common = [0] * (count + 1), [0] * (count + 1), [0] * (count + 1)
    classes = [(1, 1, 0)] * count  # common divisor, modulus, inverse of the stride to that modulus
    for k in range(count - 1, -1, -1):
        stride, low, high = terms[k]
        least[k] = least[k + 1] + stride * low
        most[k] = most[k + 1] + stride * high
        common[k] = shared = gcd(common[k + 1], stride)
        modulus = common[k + 1] // shared or 1
        classes[k] = shared, modulus, pow(stride // shared, -1, modulus)
    chosen = [0] * count
    tried = 0

    def walk(k: int, left: int) -> Iterator[list[int]]:
        nonlocal tried
        if k == count:
            if left == 0:
                yield chosen.copy()
            return
        shared, modulus, inverse = classes[k]
        if left % shared:
            return
        stride, low, high = terms[k]
        low = max(low, -((most[k + 1] - left) // stride))
        high = min(high, (left - least[k + 1]) // stride)
        low += (left // shared * inverse - low) % modulus
        for d in range(low, high + 1, modulus):
            tried += 1
            if tried > budget:
                raise Undecided(
                    operation,
                    f"more than {budget} sums of the strides {', '.join(str(t[0]) for t in terms)} are to be tried",
                )
            chosen[k] = d
            yield from walk(k + 1, left - d * stride)

    if least[0] <= target <= most[0]:
        yield from walk(0, target)
