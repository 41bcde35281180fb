"""How layouts show themselves: the room that `display.Displayed` loads when a layout is first shown."""

from __future__ import annotations

from ..errors import LayoutError, nearest
from ..layout import TileLayout
from ..swizzled import SwizzledLayout
from .views.bits import bits
from .views.change import before_after, operation
from .views.hardware import hardware
from .views.iters import iters
from .views.logical import logical
from .views.shared import shared
from .views.tiling import tiling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Final

    from .model import Picture

VIEWS: Final[dict[str, Callable[..., Picture]]] = {
    "logical": logical,
    "hardware": hardware,
    "shared": shared,
    "tiling": tiling,
    "bits": bits,
    "iters": iters,
    "operation": operation,
    "before_after": before_after,
}
"""What `layout.draw(view, ...)` offers."""

SHOWN: Final = 32
"""Rows and columns of the picture that a notebook shows for a layout."""


def draw(value: TileLayout | SwizzledLayout, view: str | None, /, *arguments: Any, **options: Any) -> Picture:
    """The picture of a layout in one of the `VIEWS`, "logical" by default.

    Errors: LayoutError for an unknown view; the view's own.
    """
    name = "logical" if view is None else view
    if name not in VIEWS:
        raise LayoutError("draw", f"unknown view {name!r}, {nearest(str(name), list(VIEWS))}")
    return VIEWS[name](value, *arguments, **options)


def picture_of(value: TileLayout | SwizzledLayout) -> Picture:
    """What a layout shows of itself: the logical view, or its own table where that can't be drawn (symbols)."""
    try:
        return logical(value, max_rows=SHOWN, max_columns=SHOWN)
    except LayoutError:
        return iters(value)


def mimebundle(value: TileLayout | SwizzledLayout) -> dict[str, str]:
    """A layout in a notebook: its text, and a picture."""
    picture = picture_of(value)
    return {"text/plain": repr(value), "text/html": picture.html(), "image/svg+xml": picture.svg()}


def rich_lines(value: TileLayout | SwizzledLayout, console: Any, options: Any) -> Iterator[Any]:
    """A layout in a rich console: its text as the title of a picture."""
    from .terminal import rich_lines as lines

    return lines(picture_of(value)._replace(title=repr(value)), console, options)
