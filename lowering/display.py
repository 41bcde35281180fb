"""How tiles, calls, lowered programs and instructions show themselves: pictures built from the views of tilelayout.

The room that `tilelayout.display.Displayed` loads when one of them is first shown.  It only arranges: what a cell says
comes from the layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tilelayout import LayoutError
from tilelayout.draw import Picture, gemm, hardware, iters, logical, shared
from tilelayout.draw.html import figure_with_text
from tilelayout.draw.painter import SHOWN, VIEWS
from tilelayout.draw.terminal import rich_lines as lines_of
from tilelayout.errors import nearest

from . import fragments
from .api import Lowered
from .dtypes import dtype
from .isa import MmaInstruction
from .ops import GemmCall
from .tile import Tile, TileRegion


def draw(value: Any, view: str | None, /, *arguments: Any, **options: Any) -> Picture:
    """A picture of a tile, a region, a gemm call, what it was lowered to, or an instruction.

    Views: those of layouts for a tile or region, whose shape and element width are filled in; "gemm" (the default) and
    the operands' roles "A", "B", "C", "D", by logical position, or "A registers" and so on, for the others.
    Errors: LayoutError for an unknown view, naming the nearest, and for what the view cannot show.
    """
    if isinstance(value, Tile | TileRegion):
        return _tile_view(value, view, arguments, options)
    views: dict[str, Callable[..., Picture]] = {"gemm": lambda **o: composite(value, **o)}
    for role in "ABCD":
        views[role] = lambda role=role, **o: _operand(value, role, logical, o)
        views[f"{role} registers"] = lambda role=role, **o: _operand(value, role, hardware, o)
    name = "gemm" if view is None else view
    if name not in views or arguments:
        raise LayoutError("draw", f"unknown view {name!r}, {nearest(str(name), list(views))}")
    return views[name](**options)


def composite(value: Any, **options: Any) -> Picture:
    """A, B and D where they meet; options are those of `tilelayout.draw.gemm`."""
    operands, turned, title = operands_of(value)
    (A, a_shape, a_bits), (B, b_shape, b_bits) = operands["A"], operands["B"]
    D, (M, N), d_bits = operands["D"]
    K = a_shape[0] if turned[0] else a_shape[1]
    del b_shape
    given: dict[str, Any] = {
        "bits": (a_bits, b_bits, d_bits),
        "names": ("A", "B", "D"),
        "title": title,
        **options,
    }
    return gemm(A, B, D, (M, N, K), transpose_a=turned[0], transpose_b=turned[1], **given)


def operands_of(value: Any) -> tuple[dict[str, tuple[Any, tuple[int, ...], int]], tuple[bool, bool], str]:
    """Role -> (layout, shape, bits); whether A and B are held transposed; a title.

    Errors: LayoutError for a value that has no operands.
    """
    if isinstance(value, MmaInstruction):
        types = {"A": value.a, "B": value.b, "C": value.c, "D": value.d}
        found = {
            role: (fragments.layout(value, role), fragments.operand_shape(value, role), dtype(name).bits)  # type: ignore[arg-type]
            for role, name in types.items()
        }
        return found, (False, False), value.name
    call = value.call if isinstance(value, Lowered) else value
    if not isinstance(call, GemmCall):
        raise LayoutError("draw", f"no picture of {type(call).__name__} is known")
    title = str(call) if value is call else f"{call}, by {value.variant} for {value.context.target}"
    regions = {role: _region(region) for role, region in call.operands()}
    return regions, (call.transpose_a, call.transpose_b), title


def _region(region: TileRegion) -> tuple[Any, tuple[int, ...], int]:
    """Layout, shape and width of the elements of a region, without its dimensions of extent 1."""
    tile = region.tile
    layout = tile.layout if region.is_full else tile.layout.slice(tile.shape, region.bounds)
    shape = tuple([n for n in region.extents if n != 1])
    return layout, shape if len(shape) == 2 else region.extents, tile.element.bits


def _operand(value: Any, role: str, view: Callable[..., Picture], options: dict[str, Any]) -> Picture:
    layout, shape, bits = operands_of(value)[0][role]
    return view(layout, shape, **{"bits": bits, "title": f"{role}: {layout}", **options})


def _tile_view(
    value: Tile | TileRegion, view: str | None, arguments: tuple[Any, ...], options: dict[str, Any]
) -> Picture:
    region = value.full if isinstance(value, Tile) else value
    tile = region.tile
    name = "logical" if view is None else view
    if name not in VIEWS:
        raise LayoutError("draw", f"unknown view {name!r}, {nearest(str(name), list(VIEWS))}")
    layout = tile.layout if region.is_full else tile.layout.slice(tile.shape, region.bounds)
    given: dict[str, Any] = {"title": f"{region}: {tile.dtype} in {tile.scope}, {layout}", **options}
    if VIEWS[name] is iters:
        return iters(layout, *arguments, **given)
    if VIEWS[name] in (logical, hardware, shared):
        given.setdefault("bits", tile.element.bits)
    if name == "operation":
        return VIEWS[name](layout, *arguments, **{"shape": region.extents, **given})
    if name == "before_after":
        return VIEWS[name](layout, *arguments, **given)
    return VIEWS[name](layout, region.extents, *arguments, **given)


def picture_of(value: Any) -> Picture | None:
    """What a value shows of itself; None where its layouts can't be drawn."""
    try:
        if isinstance(value, Tile | TileRegion):
            return draw(value, None, max_rows=SHOWN, max_columns=SHOWN)
        return composite(value, max_rows=SHOWN, max_columns=SHOWN)
    except LayoutError:
        pass
    try:
        return draw(value, "iters") if isinstance(value, Tile | TileRegion) else None
    except LayoutError:
        return None


def mimebundle(value: Any) -> dict[str, str]:
    """A value in a notebook: its text, a picture, and for what was lowered the nest below it."""
    picture = picture_of(value)
    if picture is None:
        return {"text/plain": repr(value)}
    below = str(value) if isinstance(value, Lowered) else ""
    return {
        "text/plain": repr(value),
        "text/html": figure_with_text(picture, below),
        "image/svg+xml": picture.svg(),
    }


def rich_lines(value: Any, console: Any, options: Any) -> Iterator[Any]:
    """A value in a rich console: its picture, and for what was lowered the nest below it."""
    from rich.text import Text

    picture = picture_of(value)
    if picture is None:
        yield Text(repr(value))
        return
    yield from lines_of(picture, console, options)
    if isinstance(value, Lowered):
        yield Text(str(value))
