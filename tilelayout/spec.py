"""The notation ``S[extents : strides] + R[...] + offset``: built with Python's operators, parsed, printed.

Text has its own grammar and is never evaluated as code.  It also reads the form that TVM prints
(``T.TileLayout(T.S[8:4 @ Axis.laneid] + ...)``).  What the notation means belongs to `layout`.
"""

from __future__ import annotations

from .axis import Axis, Term, TermSum, axis, terms_of
from .errors import LayoutError
from .parts import Iter, M, as_extent, as_integer, nonzero, stride_text, trusted_iter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    from .parts import Integer, Offset


class Spec:
    """A layout being written: what ``S[...] + R[...] + 5 @ warpid`` evaluates to.

    Its parts are validated as they are written; `TileLayout(spec)` makes the layout.
    """

    __array_ufunc__ = None
    __slots__ = ("has_shard", "offset", "replica", "shard")
    shard: tuple[Iter, ...]
    replica: tuple[Iter, ...]
    offset: Offset
    has_shard: bool

    def __init__(self, shard: tuple[Iter, ...], replica: tuple[Iter, ...], offset: Offset, has_shard: bool) -> None:
        self.shard, self.replica, self.offset, self.has_shard = shard, replica, offset, has_shard

    def __add__(self, other: Any) -> Spec:
        if isinstance(other, Spec):
            if self.has_shard and other.has_shard:
                raise LayoutError("S + S", f"{self} + {other}: a layout has one shard", "write all iters in one S[...]")
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

    def _iters(self, item: Any) -> tuple[Iter, ...]:
        if type(item) is not slice:
            return self._row_major(_listed(item))
        if item.step is not None:
            raise LayoutError(self._name, f"{self._name}[a:b:c] has a part too many", "write extents : strides")
        extents, strides = _listed(item.start), _listed(item.stop)
        if len(extents) != len(strides):
            raise LayoutError(
                self._name, f"{len(extents)} extents {extents} and {len(strides)} strides {strides}: one stride per extent"
            )
        out: list[Iter] = []
        for e, s in zip(extents, strides, strict=True):
            if type(s) is Term:
                s, a = s.value, s.axis
            else:
                a = M
            if type(e) is not int or e < 1:
                e = as_extent(e, self._name, f"extent {len(out)}")
            if type(s) is not int:
                s = as_integer(s, self._name, f"stride {len(out)}")
            out.append(trusted_iter(e, s, a))
        return tuple(out)

    def _row_major(self, extents: tuple[Any, ...]) -> tuple[Iter, ...]:
        out: list[Iter] = []
        stride: Integer = 1
        for i in range(len(extents) - 1, -1, -1):
            if type(extents[i]) is slice or type(extents[i]) is Term:
                raise LayoutError(
                    self._name, f"entry {i} is not an extent", f"write {self._name}[(e0, e1, ...) : (s0, s1, ...)]"
                )
            e = as_extent(extents[i], self._name, f"extent {i}")
            out.append(trusted_iter(e, stride, M))
            stride = stride * e
        out.reverse()
        return tuple(out)

    def __repr__(self) -> str:
        return self._name


def _listed(x: Any) -> tuple[Any, ...]:
    return x if type(x) is tuple else tuple(x) if type(x) is list else (x,)


S: Final = _Bracket("S")
R: Final = _Bracket("R")


# --- printing -----------------------------------------------------------------------------------


def to_text(shard: tuple[Iter, ...], replica: tuple[Iter, ...], offset: Offset, has_shard: bool = True) -> str:
    """The notation; `parse` and Python's operators give the same layout back."""
    text = f"S[{_bracket_text(shard)}]" if has_shard else ""
    if replica:
        text += (" + " if text else "") + f"R[{_bracket_text(replica)}]"
    for a in sorted(offset, key=lambda a: (a is M, a)):
        value = offset[a]
        negative = type(value) is int and value < 0
        number = str(-value if negative else value)
        if type(value) is not int:
            number = f"({number})"
        sign = (" - " if negative else " + ") if text else "-" if negative else ""
        text += sign + (number if a is M else f"{number} @ {a}")
    return text


