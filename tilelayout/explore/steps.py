"""Operations to step through, performed when the page is made: any method of a layout that gives a layout."""

from __future__ import annotations

from typing import NamedTuple

from ..draw.places import natural_shape
from ..errors import LayoutError, nearest
from ..functions import Shaped
from ..layout import TileLayout
from ..parts import as_shape, product
from ..spec import Spec
from ..swizzled import SwizzledLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..draw.places import Layout


class Step(NamedTuple):
    """A layout on the way: the call that made it from the one before, its text, the shape to show it in."""

    call: str
    layout: str
    shape: tuple[int, ...]


def performed(layout: Layout, shape: tuple[int, ...], steps: Iterable[Any]) -> tuple[Step, ...]:
    """The layout itself and then the result of each step, which is ``(operation, *arguments)``.

    Errors: LayoutError for an unknown operation, one that gives no layout, and the operation's own.

    >>> D = TileLayout(S[(8, 4) : (4 @ laneid, 1)])
    >>> [step.layout for step in performed(D, (8, 4), [("tile_to", (8, 8), (8, 4))])]
    ['S[(8, 4) : (4 @ laneid, 1)]', 'S[(1, 8, 2, 4) : (0, 4 @ laneid, 4, 1)]']
    """
    done = [Step("", str(layout), shape)]
    for entry in steps:
        if not isinstance(entry, (tuple, list)) or not entry:
            raise LayoutError("explore", f"a step is (operation, *arguments), got {entry!r}")
        call: tuple[Any, ...] = tuple(entry)  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        operation, arguments = call[0], list(call[1:])
        layout, shape = _step(layout, operation, arguments)
        shown = ", ".join([_text(x) for x in arguments])
        done.append(Step(f"{operation}({shown})", str(layout), shape))
    return tuple(done)


def _step(layout: Layout, operation: Any, arguments: list[Any]) -> tuple[Layout, tuple[int, ...]]:
    known = [name for name in dir(layout) if not name.startswith("_") and callable(getattr(layout, name))]
    if operation not in known:
        raise LayoutError("explore", f"unknown operation {operation!r}, {nearest(str(operation), known)}")
    result = getattr(layout, operation)(*arguments)
    after = result.layout if isinstance(result, Shaped) else result
    if isinstance(after, tuple):  # group: the layout and its separators
        after = after[0]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(after, (TileLayout, SwizzledLayout)):
        raise LayoutError("explore", f"{operation} gives no layout but {after!r}")
    if isinstance(result, Shaped):
        return after, _plain(result.shape)
    shape = _shape_after(layout, operation, arguments, after)
    return after, natural_shape(after) if shape is None else shape


def _shape_after(layout: Any, operation: str, arguments: list[Any], after: Layout) -> tuple[int, ...] | None:
    """The shape that an operation's arguments name, None where they don't."""
    if operation in ("tile_to", "group"):
        return _plain(arguments[0])
    if operation == "slice":
        return tuple([len(range(*[int(n) for n in bounds])) for bounds in arguments[1]])
    extents = [it.extent for it in (layout.layout if isinstance(layout, SwizzledLayout) else layout).shard]
    if operation == "permute_dims":
        return _plain([extents[k] for k in arguments[0]])
    if operation == "permute_by_groups":
        seps, perm = arguments
        return _plain([product(extents[seps[g] : seps[g + 1]]) for g in perm])
    return None


def _plain(shape: Any) -> tuple[int, ...]:
    return tuple([int(n) for n in as_shape(shape, "explore")])  # type: ignore[arg-type]  # no symbols here


def _text(argument: Any) -> str:
    if isinstance(argument, (TileLayout, SwizzledLayout, Spec)):
        return str(argument)
    if isinstance(argument, list):
        return _text(tuple(argument))  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
    if isinstance(argument, tuple):
        inner = ", ".join([_text(x) for x in argument])  # pyright: ignore[reportUnknownVariableType]
        return f"({inner}{',' if len(argument) == 1 else ''})"  # pyright: ignore[reportUnknownArgumentType]
    return repr(argument)
