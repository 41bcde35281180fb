"""The hardware view: places in rows and columns, lanes by registers as a rule, each cell with the elements there."""

from __future__ import annotations

from ...axis import axis as known_axis
from ...errors import LayoutError
from ...parts import as_integer
from ..colors import paint
from ..model import Cell, Grid, Panel, Picture
from ..places import MAX_COLUMNS, MAX_ROWS, Inverse, as_layout, drawn_shape, moving_axes, unflattened
from ..wording import LETTERS, axis_order, coordinate, place_text, told
from .logical import as_limits, check_widths, coloring_of, swizzle_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    from ...axis import Axis
    from .logical import Coloring

    Place = dict[Axis, int]

WRAP: Final = 32
"""Places of one axis in a row, where there is no second axis."""

WRITTEN: Final = 4
"""Elements that a cell writes; of more it gives the number, and the hover lists them."""

MAX_PANELS: Final = 8
"""Grids that are drawn, one for each coordinate on the axes that are neither rows nor columns."""


def hardware(
    layout: Any,
    shape: Sequence[int] | int | None = None,
    *,
    rows: Any = None,
    columns: Any = None,
    at: Mapping[Any, Any] | None = None,
    color: Any = None,
    bits: int | None = None,
    palette: str = "categories",
    title: str | None = None,
    max_rows: int = MAX_ROWS,
    max_columns: int = MAX_COLUMNS,
) -> Picture:
    """Places in rows and columns, each with the elements that it holds: the layout read backwards.

    Args:
        layout, shape, color, bits, palette: as for `logical`; the color is that of the first element of a cell.
        rows, columns: an axis or several (the last of them runs fastest).  By default the thread and device axes make
            the rows and the memory axes the columns; where there are axes of one kind only, the innermost makes the
            columns, and a single axis is folded into rows of 32.
        at: axis -> coordinate, for axes that are held fast.  For each coordinate on what is left there is a panel.

    Post-condition: a cell's `elements` are exactly those with an owner at its coordinates.
    Errors: LayoutError for an axis that is in rows and columns both, and where an axis spans more than can be listed.

    >>> from tilelayout.draw import hardware
    >>> D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    >>> hardware(D, (16, 8)).grid.cells[6][3].elements
    ((9, 5),)
    """
    drawn = as_layout(layout, "hardware")
    dims = drawn_shape(drawn, shape, "hardware")
    limits = as_limits(max_rows, max_columns, "hardware")
    check_widths("hardware", bits)
    fixed = {
        known_axis(a): int(as_integer(v, "hardware", f"coordinate on {a}")) for a, v in (at or {}).items()
    }
    down, across = _sides(moving_axes(drawn), rows, columns, fixed)
    rest = sorted([a for a in moving_axes(drawn) if a not in (*down, *across, *fixed)], key=axis_order)
    axes = [*down, *across, *rest, *fixed]
    inverse = Inverse(drawn, axes)
    ranges = dict(zip(axes, inverse.ranges(), strict=True))
    coloring = coloring_of(drawn, color)
    grids: list[Grid] = []
    choices = _count([ranges[a] for a in rest])
    for chosen in _first_places(rest, ranges, MAX_PANELS):
        held = {**chosen, **fixed}
        heading = ", ".join([f"{a} {v}" for a, v in held.items()])
        grid = _grid(inverse, dims, down, across, ranges, held, coloring, bits, limits)
        grids.append(grid._replace(heading=heading))
    painted, legend = paint(grids, coloring.name if coloring else "", palette)
    notes = swizzle_note(drawn, bits)
    if choices > len(grids):
        notes = (*notes, f"cropped: the first {len(grids)} of {choices} panels")
    return Picture(
        str(layout) if title is None else title,
        tuple([Panel(grid, i) for i, grid in enumerate(painted)]),
        f"each place with its element of ({coordinate(dims)})",
        notes,
        legend,
        palette,
    )


