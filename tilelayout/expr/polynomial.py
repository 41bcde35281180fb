"""Sums and products: the polynomial normal form, and the sums in which quotients and remainders meet again.

Terms with equal monomials are collected, so ``(n + 1)*4`` and ``4*n + 4`` are one value.  After that
``c*(x // c) + x % c`` becomes ``x`` again, with its relatives; how ``//`` and ``%`` come about is not decided here.
"""

from __future__ import annotations

from math import gcd

from ..errors import LayoutError
from .core import Atom, Expr, Index, admit, rules
from .nodes import Division, FloorDiv, Mod, Polynomial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .nodes import Monomial, Terms

    Step = tuple[int, Terms, Terms]


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
    for mono, k in terms.items():
        for atom in mono:
            if isinstance(atom, Division):
                rest = without(mono, (atom,)) or ()
                step = _remainder(terms, atom, rest, k) if isinstance(atom, Mod) else None
                if isinstance(atom, FloorDiv):
                    step = _quotient(terms, atom, rest, k)
                if step is not None:
                    return step
    return None


def _contains(terms: Terms, part: Terms, k: int) -> bool:
    """Whether `terms` has `k` times each term of `part`; any constant can be split off."""
    some = False
    for mono, coefficient in part.items():
        if mono:
            some = True
            if terms.get(mono) != k * coefficient:
                return False
    return some


def _difference(x: Terms, y: Terms) -> Terms:
    terms = dict(x)
    accumulate(terms, y, -1)
    return terms


def _remainder(terms: Terms, r: Mod, rest: Monomial, k: int) -> Step | None:
    """What the term ``k * rest * (x % c)`` can be part of."""
    x, c = times_monomial(terms_of(r.dividend), rest), r.divisor
    own: Terms = {merge(rest, (r,)): 1}
    if _contains(terms, x, -k):  # x - x % c -> c*(x // c)
        multiple = times_monomial(terms_of(c * r.partner), rest)
        return -k, _difference(x, own), multiple
    others = [a for mono in terms for a in mono if isinstance(a, Division) and a is not r]
    if not others:
        return None
    q = r.partner
    multiple = times_monomial(terms_of(c * q), rest)
    if _contains(terms, multiple, k):  # c*(x // c) + x % c -> x
        return k, {**multiple, **own}, x
    for other in others:
        if isinstance(other, Mod):
            multiple = times_monomial(terms_of(c * other), rest)
            if _contains(terms, multiple, k) and isinstance(ahead := other.dividend - q, int):
                # c*((x // c + d) % b) + x % c -> (x + c*d) % (c*b)
                merged = (r.dividend + c * ahead) % (c * other.divisor)
                return k, {**multiple, **own}, times_monomial(terms_of(merged), rest)
    return None


def _quotient(terms: Terms, q: FloorDiv, rest: Monomial, k: int) -> Step | None:
    """What the term ``k * rest * (x // c)`` can be part of."""
    divisor = single(q.divisor)
    if divisor is None:
        return None
    outer = without(rest, divisor[0])
    if outer is None or k % divisor[1]:
        return None
    k //= divisor[1]
    x = times_monomial(terms_of(q.dividend), outer)
    own: Terms = {merge(rest, (q,)): divisor[1]}
    if _contains(terms, x, -k):  # x - c*(x // c) -> x % c
        return -k, _difference(x, own), times_monomial(terms_of(q.partner), outer)
    if any(k == v or not v % k for mono, v in terms.items() if q not in mono):
        remainder = times_monomial(terms_of(q.partner), outer)
        if _contains(terms, remainder, k):  # c*(x // c) + x % c -> x, where x % c is no longer one remainder
            return k, {**own, **remainder}, x
    return None


# --- exact division ---------------------------------------------------------------------------------


def divide_exact(x: Index, y: Index) -> Index | None:
    """The quotient ``x / y`` where `y` is proved to divide `x`, else None.

    Post-condition: ``divide_exact(x, y) * y == x``.  Refused where `y` is 0.

    >>> from tilelayout.expr import Var
    >>> n, m = Var("n", 1), Var("m", 1)
    >>> divide_exact(6 * n * m + 4 * n, 2 * n), divide_exact(n * n - 1, n + 1), divide_exact(n + 1, 2)
    (3*m + 2, n - 1, None)
    """
    x, y = admit(x, "divide_exact"), admit(y, "divide_exact")
    if y == 0:
        raise LayoutError("divide_exact", f"{x} is divided by zero")
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


def content(terms: Terms, k: int) -> int:
    """The greatest common divisor of `k` and all coefficients but the constant."""
    for mono, coefficient in terms.items():
        if mono:
            k = gcd(k, coefficient)
    return k


rules.add = add
rules.multiply = multiply
