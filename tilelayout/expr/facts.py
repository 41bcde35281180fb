"""What is known of variables beyond their own bounds, for as long as it is assumed.

Facts are used in proofs alone: a value is read with them (`Facts.read`), questions are answered of what was read, and
a result is written in the variables that came in (`Facts.written`).  Where they come from is not this module's matter.
"""

from __future__ import annotations

from contextvars import ContextVar

from .core import Expr, Index, Var, bounds
from .division import lower_bound
from .nodes import Division, FloorDiv, Mod, variables
from .polynomial import from_terms, long_division, terms_of, without
from .queries import divide_exact, rebuild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .nodes import Terms

# A proof adds up at most this many inequalities; more than a chain of so many is not looked for.
DEPTH = 4


class Facts:
    """Values of variables, relations between terms, and what isn't negative.

    Attributes:
        values: variable -> what it is: itself with tighter bounds, ``16*q + r`` with an unknown quotient q, or another
            expression.  No variable that is a key occurs in a value.
        quotients: ``(q, step, base, whole)`` for each such q: ``step * q == base`` and ``q == whole``, both in the
            variables that came in or in earlier q.
        relations: pairs ``(p, image)`` with ``p == image`` that are no variable's value; long division finds p.
        wholes: pairs ``(n // m, q)`` of quotients that have a name, and ``(n % m, r)`` of known remainders, all read.
        nonnegative: expressions that are at least 0.
        symbols: name -> the caller's own symbol, whatever that is; another one of its name is another variable.
    """

    __slots__ = ("nonnegative", "quotients", "relations", "symbols", "values", "wholes")

    def __init__(self) -> None:
        self.values: dict[Var, Index] = {}
        self.quotients: list[tuple[Var, Index, Index, Index]] = []
        self.relations: list[tuple[Index, Index]] = []
        self.wholes: list[tuple[Index, Index]] = []
        self.nonnegative: list[Index] = []
        self.symbols: dict[str, Any] = {}

    def speak_of(self, name: str, symbol: Any) -> bool:
        """Whether `name` stands for `symbol` here, or for nothing."""
        return self.symbols.get(name, symbol) == symbol and all(
            q.name != name for q, _, _, _ in self.quotients
        )

    def read(self, x: Index) -> Index:
        """The same value with what is known put in."""
        if isinstance(x, Expr) and self.values:
            return rebuild(x, {**self.values})
        return x

    def reduced(self, x: Index) -> Index:
        """A value that was read, with the sides of relations exchanged wherever one is found in it."""
        if not (self.relations or self.wholes) or isinstance(x, int):
            return x
        memo: dict[Index, Any] = {}
        for mono in terms_of(x):
            for atom in mono:
                if isinstance(atom, Division) and atom not in memo:
                    e, c = self.reduced(atom.dividend), self.reduced(atom.divisor)
                    if (bounds(c)[0] or 0) < 1:
                        c = atom.divisor  # what isn't seen to be positive divides nothing
                    if e != atom.dividend or c != atom.divisor:
                        memo[atom] = e // c if isinstance(atom, FloorDiv) else e % c
        if memo:
            x = rebuild(x, memo)
        for p, image in (*self.wholes, *self.relations):
            if isinstance(x, int):
                break
            times, rest = long_division(terms_of(x), terms_of(p))
            if times:
                x = from_terms(times) * image + from_terms(rest)
        return x

    def quotient(self, x: Index, y: Index) -> Index | None:
        """``x / y`` of values that were read where the relations or a named quotient show that y divides x."""
        found = divide_exact(self.reduced(x), self.reduced(y))
        for q, step, base, _ in self.quotients if found is None else ():
            above, below = self.read(base), self.read(step)
            more = divide_exact(below, y)
            if above == 0 or more is None:
                continue
            times, rest = long_division(terms_of(x), terms_of(above))
            left = divide_exact(from_terms(rest), y)
            if times and left is not None:
                return from_terms(times) * more * self.read(q) + left
        for known, rest in self.wholes if found is None and (bounds(y)[0] or 0) >= 1 else ():
            if not isinstance(known, Mod) or divide_exact(known.divisor, y) is None:
                continue
            if divide_exact(x - known.dividend + rest, y) is not None:
                return x // y
        return found

    def written(self, x: Index) -> Index:
        """A value that was read, in the variables that came in: ``16*q`` is n, and any other q ``n // 16``.

        Errors: LayoutError where it would divide by a quotient that isn't seen to be positive without the facts.
        """
        if isinstance(x, int):
            return x
        memo: dict[Index, Any] = {}
        for atom in {atom for mono in terms_of(x) for atom in mono if isinstance(atom, Division)}:
            e, c = self.written(atom.dividend), self.written(atom.divisor)
            if e != atom.dividend or c != atom.divisor:
                memo[atom] = e // c if isinstance(atom, FloorDiv) else e % c
        x = rebuild(x, memo) if memo else x
        for q, step, base, whole in reversed(self.quotients):
            for v in _called(q.name, x):
                times, rest = long_division(terms_of(x), terms_of(step * v))
                while times:
                    x = from_terms(times) * base + from_terms(rest)
                    times, rest = long_division(terms_of(x), terms_of(step * v))
                x = rebuild(x, {v: whole})
        if isinstance(x, int):
            return x
        first: dict[str, Var] = {}
        for v in self.values:
            first.setdefault(v.name, v)
        return rebuild(x, {v: first[v.name] for v in variables(x) if v.name in first})

    def at_least_zero(self, x: Index) -> bool:
        """Whether a value that was read is proved to be at least 0."""
        if _combined(x, self.nonnegative, DEPTH):
            return True
        other = self.reduced(x)
        return other != x and _combined(other, self.nonnegative, DEPTH)


