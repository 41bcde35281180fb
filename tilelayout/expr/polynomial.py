"""Sums and products: the polynomial normal form, and the sums in which quotients and remainders meet again.

Terms with equal monomials are collected, so ``(n + 1)*4`` and ``4*n + 4`` are one value.  After that
``c*(x // c) + x % c`` becomes ``x`` again, with its relatives.  How ``//`` and ``%`` simplify is not decided here.
"""

from __future__ import annotations

from math import gcd

from .core import Atom, Expr, Index, rules
from .nodes import Division, Mod, Polynomial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .nodes import Monomial, Terms

    Step = tuple[int, Terms, Terms]
    Divisions = list[tuple[Division, Monomial, int]]


def terms_of(x: Index) -> Terms:
    """The terms of a value; an atom that has only one value is that constant.  Read only."""
    if isinstance(x, Polynomial):
        return x.terms
    if isinstance(x, Atom):
        if x.lo is None or x.lo != x.hi:
            return {(x,): 1}
        x = x.lo
    return {(): x} if x and isinstance(x, int) else {}


def from_terms(terms: Terms) -> Index:
    """The value of terms that no rule of sums applies to."""
    if not terms:
        return 0
    if len(terms) == 1:
        ((mono, k),) = terms.items()
        if not mono:
            return k
        if k == 1 and len(mono) == 1:
            return mono[0]
    return Polynomial(terms)


def accumulate(terms: Terms, more: Terms, factor: int) -> None:
    """Add `factor` times `more` to `terms`, in place."""
    for mono, k in more.items():
        total = terms.get(mono, 0) + factor * k
        if total:
            terms[mono] = total
        else:
            terms.pop(mono, None)


def add(x: Index, y: Index, factor: int) -> Index:
    """``x + factor*y``."""
    terms = dict(terms_of(x))
    accumulate(terms, terms_of(y), factor)
    return from_terms(reunite(terms))


def multiply(x: Index, y: Index) -> Index:
    """``x * y``, distributed."""
    if isinstance(x, int):
        x, y = y, x
    if isinstance(y, int):
        # A multiple of a normal form is one: nothing can meet that had not met before.
        return from_terms({mono: k * y for mono, k in terms_of(x).items()} if y else {})
    return from_terms(reunite(product(terms_of(x), terms_of(y))))


def product(x: Terms, y: Terms) -> Terms:
    """The terms of a product."""
    terms: Terms = {}
    for mono, k in x.items():
        accumulate(terms, times_monomial(y, mono), k)
    return terms


def times_monomial(terms: Terms, mono: Monomial) -> Terms:
    return {merge(mono, other): k for other, k in terms.items()} if mono else terms


