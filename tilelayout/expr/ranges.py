"""Interval arithmetic on exact integers: what is known about a result from the bounds of its operands.

A range is a pair of inclusive ends; None is an unbounded one.  Nothing here knows expressions.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    Range = tuple[int | None, int | None]

# A left shift by more than this leaves its result unbounded: nobody addresses with 2**4096.
MAX_SHIFT = 4096


def times(x: Range, y: Range) -> Range:
    """The products: the extreme corners, where zero times unbounded is zero.

    >>> times((-2, 3), (4, 5)), times((0, None), (1, None)), times((-1, 0), (0, None))
    ((-10, 15), (0, None), (None, 0))
    """
    finite: list[int] = []
    unbounded: set[bool] = set()  # whether an infinite corner is positive
    for a, sign_a in ((x[0], -1), (x[1], 1)):
        for b, sign_b in ((y[0], -1), (y[1], 1)):
            if a is not None and b is not None:
                finite.append(a * b)
            elif a == 0 or b == 0:
                finite.append(0)
            else:
                unbounded.add((sign_a if a is None else a) * (sign_b if b is None else b) > 0)
    return None if False in unbounded else min(finite), None if True in unbounded else max(finite)


def power(x: Range, exponent: int) -> Range:
    """The powers with an exponent of at least 1; an even one has no negative value.

    >>> power((-3, 2), 2), power((-3, 2), 3)
    ((0, 9), (-27, 18))
    """
    result = x
    for _ in range(exponent - 1):
        result = times(result, x)
    lo, hi = result
    return (0, hi) if exponent % 2 == 0 and (lo is None or lo < 0) else (lo, hi)


def divide(x: Range, divisor: Range) -> Range:
    """The floor quotients by a divisor of at least 1.

    >>> divide((-7, 7), (2, 2)), divide((-7, 7), (2, None)), divide((5, None), (1, 2))
    ((-4, 3), (-4, 3), (2, None))
    """
    lo, hi = x
    least, most = divisor
    least = least or 1

    def by_most(end: int) -> int:
        return end // most if most is not None else -1 if end < 0 else 0

    return (
        None if lo is None else by_most(lo) if lo >= 0 else lo // least,
        None if hi is None else hi // least if hi >= 0 else by_most(hi),
    )


def modulo(x: Range, divisor: Range) -> Range:
    """The remainders by a divisor of at least 1.

    >>> modulo((-7, 7), (4, 4)), modulo((0, 2), (4, 4)), modulo((0, 9), (1, None))
    ((0, 3), (0, 2), (0, 9))
    """
    lo, hi = x
    most = divisor[1]
    if lo is None or lo < 0 or hi is None or (most is not None and most - 1 < hi):
        hi = None if most is None else most - 1
    return 0, hi


def bitwise(symbol: str, given: list[Range]) -> Range:
    """What ``^``, ``&`` or ``|`` of the ranges gives.

    >>> bitwise("^", [(0, 5), (0, 9)]), bitwise("&", [(0, 5), (None, None)]), bitwise("|", [(-3, 2), (0, 9)])
    ((0, 15), (0, 5), (-16, 15))
    """
    nonnegative = [(lo, hi) for lo, hi in given if lo is not None and lo >= 0]
    ends = [e for pair in given for e in pair if e is not None]
    # Two's complement of this width holds every operand, hence the result.
    reach = 1 << max(e.bit_length() for e in ends) if len(ends) == 2 * len(given) else None
    if symbol == "&" and nonnegative:
        tops = [hi for _, hi in nonnegative if hi is not None]
        return 0, min(tops) if tops else None
    if len(nonnegative) == len(given):
        lo = max(lo or 0 for lo, _ in nonnegative) if symbol == "|" else 0
        return lo, None if reach is None else reach - 1
    return (None, None) if reach is None else (-reach, reach - 1)


def shift(symbol: str, x: Range, count: Range) -> Range:
    """``x << count`` or ``x >> count`` for counts that aren't negative.

    >>> shift("<<", (-1, 3), (0, 2)), shift(">>", (-9, 9), (1, None)), shift("<<", (1, 1), (0, None))
    ((-4, 12), (-5, 4), (1, None))
    """
    lo, hi = x
    fewest, most = count[0] or 0, count[1]
    if symbol == "<<":
        # Away from zero the largest count matters, else the smallest.
        return _left(lo, most if lo is not None and lo < 0 else fewest), _left(
            hi, most if hi is not None and hi > 0 else fewest
        )
    return (
        None if lo is None else lo >> fewest if lo < 0 else 0 if most is None else lo >> most,
        None if hi is None else hi >> fewest if hi >= 0 else -1 if most is None else hi >> most,
    )


def _left(end: int | None, steps: int | None) -> int | None:
    if end is None or end == 0:
        return end
    return None if steps is None or steps > MAX_SHIFT else end << steps
