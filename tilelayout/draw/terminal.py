"""Pictures for a terminal: colored text, by plain escape codes or through rich where it is installed."""

from __future__ import annotations

import os
import sys

from ..errors import LayoutError, nearest
from .colors import fill_of, ink
from .text import NARROWEST, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

    from .model import Cell, Picture

LEVELS: Final = ("256", "truecolor")
_STEPS: Final = (0, 95, 135, 175, 215, 255)
"""Levels of a channel in the 6 x 6 x 6 cube of the 256 colors."""


def ansi(
    picture: Picture, width: int | None = None, color: str | bool | None = None, stream: Any = None
) -> str:
    r"""See `Picture.ansi`.

    >>> from tilelayout.draw import logical
    >>> "\x1b[" in logical(TileLayout(S[2, 2])).ansi(color=False)
    False

    Errors: LayoutError for an unknown kind of color.
    """
    where = sys.stdout if stream is None else stream
    level = color_of(where) if color is None else "truecolor" if color is True else color
    if width is None:
        width = width_of_stream(where)
    if level is False:
        return text(picture, width)
    if level not in LEVELS:
        raise LayoutError("ansi", f"unknown kind of color {color!r}, {nearest(str(color), list(LEVELS))}")

    def paint(cell: Cell, shown: str) -> str:
        if cell.color is None:
            return shown
        fill = fill_of(picture.palette, cell.color)
        return f"\x1b[{_code(38, ink(fill), level)};{_code(48, fill, level)}m{shown}\x1b[0m"

    return text(picture, width, paint)


def color_of(stream: Any) -> str | bool:
    """The kind of color that a stream takes: none where it is no terminal, by NO_COLOR or by TERM=dumb.

    NO_COLOR counts when it is not empty (no-color.org).
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not _is_terminal(stream):
        return False
    return "truecolor" if os.environ.get("COLORTERM") in ("truecolor", "24bit") else "256"


def width_of_stream(stream: Any) -> int | None:
    """Columns: COLUMNS where it is set, a terminal's own width, and none for what is no terminal."""
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named) > 0:
        return max(NARROWEST, int(named))
    if not _is_terminal(stream):
        return None
    try:
        return max(NARROWEST, os.get_terminal_size(stream.fileno()).columns or 80)
    except (OSError, ValueError, AttributeError):
        return 80


def _is_terminal(stream: Any) -> bool:
    isatty = getattr(stream, "isatty", None)
    return bool(isatty is not None and isatty())


def _code(kind: int, color: str, level: str) -> str:
    channels = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    if level == "truecolor":
        return f"{kind};2;{channels[0]};{channels[1]};{channels[2]}"
    r, g, b = [min(range(6), key=lambda k: abs(_STEPS[k] - c)) for c in channels]
    return f"{kind};5;{16 + 36 * r + 6 * g + b}"


def write(picture: Picture, stream: Any = None) -> None:
    """See `Picture.print`."""
    where = sys.stdout if stream is None else stream
    if _is_terminal(where):
        try:
            from rich.console import Console
        except ImportError:
            pass
        else:
            Console(file=where).print(picture)
            return
    where.write(ansi(picture, stream=where) + "\n")


def rich_lines(picture: Picture, console: Any, options: Any) -> Iterator[Any]:
    """What rich prints: it reduces the colors to what its console takes, none where NO_COLOR is set."""
    from rich.text import Text

    del console
    for line in ansi(picture, max(NARROWEST, options.max_width), "truecolor").split("\n"):
        shown = Text.from_ansi(line)
        shown.no_wrap, shown.overflow = True, "crop"
        yield shown
