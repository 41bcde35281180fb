"""Floor division and remainder.

Divisors are at least 1: a negative one is turned around, one that may be zero is refused.  The rules for a
constant divisor work on terms and are the hot path; those for a symbolic one ask for proofs by bounds.  Sums
that undo a division are not recognized here but in `polynomial`.
"""

from __future__ import annotations

from functools import reduce
from math import gcd

from ..errors import LayoutError
from .core import Expr, Index, Var, bounds, rules, settled
from .nodes import BITWISE, Bitwise, FloorDiv, Mod, Polynomial, Shift, interval
from .polynomial import (
    accumulate,
    from_terms,
    long_division,
    product,
    reunite,
    single,
    term_quotient,
    terms_of,
    without,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .nodes import Terms


def divide(x: Index, y: Index) -> Index:
    """``x // y``."""
    y = settled(y)
    if isinstance(y, int):
        if y <= 0:
            return _nonzero(-x // -y if y else None, x, "//")
        if isinstance(x, int):
            return x // y
        if isinstance(x, Polynomial):
            return from_terms(reunite(quotient_terms(x.terms, y)))
        if x.lo is not None and x.hi is not None and x.lo // y == x.hi // y:
            return x.lo // y
        return x if y == 1 else _divide_atom(x, y)
    if y.hi is not None and y.hi < 0:
        return -x // -y
    _check_positive(x, y, "//")
    return _divide_symbolic(x, y)


def modulo(x: Index, y: Index) -> Index:
    """``x % y``; it has the sign of `y`."""
    y = settled(y)
    if isinstance(y, int):
        if y <= 0:
            return _nonzero(-(-x % -y) if y else None, x, "%")
        return x % y if isinstance(x, int) else _modulo(x, y)
    if y.hi is not None and y.hi < 0:
        return -(-x % -y)
    _check_positive(x, y, "%")
    return _modulo_symbolic(x, y)


def _nonzero(result: Index | None, x: Index, symbol: str) -> Index:
    if result is None:
        raise LayoutError(f"expression {symbol}", f"{x} {symbol} 0 divides by zero")
    return result


def _check_positive(x: Index, y: Expr, symbol: str) -> None:
    if y.lo is None or y.lo < 1:
        low = "minus infinity" if y.lo is None else y.lo
        raise LayoutError(
            f"expression {symbol}",
            f"{x} {symbol} ({y}): the divisor may be zero or negative, its lower bound is {low}",
            "declare its variables with bounds that exclude zero, such as lo=1 (positive=True for a sympy symbol)",
        )


# --- constant divisors ------------------------------------------------------------------------------


def quotient_terms(terms: Terms, c: int, canonical: bool = False) -> Terms:
    """The terms of ``terms // c``, for ``c >= 1``.

    What `c` divides leaves the quotient.  Then a common factor of `c` and some terms cancels, where the other
    terms can't carry: ``(8*u + r) // 16 -> u // 2`` for r in ``[0, 8)``.  With `canonical`, coefficients inside a
    quotient end up in ``[0, c)`` and remainders are taken to be absent; else they keep their sign, which gives
    better bounds.
    """
    whole: Terms = {}
    rest: Terms = {}
    for mono, k in terms.items():
        q, r = divmod(k, c) if k >= 0 or not mono else (-(-k // c), -(-k % c))
        if q:
            whole[mono] = q
        if r:
            rest[mono] = r
    constant = constant_quotient(rest, c)
    if constant is not None:
        accumulate(whole, {(): constant}, 1)
        return whole
    if canonical:
        accumulate(whole, {mono: 1 for mono, k in rest.items() if k < 0}, -1)
        rest = {mono: k % c for mono, k in rest.items()}
        constant = constant_quotient(rest, c)
        if constant is not None:
            accumulate(whole, {(): constant}, 1)
            return whole
    for g in _common_factors(rest, c):
        high, low = _split(rest, g)
        carry = constant_quotient(low, g)
        if carry is not None:
            accumulate(high, {(): carry}, 1)
            accumulate(whole, quotient_terms(high, c // g, canonical), 1)
            return whole
    inner = _nested_quotient(rest, c, canonical)
    if inner is None:
        inner = _mirrored_quotient(rest, c, canonical)
    accumulate(whole, {(FloorDiv(from_terms(rest), c),): 1} if inner is None else inner, 1)
    return whole


def constant_quotient(terms: Terms, c: int) -> int | None:
    """The value of ``terms // c`` where the bounds leave only one."""
    lo, hi = interval(terms)
    return lo // c if lo is not None and hi is not None and lo // c == hi // c else None


def _common_factors(terms: Terms, c: int) -> list[int]:
    """The factors, largest first, that `c` has in common with some coefficient."""
    return sorted({g for mono, k in terms.items() if mono and (g := gcd(k, c)) > 1}, reverse=True)


def _split(terms: Terms, g: int) -> tuple[Terms, Terms]:
    """``(high, low)`` with ``terms == g*high + low``."""
    high: Terms = {}
    low: Terms = {}
    for mono, k in terms.items():
        if mono and k % g:
            low[mono] = k
            continue
        q, r = divmod(k, g)
        if q:
            high[mono] = q
        if r:
            low[mono] = r
    return high, low


def _nested_quotient(rest: Terms, c: int, canonical: bool) -> Terms | None:
    """``(x // a + k) // c -> (x + a*k) // (a*c)``, and what a lone atom knows about its quotient.

    For every `k` with `canonical`, else where `k` is a constant.
    """
    lone = len(rest) == 1 or (len(rest) == 2 and () in rest)
    quotients = [
        (x.divisor, x)
        for mono, k in rest.items()
        if k == 1 and len(mono) == 1 and isinstance(x := mono[0], FloorDiv) and isinstance(x.divisor, int)
    ]
    if quotients and (lone or canonical):
        a, inner = min(quotients, key=lambda found: (found[0], found[1].order()))
        terms = {mono: a * k for mono, k in rest.items() if mono != (inner,)}
        accumulate(terms, terms_of(inner.dividend), 1)
        return quotient_terms(terms, a * c, canonical)
    mono, k = next(iter(rest.items()))
    if len(rest) == 1 and k == 1 and len(mono) == 1 and not canonical:
        return dict(terms_of(_divide_atom(mono[0], c)))
    return None


def _mirrored_quotient(rest: Terms, c: int, canonical: bool) -> Terms | None:
    """``-x // c -> -((x + c - 1) // c)``, so that rounding up has one form, and one with a C text.

    Where all terms are negative; with `canonical`, where that is the way to nest or gives smaller coefficients.
    """
    if not canonical and any(mono and k > 0 for mono, k in rest.items()):
        return None
    mirror = {mono: -k % c for mono, k in rest.items() if mono}
    if k := c - 1 - rest.get((), 0):
        mirror[()] = k
    if not canonical:
        return {mono: -k for mono, k in quotient_terms(mirror, c).items()}
    inner = _nested_quotient(mirror, c, canonical)
    if inner is None and _in_order(rest) <= _in_order(mirror):
        return None
    result: Terms = {mono: 1 for mono in mirror if mono}
    accumulate(result, {(FloorDiv(from_terms(mirror), c),): 1} if inner is None else inner, -1)
    return result


def _in_order(terms: Terms) -> tuple[list[tuple[list[str], int]], int]:
    """The terms as something that can be compared, the constant last."""
    return sorted(([x.order() for x in mono], k) for mono, k in terms.items() if mono), terms.get((), 0)


def _divide_atom(x: Expr, c: Index) -> Index:
    if isinstance(x, FloorDiv):
        if isinstance(x.divisor, int) and isinstance(c, int):
            return from_terms(reunite(quotient_terms(terms_of(x.dividend), x.divisor * c)))
        if _positive(x.divisor * c):
            return x.dividend // (x.divisor * c)
    if isinstance(x, Mod):
        ratio = term_quotient(x.divisor, c)
        if ratio is not None and _positive(ratio):
            return x.dividend // c % ratio
    if isinstance(x, Bitwise) and isinstance(c, int) and not c & c - 1:
        shifted = _through(x.symbol, [operand // c for operand in x.operands], -1)
        if shifted is not None:
            return shifted
    return FloorDiv(x, c)


def _through(symbol: str, operands: list[Index], ones: int) -> Index | None:
    """A bit operation on shifted operands, or on ones masked to `ones`; None where none of them drops out."""
    if 0 not in operands and (symbol == "^" or ones not in operands):
        return None
    return reduce(BITWISE[symbol], operands)


def _modulo(x: Expr, c: int) -> Index:
    if x.lo is not None and x.hi is not None and x.lo // c == x.hi // c:
        return x - x.lo // c * c
    if c == 1:
        return 0
    if isinstance(x, Var | FloorDiv | Shift):
        return Mod(x, c)
    rest: Terms = {}
    for mono, k in terms_of(x).items():
        r = k % c if k >= 0 or not mono else -(-k % c)
        if r:
            rest[mono] = r
    constant = constant_quotient(rest, c)
    if constant is not None:
        return from_terms(rest) - constant * c
    for g in _common_factors(rest, c):
        high, low = _split(rest, g)
        carry = constant_quotient(low, g)
        if carry is not None:
            accumulate(high, {(): carry}, 1)
            return from_terms(high) % (c // g) * g + (from_terms(low) - carry * g)
    for mono, k in rest.items():
        if len(mono) == 1 and isinstance(r := mono[0], Mod) and term_quotient(r.divisor * k, c) is not None:
            del rest[mono]  # a remainder by a multiple of c is none here
            accumulate(rest, terms_of(r.dividend), k)
            return from_terms(reunite(rest)) % c
    y = from_terms(rest)
    if isinstance(y, Bitwise) and not c & c - 1:
        masked = _through(y.symbol, [operand % c for operand in y.operands], c - 1)
        if masked is not None:
            return masked
    return Mod(y, c)


# --- symbolic divisors ------------------------------------------------------------------------------


def _positive(x: Index) -> bool:
    """Whether the bounds say so: a product of positive factors need not show it once it is expanded."""
    low = bounds(x)[0]
    return low is not None and low >= 1


def _within(x: Index, y: Index) -> bool:
    """Whether ``0 <= x < y`` is proved."""
    low = bounds(x)[0]
    if low is None or low < 0:
        return False
    gap = lower_bound(y - x)
    return gap is not None and gap >= 1


def lower_bound(x: Index) -> int | None:
    """A lower bound that also knows ``r <= n - 1`` for each remainder `r` by a symbolic `n`."""
    lo = bounds(x)[0]
    terms = dict(terms_of(x))
    for mono, k in terms_of(x).items():
        for r in mono if k < 0 else ():
            rest = without(mono, (r,)) or ()
            if isinstance(r, Mod) and isinstance(r.divisor, Expr) and _positive(from_terms({rest: 1})):
                del terms[mono]
                accumulate(terms, product({rest: k}, terms_of(r.divisor - 1)), 1)
                break
    other = interval(terms)[0]
    return other if lo is None or other is None else max(lo, other)


def _factors(x: Index, y: Expr) -> list[Index]:
    """Products, each at least 1, that the one-term divisor `y` has in common with some term of `x`."""
    divisor = single(y)
    if divisor is None:
        return []
    found: dict[Index, None] = {}
    for mono, k in terms_of(x).items():
        common = tuple(
            atom for atom in dict.fromkeys(divisor[0]) for _ in range(_times_in(atom, mono, divisor[0]))
        )
        g = from_terms({common: gcd(k, divisor[1])})
        if g != 1 and _positive(g):
            found[g] = None
    return list(found)


def _times_in(atom: Expr, *monos: tuple[Expr, ...]) -> int:
    return min(mono.count(atom) for mono in monos)


def _cancel(x: Index, y: Expr) -> tuple[Index, Index, Index, Index] | None:
    """``(g, u, r, y / g)`` with ``x == g*u + r`` and ``0 <= r < g``, where `g` is in both `x` and `y`."""
    for g in _factors(x, y):
        quotient, remainder = long_division(terms_of(x), terms_of(g))
        ratio = term_quotient(y, g)
        low = from_terms(remainder)
        if ratio is not None and _positive(ratio) and _within(low, g):
            return g, from_terms(quotient), low, ratio
    return None


def _split_symbolic(x: Index, y: Expr) -> tuple[Index, Index]:
    """``(q, r)`` with ``x == q*y + r``: all of `x` that `y` is seen to divide.

    A one-term divisor takes the terms that it divides; another one must leave a true remainder.
    """
    quotient, remainder = long_division(terms_of(x), terms_of(y))
    rest = from_terms(remainder)
    if single(y) is not None or _within(rest, y):
        return from_terms(quotient), rest
    return 0, x


def _divide_symbolic(x: Index, y: Expr) -> Index:
    q, rest = _split_symbolic(x, y)
    if _within(rest, y):
        return q
    common = _cancel(rest, y)
    if common is not None:
        _, u, _, ratio = common
        return q + u // ratio
    return q + (FloorDiv(rest, y) if isinstance(rest, int | Polynomial) else _divide_atom(rest, y))


def _modulo_symbolic(x: Index, y: Expr) -> Index:
    _, rest = _split_symbolic(x, y)
    if _within(rest, y):
        return rest
    common = _cancel(rest, y)
    if common is not None:
        g, u, low, ratio = common
        return u % ratio * g + low
    if isinstance(rest, Mod) and term_quotient(rest.divisor, y) is not None:
        return rest.dividend % y
    return Mod(rest, y)


rules.divide = divide
rules.modulo = modulo
