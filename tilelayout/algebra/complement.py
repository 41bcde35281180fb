"""The complement: what has to be added to a layout so that the sums count through an interval, each number once.

When an interval is a direct sum of runs, one run has stride 1, and all others move by multiples of its extent
(N. G. de Bruijn, "On number systems", Nieuw Archief voor Wiskunde 4, 1956).  Sorted by stride, the digits therefore
nest, and the complement consists of the digits between them.
"""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import UNIT, M
from .canonicalize import fuse_replica
from .integers import at_most, either, if_at_most, if_divides, quotient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parts import Integer, Parts, RawIter

    Digit = tuple[
        Integer, Integer, Integer
    ]  # (stride made positive, extent, signed weight in the flat index)


def complement(a: Parts, cosize: Integer, operation: str = "complement") -> Parts:
    """Post-condition: every x in ``[0, cosize)`` is ``a(i) + result(j)`` for exactly one pair (i, j), and no other sum
    occurs.  The result's strides are positive and fall; its iters can't be fused.

    Where `a` begins elsewhere than at 0 (an offset, negative strides), the result's offset makes up for it.
    Refused where no such layout exists, which is exactly where the sorted strides don't nest.
    """
    digits, least, _ = digits_on_m(a, operation)
    gaps, filled = gaps_between(digits, operation)
    rest = cosize // filled if type(cosize) is int and type(filled) is int else quotient(cosize, filled)
    if rest is None or (type(cosize) is int and type(filled) is int and (cosize % filled or cosize < 1)):
        raise LayoutError(
            operation,
            f"the layout with what lies between its strides takes {filled} places, which {_not(filled, cosize)} the "
            f"cosize {cosize}",
            either(f"a multiple of {filled}", if_divides(filled, cosize)),
        )
    if rest != 1:
        gaps.append((rest, filled, M))
    gaps.reverse()
    return tuple(gaps) or (UNIT,), (), {} if least == 0 else {M: -least}


def digits_on_m(a: Parts, operation: str, still: bool = False) -> tuple[list[Digit], Integer, Integer]:
    """The digits of a layout on `m`, sorted by stride, without those of extent 1; its least value, and the element that
    has it.

    Refused: a replica, another axis, and zero strides (several elements share a place), which are left out
    if `still` says so.
    """
    shard, replica, offset = a
    if replica and fuse_replica(replica, {})[0]:
        raise LayoutError(
            operation,
            f"elements have several places, by the replica ({', '.join(f'{e}:{s}' for e, s, _ in replica)})",
        )
    digits: list[Digit] = []
    least: Integer = 0
    first: Integer = 0
    weight: Integer = 1
    plain = True
    for e, s, axis in reversed(shard):
        if e == 1:
            continue
        if s == 0:
            if still:
                weight = weight * e
                continue
            raise LayoutError(
                operation,
                f"not injective: the iter of extent {e} and stride 0 puts elements 0 and {weight} at one place",
                "make it a replica",
            )
        if axis is not M:
            raise LayoutError(operation, f"the layout moves on {axis}, and this is about places on m")
        if type(s) is int and type(e) is int:
            positive = s > 0
        else:
            plain = False
            positive = at_most(1, s)
            if not positive and not at_most(s, -1):
                raise LayoutError(
                    operation,
                    f"the sign of stride {s} is not known",
                    either("declare its symbols positive", if_at_most(1, s)),
                )
        if positive:
            digits.append((s, e, weight))
        else:
            least = least + (e - 1) * s
            first = first + (e - 1) * weight
            digits.append((-s, e, -weight))
        weight = weight * e
    if offset:
        for axis, value in offset.items():
            if axis is not M:
                raise LayoutError(
                    operation, f"the layout has an offset on {axis}, and this is about places on m"
                )
            least = least + value
    return (sorted(digits) if plain else _nested(digits)), least, first  # type: ignore[type-var]  # plain integers


def _nested(digits: list[Digit]) -> list[Digit]:
    """Digits in an order in which all later strides are proved multiples of stride times extent, if there is one.

    Otherwise as they come, and the question of what lies between them is where it is refused.
    """
    left = list(digits)
    out: list[Digit] = []
    while left:
        for k, (s, e, _) in enumerate(left):
            if all(quotient(t, s * e) is not None for t, _, _ in left[:k] + left[k + 1 :]):
                out.append(left.pop(k))
                break
        else:
            return digits
    return out


def gaps_between(digits: list[Digit], operation: str) -> tuple[list[RawIter], Integer]:
    """What lies between nesting digits, innermost first, and the stride at which it goes on for ever."""
    gaps: list[RawIter] = []
    filled: Integer = 1
    for s, e, _ in digits:
        if type(s) is int and type(filled) is int:
            gap, over = divmod(s, filled)
            if over or gap < 1:
                raise _not_nested(digits, s, filled, operation)
        else:
            found = quotient(s, filled)
            if found is None:
                raise _not_nested(digits, s, filled, operation)
            gap = found
        if gap != 1:
            gaps.append((gap, filled, M))
        filled = s * e
    return gaps, filled


def _not_nested(digits: list[Digit], s: Integer, filled: Integer, operation: str) -> LayoutError:
    shown = ", ".join(f"{e}:{t}" for t, e, _ in digits)
    return LayoutError(
        operation,
        f"the strides don't nest: {filled} {_not(filled, s)} the stride {s} (sorted by stride: {shown}), so whatever "
        f"is added, some place is missed or held twice",
        if_divides(filled, s),
    )


def _not(divisor: Integer, number: Integer) -> str:
    known = type(divisor) is int and type(number) is int
    return "does not divide" if known else "is not proved to divide"
