"""`Expr` and its operators as users write them, and `Var`.

What an operator *does* - the rules that simplify - stands in `polynomial`, `division` and `bits`, which enter
their functions into `rules`; so no rule may be stated here.
"""

from __future__ import annotations

from keyword import iskeyword

from ..errors import LayoutError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

    from .ranges import Range

_set = object.__setattr__


class Rules:
    """What the operators call.  The modules that state the rules fill this table when the package is loaded.

    The rules need one another in a circle (a sum recognizes remainders, a remainder splits sums), and each
    needs the operators; the table lets every module import only from the ones below it.
    """

    __slots__ = (
        "add",
        "bitwise",
        "divide",
        "evaluate",
        "modulo",
        "multiply",
        "shift",
        "substitute",
        "text",
        "variables",
    )

    add: Callable[[Index, Index, int], Index]
    multiply: Callable[[Index, Index], Index]
    divide: Callable[[Index, Index], Index]
    modulo: Callable[[Index, Index], Index]
    bitwise: Callable[[str, Index, Index], Index]
    shift: Callable[[str, Index, Index], Index]
    evaluate: Callable[[Index, Mapping[str, Any]], Any]
    substitute: Callable[[Index, Mapping[str, Index]], Index]
    text: Callable[[Index], str]
    variables: Callable[[Index], frozenset[Var]]


rules = Rules()


def admit(x: object, operation: str) -> Index:
    """`x` as an operand: an expression, or anything with ``__index__`` as an exact int.

    Bools, floats, arrays and everything else are refused, and sympy values are told the way in.
    """
    if isinstance(x, Expr) or type(x) is int:
        return x
    kind = type(x)
    index = getattr(kind, "__index__", None)
    if index is not None and not isinstance(x, bool) and kind.__name__ != "bool_":
        try:
            return int(index(x))
        except TypeError:
            pass  # an array, say, has the method and refuses it
    raise LayoutError(
        f"expression {operation}",
        f"operands are integers and expressions, got {kind.__name__} {x!r}",
        "bring it in with from_sympy" if kind.__module__.startswith("sympy") else None,
    )


