"""Several tensors one below the other in one picture, with one meaning of the colors: what belongs together."""

from __future__ import annotations

from ...errors import LayoutError
from ..colors import paint
from ..model import Grid, Panel, Picture
from ..places import MAX_COLUMNS, MAX_ROWS, as_layout, drawn_shape, moving_axes
from ..wording import short, short_legend
from .logical import as_limits, check_widths, coloring_of, logical_grid, swizzle_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Place = Mapping[Any, int]


def beside(
    tensors: Mapping[str, tuple[Any, Any, int | None]],
    *,
    color: Any = None,
    label: Callable[[Place], str] = short,
    palette: str = "categories",
    title: str | None = None,
    max_rows: int = MAX_ROWS,
    max_columns: int = MAX_COLUMNS,
) -> Picture:
    """The logical view of each tensor, a panel each, in the mapping's order.

    Args:
        tensors: name -> (layout, shape, width of an element in bits or None); shapes as for `logical`.
        color, label, palette: as for `logical`, the same for all; by default the color is the first layout's.
        max_rows, max_columns: how much is shown of each.

    Post-condition: the cells of a panel are those of ``logical(layout, shape, bits=bits)``.
    Errors: LayoutError without a tensor, and as `logical`.

    >>> from tilelayout.draw import beside
    >>> D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    >>> picture = beside({"D": (D, (16, 8), 32), "A": (D, (16, 8), 32)})
    >>> [(panel.grid.heading, panel.row) for panel in picture.panels]
    [('D: 16 x 8', 0), ('A: 16 x 8', 1)]
    """
    if not tensors:
        raise LayoutError("beside", "at least one tensor is needed")
    limits = as_limits(max_rows, max_columns, "beside")
    check_widths("beside", *[bits for _, _, bits in tensors.values()])
    drawn = {name: as_layout(layout, "beside") for name, (layout, _, _) in tensors.items()}
    coloring = coloring_of(next(iter(drawn.values())), color)
    grids: list[Grid] = []
    for name, (_, shape, bits) in tensors.items():
        dims = drawn_shape(drawn[name], shape, f"beside, {name}")
        grid = logical_grid(drawn[name], dims, coloring, label, bits, limits)
        grids.append(grid._replace(heading=f"{name}: {' x '.join(map(str, dims))}"))
    painted, legend = paint(grids, coloring.name if coloring else "", palette)
    axes = dict.fromkeys(axis for layout in drawn.values() for axis in moving_axes(layout))
    meaning = short_legend(list(axes)) if label is short else ""
    notes = [note for name, (_, _, bits) in tensors.items() for note in swizzle_note(drawn[name], bits)]
    return Picture(
        ", ".join(tensors) if title is None else title,
        tuple([Panel(grid, row) for row, grid in enumerate(painted)]),
        "each element with its holders" + (f" ({meaning})" if meaning else ""),
        tuple(dict.fromkeys(notes)),
        legend,
        palette,
    )
