"""Questions about integers that may be symbolic: equal? divides? which sign?

Plain ints are answered on the spot; a symbol sends the question to `expr`, whose polynomial normal form
proves or fails to prove, with the facts that a caller assumes.  "Not proved" is an answer (None or False), never a
guess.  `if_divides` and its like write down what would have to be assumed.
"""

from __future__ import annotations

from itertools import pairwise

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
    from ..expr.facts import known

    found = lifted(a, b)
    if found is None:
        return False
    if expr.equal(*found) is True:
        return True
    facts = known()
    return facts is not None and expr.is_zero(facts.reduced(found[0] - found[1])) is True


def quotient(a: Integer, b: Integer) -> Integer | None:
    """``a / b`` where `b` is proved to divide `a` (b positive), else None."""
    if type(a) is int and type(b) is int:
        return a // b if a % b == 0 else None
    from .. import expr
    from ..expr.adapter import lowered
    from ..expr.facts import known

    both = lifted(a, b)
    if both is None:
        return None
    found = expr.divide_exact(*both)
    if found is None and (facts := known()) is not None:
        found = facts.quotient(*both)
    return None if found is None else lowered(found, a, b)


def at_most(a: Integer, b: Integer) -> bool:
    """Whether ``a <= b`` is proved."""
    if type(a) is int and type(b) is int:
        return a <= b
    if getattr(b - a, "is_nonnegative", False):
        return True
    from ..expr.facts import at_least_zero

    found = lifted(a, b)
    return found is not None and at_least_zero(found[1] - found[0])


def folded(a: Integer) -> Integer:
    """`a` as an int where the polynomial normal form proves that it is one: ``(k + 1)*k - k**2 - k`` is 0."""
    found = None if type(a) is int else lifted(a)
    return found[0] if found is not None and type(found[0]) is int else a


def divided(a: Integer, b: Integer) -> tuple[Integer, Integer]:
    """``(a // b, a % b)`` for a positive b.

    Not by sympy's own Mod, which (1.14) rewrites one around another to another value.
    """
    if type(a) is int and type(b) is int:
        return divmod(a, b)
    from ..expr.adapter import lowered

    both = lifted(a, b)
    if both is not None:
        try:
            return lowered(both[0] // both[1], a, b), lowered(both[0] % both[1], a, b)
        except LayoutError:  # the divisor isn't seen to be positive, though it is
            pass
    over: Any = a // b
    return over, a - b * over


def lifted(*values: Integer) -> list[Index] | None:
    """The values in the language of `expr`, read with what is known; None where it has no form for one of them."""
    from ..expr.adapter import lifted

    return lifted(*values)


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
    if same(n, 0):
        return 0
    if at_most(0, n):
        return 1
    if at_most(n, 0):
        return -1
    raise LayoutError(
        operation,
        f"the sign of {what} {n} is not known",
        either("declare its symbols with positive=True or nonnegative=True", if_at_most(0, n)),
    )


# --- what would have to be assumed ------------------------------------------------------------------


def if_divides(b: Integer, a: Integer) -> str | None:
    """The remedy for not knowing whether b divides a; None for numbers, and where it is known not to."""
    if type(a) is int and type(b) is int:
        return None
    from ..expr.missing import divisible

    return assume(divisible(a, b))


def if_equal(a: Integer, b: Integer) -> str | None:
    """The remedy for not knowing whether a and b are equal."""
    if (type(a) is int and type(b) is int) or same(a, b):
        return None
    from ..expr.missing import equal_to

    return assume(equal_to(a, b))


def if_at_most(*bounds: Integer) -> str | None:
    """The remedy for not knowing whether these integers rise: ``if_at_most(a, b, c)`` for ``a <= b <= c``."""
    open_ones = [(a, b) for a, b in pairwise(bounds) if not at_most(a, b)]
    if any(type(a) is int and type(b) is int for a, b in open_ones):
        return None
    from ..expr.missing import no_more

    found = [no_more(a, b) for a, b in open_ones]
    return None if None in found else assume(*found)


def assume(*conditions: Any) -> str | None:
    """Conditions as a remedy, to be pasted into a call."""
    given = [str(x) for x in conditions if x is not None]
    if not given:
        return None
    return f"where it holds, pass assuming={given[0] if len(given) == 1 else '(' + ', '.join(given) + ')'}"


def either(*remedies: str | None) -> str | None:
    """Several remedies as one."""
    return "; ".join([x for x in remedies if x]) or None
