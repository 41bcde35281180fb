"""Questions about integers that may be symbolic: equal? divides? which sign?

Plain ints are answered on the spot; a symbol sends the question to `expr`, whose polynomial normal form
proves or fails to prove.  "Not proved" is an answer (None or False), never a guess.
"""

from __future__ import annotations

from ..errors import LayoutError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..expr import Index
    from ..parts import Integer


def same(a: Integer, b: Integer) -> bool:
    """Whether `a == b` is proved."""
    if a == b:
        return True
    if type(a) is int and type(b) is int:
        return False
    from .. import expr

    found = lifted(a, b)
    return found is not None and expr.equal(*found) is True


def quotient(a: Integer, b: Integer) -> Integer | None:
    """``a / b`` where `b` is proved to divide `a` (b positive), else None."""
    if type(a) is int and type(b) is int:
        return a // b if a % b == 0 else None
    from .. import expr

    both = lifted(a, b)
    found = None if both is None else expr.divide_exact(*both)
    return None if found is None else found if type(found) is int else expr.to_sympy(found, symbols_of(a, b))


def at_most(a: Integer, b: Integer) -> bool:
    """Whether ``a <= b`` is proved."""
    if type(a) is int and type(b) is int:
        return a <= b
    if getattr(b - a, "is_nonnegative", False):
        return True
    from .. import expr

    found = lifted(a, b)
    return found is not None and expr.less(found[1], found[0]) is False


def folded(a: Integer) -> Integer:
    """`a` as an int where the polynomial normal form proves that it is one: ``(k + 1)*k - k**2 - k`` is 0."""
    found = None if type(a) is int else lifted(a)
    return found[0] if found is not None and type(found[0]) is int else a


def lifted(*values: Integer) -> list[Index] | None:
    """The values in the language of `expr`, or None where it has no form for one of them.

    Nor where different symbols share a name: sympy tells them apart by their assumptions, and a Dummy from
    any other symbol; `expr` goes by the name and its bounds.
    """
    symbols: set[Any] = {s for x in values if type(x) is not int for s in x.free_symbols}  # type: ignore[union-attr]
    if len({s.name for s in symbols}) < len(symbols):
        return None
    from .. import expr

    try:
        return [expr.from_sympy(x) for x in values]
    except LayoutError:  # a function without an integer form, such as Max: nothing is proved of it
        return None


def symbols_of(*values: Integer) -> dict[str, object]:
    """The caller's own sympy symbols by name, so that results use them and not look-alikes."""
    return {s.name: s for x in values if type(x) is not int for s in x.free_symbols}  # type: ignore[union-attr]


def sign(n: Any, operation: str, what: str) -> int:
    """-1, 0 or 1; LayoutError where a symbol leaves it open."""
    if type(n) is int:
        return (n > 0) - (n < 0)
    if n.is_zero:
        return 0
    if n.is_nonnegative:
        return 1
    if n.is_nonpositive:
        return -1
    raise LayoutError(
        operation,
        f"the sign of {what} {n} is not known",
        "declare its symbols with positive=True or nonnegative=True",
    )
