"""Pictures as data: grids of cells, panels of grids, and the picture that renderers turn into SVG, HTML or text.

A view computes one of these from a layout; a renderer knows nothing of layouts.  Other tools (an explorer, a command
line) read the same data.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import LayoutError, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Hashable, Iterator, Mapping
    from typing import Any, Final

SIGNS: Final = {
    "conflict": ("!", "bank conflict"),
    "moved": ("~", "moved by the swizzle"),
    "changed": ("*", "another holder than before"),
    "mixed": ("?", "not one owner for the whole tile"),
    "chosen": (">", "chosen"),
}
"""Mark -> its sign in the cell (the second cue, beside the outline), and what a note says of it."""


class Cell(NamedTuple):
    """One cell of a grid.

    Attributes:
        lines: what is written in it; none for an empty cell.
        title: what hovering over it shows.
        elements: the logical coordinates of the elements that it stands for.
        holders: every place that holds them (axis -> coordinate), one entry per place.
        key: what its color stands for, None where it has none.
        color: index into the palette, None where it has no color.
        marks: keys of `SIGNS`.
    """

    lines: tuple[str, ...] = ()
    title: str = ""
    elements: tuple[tuple[int, ...], ...] = ()
    holders: tuple[Mapping[Any, int], ...] = ()
    key: Hashable = None
    color: int | None = None
    marks: tuple[str, ...] = ()

    @property
    def signs(self) -> str:
        """The signs of its marks."""
        return "".join([SIGNS[mark][0] for mark in self.marks])


class Grid(NamedTuple):
    """Cells in rows and columns with labels.

    Attributes:
        cells: the rows that are shown.
        row_labels, column_labels: one for each row and column that is shown.
        row_title, column_title: what the labels count, e.g. ``laneid``.
        heading: what stands above the grid.
        size: (rows, columns) of the whole, of which the first are shown.
        join: what separates a cell's lines where a cell has one line only.
        notes: what stands below the grid.
    """

    cells: tuple[tuple[Cell, ...], ...]
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]
    row_title: str = ""
    column_title: str = ""
    heading: str = ""
    size: tuple[int, int] | None = None
    join: str = "+"
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[int, int]:
        """(rows, columns) that are shown."""
        return len(self.cells), len(self.column_labels)

    @property
    def crop(self) -> str:
        """The rule by which the grid is cropped; empty where it is whole."""
        rows, columns = self.shown
        if self.size is None or self.size == (rows, columns):
            return ""
        return f"cropped: the first {rows} of {self.size[0]} rows and the first {columns} of {self.size[1]} columns"

    @property
    def footnotes(self) -> tuple[str, ...]:
        """The notes, and what was left out."""
        return (*self.notes, self.crop) if self.crop else self.notes


class Panel(NamedTuple):
    """A grid at its place in the picture: row and column of the arrangement."""

    grid: Grid
    row: int = 0
    column: int = 0


class Legend(NamedTuple):
    """What colors stand for: the name of the quantity, and (palette index, keys) pairs."""

    name: str
    entries: tuple[tuple[int, str], ...]


class Picture(NamedTuple):
    """A picture as a value: data, and the forms it can take.  Nothing is written unless `save` is called.

    >>> from tilelayout.draw import logical
    >>> picture = logical(TileLayout(S[(2, 2) : (1 @ laneid, 1)]), (2, 2))
    >>> picture.grid.cells[1][0].holders
    ({laneid: 1, m: 0},)
    >>> picture.svg()[:4], picture.html()[:7]
    ('<svg', '<figure')
    """

    title: str
    panels: tuple[Panel, ...]
    subtitle: str = ""
    notes: tuple[str, ...] = ()
    legend: Legend | None = None
    palette: str = "categories"
    arrow: str = ""

    @property
    def grid(self) -> Grid:
        """The first grid."""
        return self.panels[0].grid

    @property
    def cells(self) -> Iterator[Cell]:
        """Every cell that is shown."""
        return (cell for panel in self.panels for row in panel.grid.cells for cell in row)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, and the meaning of the marks that occur."""
        found = {mark for cell in self.cells for mark in cell.marks}
        signs = [f"{sign} {meaning}" for mark, (sign, meaning) in SIGNS.items() if mark in found]
        return (*self.notes, *signs)

    # --- forms ----------------------------------------------------------------------------------

    def text(self, width: int | None = None) -> str:
        """Plain text; with a `width`, no line is longer, and what does not fit is said to be left out."""
        from .text import text

        return text(self, width)

    def svg(self) -> str:
        """A self-contained SVG that reads well in light and dark; hovering over a cell shows where its element is."""
        from .svg import svg

        return svg(self)

    def html(self, document: bool = False) -> str:
        """An HTML figure of tables, whose cells show their titles; with `document`, a page of its own."""
        from .html import html

        return html(self, document)

    def ansi(self, width: int | None = None, color: str | bool | None = None, stream: Any = None) -> str:
        """Colored text for a terminal: `color` is "truecolor", "256" or False.

        By default both follow from `stream` (standard output) and its environment: no color where it is no terminal,
        where NO_COLOR is set or TERM is "dumb"; the terminal's width.
        """
        from .terminal import ansi

        return ansi(self, width, color, stream)

    def print(self, stream: Any = None) -> None:
        """Write it to a stream (standard output): in color where that is a terminal, through rich where it is there."""
        from .terminal import write

        write(self, stream)

    def data(self) -> dict[str, Any]:
        """The whole picture as lists, mappings, numbers and strings that JSON can take."""
        from .data import as_data

        return as_data(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the form that the suffix names: .svg, .html, .txt, .ansi or .json.

        Errors: LayoutError for another suffix.
        """
        from pathlib import Path

        target = Path(path)
        forms = {
            ".svg": self.svg,
            ".html": lambda: self.html(document=True),
            ".txt": lambda: self.text() + "\n",
            ".ansi": lambda: self.ansi(color="truecolor") + "\n",
            ".json": self._json,
        }
        if target.suffix not in forms:
            raise LayoutError(
                "save",
                f"no picture has the suffix {target.suffix!r}, {nearest(target.suffix, list(forms))}",
                f"one of {', '.join(forms)}",
            )
        target.write_text(forms[target.suffix](), encoding="utf-8", newline="\n")

    def _json(self) -> str:
        import json

        return json.dumps(self.data(), indent=1) + "\n"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        rows, columns = self.grid.shown
        return f"<Picture {self.title!r}, {len(self.panels)} panels, {rows} x {columns} cells in the first>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": self.text(), "text/html": self.html(), "image/svg+xml": self.svg()}

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """For IPython, which would otherwise print the tuple that a picture is, whatever the bundle says."""
        printer.text(self.text())

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from .terminal import rich_lines

        return rich_lines(self, console, options)
