"""Before and after: two layouts side by side, and what an operation did to each element."""

from __future__ import annotations

from ...errors import LayoutError, nearest
from ...functions import Shaped
from ...parts import product
from ..colors import paint
from ..model import Grid, Panel, Picture
from ..places import MAX_COLUMNS, MAX_ROWS, as_layout, drawn_shape, moving_axes
from ..wording import short, short_legend
from .logical import as_limits, check_widths, coloring_of, logical_grid, swizzle_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def before_after(
    before: Any,
    after: Any,
    shape: Sequence[int] | int | None = None,
    after_shape: Sequence[int] | int | None = None,
    *,
    operation: str = "",
    color: Any = None,
    bits: int | None = None,
    palette: str = "categories",
    title: str = "",
    max_rows: int = MAX_ROWS,
    max_columns: int = MAX_COLUMNS,
) -> Picture:
    """Two layouts side by side in one coloring; an element with other holders than before is marked.

    Args:
        before, after: layouts; elements are compared by flat index where both have as many.
        shape, after_shape: the shapes to draw them in; the second is the first where that fits.
        operation: what was done, written above the second.
        color, bits: as for `logical`.

    Post-condition: a cell of `after` is marked "changed" iff both have the same size and the element's set of owners
    differs.
    Errors: those of `logical`.

    >>> from tilelayout.draw import before_after
    >>> x = TileLayout(S[2, 2])
    >>> print(before_after(x, x.permute_dims((1, 0)), operation="permute_dims((1, 0))"))
    before and after
    position on m
    S[(2, 2):(2, 1)]    permute_dims((1, 0)): S[(2, 2):(1, 2)]
       0 1                  0  1
    0  0 1           -> 0   0 2*
    1  2 3              1  1*  3
    * another holder than before
    """
    one, two = as_layout(before, "before_after"), as_layout(after, "before_after")
    dims = drawn_shape(one, shape, "before_after")
    same = product(dims) == int(two.size())  # type: ignore[arg-type]  # plain
    dims_after = drawn_shape(
        two, dims if after_shape is None and same and shape is not None else after_shape, "before_after"
    )
    limits = as_limits(max_rows, max_columns, "before_after")
    check_widths("before_after", bits)
    coloring = coloring_of(one, color)
    first = logical_grid(one, dims, coloring, short, bits, limits)._replace(heading=str(before))
    head = f"{operation}: {after}" if operation else str(after)
    second = logical_grid(two, dims_after, coloring, short, bits, limits)._replace(heading=head)
    if same:
        second = _changed(second, one, dims_after)
    painted, legend = paint([first, second], coloring.name if coloring else "", palette)
    axes = list(dict.fromkeys([*moving_axes(one), *moving_axes(two)]))
    notes = tuple(dict.fromkeys([*swizzle_note(one, bits), *swizzle_note(two, bits)]))
    return Picture(
        title or "before and after",
        (Panel(painted[0]), Panel(painted[1], 0, 1)),
        short_legend(axes),
        notes,
        legend,
        palette,
        arrow="->",
    )


def operation(
    layout: Any, name: str, /, *arguments: Any, shape: Any = None, after_shape: Any = None, **options: Any
) -> Picture:
    """Before and after ``layout.<name>(*arguments)``, an operation that returns a layout (or one and separators).

    Options are those of `before_after`.
    Errors: LayoutError for an unknown operation, naming the nearest, for one that returns no layout, and whatever the
    operation refuses.

    >>> from tilelayout.draw import operation
    >>> operation(TileLayout(S[4, 8]), "pack", 2).panels[1].grid.size
    (4, 4)
    """
    drawn = as_layout(layout, "operation")
    method = getattr(drawn, name, None) if type(name) is str and not name.startswith("_") else None
    if not callable(method):
        known = [n for n in dir(drawn) if not n.startswith("_") and callable(getattr(type(drawn), n, None))]
        raise LayoutError("operation", f"a layout has no operation {name!r}, {nearest(str(name), known)}")
    result: Any = method(*arguments)
    after: Any = result
    if isinstance(result, Shaped):  # a division or product, with the shape to read it in
        after, after_shape = result.layout, result.shape if after_shape is None else after_shape
    elif isinstance(result, tuple):  # a grouped layout and the separators
        after = result[0]  # pyright: ignore[reportUnknownVariableType]
    said = f"{name}({', '.join(map(str, arguments))})"
    return before_after(drawn, after, shape, after_shape, operation=said, **options)


def _changed(grid: Grid, before: Any, dims: tuple[int, ...]) -> Grid:
    """The grid with the cells marked whose element had other owners before."""

    def marked(cell: Any) -> Any:
        flat = 0
        for c, n in zip(cell.elements[0], dims, strict=True):
            flat = flat * n + c
        was = {_key(place) for place in before.owners(flat)}
        return cell if was == {_key(place) for place in cell.holders} else cell._replace(marks=("changed",))

    return grid._replace(cells=tuple([tuple([marked(cell) for cell in row]) for row in grid.cells]))


def _key(place: Any) -> frozenset[Any]:
    """A place without the axes at 0, which may be left out."""
    return frozenset([(a, v) for a, v in place.items() if v != 0])
