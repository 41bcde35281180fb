"""Windows: boxes of tensors in global memory whose extents, strides and place are known when a kernel runs.

Data only, as tiles are.  What a copy between a window and a tile does at the tensor's rim is said here once: elements
outside read as zeros and are not written, and memory that holds no element of the box is never touched.  No instruction
may enter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tilelayout import LayoutError, TileLayout
from tilelayout.expr import Expr, Index, Var, bounds
from tilelayout.parts import as_extent, as_integer, product

from .dtypes import DType, dtype

Dimension = tuple[tuple[Index, Index], ...]
"""(extent, stride) of each iter of one logical dimension, the outermost first, strides in elements."""

MAX_DISTANCE = (1 << 58) - 1
"""Elements that any place of a tensor is away from its first, at most: 64 bits hold it in bytes."""
_MOST = (1 << 31) - 1025
"""Extents of a matrix, and what is between its rows, such that coordinates fit 32 bits."""


@dataclass(frozen=True)
class Window:
    """A box of a tensor in global memory, of constant extents at a place that a kernel calculates.

    Element ``(i, j, ..)`` of the box is element ``x = origin + (i, j, ..)`` of the tensor, which lies at
    ``base + sum over dimensions of sum over iters ((x_d // product(later extents)) % extent) * stride`` elements from
    the tensor's pointer, the outermost iter of a dimension without ``%``.  It is outside the tensor, and has no place,
    where ``x_d >= sizes[d]`` in any dimension.

    In a `copy` it takes the place of a tile in global memory.

    Attributes:
        name: of the tensor: of the kernel's parameter.
        dtype: of its elements.
        dims: per logical dimension its iters.  A single iter is a plain stride; its extent is the tensor's.
        sizes: extents of the tensor.
        origin: where the box begins, never negative.
        box: its extents.
        alignment: bytes that the pointer is a multiple of, and every stride but the 1 of the contiguous dimension, and
            `base`.  A promise about run-time values, which whoever launches keeps.
        base: elements from the pointer to element 0.

    Errors: LayoutError for what is wrong of itself: ranks that differ, a negative origin or stride, a variable without
    bounds, a constant stride that breaks the promise of alignment.

    >>> from tilelayout.expr import Var
    >>> M, K, ld = Var("M", 1, 1 << 20), Var("K", 1, 1 << 20), Var("lda", 1, 1 << 20)
    >>> m, k = Var("m", 0, 1 << 20), Var("k", 0, 1 << 20)
    >>> A = Window("A", "float16", (((M, ld),), ((K, 1),)), (M, K), (m, k), (128, 64), 16)
    >>> print(A)
    A[m:m + 128, k:k + 64]
    >>> A.place((m + 1, k + 2)), A.contiguous
    (k + lda + lda*m + 2, 1)
    """

    name: str
    dtype: str
    dims: tuple[Dimension, ...]
    sizes: tuple[Index, ...]
    origin: tuple[Index, ...]
    box: tuple[int, ...]
    alignment: int
    base: Index = 0

    def __post_init__(self) -> None:
        what = f"Window {self.name}"
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise LayoutError("Window", f"name {self.name!r} is not an identifier")
        object.__setattr__(self, "dtype", dtype(self.dtype).name)
        ranks = [len(x) for x in (self.dims, self.sizes, self.origin, self.box)]
        if min(ranks) < 1 or len(set(ranks)) > 1:
            raise LayoutError(what, f"ranks of dims, sizes, origin and box differ: {ranks}")
        box = tuple([as_extent(n, what, f"extent {d} of the box") for d, n in enumerate(self.box)])
        if any(type(n) is not int for n in box):
            raise LayoutError(what, f"box {self.box} is not of constant extents")
        object.__setattr__(self, "box", box)
        _check_values(self, what)
        _check_alignment(self, what)

    @classmethod
    def of(
        cls,
        name: str,
        type_name: Any,
        layout: TileLayout,
        sizes: Sequence[int],
        origin: Sequence[Index],
        box: Sequence[int],
        alignment: int,
    ) -> Window:
        """A window on a tensor of constant extents that a layout on memory places.

        Errors: LayoutError for a layout that is not strided on m alone, has a replica or goes backwards.

        >>> from tilelayout import S
        >>> Window.of(
        ...     "x", "float16", TileLayout(S[(2, 8, 8) : (1024, 8, 128)]), (16, 8), (0, 0), (16, 8), 16
        ... ).dims
        (((2, 1024), (8, 8)), ((8, 128),))
        """
        what = f"Window {name}"
        extents = tuple([as_extent(n, what, "size") for n in sizes])
        if layout.size() != product(extents):
            raise LayoutError(
                what, f"sizes {extents} have {product(extents)} elements, {layout} has {layout.size()}"
            )
        if any(it.extent != 1 for it in layout.replica):
            raise LayoutError(
                what,
                f"layout {layout} has a replica; a tensor has one place for each element",
                "the layout without R[...]",
            )
        wrong = [it for it in layout.shard if it.extent != 1 and it.axis != "m"]
        if wrong or any(v != 0 and a != "m" for a, v in layout.offset.items()):
            raise LayoutError(
                what, f"layout {layout} is not on m alone; global memory is", "strides without an axis"
            )
        grouped, seps = layout.canonicalize().group(extents)
        dims = tuple(
            [
                tuple([(it.extent, it.stride) for it in grouped.shard[seps[d] : seps[d + 1]]])
                for d in range(len(extents))
            ]
        )
        base = layout.offset.get("m", 0)  # type: ignore[call-overload]
        return cls(name, type_name, dims, extents, tuple(origin), tuple(box), alignment, base)  # type: ignore[arg-type]

    @classmethod
    def matrix(
        cls,
        name: str,
        type_name: Any,
        box: Sequence[int],
        order: Literal["row", "column"] = "row",
        alignment: int = 16,
    ) -> Window:
        """Box number (i, j) of a matrix of any extents that is cut into boxes, the last of them at its rim.

        Variables: ``{name}_rows``, ``{name}_columns`` and ``{name}_leading``, the elements between neighbors along the
        dimension that is not contiguous; ``{name}_i`` and ``{name}_j``.

        Errors: LayoutError for an order that is neither "row" nor "column", a box that is not two positive integers,
        and as of `Window`.

        >>> print(Window.matrix("A", "float16", (128, 64)))
        A[128*A_i:128*A_i + 128, 64*A_j:64*A_j + 64]
        """
        what = f"Window {name}"
        if order not in ("row", "column"):
            raise LayoutError(what, f"order {order!r}", "'row' or 'column'")
        box = _matrix_box(box, what)
        rows, columns = (Var(f"{name}_{x}", 1, _MOST) for x in ("rows", "columns"))
        leading: Index = Var(f"{name}_leading", 1, _MOST)
        strides: tuple[Index, Index] = (leading, 1) if order == "row" else (1, leading)
        dims = tuple([((n, s),) for n, s in zip((rows, columns), strides, strict=True)])
        origin = tuple([Var(f"{name}_{x}", 0, _MOST // n) * n for x, n in zip("ij", box, strict=True)])
        return cls(name, type_name, dims, (rows, columns), origin, box, alignment)

    # --- what a copy asks of a tile -------------------------------------------------------------

    scope: ClassVar[Literal["global"]] = "global"

    @property
    def tile(self) -> Window:
        """Itself: it is the operand and its tensor in one."""
        return self

    @property
    def extents(self) -> tuple[int, ...]:
        """Of the box."""
        return self.box

    @property
    def element(self) -> DType:
        """The element type with its width and names."""
        return dtype(self.dtype)

    # --- places ---------------------------------------------------------------------------------

    @property
    def contiguous(self) -> int | None:
        """The dimension whose neighbors are neighbors in memory; None where there is none that is known."""
        found = [d for d, iters in enumerate(self.dims) if iters[-1][1] == 1]
        return max(found, key=lambda d: self.box[d], default=None)

    def place(self, x: Sequence[Index]) -> Index:
        """Elements from the pointer to the tensor's element `x`, if it has it."""
        total: Index = self.base
        for iters, coordinate in zip(self.dims, x, strict=True):
            total = total + distance(iters, coordinate)
        return total

    def __str__(self) -> str:
        return (
            f"{self.name}["
            + ", ".join(f"{o}:{o + n}" for o, n in zip(self.origin, self.box, strict=True))
            + "]"
        )


def distance(iters: Dimension, x: Index) -> Index:
    """What coordinate `x` of a dimension adds to the place of an element.

    >>> distance(((4, 100), (8, 1)), 19)
    203
    """
    total: Index = 0
    later: Index = 1
    for k in range(len(iters) - 1, -1, -1):
        extent, stride = iters[k]
        digit = x // later if not isinstance(later, int) or later > 1 else x
        total = total + (digit % extent if k else digit) * stride
        later = later * extent
    return total


def _matrix_box(box: Any, what: str) -> tuple[int, int]:
    try:
        found = tuple([as_extent(n, what, "extent") for n in box])
    except (LayoutError, TypeError):
        found = ()
    if len(found) != 2 or any(type(n) is not int for n in found):
        raise LayoutError(what, f"box = {box!r}", "two positive integers")
    return found  # type: ignore[return-value]


def _check_values(window: Window, what: str) -> None:
    """All of them integers with bounds; nothing goes backwards or begins before the tensor."""
    named = [("base", window.base)]
    named += [(f"size {d}", x) for d, x in enumerate(window.sizes)]
    named += [(f"origin {d}", x) for d, x in enumerate(window.origin)]
    for d, iters in enumerate(window.dims):
        if not iters:
            raise LayoutError(what, f"dimension {d} has no iter")
        named += [
            (f"{n} of dimension {d}", x)
            for it in iters
            for n, x in zip(("extent", "stride"), it, strict=True)
        ]
    for name, x in named:
        if not isinstance(x, Expr):
            as_integer(x, what, name)
        low, high = bounds(x) if isinstance(x, Expr) else (x, x)
        if low is None or high is None:
            raise LayoutError(what, f"{name} {x} is unbounded", "give its variables bounds")
        least = 1 if name.startswith(("size", "extent")) else 0
        if low < least:
            remedy = (
                "copy the tensor, and strides from 0" if name.startswith("stride") else f"{least} or more"
            )
            raise LayoutError(what, f"{name} {x} reaches {low}", remedy)


def _check_alignment(window: Window, what: str) -> None:
    """A power of two that holds whole elements, and constant strides that are multiples of it."""
    given, bits = as_integer(window.alignment, what, "alignment"), window.element.bits
    bits = 8 if bits == 6 else bits  # which takes a byte in memory
    if type(given) is not int or given < 1 or given & (given - 1) or given * 8 % bits:
        raise LayoutError(
            what, f"alignment {given} is no power of two that holds a whole number of {window.dtype}"
        )
    strides = [(f"stride {s} of dimension {d}", s) for d, iters in enumerate(window.dims) for _, s in iters]
    for name, x in (*strides, ("base", window.base)):
        if isinstance(x, int) and x != 1 and x * bits % (8 * given):
            raise LayoutError(
                what, f"{name} is {x * bits / 8:g} bytes, which are no multiple of the {given} promised"
            )


__all__ = ["MAX_DISTANCE", "Dimension", "Window", "distance"]
