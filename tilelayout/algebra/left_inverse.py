"""The left inverse: a layout that reads every place of an injective layout back into its element.

It is a counter whose radices are ours to choose.  Strides that nest give them: the digits of the layout, with
a digit that counts nothing for every gap.  Strides that interleave, such as (2, 3):(3, 2), may have a left inverse too:
radices are then searched in which the places of all elements add up without a carry, so that each iter gives one linear
equation for the strides, and these are solved in integers; if that fails, each element is taken as an equation.
"""

from __future__ import annotations

from math import gcd, prod

from ..errors import LayoutError, Undecided
from ..parts import UNIT, M
from .canonicalize import fuse
from .complement import digits_on_m
from .injective import collision
from .integers import if_divides, if_equal, quotient, sign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parts import Integer, Parts, RawIter
    from .complement import Digit

SEARCH_LIMIT = 2**12
"""Radices that a search tries."""

LIST_LIMIT = 2**10
"""Elements up to which the search looks at each of them."""


def left_inverse(a: Parts, operation: str = "left_inverse") -> Parts:
    """Pre-condition: `a` is injective, on `m`, without a replica and without places below 0.
    Post-condition: ``result(a(i)) = i`` for all i; the size of the result exceeds the largest place.  What it gives
    for places that nobody has means nothing.
    Errors: LayoutError where no such counter exists; Undecided where the search is too long.
    """
    digits, least, first = digits_on_m((fuse(a[0]), a[1], a[2]), operation)
    if not digits or sign(least, operation, "the least place") < 0:
        return _of_one_element(digits, least, operation)
    if least == 0:
        found = _nested(digits, first)
        if found is not None:
            return found
    if type(least) is not int or not all(type(x) is int for digit in digits for x in digit):
        shown = ", ".join(f"{e}:{s}" for s, e, _ in digits)
        raise LayoutError(
            operation,
            f"sorted by stride ({shown}), from {least} on, each stride is not proved to be a multiple of extent times "
            f"stride of the one before it",
            if_equal(least, 0) or _if_nested(digits),
        )
    shared = collision(a[0], (), operation)
    if shared is not None:
        raise LayoutError(operation, f"not injective: elements {shared[0]} and {shared[1]} are at one place")
    return _searched(digits, least, first, operation)  # type: ignore[arg-type]  # plain integers


def _of_one_element(digits: list[Digit], least: Integer, operation: str) -> Parts:
    if digits or sign(least, operation, "the place") < 0:
        raise LayoutError(
            operation,
            f"places below 0, from {least} on, cannot index a layout",
            "add an offset that brings the least place to 0",
        )
    if least == 0:
        return (UNIT,), (), {}
    return ((least + 1, 0, M),), (), {}


def _nested(digits: list[Digit], first: Integer) -> Parts | None:
    """Each stride a multiple of extent times stride before it: the digits, and one that counts nothing for each gap."""
    out: list[RawIter] = []
    filled: Integer = 1
    for s, e, weight in digits:
        if type(s) is int and type(filled) is int:
            gap, over = divmod(s, filled)
            if over or gap < 1:
                return None
        else:
            found = quotient(s, filled)
            if found is None:
                return None
            gap = found
        if gap != 1:
            out.append((gap, 0, M))
        out.append((e, weight, M))
        filled = s * e
    out.reverse()
    return tuple(out), (), {} if first == 0 else {M: first}


def _if_nested(digits: list[Digit]) -> str | None:
    """The remedy where a stride isn't proved to be a multiple of extent times stride before it."""
    filled: Integer = 1
    for s, e, _ in digits:
        if quotient(s, filled) is None:
            return if_divides(filled, s)
        filled = s * e
    return None


# --- strides that interleave, or begin above 0 -------------------------------------------------------


def _searched(digits: list[Digit], least: int, first: int, operation: str) -> Parts:
    """First with the radices that the strides suggest and without carries, at any size; then with all radices."""
    extents: list[int] = [e for _, e, _ in digits]  # type: ignore[misc]  # plain integers throughout
    strides: list[int] = [s for s, _, _ in digits]  # type: ignore[misc]
    weights: list[int] = [w for _, _, w in digits]  # type: ignore[misc]
    largest = least + sum([(e - 1) * s for e, s in zip(extents, strides, strict=True)])
    found = _uncarried(strides, least, [], extents, weights, [SEARCH_LIMIT])
    if found is not None:
        return _counter(*found, least, first, largest)
    shown = ", ".join(f"{e}:{s}" for s, e in zip(strides, extents, strict=True))
    message = f"no counter reads the places of the strides ({shown}), from {least} on, back"
    if prod(extents) > LIST_LIMIT:
        raise Undecided(operation, f"{message}, of those whose radices the strides suggest")
    places, elements = [least], [first]
    for s, e, w in zip(strides, extents, weights, strict=True):
        places = [v + c * s for c in range(e) for v in places]
        elements = [i + c * w for c in range(e) for i in elements]
    work = [SEARCH_LIMIT]
    found = _listed(places, [], elements, work)
    if found is not None:
        return _counter(*found, places[0], elements[0], largest)
    if work[0] < 0:
        raise Undecided(operation, f"{message}, of {SEARCH_LIMIT} that were tried")
    raise LayoutError(operation, message)


