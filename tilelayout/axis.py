"""Named hardware axes, their kinds, and the hierarchy of the thread axes.

An axis *is* its name (a `str`), so the mappings that evaluation returns are keyed by plain names.
Only the notation that starts at an axis (``4 @ laneid``, sums of such terms) lives here beside it;
the rest of the notation is in `spec`.
"""

from __future__ import annotations

from .errors import LayoutError, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final, Literal

    Kind = Literal["thread", "memory", "device"]

KINDS: Final = ("thread", "memory", "device")


class Axis(str):
    """A hardware axis: a name with a kind, one object per name.

    Axes come from the registry: `register_axis` makes one on purpose, `axis` looks one up.  Calling
    `Axis(name)` looks up too, so that a misspelled name never makes a new axis.

    >>> laneid.kind, laneid == "laneid", laneid is Axis("laneid")
    ('thread', True, True)
    >>> 4 @ laneid
    4 @ laneid
    """

    kind: Kind

    # numpy's scalars must leave `np.int64(4) @ laneid` to __rmatmul__ instead of trying matmul.
    __array_ufunc__ = None

    def __new__(cls, name: str) -> Axis:
        return axis(name)

    @property
    def name(self) -> str:
        """The name, as a plain string."""
        return str.__str__(self)

    def is_thread(self) -> bool:
        """Whether it counts threads, or groups of them."""
        return self.kind == "thread"

    def is_memory(self) -> bool:
        """Whether it counts places in a memory."""
        return self.kind == "memory"

    def __rmatmul__(self, value: Any) -> Term:
        return Term(value, self)

    def __repr__(self) -> str:
        return self.name

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"axis {self.name} is frozen: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"axis {self.name} is frozen: cannot delete {name!r}")

    def __reduce__(self) -> tuple[Any, tuple[str, Kind]]:
        return register_axis, (self.name, self.kind)


class _Summand:
    """What terms and sums of terms share: they add up, with each other and with numbers (on `m`)."""

    __array_ufunc__ = None  # numpy's scalars leave ``np.int64(4) + term`` to __radd__
    __slots__ = ()

    def __add__(self, other: Any) -> TermSum:
        return _add(self, other)

    def __radd__(self, other: Any) -> TermSum:
        return _add(other, self)

    def __sub__(self, other: Any) -> TermSum:
        return _subtract(self, other)

    def __rsub__(self, other: Any) -> TermSum:
        return _subtract(other, self)


class Term(_Summand):
    """``value @ axis``: a stride in ``S[...]``/``R[...]``, or an offset on its own.

    Nothing is judged here; the value is validated where the term is used.
    """

    __slots__ = ("axis", "value")
    value: Any
    axis: Axis

    def __init__(self, value: Any, axis: Axis) -> None:
        self.value = value
        self.axis = axis

    def terms(self) -> Iterator[Term]:
        yield self

    def __neg__(self) -> Term:
        return Term(_negated(self.value), self.axis)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term) and self.value == other.value and self.axis is other.axis

    def __hash__(self) -> int:
        return hash((self.value, self.axis))

    def __repr__(self) -> str:
        return f"{self.value} @ {self.axis.name}"


class TermSum(_Summand):
    """A sum of terms: an offset under construction, e.g. ``1 @ laneid + 64``."""

    __slots__ = ("_terms",)
    _terms: tuple[Term, ...]

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self._terms = terms

    def terms(self) -> Iterator[Term]:
        return iter(self._terms)

    def __neg__(self) -> TermSum:
        return TermSum(tuple(-t for t in self._terms))

    def __repr__(self) -> str:
        return " + ".join(map(repr, self._terms))


def _negated(value: Any) -> Any:
    """Minus a number; what is no integer is left as it is, to be refused with its value where it is used.

    -True would pass for an int, and numpy's integers wrap: -uint8(5) is 251.
    """
    if type(value) is int:
        return -value
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        return -value if hasattr(value, "free_symbols") and hasattr(value, "__neg__") else value
    return -number if type(number) is int and not isinstance(value, bool) else value


def terms_of(x: Any) -> tuple[Term, ...] | None:
    """`x` as offset terms: a term, a sum of terms, or a bare number (on `m`); None for anything else.

    Numbers of every type pass, so that one which is no integer is refused with its value where it is used.
    """
    if isinstance(x, (Term, TermSum)):
        return tuple(x.terms())
    if any(hasattr(x, name) for name in ("__index__", "__float__", "__complex__", "free_symbols")):
        return (Term(x, m),)
    return None


