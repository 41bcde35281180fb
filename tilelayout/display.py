"""How values show themselves in notebooks and terminals, without knowing who draws them.

The rooms that draw stand above the values: they import them.  So a value names its painter as text, and the painter
is loaded when something is first shown.  Nothing may be imported here that a layout doesn't need anyway.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar, Protocol

    class Painter(Protocol):
        """What a painter's module offers."""

        def draw(self, value: Any, view: str | None, /, *arguments: Any, **options: Any) -> Any:
            """A picture of the value."""
            ...

        def mimebundle(self, value: Any, /) -> dict[str, str]:
            """MIME type -> text; ``text/plain`` is always there."""
            ...

        def rich_lines(self, value: Any, console: Any, options: Any, /) -> Iterator[Any]:
            """What rich prints for the value."""
            ...


class Displayed:
    """What a value needs to be drawn, and to show itself in a notebook and in a rich console."""

    __slots__ = ()

    _painter: ClassVar[str] = "tilelayout.draw.painter"
    _explorer: ClassVar[str] = "tilelayout.explore"

    def draw(self, view: str | None = None, /, *arguments: Any, **options: Any) -> Any:
        """A picture, as a value: ``.svg()``, ``.html()``, ``.text()``, ``.ansi()``, ``.save(path)``.

        Views of a layout: "logical" (the default: each element and who holds it), "hardware" (lanes by registers, or
        any axes), "shared" (lines by banks), "tiling" (which warps hold which tile), "bits" (the matrix over F2),
        "iters" (the layout's own table), "operation" (before and after).  Arguments are those of the function of that
        name in `tilelayout.draw`, without the layout.
        Errors: LayoutError for an unknown view, naming the nearest, and for what the view cannot show.

        >>> print(TileLayout(S[(2, 4) : (1 @ laneid, 1)]).draw("logical", (2, 4)))
        S[(2, 4) : (1 @ laneid, 1)]
        2 x 4 elements, each with its holders (T lane, : slot)
              0    1    2    3
        0  T0:0 T0:1 T0:2 T0:3
        1  T1:0 T1:1 T1:2 T1:3
        """
        return _load(self._painter).draw(self, view, *arguments, **options)

    def explore(self, shape: Any = None, *, path: Any = None, **options: Any) -> Any:
        """A page to read, edit and take apart layouts, starting with this one: ``.html()``, ``.save(path)``.

        One HTML file that needs no server and no network, and shows itself in a notebook cell.  With `path` it is
        saved as well.  Options are those of `tilelayout.explore.explore`: `bits`, `steps`, `presets`, `view`, `title`.
        Errors: LayoutError for symbols, a shape of another size, and what a step refuses.

        >>> TileLayout(S[(2, 4) : (1 @ laneid, 1)]).explore((2, 4), steps=[("permute_dims", (1, 0))])
        <Explorer 'S[(2, 4) : (1 @ laneid, 1)]', 1 steps>
        """
        return _module(self._explorer).explore(self, shape, path=path, **options)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return _load(self._painter).mimebundle(self)

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        return _load(self._painter).rich_lines(self, console, options)


def _load(name: str) -> Painter:
    return _module(name)


def _module(name: str) -> Any:
    from importlib import import_module

    return import_module(name)
