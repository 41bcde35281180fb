"""What expressions are made of besides variables: quotients, remainders, bit operations, polynomials.

Data only: parts, bounds, equality.  What the operators do, and so every rule, stands in the modules above.
"""

from __future__ import annotations

from . import ranges
from .core import Atom, Expr, Index, Var, bounds, rules, seal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .ranges import Range

    Monomial = tuple[Atom, ...]
    Terms = dict[Monomial, int]

_set = object.__setattr__

BITWISE: dict[str, Callable[[Any, Any], Any]] = {
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
}


class Division(Atom):
    """A quotient or a remainder that no rule simplifies.  The divisor is at least 1."""

    __slots__ = ("_partner", "dividend", "divisor")

    dividend: Index
    divisor: Index
    _partner: Index | None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            type(self) is type(other)
            and isinstance(other, Division)
            and self._hash == other._hash
            and self.divisor == other.divisor
            and self.dividend == other.dividend
        )

    __hash__ = Expr.__hash__

    def parts(self) -> tuple[Index, Index]:
        return self.dividend, self.divisor

    @property
    def partner(self) -> Index:
        """The remainder that belongs to a quotient, the quotient that belongs to a remainder."""
        found = self._partner
        if found is None:
            found = self._find_partner()
            _set(self, "_partner", found)
        return found

    if TYPE_CHECKING:

        def _find_partner(self) -> Index: ...


class FloorDiv(Division):
    """``dividend // divisor``.  Built by ``//``; calling the class applies no rule."""

    __slots__ = ()

    def __init__(self, dividend: Index, divisor: Index) -> None:
        _set(self, "dividend", dividend)
        _set(self, "divisor", divisor)
        _set(self, "_partner", None)
        lo, hi = ranges.divide(bounds(dividend), bounds(divisor))
        seal(self, lo, hi, hash(("//", dividend, divisor)))

    def _find_partner(self) -> Index:
        return self.dividend % self.divisor


class Mod(Division):
    """``dividend % divisor``, in ``[0, divisor)``.  Built by ``%``; calling the class applies no rule."""

    __slots__ = ()

    def __init__(self, dividend: Index, divisor: Index) -> None:
        _set(self, "dividend", dividend)
        _set(self, "divisor", divisor)
        _set(self, "_partner", None)
        lo, hi = ranges.modulo(bounds(dividend), bounds(divisor))
        seal(self, lo, hi, hash(("%", dividend, divisor)))

    def _find_partner(self) -> Index:
        return self.dividend // self.divisor


class Bitwise(Atom):
    """``^``, ``&`` or ``|`` of two or more operands; negative integers have infinitely many leading ones."""

    __slots__ = ("operands", "symbol")

    symbol: str
    operands: tuple[Index, ...]

    def __init__(self, symbol: str, operands: tuple[Index, ...]) -> None:
        _set(self, "symbol", symbol)
        _set(self, "operands", operands)
        lo, hi = ranges.bitwise(symbol, [bounds(x) for x in operands])
        seal(self, lo, hi, hash((symbol, operands)))

    def parts(self) -> tuple[str, tuple[Index, ...]]:
        return self.symbol, self.operands

    def _spell(self) -> str:
        inner = [x.order() if isinstance(x, Expr) else str(x) for x in self.operands]
        return f"~{self.symbol}({' '.join(inner)})"


class Shift(Atom):
    """``operand << count`` or ``operand >> count`` by a count that isn't constant, and is not negative."""

    __slots__ = ("count", "operand", "symbol")

    symbol: str
    operand: Index
    count: Expr

    def __init__(self, symbol: str, operand: Index, count: Expr) -> None:
        _set(self, "symbol", symbol)
        _set(self, "operand", operand)
        _set(self, "count", count)
        lo, hi = ranges.shift(symbol, bounds(operand), bounds(count))
        seal(self, lo, hi, hash((symbol, operand, count)))

    def parts(self) -> tuple[str, Index, Expr]:
        return self.symbol, self.operand, self.count


class Polynomial(Expr):
    """A sum of products: `terms` maps a monomial (sorted atoms, ``()`` for the constant) to its coefficient.

    No coefficient is 0.  `terms` is shared, not copied: read it only.  Calling the class applies no rule.
    """

    __slots__ = ("terms",)

    terms: Terms

    def __init__(self, terms: Terms) -> None:
        _set(self, "terms", terms)
        lo, hi = interval(terms)
        seal(self, lo, hi, None)

    def parts(self) -> tuple[Terms]:
        return (self.terms,)

    def _spell(self) -> str:
        inner = sorted(" ".join([str(k), *[x.order() for x in mono]]) for mono, k in self.terms.items())
        return f"~({'+'.join(inner)})"

    def __hash__(self) -> int:
        found = self._hash
        if found is None:
            found = hash(frozenset(self.terms.items()))
            _set(self, "_hash", found)
        return found


def interval(terms: Terms) -> Range:
    """The bounds of a sum of terms, each taken on its own."""
    lo: int | None = 0
    hi: int | None = 0
    for mono, k in terms.items():
        if not mono:
            a = b = 1
        elif len(mono) == 1:
            a, b = mono[0].lo, mono[0].hi
        else:
            a, b = _product_bounds(mono)
        if k < 0:
            a, b = b, a
        lo = None if lo is None or a is None else lo + k * a
        hi = None if hi is None or b is None else hi + k * b
    return lo, hi


def _product_bounds(mono: Monomial) -> Range:
    total: Range = (1, 1)
    done = 0
    while done < len(mono):
        atom, exponent = mono[done], 1
        while done + exponent < len(mono) and mono[done + exponent] == atom:
            exponent += 1
        total = ranges.times(total, ranges.power((atom.lo, atom.hi), exponent))
        done += exponent
    return total


def variables(x: Index) -> frozenset[Var]:
    """The variables that occur in a value.

    >>> sorted(v.name for v in variables(Var("b") * 2 + Var("a") // 3)), variables(4)
    (['a', 'b'], frozenset())
    """
    found: set[Var] = set()
    seen: set[Expr] = set()
    pending: list[object] = [x]
    while pending:
        part = pending.pop()
        if isinstance(part, tuple):
            pending.extend(part)  # type: ignore[arg-type]
        elif isinstance(part, Var):
            found.add(part)
        elif isinstance(part, Polynomial):
            pending.extend(part.terms)
        elif isinstance(part, Expr) and part not in seen:
            seen.add(part)
            pending.extend(part.parts())
    return frozenset(found)


rules.variables = variables