def _sides(
    moving: list[Axis], rows: Any, columns: Any, fixed: Mapping[Axis, int]
) -> tuple[list[Axis], list[Axis]]:
    """The axes of the rows and of the columns, outermost first."""
    free = sorted([a for a in moving if a not in fixed], key=axis_order)
    across = _axes(columns)
    down = _axes(rows)
    if down is None:
        down = [a for a in free if a.kind != "memory" and a not in (across or ())]
    if across is None:
        across = [a for a in free if a.kind == "memory" and a not in down]
    both = [a for a in down if a in across or a in fixed] + [a for a in across if a in fixed]
    if both:
        raise LayoutError("hardware", f"axis {both[0]} is given twice among rows, columns and at")
    if not down and not across:
        across = [known_axis("m")]
    if not down and len(across) > 1:
        down, across = across[:-1], across[-1:]
    if not across and columns is None and len(down) > 1:
        down, across = down[:-1], down[-1:]
    return down, across


def _axes(given: Any) -> list[Axis] | None:
    if given is None:
        return None
    names = [given] if isinstance(given, str) else list(given)
    return [known_axis(name) for name in names]


def _grid(
    inverse: Inverse,
    dims: tuple[int, ...],
    down: list[Axis],
    across: list[Axis],
    ranges: Mapping[Axis, tuple[int, int]],
    held: Mapping[Axis, int],
    coloring: Coloring | None,
    bits: int | None,
    limits: tuple[int, int],
) -> Grid:
    if down and across:
        size = _count([ranges[a] for a in down]), _count([ranges[a] for a in across])
        rows, columns = _first_places(down, ranges, limits[0]), _first_places(across, ranges, limits[1])
        row_labels, column_labels = [_label(p) for p in rows], [_label(p) for p in columns]
        titles = " ".join(down), " ".join(across)
        pairs = [[{**r, **c} for c in columns] for r in rows]
    else:
        pairs, size, row_labels, column_labels = _folded(down or across, ranges, limits)
        titles = " ".join(down or across), ""
    cells = [
        tuple([_cell(inverse, dims, {**place, **held}, coloring, bits) for place in row]) for row in pairs
    ]
    return Grid(
        tuple(cells), tuple(row_labels), tuple(column_labels), titles[0], titles[1], size=size, join=" | "
    )


def _folded(
    axes: list[Axis], ranges: Mapping[Axis, tuple[int, int]], limits: tuple[int, int]
) -> tuple[list[list[Place]], tuple[int, int], list[str], list[str]]:
    """One side only: rows of `WRAP` places one after the other; the labels of a row and a column add up."""
    total = _count([ranges[a] for a in axes])
    width = min(WRAP, total)
    places = _first_places(axes, ranges, limits[0] * WRAP)
    rows = [places[i : i + width] for i in range(0, len(places), width)]
    size = -(-total // width), width
    shown = min(width, limits[1])
    return (
        [row[:shown] for row in rows],
        size,
        [_label(row[0]) for row in rows],
        [f"+{c}" for c in range(shown)],
    )


def _first_places(
    axes: Sequence[Axis], ranges: Mapping[Axis, tuple[int, int]], most: int
) -> list[dict[Axis, int]]:
    """The first places of the axes, the last of them fastest; the ranges may be longer than any list."""
    places: list[dict[Axis, int]] = []
    for index in range(min(most, _count([ranges[a] for a in axes]))):
        place: dict[Axis, int] = {}
        for a in reversed(axes):
            low, high = ranges[a]
            index, digit = divmod(index, high - low + 1)
            place[a] = low + digit
        places.append({a: place[a] for a in axes})
    return places


def _count(ranges: Sequence[tuple[int, int]]) -> int:
    count = 1
    for low, high in ranges:
        count *= high - low + 1
    return count


def _label(place: Place) -> str:
    if len(place) == 1:
        return str(next(iter(place.values())))
    return " ".join([f"{LETTERS.get(a, a)}{v}" for a, v in place.items()])


def _cell(
    inverse: Inverse, dims: tuple[int, ...], place: Place, coloring: Coloring | None, bits: int | None
) -> Cell:
    there = inverse.elements(tuple([place[a] for a in inverse.axes]))
    where = place_text(place, bits, shared=all(a.kind == "memory" for a in place))
    if not there:
        return Cell((), f"{where}\nno element", holders=(place,))
    elements = tuple([unflattened(flat, dims) for flat in there])
    lines = [coordinate(e).replace(" ", "") for e in elements[:WRITTEN]]
    if len(elements) > WRITTEN:
        lines.append(f"{len(elements) - WRITTEN} more")
    listed = told("elements", [f"element ({coordinate(e)})" for e in elements])
    key = coloring.key(elements[0], (place,)) if coloring else None
    return Cell(tuple(lines), "\n".join([where, *listed]), elements, (place,), key)