def merge(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials: their atoms, sorted."""
    return tuple(sorted(a + b, key=Expr.order)) if a and b else a or b


def without(mono: Monomial, part: Monomial) -> Monomial | None:
    """The quotient of monomials; None where `part` doesn't divide."""
    if not part:
        return mono
    rest = list(mono)
    for atom in part:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def single(x: Index) -> tuple[Monomial, int] | None:
    """The only term of a value; None for zero and for sums."""
    terms = terms_of(x)
    return next(iter(terms.items())) if len(terms) == 1 else None


# --- quotients and remainders that meet in a sum ----------------------------------------------------


def reunite(terms: Terms) -> Terms:
    """Replace sums that a rule of division undoes, in place.

    Every step leaves fewer quotients and remainders, or as many of them and fewer terms, so this ends.
    """
    if len(terms) < 2:
        return terms
    while True:
        step = _step(terms)
        if step is None:
            return terms
        k, found, instead = step
        accumulate(terms, found, -k)
        accumulate(terms, instead, k)


def _step(terms: Terms) -> Step | None:
    """The first multiple ``k*found`` in a sum for which the shorter ``k*instead`` may stand."""
    divisions = [(x, mono, k) for mono, k in terms.items() for x in mono if isinstance(x, Division)]
    for x, mono, k in divisions:
        rest = (without(mono, (x,)) or ()) if len(mono) > 1 else ()
        rule = _remainder if isinstance(x, Mod) else _quotient
        step = rule(terms, divisions, x, rest, k)
        if step is not None:
            return step
    return None


def _has(terms: Terms, x: Index, rest: Monomial, k: int) -> bool:
    """Whether `terms` has ``k*rest*x``; any constant of `x` can be split off."""
    if isinstance(x, Atom):
        return terms.get(merge(rest, (x,))) == k
    some = False
    for mono, coefficient in terms_of(x).items():
        if mono or rest:
            some = True
            if terms.get(merge(rest, mono)) != k * coefficient:
                return False
    return some


def _difference(x: Terms, y: Terms) -> Terms:
    terms = dict(x)
    accumulate(terms, y, -1)
    return terms


def _remainder(terms: Terms, divisions: Divisions, r: Division, rest: Monomial, k: int) -> Step | None:
    """What the term ``k * rest * (x % c)`` can be part of."""
    x, c = r.dividend, r.divisor
    own: Terms = {merge(rest, (r,)): 1}
    if _has(terms, x, rest, -k):  # x - x % c -> c*(x // c)
        found = _difference(times_monomial(terms_of(x), rest), own)
        return -k, found, times_monomial(terms_of(c * r.partner), rest)
    if len(divisions) == 1:
        return None
    q = r.partner
    if isinstance(c, int) and isinstance(q, Atom):
        whole = terms.get(merge(rest, (q,))) == k * c
    else:
        whole = _has(terms, c * q, rest, k)
    if whole:  # c*(x // c) + x % c -> x
        found = {**times_monomial(terms_of(c * q), rest), **own}
        return k, found, times_monomial(terms_of(x), rest)
    for other, _, share in divisions:
        if isinstance(other, Mod) and other is not r and (not isinstance(c, int) or share == k * c):
            multiple = c * other
            if _has(terms, multiple, rest, k) and isinstance(ahead := other.dividend - q, int):
                # c*((x // c + d) % b) + x % c -> (x + c*d) % (c*b)
                merged = (x + c * ahead) % (c * other.divisor)
                found = {**times_monomial(terms_of(multiple), rest), **own}
                return k, found, times_monomial(terms_of(merged), rest)
    return None


def _quotient(terms: Terms, divisions: Divisions, q: Division, rest: Monomial, k: int) -> Step | None:
    """What the term ``k * rest * (x // c)`` can be part of."""
    divisor = ((), q.divisor) if isinstance(q.divisor, int) else single(q.divisor)
    if divisor is None or k % divisor[1]:
        return None
    outer = without(rest, divisor[0])
    if outer is None:
        return None
    k //= divisor[1]
    own: Terms = {merge(rest, (q,)): divisor[1]}
    if _has(terms, q.dividend, outer, -k):  # x - c*(x // c) -> x % c
        found = _difference(times_monomial(terms_of(q.dividend), outer), own)
        return -k, found, times_monomial(terms_of(q.partner), outer)
    if any(share == k for other, _, share in divisions if other is not q) and _has(
        terms, q.partner, outer, k
    ):
        # c*(x // c) + x % c -> x, where x % c is no longer one remainder
        found = {**own, **times_monomial(terms_of(q.partner), outer)}
        return k, found, times_monomial(terms_of(q.dividend), outer)
    return None


# --- exact division ---------------------------------------------------------------------------------


def term_quotient(x: Index, y: Index) -> Index | None:
    """The quotient ``x / y`` where `y`, not 0, divides `x` as a polynomial in the atoms that stand there, else None.

    Sums that met may hide a factor; `queries.divide_exact` looks behind them.
    """
    quotient, remainder = long_division(terms_of(x), terms_of(y))
    return None if remainder else from_terms(quotient)


def long_division(x: Terms, y: Terms) -> tuple[Terms, Terms]:
    """Polynomials ``(q, r)`` with ``x == q*y + r`` where no term of `r` is a multiple of `y`'s leading term."""
    lead = max(y, key=_degree)
    quotient: Terms = {}
    remainder: Terms = {}
    left = dict(x)
    while left:
        mono = next(iter(left)) if len(y) == 1 else max(left, key=_degree)
        k = left[mono]
        share = without(mono, lead)
        if share is None or k % y[lead]:
            remainder[mono] = left.pop(mono)
        else:
            quotient[share] = k // y[lead]
            accumulate(left, times_monomial(y, share), -quotient[share])
    return quotient, remainder


def _degree(mono: Monomial) -> tuple[int, tuple[str, ...]]:
    """The order of monomials that division needs: by degree, then by their atoms."""
    return len(mono), tuple([atom.order() for atom in mono])


def without_positive_factors(terms: Terms) -> Terms:
    """The terms divided by all that they have in common and that is at least 1: they are 0 for the same values."""
    while terms and () not in terms:
        first = next(iter(terms))
        common = next(
            (x for x in first if x.lo is not None and x.lo >= 1 and all(x in mono for mono in terms)), None
        )
        if common is None:
            break
        terms = {without(mono, (common,)) or (): k for mono, k in terms.items()}
    return terms


def content(terms: Terms, k: int) -> int:
    """The greatest common divisor of `k` and all coefficients but the constant."""
    for mono, coefficient in terms.items():
        if mono:
            k = gcd(k, coefficient)
    return k


rules.add = add
rules.multiply = multiply
