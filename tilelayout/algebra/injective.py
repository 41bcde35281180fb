"""Does every place hold one element at most?  And is every place of the spanned box held?

Iters on different axes are independent, so both questions are put to one axis at a time, to the digits that
move along it.  Two elements share a place iff there is a vector d, nonzero on the shard, with
``|d_k| < extent_k`` and ``sum(d_k * stride_k) = 0``; that is subset sum in general, and easy for nearly all
layouts that anybody writes.
"""

from __future__ import annotations

from math import gcd, prod

from ..errors import LayoutError, Undecided
from .canonicalize import fuse, fuse_replica
from .integers import at_most, if_at_most, quotient, same, sign
from .sums import solutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..axis import Axis
    from ..parts import Integer, Offset, RawIter

    # (stride, extent, parts): a digit with its stride made positive.  The parts, innermost first, are the digits of
    # the layout that it consists of, as (extent, weight): one step of such a digit changes the flat index by the
    # weight, which is negative where the stride was and 0 for a replica.
    Digit = tuple[int, int, tuple[tuple[int, int], ...]]
    Collision = tuple[Integer, Integer]

QUICK_BUDGET = 2**12  # sums tried before halves are listed
BUDGET = 2**17  # sums tried, and sums of both halves


def collision(shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], operation: str) -> Collision | None:
    """Two flat indices, the smaller first, that share a place; None where there are none.

    Copies of one element that share a place are no collision.
    Errors: Undecided where the budget ends first; LayoutError where it depends on symbols.
    """
    if replica:
        replica, _ = fuse_replica(replica, {})
    digits: dict[Axis, list[Digit]] = {}
    weight = 1
    for e, s, a in reversed(shard):
        if type(e) is not int or type(s) is not int:
            return _symbolic_collision(shard, replica, operation)
        if e != 1:
            if s == 0:
                return 0, weight
            digit = (s, e, ((e, weight),)) if s > 0 else (-s, e, ((e, -weight),))
            digits.setdefault(a, []).append(digit)
        weight *= e
    for e, s, a in replica:
        if type(e) is not int or type(s) is not int:
            return _symbolic_collision(shard, replica, operation)
        if a in digits:
            digits[a].append((s, e, ((e, 0),)))
    undecided: Undecided | None = None
    for mine in digits.values():
        mine.sort()
        reach = 0
        for s, e, _ in mine:
            if s <= reach:
                break
            reach += (e - 1) * s
        else:
            continue
        try:
            found = _searched(_reduced(mine), operation)
        except Undecided as reason:  # another axis may know
            undecided = reason
            continue
        if found is not None:
            return found
    if undecided is not None:
        raise undecided
    return None


def _reduced(digits: list[Digit]) -> list[Digit]:
    """What is left when digits that must be 0 in every d are taken away and runs are joined, to a fixpoint.

    Of digits sorted by stride the last must be 0 if its stride exceeds the reach of the others.  A digit must
    be 0 if the divisor common to the others asks for a larger multiple than it has.  A digit that counts on
    where another ends is one digit with it.
    """
    digits = list(digits)
    while True:
        before = len(digits)
        reach = sum((e - 1) * s for s, e, _ in digits)
        while digits:
            s, e, _ = digits[-1]
            reach -= (e - 1) * s
            if s <= reach:
                break
            digits.pop()
        k = 0
        while k < len(digits):
            s, e, parts = digits[k]
            # Only digits of the shard: what a joined digit says of the elements must not be nothing.
            mate = next((d for d in digits if d[0] == e * s and d[2][0][1] and parts[0][1]), None)
            if mate is None:
                k += 1
            else:
                digits[k] = (s, e * mate[1], parts + mate[2])
                digits.remove(mate)
        count = len(digits)
        after = [0] * (count + 1)
        for k in range(count - 1, -1, -1):
            after[k] = gcd(after[k + 1], digits[k][0])
        earlier = 0
        kept: list[Digit] = []
        for k, digit in enumerate(digits):
            s, e, _ = digit
            others = gcd(earlier, after[k + 1])
            # Without others the stride itself is the divisor: d * s = 0 has no other answer.
            if others == 0 or others // gcd(others, s) > e - 1:
                continue
            kept.append(digit)
            earlier = gcd(earlier, s)
        digits = kept
        if len(digits) == before:
            return digits