def _called(name: str, x: Index) -> list[Var]:
    return [v for v in variables(x) if v.name == name]


def _combined(x: Index, known: list[Index], depth: int) -> bool:
    """Whether x is a sum of what its bounds show and of nonnegative multiples of `known`, each used once."""
    least = lower_bound(x)
    if least is not None and least >= 0:
        return True
    if depth == 0 or isinstance(x, int):
        return False
    for (atom, *others), k in [(mono, k) for mono, k in terms_of(x).items() if mono]:
        if isinstance(atom, FloorDiv) and not others and abs(k) == 1:
            # e // c >= t exactly where e >= c*t, and e // c <= t exactly where e <= c*t + c - 1
            e, c, rest = atom.dividend, atom.divisor, x - k * atom
            return _combined(e + c * rest if k > 0 else c * rest + c - 1 - e, known, depth - 1)
    for i, f in enumerate(known):
        for mono, k in terms_of(f).items():
            # Take away the multiple of f that cancels every positive share of one of its monomials.
            times: Terms = {}
            for other, share in terms_of(x).items() if mono else ():
                rest = without(other, mono)
                if rest is not None and share * k > 0:
                    low = bounds(from_terms({rest: 1}))[0]
                    if low is not None and low >= 0:
                        times[rest] = abs(share)
            if times and _combined(abs(k) * x - from_terms(times) * f, known[:i] + known[i + 1 :], depth - 1):
                return True
    return False


_known: ContextVar[Facts | None] = ContextVar("tilelayout facts", default=None)


def known() -> Facts | None:
    """The facts that are assumed at this moment; None without any."""
    return _known.get()


def at_least_zero(x: Index) -> bool:
    """Whether a value that was read is proved to be at least 0, with all that is known at the moment."""
    facts = _known.get()
    if facts is not None:
        return facts.at_least_zero(x)
    least = lower_bound(x)
    return least is not None and least >= 0


class assumed:  # noqa: N801 - reads as a verb: ``with assumed(facts):``
    """Within the block these facts are known, and no others."""

    __slots__ = ("_facts", "_token")

    def __init__(self, facts: Facts | None) -> None:
        self._facts = facts

    def __enter__(self) -> None:
        self._token = _known.set(self._facts)

    def __exit__(self, *_: object) -> None:
        _known.reset(self._token)
