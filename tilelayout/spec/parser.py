"""Reading the notation: a grammar of its own, so that no text is ever evaluated as code."""

from __future__ import annotations

import re

from ..axis import Axis, Term, axis
from ..errors import LayoutError
from ..parts import as_integer, is_symbolic
from . import R, S, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


SIGNS = ("*", "**", "/", "//", "%", "[", "]", "(", ")", ":", ",", "@", "+", "-", ".")
FUNCTIONS = ("floor", "ceiling", "Mod", "Max", "Min", "Abs")
"""Of sympy's, those whose values may stand in a layout."""


class Parser:
    """Recursive descent over the grammar

    layout := ["T."] "TileLayout" "(" sum ")" | sum
    sum    := ["-"] part (("+" | "-") part)*
    part   := ("S" | "R") "[" list [":" list] "]" | "(" sum ")" | product ["@" axis]
    list   := "(" [entry ("," entry)* [","]] ")" | entry ("," entry)*
    entry  := number ["@" axis]
    axis   := ["Axis."] name
    number := product (("+" | "-") product)*
    product := unary (("*" | "//" | "%" | "/") unary)*
    unary  := "-" unary | power
    power  := atom ["**" unary]
    atom   := integer | symbol | "(" number ")" | function "(" number ("," number)* ")"

    which binds as Python does, so that printed text means the same to both.  A sum before ``@`` is
    parenthesized.  Functions are those of sympy's that make integers (`FUNCTIONS`), which
    only texts with symbols need and have; "/" divides inside of them.  Every level of parentheses is a level of calls
    here, hence MAX_DEPTH.
    """

    MAX_DEPTH = 100
    MAX_FUNCTIONS = 20  # of those inside one another, which sympy takes hundreds of calls to print
    MAX_DIGITS = 4000  # Python converts no more
    MAX_WIDTH = (10**MAX_DIGITS).bit_length()  # the same in bits, of what is multiplied
    MAX_BITS = 4096  # of a power: "9**9**9" is hardly an extent

    def __init__(self, text: str, symbols: Mapping[str, Any], whole: bool = False) -> None:
        self.text, self.symbols = text, symbols
        self.tokens = _tokens(text)
        self.at = 0
        self.depth = 0
        self.whole = whole  # a shard is asked for
        self.functions = 0  # of those that are open, where "/" divides

    def fail(self, expected: str) -> LayoutError:
        where, token = self.tokens[self.at]
        found = f"found {token[:40]!r}" if token else "the text ends"
        return _at(self.text, where, f"expected {expected}, {found}")

    @property
    def token(self) -> str:
        return self.tokens[self.at][1]

    def sees(self, *tokens: str) -> bool:
        return self.token in tokens

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

    def open(self) -> None:
        """Take a parenthesis, one level deeper."""
        self.depth += 1
        if self.depth > self.MAX_DEPTH:
            raise self.fail(f"at most {self.MAX_DEPTH} nested parentheses")
        self.need("(")

    def close(self) -> None:
        self.need(")")
        self.depth -= 1

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
        if self.whole and not found.has_shard:
            self.at = 0
            raise self.fail("a shard S[...] in the layout")
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
        if self.sees("("):
            # "(64 + 5 @ warpid)" is a sum of offsets, "(n + 1) @ warpid" a number: try the number first.
            depth, functions = self.depth, self.functions
            try:
                term = self.term(self.product())
            except LayoutError:
                term = None
            if term is not None and self.sees("", "+", "-", ")"):
                return -term if negative else term
            self.at, self.depth, self.functions = start, depth, functions
            self.open()
            inner = self.sum()
            self.close()
            if negative and isinstance(inner, Spec):
                raise self.fail("an offset after '-'")
            return -inner if negative else inner
        term = self.term(self.product())
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
            found = bracket[item]
        except LayoutError as error:
            raise _at(self.text, self.tokens[where][0], str(error)) from None
        for _, stride, _ in (*found.shard, *found.replica):
            if type(stride) is int and stride.bit_length() > self.MAX_WIDTH:  # of extents multiplied
                rule = f"expected strides of at most {self.MAX_DIGITS} digits, which can be printed"
                raise _at(self.text, self.tokens[where][0], rule)
        return found

    def entries(self) -> tuple[Any, ...]:
        if self.sees("(") and not self._parenthesized_number():
            self.at += 1
            out: list[Any] = []
            while not self.take(")"):
                out.append(self.entry())
                if not self.sees(")"):
                    self.need(",")
            return tuple(out)
        out = [self.entry()]
        while self.take(","):
            out.append(self.entry())
        return tuple(out)

    def _parenthesized_number(self) -> bool:
        """Whether the "(" here opens a number such as ``(2*n)`` and not a list.

        There is no comma at its depth then, and something that continues a number behind it.
        """
        depth, k = 0, self.at
        while k < len(self.tokens) - 1:
            token = self.tokens[k][1]
            depth += (token == "(") - (token == ")")
            if depth == 1 and token in (",", "@"):
                return False
            if depth == 0:
                return self.tokens[k + 1][1] in ("*", "**", "//", "%", "/", "+", "-", "@", ",")
            k += 1
        return False

    def entry(self) -> Any:
        start = self.at
        value = self.number()
        if self.token == "@" and self.at > start:
            end, self.at = self.at, start
            self.product()
            if self.at < end:  # Python takes a + b @ axis for a + (b @ axis), which is no stride
                raise self.fail("parentheses around a sum before '@'")
        return self.term(value)

    def term(self, value: Any) -> Any:
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

    def number(self) -> Any:
        value = self.product()
        while self.token in ("+", "-"):
            negative = self.token == "-"
            self.at += 1
            right = self.product()
            value = value - right if negative else value + right
        return value

    def product(self) -> Any:
        value = self.unary(later := [])
        while self.token in ("*", "//", "%") or (self.functions and self.token == "/"):
            where, operator = self.at, self.token
            self.at += 1
            right = self.unary()
            if operator != "*" and right == 0:
                self.at = where
                raise self.fail(f"a divisor other than 0 after {operator!r}")
            if operator == "*" and type(value) is int and type(right) is int:
                value = value * right
            elif operator in "*/":
                later.append(right if operator == "*" else _over("/", 1, right))
            else:
                value, later = _over(operator, _times(value, later), right), []
            if type(value) is int and value.bit_length() > self.MAX_WIDTH:
                self.at = where
                raise self.fail(f"a product of at most {self.MAX_DIGITS} digits")
        return _times(value, later)

    def unary(self, factors: list[Any] | None = None) -> Any:
        """A factor; its sign becomes one of `factors` where it isn't a number's."""
        negative = False
        while self.take("-"):
            negative = not negative
        value = self.power()
        if negative and factors is not None and type(value) is not int:
            factors.append(-1)
            return value
        return -value if negative else value

    def power(self) -> Any:
        base = self.atom()
        if self.token != "**":
            return base
        where = self.at
        self.at += 1
        self.depth += 1
        exponent: Any = self.unary() if self.depth <= self.MAX_DEPTH else -1
        self.depth -= 1
        if type(exponent) is int:
            if exponent < 0 or exponent * _bits(base) > self.MAX_BITS:
                self.at = where
                raise self.fail(
                    f"a power of at most {self.MAX_BITS} bits, with an exponent that is not negative"
                )
        elif exponent.is_integer is not True:
            self.at = where
            raise self.fail("a power with an integer as exponent")
        return _plain(base**exponent)

    def atom(self) -> Any:
        token = self.token
        if token.isdigit():
            if len(token) > self.MAX_DIGITS:
                raise self.fail(f"a number of at most {self.MAX_DIGITS} digits")
            self.at += 1
            return int(token)
        if token == "(":
            self.open()
            value = self.number()
            self.close()
            return value
        if token.isidentifier() and token in self.symbols:
            try:
                value = self.symbols[token]
                value = as_integer(value, "parse", "symbol" if is_symbolic(value) else f"symbol {token}")
            except LayoutError as error:
                raise self.fail(f"an integer ({error.rule})") from None
            self.at += 1
            return value
        if self.symbols and token in FUNCTIONS and self.tokens[self.at + 1][1] == "(":
            return self.function()
        raise self.fail(
            "a number" if not token.isidentifier() else "a number (a symbol is passed in symbols=)"
        )

    def function(self) -> Any:
        """sympy's ``floor(n/16)``, ``Mod(n, 4)`` and the like, as they are printed."""
        from ..expr.adapter import called

        where, name = self.at, self.token
        self.functions += 1
        if self.functions > self.MAX_FUNCTIONS:
            raise self.fail(f"at most {self.MAX_FUNCTIONS} nested functions")
        self.at += 1
        self.open()
        arguments = [self.number()]
        while self.take(","):
            arguments.append(self.number())
        self.close()
        self.functions -= 1
        try:
            return _plain(called(name, arguments))
        except LayoutError as error:
            self.at = where
            raise self.fail(error.rule) from None


