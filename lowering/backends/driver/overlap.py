"""Whether strided arrays share bytes: exactly, by integer arithmetic.  No driver may enter.

An array is the bytes ``pointer + sum(index * stride) + [0, width)``.  Two share one when a bounded combination of
strides falls into an interval, which is decided dimension by dimension, large strides first: of each, few values leave
the rest within reach when strides are nested, as those of most views are.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from tilelayout import Undecided

_STEPS = 200_000
"""Values that are tried before the question is left open: some 0.1 s."""

Terms = tuple[tuple[int, int], ...]
"""(stride, extent) of dimensions: strides positive, extents above 1."""


def reach(shape: tuple[int, ...], strides: tuple[int, ...], width: int) -> tuple[int, int]:
    """The first byte of an array, counted from its pointer, and the one past its last; (0, 0) for an empty one.

    >>> reach((4, 3), (100, 4), 4), reach((4,), (-8,), 8), reach((0, 3), (4, 4), 4)
    ((0, 312), (-24, 8), (0, 0))
    """
    if 0 in shape:
        return 0, 0
    low = high = 0
    for n, s in zip(shape, strides, strict=True):
        if s < 0:
            low += (n - 1) * s
        else:
            high += (n - 1) * s
    return low, high + width


@lru_cache(maxsize=4096)
def share_bytes(
    distance: int,
    shape: tuple[int, ...], strides: tuple[int, ...], width: int,
    other_shape: tuple[int, ...], other_strides: tuple[int, ...], other_width: int,
) -> bool:  # fmt: skip
    """Whether an array and another one whose pointer is `distance` bytes behind it have a byte in common.

    Pre-condition: strides are in bytes, widths are those of an element.
    Errors: Undecided for many dimensions of strides that are not nested.

    Two halves of rows that lie in one tensor interleave and share nothing, until one is a byte too long:

    >>> share_bytes(64, (8, 16), (128, 4), 4, (8, 16), (128, 4), 4)
    False
    >>> share_bytes(64, (8, 17), (128, 4), 4, (8, 16), (128, 4), 4)
    True
    """
    if 0 in shape or 0 in other_shape:
        return False
    mine, low = _terms(shape, strides)
    others, other_low = _terms(other_shape, other_strides)
    # mine + low + a = distance + others + other_low + b, with 0 <= a < width and 0 <= b < other_width.
    target = distance + other_low - low
    for stride, n in others:  # -stride * i is stride * (n - 1 - i) less stride * (n - 1)
        target += stride * (n - 1)
    return _reaches(_joined((*mine, *others)), target - (width - 1), target + (other_width - 1))


@lru_cache(maxsize=4096)
def self_sharing(shape: tuple[int, ...], strides: tuple[int, ...], width: int) -> bool:
    """Whether two elements of one array have a byte in common.

    Errors: Undecided for many dimensions of strides that are not nested.

    >>> self_sharing((4, 3), (12, 4), 4), self_sharing((4, 3), (8, 4), 4), self_sharing((4,), (0,), 4)
    (False, True, True)
    """
    if 0 in shape:
        return False
    if any(s == 0 and n > 1 for n, s in zip(shape, strides, strict=True)):
        return True
    terms, _ = _terms(shape, strides)
    ordered = sorted(terms)
    end = width
    for stride, n in ordered:
        if stride < end:
            break
        end += stride * (n - 1)
    else:
        return False  # nested: each stride passes over all that is smaller
    # Two coordinates differ first in dimension k, by 1 or more; the later ones by anything.
    for k, (stride, n) in enumerate(ordered):
        free = tuple([(s, 2 * m - 1) for s, m in ordered[k + 1 :]])
        middle = sum(s * (m - 1) for s, m in ordered[k + 1 :])
        first: Terms = ((stride, n - 1),) if n > 2 else ()
        low = middle - stride
        if _reaches(_joined((*first, *free)), low - (width - 1), low + (width - 1)):
            return True
    return False


def _terms(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[Terms, int]:
    """The dimensions that move, with positive strides, and the offset that turning them takes."""
    terms: list[tuple[int, int]] = []
    low = 0
    for n, s in zip(shape, strides, strict=True):
        if s < 0:
            low += s * (n - 1)
        if s and n > 1:
            terms.append((abs(s), n))
    return tuple(terms), low


def _joined(terms: Terms) -> Terms:
    """Dimensions of one stride are one dimension: strides falling."""
    lengths: dict[int, int] = {}
    for stride, n in terms:
        lengths[stride] = lengths.get(stride, 1) + n - 1
    return tuple(sorted(lengths.items(), reverse=True))


def _reaches(terms: Terms, low: int, high: int) -> bool:
    """Whether ``sum(stride * i)``, each i from 0 to below its extent, is anywhere from `low` to `high`."""
    spans, divisors = [0], [0]
    for stride, n in reversed(terms):
        spans.append(spans[-1] + stride * (n - 1))
        divisors.append(gcd(divisors[-1], stride))
    spans.reverse()
    divisors.reverse()
    steps = 0

    def search(at: int, low: int, high: int) -> bool:
        nonlocal steps
        low, high = max(low, 0), min(high, spans[at])
        if low > high:
            return False
        if at == len(terms):
            return True
        divisor = divisors[at]
        if -(-low // divisor) > high // divisor:  # all sums are its multiples
            return False
        stride, n = terms[at]
        first = max(0, -(-(low - spans[at + 1]) // stride))
        for i in range(first, min(n - 1, high // stride) + 1):
            steps += 1
            if steps > _STEPS:
                raise Undecided(
                    "launch", f"whether arrays of strides {[s for s, _ in terms]} overlap takes too long"
                )
            if search(at + 1, low - stride * i, high - stride * i):
                return True
        return False

    return search(0, low, high)
