"""The thread hierarchy in layouts: one axis for another, where they count the same threads.

``tx = 32 * warpid + laneid`` and the other rows of `THREAD_HIERARCHY` say how an axis is made up of an outer and an
inner one.  Fusing replaces strides by multiples of themselves; splitting cuts iters where the inner axis is full.
A *system* is a set of axes that count the threads of one axis without overlap, such as wgid, wid_in_wg and laneid
for tx.  There is no global target: what is to be rewritten is an argument.
"""

from __future__ import annotations

from ..axis import THREAD_HIERARCHY, Axis, Fusion
from ..axis import axis as known_axis
from ..errors import LayoutError, nearest
from .canonicalize import canonicalize
from .integers import at_most, divided, either, if_at_most, if_divides, quotient, sign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from ..parts import Integer, Offset, Parts, RawIter

    System = dict[Axis, tuple[int, int | None]]  # axis -> (threads of the whole per step, extent or None)

SCOPES: Final[dict[str, str | None]] = {"cta": None, "warpgroup": "wgid", "warp": "warpid"}
"""Scope -> the axis that counts such scopes in a CTA; the threads within one are the other axis."""


def systems(whole: Axis) -> list[System]:
    """Every system for the threads that `whole` counts, itself first.

    >>> [list(system) for system in systems(known_axis("tx"))]
    [[tx], [warpid, laneid], [wgid, wid_in_wg, laneid], [wgid, tid_in_wg]]
    """
    out: list[System] = [{whole: (1, None)}]
    for row in THREAD_HIERARCHY:
        if row.whole is not whole:
            continue
        for outer in systems(row.outer):
            for inner in systems(row.inner):
                made = {a: (weight * row.per_outer, extent) for a, (weight, extent) in outer.items()}
                for a, (weight, extent) in inner.items():
                    made[a] = weight, row.per_outer // weight if extent is None else extent
                if made not in out:
                    out.append(made)
    return out


def fuse_threads(parts: Parts, whole: Axis, operation: str = "fuse_threads") -> Parts:
    """Post-condition: the owners, with all axes below `whole` replaced by `whole`, which has their combined value.

    Refused where an inner axis leaves its range (lane 32 does not exist) and where axes count the same threads twice.
    """
    shard, replica, offset = parts
    if len(systems(whole)) == 1:
        raise LayoutError(operation, f"{whole} is not made up of other axes", f"one of {_wholes()}")
    before = _mentioned(parts)
    _check_system(before, operation)
    inside: System = {a: x for system in systems(whole) for a, x in system.items()}
    present = [a for a in before if a in inside and a is not whole]
    if whole in before or not present:
        return parts
    for a in present:
        extent = inside[a][1]
        if extent is not None:
            _check_range(parts, a, extent, operation)
    _check_system({*(a for a in before if a not in inside), whole}, operation)
    moved: Offset = {a: v for a, v in offset.items() if a not in inside}
    total: Integer = 0
    for a in present:
        total = total + offset.get(a, 0) * inside[a][0]
    if total != 0:
        moved[whole] = total
    return _renamed(shard, inside, whole), _renamed(replica, inside, whole), moved


def split_threads(
    parts: Parts, whole: Axis, outer: Axis | None = None, operation: str = "split_threads"
) -> Parts:
    """Post-condition: the owners, with `whole` replaced by the two axes of a row: ``whole = n * outer + inner`` and
    ``0 <= inner < n`` at every owner.

    For the shard that is decided exactly: fused, an iter of stride s goes to `outer` if n divides s, to `inner` if it
    stays below n, to both if s divides n and n divides extent * s; no layout has any other.  A replica's iters are
    split by the same rule, as they are written or in canonical form.
    """
    row = _row(whole, outer, operation)
    before = _mentioned(parts)
    _check_system(before, operation)
    if whole not in before:
        return parts
    try:
        return _split(parts, row, operation)
    except LayoutError:
        return _split(canonicalize(*parts), row, operation)


def canonicalize_threads(parts: Parts, scope: Any) -> Parts:
    """The canonical form with the threads of a CTA counted as `scope` counts them.

    cta: tx.  warpgroup: wgid and tid_in_wg.  warp: warpid and laneid.
    """
    operation = "canonicalize"
    if not isinstance(scope, str) or scope not in SCOPES:
        raise LayoutError(operation, f"unknown scope {scope!r}, {nearest(str(scope), list(SCOPES))}")
    whole = known_axis("tx")
    out = canonicalize(*fuse_threads(parts, whole, operation))
    outer = SCOPES[scope]
    return out if outer is None else canonicalize(*split_threads(out, whole, known_axis(outer), operation))


