"""What could not be proved, as a sympy condition that a caller can pass on if it holds."""

from __future__ import annotations

from importlib import import_module

from ..errors import LayoutError
from .adapter import from_sympy, to_sympy
from .nodes import Mod
from .polynomial import from_terms, terms_of, without_positive_factors
from .queries import is_zero, less

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def divisible(a: Any, b: Any) -> Any:
    """The condition that b divides a; None where it is known to be false, or has no form.

    >>> from sympy import symbols
    >>> n = symbols("n", integer=True, positive=True)
    >>> divisible(4 * n, 16), divisible(2 * n + 1, 2)
    (Eq(Mod(n, 4), 0), None)
    """
    sympy: Any = import_module("sympy")
    try:
        over = from_sympy(a) % from_sympy(b)
    except LayoutError:
        return None
    if is_zero(over) is False:
        return None
    terms = terms_of(over)
    if len(terms) == 1:
        ((mono, _),) = terms.items()
        if len(mono) == 1 and isinstance(mono[0], Mod):
            over = mono[0]
    over = from_terms(without_positive_factors(terms_of(over)))
    symbols = {s.name: s for x in (a, b) for s in getattr(x, "free_symbols", ())}
    return _open(sympy.Eq(to_sympy(over, symbols), 0, evaluate=False))


def equal_to(a: Any, b: Any) -> Any:
    """The condition that a and b are equal; None where it is known to be false."""
    sympy: Any = import_module("sympy")
    try:
        if is_zero(from_sympy(sympy.sympify(a) - b)) is False:
            return None
    except LayoutError:
        pass
    return _open(sympy.Eq(a, b, evaluate=False))


def no_more(a: Any, b: Any) -> Any:
    """The condition ``a <= b``; None where it is known to be false."""
    sympy: Any = import_module("sympy")
    try:
        if less(from_sympy(b), from_sympy(a)) is True:
            return None
    except LayoutError:
        return None
    return _open(sympy.Le(a, b, evaluate=False))


def _open(x: Any) -> Any:
    return x if getattr(x, "is_Relational", False) else None
