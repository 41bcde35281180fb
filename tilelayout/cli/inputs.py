"""Reading what is written on the command line: layouts, shapes, coordinates, places; and refusing what is too large.

Errors are `LayoutError`, or click's for what never was a layout.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import click

from ..errors import LayoutError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final

    from ..layout import TileLayout
    from ..swizzled import SwizzledLayout

    Layout = TileLayout | SwizzledLayout

MAX_TEXT: Final = 100_000
"""Characters of a layout's text."""

MAX_DIGITS: Final = 1200
"""Digits of a number: what the notation takes in a power, and more than any tensor has."""

LISTED: Final = 2**20
"""Elements times copies that a command goes through one by one."""

COPIES: Final = 2**16
"""Holders of one element that are listed."""

_SWIZZLED: Final = re.compile(
    r"\s*(?:Swizzle\b|XorMap\b|Sw?\s*<|SwizzledLayout\b|(?:T\s*\.\s*)?ComposeLayout\b)"
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def layout_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """The argument LAYOUT and the option --let, for a command that reads a layout."""
    let = click.option("--let", multiple=True, metavar="NAME=NUMBER", help="The value of a symbol in LAYOUT.")
    return click.argument("layout")(let(function))


def shape_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option --shape."""
    return click.option("--shape", metavar="M,N", help="The tensor's shape, e.g. 16,16.")(function)


def bits_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option --element-bits."""
    return click.option(
        "--element-bits",
        "--bits",
        "bits",
        type=click.IntRange(1, 128),
        metavar="BITS",
        help="Width of an element.",
    )(function)


def layout_of(text: str, let: Sequence[str] = ()) -> Layout:
    """The layout that a text writes, swizzled or not; ``-`` reads it from standard input.

    Args:
        let: ``name=number`` for the symbols in it.

    Errors: LayoutError with the position in the text.

    >>> layout_of("S<3,3,3> o S[8, n]", ["n=64"])
    SwizzledLayout(S[(8, 64):(64, 1)], Swizzle(3, 3, 3))
    """
    from ..layout import TileLayout
    from ..swizzled import SwizzledLayout

    if text == "-":
        text = sys.stdin.read(MAX_TEXT + 1).strip()
    if len(text) > MAX_TEXT:
        raise LayoutError("parse", f"a layout of more than {MAX_TEXT} characters")
    symbols = dict([_symbol(x) for x in let])
    kind = SwizzledLayout if _SWIZZLED.match(text) else TileLayout
    try:
        return kind.parse(text, symbols)
    except LayoutError as error:
        rule = error.rule.replace(
            "a symbol is passed in symbols=", "give a symbol's value by --let NAME=NUMBER"
        )
        raise LayoutError(error.operation, rule, error.remedy) from None


def _symbol(text: str) -> tuple[str, int]:
    name, equals, value = [part.strip() for part in text.partition("=")]
    if not equals or not _NAME.fullmatch(name):
        raise click.BadParameter(f"{text!r} is not NAME=NUMBER, e.g. n=64", param_hint="--let")
    return name, _number(value, "--let")


def numbers_of(text: str, what: str, least: int | None = None) -> tuple[int, ...]:
    """The integers of ``16,16``, ``16x16`` or ``(16, 16)``.

    Errors: BadParameter naming `what` for other text, and for a number below `least`.

    >>> numbers_of("16, 16", "--shape"), numbers_of("(8x4)", "--shape"), numbers_of("-1", "--at")
    ((16, 16), (8, 4), (-1,))
    """
    inner = text.strip()
    if inner.startswith("(") and inner.endswith(")"):
        inner = inner[1:-1]
    parts = [part.strip() for part in re.split(r"[,x]", inner.strip().removesuffix(","))]
    if not all(parts):
        raise click.BadParameter(f"{_shown(text)} is not numbers as in 16,16", param_hint=what)
    found = tuple([_number(part, what) for part in parts])
    for n in found:
        if least is not None and n < least:
            raise click.BadParameter(f"{n} in {_shown(text)} is less than {least}", param_hint=what)
    return found


def _number(text: str, what: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise click.BadParameter(f"{_shown(text)} is not a number", param_hint=what)
    if len(text) > MAX_DIGITS:
        raise click.BadParameter(f"a number of more than {MAX_DIGITS} digits", param_hint=what)
    return int(text)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")


def shape_of(text: str | None) -> tuple[int, ...] | None:
    """The shape of ``--shape``; None where it was not given."""
    return None if text is None else numbers_of(text, "--shape", 1)


def sized_shape(layout: Layout, text: str | None, operation: str) -> tuple[int, ...] | None:
    """The shape of ``--shape``, refused where it has another number of elements than the layout."""
    from ..parts import product

    shape = shape_of(text)
    if shape is not None and product(shape) != layout.size():
        raise LayoutError(
            operation, f"shape {shape} has {product(shape)} elements, layout {layout} has {layout.size()}"
        )
    return shape


def place_of(text: str) -> dict[str, int | None]:
    """Axis -> coordinate of ``laneid=5,m=3``; ``m=*`` is any coordinate, None here.

    >>> place_of("laneid=5, m=*")
    {laneid: 5, m: None}
    """
    from ..axis import axis

    out: dict[str, int | None] = {}
    for part in text.split(","):
        name, equals, value = [x.strip() for x in part.partition("=")]
        if not equals:
            raise click.BadParameter(
                f"{_shown(part)} is not AXIS=NUMBER, e.g. laneid=5", param_hint="--where"
            )
        known = axis(name)
        if known in out:
            raise click.BadParameter(f"axis {known} is given twice", param_hint="--where")
        out[known] = None if value == "*" else _number(value, "--where")
    return out


# --- what is too large --------------------------------------------------------------------------


def copies_of(layout: Layout) -> int:
    """Holders of an element, counted before it is known which of them are the same."""
    from ..parts import product

    plain: Any = getattr(layout, "layout", layout)
    return int(product([it.extent for it in plain.replica if it.stride != 0]))


def check_copies(layout: Layout, operation: str) -> None:
    """Refuse a layout whose elements have more holders than can be listed."""
    copies = copies_of(layout)
    if copies > COPIES:
        raise LayoutError(
            operation, f"each element has up to {copies} holders, more than {COPIES}", "leave the replica out"
        )


def check_listed(layout: Layout, operation: str, most: int = LISTED) -> None:
    """Refuse a layout of more elements and copies than a command may go through."""
    total = int(layout.size()) * copies_of(layout)  # type: ignore[arg-type]  # no symbols on a command line
    if total > most:
        raise LayoutError(
            operation,
            f"it would go through {total} elements and copies, more than {most}",
            "ask about a slice of it",
        )
