"""``tilelayout show``: a layout as a picture."""

from __future__ import annotations

from typing import Any

import click

from .command import Command
from .inputs import (
    bits_option,
    check_copies,
    check_listed,
    copies_of,
    layout_argument,
    layout_of,
    shape_option,
)
from .inputs import sized_shape as shape_of
from .output import picture_options, write_picture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from .inputs import Layout

VIEWS: Final = ("logical", "hardware", "shared", "bits", "iters")

HOLDERS: Final = 2**18
"""Holders that a logical picture may list in all."""

TABLE: Final = 2**18
"""Elements of a tile in shared memory, which has 228 KiB on the largest machines."""


@click.command(
    "show",
    cls=Command,
    short_help="A layout as a picture: text, SVG or HTML.",
    examples=(
        (
            "tilelayout show 'S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]' --shape 16,8",
            "who holds each element of the accumulator of mma.m16n8",
        ),
        (
            "tilelayout show 'S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]' --shape 16,8 --view hardware",
            "lanes by registers: which element is where",
        ),
        (
            "tilelayout show 'Swizzle(3, 3, 3) o S[8, 64]' --shape 8,64 --view shared --element-bits 16 --svg -",
            "a swizzled tile, line by bank, as SVG on standard output",
        ),
        ("tilelayout show 'S[(8, n) : (n, 1)]' --let n=16 --view iters", "the layout's own table"),
    ),
)
@layout_argument
@shape_option
@click.option(
    "--view",
    type=click.Choice(VIEWS),
    default="logical",
    show_default=True,
    help="Elements with holders; places with elements; lines by banks; the matrix over F2; the iters.",
)
@bits_option
@click.option("--color-by", metavar="AXIS", help="Color by this axis; 'none' for no color.")
@click.option(
    "--rows", type=click.IntRange(1, 4096), default=64, show_default=True, help="Show at most so many rows."
)
@click.option(
    "--columns",
    type=click.IntRange(1, 4096),
    default=64,
    show_default=True,
    help="Show at most so many columns.",
)
@picture_options
def command(
    layout: str, let: tuple[str, ...], shape: str | None, view: str, bits: int | None, color_by: str | None,
    rows: int, columns: int, svg: str | None, html: str | None, json: str | None, width: int | None,
) -> None:  # fmt: skip
    """Draw LAYOUT.

    In a terminal it is colored text (NO_COLOR and the width are honored), in a pipe plain text.  What is larger than
    --rows by --columns is cropped, and the picture says so.
    """
    drawn = layout_of(layout, let)
    dims = shape_of(drawn, shape, "show")
    check_copies(drawn, "show")
    options: dict[str, Any] = {}
    if view in ("logical", "hardware"):
        options = {"bits": bits, "max_rows": rows, "max_columns": columns}
        if color_by is not None:
            options["color"] = False if color_by == "none" else color_by
    elif view == "shared":
        options = {"bits": 16 if bits is None else bits, "max_rows": rows}
        check_listed(drawn, "show", TABLE)
    if view == "logical":
        _check_logical(drawn, rows * columns)
    if view == "hardware":
        _check_hardware(drawn)
    arguments = () if view == "iters" else (dims,)
    write_picture(drawn.draw(view, *arguments, **options), svg, html, json, width)


def _check_logical(drawn: Layout, cells: int) -> None:
    """Refuse a picture whose cells together have too many holders."""
    shown = min(int(drawn.size()), cells)  # type: ignore[arg-type]  # no symbols on a command line
    if shown * copies_of(drawn) > HOLDERS:
        raise click.UsageError(
            f"{shown} cells with up to {copies_of(drawn)} holders each are too many: fewer --rows and --columns, "
            "or --view iters"
        )


def _check_hardware(drawn: Layout) -> None:
    """Refuse a large layout that puts several elements in one place: nobody knows how many."""
    from ..draw.places import LISTED

    if int(drawn.size()) * copies_of(drawn) > LISTED and not drawn.is_injective():  # type: ignore[arg-type]
        raise click.UsageError(
            f"{drawn.size()} elements of which several share a place: show a slice, or --view iters"
        )
