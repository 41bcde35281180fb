"""The logical view: the tensor as the program sees it, each cell an element with everyone who holds it."""

from __future__ import annotations

from typing import NamedTuple

from ...axis import axis as known_axis
from ...errors import LayoutError
from ..colors import paint
from ..model import Cell, Grid, Panel, Picture
from ..places import (
    MAX_COLUMNS,
    MAX_ROWS,
    as_layout,
    drawn_shape,
    moving_axes,
    rows_and_columns,
    tile_layout,
    unflattened,
)
from ..wording import axis_order, element_title, short, short_legend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from typing import Any, Final

    from ...axis import Axis
    from ..places import Layout

    Place = Mapping[Any, int]
    KeyOf = Callable[[tuple[int, ...], tuple[Place, ...]], Hashable]


class Coloring(NamedTuple):
    """What a color stands for: its name, and the key of an element from its coordinate and holders."""

    name: str
    key: KeyOf


VECTOR: Final = 8
"""Positions on `m` that share a color where nothing else is asked for: 16 bytes of 16-bit elements."""

WRITTEN: Final = 8
"""Holders that a cell writes; of more it gives the number, and the hover lists them."""


def logical(
    layout: Any,
    shape: Sequence[int] | int | None = None,
    *,
    color: Any = None,
    label: Callable[[Place], str] = short,
    bits: int | None = None,
    palette: str = "categories",
    title: str | None = None,
    heading: str = "",
    max_rows: int = MAX_ROWS,
    max_columns: int = MAX_COLUMNS,
) -> Picture:
    """Each element of the tensor and who holds it; every holder, where there are several.

    Args:
        layout: a `TileLayout` or `SwizzledLayout` without symbols.
        shape: the tensor's; its last dimension runs along the columns, the others together down the rows.  Left out,
            it is as near to square as a cut between the layout's iters allows.
        color: an axis, a function of (coordinate, holders) to an integer or a word, or False for none.  By default the
            innermost thread axis, or runs of 8 positions on `m`.
        label: how a cell writes a holder.
        bits: width of an element; with it the hover says bytes, and registers or banks.
        palette: "categories" or "ramp".
        max_rows, max_columns: how much is shown of a larger tensor; the picture says so.

    Post-condition: every cell's `holders` are ``layout.owners(*coordinate, shape=shape)``.
    Errors: LayoutError for symbols, and for a shape of another size.

    >>> from tilelayout.draw import logical
    >>> D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    >>> picture = logical(D, (16, 8), bits=32)
    >>> picture.grid.cells[9][5].lines
    ('T6:3',)
    >>> print(picture.grid.cells[9][5].title)
    element (9, 5) of 32 bits
    lane 6, slot 3 (register 3, bits 0-31; bytes 12-15)
    """
    drawn = as_layout(layout, "logical")
    coloring = coloring_of(drawn, color)
    dims = drawn_shape(drawn, shape, "logical")
    limits = as_limits(max_rows, max_columns, "logical")
    check_widths("logical", bits)
    grid = logical_grid(drawn, dims, coloring, label, bits, limits)._replace(heading=heading)
    grids, legend = paint([grid], coloring.name if coloring else "", palette)
    size = " x ".join(map(str, dims))
    meaning = short_legend(moving_axes(drawn)) if label is short else ""
    return Picture(
        str(layout) if title is None else title,
        (Panel(grids[0]),),
        f"{size} elements, each with its holders" + (f" ({meaning})" if meaning else ""),
        swizzle_note(drawn, bits),
        legend,
        palette,
    )


