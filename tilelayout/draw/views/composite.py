"""The figure of a gemm: B at the top right, A at the bottom left, and C between them."""

from __future__ import annotations

from ...errors import LayoutError
from ..colors import paint
from ..model import Cell, Grid, Panel, Picture
from ..places import MAX_COLUMNS, MAX_ROWS, as_layout, drawn_shape, moving_axes
from ..wording import short, short_legend
from .logical import as_limits, check_widths, coloring_of, logical_grid, swizzle_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Place = Mapping[Any, int]


def gemm(
    A: Any,
    B: Any,
    C: Any,
    shape: Sequence[int],
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    at: tuple[int, int] | None = None,
    bits: tuple[int | None, int | None, int | None] = (None, None, None),
    names: tuple[str, str, str] = ("A", "B", "C"),
    color: Any = None,
    label: Callable[[Place], str] = short,
    palette: str = "categories",
    title: str = "",
    max_rows: int = MAX_ROWS,
    max_columns: int = MAX_COLUMNS,
) -> Picture:
    """The operands of ``C[m, n] = sum over k of A[m, k] * B[k, n]`` where they meet, each cell with its holders.

    Args:
        A, B, C: layouts of the operands.
        shape: (M, N, K).
        transpose_a, transpose_b: whether A's layout is that of a (K, M) tensor, and B's of (N, K); they are drawn as
            (M, K) and (K, N) all the same.
        at: an element (m, n) of C, to be marked with the row of A and the column of B that make it.
        bits: widths of the elements of A, B and C.
        names: what the operands are called.
        color: as for `logical`, the same for all three.

    Post-condition: the cells of A are ``A.owners(m, k)`` (``A.owners(k, m)`` where it is transposed), and so on.
    Errors: LayoutError for layouts that don't have these shapes.

    >>> from tilelayout.draw import gemm
    >>> D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    >>> B = TileLayout(S[(4, 2, 8) : (1 @ laneid, 1, 4 @ laneid)])
    >>> picture = gemm(D, B, D, (16, 8, 8), at=(9, 5))
    >>> [(panel.grid.heading, panel.row, panel.column) for panel in picture.panels]
    [('B: 8 x 8, columns are N', 0, 1), ('A: 16 x 8, columns are K', 1, 0), ('C: 16 x 8, columns are N', 1, 1)]
    """
    M, N, K = _extents(shape)
    limits = as_limits(max_rows, max_columns, "gemm")
    check_widths("gemm", *bits)
    operands = (
        (B, (K, N), transpose_b, 1, 0, 1, "N"),
        (A, (M, K), transpose_a, 0, 1, 0, "K"),
        (C, (M, N), False, 2, 1, 1, "N"),
    )
    coloring = coloring_of(as_layout(C, "gemm"), color)
    grids: list[Grid] = []
    panels: list[tuple[int, int]] = []
    for layout, dims, turned, which, row, column, across in operands:
        drawn = as_layout(layout, "gemm")
        held = drawn_shape(drawn, dims[::-1] if turned else dims, f"gemm, operand {names[which]}")
        grid = logical_grid(
            drawn, held, coloring, label, bits[which], (limits[1], limits[0]) if turned else limits
        )
        grid = _transposed(grid) if turned else grid
        heading = f"{names[which]}: {dims[0]} x {dims[1]}, columns are {across}"
        if turned:
            heading += ", held transposed"
        grids.append(_marked(grid._replace(heading=heading), which, at, (M, N), turned))
        panels.append((row, column))
    painted, legend = paint(grids, coloring.name if coloring else "", palette)
    axes = dict.fromkeys(a for x in (A, B, C) for a in moving_axes(as_layout(x, "gemm")))
    meaning = short_legend(list(axes)) if label is short else ""
    notes = [
        note for x, n in zip((A, B, C), bits, strict=True) for note in swizzle_note(as_layout(x, "gemm"), n)
    ]
    return Picture(
        title or f"{names[2]} = {names[0]} @ {names[1]}",
        tuple([Panel(grid, *place) for grid, place in zip(painted, panels, strict=True)]),
        f"M = {M}, N = {N}, K = {K}; each element with its holders" + (f" ({meaning})" if meaning else ""),
        tuple(dict.fromkeys(notes)),
        legend,
        palette,
    )


def _extents(shape: Any) -> tuple[int, int, int]:
    values = tuple(shape) if hasattr(shape, "__iter__") else ()
    if len(values) != 3 or any(type(n) is not int or n < 1 for n in values):
        raise LayoutError("gemm", f"shape is (M, N, K), three integers of at least 1, got {shape!r}")
    return values


def _transposed(grid: Grid) -> Grid:
    size = grid.size or grid.shown
    return grid._replace(
        cells=tuple(zip(*grid.cells, strict=True)),
        row_labels=grid.column_labels,
        column_labels=grid.row_labels,
        row_title=grid.column_title,
        column_title=grid.row_title,
        size=(size[1], size[0]),
    )


def _marked(
    grid: Grid, which: int, at: tuple[int, int] | None, extents: tuple[int, int], turned: bool
) -> Grid:
    """The grid with the cells marked that take part in C's element `at`."""
    if at is None:
        return grid
    if len(at) != 2 or any(type(i) is not int or not 0 <= i < n for i, n in zip(at, extents, strict=True)):
        raise LayoutError(
            "gemm", f"at {at!r} is no element (m, n) of C, which is {extents[0]} x {extents[1]}"
        )

    def chosen(cell: Cell) -> Cell:
        row, column = cell.elements[0][::-1] if turned else cell.elements[0]
        taken = (row == at[0], column == at[1], (row, column) == tuple(at))[which]
        return cell._replace(marks=(*cell.marks, "chosen")) if taken else cell

    return grid._replace(cells=tuple([tuple([chosen(cell) for cell in row]) for row in grid.cells]))