def _add(left: Any, right: Any) -> TermSum:
    a, b = terms_of(left), terms_of(right)
    return NotImplemented if a is None or b is None else TermSum(a + b)


def _subtract(left: Any, right: Any) -> TermSum:
    b = terms_of(right)
    return NotImplemented if b is None else _add(left, TermSum(tuple(-t for t in b)))


# --- the registry -------------------------------------------------------------------------------

_registry: dict[str, Axis] = {}

# Python's words are those of `keyword.kwlist` (a test compares), which isn't imported for the sake of start-up.
_TAKEN: Final = frozenset(
    (
        "S R T Axis TileLayout False None True and as assert async await break class continue def del elif else "
        "except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield"
    ).split()
)


def register_axis(name: str, kind: Kind) -> Axis:
    """Make `name` an axis of `kind`, or return it when it is one already.

    >>> register_axis("sm", "device").kind
    'device'

    Errors: LayoutError for a name that is not an identifier or is taken by the notation, for an
    unknown kind, and for a known axis of another kind.
    """
    named = isinstance(name, str)  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
    if not named or not name.isascii() or not name.isidentifier():
        raise LayoutError("register_axis", f"{name!r} is not an identifier in ASCII")
    if name in _TAKEN:
        raise LayoutError("register_axis", f"{name!r} is a word of the notation or of Python")
    if kind not in KINDS:
        raise LayoutError(
            "register_axis", f"axis {name!r}: unknown kind {kind!r}", nearest(str(kind), list(KINDS))
        )
    known = _registry.get(name)
    if known is None:
        made = str.__new__(Axis, name)
        str.__setattr__(made, "kind", kind)
        known = _registry.setdefault(made.name, made)  # another thread may have been quicker
    if known.kind != kind:
        raise LayoutError("register_axis", f"axis {name!r} is a {known.kind} axis already, not a {kind} axis")
    return known


def axis(name: str) -> Axis:
    """The registered axis of that name.

    >>> axis("m") is m
    True
    >>> axis("lanid")
    Traceback (most recent call last):
    tilelayout.errors.LayoutError: axis: unknown axis 'lanid', did you mean 'laneid'? (remedy: ...)
    """
    named = isinstance(name, str)  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
    known = _registry.get(name) if named else None
    if known is None:
        raise LayoutError(
            "axis",
            f"unknown axis {name!r}, {nearest(str(name), list(_registry))}",
            "a new axis is registered on purpose, with register_axis(name, kind)",
        )
    return known


def axes() -> tuple[Axis, ...]:
    """Every registered axis, in order of registration."""
    return tuple(_registry.values())


bx, by, bz, cbx, cby, cbz, tx, warpid, laneid, wgid, tid_in_wg, wid_in_wg = (
    register_axis(name, "thread")
    for name in "bx by bz cbx cby cbz tx warpid laneid wgid tid_in_wg wid_in_wg".split()
)
m, P, F, Bank, TCol, TLane = (register_axis(name, "memory") for name in "m P F Bank TCol TLane".split())
pid = register_axis("pid", "device")


# --- the thread hierarchy -----------------------------------------------------------------------


class Fusion(tuple["Axis", "Axis", "Axis", int]):
    """One row of the hierarchy: ``whole = per_outer * outer + inner`` with ``0 <= inner < per_outer``."""

    __slots__ = ()

    def __new__(cls, whole: Axis, outer: Axis, inner: Axis, per_outer: int) -> Fusion:
        return super().__new__(cls, (whole, outer, inner, per_outer))

    @property
    def whole(self) -> Axis:
        """The axis that the other two make up."""
        return self[0]

    @property
    def outer(self) -> Axis:
        """The slower of the two."""
        return self[1]

    @property
    def inner(self) -> Axis:
        """The faster of the two."""
        return self[2]

    @property
    def per_outer(self) -> int:
        """How many inner places one outer place has."""
        return self[3]


THREAD_HIERARCHY: Final = (
    Fusion(tx, warpid, laneid, 32),
    Fusion(tid_in_wg, wid_in_wg, laneid, 32),
    Fusion(warpid, wgid, wid_in_wg, 4),
    Fusion(tx, wgid, tid_in_wg, 128),
)