def _bracket_text(iters: tuple[Iter, ...]) -> str:
    extents = [str(it[0]) for it in iters]
    strides = [stride_text(it) for it in iters]
    if len(iters) == 1:
        return f"{extents[0]} : {strides[0]}" if "@" in strides[0] else f"{extents[0]}:{strides[0]}"
    separator = " : " if any("@" in s for s in strides) else ":"
    return f"({', '.join(extents)}){separator}({', '.join(strides)})" if iters else "()"


# --- parsing ------------------------------------------------------------------------------------


def parse(text: str, symbols: Mapping[str, Any] | None = None) -> Spec:
    """The spec that `text` writes.

    A name that is no axis is looked up in `symbols` (name -> sympy symbol).
    Errors: LayoutError showing the position, for text outside the grammar and for unknown names.

    >>> parse("S[8:4@laneid] + 1@laneid + 2@warpid + 64")
    S[8 : 4 @ laneid] + 1 @ laneid + 2 @ warpid + 64
    """
    if not isinstance(text, str):
        raise LayoutError("parse", f"text is expected, got {type(text).__name__}")
    return _Parser(text, symbols or {}).layout()


class _Parser:
    """Recursive descent over the grammar

    layout := ["T."] "TileLayout" "(" sum ")" | sum
    sum    := ["-"] part (("+" | "-") part)*
    part   := ("S" | "R") "[" list [":" list] "]" | "(" sum ")" | term
    list   := "(" [term ("," term)* [","]] ")" | term ("," term)*
    term   := number-expression ["@" ["Axis."] axis]

    where a number-expression has names, integers, ``+ - *`` and parentheses; sums inside a list must be
    parenthesized, since ``+`` outside belongs to the layout.
    """

    def __init__(self, text: str, symbols: Mapping[str, Any]) -> None:
        self.text, self.symbols = text, symbols
        self.tokens = list(_tokens(text))
        self.at = 0

    def fail(self, expected: str) -> LayoutError:
        where, token = self.tokens[self.at]
        found = f"found {token!r}" if token else "the text ends"
        return LayoutError(
            "parse", f"at position {where}: expected {expected}, {found}\n  {self.text}\n  {' ' * where}^"
        )

    @property
    def token(self) -> str:
        return self.tokens[self.at][1]

    def take(self, token: str) -> bool:
        if self.token != token:
            return False
        self.at += 1
        return True

    def need(self, token: str) -> None:
        if not self.take(token):
            raise self.fail(repr(token))

    def prefix(self) -> None:
        if self.token == "T" and self.tokens[self.at + 1][1] == ".":
            self.at += 2

    def layout(self) -> Spec:
        self.prefix()
        wrapped = self.take("TileLayout")
        if wrapped:
            self.need("(")
        found = self.sum()
        if wrapped:
            self.need(")")
        if self.token:
            raise self.fail("the end of the text")
        if not isinstance(found, Spec):
            self.at = 0
            raise self.fail("S[...] or R[...]")
        return found

    def sum(self) -> Any:
        total = self.part(negative=self.take("-"))
        while self.token in ("+", "-"):
            negative = self.token == "-"
            self.at += 1
            right = self.part(negative)
            total = total + right
        return total

    def part(self, negative: bool) -> Any:
        start = self.at
        self.prefix()
        if self.token in ("S", "R") and self.tokens[self.at + 1][1] == "[":
            if negative:
                raise self.fail("an offset after '-'")
            return self.bracket()
        self.at = start
        if self.token == "(":
            # "(64 + 5 @ warpid)" is a sum of offsets, "(n + 1) @ warpid" a number: try the number first.
            try:
                term = self.term()
            except LayoutError:
                term = None
            if term is not None and self.token in ("", "+", "-", ")"):
                return -term if negative else term
            self.at = start + 1
            inner = self.sum()
            self.need(")")
            if negative and isinstance(inner, Spec):
                raise self.fail("an offset after '-'")
            return -inner if negative else inner
        term = self.term()
        return -term if negative else term

    def bracket(self) -> Spec:
        bracket = S if self.token == "S" else R
        where = self.at
        self.at += 2
        extents = self.entries()
        item: Any = extents
        if self.take(":"):
            item = slice(extents, self.entries())
        self.need("]")
        try:
            return bracket[item]
        except LayoutError as error:
            self.at = where
            position = self.tokens[where][0]
            raise LayoutError("parse", f"at position {position}: {error}\n  {self.text}\n  {' ' * position}^") from None

    def entries(self) -> tuple[Any, ...]:
        if self.token == "(" and not self._parenthesized_number():
            self.at += 1
            out: list[Any] = []
            while not self.take(")"):
                out.append(self.term())
                if self.token != ")":
                    self.need(",")
            return tuple(out)
        out = [self.term()]
        while self.take(","):
            out.append(self.term())
        return tuple(out)

    def _parenthesized_number(self) -> bool:
        """Whether the "(" here opens a number such as ``(2*n)`` and not a list: no comma at its depth,
        and something that continues a number behind it."""
        depth, k = 0, self.at
        while k < len(self.tokens) - 1:
            token = self.tokens[k][1]
            depth += (token == "(") - (token == ")")
            if depth == 1 and token in (",", "@"):
                return False
            if depth == 0:
                return self.tokens[k + 1][1] in ("*", "+", "-", "@", ",")
            k += 1
        return False

    def term(self) -> Any:
        value = self.product()
        if not self.take("@"):
            return value
        if self.token == "Axis" and self.tokens[self.at + 1][1] == ".":
            self.at += 2
        return Term(value, self.axis())

    def axis(self) -> Axis:
        name = self.token
        if not name.isidentifier():
            raise self.fail("an axis name")
        try:
            found = axis(name)
        except LayoutError as error:
            raise self.fail(f"an axis ({error.rule})") from None
        self.at += 1
        return found

    def product(self) -> Any:
        value = self.atom()
        while True:
            if self.token == "*" and self.tokens[self.at + 1][1] == "*":
                self.at += 2
                value = value ** self.atom()
            elif self.take("*"):
                value = value * self.atom()
            else:
                return value

    def atom(self) -> Any:
        if self.take("-"):
            return -self.atom()
        token = self.token
        if token.isdigit():
            self.at += 1
            return int(token)
        if token == "(":
            self.at += 1
            value = self.number_sum()
            self.need(")")
            return value
        if token.isidentifier() and token in self.symbols:
            self.at += 1
            return self.symbols[token]
        raise self.fail("a number" if not token.isidentifier() else "a number (a symbol is passed in symbols=)")

    def number_sum(self) -> Any:
        value = self.product()
        while self.token in ("+", "-"):
            negative = self.token == "-"
            self.at += 1
            right = self.product()
            value = value - right if negative else value + right
        return value


def _tokens(text: str) -> list[tuple[int, str]]:
    """(position, token) pairs; the end is an empty token."""
    import re  # not needed to build a layout

    out: list[tuple[int, str]] = []
    for found in re.finditer(r"\s+|\d+|[A-Za-z_]\w*|.", text, re.DOTALL):
        token = found.group()
        if token.isspace():
            continue
        if not (token.isascii() and (token.isalnum() or token.isidentifier() or token in "[]():,@+-*.")):
            where = found.start()
            raise LayoutError("parse", f"at position {where}: unexpected {token!r}\n  {text}\n  {' ' * where}^")
        out.append((found.start(), token))
    out += [(len(text), ""), (len(text), "")]
    return out
