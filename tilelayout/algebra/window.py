"""A range of one dimension as a layout of its own, if there is one.

A dimension's iters, fused, are a mixed-radix counter.  One step of the index adds a vector that depends
only on how many digits wrap: ``jump[k]``, where k is the largest depth whose digits' product divides the
index stepped to.  In the fused form jumps of neighboring depths differ.  A slice is again a layout iff its
sequence of steps has that form when counted from its own begin, which is decided by the arithmetic below,
never by listing the elements.
"""

from __future__ import annotations

from math import gcd

from ..errors import LayoutError
from ..parts import UNIT, M, product
from .canonicalize import fuse
from .integers import at_most, divided, if_at_most, quotient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..axis import Axis
    from ..parts import Integer, Offset, RawIter

    Vector = dict[Axis, Integer]
    Digits = list[tuple[Any, Vector]]  # (extent, step), innermost first; extents are plain integers


def slice_dimension(
    iters: tuple[RawIter, ...], begin: Integer, length: Integer, base: Offset, d: int | str
) -> tuple[RawIter, ...]:
    """The iters of ``[begin, begin + length)``; adds where it begins to `base`.

    Errors: LayoutError in the terms of the whole dimension, whatever was reduced before the rule broke.
    """
    out: list[RawIter] = []  # innermost first
    asked = begin, length
    rest = list(fuse(iters))
    # Aligned inner digits stay whole: no more than a division, and the common case.
    while rest and length != 1:
        e = rest[-1][0]
        if type(e) is int and type(begin) is int and type(length) is int:
            if begin % e or length % e:
                break
            outer_begin, outer_length = begin // e, length // e
        else:
            outer_begin, outer_length = quotient(begin, e), quotient(length, e)
            if outer_begin is None or outer_length is None:
                break
        out.append(rest.pop())
        begin, length = outer_begin, outer_length
    if length != 1:
        e, s, a = rest[-1]
        if type(begin) is not int and (whole := aligned(begin, length, e)) > 1:
            out.append((whole, s, a))
            e, s = e // whole, s * whole  # type: ignore[operator]  # plain, since `whole` divides it
            rest[-1] = e, s, a
            begin, length = quotient(begin, whole), length // whole  # type: ignore[assignment]  # proved, hence not None
        if length == 1:
            pass
        elif inside(begin, length, e):
            out.append((length, s, a))
        else:
            if (
                type(begin) is not int
                or type(length) is not int
                or any(type(it[0]) is not int for it in rest)
            ):
                raise LayoutError(
                    "slice",
                    f"{asked_text(d, asked, iters, 'whether ')} depends on symbols",
                    if_at_most(divided(begin, e)[1] + length, e),
                )
            digits: Digits = [(it[0], {it[2]: it[1]}) for it in reversed(rest)]
            found = shifted(digits, begin, length)
            if found is None:
                raise no_slice(asked_text(d, asked, iters))
            for e, step in found:
                moving = single_axis(step)
                if moving is None:
                    raise no_slice(asked_text(d, asked, iters))
                out.append((e, *moving))
    for k in range(len(rest) - 1, -1, -1):
        if begin == 0:
            break
        e, s, a = rest[k]
        # In range, so what is left at the outermost iter is its digit.
        begin, digit = divided(begin, e) if k else (0, begin)
        if digit != 0:
            base[a] = base.get(a, 0) + digit * s
    out.reverse()
    return tuple(out) or (UNIT,)


def inside(begin: Integer, length: Integer, extent: Integer) -> bool:
    """Whether the range is proved to stay within one run of the innermost digit."""
    if type(begin) is int and type(length) is int and type(extent) is int:
        return begin % extent + length <= extent
    if at_most(begin + length, extent):
        return True
    return at_most(divided(begin, extent)[1] + length, extent)


def aligned(begin: Integer, length: Integer, extent: Integer) -> int:
    """The largest divisor of a length and an extent that is proved to divide a symbolic begin; else 1."""
    if type(length) is not int or type(extent) is not int:
        return 1
    common = gcd(length, extent)
    return next(k for k in range(common, 0, -1) if common % k == 0 and quotient(begin, k) is not None)


def single_axis(step: Vector) -> tuple[Integer, Axis] | None:
    """A step as the stride of an iter; None where it moves along several axes, which no iter does."""
    moving = trim(step)
    if len(moving) > 1:
        return None
    for a, s in moving.items():
        return s, a
    return 0, M