def _searched(digits: list[Digit], operation: str) -> Collision | None:
    if not any(parts[0][1] for _, _, parts in digits):
        return None
    for k, (s1, e1, _) in enumerate(digits):
        for j in range(k):
            s2, e2, _ = digits[j]
            common = gcd(s1, s2)
            if s2 // common < e1 and s1 // common < e2:
                d = [0] * len(digits)
                d[k], d[j] = s2 // common, -(s1 // common)
                found = _elements(digits, d)
                if found is not None:
                    return found
    digits = digits[::-1]  # strides fall
    try:
        return _tried(digits, QUICK_BUDGET, operation)
    except Undecided:
        pass
    half = _half(digits)
    if half is not None:
        return _met(digits, half)
    try:
        return _tried(digits, BUDGET, operation)
    except Undecided:
        strides, extents = (", ".join(str(d[i]) for d in digits) for i in (0, 1))
        raise Undecided(
            operation,
            f"whether extents ({extents}) on strides ({strides}) reach a place twice was not found among {BUDGET} sums",
        ) from None


def _tried(digits: list[Digit], budget: int, operation: str) -> Collision | None:
    """The first of the vectors d, one after the other."""
    for d in solutions([(s, 1 - e, e - 1) for s, e, _ in digits], 0, budget, operation):
        found = _elements(digits, d)
        if found is not None:
            return found
    return None


def _half(digits: list[Digit]) -> int | None:
    """Where to cut the digits so that both halves have few differences; None where they have too many."""
    counts = [2 * e - 1 for _, e, _ in digits]
    size, half = min((prod(counts[:k]) + prod(counts[k:]), k) for k in range(len(digits)))
    return half if size <= BUDGET else None


def _met(digits: list[Digit], half: int) -> Collision | None:
    """A vector d whose two halves cancel: all sums of one half are kept and looked up for the other."""
    kept: dict[int, tuple[bool, int]] = {}
    left, right = digits[:half], digits[half:]
    for moves, total, number in _differences(left):
        if total not in kept or (moves and not kept[total][0]):
            kept[total] = moves, number
    for moves, total, number in _differences(right):
        mate = kept.get(-total)
        if mate is not None and (moves or mate[0]):
            return _elements(digits, _numbered(left, mate[1]) + _numbered(right, number))
    return None


def _differences(digits: list[Digit]) -> list[tuple[bool, int, int]]:
    """Every d on these digits: whether it moves an element, its sum, and its number."""
    out = [(False, 0, 0)]
    for s, e, parts in digits:
        out = [
            (moves or bool(d and parts[0][1]), total + d * s, number * (2 * e - 1) + d + e - 1)
            for moves, total, number in out
            for d in range(1 - e, e)
        ]
    return out


def _numbered(digits: list[Digit], number: int) -> list[int]:
    d: list[int] = []
    for _, e, _ in reversed(digits):
        number, index = divmod(number, 2 * e - 1)
        d.append(index - (e - 1))
    d.reverse()
    return d


def _elements(digits: list[Digit], d: list[int]) -> Collision | None:
    """The two flat indices whose digits differ by `d`; None where only copies differ."""
    indices = [0, 0]
    for (_, _, parts), difference in zip(digits, d, strict=True):
        rest = abs(difference)
        for e, weight in parts:
            indices[(difference > 0) == (weight > 0)] += rest % e * abs(weight)
            rest //= e
    first, second = sorted(indices)
    return None if first == second else (first, second)


def _symbolic_collision(
    shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], operation: str
) -> Collision | None:
    axes: dict[Axis, list[tuple[Integer, Integer, Integer]]] = {}  # (extent, positive stride, weight)
    weight: Integer = 1
    for e, s, a in reversed(fuse(shard)):
        if s == 0 and at_most(2, e):
            return 0, weight
        axes.setdefault(a, []).append((e, s if sign(s, operation, "stride") >= 0 else -s, weight))
        weight = weight * e
    for e, s, a in replica:
        if a in axes:
            axes[a].append((e, s, 0))
    for a, digits in axes.items():
        found = _symbolic_axis(digits, a, operation)
        if found is not None:
            return found
    return None


