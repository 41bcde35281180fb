"""``tilelayout explore``: one HTML page in which a layout can be read, edited and taken through operations."""

from __future__ import annotations

import click

from ..errors import LayoutError
from .command import Command
from .inputs import (
    bits_option,
    check_copies,
    layout_argument,
    layout_of,
    numbers_of,
    shape_option,
    sized_shape,
)
from .output import write_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

VIEWS: Final = ("both", "logical", "hardware", "banks")


@click.command(
    "explore",
    cls=Command,
    short_help="A page that explores a layout: one HTML file, no server.",
    examples=(
        (
            "tilelayout explore 'S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]' --shape 16,8 -o page.html",
            "a page for a browser",
        ),
        (
            "tilelayout explore 'S[8, 16]' --shape 8,16 --step 'tile_to 16,16 8,16' --step 'pack 2' -o page.html",
            "with operations to step through",
        ),
    ),
)
@layout_argument
@shape_option
@bits_option
@click.option(
    "--view", type=click.Choice(VIEWS), default="both", show_default=True, help="What is shown first."
)
@click.option(
    "--step",
    "steps",
    multiple=True,
    metavar="'NAME ARGUMENT...'",
    help="An operation, e.g. 'tile_to 16,16 8,16'.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    required=True,
    metavar="FILE",
    help="The page ('-': standard output).",
)
def command(
    layout: str, let: tuple[str, ...], shape: str | None, bits: int | None, view: str, steps: tuple[str, ...],
    output: str,
) -> None:  # fmt: skip
    """Write a page that shows LAYOUT, evaluates what is typed into it, and needs neither server nor network."""
    from ..explore import explore

    explored = layout_of(layout, let)
    check_copies(explored, "explore")
    dims = sized_shape(explored, shape, "explore")
    page = explore(explored, dims, bits=bits or 16, view=view, steps=[_step(text) for text in steps])
    write_text(output, page.html())


def _step(text: str) -> tuple[Any, ...]:
    """``tile_to 16,16 8,16`` as the operation's name and its arguments: numbers, and tuples of numbers.

    >>> _step("tile_to 16,16 8,16"), _step("pack 2")
    (('tile_to', (16, 16), (8, 16)), ('pack', 2))
    """
    words = text.split()
    if not words:
        raise LayoutError("explore", "an empty step", "--step 'NAME ARGUMENT...'")
    read = [(numbers_of(word, "--step"), "," in word) for word in words[1:]]
    return (words[0], *[numbers if listed else numbers[0] for numbers, listed in read])
