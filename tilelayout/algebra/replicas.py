"""Replicas as sets: which copies, added to some that are known, make others that are known.

An element's owners are its displacement plus a set of distances, which the offset and the replica make; the set is the
same for every element.  Sets on different axes have nothing to do with one another, since an iter is on one axis.
"""

from __future__ import annotations

from ..errors import LayoutError, Undecided
from .canonicalize import fuse_replica
from .integers import quotient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..axis import Axis
    from ..parts import Integer, Offset, RawIter

    Copies = tuple[tuple[RawIter, ...], Offset]

BUDGET = 2**14
"""Copies on one axis that are listed before the question is given up as undecided."""


def difference(whole: Copies, part: Copies, per: dict[Axis, Integer], operation: str, of: str) -> Copies:
    """Copies x with ``part + per * x == whole`` as sets; `of` names the result in messages.

    Pre-condition: the factors of `per` (1 where an axis has none) are positive.
    Errors: LayoutError where no set has that; Undecided where one has, and no iters for it were found.
    """
    if not whole[0] and not part[0]:
        return (), _offsets(whole[1], part[1], per, operation, of)
    known = len(part[0])
    for head, rest in ((0, known), (len(whole[0]) - known, 0)):
        if known <= len(whole[0]) and whole[0][head : head + known] == part[0]:
            others = _divided(whole[0][rest : rest + len(whole[0]) - known], per)
            if others is not None:
                return others, _offsets(whole[1], part[1], per, operation, of)
    whole, part = fuse_replica(*whole), fuse_replica(*part)
    offset = _offsets(whole[1], part[1], per, operation, of)
    axes: dict[Axis, tuple[list[RawIter], list[RawIter]]] = {}
    for k, (iters, _) in enumerate((whole, part)):
        for it in iters:
            axes.setdefault(it[2], ([], []))[k].append(it)
    out: list[RawIter] = []
    for a, (all_of_it, given) in axes.items():
        out += _on_axis(a, all_of_it, given, per.get(a, 1), operation, of)
    return tuple(out), offset


def _offsets(whole: Offset, part: Offset, per: dict[Axis, Integer], operation: str, of: str) -> Offset:
    if not whole and not part:
        return {}
    out: Offset = {}
    for a in {**whole, **part}:
        left = whole.get(a, 0) - part.get(a, 0)
        if left == 0:
            continue
        value = quotient(left, per.get(a, 1))
        if value is None:
            raise LayoutError(
                operation,
                f"the offset that is left for {of} on {a}, {left}, is no multiple of {per[a]}, the span that scales it",
            )
        out[a] = value
    return out


def _divided(iters: tuple[RawIter, ...], per: dict[Axis, Integer]) -> tuple[RawIter, ...] | None:
    """Every stride divided by its axis's factor; None where one doesn't divide."""
    out: list[RawIter] = []
    for e, s, a in iters:
        value = quotient(s, per.get(a, 1))
        if value is None:
            return None
        out.append((e, value, a))
    return tuple(out)


def _on_axis(
    a: Axis, whole: list[RawIter], part: list[RawIter], per: Integer, operation: str, of: str
) -> list[RawIter]:
    """The same on one axis, of canonical iters (positive strides)."""
    rest = list(whole)
    for it in part:
        if it not in rest:
            break
        rest.remove(it)
    else:
        found = _divided(tuple(rest), {a: per})
        if found is not None:
            return list(found)
    texts = [", ".join(f"{e}:{s}" for e, s, _ in iters) for iters in (whole, part)]
    sets = [_listed(whole), _listed(part)] if type(per) is int else [None, None]
    if sets[0] is None or sets[1] is None:
        raise Undecided(
            operation,
            f"which replica of {of} on {a} makes ({texts[0]}) of ({texts[1]}) would have to be searched",
        )
    places = {
        x
        for x in sets[0]
        if x % per == 0 and all(x + y in sets[0] for y in sets[1])  # type: ignore[operator]  # plain
    }
    if {x + y for x in places for y in sets[1]} != sets[0]:
        scaled = "" if per == 1 else f" by multiples of {per}"
        raise LayoutError(
            operation, f"no replica of {of} on {a} makes ({texts[0]}) of copies of ({texts[1]}){scaled}"
        )
    runs = _runs({x // per for x in places})  # type: ignore[operator]  # plain
    if runs is None:
        raise Undecided(
            operation,
            f"the copies of {of} on {a} that make ({texts[0]}) of ({texts[1]}) were not found as iters",
        )
    return [(e, s, a) for e, s in runs]


def _listed(iters: list[RawIter]) -> set[int] | None:
    """The sums that the iters reach; None where they are symbolic or too many."""
    out = {0}
    for e, s, _ in iters:
        if type(e) is not int or type(s) is not int or len(out) * e > BUDGET:
            return None
        out = {x + c * s for x in out for c in range(e)}
    return out


def _runs(places: set[int]) -> list[tuple[int, int]] | None:
    """Iters (extent, stride) whose sums are `places`, which begin at 0; None where this search finds none.

    The smallest distance is a stride of any that exist.  The longest run of it that all places fall into is taken.

    >>> _runs({0, 1, 10, 11, 20, 21}), _runs({0, 2, 3, 5}), _runs({0, 1, 3})
    ([(2, 1), (3, 10)], [(2, 2), (2, 3)], None)
    """
    out: list[tuple[int, int]] = []
    while len(places) > 1:
        step = min(x for x in places if x)
        longest = 1
        while longest * step in places:
            longest += 1
        for extent in range(longest, 1, -1):
            if len(places) * extent > BUDGET:
                continue
            run = range(0, extent * step, step)
            heads = {x for x in places if all(x + y in places for y in run)}
            if {x + y for x in heads for y in run} == places:
                break
        else:
            return None
        out.append((extent, step))
        places = heads
    return out
