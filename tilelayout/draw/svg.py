"""Pictures as SVG: self-contained, the same for the same picture, readable on light and dark pages.

Cells have their own fill and ink in both; what stands outside of them follows ``prefers-color-scheme`` on a ground of
its own.  Only the standard library may be used.
"""

from __future__ import annotations

from .colors import PALETTES, fill_of, ink
from .text import clean, one_line, width_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from .model import Cell, Grid, Panel, Picture

CHARACTER: Final = 6.7
"""Width of a character of the 11 px monospaced font, rounded up."""
LINE: Final = 13
MARGIN: Final = 14
GAP: Final = 26
LEAST: Final = 20
SIGN: Final = 8
"""Room for the sign of a mark, at the right of a cell."""

STYLE: Final = (
    ".tl{font:11px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
    ".tl text{fill:#111111}.tl .w{fill:#ffffff}.tl .m{text-anchor:middle}.tl .e{text-anchor:end}"
    ".tl .ground{fill:#ffffff}.tl .out{fill:#3c4149}.tl .head{fill:#16181d;font-weight:600}"
    ".tl .cell{stroke:#ffffff;stroke-width:1}.tl .mark{fill:none;stroke:#111111;stroke-width:2}"
    ".tl .mark.w{fill:none;stroke:#ffffff}"
    ".tl g:hover>.cell{stroke:#111111;stroke-width:2}"
    "@media (prefers-color-scheme:dark){.tl .ground{fill:#16181d}.tl .out{fill:#b9c0cb}.tl .head{fill:#f2f4f7}"
    ".tl .cell{stroke:#16181d}.tl g:hover>.cell{stroke:#ffffff}}"
)

DASHES: Final = {"conflict": "", "chosen": "", "changed": "4 2", "mixed": "1 2"}
"""Marks that outline the cell, with the pattern of the outline; the others show their sign alone."""


def escape(text: str) -> str:
    r"""`text` as XML character data or an attribute's value, whatever is in it.

    >>> escape("<script>&\"'\x00")
    '&lt;script&gt;&amp;&quot;&#39;\ufffd'
    """
    cleaned = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return cleaned.replace('"', "&quot;").replace("'", "&#39;")


def number(x: float) -> str:
    """A length as short text: one decimal, none where it is whole."""
    return f"{x:.1f}".removesuffix(".0")


def svg(picture: Picture) -> str:
    """The picture as one ``<svg>`` element."""
    frame = _Frame(picture)
    body: list[str] = []
    y = MARGIN + LINE
    for text, kind in ((picture.title, "head"), (picture.subtitle, "out")):
        if text:
            body.append(_text(MARGIN, y, text, kind))
            y += LINE + 3
    top = y
    for panel in picture.panels:
        body += _panel(frame, panel, top)
    if picture.arrow:
        body += _arrows(frame, picture, top)
    y = top + sum(frame.heights) + GAP * (len(frame.heights) - 1) + LINE
    width = MARGIN + frame.width
    if picture.legend is not None:
        y, used = _legend(body, picture, y, width)
        width = max(width, used)
    for note in picture.remarks:
        body.append(_text(MARGIN, y, note, "out"))
        y += LINE + 2
    said = [picture.title, picture.subtitle, *picture.remarks]
    width = max([width, *[MARGIN + _width(x) for x in said]]) + MARGIN
    height = y + MARGIN - LINE + 2
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tl" role="img" width="{number(width)}" '
        f'height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}" '
        f'aria-label="{escape(one_line(picture.title))}" style="max-width:100%;height:auto">'
    )
    ground = f'<rect class="ground" width="{number(width)}" height="{number(height)}" rx="6"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", ground, *body, "</svg>\n"])


class _Frame:
    """Where everything goes: one size of cell, and the extents of the arrangement's rows and columns."""

    def __init__(self, picture: Picture) -> None:
        panels = picture.panels
        self.palette = picture.palette
        cells = [cell for panel in panels for row in panel.grid.cells for cell in row]
        labels = [_width(label) for panel in panels for label in panel.grid.column_labels]
        widest = [
            max([_width(line) for line in cell.lines], default=0) + SIGN * len(cell.marks) for cell in cells
        ]
        self.cell_width = max([LEAST, *[w + 8 for w in (*widest, *labels)]])
        self.cell_height = LINE * max([1, *[len(cell.lines) for cell in cells]]) + 7
        columns = 1 + max(panel.column for panel in panels)
        rows = 1 + max(panel.row for panel in panels)
        self.margins = [
            max([_margin(p.grid) for p in panels if p.column == c], default=0) for c in range(columns)
        ]
        self.widths = [
            max([self._grid_width(p) for p in panels if p.column == c], default=0) for c in range(columns)
        ]
        self.tops = [max([_top(p.grid) for p in panels if p.row == r], default=0) for r in range(rows)]
        self.heights = [
            max([self._grid_height(p) for p in panels if p.row == r], default=0) for r in range(rows)
        ]
        self.width = sum(self.widths) + GAP * (columns - 1)

    def _grid_width(self, panel: Panel) -> float:
        grid = panel.grid
        said = [_width(x) for x in (grid.heading, *grid.footnotes)]
        return max(self.margins[panel.column] + self.cell_width * len(grid.column_labels), *said, 0.0)

    def _grid_height(self, panel: Panel) -> float:
        grid = panel.grid
        return (
            self.tops[panel.row] + self.cell_height * len(grid.cells) + (LINE + 2) * len(grid.footnotes) + 4
        )

    def corner(self, panel: Panel, top: float) -> tuple[float, float]:
        """The upper left corner of a panel."""
        x = MARGIN + sum(self.widths[: panel.column]) + GAP * panel.column
        return x, top + sum(self.heights[: panel.row]) + GAP * panel.row


