"""Bit operations and shifts, in two's complement of unlimited width (Python's).

Shifts by constants become products and quotients, contiguous masks become remainders, and operands whose bits
can't meet become sums, so that everything recombines in one normal form; printing decides what is a shift again.
"""

from __future__ import annotations

from functools import reduce

from ..errors import LayoutError
from .core import Expr, Index, bounds, rules, settled
from .nodes import BITWISE, Bitwise, FloorDiv, Mod, Polynomial, Shift, interval
from .polynomial import from_terms, terms_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .nodes import Terms


def shift(symbol: str, x: Index, count: Index) -> Index:
    """``x << count`` or ``x >> count``."""
    count = settled(count)
    low = bounds(count)[0]
    if low is None or low < 0:
        raise LayoutError(
            f"expression {symbol}",
            f"{x} {symbol} ({count}): the count may be negative",
            "give it bounds with lo=0",
        )
    if isinstance(count, int):
        return x * (1 << count) if symbol == "<<" else x // (1 << count)
    return 0 if x == 0 else Shift(symbol, x, count)


def possible_bits(x: Index) -> int:
    """A mask with every bit that can be one; it is negative where infinitely many can.

    >>> from tilelayout.expr import Var
    >>> i, n = Var("i", 0, 7), Var("n")
    >>> possible_bits(i), possible_bits(16 * i + 2), possible_bits(4 * n), possible_bits(i - 1)
    (7, 114, -4, -1)
    """
    if isinstance(x, int):
        return x
    reach = -1 if x.lo is None or x.lo < 0 or x.hi is None else (1 << x.hi.bit_length()) - 1
    if isinstance(x, Polynomial):
        return reach & _bits_of_sum(x.terms)
    if isinstance(x, FloorDiv | Mod) and isinstance(x.divisor, int) and not x.divisor & x.divisor - 1:
        inner = possible_bits(x.dividend)
        return reach & (inner // x.divisor if isinstance(x, FloorDiv) else inner % x.divisor)
    if isinstance(x, Bitwise):
        masks = [possible_bits(operand) for operand in x.operands]
        return reach & reduce(BITWISE["&" if x.symbol == "&" else "|"], masks)
    return reach


def _bits_of_sum(terms: Terms) -> int:
    """Every bit of the terms where no two can meet, else every bit from the lowest one on."""
    total = 0
    for mono, k in terms.items():
        mask = -1
        if not mono:
            mask = k
        elif len(mono) == 1 and k > 0 and not k & k - 1:
            mask = possible_bits(mono[0]) * k
        if mask < 0 or mask & total:
            return -min([k & -k for k in terms.values()])
        total |= mask
    return total


def bitwise(symbol: str, x: Index, y: Index) -> Index:
    """``x ^ y``, ``x & y`` or ``x | y``."""
    x, y = settled(x), settled(y)
    if isinstance(x, int) and isinstance(y, int):
        return BITWISE[symbol](x, y)
    if x == y:
        return 0 if symbol == "^" else x
    mine, others = possible_bits(x), possible_bits(y)
    if not mine & others:
        return 0 if symbol == "&" else x + y
    split = _split(symbol, x, y, mine, others)
    if split is not None:
        return split
    operands, constant = _flatten(symbol, x, y)
    neutral = -1 if symbol == "&" else 0
    if constant != neutral:
        if len(operands) == 1:
            return _with_constant(symbol, operands[0], constant)
        if constant == ~neutral and symbol != "^":
            return constant
    if not operands or len(operands) == 1:
        return operands[0] if operands else constant
    if constant == neutral:
        return Bitwise(symbol, tuple(operands))
    for operand in operands if symbol == "&" else ():
        constant &= possible_bits(operand)
    return Bitwise(symbol, (*operands, constant)) if constant or symbol != "&" else 0


def _flatten(symbol: str, x: Index, y: Index) -> tuple[list[Expr], int]:
    """The operands of both sides, sorted, and their constant.  ``^`` cancels pairs, the others drop copies."""
    found: dict[Expr, None] = {}
    constant: int = -1 if symbol == "&" else 0
    for side in (x, y):
        for operand in side.operands if isinstance(side, Bitwise) and side.symbol == symbol else (side,):
            if isinstance(operand, int):
                constant = BITWISE[symbol](constant, operand)
            elif symbol == "^" and operand in found:
                del found[operand]
            else:
                found[operand] = None
    return sorted(found, key=Expr.order), constant


def _with_constant(symbol: str, x: Index, c: int) -> Index:
    """One operand and a constant that isn't neutral."""
    mine = possible_bits(x)
    inside = not mine & ~c  # every bit that x can have is set in c
    if inside:
        return x if symbol == "&" else c if symbol == "|" else c - x
    if symbol == "&":
        for mask in (c & mine, c) if mine >= 0 else (c,):
            step = mask & -mask or 1
            run = mask // step + 1
            if not run & run - 1:  # a contiguous mask; run is 0 for one that never ends
                return x // step % run * step if run else x // step * step
        c = c & mine if mine >= 0 else c
    return Bitwise(symbol, (x, c)) if mine & c else x + c


# --- splitting at a bit -----------------------------------------------------------------------------


def _split(symbol: str, x: Index, y: Index, mine: int, others: int) -> Index | None:
    """``(2**k*a + b) ^ (2**k*c + d) -> 2**k*(a ^ c) + (b ^ d)`` for b, d in ``[0, 2**k)``.

    Worth it where one of the four is 0, but not both upper ones.
    """
    places = {k & -k for side in (x, y) for k in terms_of(side).values()}
    places.update(1 << mask.bit_length() for mask in (mine, others) if mask > 0)
    # Cuts with an upper part of 0, nearest to it first, then cuts with a lower one.
    cuts = sorted(p for p in places if (0 <= mine < p) != (0 <= others < p))
    cuts += sorted((p for p in places if p > 1 and (not mine % p or not others % p)), reverse=True)
    for place in cuts:
        left, right = _halves(x, place, mine), _halves(y, place, others)
        if left is not None and right is not None:
            low = rules.bitwise(symbol, left[1], right[1])
            return rules.bitwise(symbol, left[0], right[0]) * place + low
    return None


def _halves(x: Index, place: int, mask: int) -> tuple[Index, Index] | None:
    """``(high, low)`` with ``x == place*high + low`` and low in ``[0, place)``, where the terms show them."""
    if isinstance(x, int):
        return divmod(x, place)
    if 0 <= mask < place:
        return 0, x
    high: Terms = {}
    low: Terms = {}
    for mono, k in terms_of(x).items():
        q, r = divmod(k, place)
        if mono and r:
            low[mono] = k
            continue
        if q:
            high[mono] = q
        if r:
            low[mono] = r
    least, most = interval(low)
    if not high or least is None or least < 0 or most is None or most >= place:
        return None
    return from_terms(high), from_terms(low)


rules.bitwise = bitwise
rules.shift = shift
