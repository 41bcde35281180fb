"""sympy in and out.  The only place that imports sympy, and only when it is called.

The translation is exact or refused; nothing here simplifies, on either side.
"""

from __future__ import annotations

from importlib import import_module

from ..errors import LayoutError
from .core import Expr, Index, Var, admit
from .facts import at_least_zero, known
from .nodes import Bitwise, Division, FloorDiv, Polynomial, Shift
from .queries import rebuild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .ranges import Range

# A power is multiplied out, which no index needs beyond this.
MAX_POWER = 64


def from_sympy(
    expr: Any, bounds: Mapping[str, Range] | None = None, values: Mapping[Var, Index] | None = None
) -> Index:
    """The expression that a sympy integer expression means.

    Accepted: Integers, symbols declared with ``integer=True``, sums, products, powers with a constant exponent
    from 0 to 64, ``floor`` and ``ceiling`` of quotients, ``Mod``.  A symbol gets the bounds that `bounds` has for
    its name, else those of its assumptions (positive: from 1, nonnegative: from 0), and the variable that it becomes is
    read as what `values` has for it.  Ints and expressions pass through.

    >>> from sympy import symbols
    >>> n = symbols("n", integer=True, positive=True)
    >>> from_sympy(3 * n // 4 + n % 4), from_sympy(n // 8, {"n": (0, 7)})
    (3*n // 4 + n % 4, 0)
    >>> from_sympy(n / 2)
    Traceback (most recent call last):
    tilelayout.errors.LayoutError: from_sympy: 1/2 in n/2 is not an integer ...
    """
    if isinstance(expr, Expr) or type(expr) is int:
        return expr
    sympy: Any = import_module("sympy")
    if not isinstance(expr, sympy.Expr):
        return admit(expr, "from_sympy")
    return _Reader(sympy, expr, bounds or {}, values or {}).read(expr)


def lifted(*values: Any) -> list[Index] | None:
    """Integers and sympy expressions, read with all that is known at the moment (`facts`); None where one has no form.

    Nor where different symbols share a name: sympy tells them apart by their assumptions, and a Dummy from
    any other symbol; variables go by the name and its bounds.
    """
    symbols: set[Any] = {s for x in values if type(x) is not int for s in x.free_symbols}
    if len({s.name for s in symbols}) < len(symbols):
        return None
    facts = known()
    if facts is not None and not all(facts.speak_of(s.name, s) for s in symbols):
        return None
    try:
        return [from_sympy(x, None, None if facts is None else facts.values) for x in values]
    except LayoutError:  # a function without an integer form, such as Max: nothing is proved of it
        return None


def lowered(x: Index, *values: Any) -> Any:
    """What was made of `lifted` values, as an int or in the symbols that they have."""
    if isinstance(x, int):
        return x
    symbols = {s.name: s for v in values if type(v) is not int for s in v.free_symbols}
    facts = known()
    if facts is not None:
        symbols = {**facts.symbols, **symbols}
        try:
            x = facts.written(x)
        except LayoutError:  # sympy divides by anything
            for q, _, _, whole in facts.quotients:
                symbols[q.name] = to_sympy(whole, symbols)
    return x if isinstance(x, int) else to_sympy(x, symbols)


def replaced(x: Any, values: Mapping[Any, Any]) -> Any:
    """A sympy expression or relation with sympy values for symbols.

    Through expressions where there are remainders: sympy would rewrite them.
    """
    sympy: Any = import_module("sympy")
    if x.is_Relational:
        return x.func(replaced(x.lhs, values), replaced(x.rhs, values))
    if not x.has(sympy.Mod):
        return x.xreplace(values)
    given: dict[Index, Any] = {from_sympy(s): from_sympy(v) for s, v in values.items()}
    symbols = {s.name: s for y in (x, *values.values()) for s in y.free_symbols}
    return to_sympy(rebuild(from_sympy(x), given), symbols)


def multiplied(factors: list[Any]) -> Any:
    """The product of ints and sympy expressions as sympy has it, made in one step."""
    sympy: Any = import_module("sympy")
    return sympy.Mul(*[sympy.sympify(x) for x in factors])


def over(operator: str, a: Any, b: Any) -> Any:
    """``a / b``, ``a // b`` or ``a % b`` (as `operator` says) of ints and sympy expressions, as sympy has them.

    The remainder of what has remainders is spelled out: sympy would rewrite it, see `to_sympy`.
    """
    sympy: Any = import_module("sympy")
    a, b = sympy.sympify(a), sympy.sympify(b)
    if operator == "/":
        return a / b
    if operator == "//":
        return sympy.floor(a / b)
    return a - b * sympy.floor(a / b) if a.has(sympy.Mod) or b.has(sympy.Mod) else sympy.Mod(a, b)


def called(name: str, arguments: list[Any]) -> Any:
    """sympy's function of that name (floor, ceiling, Mod, Max, Min, Abs) as its text means it.

    Errors: LayoutError for another number of arguments than it has, and for remainders by 0.
    """
    sympy: Any = import_module("sympy")
    counts = {"Mod": 2, "Max": None, "Min": None}
    count = counts.get(name, 1)
    if count is not None and len(arguments) != count:
        raise LayoutError("parse", f"{name} with {count} argument{'s' if count > 1 else ''}")
    if name == "Mod":
        if arguments[1] == 0:
            raise LayoutError("parse", "a divisor other than 0 in Mod")
        if all(type(x) is int for x in arguments):
            return sympy.Integer(arguments[0] % arguments[1])
        # What is printed was not evaluated further, and is not to be.
        return sympy.Mod(*[sympy.sympify(x) for x in arguments], evaluate=False)
    return getattr(sympy, name)(*arguments)


