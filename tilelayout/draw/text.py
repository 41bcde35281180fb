"""Pictures as plain text: right for logs, doctests, and terminals without color."""

from __future__ import annotations

import re
import unicodedata

from ..errors import LayoutError
from ..parts import as_shape
from .wording import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Final

    from .model import Cell, Grid, Picture

    Paint = Callable[[Cell, str], str]

GAP: Final = "   "
NARROWEST: Final = 8
"""Columns below which no grid can be written."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    r"""`text` without control characters, lone surrogates and others that no terminal or XML document should get.

    >>> clean("a\x1b[31mb")
    'a\ufffd[31mb'
    """
    return _CONTROL.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Cleaned, with line breaks and tabs as blanks."""
    return clean(text).replace("\n", " ").replace("\t", " ")


def width_of(text: str) -> int:
    """Columns that a text takes in a terminal: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def padded(text: str, width: int, right: bool = True) -> str:
    """`text` filled up with blanks to a width."""
    fill = " " * (width - width_of(text))
    return fill + text if right else text + fill


def cut(text: str, width: int | None) -> str:
    """At most `width` columns of a text, its end replaced by ``…`` where it is longer."""
    if width is None or width_of(text) <= width:
        return text
    while text and width_of(text) > width - 1:
        text = text[:-1]
    return text + "…" if width > 0 else ""


def cell_text(cell: Cell, join: str = "+") -> str:
    """A cell on one line: its lines and the signs of its marks; a dot where it is empty."""
    return one_line(join.join(cell.lines) or ".") + cell.signs


def text(picture: Picture, width: int | None = None, paint: Paint | None = None) -> str:
    """The picture as lines of text, panels side by side where they fit.

    `paint` may wrap a cell's padded text in escape codes, which take no room.
    Errors: LayoutError for a width of less than `NARROWEST`.
    """
    if width is not None and (type(width) is not int or width < NARROWEST):
        raise LayoutError("text", f"width must be an integer of at least {NARROWEST}, got {width!r}")
    lines = [one_line(x) for x in (picture.title, picture.subtitle) if x]
    lines = [part for line in lines for part in wrapped(line, width)]
    lines += _panels(picture, width, paint)
    if picture.legend is not None:
        entries = "; ".join([text for _, text in picture.legend.entries])
        lines += wrapped(one_line(f"color: {picture.legend.name} ({entries})"), width) if paint else []
    lines += [part for note in picture.remarks for part in wrapped(one_line(note), width)]
    return "\n".join([line.rstrip() for line in lines])


def wrapped(line: str, width: int | None) -> list[str]:
    """A line broken at blanks into lines of at most `width` columns; a longer word is broken where it must be."""
    if width is None or width_of(line) <= width:
        return [line]
    out: list[str] = []
    row = ""
    for word in line.split(" "):
        if row and width_of(row) + 1 + width_of(word) > width:
            out.append(row)
            row = ""
        row = f"{row} {word}" if row else word
        while width_of(row) > width:
            head = cut(row, width)[:-1] or row[:1]
            out.append(head)
            row = row[len(head) :]
    return [*out, row] if row else out


def _panels(picture: Picture, width: int | None, paint: Paint | None) -> list[str]:
    """The panels, in rows as they are arranged; one below the other where they don't fit side by side."""
    columns = 1 + max(panel.column for panel in picture.panels)
    rows = 1 + max(panel.row for panel in picture.panels)
    blocks: dict[tuple[int, int], list[tuple[str, int]]] = {
        (p.row, p.column): grid_lines(p.grid, None, paint, _cell_width(picture)) for p in picture.panels
    }
    widths = [
        max([w for (_, c), block in blocks.items() if c == column for _, w in block], default=0)
        for column in range(columns)
    ]
    gap = f" {picture.arrow} " if picture.arrow else GAP
    if width is not None and sum(widths) + len(gap) * (columns - 1) > width:
        lines: list[str] = []
        for panel in picture.panels:
            lines += [line for line, _ in grid_lines(panel.grid, width, paint)]
        return lines
    lines = []
    for row in range(rows):
        height = max([len(blocks.get((row, c), ())) for c in range(columns)])
        for i in range(height):
            parts: list[str] = []
            for c in range(columns):
                block = blocks.get((row, c), [])
                line, used = block[i] if i < len(block) else ("", 0)
                parts.append(line + " " * (widths[c] - used))
            lines.append((gap if i == height // 2 else " " * len(gap)).join(parts))
    return lines


def _cell_width(picture: Picture) -> int:
    """The widest cell of all panels, so that those above one another line up."""
    cells = [
        width_of(cell_text(cell, p.grid.join)) for p in picture.panels for row in p.grid.cells for cell in row
    ]
    return max(cells, default=1) if max(panel.row for panel in picture.panels) else 1


def grid_lines(grid: Grid, width: int | None, paint: Paint | None, least: int = 1) -> list[tuple[str, int]]:
    """(line, columns that it takes) of a grid; columns that don't fit into `width` are left out, and it is said."""
    texts = [[cell_text(cell, grid.join) for cell in row] for row in grid.cells]
    heads = [one_line(label) for label in grid.column_labels]
    each = max([width_of(t) for row in texts for t in row] + [width_of(h) for h in heads] + [least])
    names = [one_line(label) for label in grid.row_labels]
    margin = max([width_of(x) for x in (*names, one_line(grid.row_title))], default=0)
    shown = len(heads)
    if width is not None:
        shown = min(shown, max(1, (width - margin - 1) // (each + 1)))
        each = max(1, min(each, width - margin - 2))
        margin = min(margin, max(0, width - each - 2))
    out: list[str] = [one_line(grid.heading)] if grid.heading else []
    if grid.column_title:
        out.append(" " * (margin + 2) + one_line(grid.column_title))
    out.append(
        padded(cut(one_line(grid.row_title), margin), margin, right=False)
        + "  "
        + " ".join([padded(cut(h, each), each) for h in heads[:shown]])
    )
    painted: list[tuple[str, int]] = [(line, width_of(line)) for line in [cut(x, width) for x in out]]
    for label, row, row_texts in zip(names, grid.cells, texts, strict=True):
        cells = [padded(cut(t, each), each) for t in row_texts[:shown]]
        used = margin + 2 + len(cells) * (each + 1) - 1
        if paint is not None:
            cells = [paint(cell, t) for cell, t in zip(row, cells, strict=False)]
        painted.append((padded(cut(label, margin), margin) + "  " + " ".join(cells), used))
    notes = [one_line(note) for note in grid.notes]
    total = grid.size or grid.shown
    if (grid.shown[0], shown) != total:
        reason = "" if shown == len(heads) else f" (width {width})"
        notes.append(grid._replace(column_labels=grid.column_labels[:shown]).crop + reason)
    return painted + [(part, width_of(part)) for note in notes for part in wrapped(note, width)]


def holders_grid(layout: Any, shape: Sequence[Any], cell: Callable[[Mapping[Any, int]], str] = short) -> str:
    """A two-dimensional tile as a bare grid of text, each cell showing who holds the element.

    Every holder is shown when there are several, joined by "+".  A tile of more than 32 rows or columns is cropped, and
    the last line says what was left out.

    >>> from tilelayout import S, TileLayout, laneid
    >>> print(holders_grid(TileLayout(S[(2, 2) : (1 @ laneid, 1)]), (2, 2)))
          0    1
    0  T0:0 T0:1
    1  T1:0 T1:1

    Errors: LayoutError for a shape that is not two-dimensional or not of the layout's size.
    """
    from .views.logical import logical

    dims = as_shape(shape, "holders_grid")
    if len(dims) != 2 or any(type(n) is not int for n in dims):
        raise LayoutError("holders_grid", f"a shape of two numbers is needed, got {tuple(dims)}")
    grid = logical(layout, dims, label=cell, color=False, max_rows=32, max_columns=32).grid  # type: ignore[arg-type]
    return "\n".join([line.rstrip() for line, _ in grid_lines(grid, None, None)])
