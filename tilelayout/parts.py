"""The data that the algebra works on: iters, and integers as layouts take them.

Inside, an iter is a plain tuple ``(extent, stride, axis)``, because layouts are made and read thousands of times;
what users hold is an `Iter`, which validates and has names.  No operation on layouts may live here.
"""

from __future__ import annotations

import sys

from .axis import Axis, m
from .axis import axis as known_axis
from .errors import LayoutError, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Final

    import sympy  # pyright: ignore[reportMissingTypeStubs]  # it ships none

    Integer = int | sympy.Expr
    RawIter = tuple[Integer, Integer, Axis]  # an Iter is one too
    Offset = dict[Axis, Integer]
    Parts = tuple[tuple[RawIter, ...], tuple[RawIter, ...], Offset]

M: Final = m


def as_integer(x: Any, operation: str, what: str) -> Integer:
    """`x` as an exact integer: an int, anything with ``__index__``, or a symbolic sympy integer.

    Sympy Integers and numpy integers become ints; bools, floats and everything else are refused, and integers of more
    than 4000 digits, which Python doesn't print.
    """
    if type(x) is int:
        if -TOO_LARGE < x < TOO_LARGE:
            return x
        raise too_large(operation, what, x)
    if not isinstance(x, bool) and type(x).__name__ not in ("bool_", "bool"):
        try:
            number = x.__index__()
        except (AttributeError, TypeError):
            number = None
        if type(number) is int:  # what a foreign __index__ returns is not to be trusted
            return as_integer(number, operation, what)
        if is_symbolic(x):
            if x.is_Float or (x.is_integer is not True and _known_fraction(x)):
                raise LayoutError(operation, f"{what} {x} is not an integer")
            if x.is_integer is True:
                return x
            raise LayoutError(
                operation,
                f"{what} {x} is not known to be an integer",
                "declare its symbols with integer=True",
            )
    raise LayoutError(operation, f"{what} must be an integer, got {type(x).__name__} {x!r}")


TOO_LARGE: Final = 10**4000


def too_large(operation: str, what: str, x: int) -> LayoutError:
    """The refusal of an integer that no text could show."""
    return LayoutError(
        operation, f"{what} has {x.bit_length()} bits; integers of at most 4000 digits are taken"
    )


def _known_fraction(x: Any) -> bool:
    return x.is_number or x.is_integer is False


def is_symbolic(x: Any) -> bool:
    """Whether `x` is a sympy expression; never imports sympy."""
    module = sys.modules.get("sympy")
    return module is not None and isinstance(x, module.Expr)


def as_extent(x: Any, operation: str, what: str) -> Integer:
    """`x` as an extent: an integer >= 1, or a symbolic one that is known to be positive."""
    n = as_integer(x, operation, what)
    if type(n) is int:
        if n < 1:
            raise LayoutError(operation, f"{what} must be at least 1, got {n}")
    elif n.is_positive is not True and not _proved_positive(n):  # type: ignore[union-attr]  # symbolic, then
        raise LayoutError(
            operation,
            f"{what} {n} is not known to be positive",
            _if_positive(n, operation),
        )
    return n


def _if_positive(n: Any, operation: str) -> str:
    """The remedy for an extent that isn't known to be positive."""
    if n.is_Symbol:
        return "declare it with positive=True"
    symbols = sorted([s.name for s in n.free_symbols if s.is_positive is not True])
    declare = f"declare {', '.join(symbols)} with positive=True" if symbols else None
    if operation not in BIRTHS:
        either = f"{declare} or, where it holds" if declare else "where it holds"
        return f"{either}, pass assuming={n} >= 1"
    if type(n).__name__ == "floor":
        whole, by = n.args[0].as_numer_denom()
        return (
            f"write the quotient as a symbol q with positive=True and {whole} as {by}*q; or begin with S[{whole}] and "
            f"group it with assuming=Eq(Mod({whole}, {by}), 0), which TileLayout.parse takes, too"
        )
    smaller = "make the extent a symbol with positive=True, and write what it comes from in it"
    return f"{declare}; or {smaller}" if declare else smaller


BIRTHS: Final = ("Iter", "S", "R", "TileLayout")
"""Where integers come in before there is a layout: nothing can be assumed there."""


def _proved_positive(x: Integer) -> bool:
    from .expr.adapter import proved_positive

    return proved_positive(x)


class Iter(tuple["Integer", "Integer", Axis]):
    """One digit of a layout: `extent` steps of `stride` along `axis` (default: the memory axis `m`).

    >>> Iter(8, 4, "laneid")
    Iter(8, 4 @ laneid)
    >>> Iter(0, 1)
    Traceback (most recent call last):
    tilelayout.errors.LayoutError: Iter: extent must be at least 1, got 0
    """

    __slots__ = ()

    def __new__(cls, extent: Any, stride: Any, axis: Axis | str = M) -> Iter:
        known = axis if type(axis) is Axis else known_axis(axis)
        return super().__new__(
            cls, (as_extent(extent, "Iter", "extent"), as_integer(stride, "Iter", "stride"), known)
        )

    @property
    def extent(self) -> Integer:
        """How many values the digit takes; at least 1."""
        return self[0]

    @property
    def stride(self) -> Integer:
        """How far one step goes; any integer."""
        return self[1]

    @property
    def axis(self) -> Axis:
        """What the steps go along."""
        return self[2]

    def __repr__(self) -> str:
        return f"Iter({self[0]}, {stride_text(self)})"

    def __reduce__(self) -> tuple[type[Iter], tuple[Integer, Integer, Axis]]:
        return Iter, (self[0], self[1], self[2])


