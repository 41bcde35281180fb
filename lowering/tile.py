"""Tiles: named pieces of a tensor with a shape, an element type, a scope and a layout.

Data only.  A tile says where its elements are; whether an operation can work with that is judged in `variants`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from tilelayout import LayoutError, SwizzledLayout, TileLayout
from tilelayout.display import Displayed
from tilelayout.expr import Expr, bounds
from tilelayout.parts import as_extent, as_integer, as_shape, product

from .dtypes import DType, dtype
from .registers import RegisterView, local_view

SCOPES = ("local", "shared", "global", "tensor")

MEMORY = ("shared", "global")
"""Scopes whose elements have byte addresses: a layout's `m` times the element's size, from the tile's first byte on."""

DEFAULT_ALIGNMENT = 16
MAX_ALIGNMENT = 1024
"""Bytes: of the widest access of a lane and of a row of ldmatrix, and of the period of the widest hardware swizzle."""


@dataclass(frozen=True)
class Tile(Displayed):
    """A tile of `shape` elements of `dtype`, placed by `layout`.

    Two tiles are the same storage iff they are equal; operands that share a name must be equal.

    Args:
        name: an identifier; names the registers in what is emitted.
        shape: the extents of the logical dimensions.
        dtype: a name ("float16"), a numpy dtype or scalar type.
        layout: where each element lives; its size must be the shape's.  A swizzled layout only in shared memory.
        scope: "local" (registers of the lanes), "shared", "global" or "tensor" (tensor memory).
        alignment: bytes that the address of position 0 is a multiple of, in shared or global memory: a power of two.
            0 stands for 16, or for the period of a swizzle where that is more (up to 1024).

    Errors: LayoutError naming the argument that is wrong.
    """

    name: str
    shape: tuple[Any, ...]
    dtype: str
    layout: Any  # a TileLayout; in shared memory also a SwizzledLayout
    scope: str = "local"
    alignment: int = 0
    _painter: ClassVar[str] = "lowering.display"
    _explorer: ClassVar[str] = "lowering.explore"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise LayoutError("Tile", f"name {self.name!r} is not an identifier")
        object.__setattr__(self, "shape", as_shape(self.shape, f"Tile {self.name}"))
        object.__setattr__(self, "dtype", dtype(self.dtype).name)
        if not isinstance(self.layout, TileLayout | SwizzledLayout):
            raise LayoutError(
                f"Tile {self.name}", f"layout must be a TileLayout, got {type(self.layout).__name__}"
            )
        if self.scope not in SCOPES:
            raise LayoutError(
                f"Tile {self.name}", f"unknown scope {self.scope!r}", f"one of {', '.join(SCOPES)}"
            )
        if isinstance(self.layout, SwizzledLayout) and self.scope != "shared":
            raise LayoutError(
                f"Tile {self.name}",
                f"layout {self.layout} is swizzled, in {self.scope} scope",
                "only tiles in shared scope are swizzled",
            )
        object.__setattr__(self, "alignment", _alignment(self))
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
        """The region of a slice per dimension: ``A[0:16, 8:24]``; an integer keeps its dimension with extent 1.

        A begin may be an expression of run-time variables, ``stages[s]``, whose bounds keep it within the tile.
        """
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


def as_region(x: Any, role: str, operation: str = "gemm") -> TileRegion:
    """A tile or a region, as a region; LayoutError naming the operand's role otherwise."""
    if isinstance(x, Tile):
        return x.full
    if isinstance(x, TileRegion):
        return x
    raise LayoutError(operation, f"operand {role} must be a Tile or a region of one, got {type(x).__name__}")


def _alignment(tile: Tile) -> int:
    """The tile's alignment in bytes, checked; 0 where elements have no byte addresses."""
    what, given = f"Tile {tile.name}", as_integer(tile.alignment, f"Tile {tile.name}", "alignment")
    if type(given) is not int or given < 0 or given & (given - 1):
        raise LayoutError(what, f"alignment {given} is no power of two")
    if tile.scope not in MEMORY:
        if given:
            raise LayoutError(what, f"alignment {given} in {tile.scope} scope", "only memory is aligned")
        return 0
    size = max(1, tile.element.bits // 8)
    size = 1 << (size - 1).bit_length()
    if given and given < size:
        raise LayoutError(what, f"alignment {given} is less than the {size} bytes of a {tile.dtype}")
    if given:
        return given
    swizzle = tile.layout.swizzle if isinstance(tile.layout, SwizzledLayout) else None
    period = 0 if swizzle is None else (tile.element.bits << swizzle.width) // 8
    return max(DEFAULT_ALIGNMENT, min(period, MAX_ALIGNMENT))


def _bounds(name: str, shape: tuple[Any, ...], item: Any) -> tuple[tuple[Any, Any], ...]:
    items = item if isinstance(item, tuple) else (item,)
    what = f"{name}[...]"
    if len(items) > len(shape):
        raise LayoutError(what, f"{len(items)} indices for the {len(shape)} dimensions of {shape}")
    out: list[tuple[Any, Any]] = []
    for d, n in enumerate(shape):
        part = items[d] if d < len(items) else slice(None)
        if not isinstance(part, slice):
            begin = _bound(part, what, f"index of dimension {d}")
            part = slice(begin, begin + 1)
        if part.step not in (None, 1):
            raise LayoutError(what, f"dimension {d}: step {part.step}, only whole ranges are regions")
        begin = _bound(0 if part.start is None else part.start, what, f"begin of dimension {d}")
        end = _bound(n if part.stop is None else part.stop, what, f"end of dimension {d}")
        if all(type(x) is int for x in (begin, end, n)) and not 0 <= begin < end <= n:
            raise LayoutError(what, f"dimension {d}: range [{begin}, {end}) is not within [0, {n})")
        if isinstance(begin, Expr) or isinstance(end, Expr):
            _check_run_time(begin, end, n, what, d)
        length = as_integer(end - begin, what, f"length of dimension {d}")
        if type(length) is int:
            as_extent(length, what, f"length of dimension {d}")
        out.append((begin, end))
    return tuple(out)


def _bound(x: Any, what: str, which: str) -> Any:
    """An end of a range: an integer, or an expression of run-time variables."""
    return x if isinstance(x, Expr) else as_integer(x, what, which)


def _check_run_time(begin: Any, end: Any, n: Any, what: str, d: int) -> None:
    """A range that begins at run time has a constant length, and its variables' bounds keep it within the tile."""
    length = end - begin
    if type(length) is not int or type(n) is not int:
        raise LayoutError(what, f"dimension {d}: range [{begin}, {end}) of {n} has no constant length")
    low, high = bounds(begin)
    if low is None or high is None or low < 0 or high + length > n:
        raise LayoutError(
            what,
            f"dimension {d}: range [{begin}, {end}) begins at {low} to {high}, and is not within [0, {n})",
            "give its variables bounds that keep it inside",
        )
