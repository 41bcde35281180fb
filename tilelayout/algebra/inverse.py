"""Inverses: from places on `m` back to flat indices.

`inverse` of a bijection onto ``[0, n)``; `right_inverse`, the largest R with ``A(R(j)) = j``.  The left inverse is in
`left_inverse`.  All digits are taken with positive strides: a negative stride is walked from its other end, which
gives the inverse a negative stride and an offset in return.
"""

from __future__ import annotations

from ..errors import LayoutError, Undecided
from ..parts import UNIT, M
from .canonicalize import fuse
from .complement import digits_on_m
from .integers import at_most, either, if_at_most, if_equal, same
from .recognize import listed, recognized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parts import Integer, Parts, RawIter
    from .complement import Digit

LIST_LIMIT = 2**16
"""Size up to which the right inverse of a layout that overlaps itself, or begins below 0, is searched."""

SEARCH_LIMIT = 2**18
"""Values that such a search compares."""


def inverse(a: Parts, operation: str = "inverse") -> Parts:
    """Pre-condition: `a` is a bijection onto ``[0, size)`` on `m`.
    Post-condition: ``result(a(i)) = i`` and ``a(result(x)) = x`` for all i and x in ``[0, size)``.
    """
    digits, least, first = digits_on_m((fuse(a[0]), a[1], a[2]), operation)
    if least != 0 and not same(least, 0):
        raise LayoutError(
            operation, f"not onto [0, size): the least value is {least}, not 0", if_equal(least, 0)
        )
    filled: Integer = 1
    for s, e, _ in digits:
        if s != filled and not same(s, filled):
            shown = ", ".join(f"{e}:{t}" for t, e, _ in digits)
            raise LayoutError(
                operation,
                f"not a bijection onto [0, size): sorted by stride ({shown}), the stride {s} should be {filled}",
                either(
                    "left_inverse for a layout with gaps, right_inverse for what is contiguous",
                    if_equal(s, filled),
                ),
            )
        filled = s * e
    return _read_back(digits, first)


def right_inverse(a: Parts, operation: str = "right_inverse") -> Parts:
    """Post-condition: ``a(result(j)) = j`` for all j below the size of the result, and no layout of another size
    above that has it.

    Of an injective layout from 0 up, that is the run of nesting strides from 1 on.  Otherwise an element is at
    several places or the run begins inside, and the largest is searched among all layouts.
    Errors: LayoutError where no element is at 0, or it depends on symbols; Undecided where the search is too long.
    """
    digits, least, first = digits_on_m((fuse(a[0]), a[1], a[2]), operation, still=True)
    filled: Integer = 1
    count = 0
    for s, e, _ in digits:
        if s != filled and not same(s, filled):
            break
        filled = s * e
        count += 1
    beyond = digits[count:]
    if same(least, 0) and (not beyond or all(at_most(filled + 1, s) for s, _, _ in beyond)):
        return _read_back(digits[:count] if beyond else digits, first)
    if type(least) is not int or not all(type(s) is int and type(e) is int for s, e, _ in digits):
        shown = ", ".join(f"{e}:{s}" for s, e, _ in digits)
        raise LayoutError(
            operation,
            f"how far the layout counts on from 0 depends on symbols: sorted by stride ({shown}) from {least}, what "
            f"follows the first {filled} places is not proved to begin beyond them",
            if_equal(least, 0) or if_at_most(filled + 1, *[s for s, _, _ in digits[count : count + 1]]),
        )
    return _searched(a, operation)


def _read_back(digits: list[Digit], first: Integer) -> Parts:
    """The layout that reads contiguous digits back into the flat index, which is `first` at place 0."""
    iters: tuple[RawIter, ...] = tuple([(e, weight, M) for _, e, weight in reversed(digits)])
    return iters or (UNIT,), (), {} if first == 0 else {M: first}


# --- layouts that overlap themselves, or begin below 0 -----------------------------------------------


def _searched(a: Parts, operation: str) -> Parts:
    """The largest right inverse among all layouts, digit by digit from the inside.

    Where ``[0, filled)`` is read back, the next digit may begin with any element at `filled` and go on for as long as
    the values do.
    """
    values = listed(a, LIST_LIMIT)
    if values is None:
        raise Undecided(
            operation,
            f"of more than {LIST_LIMIT} elements that overlap or have places below 0, none is searched",
        )
    at: dict[int, list[int]] = {}
    for i, v in enumerate(values):
        at.setdefault(v, []).append(i)
    if 0 not in at:
        raise LayoutError(operation, f"no element is at 0: the least place is {min(values)}")
    most = next(j for j in range(len(values) + 1) if j not in at)
    best: list[int] = []
    compared = 0

    def extended(found: list[int]) -> bool:
        """Whether `most` was reached from what reads [0, len(found)) back."""
        nonlocal best, compared
        if len(found) > len(best):
            best = found
        filled = len(found)
        if filled == most:
            return True
        for first in at.get(filled, ()):
            step = first - found[0]
            runs = [found]
            while (len(runs) + 1) * filled <= most:
                start = len(runs) * step
                compared += filled
                if compared > SEARCH_LIMIT:
                    raise Undecided(
                        operation,
                        f"the largest right inverse is not found among {SEARCH_LIMIT} values; one has size {len(best)}",
                    )
                if any(
                    not 0 <= i + start < len(values) or values[i + start] != len(runs) * filled + k
                    for k, i in enumerate(found)
                ):
                    break
                runs.append([i + start for i in found])
            for count in range(len(runs), 1, -1):
                if extended([i for run in runs[:count] for i in run]):
                    return True
        return False

    for base in at[0]:
        if extended([base]):
            break
    digits = recognized(best, len(best)) or []
    offset = {M: best[0]} if best[0] else {}
    return tuple([(e, s, M) for e, s in reversed(digits)]) or (UNIT,), (), offset  # type: ignore[return-value]