def as_iter(it: Any) -> RawIter:
    """An iter, or a tuple (extent, stride, axis) as one, validated."""
    if type(it) is not Iter:
        if not isinstance(it, tuple) or len(it) not in (2, 3):  # pyright: ignore[reportUnknownArgumentType]
            raise LayoutError("TileLayout", f"an iter is (extent, stride, axis), got {it!r}")
        it = Iter(*it)  # pyright: ignore[reportUnknownArgumentType]
    return it[0], it[1], it[2]


_MAKE: Any = tuple.__dict__["__new__"]


def as_iters(iters: Iterable[RawIter]) -> tuple[Iter, ...]:
    """Iters as users hold them."""
    return tuple([_MAKE(Iter, it) for it in iters])  # the values are known to be valid


UNIT: Final[RawIter] = (1, 0, M)
"""The digit that carries nothing, where a group or a layout needs one."""


def stride_text(it: RawIter) -> str:
    """The stride of an iter in the notation: ``4 @ laneid``, or ``4`` on the memory axis."""
    value = digits(it[1]) if type(it[1]) is int else f"({digits(it[1])})" if it[2] is not M else digits(it[1])
    return f"{value}" if it[2] is M else f"{value} @ {it[2]}"


def digits(n: Integer) -> str:
    """The text of a number, exact at any size: Python itself writes no more than 4300 digits."""
    try:
        return str(n)
    except ValueError:
        if type(n) is not int:  # a factor within a symbolic term
            return shown(n)
    pieces: list[str] = []
    rest = abs(n)
    while rest:
        rest, low = divmod(rest, TOO_LARGE)
        pieces.append(str(low).zfill(4000) if rest else str(low))
    return ("-" if n < 0 else "") + "".join(reversed(pieces))


def product(numbers: Iterable[Integer]) -> Integer:
    total: Integer = 1
    for n in numbers:
        total = total * n
    return total


def nonzero(offset: Offset) -> Offset:
    """`offset` without the axes that it leaves in place: the one form in which offsets are kept."""
    return {a: v for a, v in offset.items() if v != 0}


def as_shape(shape: Any, operation: str, what: str = "shape") -> tuple[Integer, ...]:
    """`shape` as a tuple of extents; one integer stands for a shape of one dimension."""
    kind = shape.__class__
    if kind is tuple or kind is list:
        for n in shape:
            if type(n) is not int or not 0 < n < TOO_LARGE:
                break
        else:
            return tuple(shape)
        return tuple(as_extent(n, operation, f"{what} dimension {i}") for i, n in enumerate(shape))
    try:
        entries = iter(shape)
    except TypeError:  # a number, of whatever type (a numpy array of no dimension is one)
        return (as_extent(shape, operation, what),)
    if isinstance(shape, (str, bytes, bytearray)):
        raise LayoutError(operation, f"{what} must be integers, got {type(shape).__name__} {shape!r}")
    if isinstance(shape, (set, frozenset, dict)):
        raise LayoutError(operation, f"{what} must have an order, got {kind.__name__} {shape}")
    return as_shape(tuple(entries), operation, what)


def as_entries(x: Any, operation: str, what: str) -> tuple[Any, ...]:
    """The entries of a sequence whose own checks follow; refuses what has none or no order."""
    kind = x.__class__
    if kind is tuple:
        return x
    if hasattr(kind, "__iter__") and not issubclass(kind, (str, bytes, bytearray, set, frozenset, dict)):
        try:
            return tuple(x)
        except TypeError:  # a numpy array of no dimension
            pass
    raise LayoutError(operation, f"{what} must be a sequence, got {kind.__name__} {x!r}")


def check_permutation(perm: Sequence[Any], count: int, operation: str, of: str) -> tuple[int, ...]:
    """`perm` as a permutation of ``range(count)``; `of` names what is permuted in the message."""
    entries = as_entries(perm, operation, "the permutation")
    order = tuple([as_integer(p, operation, "permutation entry") for p in entries])
    if len(order) != count or set(order) != set(range(count)):
        raise LayoutError(
            operation, f"{list(order)} is not a permutation of the {count} {of} (0 to {count - 1})"
        )
    return order  # type: ignore[return-value]  # equal to a permutation of a range, so all ints


class Parted:
    """What the methods of layouts, which stand in several files, may ask of the layout that they belong to."""

    __slots__ = ()

    if TYPE_CHECKING:
        _shard: tuple[RawIter, ...]
        _replica: tuple[RawIter, ...]
        _offset: Offset
        _rests: bool

        def _parts(self) -> Parts: ...
        def _under(self, operation: str, assuming: Any, *arguments: Any, **options: Any) -> Any: ...
        @staticmethod
        def _made(shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], offset: Offset) -> Any: ...
        @staticmethod
        def _resting(parts: Parts, conditions: tuple[Any, ...]) -> Any: ...
