"""The tile primitives as unresolved calls.  Data only: everything is judged when the call is lowered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tilelayout import LayoutError
from tilelayout.display import Displayed

from .tile import Tile, TileRegion, as_region
from .window import Window


class Call(Displayed, ABC):
    """What every call is: the name of its primitive, and operands by role."""

    primitive: ClassVar[str]
    _painter: ClassVar[str] = "lowering.display"
    _explorer: ClassVar[str] = "lowering.explore"

    @abstractmethod
    def operands(self) -> Iterator[tuple[str, Any]]:
        """(role, region) in an order of the call's own; a window where it is one."""

    @property
    def tiles(self) -> dict[str, Any]:
        """Role -> tile; a window stands for itself."""
        return {role: region.tile for role, region in self.operands()}


@dataclass(frozen=True)
class GemmCall(Call):
    """``D = alpha * A @ B + beta * C``, not lowered yet.

    Attributes:
        D, A, B, C: regions of tiles.
        transpose_a, transpose_b: whether A is held as (K, M) and B as (N, K); the logical orientation only.
        alpha, beta: numbers, or expressions that fold to numbers.
    """

    primitive: ClassVar[str] = "gemm"

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
class CopyCall(Call):
    """``dst = src``, element by element in logical order, not lowered yet.

    Attributes:
        dst, src: regions of tiles; one of them may be a window on a tensor of run-time extent.
    """

    primitive: ClassVar[str] = "copy"

    dst: TileRegion | Window
    src: TileRegion | Window

    def operands(self) -> Iterator[tuple[str, Any]]:
        """(role, region) in the order dst, src."""
        yield from (("dst", self.dst), ("src", self.src))

    def __str__(self) -> str:
        return f"{self.dst} ({self.dst.tile.scope}) = {self.src} ({self.src.tile.scope})"


def copy(dst: Tile | TileRegion | Window, src: Tile | TileRegion | Window) -> CopyCall:
    """Record ``dst = src`` on tiles (or regions of tiles) for `lower`.

    Both have the same extents, dimensions of extent 1 aside, and the same type: a copy converts nothing.  After it
    every place that dst's layout names for an element holds that element of src.  One side may be a `Window` on a
    tensor of run-time extent: elements outside the tensor read as zeros, and are not written.

    Errors: LayoutError for an operand that is no tile; all else is judged by `lower`.

    >>> from tilelayout import S, TileLayout, laneid
    >>> rows = Tile("rows", (32, 8), "float16", TileLayout(S[32, 8]), "shared")
    >>> held = Tile("held", (32, 8), "float16", TileLayout(S[(32, 8) : (1 @ laneid, 1)]))
    >>> print(copy(held, rows[0:32]))
    held (local) = rows (shared)
    """
    sides = [x if isinstance(x, Window) else as_region(x, r, "copy") for x, r in ((dst, "dst"), (src, "src"))]
    return CopyCall(*sides)


@dataclass(frozen=True)
class FillCall(Call):
    """``dst = value`` in every element, not lowered yet."""

    primitive: ClassVar[str] = "fill"

    dst: TileRegion
    value: Any

    def operands(self) -> Iterator[tuple[str, TileRegion]]:
        """(role, region) of dst alone."""
        yield "dst", self.dst

    def __str__(self) -> str:
        return f"{self.dst} = {self.value}"


def fill(dst: Tile | TileRegion, value: Any) -> FillCall:
    """Record ``dst = value`` on a tile in registers (or a region of one) for `lower`.

    The value is a number, rounded to the tile's type as `lowering.narrow.from_float` rounds.

    Errors: LayoutError for an operand that is no tile; all else is judged by `lower`.
    """
    return FillCall(as_region(dst, "dst", "fill"), value)


@dataclass(frozen=True)
class CastCall(Call):
    """``dst = src``, element by element in logical order, each converted to dst's type; not lowered yet."""

    primitive: ClassVar[str] = "cast"

    dst: TileRegion
    src: TileRegion

    def operands(self) -> Iterator[tuple[str, TileRegion]]:
        """(role, region) in the order dst, src."""
        yield from (("dst", self.dst), ("src", self.src))

    def __str__(self) -> str:
        return f"{self.dst} = {self.dst.tile.dtype}({self.src})"


def cast(dst: Tile | TileRegion, src: Tile | TileRegion) -> CastCall:
    """Record ``dst = src`` with conversion, on tiles in registers (or regions of tiles), for `lower`.

    Both have the same extents, dimensions of extent 1 aside, and each lane holds the same elements of both, in whatever
    order.  Numbers are rounded as `lowering.isa.convert` says, those of other types on their way through float32.

    Errors: LayoutError for an operand that is no tile; all else is judged by `lower`.

    >>> from lowering.fragments import D_FRAG
    >>> D = Tile("d", (16, 8), "float32", D_FRAG)
    >>> print(cast(Tile("h", (16, 8), "float16", D_FRAG), D))
    h = float16(d)
    """
    return CastCall(as_region(dst, "dst", "cast"), as_region(src, "src", "cast"))


@dataclass(frozen=True)
class ElementwiseCall(Call):
    """``dst = function(src, ...)``, element by element in logical order, not lowered yet.

    Attributes:
        function: a record of one result and as many operands as there are sources, one number in each.
        srcs: what it takes, in order: roles "src0", "src1" ..., or "src" where there is one.
    """

    primitive: ClassVar[str] = "elementwise"

    dst: TileRegion
    function: Any
    srcs: tuple[TileRegion, ...]

    def operands(self) -> Iterator[tuple[str, TileRegion]]:
        """(role, region) of dst and the sources."""
        yield "dst", self.dst
        for i, src in enumerate(self.srcs):
            yield "src" if len(self.srcs) == 1 else f"src{i}", src

    def __str__(self) -> str:
        name = getattr(self.function, "name", self.function)
        return f"{self.dst} = {name}({', '.join(map(str, self.srcs))})"


def elementwise(dst: Tile | TileRegion, function: Any, *srcs: Tile | TileRegion) -> ElementwiseCall:
    """Record ``dst = function(src, ...)`` on tiles in registers (or regions of tiles) for `lower`.

    All have the same extents, dimensions of extent 1 aside, and each lane holds the same elements of all of them.  The
    function is an instruction record such as ``lowering.isa.arithmetic.FMA["f32"]``, or what
    `lowering.backends.numba_cuda.scalar_instruction` makes of a Python function.  f32 operands may be elements of any
    type that converts to float32, and so may an f32 result.  A source may be dst itself, and is then given to `run` as
    ``dst=``.

    Errors: LayoutError for an operand that is no tile, or none at all; all else is judged by `lower`.
    """
    if not srcs:
        raise LayoutError(
            "elementwise", "a function of nothing", "fill(dst, value) writes a number everywhere"
        )
    regions = [
        as_region(x, "dst" if i == 0 else f"src{i - 1}", "elementwise") for i, x in enumerate((dst, *srcs))
    ]
    return ElementwiseCall(regions[0], function, tuple(regions[1:]))