def _width(text: str) -> float:
    return width_of(one_line(text)) * CHARACTER


def _margin(grid: Grid) -> float:
    return max([_width(x) for x in (*grid.row_labels, grid.row_title)], default=0) + 8


def _top(grid: Grid) -> float:
    return (LINE + 3) * (bool(grid.heading) + bool(grid.column_title)) + LINE + 4


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{number(x)}" y="{number(y)}" class="{kind}" xml:space="preserve">{escape(one_line(text))}</text>'


def _panel(frame: _Frame, panel: Panel, top: float) -> list[str]:
    grid = panel.grid
    left, y = frame.corner(panel, top)
    x, y_cells = left + frame.margins[panel.column], y + frame.tops[panel.row]
    w, h = frame.cell_width, frame.cell_height
    above = y_cells - 5
    out = [_text(x + (c + 0.5) * w, above, label, "out m") for c, label in enumerate(grid.column_labels)]
    if grid.row_title:
        out.append(_text(x - 8, above, grid.row_title, "out e"))
    if grid.column_title:
        above -= LINE + 3
        out.append(_text(x, above, grid.column_title, "out"))
    if grid.heading:
        out.append(_text(left, above - LINE - 3, grid.heading, "head"))
    for r, (label, row) in enumerate(zip(grid.row_labels, grid.cells, strict=True)):
        out.append(_text(x - 8, y_cells + (r + 0.5) * h + 4, label, "out e"))
        out += [_cell(cell, x + c * w, y_cells + r * h, w, h, frame.palette) for c, cell in enumerate(row)]
    below = y_cells + h * len(grid.cells) + LINE + 2
    return [
        *out,
        *[_text(left, below + (LINE + 2) * k, note, "out") for k, note in enumerate(grid.footnotes)],
    ]


def _cell(cell: Cell, x: float, y: float, w: float, h: float, palette: str) -> str:
    fill = fill_of(palette, cell.color)
    light = " w" if ink(fill) == "#ffffff" else ""
    box = f'x="{number(x)}" y="{number(y)}" width="{number(w)}" height="{number(h)}"'
    out = [
        "<g>",
        f"<title>{escape(cell.title)}</title>" if cell.title else "",
        f'<rect class="cell" {box} fill="{fill}"/>',
    ]
    middle = x + (w - SIGN * len(cell.marks)) / 2
    first = y + h / 2 + 4 - LINE * (len(cell.lines) - 1) / 2
    for i, line in enumerate(cell.lines):
        shown = escape(one_line(line))
        out.append(
            f'<text class="m{light}" x="{number(middle)}" y="{number(first + LINE * i)}">{shown}</text>'
        )
    for mark in cell.marks:
        if mark in DASHES:
            inner = (
                f'x="{number(x + 2)}" y="{number(y + 2)}" width="{number(w - 4)}" height="{number(h - 4)}"'
            )
            dash = f' stroke-dasharray="{DASHES[mark]}"' if DASHES[mark] else ""
            out.append(f'<rect class="mark{light}" {inner}{dash}/>')
    if cell.marks:
        out.append(
            f'<text class="e{light}" x="{number(x + w - 4)}" y="{number(y + 12)}">{escape(cell.signs)}</text>'
        )
    return "".join([*out, "</g>"])


def _arrows(frame: _Frame, picture: Picture, top: float) -> list[str]:
    """The arrow between neighbors of a row, at half of its height."""
    out: list[str] = []
    for panel in picture.panels:
        if panel.column:
            left, y = frame.corner(panel, top)
            out.append(_text(left - GAP / 2, y + frame.heights[panel.row] / 2, "\u2192", "head m"))
    return out


def _legend(body: list[str], picture: Picture, y: float, width: float) -> tuple[float, float]:
    """Swatches with the keys that they stand for; returns where the next line goes, and the room that was taken."""
    legend = picture.legend
    if legend is None:
        return y, 0
    name = f"color: {legend.name}"
    body.append(_text(MARGIN, y, name, "out"))
    x, used = MARGIN + _width(name) + 12, 0.0
    for color, keys in legend.entries:
        room = 18 + _width(keys) + 12
        if x + room > max(width, 480):
            x, y = MARGIN, y + LINE + 5
        body.append(
            f'<rect class="cell" x="{number(x)}" y="{number(y - 10)}" width="13" height="13" '
            f'fill="{PALETTES[picture.palette][color]}"/>'
        )
        body.append(_text(x + 18, y, keys, "out"))
        x += room
        used = max(used, x)
    return y + LINE + 5, used
