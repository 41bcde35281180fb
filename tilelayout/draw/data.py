"""Pictures as plain data that JSON takes, for tools in other languages and for the explorer."""

from __future__ import annotations

from .colors import PALETTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .model import Cell, Grid, Picture


def as_data(picture: Picture) -> dict[str, Any]:
    """The whole picture as lists, mappings, numbers and strings.

    >>> from tilelayout.draw import logical
    >>> logical(TileLayout(S[2, 2])).data()["panels"][0]["grid"]["cells"][1][0]["elements"]
    [[1, 0]]
    """
    legend = picture.legend
    return {
        "title": picture.title,
        "subtitle": picture.subtitle,
        "notes": list(picture.remarks),
        "palette": list(PALETTES[picture.palette]),
        "legend": None
        if legend is None
        else {"name": legend.name, "entries": [list(e) for e in legend.entries]},
        "panels": [
            {"row": panel.row, "column": panel.column, "grid": _grid(panel.grid)} for panel in picture.panels
        ],
    }


def _grid(grid: Grid) -> dict[str, Any]:
    return {
        "heading": grid.heading,
        "row_title": grid.row_title,
        "column_title": grid.column_title,
        "row_labels": list(grid.row_labels),
        "column_labels": list(grid.column_labels),
        "size": list(grid.size or grid.shown),
        "notes": list(grid.footnotes),
        "cells": [[_cell(cell) for cell in row] for row in grid.cells],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "lines": list(cell.lines),
        "title": cell.title,
        "elements": [list(e) for e in cell.elements],
        "holders": [{str(a): int(v) for a, v in place.items()} for place in cell.holders],
        "color": cell.color,
        "marks": list(cell.marks),
    }
