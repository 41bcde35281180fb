"""Questions about integers that may be symbolic: equal? divides? which sign?

Plain ints are answered on the spot; a symbol sends the question to `expr`, whose polynomial normal form
proves or fails to prove.  "Not proved" is an answer (None or False), never a guess.
"""

from __future__ import annotations

from ..errors import LayoutError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parts import Integer


def same(a: Integer, b: Integer) -> bool:
    """Whether `a == b` is proved."""
    if a == b:
        return True
    if type(a) is int and type(b) is int:
        return False
    from .. import expr

    return expr.equal(expr.from_sympy(a), expr.from_sympy(b)) is True


def quotient(a: Integer, b: Integer) -> Integer | None:
    """``a / b`` where `b` is proved to divide `a` (b positive), else None."""
    if type(a) is int and type(b) is int:
        return a // b if a % b == 0 else None
    from .. import expr

    found = expr.divide_exact(expr.from_sympy(a), expr.from_sympy(b))
    return None if found is None else found if type(found) is int else expr.to_sympy(found, symbols_of(a, b))


def symbols_of(*values: Integer) -> dict[str, object]:
    """The caller's own sympy symbols by name, so that results use them and not look-alikes."""
    return {s.name: s for x in values if type(x) is not int for s in x.free_symbols}  # type: ignore[union-attr]


def is_one(n: Integer) -> bool:
    return n == 1


def sign(n: Integer, operation: str, what: str) -> int:
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
        operation, f"the sign of {what} {n} is not known", "declare its symbols with positive=True or nonnegative=True"
    )
