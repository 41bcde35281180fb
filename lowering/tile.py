"""Tiles: named pieces of a tensor with a shape, an element type, a scope and a layout.

Data only.  A tile says where its elements are; whether an operation can work with that is judged in `variants`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from tilelayout import LayoutError, TileLayout
from tilelayout.display import Displayed
from tilelayout.parts import as_extent, as_integer, as_shape, product

from .dtypes import DType, dtype
from .registers import RegisterView, local_view

SCOPES = ("local", "shared", "global", "tensor")


@dataclass(frozen=True)
class Tile(Displayed):
    """A tile of `shape` elements of `dtype`, placed by `layout`.

    Two tiles are the same storage iff they are equal; operands that share a name must be equal.

    Args:
        name: an identifier; names the registers in what is emitted.
        shape: the extents of the logical dimensions.
        dtype: a name ("float16"), a numpy dtype or scalar type.
        layout: where each element lives; its size must be the shape's.
        scope: "local" (registers of the lanes), "shared", "global" or "tensor" (tensor memory).

    Errors: LayoutError naming the argument that is wrong.
    """

    name: str
    shape: tuple[Any, ...]
    dtype: str
    layout: TileLayout
    scope: str = "local"
    _painter: ClassVar[str] = "lowering.display"
    _explorer: ClassVar[str] = "lowering.explore"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise LayoutError("Tile", f"name {self.name!r} is not an identifier")
        object.__setattr__(self, "shape", as_shape(self.shape, f"Tile {self.name}"))
        object.__setattr__(self, "dtype", dtype(self.dtype).name)
        if not isinstance(self.layout, TileLayout):
            raise LayoutError(
                f"Tile {self.name}", f"layout must be a TileLayout, got {type(self.layout).__name__}"
            )
        if self.scope not in SCOPES:
            raise LayoutError(
                f"Tile {self.name}", f"unknown scope {self.scope!r}", f"one of {', '.join(SCOPES)}"
            )
        size, have = product(self.shape), self.layout.size()
        if size != have:
            raise LayoutError(
                f"Tile {self.name}",
                f"shape {self.shape} has {size} elements, layout {self.layout} has {have}",
            )

    @property
    def element(self) -> DType:
        """The element type with its width and names."""
        return dtype(self.dtype)

    def __getitem__(self, item: Any) -> TileRegion:
        """The region of a slice per dimension: ``A[0:16, 8:24]``; an integer keeps its dimension with extent 1."""
        return TileRegion(self, _bounds(self.name, self.shape, item))

    __iter__ = None  # a tile is indexed by slices; it is no sequence of its rows

    @cached_property
    def full(self) -> TileRegion:
        """The whole tile as a region."""
        return TileRegion(self, tuple([(0, n) for n in self.shape]))

    def local(self, *shape: Any, layout: TileLayout | None = None) -> RegisterView:
        """A view of the registers that one lane holds, as an array of `shape`.

        Without `layout`: the raw register span in physical order, gaps and the offset included; the product of
        `shape` must be that span.  With `layout`: index -> ``m`` of the layout, a mediated view.
        """
        if self.scope != "local":
            raise LayoutError(
                f"{self.name}.local", f"the tile is in {self.scope} scope", "only registers have local views"
            )
        return local_view(self.name, self.layout, self.shape, shape, layout)

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)} in {self.scope} {self.layout}"


@dataclass(frozen=True)
class TileRegion(Displayed):
    """A box of a tile: (begin, end) per dimension, half open."""

    tile: Tile
    bounds: tuple[tuple[Any, Any], ...]
    extents: tuple[Any, ...] = field(init=False)
    _painter: ClassVar[str] = "lowering.display"
    _explorer: ClassVar[str] = "lowering.explore"

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "extents", tuple([as_integer(e - b, str(self), "an extent") for b, e in self.bounds])
        )

    __iter__ = None  # like a tile, a region is no sequence of its rows

    def __getitem__(self, item: Any) -> TileRegion:
        """The region within this one, counted from its begin."""
        inner = _bounds(str(self), self.extents, item)
        pairs = zip(self.bounds, inner, strict=True)
        return TileRegion(self.tile, tuple([(b + begin, b + end) for (b, _), (begin, end) in pairs]))

    @property
    def is_full(self) -> bool:
        """Whether the region is its whole tile."""
        return all(b == 0 and e == n for (b, e), n in zip(self.bounds, self.tile.shape, strict=True))

    def __str__(self) -> str:
        return self.tile.name + (
            "" if self.is_full else "[" + ", ".join(f"{b}:{e}" for b, e in self.bounds) + "]"
        )


def as_region(x: Any, role: str) -> TileRegion:
    """A tile or a region, as a region; LayoutError naming the operand's role otherwise."""
    if isinstance(x, Tile):
        return x.full
    if isinstance(x, TileRegion):
        return x
    raise LayoutError("gemm", f"operand {role} must be a Tile or a region of one, got {type(x).__name__}")


def _bounds(name: str, shape: tuple[Any, ...], item: Any) -> tuple[tuple[Any, Any], ...]:
    items = item if isinstance(item, tuple) else (item,)
    what = f"{name}[...]"
    if len(items) > len(shape):
        raise LayoutError(what, f"{len(items)} indices for the {len(shape)} dimensions of {shape}")
    out: list[tuple[Any, Any]] = []
    for d, n in enumerate(shape):
        part = items[d] if d < len(items) else slice(None)
        if not isinstance(part, slice):
            begin = as_integer(part, what, f"index of dimension {d}")
            part = slice(begin, begin + 1)
        if part.step not in (None, 1):
            raise LayoutError(what, f"dimension {d}: step {part.step}, only whole ranges are regions")
        begin = as_integer(0 if part.start is None else part.start, what, f"begin of dimension {d}")
        end = as_integer(n if part.stop is None else part.stop, what, f"end of dimension {d}")
        if all(type(x) is int for x in (begin, end, n)) and not 0 <= begin < end <= n:
            raise LayoutError(what, f"dimension {d}: range [{begin}, {end}) is not within [0, {n})")
        length = as_integer(end - begin, what, f"length of dimension {d}")
        if type(length) is int:
            as_extent(length, what, f"length of dimension {d}")
        out.append((begin, end))
    return tuple(out)
