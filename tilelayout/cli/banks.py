"""``tilelayout banks``: how accesses to a tile in shared memory collide, and which swizzle avoids it."""

from __future__ import annotations

from typing import Any

import click

from .command import Command, answer_code
from .inputs import check_copies, check_listed, layout_argument, layout_of, numbers_of, sized_shape
from .output import picture_options, write_picture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from ..analysis import Access
    from .inputs import Layout

ACCESSES: Final = ("rows", "column", "ldmatrix", "stmatrix")
TABLE: Final = 2**20
"""Elements of a tile in shared memory."""

DRAWN: Final = 2**18
"""Elements of a tile that is drawn."""

SEARCHED: Final = 2**16
"""Elements of a tile for which some hundred swizzles are tried."""

_TILE = "'S[8, 64]' --shape 8,64 --element-bits 16"


@click.command(
    "banks",
    cls=Command,
    short_help="Bank conflicts of accesses to shared memory.",
    examples=(
        (
            f"tilelayout banks {_TILE} --access ldmatrix",
            "eight rows of 16 bytes collide eightfold; exit code 1",
        ),
        (
            f"tilelayout banks {_TILE} --access ldmatrix --access rows --vector 8 --best",
            "and what would help; exit code 1",
        ),
        (
            "tilelayout banks 'Swizzle(3, 3, 3) o S[8, 64]' --shape 8,64 --element-bits 16 --access ldmatrix",
            "no conflicts",
        ),
        (
            "tilelayout banks 'S[(32, 32) : (33, 1)]' --element-bits 32 --access column --draw --width 100",
            "a padded column, drawn line by bank",
        ),
    ),
)
@layout_argument
@click.option("--shape", metavar="M,N", help="The tile's shape; default: the extents of LAYOUT.")
@click.option(
    "--element-bits",
    "--bits",
    "bits",
    type=click.IntRange(1, 128),
    required=True,
    help="Width of an element.",
)
@click.option(
    "--access", "accesses", type=click.Choice(ACCESSES), multiple=True, required=True,
    help="rows: lanes one after the other along rows; column: a lane a row; ldmatrix, stmatrix: 8 rows of 16 bytes "
    "for each --at.",
)  # fmt: skip
@click.option(
    "--vector", type=click.IntRange(1), help="Elements a lane takes at once, for rows and column; default 1."
)
@click.option(
    "--at",
    "starts",
    metavar="I,J",
    multiple=True,
    help="The first element; for matrices, each one's. Default 0,0.",
)
@click.option(
    "--lanes", type=click.IntRange(1, 32), default=32, show_default=True, help="Lanes, for rows and column."
)
@click.option(
    "--base", type=click.IntRange(0), default=0, show_default=True, help="Byte address of position 0."
)
@click.option(
    "--best", is_flag=True, help="Which swizzle or padding has the fewest rounds over all accesses?"
)
@click.option("--draw", is_flag=True, help="Draw the tile, line by bank, with the (first) access marked.")
@picture_options
def command(
    layout: str, let: tuple[str, ...], shape: str | None, bits: int, accesses: tuple[str, ...], vector: int | None,
    starts: tuple[str, ...], lanes: int, base: int, best: bool, draw: bool, svg: str | None, html: str | None,
    json: str | None, width: int | None,
) -> int:  # fmt: skip
    """Say which lanes of an access to LAYOUT wait for one another.

    Exit code: 0 where no access has a conflict, 1 where one has.
    """
    from ..analysis import bank_conflicts

    tile = layout_of(layout, let)
    check_copies(tile, "banks")
    drawing = draw or any(x is not None for x in (svg, html, json))
    check_listed(tile, "banks", SEARCHED if best else DRAWN if drawing else TABLE)
    dims = sized_shape(tile, shape, "banks") or _own_shape(tile)
    corners = [numbers_of(text, "--at", 0) for text in starts] or [(0,) * len(dims)]
    asked = [_access(name, dims, bits, vector or 1, corners, lanes) for name in accesses]
    reports = [bank_conflicts(tile, access, bits, base=base) for access in asked]
    if drawing:
        picture = tile.draw("shared", dims, bits, access=asked[0], base=base)
        write_picture(picture, svg, html, json, width)
    if "-" not in (svg, html, json):
        for report in reports[1:] if drawing and draw else reports:
            click.echo(str(report))
        if best:
            click.echo(_best(tile, dims, bits, asked))
    return answer_code(all(report.is_free for report in reports))


def _own_shape(tile: Layout) -> tuple[int, ...]:
    from ..draw.places import tile_layout

    plain = tile_layout(tile)
    return tuple([int(it[0]) for it in plain.shard]) or (1,)


def _access(
    name: str, dims: tuple[int, ...], bits: int, vector: int, corners: list[tuple[int, ...]], lanes: int
) -> Access:
    """The access that a name stands for.  Errors: LayoutError where it leaves the tile."""
    from ..analysis import Access

    if name in ("ldmatrix", "stmatrix"):
        kind: Any = name
        return Access.matrices(dims, corners, bits, kind)
    if len(corners) > 1:
        raise click.UsageError(f"--at is given {len(corners)} times; only matrices begin at several places")
    if name == "rows":
        return Access.rows(dims, vector, lanes, corners[0])
    if len(dims) != 2 or len(corners[0]) != 2:
        raise click.UsageError(f"a column is of a tile of two dimensions, and --shape is {dims}")
    row, column = corners[0]
    return Access.column(dims, column, row, vector, lanes)


def _best(tile: Layout, dims: tuple[int, ...], bits: int, asked: list[Access]) -> str:
    """The table of candidates: for this layout without its swizzle, paddings where it is row-major."""
    from ..analysis import best_staging
    from ..draw.places import tile_layout
    from ..layout import TileLayout
    from ..spec import S

    plain = tile_layout(tile)
    row_major = plain.equivalent(TileLayout(S[dims]))
    return str(best_staging(dims, bits, asked, layout=None if row_major else plain))