def _times(value: Any, factors: list[Any]) -> Any:
    """The product, made at once: sympy multiplies a sum out when it meets a number alone."""
    if not factors:
        return value
    from ..expr.adapter import multiplied

    return _plain(multiplied([value, *factors]))


def _over(operator: str, left: Any, right: Any) -> Any:
    """``left operator right`` for a division, exactly: ints where both are and it makes one, else sympy's."""
    if operator != "/" and type(left) is int and type(right) is int:
        return left // right if operator == "//" else left % right
    from ..expr.adapter import over

    return _plain(over(operator, left, right))


def _plain(x: Any) -> Any:
    """sympy's Integers as ints, so that each number here is judged as one."""
    return int(x) if type(x) is not int and x.is_Integer else x


def _bits(base: Any) -> int:
    """How many bits each power of `base` adds, at least 64 where it has symbols."""
    if type(base) is int:
        return base.bit_length()
    return max(64, sum([x.p.bit_length() + x.q.bit_length() for x in base.atoms() if x.is_Rational]))


def _at(text: str, where: int, rule: str) -> LayoutError:
    """An error that shows the text around a position."""
    begin = max(0, where - 60)
    shown = "".join([c if c.isprintable() else " " for c in text[begin : where + 60]])
    return LayoutError("parse", f"at position {where}: {rule}\n  {shown}\n  {' ' * (where - begin)}^")


def _tokens(text: str) -> list[tuple[int, str]]:
    """(position, token) pairs; the end is an empty token."""
    out: list[tuple[int, str]] = []
    for found in re.finditer(r"\s+|\d+|[A-Za-z_]\w*|\*\*|//|.", text, re.DOTALL):
        token = found.group()
        if token.isspace():
            continue
        if not (token.isascii() and (token.isalnum() or token.isidentifier() or token in SIGNS)):
            raise _at(text, found.start(), f"unexpected {token!r}")
        out.append((found.start(), token))
    out += [(len(text), ""), (len(text), "")]
    return out
