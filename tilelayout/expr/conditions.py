"""Conditions on sympy's symbols, as callers assume them: checked, solved for variables, and written down.

`Conditions` turns equations and inequalities into `Facts`; what contradicts itself or the symbols' own assumptions is
refused.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from ..errors import LayoutError
from .adapter import from_sympy, to_sympy
from .core import Index, Var, bounds
from .facts import Facts
from .nodes import FloorDiv, Mod, variables
from .polynomial import content, from_terms, terms_of, without_positive_factors
from .queries import is_zero

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Item = tuple[
        str, Index, Any
    ]  # "==", "!=" or ">=", what is compared with 0, and the condition that says so

ACCEPTED = (
    "equations and inequalities of sympy between integers, such as Eq(Mod(n, 16), 0), Eq(n, 16*k), n >= 64, m < n, "
    "And(...) of them, or several in a tuple"
)
OPERATION = "assuming"


def flattened(given: Any) -> tuple[Any, ...]:
    """The equations and inequalities in what a caller passes, each once; what sympy sees to be true is left out.

    Errors: LayoutError for what is false, what isn't an equation or inequality, and symbols that aren't integers.
    """
    out: dict[Any, None] = {}
    pending: list[Any] = [given]
    refused: dict[Any, LayoutError] = {}
    while pending:
        x = pending.pop(0)
        if hasattr(x, "__iter__") and type(x) not in (str, bytes, dict):
            pending[:0] = list(x)
        elif x is True or (getattr(x, "is_Boolean", False) and x == True):  # noqa: E712 - sympy's true is no bool
            continue
        elif x is False or (getattr(x, "is_Boolean", False) and x == False):  # noqa: E712
            raise LayoutError(
                OPERATION,
                "a condition is plainly false",
                "Python's n == 16*k compares the texts and is False; write Eq(n, 16*k)"
                if x is False
                else None,
            )
        elif getattr(x, "is_Boolean", False) and type(x).__name__ == "And":
            pending[:0] = sorted(x.args, key=str)
        elif getattr(x, "is_Relational", False) and x.rel_op in ("==", "!=", "<", "<=", ">", ">="):
            try:
                _difference(x)  # refuses what has no integer form
            except LayoutError as error:
                refused[x] = error
            out[x] = None
        else:
            raise LayoutError(
                OPERATION, f"{x!r} ({type(x).__name__}) is no condition", f"accepted are {ACCEPTED}"
            )
    return _with_numbers(out, refused) if refused else tuple(out)


def _with_numbers(given: dict[Any, None], refused: dict[Any, LayoutError]) -> tuple[Any, ...]:
    """Conditions of which some have no integer form until others give symbols numbers: ``Mod(n, z)``, z being 16."""
    values = {x.lhs: x.rhs for x in given if x.rel_op == "==" and x.lhs.is_Symbol and x.rhs.is_Integer}
    out: list[Any] = []
    for x in given:
        if x in refused:
            if not x.free_symbols & set(values):
                raise refused[x]
            x = x.func(x.lhs.xreplace(values), x.rhs.xreplace(values))
        out += flattened(x) if x not in given else (x,)
    return tuple(out)


def _difference(x: Any) -> Index:
    try:
        # sympy makes n/16 >= 1 of floor(n/16) >= 1
        numerator, denominator = (x.lhs - x.rhs).as_numer_denom()
        return from_sympy(numerator if denominator.is_Integer and denominator > 1 else x.lhs - x.rhs)
    except LayoutError as error:
        raise LayoutError(OPERATION, f"the condition {x}: {error.rule}", error.remedy) from None


class Conditions:
    """Conditions that hold together, and what follows from them.

    Attributes:
        given: the conditions, without those that follow from the assumptions of their symbols alone.
        facts: what they say, for proofs.
        replaced: symbol -> the sympy expression that it equals; such symbols are replaced in operands.
    """

    __slots__ = ("facts", "given", "replaced")

    def __init__(self, given: tuple[Any, ...]) -> None:
        symbols: dict[str, Any] = {}
        for x in given:
            for s in x.free_symbols:
                if symbols.setdefault(s.name, s) != s:
                    raise LayoutError(OPERATION, f"two different symbols are called {s.name}", "use one")
        solver = _Solver(given)
        self.given, self.facts = solver.needed, solver.facts
        self.facts.symbols = symbols
        self.replaced: dict[Any, Any] = {}
        for name, s in sorted(symbols.items()):
            v = from_sympy(s)
            try:
                value = self.facts.written(self.facts.read(v))
            except LayoutError:  # it divides by what isn't seen to be positive, and is left alone
                continue
            if not (isinstance(value, Var) and value.name == name):
                self.replaced[s] = to_sympy(value, symbols)
            _check_assumptions(s, self.facts.read(v), symbols, given)


@lru_cache(maxsize=256)
def conditions(given: tuple[Any, ...]) -> Conditions:
    """The `Conditions` of flattened ones."""
    return Conditions(given)


def _check_assumptions(s: Any, value: Index, symbols: dict[str, Any], given: tuple[Any, ...]) -> None:
    """Refuse a value that sympy sees to contradict what its symbol was declared to be, such as odd."""
    if isinstance(value, Var) and value.name == s.name:
        return
    own = dict(symbols)
    own.pop(s.name)
    shown = to_sympy(value, own)
    for key, holds in s.assumptions0.items():
        seen = getattr(shown, f"is_{key}", None)
        if seen is not None and seen is not holds:
            raise LayoutError(
                OPERATION,
                f"{s} is declared {key}={holds}, which contradicts {' and '.join(map(str, given))}",
            )


class _Solver:
    """Takes conditions one by one until none says anything new."""

    def __init__(self, given: tuple[Any, ...]) -> None:
        self.facts = Facts()
        self.whole = given
        self.pending: list[Item] = []
        self.later: list[Item] = []
        self.remainders: list[tuple[Mod, Index]] = []
        needed: list[Any] = []
        for x in given:
            items = _items(x)
            if not all(self.implied(kind, d) for kind, d, _ in items):
                needed.append(x)
                self.pending += items
        self.needed = tuple(needed)
        while self.pending:
            self.pending.sort(key=lambda item: item[0] != "==")  # equations first: they leave fewer variables
            kind, d, source = self.pending.pop(0)
            try:
                d = self.facts.read(d)
            except (
                LayoutError
            ):  # it divides by what is no longer seen to be positive: recorded, but of no use
                continue
            self.take(kind, d, source)
        self.settle()

    def take(self, kind: str, d: Index, source: Any) -> None:
        if self.implied(kind, d):
            return
        if self.refuted(kind, d):
            raise self.contradiction(source)
        if kind == "==":
            self.equation(d, source)
        elif kind == ">=":
            self.inequality(d, source)
        else:
            self.unequal(d, source)

    def implied(self, kind: str, d: Index) -> bool:
        if kind == ">=":
            return self.facts.at_least_zero(d)
        return is_zero(d) is (kind == "==")

    def refuted(self, kind: str, d: Index) -> bool:
        if kind == ">=":
            return self.facts.at_least_zero(-d - 1)
        return is_zero(d) is (kind != "==")

    def contradiction(self, source: Any) -> LayoutError:
        if source is None:
            shown = " and ".join(map(str, self.whole))
            return LayoutError(OPERATION, f"{shown}: no values of the symbols satisfy that")
        others = [str(x) for x in self.whole if x is not source]
        beside = f" beside {' and '.join(others)}" if others else ""
        return LayoutError(
            OPERATION, f"the condition {source} is false{beside} for all values of its symbols"
        )

    # --- what becomes of them ---------------------------------------------------------------------

    def solved(self, v: Var, value: Index) -> None:
        """Put in a value; every earlier fact is read again."""
        facts = self.facts
        facts.values = {**{x: _put(y, v, value) for x, y in facts.values.items()}, v: value}
        self.pending += [*self.later, *[(">=", f, None) for f in facts.nonnegative]]
        self.pending += [("==", p - image, None) for p, image in facts.relations]
        self.later, facts.nonnegative, facts.relations = [], [], []

    def valued(self, v: Var, value: Index, source: Any) -> None:
        """`v` is another expression; its bounds must hold for that."""
        if v.lo is not None and not self.facts.at_least_zero(value - v.lo):
            self.take(">=", value - v.lo, source)  # first, for what is divided by v
            value = self.facts.read(value)
        try:
            self.solved(v, value)
        except LayoutError:  # something is divided by it, and it isn't seen to be positive
            self.relation(v - value, 0)
        if v.lo is not None:
            self.pending.append((">=", value - v.lo, source))
        if v.hi is not None:
            self.pending.append((">=", v.hi - value, source))

    def equation(self, d: Index, source: Any) -> None:
        terms = without_positive_factors(terms_of(d))
        common = content(terms, 0)
        if common > 1 and terms.get((), 0) % common == 0:
            terms = {mono: k // common for mono, k in terms.items()}
        d = from_terms(terms)
        for mono, k in terms.items():
            if len(mono) == 1 and isinstance(mono[0], Mod) and all(c % k == 0 for c in terms.values()):
                rest = from_terms({other: -c // k for other, c in terms.items() if other != mono})
                if mono[0] not in _atoms(rest):
                    return self.remainder(mono[0], rest, source)
        for v in _candidates(d, source):
            k = terms[v,]
            rest = from_terms({other: -c * k for other, c in terms.items() if other != (v,)})
            if abs(k) == 1 and v not in variables(rest):
                return self.valued(v, rest, source)
        for mono, k in terms.items():
            if len(mono) == 1 and isinstance(q := mono[0], FloorDiv) and abs(k) == 1:
                rest = from_terms({other: -c * k for other, c in terms.items() if other != mono})
                low = q.dividend - q.divisor * rest
                self.pending += [(">=", low, source), (">=", q.divisor - 1 - low, source)]
        self.relation(d, 0)
        return None

    def relation(self, p: Index, image: Index) -> None:
        self.facts.relations.append((p, image))

    def remainder(self, x: Mod, rest: Index, source: Any) -> None:
        """``x.dividend % x.divisor == rest``: the dividend is a multiple of the divisor, plus that."""
        e, c = x.dividend, x.divisor
        self.remainders.append((x, rest))
        if not isinstance(rest, int):
            self.pending += [(">=", rest, source), (">=", c - 1 - rest, source)]
        if rest == 0 and not isinstance(c, int) and (bounds(e)[0] or 0) >= 1:
            self.pending.append((">=", e - c, source))  # what divides a positive number doesn't exceed it
        terms = terms_of(e)
        linear = [(mono[0], k) for mono, k in terms.items() if len(mono) == 1]
        base = terms.get((), 0)
        v, k = linear[0] if linear else (None, 0)
        if isinstance(v, Var) and len(terms) == 1 + (base != 0) and v not in variables(c) | variables(rest):
            if isinstance(c, int) and isinstance(rest, int):
                common = gcd(k, c)
                if (rest - base) % common:
                    raise self.contradiction(source)
                step = c // common
                first = (rest - base) // common * pow(k // common, -1, step) % step if step > 1 else 0
                return self.multiple(v, step, first, v)
            if k == 1:
                return self.multiple(v, c, rest - base, e)
        whole = self.quotient(e, c, e - rest)
        over = e - rest
        self.relation(*((c * whole, over) if isinstance(over, int) else (over, c * whole)))
        low, high = bounds(e)
        self.pending += [] if low is None else [(">=", c * whole + rest - low, source)]
        self.pending += [] if high is None else [(">=", high - c * whole - rest, source)]
        return None

    def multiple(self, v: Var, step: Index, first: Index, e: Index) -> None:
        """``v == step * (e // step) + first``."""
        self.valued(v, step * self.quotient(e, step, v - first) + first, None)

    def quotient(self, e: Index, step: Index, base: Index) -> Index:
        """``e // step``, which is ``base / step``, as a new variable; it is positive where the multiple is."""
        known = e // step
        if isinstance(known, int):
            return known
        low, high = bounds(known)
        if low == 0 and (bounds(base)[0] or 0) >= 1:
            low = 1
        q = Var(f"quotient{len(self.facts.quotients)}", low, high)
        try:
            whole = self.facts.written(e) // self.facts.written(step)
        except LayoutError:  # the divisor isn't seen to be positive without the facts
            whole = known
        self.facts.quotients.append((q, step, base, whole))
        return q

    def inequality(self, d: Index, source: Any) -> None:
        terms = terms_of(d)
        common = content(terms, 0)
        if common > 1:
            d = from_terms({mono: k // common for mono, k in terms.items() if k // common})
            terms = terms_of(d)
        moving = [mono for mono in terms if mono]
        if len(moving) == 1 and len(moving[0]) == 1 and abs(terms[moving[0]]) == 1:
            atom, base, upwards = moving[0][0], terms.get((), 0), terms[moving[0]] > 0
            if isinstance(atom, Var):
                return self.tighter(atom, *((-base, atom.hi) if upwards else (atom.lo, base)), source)
            if isinstance(atom, FloorDiv):
                e, c = atom.dividend, atom.divisor
                low = e + c * base if upwards else c * (base + 1) - 1 - e
                self.pending.append((">=", low, source))
        positive = len(moving) == 1 and terms[moving[0]] > 0 > terms.get((), 0)
        if positive and all(x.lo is not None and x.lo >= 0 for x in moving[0]):
            # A product of what isn't negative is positive only where each factor is.
            self.pending += [(">=", x - 1, source) for x in moving[0] if x.lo == 0]
        self.facts.nonnegative.append(d)
        return None

    def tighter(self, v: Var, lo: int | None, hi: int | None, source: Any) -> None:
        if lo is not None and hi is not None and lo > hi:
            raise self.contradiction(source)
        self.solved(v, lo if lo is not None and lo == hi else Var(v.name, lo, hi))

    def unequal(self, d: Index, source: Any) -> None:
        if self.facts.at_least_zero(d):
            self.pending.append((">=", d - 1, source))
        elif self.facts.at_least_zero(-d):
            self.pending.append((">=", -d - 1, source))
        else:
            self.later.append(("!=", d, source))

    def settle(self) -> None:
        """Name the quotients that stay; inequalities that others refute were not seen to be false when they came."""
        facts = self.facts
        named = [*[(whole, q) for q, _, _, whole in facts.quotients], *self.remainders]
        for x, value in named:
            try:
                known, value = facts.read(x), facts.read(value)
            except LayoutError:  # divided by what isn't seen to be positive
                continue
            if isinstance(known, FloorDiv | Mod):
                facts.wholes.append((known, value))
        for i, f in enumerate(facts.nonnegative):
            other = Facts()
            other.nonnegative = facts.nonnegative[:i] + facts.nonnegative[i + 1 :]
            other.relations = facts.relations
            if other.at_least_zero(-f - 1):
                raise self.contradiction(None)


def _items(x: Any) -> list[Item]:
    """A relation as comparisons with zero."""
    d = _difference(x)
    return {
        "==": [("==", d, x)],
        "!=": [("!=", d, x)],
        ">=": [(">=", d, x)],
        ">": [(">=", d - 1, x)],
        "<=": [(">=", -d, x)],
        "<": [(">=", -d - 1, x)],
    }[x.rel_op]


def _put(x: Index, v: Var, value: Index) -> Index:
    facts = Facts()
    facts.values[v] = value
    return facts.read(x)


def _atoms(x: Index) -> set[Any]:
    return {atom for mono in terms_of(x) for atom in mono}


def _candidates(d: Index, source: Any) -> list[Var]:
    """The variables to solve for: what stands alone on the left, then on the right, then any other."""
    alone = [str(side) for side in (source.lhs, source.rhs)] if source is not None else []
    found = [mono[0] for mono in terms_of(d) if len(mono) == 1 and isinstance(mono[0], Var)]
    return sorted(found, key=lambda v: (alone.index(v.name) if v.name in alone else 2, v.name))
