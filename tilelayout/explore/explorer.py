"""`Explorer`: the page as a value, for a file, a notebook cell or a string."""

from __future__ import annotations

from typing import NamedTuple

from ..analysis.memory import as_bits
from ..draw.places import as_layout, drawn_shape
from ..errors import LayoutError, nearest
from .bundle import document
from .presets import Preset, as_presets, parsed
from .presets import offered as offered_presets
from .steps import Step, performed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence
    from typing import Any, Final

VIEWS: Final = ("both", "logical", "hardware", "banks")
HEIGHT: Final = 720
"""Pixels of the frame in a notebook cell."""


class Explorer(NamedTuple):
    """A page that explores layouts, as a value: nothing is written unless `save` is called.

    Attributes:
        title: of the page.
        steps: the layout that is shown first, and what each operation made of it.
        bits: width of an element.
        view: what is shown first.
        presets: what the page offers to begin with.
    """

    title: str
    steps: tuple[Step, ...]
    bits: int
    view: str
    presets: tuple[Preset, ...]

    def html(self) -> str:
        """The page: one HTML text that needs no server and no network."""
        start = {
            "steps": [_as_texts(step) for step in self.steps],
            "bits": str(self.bits),
            "view": self.view,
            "presets": [_as_texts(preset) for preset in self.presets],
        }
        return document(self.title, start)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.  Errors: LayoutError for a suffix other than .html and .htm."""
        from pathlib import Path

        target = Path(path)
        if target.suffix not in (".html", ".htm"):
            raise LayoutError(
                "save", f"the explorer is a page, got the suffix {target.suffix!r}", "a name in .html"
            )
        target.write_text(self.html(), encoding="utf-8", newline="\n")

    def _repr_html_(self) -> str:
        from ..draw.svg import escape

        return (
            f'<iframe title="{escape(self.title)}" srcdoc="{escape(self.html())}" '
            f'style="width:100%;height:{HEIGHT}px;border:1px solid #80808060"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Explorer {self.title!r}, {len(self.steps) - 1} steps>"


def _as_texts(entry: Step | Preset) -> dict[str, str]:
    """The fields as the page has them: texts, so that no number is rounded on the way."""
    fields = {name: str(value) for name, value in entry._asdict().items()}
    return {**fields, "shape": " x ".join(map(str, entry.shape))}


def explore(
    layout: Any,
    shape: Sequence[int] | int | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    bits: int = 16,
    steps: Iterable[Any] = (),
    presets: Iterable[Preset] | None = None,
    view: str = "both",
    title: str | None = None,
) -> Explorer:
    """A page on which a layout can be read, edited and taken through operations; with `path` it is saved as well.

    Args:
        layout: a `TileLayout` or `SwizzledLayout` without symbols, or its text.
        shape: the tensor's; left out, as near to square as a cut between the iters allows.
        path: a file to write, in .html.
        bits: width of an element, 1 to 128.
        steps: operations to step through, each ``(name of a method, *arguments)``, performed now.
        presets: layouts to offer; left out, those of `tilelayout.explore.offered`, which has the fragments of every
            instruction that `lowering` knows.
        view: "both" (logical and hardware), "logical", "hardware" or "banks".
        title: of the page; left out, the layout's text.

    Post-condition: the page evaluates as `owners` does, for every layout that is typed into it, or refuses.
    Errors: LayoutError for symbols, a shape of another size, an unknown view, and what a step refuses.

    >>> from tilelayout.explore import explore
    >>> page = explore("S[(8, 4) : (4 @ laneid, 1)]", (8, 4), steps=[("tile_to", (16, 4), (8, 4))])
    >>> page.steps[1].layout
    'S[(2, 8, 1, 4) : (4, 4 @ laneid, 0, 1)]'
    >>> page.html()[:15]
    '<!doctype html>'
    """
    drawn = as_layout(parsed(layout) if isinstance(layout, str) else layout, "explore")
    if view not in VIEWS:
        raise LayoutError("explore", f"unknown view {view!r}, {nearest(str(view), list(VIEWS))}")
    done = performed(drawn, drawn_shape(drawn, shape, "explore"), steps)
    offered = offered_presets() if presets is None else as_presets(presets)
    name = str(drawn) if title is None else title
    made = Explorer(name, done, as_bits(bits, "explore"), view, offered)
    if path is not None:
        made.save(path)
    return made


def page(layout: Any, shape: Sequence[int] | int | None = None, **options: Any) -> str:
    """The HTML of `explore`, whose options it takes."""
    return explore(layout, shape, **options).html()
