"""Composition: one layout read through another, ``C(i) = A(B(i))``.

A fused is a mixed-radix counter.  The sum of B's steps stays digit by digit what the steps are alone as long as
nothing carries, so each iter of B is walked through the digits of A, and the largest digits that all of them together
reach are kept below the extents.  Where something carries, composition by iters would be wrong (that is the classical
bug), but there may still be a layout with that table: then the table is listed and recognized.
"""

from __future__ import annotations

from math import gcd, prod

from ..errors import LayoutError, Undecided
from ..parts import M, nonzero
from .canonicalize import fuse, fuse_replica
from .compose_symbols import compose_symbolic
from .recognize import Code, recognized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..axis import Axis
    from ..parts import Integer, Parts, RawIter

    Counter = tuple[tuple[int, int, Axis], ...]  # iters of plain integers

LIST_LIMIT = 2**16
"""How many positions of a composition are listed where it can't be decided by iters."""


def compose(a: Parts, b: Parts, operation: str = "compose") -> Parts:
    """Post-condition: the size of `b`, and at every index i the owners that `a` has at ``b(i)``.

    `b` moves on `m` alone and has no replica; its values lie in ``[0, size(a))``.  Returns a fused shard.
    Refused when no shard has the table.
    Errors: LayoutError; Undecided where it takes more than `LIST_LIMIT` positions to tell.
    """
    steps, base = _right_side(b, operation)
    shard, replica, offset = a
    digits = fuse(shard)
    low = high = base
    for it in steps:
        reach = (it[0] - 1) * it[1]
        if type(reach) is not int or type(low) is not int:
            return compose_symbolic(digits, replica, offset, steps, base, operation)
        if reach < 0:
            low += reach
        else:
            high += reach  # type: ignore[operator,assignment]  # plain while low is
    size: Integer = 1
    plain = type(low) is int
    for e, s, _ in digits:
        size = size * e
        plain = plain and type(s) is int
    if not plain or type(size) is not int:
        return compose_symbolic(digits, replica, offset, steps, base, operation)
    if low < 0 or high >= size:  # type: ignore[operator]  # plain
        raise LayoutError(
            operation,
            f"the codomain of B exceeds the size of A: B reaches from {low} to {high}, A has {size} elements",
        )
    counter = digits[::-1]
    found = _walked(counter, steps, low)  # type: ignore[arg-type]  # plain
    if found is None:
        found = _apart(counter, steps, low, operation)  # type: ignore[arg-type]  # plain
    if base != 0:
        offset = dict(offset)
        rest: int = base  # type: ignore[assignment]
        for e, s, axis in counter:
            rest, digit = divmod(rest, e)  # type: ignore[assignment,operator]
            if digit:
                offset[axis] = offset.get(axis, 0) + digit * s
        offset = nonzero(offset)
    found.reverse()
    return fuse(tuple(found)), replica, offset


def compose_apart(
    counter: tuple[RawIter, ...], outer: tuple[RawIter, ...], inner: tuple[RawIter, ...]
) -> tuple[tuple[RawIter, ...], tuple[RawIter, ...], int] | None:
    """The shard of ``compose(a, outer + inner)`` as the iters of `outer` and those of `inner`, and the latter's size.

    `counter` is A, fused, its innermost iter first.
    None where that isn't settled by walking plain integers upwards from 0 with nothing carried: ask `compose`.
    """
    for e, s, _ in counter:
        if type(e) is not int or type(s) is not int:
            return None
    size = 1
    for f, t, axis in inner:
        if type(f) is not int or type(t) is not int or t < 0 or (t and axis is not M):
            return None
        size *= f
    for f, t, axis in outer:
        if type(f) is not int or type(t) is not int or t < 0 or (t and axis is not M):
            return None
    found = _walked(counter, outer + inner, 0)  # type: ignore[arg-type]  # plain
    if found is None:
        return None
    cut, count = 0, 1
    while count != size:
        count *= found[cut][0]  # type: ignore[operator]
        cut += 1
    found.reverse()
    cut = len(found) - cut
    return fuse(tuple(found[:cut])), fuse(tuple(found[cut:])), size


def _right_side(b: Parts, operation: str) -> tuple[tuple[RawIter, ...], Integer]:
    """The iters and the offset of B on `m`."""
    shard, replica, offset = b
    if replica and fuse_replica(replica, {})[0]:
        raise LayoutError(
            operation,
            f"B has a replica ({', '.join(f'{e}:{s}' for e, s, _ in replica)}): an index would have several values",
            "give the replica to A, or to the result",
        )
    steps = fuse(shard)
    for _, _, axis in steps:
        if axis is not M:
            raise LayoutError(
                operation, f"B moves on {axis}; its values index A and lie on m", "project B to m first"
            )
    for axis in offset:
        if axis is not M:
            raise LayoutError(operation, f"B has an offset on {axis}; its values index A and lie on m")
    return steps, offset.get(M, 0)