def logical_grid(
    layout: Layout,
    dims: tuple[int, ...],
    coloring: Coloring | None,
    label: Callable[[Place], str],
    bits: int | None,
    limits: tuple[int, int],
) -> Grid:
    """The cells of the logical view, not painted yet."""
    rows, columns = rows_and_columns(dims)
    shared = not any(known_axis(a).kind == "thread" for a in moving_axes(layout))
    cells = [
        tuple(
            [
                element_cell(layout, dims, r * columns + c, coloring, label, bits, shared)
                for c in range(min(columns, limits[1]))
            ]
        )
        for r in range(min(rows, limits[0]))
    ]
    outer = dims[:-1] if len(dims) > 1 else (1,)
    names = [f"d{k}" for k in range(len(dims))]
    return Grid(
        tuple(cells),
        tuple([", ".join(map(str, unflattened(r, outer))) for r in range(len(cells))]),
        tuple([str(c) for c in range(min(columns, limits[1]))]),
        "" if len(dims) == 2 else ", ".join(names[:-1]),
        "" if len(dims) == 2 else names[-1],
        size=(rows, columns),
    )


def element_cell(
    layout: Layout,
    dims: tuple[int, ...],
    flat: int,
    coloring: Coloring | None,
    label: Callable[[Place], str],
    bits: int | None,
    shared: bool,
) -> Cell:
    """The cell of one element."""
    where = unflattened(flat, dims)
    places: tuple[Place, ...] = layout.owners(flat)
    lines = [label(place) for place in places[:WRITTEN]]
    if len(places) > WRITTEN:
        lines.append(f"{len(places) - WRITTEN} more")
    return Cell(
        tuple(lines),
        element_title(where, places, bits, shared),
        (where,),
        places,
        coloring.key(where, places) if coloring else None,
    )


def coloring_of(layout: Layout, color: Any) -> Coloring | None:
    """What the caller's `color` means.  Errors: LayoutError for what is neither axis nor function nor False."""
    if color is False:
        return None
    if color is None:
        threads = sorted([a for a in moving_axes(layout) if a.kind != "memory"], key=axis_order)
        if threads:
            return coloring_of(layout, threads[-1])
        if len(moving_axes(layout)) > 1:
            return coloring_of(layout, moving_axes(layout)[0])
        return _along(known_axis("m"), VECTOR)
    if isinstance(color, str):
        return _along(known_axis(color))
    if not callable(color):
        raise LayoutError(
            "draw", f"color must be an axis, a function or False, got {color!r}", "color='laneid'"
        )
    return Coloring(getattr(color, "__name__", "color").replace("<lambda>", "color"), color)


def _along(axis: Axis, run: int = 1) -> Coloring:
    """Colors by the coordinate of the first holder on an axis, in runs of that many."""

    def key(_: tuple[int, ...], places: tuple[Place, ...]) -> int:
        return places[0].get(axis, 0) // run

    return Coloring(str(axis) if run == 1 else f"{axis} // {run}", key)


def as_limits(rows: Any, columns: Any, operation: str) -> tuple[int, int]:
    """The crop limits as numbers of at least 1."""
    for name, n in (("max_rows", rows), ("max_columns", columns)):
        if type(n) is not int or n < 1:
            raise LayoutError(operation, f"{name} must be an integer of at least 1, got {n!r}")
    return rows, columns


def check_widths(operation: str, *widths: Any) -> None:
    """Refuse what is no width of an element in bits; None leaves it open."""
    for n in widths:
        if n is not None and (type(n) is not int or n < 1):
            raise LayoutError(
                operation, f"bits, the width of an element, must be an integer of at least 1, got {n!r}"
            )


def swizzle_note(layout: Layout, bits: int | None) -> tuple[str, ...]:
    """A note on the units of a swizzle, whose parameters count elements."""
    if tile_layout(layout) is layout:
        return ()
    swizzle: Any = layout.swizzle  # type: ignore[union-attr]
    if bits is None:
        return (f"{swizzle} counts elements",)
    try:
        in_bytes = swizzle.in_units(bits, 8)
    except LayoutError:
        return (f"{swizzle} counts elements of {bits} bits",)
    return (f"{swizzle} counts elements of {bits} bits; on bytes it is {in_bytes}",)