def _uncarried(
    places: list[int],
    start: int,
    columns: list[list[int]],
    extents: list[int],
    weights: list[int],
    work: list[int],
) -> tuple[list[int], list[int]] | None:
    """Radices below the last digit and the strides of all digits, innermost first; None where none were found.

    `places` are the strides in units of the radices so far, `columns` the digits that those took off.  Nothing may
    carry, so that every iter is one equation.
    """
    solved = solve([*columns, places], weights)
    if solved is not None:
        return [], solved
    largest = start + sum([(e - 1) * s for e, s in zip(extents, places, strict=True)])
    moving = sorted({s for s in places if s})
    likely = [gcd(*moving), *moving, *[gcd(s, t) for s in moving for t in moving if s < t]]
    likely += [s * e for s, e in zip(places, extents, strict=True)]
    for radix in dict.fromkeys(likely):
        if not 1 < radix <= largest:
            continue
        work[0] -= 1
        if work[0] < 0:
            return None
        digit = [s % radix for s in places]
        if start % radix + sum([(e - 1) * d for e, d in zip(extents, digit, strict=True)]) >= radix:
            continue
        found = _uncarried(
            [s // radix for s in places], start // radix, [*columns, digit], extents, weights, work
        )
        if found is not None:
            return [radix, *found[0]], found[1]
    return None


def _listed(
    places: list[int], columns: list[list[int]], elements: list[int], work: list[int]
) -> tuple[list[int], list[int]] | None:
    """The same with an equation for every place, so that carries may cancel, and with every radix.

    Places that the digits so far have brought together in one block differ by those digits alone, which must give the
    difference of the elements.
    """
    solved = _steps([*columns, places], elements, [(k, 0) for k in range(len(places))])
    if solved is not None:
        return [], solved
    for radix in range(2, max(places) + 1):
        work[0] -= 1 + len(places) // 8  # about what it costs
        if work[0] < 0:
            return None
        digits = [*columns, [x % radix for x in places]]
        blocks = [x // radix for x in places]
        heads: dict[int, int] = {}
        pairs = [(k, heads.setdefault(block, k)) for k, block in enumerate(blocks)]
        if _steps(digits, elements, [(k, head) for k, head in pairs if k != head]) is None:
            continue
        found = _listed(blocks, digits, elements, work)
        if found is not None:
            return [radix, *found[0]], found[1]
    return None


def _steps(digits: list[list[int]], elements: list[int], pairs: list[tuple[int, int]]) -> list[int] | None:
    """Strides for the digits that give the difference of the elements for every pair."""
    return solve(
        [[d[k] - d[head] for k, head in pairs] for d in digits],
        [elements[k] - elements[head] for k, head in pairs],
    )


def solve(columns: list[list[int]], right: list[int]) -> list[int] | None:
    """Integers u with ``sum(u_l * columns[l][k]) == right[k]`` for every k; None where there are none.

    Columns are combined by Euclid's algorithm until each row has one that it alone decides.
    """
    count = len(columns)
    left = [list(c) for c in columns]
    made = [[int(n == own) for n in range(count)] for own in range(count)]  # of which columns each consists
    rest, out = list(right), [0] * count
    free = list(range(count))
    for k in range(len(right)):
        active: list[int] = [c for c in free if left[c][k]]
        while len(active) > 1:
            pivot = min(active, key=lambda c: abs(left[c][k]))
            for c in active:
                if c != pivot:
                    times = left[c][k] // left[pivot][k]
                    left[c] = [x - times * y for x, y in zip(left[c], left[pivot], strict=True)]
                    made[c] = [x - times * y for x, y in zip(made[c], made[pivot], strict=True)]
            active = [c for c in active if left[c][k]]
        if active:
            pivot = active[0]
            times = rest[k] // left[pivot][k]
            rest = [x - times * y for x, y in zip(rest, left[pivot], strict=True)]
            out = [x + times * y for x, y in zip(out, made[pivot], strict=True)]
            free.remove(pivot)
        if rest[k]:
            return None
    return out


def _counter(radices: list[int], steps: list[int], place: int, element: int, largest: int) -> Parts:
    """The counter with these radices and strides, innermost first, whose last digit takes what is left.

    Its offset is such that it reads `element` at `place`.
    """
    iters: list[RawIter] = []
    for radix, step in zip(radices, steps, strict=False):
        iters.append((radix, step, M))
        place, digit = divmod(place, radix)
        element -= digit * step
        largest //= radix
    iters.append((largest + 1, steps[-1], M))
    element -= place * steps[-1]
    iters.reverse()
    return fuse(tuple(iters)), (), {M: element} if element else {}