def _walked(counter: Counter, steps: Counter, low: int) -> list[RawIter] | None:
    """The iters of the composition, innermost first, where nothing carries; None where something does.

    `counter` is A, innermost digit first; `low` is the least value of B, whose digits are what the walk starts from.
    """
    last = len(counter) - 1
    room = [e - 1 for e, _, _ in counter]
    if low:
        for j, (e, _, _) in enumerate(counter):
            low, digit = divmod(low, e)
            room[j] -= digit
        room[last] -= low * counter[last][0]  # 0 in range
    out: list[RawIter] = []
    for f, t, _ in reversed(steps):
        if t == 0:
            out.append((f, 0, M))
            continue
        down = t < 0  # walked upwards from its other end
        if down:
            t = -t
        j = 0
        while True:
            e, s, axis = counter[j]
            if j < last:
                if t % e == 0:
                    t //= e
                    j += 1
                    continue
                if (f - 1) * t >= e:
                    if e % t == 0 and f % (e // t) == 0:
                        part = e // t  # steps that fill this digit; the others go on from the next
                        room[j] -= e - t
                        out.append((part, -t * s if down else t * s, axis))
                        f //= part
                        t = 1
                        j += 1
                        continue
                    several = _walked_across(counter, j, f, t, room)
                    if several is None:
                        return None
                    part, stride, axis = several
                    out.append((part, -stride if down else stride, axis))
                    if part == f:
                        break
                    f //= part
                    t = t * part // e
                    j += 1
                    continue
            room[j] -= (f - 1) * t
            out.append((f, -t * s if down else t * s, axis))
            break
    for left in room:
        if left < 0:
            return None
    return out


def _walked_across(counter: Counter, j: int, f: int, t: int, room: list[int]) -> tuple[int, int, Axis] | None:
    """The first iter of steps that move several digits at once, from digit j on; None where one of them wraps."""
    e = counter[j][0]
    part = e // gcd(e, t)  # after so many steps digit j is where it was
    if f <= part:
        part = f
    elif f % part:
        return None
    stride, along = 0, M
    while t:
        e, s, axis = counter[j]
        t, digit = divmod(t, e) if j < len(counter) - 1 else (0, t)
        if (part - 1) * digit >= e:
            return None
        room[j] -= (part - 1) * digit
        if digit and s:
            if stride and axis is not along:
                return None
            stride, along = stride + digit * s, axis
        j += 1
    return part, stride, along if stride else M


def _apart(counter: Counter, steps: Counter, low: int, operation: str) -> list[RawIter]:
    """The iters, innermost first, where something carries: cut into what cannot carry into one another, then listed.

    With w a product of A's inner extents: where some neighbors in B move by multiples of w and the others together
    stay below w, A's digits below w see only the latter, and the digits above only the former.  A shard that has the
    table then falls apart in the same way, so nothing is lost by the cut.
    """
    for k in range(1, len(steps)):
        weight = 1
        for j in range(1, len(counter)):
            weight *= counter[j - 1][0]
            for outside in (True, False):  # which of the two moves by multiples of w
                whole, rest = (steps[:k], steps[k:]) if outside else (steps[k:], steps[:k])
                over, under = divmod(low, weight)
                if any(t % weight for _, t, _ in whole):
                    continue
                if under + sum([(f - 1) * abs(t) for f, t, _ in rest]) >= weight:
                    continue
                whole = tuple([(f, t // weight, axis) for f, t, axis in whole])
                high = _composed(counter[j:], whole, over, operation)
                below = _composed(counter[:j], rest, under, operation)
                return below + high if outside else high + below
    return _listed(counter, steps, low, operation)


def _composed(counter: Counter, steps: Counter, low: int, operation: str) -> list[RawIter]:
    found = _walked(counter, steps, low)
    return _apart(counter, steps, low, operation) if found is None else found


def _listed(counter: Counter, steps: Counter, low: int, operation: str) -> list[RawIter]:
    """The iters, innermost first, recognized from the positions of all indices, or of as many as the limit allows."""
    size = prod([f for f, _, _ in steps])
    indices = [low - sum([(f - 1) * t for f, t, _ in steps if t < 0])]
    for f, t, _ in reversed(steps):
        if len(indices) < LIST_LIMIT:
            indices = [i + c * t for c in range(min(f, LIST_LIMIT // len(indices) + 1)) for i in indices]
    code = Code(counter, size)
    values = [0] * len(indices)
    weight = 1
    for e, s, axis in counter:
        step = s * code.units[axis]
        values = [v + i // weight % e * step for v, i in zip(values, indices, strict=True)]
        weight *= e
    digits = recognized(values, size)
    shown = ", B=".join(
        "(" + ", ".join([f"{e}:{s}" for e, s, _ in iters]) + ")" for iters in (counter[::-1], steps)
    )
    if digits is not None:
        if len(values) < size:
            raise Undecided(
                operation,
                f"steps of B carry in A or move along several axes; {size} positions are too many to list: A={shown}",
                "compose with smaller parts of B",
            )
        iters = [(e, code.stride(step)) for e, step in digits]
        if all(moving is not None for _, moving in iters):
            return [(e, *moving) for e, moving in iters if moving is not None]
    raise LayoutError(
        operation,
        f"steps of B carry in A or move along several axes, and no layout has the positions of A={shown}",
    )