def tidied(x: Any) -> Any:
    """A sympy expression with its quotients and remainders written anew, with all that is known at the moment."""
    sympy: Any = import_module("sympy")
    found = lifted(x) if x.has(sympy.floor, sympy.Mod) else None
    return x if found is None else lowered(found[0], x)


def proved_positive(x: Any) -> bool:
    """Whether a sympy expression is proved to be at least 1, with all that is known at the moment."""
    found = lifted(x)
    return found is not None and at_least_zero(found[0] - 1)


class _Reader:
    """One translation: the expression that messages quote, and what each symbol has become."""

    def __init__(
        self, sympy: Any, whole: Any, bounds: Mapping[str, Range], values: Mapping[Var, Index]
    ) -> None:
        self.sympy, self.whole, self.bounds, self.values = sympy, whole, bounds, values
        self.symbols: dict[str, Any] = {}

    def read(self, x: Any) -> Index:
        sympy = self.sympy
        if x.is_Integer:
            return int(x)
        if x.is_Symbol:
            return self.symbol(x)
        if x.is_Add or x.is_Mul:
            result: Index = 0 if x.is_Add else 1
            for part in x.args:
                result = result + self.read(part) if x.is_Add else result * self.read(part)
            return result
        if x.is_Pow and x.exp.is_Integer and 0 <= int(x.exp) <= MAX_POWER:
            base, result = self.read(x.base), 1
            for _ in range(int(x.exp)):
                result = result * base
            return result
        if isinstance(x, sympy.floor | sympy.ceiling):
            dividend, divisor = x.args[0].as_numer_denom()
            if isinstance(x, sympy.floor):
                return self.read(dividend) // self.read(divisor)
            return -(-self.read(dividend) // self.read(divisor))
        if isinstance(x, sympy.Mod):
            return self.read(x.args[0]) % self.read(x.args[1])
        if x.is_Rational:
            raise self.refusal(x, "is not an integer", "divide inside floor(...), or with //")
        raise self.refusal(x, f"({type(x).__name__}) has no integer form", None)

    def symbol(self, x: Any) -> Index:
        if x.is_integer is not True:
            raise self.refusal(x, "is not known to be an integer", "declare it integer=True")
        if self.symbols.setdefault(x.name, x) != x:
            raise self.refusal(x, "names two different symbols", "give them different names")
        if x.name in self.bounds:
            lo, hi = self.bounds[x.name]
        else:
            lo = 1 if x.is_positive else 0 if x.is_nonnegative else None
            hi = -1 if x.is_negative else 0 if x.is_nonpositive else None
        found = Var(x.name, lo, hi)
        return self.values.get(found, found)

    def refusal(self, part: Any, rule: str, remedy: str | None) -> LayoutError:
        where = "" if part == self.whole else f" in {self.whole}"
        return LayoutError("from_sympy", f"{part}{where} {rule}", remedy)


def to_sympy(x: Index, symbols: Mapping[str, Any] | None = None) -> Any:
    """The sympy expression of the same value; bit operations have none and are refused.

    A variable becomes the caller's symbol of its name in `symbols`, else a new one with ``integer=True`` and,
    where its lower bound says so, positive or nonnegative.

    >>> i = Var("i", 0, 31)
    >>> to_sympy(i // 4 + 2 * (i % 4))
    2*(Mod(i, 4)) + floor(i/4)
    """
    return _write(admit(x, "to_sympy"), dict(symbols or {}), import_module("sympy"))


def _write(x: Index, symbols: dict[str, Any], sympy: Any) -> Any:
    if not isinstance(x, Expr):
        return sympy.Integer(x)
    if isinstance(x, Var):
        if x.name not in symbols:
            known = {"positive": True} if (x.lo or 0) >= 1 else {"nonnegative": True} if x.lo == 0 else {}
            symbols[x.name] = sympy.Symbol(x.name, integer=True, **known)
        return symbols[x.name]
    if isinstance(x, Polynomial):
        return sympy.Add(
            *[sympy.Mul(k, *[_write(atom, symbols, sympy) for atom in mono]) for mono, k in x.terms.items()]
        )
    if isinstance(x, Bitwise):
        raise LayoutError(
            "to_sympy", f"{x} is a bit operation, which sympy doesn't have", "substitute its variables"
        )
    a, b = [_write(part, symbols, sympy) for part in x.parts() if not isinstance(part, str)]
    if isinstance(x, Division):
        if isinstance(x, FloorDiv):
            return sympy.floor(a / b)
        # sympy (1.14) rewrites a Mod around another one to another value, e.g. Mod(3*Mod(n, 4), 8): spelled out.
        return (
            a - b * sympy.floor(a / b)
            if a.has(sympy.Mod) or b.has(sympy.Mod)
            else sympy.Mod(a, b, evaluate=False)
        )
    power = sympy.Pow(2, b)
    return a * power if isinstance(x, Shift) and x.symbol == "<<" else sympy.floor(a / power)
