"""Layouts as plain text."""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import as_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..layout import TileLayout

MAX_ROWS, MAX_COLUMNS = 32, 32


def lane_and_register(place: Mapping[Any, int]) -> str:
    """How a cell shows one holder: ``T5:3`` for lane 5, slot 3; ``W1T5:3`` where a warp is named."""
    warp = place.get("warpid", place.get("wid_in_wg"))
    return ("" if warp is None else f"W{warp}") + f"T{place.get('laneid', 0)}:{place.get('m', 0)}"


def holders_grid(
    layout: TileLayout,
    shape: Sequence[Any],
    cell: Callable[[Mapping[Any, int]], str] = lane_and_register,
) -> str:
    """A two-dimensional tile as a grid, each cell showing who holds the element.

    Every holder is shown when there are several, joined by "+".  A tile of more than 32 rows or columns is cropped, and
    the last line says what was left out.

    >>> from tilelayout import S, TileLayout, laneid
    >>> print(holders_grid(TileLayout(S[(2, 2) : (1 @ laneid, 1)]), (2, 2)))
          0    1
    0  T0:0 T0:1
    1  T1:0 T1:1

    Errors: LayoutError for a shape that is not two-dimensional or not of the layout's size.
    """
    dims = as_shape(shape, "holders_grid")
    if len(dims) != 2 or any(type(n) is not int for n in dims):
        raise LayoutError("holders_grid", f"a shape of two numbers is needed, got {tuple(dims)}")
    rows, columns = min(int(dims[0]), MAX_ROWS), min(int(dims[1]), MAX_COLUMNS)
    cells = [
        ["+".join(cell(place) for place in layout.owners(r, c, shape=dims)) for c in range(columns)]
        for r in range(rows)
    ]
    width = max(len(text) for row in cells for text in row)
    margin = len(str(rows - 1))
    lines = [" " * (margin + 2) + " ".join(f"{c:>{width}}" for c in range(columns))]
    lines += [
        f"{r:>{margin}}  " + " ".join(f"{text:>{width}}" for text in row) for r, row in enumerate(cells)
    ]
    if (rows, columns) != tuple(dims):
        lines.append(f"(rows 0 to {rows - 1} and columns 0 to {columns - 1} of {dims[0]} x {dims[1]})")
    return "\n".join(lines)