def _symbolic_axis(
    digits: list[tuple[Integer, Integer, Integer]], a: Axis, operation: str
) -> Collision | None:
    """Take away digits that are proved to be 0 in every d: the stride exceeds the reach of the others, or theirs are
    multiples of stride times extent.
    """
    rest = list(digits)
    while any(weight != 0 for _, _, weight in rest):
        for k, (e, s, _) in enumerate(rest):
            others = rest[:k] + rest[k + 1 :]
            reach: Integer = sum([(f - 1) * t for f, t, _ in others], 0)
            if at_most(reach + 1, s) or (
                at_most(1, s) and all(quotient(t, s * e) is not None for _, t, _ in others)
            ):
                del rest[k]
                break
        else:
            for k, (e1, s1, w1) in enumerate(rest):
                for e2, s2, w2 in rest[:k]:
                    if w1 != 0 and w2 != 0 and same(s1, s2) and at_most(2, e1) and at_most(2, e2):
                        return (w2, w1) if at_most(w2, w1) else (w1, w2)
            raise LayoutError(
                operation,
                f"whether a place on {a} is reached twice depends on symbols: no stride of "
                f"{', '.join(f'{e}:{s}' for e, s, _ in rest)} is proved to exceed what others reach, or to divide them",
                _if_apart(rest),
            )
    return None


def _if_apart(digits: list[tuple[Integer, Integer, Integer]]) -> str | None:
    """The remedy for a stride, a symbol rather than a number, that isn't proved to exceed what the others reach."""
    total: Integer = sum([(e - 1) * s for e, s, _ in digits], 1)
    for e, s, _ in sorted(digits, key=lambda digit: type(digit[1]) is int):
        found = if_at_most(total - (e - 1) * s, s)
        if found:
            return found
    return None


# --- onto the box --------------------------------------------------------------------------------


def gap(
    shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], offset: Offset, operation: str
) -> dict[Axis, Integer] | None:
    """A place between the least and the greatest coordinate of every axis that nobody has; None without one.

    Sorted by stride, digits reach everything from 0 to their sum iff no stride leaves more than one step
    beyond what the smaller ones reach; else the next place is missed, since every larger digit overshoots.
    """
    least: Offset = dict(offset)
    digits: dict[Axis, list[tuple[Integer, Integer]]] = {}
    for e, s, a in (*shard, *replica):
        least.setdefault(a, 0)
        if e == 1 or s == 0:
            continue
        if (type(s) is int and s < 0) or (type(s) is not int and sign(s, operation, "stride") < 0):
            least[a] = least[a] + (e - 1) * s
            s = -s
        digits.setdefault(a, []).append((s, e))
    for a, mine in digits.items():
        reach = _reach(mine, a, operation)
        if reach is not None:
            least[a] = least[a] + reach + 1
            return least
    return None


def _reach(digits: list[tuple[Integer, Integer]], a: Axis, operation: str) -> Integer | None:
    """How far the digits reach without a gap, from 0; None where that is all they span."""
    reach: Integer = 0
    rest = digits
    if all(type(s) is int for s, _ in rest):
        rest = sorted(digits, key=lambda digit: digit[0])  # type: ignore[arg-type,return-value]  # plain
    while rest:
        for k, (s, e) in enumerate(rest):
            if at_most(s, reach + 1):
                reach = reach + (e - 1) * s
                rest = rest[:k] + rest[k + 1 :]
                break
        else:
            if all(at_most(reach + 2, s) for s, _ in rest) and any(at_most(2, e) for _, e in rest):
                return reach
            raise LayoutError(
                operation,
                f"whether {a} is covered beyond {reach} depends on symbols: it is not proved that one of the strides "
                f"{', '.join(str(s) for s, _ in rest)} is at most {reach + 1}",
                if_at_most(rest[0][0], reach + 1),
            )
    return None
