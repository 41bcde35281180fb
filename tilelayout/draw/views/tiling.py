"""Tilings: a tensor cut into tiles, and which warps (or other threads, or devices) hold each."""

from __future__ import annotations

from itertools import product as cartesian

from ...algebra.evaluate import copies
from ...axis import axis as known_axis
from ...errors import LayoutError
from ...parts import as_integer, as_shape
from ...swizzled import SwizzledLayout
from ..colors import paint
from ..model import Cell, Grid, Panel, Picture
from ..places import (
    MAX_COLUMNS,
    MAX_ROWS,
    as_layout,
    drawn_shape,
    moving_axes,
    rows_and_columns,
    tile_layout,
    unflattened,
)
from ..wording import LETTERS, axis_order, coordinate, place_text, told
from .logical import as_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from ...axis import Axis
    from ..places import Layout

WRITTEN: Final = 6
"""Owners that a cell writes; of more it gives the number, and the hover lists them."""


def tiling(
    layout: Any,
    shape: Sequence[int] | int | None = None,
    tile: Sequence[int] | int = (16, 8),
    *,
    axes: Any = None,
    palette: str = "categories",
    title: str | None = None,
    max_rows: int = MAX_ROWS,
    max_columns: int = MAX_COLUMNS,
) -> Picture:
    """A cell for each tile, with everyone who holds some of it; several for replicas and for tiles that are shared out.

    Args:
        layout, shape: as for `logical`.
        tile: extents of a tile, one for each dimension of the shape, which they divide.
        axes: whose coordinates make an owner; by default all thread and device axes but the lanes.

    Post-condition: a cell's `holders` are exactly the owners of its elements, as far as `axes` tell them apart; a cell
    is marked "mixed" iff its elements have different sets of them.
    Errors: LayoutError where the tile doesn't divide the shape.

    >>> from tilelayout.draw import tiling
    >>> D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    >>> two = D.tile(TileLayout(S[(2, 1) : (1 @ warpid, 0)]), (2, 1), (16, 8))
    >>> print(tiling(two, (32, 8), (16, 8)))
    S[(2, 2, 8, 1, 4, 2) : (1 @ warpid, 2, 4 @ laneid, 0, 1 @ laneid, 1)]
    32 x 8 elements in tiles of 16 x 8, each with the warpid of its holders
         0
     0  W0
    16  W1
    """
    drawn = as_layout(layout, "tiling")
    dims = drawn_shape(drawn, shape, "tiling")
    steps = _tile(tile, dims)
    limits = as_limits(max_rows, max_columns, "tiling")
    chosen = _axes(drawn, axes)
    counts = tuple([n // t for n, t in zip(dims, steps, strict=True)])
    rows, columns = rows_and_columns(counts)
    owners = _owners(drawn, dims, chosen)
    cells = [
        tuple(
            [
                _cell(owners, dims, steps, unflattened(r * columns + c, counts), chosen)
                for c in range(min(columns, limits[1]))
            ]
        )
        for r in range(min(rows, limits[0]))
    ]
    outer = counts[:-1] or (1,)
    grid = Grid(
        tuple(cells),
        tuple([_corner(unflattened(r, outer), steps) for r in range(len(cells))]),
        tuple([str(c * steps[-1]) for c in range(min(columns, limits[1]))]),
        size=(rows, columns),
        join=",",
    )
    names = ", ".join(chosen)
    painted, legend = paint([grid], names, palette)
    return Picture(
        str(layout) if title is None else title,
        (Panel(painted[0]),),
        f"{' x '.join(map(str, dims))} elements in tiles of {' x '.join(map(str, steps))}, "
        f"each with the {names} of its holders",
        legend=legend,
        palette=palette,
    )


def _tile(tile: Any, dims: tuple[int, ...]) -> tuple[int, ...]:
    steps = tuple([as_integer(n, "tiling", "extent of the tile") for n in as_shape(tile, "tiling", "tile")])
    if len(steps) != len(dims):
        raise LayoutError("tiling", f"the tile {steps} and the shape {dims} have different ranks")
    for d, (n, t) in enumerate(zip(dims, steps, strict=True)):
        if type(t) is not int or n % t:
            raise LayoutError("tiling", f"dimension {d}: a tile of {t} doesn't divide the extent {n}")
    return steps  # type: ignore[return-value]  # plain


def _axes(layout: Layout, axes: Any) -> list[Axis]:
    if axes is not None:
        return [known_axis(a) for a in ([axes] if isinstance(axes, str) else axes)]
    found = [a for a in moving_axes(layout) if a.kind != "memory" and a != "laneid"]
    return sorted(found, key=axis_order) or [known_axis("warpid")]


def _owners(layout: Layout, dims: tuple[int, ...], axes: list[Axis]) -> Any:
    """flat index -> the frozenset of owners, each a tuple of coordinates on `axes`."""
    plain = tile_layout(layout)
    size = int(plain.size())  # type: ignore[arg-type]
    table = plain.table(size)
    columns = [table[a].tolist() if a in table else [0] * size for a in axes]
    swizzle = layout.swizzle.apply if isinstance(layout, SwizzledLayout) else None
    steps = list(dict.fromkeys(tuple([step.get(a, 0) for a in axes]) for step in copies(plain.replica)))
    known: dict[tuple[int, ...], frozenset[tuple[int, ...]]] = {}
    out: list[frozenset[tuple[int, ...]]] = []
    for base in zip(*columns, strict=True):
        if base not in known:
            places = [tuple([b + s for b, s in zip(base, step, strict=True)]) for step in steps]
            if swizzle is not None and "m" in axes:
                k = axes.index(known_axis("m"))
                places = [(*p[:k], swizzle(p[k]), *p[k + 1 :]) for p in places]
            known[base] = frozenset(places)
        out.append(known[base])
    return out


def _cell(
    owners: list[frozenset[tuple[int, ...]]],
    dims: tuple[int, ...],
    steps: tuple[int, ...],
    at: tuple[int, ...],
    axes: list[Axis],
) -> Cell:
    corner = [i * t for i, t in zip(at, steps, strict=True)]
    sets: dict[frozenset[tuple[int, ...]], None] = {}
    for inner in cartesian(*[range(c, c + t) for c, t in zip(corner, steps, strict=True)]):
        flat = 0
        for c, n in zip(inner, dims, strict=True):
            flat = flat * n + c
        sets[owners[flat]] = None
    places = sorted({place for found in sets for place in found})
    named = [dict(zip(axes, place, strict=True)) for place in places]
    lines = ["".join([f"{LETTERS.get(a, a)}{v}" for a, v in place.items()]) for place in named]
    if len(lines) > WRITTEN:
        lines = [*lines[:WRITTEN], f"{len(lines) - WRITTEN} more"]
    ends = [f"{c}-{c + t - 1}" for c, t in zip(corner, steps, strict=True)]
    title = [f"elements ({', '.join(ends)})", *told("owners", [_words(place) for place in named])]
    key = places[0][0] if len(axes) == 1 else places[0]
    marks = ("mixed",) if len(sets) > 1 else ()
    return Cell(tuple(lines), "\n".join(title), (tuple(corner),), tuple(named), key, marks=marks)


def _words(place: dict[Axis, int]) -> str:
    if "m" in place:
        return place_text(place)
    return ", ".join([place_text({a: v, "m": 0}).removesuffix(", slot 0") for a, v in place.items()])


def _corner(at: tuple[int, ...], steps: tuple[int, ...]) -> str:
    return coordinate([i * t for i, t in zip(at, steps, strict=False)])
