"""Matrices that a layout places: what a layout must be, and what follows from it of order and alignment."""

from __future__ import annotations

from math import gcd

from tilelayout import LayoutError, TileLayout

from ...dtypes import dtype as element_type
from ...window import Window
from .globals import BATCH_LIMIT, LEADING_LIMIT
from .problem import Matrix

WIDEST = 16
"""Bytes that everything is aligned to in the best case."""


def placed(name: str, dtype: str, layout: TileLayout, shape: tuple[int, int]) -> Matrix:
    """A matrix of a kernel that a layout places, as well aligned as the layout is.

    Post-condition: the pointer aside, each element of the contiguous dimension whose coordinate is a multiple of the
    alignment is aligned, and so many bytes from there are its neighbors.

    Errors: LayoutError for a layout of another size, one that is not in memory or goes backwards there, and one that
    reaches beyond what a kernel's arithmetic holds.

    >>> from tilelayout import S
    >>> a = placed("A", "float16", TileLayout(S[(64, 4, 8) : (40, 2560, 1)]), (64, 32))
    >>> a.order, a.alignment
    ('row', 16)
    """
    _check(name, layout, shape)
    window = whole(name, dtype, layout, shape)
    contiguous = 1 if window.contiguous is None else window.contiguous
    order = "row" if contiguous == 1 else "column"
    return Matrix(name, dtype, order, _alignment(window, contiguous), layout, shape)


def whole(name: str, dtype: str, layout: TileLayout, shape: tuple[int, int]) -> Window:
    """All of such a matrix."""
    return Window.of(name, dtype, layout, shape, (0, 0), shape, element_type(dtype).bits // 8)


def is_boxed(matrix: Matrix) -> bool:
    """Whether the copy engine can know the matrix: in rows or columns a stride apart, which begin at the pointer."""
    if matrix.layout is None or matrix.shape is None:
        return True
    window = whole(matrix.name, matrix.dtype, matrix.layout, matrix.shape)
    single = all(len(iters) == 1 and iters[0][1] != 0 for iters in window.dims)
    return single and window.base == 0 and window.contiguous == matrix.contiguous


def _alignment(window: Window, contiguous: int) -> int:
    """Bytes that `base`, every stride but that of the contiguous iter, and the lines of neighbors are multiples of."""
    each = window.element.bits // 8
    steps = [window.base]
    for d, iters in enumerate(window.dims):
        extent, stride = iters[-1]
        lies = d == contiguous and stride == 1
        steps += [s for _, s in (iters[:-1] if lies else iters)]
        steps += [extent] if lies and len(iters) > 1 else []
        if d == contiguous and not lies:
            return each
    return max(gcd(WIDEST, *[s * each for s in steps]), each)  # type: ignore[operator,misc]


def _check(name: str, layout: TileLayout, shape: tuple[int, int]) -> None:
    every = (*layout.shard, *layout.replica)
    numbers = [x for it in every for x in (it.extent, it.stride)] + list(layout.offset.values())
    if not all(type(x) is int for x in numbers):
        raise LayoutError("gemm", f"{name} is placed by {layout}, which has symbols", "layout.subs(...)")
    if layout.size() != shape[0] * shape[1]:
        raise LayoutError(
            "gemm",
            f"{name} is {shape[0]} x {shape[1]}, its layout has {layout.size()} elements",
            f"a layout of {shape[0] * shape[1]} elements, or another shape",
        )
    where = f"{name} is placed by {layout}"
    beside = [it.axis for it in every if it.extent != 1 and it.axis != "m"]
    beside += [axis for axis, v in layout.offset.items() if v and axis != "m"]
    if beside:
        raise LayoutError(
            "gemm",
            f"{where}, on {beside[0]}; global memory is on m alone",
            f"strides without an axis, as S[{shape[0]}, {shape[1]}] has",
        )
    if any(it.extent != 1 for it in layout.replica):
        raise LayoutError(
            "gemm", f"{where}, a replica; an element is read from one place", "the layout without R[...]"
        )
    strides = [it.stride for it in layout.shard if it.extent != 1]
    offset = layout.offset.get("m", 0)  # type: ignore[call-overload]
    backwards = [s for s in strides if s < 0]
    if backwards:
        raise LayoutError(
            "gemm",
            f"{where}, which goes backwards by a stride of {backwards[0]}",
            "copy it, and strides from 0",
        )
    if offset < 0:
        raise LayoutError(
            "gemm", f"{where}, which begins {-offset} elements before its pointer", "an offset from 0"
        )
    # What a coordinate is multiplied by, all together: a kernel's coordinates are those of the largest extents.
    for what, value, most in (("strides", sum(strides), LEADING_LIMIT), ("offset", offset, BATCH_LIMIT)):
        if value > most:
            raise LayoutError(
                "gemm",
                f"{where}, whose {what} of {value} elements {'are' if what == 'strides' else 'is'} beyond {most}, "
                "which the kernel's arithmetic holds",
                "divide the problem",
            )


__all__ = ["is_boxed", "placed"]
