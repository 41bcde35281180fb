"""Composition with symbols: the walk of `compose`, each step of it proved."""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import M, nonzero, product
from .canonicalize import fuse
from .integers import at_most, if_at_most, if_divides, quotient, sign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parts import Integer, Offset, Parts, RawIter


def compose_symbolic(
    digits: tuple[RawIter, ...],
    replica: tuple[RawIter, ...],
    offset: Offset,
    steps: tuple[RawIter, ...],
    base: Integer,
    operation: str,
) -> Parts:
    """`compose` of a fused A and B, where what can't be proved is refused with the condition written out."""
    low: Integer = base
    high: Integer = base
    signs = [sign(t, operation, "stride of B") for _, t, _ in steps]
    for (f, t, _), direction in zip(steps, signs, strict=True):
        if direction < 0:
            low = low + (f - 1) * t
        else:
            high = high + (f - 1) * t
    size = product([it[0] for it in digits])
    if not (at_most(0, low) and at_most(high + 1, size)):
        open_ones = [] if at_most(0, low) else [f"0 <= {low}"]
        open_ones += [] if at_most(high + 1, size) else [f"{high} < {size}"]
        raise LayoutError(
            operation,
            "it is not proved that the codomain of B lies within the size of A: that "
            + " and ".join(open_ones),
            if_at_most(high + 1, size) if at_most(0, low) else if_at_most(0, low),
        )
    counter = digits[::-1]
    used = _digits_of(low, counter, operation)
    out: list[RawIter] = []  # innermost first
    for (f, t, _), direction in zip(reversed(steps), reversed(signs), strict=True):
        if direction == 0:
            out.append((f, 0, M))
            continue
        for part, j, t_j in _walk(f, t if direction > 0 else -t, counter, operation):
            _, s, axis = counter[j]
            used[j] = used[j] + (part - 1) * t_j
            out.append((part, direction * t_j * s, axis))
    for j, (e, _, _) in enumerate(counter[:-1]):  # the last is bounded by the size
        if not at_most(used[j] + 1, e):
            raise LayoutError(
                operation,
                f"it is not proved that B doesn't carry in A's iter of extent {e}: that {used[j]} < {e}",
                if_at_most(used[j] + 1, e),
            )
    if base != 0:
        offset = dict(offset)
        for digit, (_, s, axis) in zip(_digits_of(base, counter, operation), counter, strict=True):
            offset[axis] = offset.get(axis, 0) + digit * s
        offset = nonzero(offset)
    out.reverse()
    return fuse(tuple(out)), replica, offset


def _walk(
    f: Integer, t: Integer, counter: tuple[RawIter, ...], operation: str
) -> list[tuple[Integer, int, Integer]]:
    """The parts (extent, digit, stride in that digit) of `f` steps of `t`, innermost first."""
    out: list[tuple[Integer, int, Integer]] = []
    for j, (e, _, _) in enumerate(counter):
        if j < len(counter) - 1:
            passed = quotient(t, e)
            if passed is not None:
                t = passed
                continue
            if not at_most((f - 1) * t + 1, e):
                part = quotient(e, t)
                rest = None if part is None else quotient(f, part)
                if part is None or rest is None:
                    raise LayoutError(
                        operation,
                        f"it is not proved how {f} steps of {t} in B wrap in A's iter of extent {e}: neither that they "
                        f"stay below {e} nor that {t} divides {e} and {e}/{t} divides {f}",
                        if_divides(t, e) if part is None else if_divides(part, f),
                    )
                out.append((part, j, t))
                f, t = rest, 1
                continue
        out.append((f, j, t))
        break
    return out


def _digits_of(x: Integer, counter: tuple[RawIter, ...], operation: str) -> list[Integer]:
    """The digits of an index, innermost first."""
    out: list[Integer] = []
    for j, (e, _, _) in enumerate(counter):
        if j == len(counter) - 1:
            out.append(x)
        elif type(x) is int and type(e) is int:
            x, digit = divmod(x, e)
            out.append(digit)
        elif at_most(0, x) and at_most(x + 1, e):
            out.append(x)
            x = 0
        elif (whole := quotient(x, e)) is not None:
            out.append(0)
            x = whole
        else:
            raise LayoutError(
                operation,
                f"it is not known where the offset {x} of B falls in A's iter of extent {e}",
                if_divides(e, x),
            )
    return out
