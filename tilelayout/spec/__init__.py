"""The notation ``S[extents : strides] + R[...] + offset``: built with Python's operators, parsed, printed.

Text has its own grammar and is never evaluated as code.  It also reads the form that TVM prints
(``T.TileLayout(T.S[8:4 @ Axis.laneid] + ...)``).  What the notation means belongs to `layout`.
"""

from __future__ import annotations

from ..axis import Term, TermSum, terms_of
from ..errors import LayoutError
from ..parts import TOO_LARGE, M, as_extent, as_integer, digits, nonzero, stride_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    from ..parts import Integer, Offset, RawIter


class Spec:
    """A layout being written: what ``S[...] + R[...] + 5 @ warpid`` evaluates to.

    Its parts are validated as they are written; `TileLayout(spec)` makes the layout.
    """

    __array_ufunc__ = None
    __slots__ = ("has_shard", "offset", "replica", "shard")
    shard: tuple[RawIter, ...]
    replica: tuple[RawIter, ...]
    offset: Offset
    has_shard: bool

    def __init__(
        self, shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], offset: Offset, has_shard: bool
    ) -> None:
        self.shard, self.replica, self.offset, self.has_shard = shard, replica, offset, has_shard

    def __add__(self, other: Any) -> Spec:
        if isinstance(other, Spec):
            if self.has_shard and other.has_shard:
                raise LayoutError(
                    "S + S", f"{self} + {other}: a layout has one shard", "write all iters in one S[...]"
                )
            return Spec(
                self.shard + other.shard,
                self.replica + other.replica,
                _sum(self.offset, [Term(v, a) for a, v in other.offset.items()]),
                self.has_shard or other.has_shard,
            )
        terms = terms_of(other)
        if terms is None:
            return NotImplemented
        return Spec(self.shard, self.replica, _sum(self.offset, terms), self.has_shard)

    def __radd__(self, other: Any) -> Spec:
        return self.__add__(other)

    def __sub__(self, other: Any) -> Spec:
        terms = terms_of(other)
        return NotImplemented if terms is None else self + TermSum(tuple(-t for t in terms))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spec):
            return NotImplemented
        return (self.shard, self.replica, self.offset) == (other.shard, other.replica, other.offset)

    def __hash__(self) -> int:
        return hash((self.shard, self.replica, frozenset(self.offset.items())))

    def __repr__(self) -> str:
        return to_text(self.shard, self.replica, self.offset, self.has_shard)


def _sum(offset: Offset, terms: Sequence[Term]) -> Offset:
    out = dict(offset)
    for t in terms:
        value = as_integer(t.value, "offset", f"offset on {t.axis}")
        out[t.axis] = as_integer(out.get(t.axis, 0) + value, "offset", f"offset on {t.axis}")
    return nonzero(out)


class _Bracket:
    """The objects `S` and `R`: ``S[8, 4]`` is row-major on `m`, ``S[extents : strides]`` says it all."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getitem__(self, item: Any) -> Spec:
        iters = self._iters(item)
        return Spec(iters, (), {}, True) if self._name == "S" else Spec((), iters, {}, False)

    def _iters(self, item: Any) -> tuple[RawIter, ...]:
        if type(item) is not slice:
            return self._row_major(_listed(item))
        if item.step is not None:
            raise LayoutError(
                self._name, f"{self._name}[a:b:c] has a part too many", "write extents : strides"
            )
        extents, strides = _listed(item.start), _listed(item.stop)
        if len(extents) != len(strides):
            raise LayoutError(
                self._name,
                f"{len(extents)} extents {extents} and {len(strides)} strides {strides}: one stride per extent",
            )
        out: list[RawIter] = []
        for e, s in zip(extents, strides, strict=True):
            a = M
            if type(s) is Term:
                s, a = s.value, s.axis
            if type(e) is not int or not 0 < e < TOO_LARGE:
                e = as_extent(e, self._name, f"extent {len(out)}")
            if type(s) is not int or not -TOO_LARGE < s < TOO_LARGE:
                s = as_integer(s, self._name, f"stride {len(out)}")
            out.append((e, s, a))
        return tuple(out)

    def _row_major(self, extents: tuple[Any, ...]) -> tuple[RawIter, ...]:
        out: list[RawIter] = []
        stride: Integer = 1
        for i in range(len(extents) - 1, -1, -1):
            if type(extents[i]) is slice or type(extents[i]) is Term:
                raise LayoutError(
                    self._name,
                    f"entry {i} is not an extent",
                    f"write {self._name}[(e0, e1, ...) : (s0, s1, ...)]",
                )
            e = as_extent(extents[i], self._name, f"extent {i}")
            out.append((e, stride, M))
            stride = as_integer(stride * e, self._name, "a stride") if i else 1
        out.reverse()
        return tuple(out)

    def __repr__(self) -> str:
        return self._name


def _listed(x: Any) -> tuple[Any, ...]:
    kind = x.__class__
    return x if kind is tuple else tuple(x) if kind is list else (x,)


S: Final = _Bracket("S")
R: Final = _Bracket("R")


# --- printing -----------------------------------------------------------------------------------


def to_text(
    shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], offset: Offset, has_shard: bool = True
) -> str:
    """The notation; `parse` and Python's operators give the same layout back."""
    text = f"S[{_bracket_text(shard)}]" if has_shard else ""
    if replica:
        text += (" + " if text else "") + f"R[{_bracket_text(replica)}]"
    for a in sorted(offset, key=lambda a: (a is M, a)):
        value = offset[a]
        negative = type(value) is int and value < 0
        number = digits(-value if negative else value)
        if type(value) is not int:
            number = f"({number})"
        sign = (" - " if negative else " + ") if text else "-" if negative else ""
        text += sign + (number if a is M else f"{number} @ {a}")
    return text


def _bracket_text(iters: tuple[RawIter, ...]) -> str:
    extents = [digits(it[0]) for it in iters]
    strides = [stride_text(it) for it in iters]
    if len(iters) == 1:
        return f"{extents[0]} : {strides[0]}" if "@" in strides[0] else f"{extents[0]}:{strides[0]}"
    separator = " : " if any("@" in s for s in strides) else ":"
    return f"({', '.join(extents)}){separator}({', '.join(strides)})" if iters else "()"


# --- parsing ------------------------------------------------------------------------------------


def parse(text: str, symbols: Mapping[str, Any] | None = None, *, whole: bool = False) -> Spec:
    """The spec that `text` writes; `whole` asks for a shard.

    A name that is no axis is looked up in `symbols` (name -> sympy symbol).
    Errors: LayoutError showing the position, for text outside the grammar and for unknown names.

    >>> parse("S[8:4@laneid] + 1@laneid + 2@warpid + 64")
    S[8 : 4 @ laneid] + 1 @ laneid + 2 @ warpid + 64
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise LayoutError("parse", f"text is expected, got {type(text).__name__}")
    if symbols is not None and not hasattr(symbols, "items"):
        raise LayoutError("parse", f"symbols must be a mapping name -> symbol, got {symbols!r}")
    from .parser import Parser  # not needed to build a layout

    return Parser(text, symbols or {}, whole).layout()
