"""Questions asked of expressions: values, substitution, and what can be proved about two of them.

Proofs go by normal form and bounds; nothing is enumerated, and what isn't proved is answered with None.
"""

from __future__ import annotations

from ..errors import LayoutError
from .core import Expr, Index, Var, admit, bounds, rules
from .division import lower_bound, quotient_terms
from .nodes import BITWISE, Bitwise, FloorDiv, Mod, Polynomial, Shift, variables
from .polynomial import (
    accumulate,
    content,
    from_terms,
    long_division,
    merge,
    product,
    reunite,
    single,
    term_quotient,
    terms_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .nodes import Terms

INT64_LIMIT = 1 << 63


# --- values -----------------------------------------------------------------------------------------


def evaluate(x: Index, env: Mapping[str, Any]) -> Any:
    """The value where each variable has the value that `env` gives its name.

    Arrays of integers may be given instead of ints; they broadcast, and the result is an array: int64 where
    every intermediate value fits, else of Python ints, so that nothing wraps.  A missing name and a value
    outside a variable's bounds are refused, since simplification has relied on them.

    >>> i = Var("i", 0, 7)
    >>> evaluate(2 * i + i // 4, {"i": 5})
    11
    >>> evaluate(i, {"i": 8})
    Traceback (most recent call last):
    tilelayout.errors.LayoutError: evaluate: i is 8, outside its bounds 0 to 7
    """
    x = admit(x, "evaluate")
    memo: dict[Index, Any] = {}
    arrays: dict[Index, Any] = {}
    for v in variables(x):
        if v.name not in env:
            raise LayoutError("evaluate", f"{v.name} has no value in {x}", f"give {v.name}=...")
        given = env[v.name]
        memo[v] = given if type(given) is int else _as_value(given, v)
        if type(memo[v]) is int:
            _check_inside(v, (memo[v], memo[v]), memo[v], "evaluate")
        else:
            arrays[v] = memo[v]
    if arrays:
        reach = {v: int(abs(given).max()) if given.size else 0 for v, given in arrays.items()}
        if _reach(x, {**memo, **reach}) < INT64_LIMIT:
            memo.update({v: given.astype("int64") for v, given in arrays.items()})
    return rebuild(x, memo)


def _as_value(given: Any, v: Var) -> Any:
    """An int, or an array of Python ints that is in bounds."""
    kind = getattr(getattr(given, "dtype", None), "kind", "")
    if kind in ("i", "u", "O") and getattr(given, "ndim", 0):
        exact = given.astype(object)
        if kind == "O" and not all(type(value) is int for value in exact.flat):
            raise LayoutError("evaluate", f"the array for {v.name} has values that are not ints")
        if given.size:
            low, high = admit(exact.min(), "evaluate"), admit(exact.max(), "evaluate")
            _check_inside(v, (low, high), f"an array from {low} to {high}", "evaluate")
        return exact
    value = admit(given, f"evaluate {v.name}")
    if isinstance(value, Expr):
        raise LayoutError("evaluate", f"{v.name} is given the expression {value}", "use substitute")
    return value


def _check_inside(v: Var, given: tuple[Any, Any], shown: object, operation: str) -> None:
    low, high = given
    if (v.lo is not None and (low is None or low < v.lo)) or (
        v.hi is not None and (high is None or high > v.hi)
    ):
        ends = f"{'-inf' if v.lo is None else v.lo} to {'inf' if v.hi is None else v.hi}"
        raise LayoutError(operation, f"{v.name} is {shown}, outside its bounds {ends}")


def _reach(x: Index, known: dict[Index, int]) -> int:
    """No intermediate value of `x` is larger in magnitude, for variables whose magnitudes are known."""
    if isinstance(x, int):
        return abs(x)
    if x in known:
        return abs(known[x])
    if isinstance(x, Polynomial):
        reach = 0
        for mono, k in x.terms.items():
            share = abs(k)
            for atom in mono:
                share *= max(_reach(atom, known), 1)
            reach += share
    elif isinstance(x, Bitwise):
        reach = 1 << max(_reach(operand, known).bit_length() for operand in x.operands)
    elif isinstance(x, Shift):
        reach = max(_reach(x.operand, known), 1) << min(_reach(x.count, known), 64)
    else:
        reach = max(_reach(part, known) for part in x.parts())
    known[x] = reach
    return reach


def rebuild(x: Index, memo: dict[Index, Any]) -> Any:
    """`x` with the operators applied again to what `memo` has for its variables."""
    if isinstance(x, int):
        return x
    if x in memo:
        return memo[x]
    result: Any
    if isinstance(x, Polynomial):
        result = x.terms.get((), 0)
        for mono, k in x.terms.items():
            if mono:
                share: Any = k
                for atom in mono:
                    share = share * rebuild(atom, memo)
                result = result + share
    elif isinstance(x, Bitwise):
        result = rebuild(x.operands[0], memo)
        for operand in x.operands[1:]:
            result = BITWISE[x.symbol](result, rebuild(operand, memo))
    elif isinstance(x, Var):
        result = x
    else:
        a, b = [rebuild(part, memo) for part in x.parts() if not isinstance(part, str)]
        if isinstance(x, Shift):
            result = a << b if x.symbol == "<<" else a >> b
        else:
            result = a // b if isinstance(x, FloorDiv) else a % b
    memo[x] = result
    return result


def substitute(x: Index, env: Mapping[str, Index]) -> Index:
    """The expression with each variable that `env` names replaced by an int or an expression.

    A replacement must be proved to stay in the variable's bounds, since simplification has relied on them.

    >>> i, j = Var("i", 0, 7), Var("j", 0, 1)
    >>> substitute(8 * i + i // 4, {"i": 4 * j + 3})
    33*j + 24
    >>> substitute(i // 2, {"i": 8 * j})
    Traceback (most recent call last):
    tilelayout.errors.LayoutError: substitute: i is 8*j (0 to 8), outside its bounds 0 to 7
    """
    x = admit(x, "substitute")
    memo: dict[Index, Any] = {}
    for v in variables(x):
        if v.name in env:
            value = admit(env[v.name], f"substitute {v.name}")
            lo, hi = bounds(value)
            if value != v:
                ends = f"{'-inf' if lo is None else lo} to {'inf' if hi is None else hi}"
                shown = value if isinstance(value, int) else f"{value} ({ends})"
                _check_inside(v, (lo, hi), shown, "substitute")
            memo[v] = value
    return rebuild(x, memo) if memo else x


# --- proofs -----------------------------------------------------------------------------------------


def is_zero(x: Index) -> bool | None:
    """True where `x` is proved to be always zero, False where it is proved never to be, else None.

    >>> i = Var("i", 0, 9)
    >>> is_zero(i % 8 % 4 - i % 4), is_zero(2 * i + 1), is_zero(i)
    (True, False, None)
    """
    x = admit(x, "is_zero")
    if isinstance(x, int):
        return x == 0
    if less(0, x) or less(x, 0):
        return False
    terms = _without_remainders(terms_of(x), {})
    if not terms:
        return True
    constant = terms.get((), 0)
    if constant and (len(terms) == 1 or constant % content(terms, 0)):
        return False
    lo, hi = bounds(from_terms(terms))
    return False if (lo is not None and lo > 0) or (hi is not None and hi < 0) else None


def equal(x: Index, y: Index) -> bool | None:
    """True where `x` and `y` are proved to be always equal, False where never, else None.

    >>> n, i = Var("n", 1), Var("i", 0, 99)
    >>> equal((n + 1) * 4, 4 * n + 4), equal(n, n + 1), equal(n, 4)
    (True, False, None)
    >>> equal((i - 1) // 8, (i + 7) // 8 - 1), equal((5 * i) % 8, (8 * i - 3 * i) % 8)
    (True, True)
    """
    x, y = admit(x, "equal"), admit(y, "equal")
    return True if x == y else is_zero(x - y)


def less(x: Index, y: Index) -> bool | None:
    """True where ``x < y`` is proved to hold always, False where never, else None.

    >>> n = Var("n", 1)
    >>> less(n - 1, n), less(Var("i") % n, n), less(n, 1), less(n, 4)
    (True, True, False, None)
    """
    x, y = admit(x, "less"), admit(y, "less")
    gap, excess = lower_bound(y - x), lower_bound(x - y)
    return True if gap is not None and gap > 0 else False if excess is not None and excess >= 0 else None


def divide_exact(x: Index, y: Index) -> Index | None:
    """The quotient ``x / y`` where `y` is proved to divide `x`, else None.

    Post-condition: ``divide_exact(x, y) * y == x``.  Refused where `y` is 0.

    >>> n, m = Var("n", 1), Var("m", 1)
    >>> divide_exact(6 * n * m + 4 * n, 2 * n), divide_exact(n * n - 1, n + 1)
    (3*m + 2, n - 1)
    >>> divide_exact(n + 1, 2) is None
    True
    """
    x, y = admit(x, "divide_exact"), admit(y, "divide_exact")
    if y == 0:
        raise LayoutError("divide_exact", f"{x} is divided by zero")
    found = term_quotient(x, y)
    if found is not None or isinstance(x, int):
        return found
    # A product may have been rewritten where its remainders met their quotients: a*(x % c) with a*c*(x // c) to a*x.
    memo: dict[Expr, Terms] = {}
    above, below = [_without_remainders(terms_of(z), memo) for z in (x, y)]
    if not below:
        return None
    quotient, remainder = long_division(above, below)
    return None if remainder else from_terms(reunite(quotient))


def _without_remainders(terms: Terms, memo: dict[Expr, Terms]) -> Terms:
    """Terms of the same value with ``x - c*(x // c)`` for ``x % c``, and the smallest coefficients in quotients.

    More values are equal there, but bounds are worse and texts longer: for proofs only.
    """
    result: Terms = {}
    for mono, k in terms.items():
        share: Terms = {(): 1}
        for atom in mono:
            if isinstance(atom, FloorDiv | Mod):
                if atom not in memo:
                    memo[atom] = _canonical_division(atom, memo)
                share = product(share, memo[atom])
            else:
                share = {merge(m, (atom,)): c for m, c in share.items()}
        accumulate(result, share, k)
    return result


def _canonical_division(x: FloorDiv | Mod, memo: dict[Expr, Terms]) -> Terms:
    dividend = _without_remainders(terms_of(x.dividend), memo)
    if isinstance(x.divisor, int):
        quotient = quotient_terms(dividend, x.divisor, canonical=True)
    else:
        quotient, rest = {}, dividend
        if single(x.divisor) is not None:
            quotient, rest = long_division(dividend, terms_of(x.divisor))
        if rest:
            accumulate(quotient, {(FloorDiv(from_terms(rest), x.divisor),): 1}, 1)
    if isinstance(x, FloorDiv):
        return quotient
    terms = dict(dividend)
    accumulate(terms, product(terms_of(x.divisor), quotient), -1)
    return terms


rules.evaluate = evaluate
rules.substitute = substitute
