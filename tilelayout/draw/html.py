"""Pictures as HTML: tables with everything inline, so that they survive the sanitizers of notebook viewers."""

from __future__ import annotations

from .colors import PALETTES, fill_of, ink
from .svg import escape
from .text import one_line, width_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from .model import Cell, Grid, Picture

FONT: Final = "font:11px/1.25 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"
CELL: Final = "padding:2px 5px;border:1px solid #80808060;text-align:center;white-space:nowrap"
OUTLINES: Final = {"conflict": "solid", "chosen": "solid", "changed": "dashed", "mixed": "dotted"}


def html(picture: Picture, document: bool = False) -> str:
    """A ``<figure>`` with a table for each panel; with `document`, a whole page."""
    figure = _figure(picture)
    if not document:
        return figure
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(one_line(picture.title))}</title>"
        "<style>:root{color-scheme:light dark}body{margin:1em;font-family:system-ui,sans-serif}</style></head>\n"
        f"<body>\n{figure}\n</body>\n</html>\n"
    )


def figure_with_text(picture: Picture, below: str) -> str:
    """The figure, and a text in fixed width that can be unfolded below it."""
    if not below:
        return _figure(picture)
    return f"{_figure(picture)}\n<details><summary>as text</summary><pre>{escape(below)}</pre></details>"


def _figure(picture: Picture) -> str:
    head = f"<strong>{escape(one_line(picture.title))}</strong>"
    if picture.subtitle:
        head += f"<br>{escape(one_line(picture.subtitle))}"
    return "\n".join(
        [
            f'<figure class="tilelayout" style="margin:0 0 8px;overflow-x:auto;{FONT}">',
            f'<figcaption style="margin-bottom:6px">{head}</figcaption>',
            *_arrangement(picture),
            *_legend(picture),
            *[f"<div>{escape(one_line(note))}</div>" for note in picture.remarks],
            "</figure>",
        ]
    )


def _arrangement(picture: Picture) -> list[str]:
    """The panels in a table of their own, which means nothing to a screen reader."""
    cells = [width_of(one_line(line)) + len(cell.marks) for cell in picture.cells for line in cell.lines]
    heads = [width_of(one_line(head)) for panel in picture.panels for head in panel.grid.column_labels]
    each = max([*cells, *heads], default=1) + 1  # one width for all, so that panels above one another line up
    if len(picture.panels) == 1:
        return _grid(picture.panels[0].grid, picture.palette, each, 0)
    rows = 1 + max(panel.row for panel in picture.panels)
    columns = 1 + max(panel.column for panel in picture.panels)
    at = {(panel.row, panel.column): panel.grid for panel in picture.panels}
    out = ['<table role="presentation" style="border:none">']
    for r in range(rows):
        out.append("<tr>")
        for c in range(columns):
            if c and picture.arrow:
                out.append('<td style="border:none" aria-hidden="true">&rarr;</td>')
            out.append('<td style="border:none;vertical-align:top;text-align:left">')
            margin = max([_margin(grid) for (_, column), grid in at.items() if column == c])
            out += _grid(at[r, c], picture.palette, each, margin) if (r, c) in at else []
            out.append("</td>")
        out.append("</tr>")
    return [*out, "</table>"]


def _margin(grid: Grid) -> int:
    """Characters of the widest row label, the corner included."""
    return max([width_of(one_line(label)) for label in (*grid.row_labels, _corner(grid))], default=1)


def _corner(grid: Grid) -> str:
    return " \\ ".join([x for x in (grid.row_title, grid.column_title) if x])


def _grid(grid: Grid, palette: str, each: int, margin: int) -> list[str]:
    """A table whose cells are at least `each` characters wide, and whose row labels at least `margin`."""
    out = (
        [f'<div style="{FONT};font-weight:600">{escape(one_line(grid.heading))}</div>']
        if grid.heading
        else []
    )
    out.append(f'<table style="border-collapse:collapse;{FONT}">')
    style = f"padding:1px 4px;font-weight:normal;min-width:{each}ch;text-align:center"
    first = f"padding:1px 4px;font-weight:normal;min-width:{margin}ch;text-align:right"
    heads = [f'<th scope="col" style="{style}">{escape(one_line(x))}</th>' for x in grid.column_labels]
    out.append(f'<tr><th style="{first}">{escape(one_line(_corner(grid)))}</th>{"".join(heads)}</tr>')
    for label, row in zip(grid.row_labels, grid.cells, strict=True):
        cells = "".join([_cell(cell, palette) for cell in row])
        out.append(f'<tr><th scope="row" style="{first}">{escape(one_line(label))}</th>{cells}</tr>')
    out.append("</table>")
    return [*out, *[f"<div>{escape(one_line(note))}</div>" for note in grid.footnotes]]


def _cell(cell: Cell, palette: str) -> str:
    fill = fill_of(palette, cell.color)
    style = f"background:{fill};color:{ink(fill)};{CELL}"
    kinds = [OUTLINES[mark] for mark in cell.marks if mark in OUTLINES]
    if kinds:
        style += f";outline:2px {kinds[0]} {ink(fill)};outline-offset:-2px"
    text = "<br>".join([escape(one_line(line)) for line in cell.lines])
    signs = f'<sup style="line-height:0">{escape(cell.signs)}</sup>' if cell.marks else ""
    title = f' title="{escape(cell.title)}"' if cell.title else ""
    return f'<td style="{style}"{title}>{text}{signs}</td>'


def _legend(picture: Picture) -> list[str]:
    if picture.legend is None:
        return []
    swatches = [
        f'<span style="background:{PALETTES[picture.palette][color]};'
        f'color:{ink(PALETTES[picture.palette][color])};padding:0 5px">{escape(one_line(keys))}</span>'
        for color, keys in picture.legend.entries
    ]
    return [f"<div>color: {escape(one_line(picture.legend.name))} {' '.join(swatches)}</div>"]