def asked_text(
    d: int | str, asked: tuple[Integer, Integer], iters: tuple[RawIter, ...], question: str = ""
) -> str:
    """What was asked of a dimension: ``dimension 0: [3, 9) of 16 crosses a wrap of the iters (2, 8)``."""
    begin, length = asked
    extents = ", ".join(str(it[0]) for it in fuse(iters))
    whole = product(it[0] for it in iters)
    name = f"dimension {d}" if type(d) is int or " " not in str(d) else f"dimensions {d} read as one"
    return f"{name}: {question}[{begin}, {begin + length}) of {whole} crosses a wrap of the iters ({extents})"


def no_slice(what: str) -> LayoutError:
    return LayoutError(
        "slice",
        f"{what}, and no layout has its positions",
        "choose bounds that are multiples of the inner extents",
    )


def shifted(digits: Digits, begin: int, length: int) -> Digits | None:
    """Digits of ``y -> f(begin + y) - f(begin)`` on ``[0, length)``, or None where no digits have that.

    Proof sketch.  Let e be the innermost extent and let ``d = gcd(begin, e, length)``: runs of d stay whole,
    so the inner digit splits off exactly.  With d = 1, suppose the steps are not all equal.
    A *break* is a step that differs from the plain one; breaks are wraps.  If the first step is no break,
    the first break r must divide the length and every break must be a multiple of r; two breaks would put
    r into that gcd, so there is one, and it lies in the middle.  If the first step is a break and the length
    exceeds 2, the second step is plain, so all odd steps must be the same break: e is 2 and the outer digits
    advance evenly.
    """
    out: Digits = []
    while True:
        extent, step = digits[0]
        common = gcd(begin, gcd(extent, length))
        if common > 1:
            out.append((common, step))
            inner = extent // common
            head: Digits = [(inner, scale(step, common))] if inner > 1 else []
            digits = head + digits[1:]
            begin, length = begin // common, length // common
            if length == 1:
                return out
            continue
        break
    even = even_step(digits, begin, length)
    if even is not None:
        out.append((length, even))
        return out
    if length % 2:
        return None
    half = length // 2
    plain = trim(step)
    wrap = extent - begin % extent  # the first step that wraps
    if wrap == 1 and step_at(digits, begin + 1) != plain:
        if extent != 2:
            return None
        outer = even_step(digits[1:], begin // 2, half + 1)
        if outer is None:
            return None
        out.append((2, step_at(digits, begin + 1)))
        if half > 1:
            out.append((half, outer))
        return out
    if wrap + 4 * extent < length:
        return None  # of five wraps in a row two at least are breaks
    if [y for y in range(wrap, length, extent) if step_at(digits, begin + y) != plain] != [half]:
        return None
    out += [(half, step), (2, difference(value(digits, begin + half), value(digits, begin)))]
    return out


def even_step(digits: Digits, begin: int, length: int) -> Vector | None:
    """The common step of ``[begin, begin + length)``, or None if the steps differ."""
    if length == 1:
        return {}
    first = step_at(digits, begin + 1)
    extent = digits[0][0]
    if begin % extent + length <= extent or length == 2:
        return first
    # A wrap and a plain step both occur.  Plain wraps of depth 1 differ from the plain step (fused form)
    # and lie between any two deeper wraps, so at most one wrap can be even.
    wrap = extent - begin % extent
    if wrap + extent < length:
        return None
    plain = trim(digits[0][1])
    return plain if step_at(digits, begin + wrap) == plain else None


def step_at(digits: Digits, x: int) -> Vector:
    """``f(x) - f(x - 1)``."""
    return difference(value(digits, x), value(digits, x - 1))


def value(digits: Digits, x: int) -> Vector:
    out: Vector = {}
    for extent, step in digits:
        x, digit = divmod(x, extent)
        for a, s in step.items():
            out[a] = out.get(a, 0) + digit * s
    return out


def difference(x: Vector, y: Vector) -> Vector:
    return trim({a: x.get(a, 0) - y.get(a, 0) for a in {**x, **y}})


def scale(x: Vector, by: int) -> Vector:
    return {a: s * by for a, s in x.items()}


def trim(x: Vector) -> Vector:
    return {a: s for a, s in x.items() if s != 0}
