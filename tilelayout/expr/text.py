"""Expressions as text: Python for reading, Python and C for emission.

Only spelling is decided here.  The normal form has products, quotients and remainders; C gets shifts and masks
back, which in CUDA C++ floor below zero too.
"""

from __future__ import annotations

from ..errors import LayoutError, nearest
from .core import Expr, Index, Var, admit, bounds, rules
from .nodes import Bitwise, Division, FloorDiv, Polynomial, Shift

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Dialect = Literal["python", "c", "cuda"]
    Text = tuple[str, int]

DIALECTS = ("python", "c", "cuda")
_C = 1  # its position there

# How tightly an operator binds; Python and C agree on the order of these.
_BITS, _SHIFT, _SUM, _PRODUCT, _UNARY, _NAME = range(6)

C_LIMIT = 1 << 63


def render(x: Index, dialect: Dialect = "python") -> str:
    """The text of an expression in ``"python"``, ``"c"`` (C, C++ and CUDA) or ``"cuda"`` (CUDA C++ alone).

    C divides towards zero, so ``//`` and ``%`` have a C form only where the operand is proved not to be
    negative; powers of two are written as shifts and masks.  The text assumes signed variables of a type that
    holds the bounds of every subexpression; a literal that no C type holds is refused.  CUDA C++ shifts negative
    numbers arithmetically: there powers of two divide those too.

    >>> from tilelayout.expr import Var
    >>> lane = Var("lane", 0, 31)
    >>> render(64 * (lane // 4) + 2 * (lane % 4) + lane // 3, "c")
    '64*(lane >> 2) + 2*(lane & 3) + lane / 3'
    >>> render((lane - 9) // 4, "c")
    '((lane + 3) >> 2) - 3'
    >>> render(Var("i", -9, 9) // 4, "cuda")
    'i >> 2'
    >>> render(Var("i", None) // 4, "c")
    Traceback (most recent call last):
    tilelayout.errors.LayoutError: render: a floor division of a possibly negative value has no C form...
    """
    x = admit(x, "render")
    if dialect not in DIALECTS:
        raise LayoutError("render", f"unknown dialect {dialect!r}: {nearest(str(dialect), list(DIALECTS))}")
    return _text(x, DIALECTS.index(dialect))[0]


def text(x: Index) -> str:
    return _text(x, 0)[0]


def _text(x: Index, c: int) -> Text:
    """The text and how tightly its outermost operator binds."""
    if isinstance(x, int):
        return _literal(x, c), _NAME if x >= 0 else _UNARY
    if isinstance(x, Var):
        return x.name, _NAME
    if isinstance(x, Polynomial):
        return _sum(x, c)
    if isinstance(x, Division):
        return _division(x, c)
    if isinstance(x, Shift):
        if c == _C or (c and x.symbol == "<<"):
            _check_nonnegative(x, x.operand, "shift")
        return f"{_inner(x.operand, _SHIFT, c)} {x.symbol} {_inner(x.count, _SUM, c)}", _SHIFT
    if isinstance(x, Bitwise):
        return f" {x.symbol} ".join([_inner(operand, _BITS, c) for operand in x.operands]), _BITS
    raise LayoutError("render", f"{type(x).__name__} has no text")


def _literal(x: int, c: int) -> str:
    if c and abs(x) >= C_LIMIT:
        raise LayoutError("render", f"{x} doesn't fit a C integer of 64 bits")
    return str(x)


def _inner(x: Index, level: int, c: int) -> str:
    """An operand, in parentheses where it binds less tightly than `level`.

    Beside bit operations every compound operand gets them: few know how tightly those bind, and compilers
    warn.
    """
    inner, own = _text(x, c)
    if level <= _SUM:
        level = _UNARY
    return inner if own >= level else f"({inner})"


def _division(x: Division, c: int) -> Text:
    quotient = isinstance(x, FloorDiv)
    if not c:
        symbol = "//" if quotient else "%"
        return f"{_inner(x.dividend, _PRODUCT, c)} {symbol} {_inner(x.divisor, _UNARY, c)}", _PRODUCT
    power = isinstance(x.divisor, int) and not x.divisor & x.divisor - 1
    if c == _C or not power:
        _check_nonnegative(x, x.dividend, "floor division" if quotient else "remainder")
    if isinstance(x.divisor, int) and power:
        if quotient:
            return f"{_inner(x.dividend, _SHIFT, c)} >> {x.divisor.bit_length() - 1}", _SHIFT
        return f"{_inner(x.dividend, _BITS, c)} & {_literal(x.divisor - 1, c)}", _BITS
    return (
        f"{_inner(x.dividend, _PRODUCT, c)} {'/' if quotient else '%'} {_inner(x.divisor, _UNARY, c)}",
        _PRODUCT,
    )


def _check_nonnegative(x: Expr, operand: Index, what: str) -> None:
    low, high = bounds(operand)
    if low is None or low < 0:
        ends = f"from {'-inf' if low is None else low} to {'inf' if high is None else high}"
        raise LayoutError(
            "render",
            f"a {what} of a possibly negative value has no C form: {x}, where {operand} is {ends}",
            "give its variables tighter bounds, or add a multiple of the divisor",
        )


def _sum(x: Polynomial, c: int) -> Text:
    """Largest coefficient first, the constant last, or first where nothing else is positive."""
    constant = x.terms.get((), 0)
    named = sorted(
        ((k, mono) for mono, k in x.terms.items() if mono), key=lambda t: (-t[0], [a.order() for a in t[1]])
    )
    if constant:
        named.insert(0 if constant > 0 > named[0][0] else len(named), (constant, ()))
    out = ""
    for k, mono in named:
        factors = [_literal(abs(k), c)] if abs(k) != 1 or not mono else []
        alone = len(factors) + len(mono) == 1 and (out or k > 0)  # a leading minus would bind to the dividend
        level = _PRODUCT if alone else _UNARY
        factors += [_factor(atom, level, c) for atom in mono]
        out += (" - " if k < 0 else " + ") if out else "-" if k < 0 else ""
        out += "*".join(factors)
    return out, _SUM if len(named) > 1 else _PRODUCT


def _factor(atom: Expr, level: int, c: int) -> str:
    inner, own = _text(atom, c)
    return inner if own >= level else f"({inner})"


rules.text = text