class Expr:
    """An integer expression that isn't a constant; one that folds to a constant is an `int`.

    Built with the operators ``+ - * // % ^ & | << >>`` from `Var`s and ints.  Division floors, as Python's.
    Values are frozen and hashable, ``==`` is structural, and each has inclusive bounds `lo` and `hi`
    (None: unbounded), which contain every value that it takes.

    >>> lane = Var("lane", 0, 31)
    >>> lane // 4 * 64 + lane % 4 * 2
    64*(lane // 4) + 2*(lane % 4)
    >>> lane // 32, (lane + 32) // 32, lane // 4 * 4 + lane % 4
    (0, 1, lane)
    """

    __slots__ = ("_hash", "_order", "hi", "lo")

    lo: int | None
    hi: int | None
    _hash: int | None
    _order: str | None

    __array_ufunc__ = None  # numpy's scalars and arrays leave ``np.int64(4) * expr`` to __rmul__

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} values are frozen")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} values are frozen")

    if TYPE_CHECKING:

        def parts(self) -> tuple[Any, ...]:
            """What the constructor takes, and what equality compares; each kind of expression says it."""
            ...

    def order(self) -> str:
        """A text that only equal expressions share, for sorting: variables first (``~`` follows letters)."""
        found = self._order
        if found is None:
            found = self._spell()
            _set(self, "_order", found)
        return found

    def _spell(self) -> str:
        inner = [p.order() if isinstance(p, Expr) else str(p) for p in self.parts()]
        return f"~{type(self).__name__}({' '.join(inner)})"

    def __hash__(self) -> int:
        return self._hash or 0

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            type(self) is type(other)
            and isinstance(other, Expr)
            and hash(self) == hash(other)
            and self.parts() == other.parts()
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.parts()

    def __bool__(self) -> bool:
        if (self.lo is not None and self.lo > 0) or (self.hi is not None and self.hi < 0):
            return True
        raise LayoutError("expression truth", f"{self} may or may not be zero", "ask is_zero, equal or less")

    def __repr__(self) -> str:
        return rules.text(self)

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The value at `env`, which maps names to ints (or numpy integer arrays: see `evaluate`)."""
        return rules.evaluate(self, env)

    def substitute(self, env: Mapping[str, Index]) -> Index:
        """The expression with the variables that `env` names replaced (see `substitute`)."""
        return rules.substitute(self, env)

    def variables(self) -> frozenset[Var]:
        """The variables that occur in it."""
        return rules.variables(self)

    def __neg__(self) -> Index:
        return rules.add(0, self, -1)

    def __pos__(self) -> Index:
        return self

    def __invert__(self) -> Index:
        return rules.add(-1, self, -1)

    def __add__(self, other: Index) -> Index:
        return rules.add(self, admit(other, "+"), 1)

    def __radd__(self, other: Index) -> Index:
        return rules.add(self, admit(other, "+"), 1)

    def __sub__(self, other: Index) -> Index:
        return rules.add(self, admit(other, "-"), -1)

    def __rsub__(self, other: Index) -> Index:
        return rules.add(admit(other, "-"), self, -1)

    def __mul__(self, other: Index) -> Index:
        return rules.multiply(self, admit(other, "*"))

    def __rmul__(self, other: Index) -> Index:
        return rules.multiply(self, admit(other, "*"))

    def __floordiv__(self, other: Index) -> Index:
        return rules.divide(self, admit(other, "//"))

    def __rfloordiv__(self, other: Index) -> Index:
        return rules.divide(admit(other, "//"), self)

    def __truediv__(self, other: object) -> NoReturn:
        raise LayoutError(
            "expression /", f"{self} / {other} need not be an integer", "use // or divide_exact"
        )

    def __rtruediv__(self, other: object) -> NoReturn:
        raise LayoutError(
            "expression /", f"{other} / {self} need not be an integer", "use // or divide_exact"
        )

    def __mod__(self, other: Index) -> Index:
        return rules.modulo(self, admit(other, "%"))

    def __rmod__(self, other: Index) -> Index:
        return rules.modulo(admit(other, "%"), self)

    def __divmod__(self, other: Index) -> tuple[Index, Index]:
        return self // other, self % other

    def __rdivmod__(self, other: Index) -> tuple[Index, Index]:
        return other // self, other % self

    def __xor__(self, other: Index) -> Index:
        return rules.bitwise("^", self, admit(other, "^"))

    def __rxor__(self, other: Index) -> Index:
        return rules.bitwise("^", self, admit(other, "^"))

    def __and__(self, other: Index) -> Index:
        return rules.bitwise("&", self, admit(other, "&"))

    def __rand__(self, other: Index) -> Index:
        return rules.bitwise("&", self, admit(other, "&"))

    def __or__(self, other: Index) -> Index:
        return rules.bitwise("|", self, admit(other, "|"))

    def __ror__(self, other: Index) -> Index:
        return rules.bitwise("|", self, admit(other, "|"))

    def __lshift__(self, other: Index) -> Index:
        return rules.shift("<<", self, admit(other, "<<"))

    def __rlshift__(self, other: Index) -> Index:
        return rules.shift("<<", admit(other, "<<"), self)

    def __rshift__(self, other: Index) -> Index:
        return rules.shift(">>", self, admit(other, ">>"))

    def __rrshift__(self, other: Index) -> Index:
        return rules.shift(">>", admit(other, ">>"), self)


Index = int | Expr


def bounds(x: Index) -> Range:
    """The inclusive bounds of a value; None is unbounded.

    >>> i = Var("i", 0, 9)
    >>> bounds(3 * i - 2), bounds(-(i % 4)), bounds(7), bounds(i * Var("n", 1))
    ((-2, 25), (-3, 0), (7, 7), (0, None))
    """
    return (x, x) if isinstance(x, int) else (x.lo, x.hi)


def settled(x: Index) -> Index:
    """A value whose bounds leave only one is that int."""
    return x.lo if not isinstance(x, int) and x.lo is not None and x.lo == x.hi else x


def seal(x: Expr, lo: int | None, hi: int | None, hashed: int | None) -> None:
    """Set what every expression has; `hashed` is None where the hash is calculated when it is first needed."""
    _set(x, "lo", lo)
    _set(x, "hi", hi)
    _set(x, "_hash", hashed)
    _set(x, "_order", None)


def _as_bound(bound: int | None, name: str) -> int | None:
    if bound is None or type(bound) is int:
        return bound
    admitted = admit(bound, f"Var {name!r}")
    if isinstance(admitted, Expr):
        raise LayoutError("Var", f"the bounds of {name!r} are ints or None, got the expression {admitted}")
    return admitted


class Atom(Expr):
    """What a polynomial takes for an unknown: everything but a polynomial."""

    __slots__ = ()


class Var(Atom):
    """An integer variable with inclusive bounds; None leaves a side unbounded.

    Two variables are equal when name and bounds are.  A name is a Python name, dots allowed
    (``threadIdx.x``).

    >>> Var("n", 1), Var("n", 1).lo, Var("n", 1).hi
    (n, 1, None)
    >>> Var("i", 4, 3)
    Traceback (most recent call last):
    tilelayout.errors.LayoutError: Var: 'i' has no value: lo 4 is above hi 3
    """

    __slots__ = ("name",)

    name: str

    def __init__(self, name: str, lo: int | None = 0, hi: int | None = None) -> None:
        if type(name) is not str or not all(p.isidentifier() and not iskeyword(p) for p in name.split(".")):
            raise LayoutError("Var", f"a name is a Python name, got {name!r}")
        lo, hi = _as_bound(lo, name), _as_bound(hi, name)
        if lo is not None and hi is not None and lo > hi:
            raise LayoutError("Var", f"{name!r} has no value: lo {lo} is above hi {hi}")
        _set(self, "name", name)
        seal(self, lo, hi, hash((name, lo, hi)))

    def parts(self) -> tuple[str, int | None, int | None]:
        return self.name, self.lo, self.hi

    def _spell(self) -> str:
        return f"{self.name} {self.lo} {self.hi}"
