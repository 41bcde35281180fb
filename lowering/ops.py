"""The tile primitives as unresolved calls.  Data only: everything is judged when the call is lowered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tilelayout import LayoutError
from tilelayout.display import Displayed

from .tile import Tile, TileRegion, as_region


@dataclass(frozen=True)
class GemmCall(Displayed):
    """``D = alpha * A @ B + beta * C``, not lowered yet.

    Attributes:
        D, A, B, C: regions of tiles.
        transpose_a, transpose_b: whether A is held as (K, M) and B as (N, K); the logical orientation only.
        alpha, beta: numbers, or expressions that fold to numbers.
    """

    primitive: ClassVar[str] = "gemm"
    _painter: ClassVar[str] = "lowering.display"
    _explorer: ClassVar[str] = "lowering.explore"

    D: TileRegion
    A: TileRegion
    B: TileRegion
    C: TileRegion
    transpose_a: bool
    transpose_b: bool
    alpha: Any
    beta: Any

    def operands(self) -> Iterator[tuple[str, TileRegion]]:
        """(role, region) in the order D, A, B, C."""
        yield from (("D", self.D), ("A", self.A), ("B", self.B), ("C", self.C))

    @property
    def tiles(self) -> dict[str, Tile]:
        """Role -> tile."""
        return {role: region.tile for role, region in self.operands()}

    def __str__(self) -> str:
        a = f"{self.A}.T" if self.transpose_a else str(self.A)
        b = f"{self.B}.T" if self.transpose_b else str(self.B)
        return f"{self.D} = {self.alpha} * {a} @ {b} + {self.beta} * {self.C}"


def gemm(
    D: Tile | TileRegion,
    A: Tile | TileRegion,
    B: Tile | TileRegion,
    C: Tile | TileRegion,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: Any = 1.0,
    beta: Any = 0.0,
) -> GemmCall:
    """Record ``D = alpha * A @ B + beta * C`` on tiles (or regions of tiles) for `lower`.

    A is (M, K), or (K, M) with `transpose_a`; B is (K, N), or (N, K) with `transpose_b`; C and D are (M, N).  C is read
    only when beta is not 0, and may be D.

    Errors: LayoutError for an operand that is no tile and a flag that is no bool; all else is judged by `lower`.
    """
    for name, flag in (("transpose_a", transpose_a), ("transpose_b", transpose_b)):
        if not isinstance(flag, bool):
            raise LayoutError("gemm", f"{name} must be True or False, got {flag!r}")
    regions = [as_region(x, role) for x, role in ((D, "D"), (A, "A"), (B, "B"), (C, "C"))]
    return GemmCall(*regions, transpose_a, transpose_b, alpha, beta)


@dataclass(frozen=True)
class CopyCall(Displayed):
    """``dst = src``, element by element in logical order, not lowered yet."""

    primitive: ClassVar[str] = "copy"
    _painter: ClassVar[str] = "lowering.display"
    _explorer: ClassVar[str] = "lowering.explore"

    dst: TileRegion
    src: TileRegion

    def operands(self) -> Iterator[tuple[str, TileRegion]]:
        """(role, region) in the order dst, src."""
        yield from (("dst", self.dst), ("src", self.src))

    @property
    def tiles(self) -> dict[str, Tile]:
        """Role -> tile."""
        return {role: region.tile for role, region in self.operands()}

    def __str__(self) -> str:
        return f"{self.dst} ({self.dst.tile.scope}) = {self.src} ({self.src.tile.scope})"


def copy(dst: Tile | TileRegion, src: Tile | TileRegion) -> CopyCall:
    """Record ``dst = src`` on tiles (or regions of tiles) for `lower`.

    Both have the same extents, dimensions of extent 1 aside, and the same type: a copy converts nothing.  After it
    every place that dst's layout names for an element holds that element of src.

    Errors: LayoutError for an operand that is no tile; all else is judged by `lower`.

    >>> from tilelayout import S, TileLayout, laneid
    >>> rows = Tile("rows", (32, 8), "float16", TileLayout(S[32, 8]), "shared")
    >>> held = Tile("held", (32, 8), "float16", TileLayout(S[(32, 8) : (1 @ laneid, 1)]))
    >>> print(copy(held, rows[0:32]))
    held (local) = rows (shared)
    """
    return CopyCall(as_region(dst, "dst", "copy"), as_region(src, "src", "copy"))
