"""Writing: pictures in the forms that were asked for, tables of text, JSON.  Nothing is written but what was named."""

from __future__ import annotations

import sys
from typing import Any

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Final

    from ..draw import Picture

LINES: Final = 256
"""Lines of a list that are written; of more it says how many there are."""

FORMS: Final = ("svg", "html", "json")

PROMISES: Final = (
    ".svg", ".html", ".htm", ".json", ".txt", ".ansi", ".csv", ".md", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp",
    ".tif", ".tiff", ".pdf", ".ps", ".eps",
)  # fmt: skip
"""Suffixes that say what is in a file."""


def picture_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options --svg, --html, --json and --width, for a command that draws."""
    for form in reversed(FORMS):
        what = "data" if form == "json" else "picture"
        function = click.option(
            f"--{form}", type=click.Path(dir_okay=False), metavar="FILE",
            help=f"Write the {what} as {form.upper()} ('-': to standard output).",
        )(function)  # fmt: skip
    return click.option(
        "--width",
        type=click.IntRange(8, 10_000),
        metavar="COLUMNS",
        help="Width of the text; default: the terminal's.",
    )(function)


def write_picture(
    picture: Picture, svg: str | None, html: str | None, json: str | None, width: int | None
) -> None:
    """The picture in the forms that were asked for; as text, colored in a terminal, where none was.

    Errors: UsageError for a name that promises another kind of file, before anything is written; OSError for a file
    that can't be written.
    """
    texts: dict[str, Callable[[], str]] = {
        "svg": picture.svg,
        "html": lambda: picture.html(document=True),
        "json": lambda: as_json(picture.data()),
    }
    named = {form: path for form, path in zip(FORMS, (svg, html, json), strict=True) if path is not None}
    for form, path in named.items():
        _check_suffix(form, path)
    for form, path in named.items():
        write_text(path, texts[form]())
    if named:
        return
    if width is None:
        picture.print()
    else:
        click.echo(picture.ansi(width=width))


def _check_suffix(form: str, path: str) -> None:
    """Refuse a name that promises another kind of file."""
    from pathlib import PurePath

    own = (".html", ".htm") if form == "html" else (f".{form}",)
    suffix = PurePath(path).suffix.lower()
    if suffix in PROMISES and suffix not in own:
        remedy = f"name it {PurePath(path).with_suffix(own[0])}"
        raise click.UsageError(
            f"--{form} writes {form.upper()}, and {path} is the name of a {suffix} file: {remedy}"
        )


def write_text(path: str, text: str) -> None:
    """Write a text to a file, ``-`` being standard output; with one line break at its end."""
    text = text.rstrip("\n") + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        with click.open_file(path, "w", encoding="utf-8", atomic=False) as file:
            file.write(text)


def as_json(value: Any) -> str:
    """JSON on one line, with the names of axes as plain text."""
    import json

    return json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    if hasattr(value, "items"):
        return {str(k): _plain(v) for k, v in value.items()}
    if value.__class__ in (list, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, (int, float, bool)) or value is None:
        return value
    return str(value)


def echo_rows(rows: Sequence[Sequence[str]], more: int = 0) -> None:
    """Rows of cells in aligned columns, and how many more there are."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))] if rows else []
    for row in rows:
        click.echo("  ".join([cell.ljust(w) for cell, w in zip(row, widths, strict=True)]).rstrip())
    if more:
        click.echo(f"and {more} more (--json gives all)")


def place_code(place: Mapping[Any, Any]) -> str:
    """A place as ``--where`` takes it: ``laneid=20,m=5``.

    >>> place_code({"m": 5, "laneid": 20})
    'laneid=20,m=5'
    """
    from ..draw.wording import axis_order

    return ",".join([f"{axis}={place[axis]}" for axis in sorted(place, key=axis_order)]) or "m=0"