# --- the steps of it ----------------------------------------------------------------------------


def _split(parts: Parts, row: Fusion, operation: str) -> Parts:
    """The layout with iters and offset on the whole cut in two as they are written."""
    whole, outer, inner, n = row
    shard, replica, offset = parts
    moved = dict(offset)
    at = moved.pop(whole, 0)
    over, low = divided(at, n)
    high = quotient(at - low, n)
    for a, v in ((outer, over if high is None else high), (inner, low)):
        if v != 0:
            moved[a] = v
    out = _cut(shard, row, operation, "shard"), _cut(replica, row, operation, "replica"), moved
    _check_range(out, inner, n, operation)
    return out


def _cut(iters: tuple[RawIter, ...], row: Fusion, operation: str, part: str) -> tuple[RawIter, ...]:
    whole, outer, inner, n = row
    out: list[RawIter] = []
    for it in iters:
        e, s, a = it
        if a is not whole:
            out.append(it)
            continue
        up = quotient(s, n)
        if up is not None:
            out.append((e, up, outer))
            continue
        distance = s if sign(s, operation, "stride") > 0 else -s
        if at_most((e - 1) * distance, n - 1):
            out.append((e, s, inner))
            continue
        fill = n // distance if type(distance) is int and n % distance == 0 else None
        times = None if fill is None else quotient(e, fill)
        if fill is None or times is None:
            raise LayoutError(
                operation,
                f"the iter {e}:{s} @ {whole} of the {part} straddles the boundaries of {n} between {outer} and {inner}"
                f": it neither stays below {n}, nor goes by multiples of {n}, nor fills {inner} evenly",
                _if_split(e, s, distance, n),
            )
        out += [(times, 1 if s == distance else -1, outer), (fill, s, inner)]
    return tuple(out)


def _if_split(e: Integer, s: Integer, distance: Integer, n: int) -> str | None:
    """The remedies for an iter of which one of the ways isn't ruled out."""
    fill = n // distance if type(distance) is int and n % distance == 0 else None
    whole = if_divides(n, s) if fill is None else if_divides(fill, e)
    return either(whole, if_at_most((e - 1) * distance, n - 1))


def _check_range(parts: Parts, a: Axis, extent: int, operation: str) -> None:
    """Refuse an inner axis that isn't proved to stay within ``[0, extent)`` at every owner."""
    shard, replica, offset = parts
    low = high = offset.get(a, 0)
    for e, s, axis in (*shard, *replica):
        if axis is a and e != 1 and s != 0:
            if sign(s, operation, "stride") < 0:
                low = low + (e - 1) * s
            else:
                high = high + (e - 1) * s
    if not (at_most(0, low) and at_most(high, extent - 1)):
        raise LayoutError(
            operation,
            f"{a} reaches from {low} to {high}, which straddles its boundaries at 0 and {extent}",
            if_at_most(high, extent - 1) if at_most(0, low) else if_at_most(0, low),
        )


def _mentioned(parts: Parts) -> set[Axis]:
    """The axes on which something moves or lies away from 0."""
    shard, replica, offset = parts
    return {a for e, s, a in (*shard, *replica) if e != 1 and s != 0} | offset.keys()


def _check_system(axes: set[Axis], operation: str) -> None:
    """Refuse axes that count the same threads twice."""
    threads = known_axis("tx")
    every = systems(threads)
    mine = [a for system in every for a in system if a in axes]
    if not any(all(a in system for a in mine) for system in every):
        names = " and ".join(dict.fromkeys(mine))
        raise LayoutError(
            operation,
            f"{names} count the same threads",
            f"one of {', '.join([' + '.join(system) for system in every])}",
        )


def _row(whole: Axis, outer: Axis | None, operation: str) -> Fusion:
    rows = [row for row in THREAD_HIERARCHY if row.whole is whole]
    if not rows:
        raise LayoutError(operation, f"{whole} is not made up of other axes", f"one of {_wholes()}")
    for row in rows:
        if outer is None or row.outer is outer:
            return row
    raise LayoutError(
        operation, f"{whole} has no outer axis {outer}", f"one of {', '.join([row.outer for row in rows])}"
    )


def _wholes() -> str:
    return ", ".join(dict.fromkeys([row.whole for row in THREAD_HIERARCHY]))


def _renamed(iters: tuple[RawIter, ...], inside: System, whole: Axis) -> tuple[RawIter, ...]:
    return tuple([(e, s * inside[a][0], whole) if a in inside else (e, s, a) for e, s, a in iters])
