"""Palettes, the ink that reads on them, and the step from what a cell's color stands for to a color.

The palettes are checked by a test: every two of their colors stay apart for people with protanopia, deuteranopia and
tritanopia, and the ink has a contrast of at least 4.5 (WCAG 2.2, 1.4.3).  Color is never the only cue: the text says
the same.
"""

from __future__ import annotations

from functools import cache

from ..errors import LayoutError, nearest
from .model import Legend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence
    from typing import Any, Final

    from .model import Grid

PALETTES: Final[Mapping[str, tuple[str, ...]]] = {
    # Found by search: the least distance of two, over normal sight and the three dichromacies, is as large as it gets
    # for eight colors of moderate saturation on which dark ink reads.
    "categories": ("#5b8ada", "#f5bc3e", "#defacd", "#b988b2", "#a6eaf5", "#dd844f", "#89a486", "#f2e589"),
    # Lightness falls evenly, and only lightness tells them apart: the hue is for the eye.
    "ramp": ("#f9f6c9", "#dad9be", "#bcbeb4", "#9ea3a9", "#7f8a9e", "#607193", "#3d5988", "#02437d"),
}
EMPTY: Final = "#f4f4f4"
"""The fill of a cell without color."""

INKS: Final = ("#111111", "#ffffff")


def luminance(color: str) -> float:
    """Relative luminance of ``#rrggbb`` (WCAG 2.2)."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    """Contrast ratio, 1 to 21 (WCAG 2.2).

    >>> round(contrast("#000000", "#ffffff"))
    21
    """
    high, low = sorted([luminance(one), luminance(two)], reverse=True)
    return (high + 0.05) / (low + 0.05)


@cache
def ink(fill: str) -> str:
    """The text color that reads best on a fill."""
    return max(INKS, key=lambda color: contrast(color, fill))


def fill_of(palette: str, color: int | None) -> str:
    """The fill of a palette index; that of an uncolored cell for None."""
    return EMPTY if color is None else PALETTES[palette][color]


def palette_of(name: str) -> tuple[str, ...]:
    """The palette of that name.  Errors: LayoutError naming the nearest."""
    if name not in PALETTES:
        raise LayoutError("palette", f"unknown palette {name!r}, {nearest(str(name), list(PALETTES))}")
    return PALETTES[name]


def paint(grids: Sequence[Grid], name: str, palette: str) -> tuple[list[Grid], Legend | None]:
    """The grids with colors for their cells' keys, and the legend.

    In "categories" an integer key takes the color of its remainder, so that neighbors differ, and other keys take
    colors in order of appearance.  In "ramp" integers take the color of their rank, from light to dark.
    """
    count = len(palette_of(palette))
    found = [cell.key for grid in grids for row in grid.cells for cell in row if cell.key is not None]
    try:
        keys = dict.fromkeys(found)
    except TypeError as error:
        raise LayoutError(
            "draw", f"a color's key must be hashable: {error}", "return an integer or a word"
        ) from None
    if not keys:
        return list(grids), None
    colors = _by_rank(list(keys), count) if palette == "ramp" else _by_remainder(list(keys), count)
    painted = [
        grid._replace(
            cells=tuple(
                [
                    tuple(
                        [cell if cell.key is None else cell._replace(color=colors[cell.key]) for cell in row]
                    )
                    for row in grid.cells
                ]
            )
        )
        for grid in grids
    ]
    return painted, Legend(name, _entries(colors))


def _by_remainder(keys: list[Any], count: int) -> dict[Hashable, int]:
    if all(type(key) is int for key in keys):
        return {key: key % count for key in sorted(keys)}
    return {key: i % count for i, key in enumerate(keys)}


def _by_rank(keys: list[Any], count: int) -> dict[Hashable, int]:
    try:
        ranked = sorted(keys)
    except TypeError:
        raise LayoutError(
            "palette", "the palette 'ramp' shows an order, and these keys have none", "palette='categories'"
        ) from None
    return {key: i * count // len(ranked) for i, key in enumerate(ranked)}


def _entries(colors: Mapping[Hashable, int]) -> tuple[tuple[int, str], ...]:
    """(color, the keys that have it), in the order of the palette."""
    groups: dict[int, list[str]] = {}
    for key, color in colors.items():
        groups.setdefault(color, []).append(_key_text(key))
    return tuple([(color, shortened(groups[color])) for color in sorted(groups)])


def _key_text(key: Hashable) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]


def shortened(texts: Iterable[str], most: int = 4) -> str:
    """``0, 8, 16, ...``: the first few."""
    listed = list(texts)
    return ", ".join(listed if len(listed) <= most else [*listed[: most - 1], "...", listed[-1]])
