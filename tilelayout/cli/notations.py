"""Layouts as text in several notations."""

from __future__ import annotations

from ..errors import LayoutError
from ..swizzle import Swizzle
from ..swizzled import SwizzledLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Final

    from ..layout import TileLayout
    from ..parts import Iter

    Layout = TileLayout | SwizzledLayout


def tvm_text(layout: Layout) -> str:
    """What TVM prints for the layout, which `TileLayout.parse` and `SwizzledLayout.parse` read.

    Post-condition: parsing it gives a layout that is equal to this one.
    Errors: LayoutError for a swizzle that TVM's ComposeLayout can't say, and for a shard without iters.

    >>> tvm_text(TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 64 + 2 @ warpid))
    'T.TileLayout(T.S[(8, 4):(4 @ Axis.laneid, 1)] + T.R[2:4 @ Axis.warpid] + (64 + 2 @ Axis.warpid))'
    >>> tvm_text(SwizzledLayout(S[64], Swizzle(2, 3, 4)))
    'T.ComposeLayout(3, 2, 4, T.TileLayout(T.S[64:1]))'
    """
    if not isinstance(layout, SwizzledLayout):
        return _tile(layout)
    swizzle = layout.swizzle
    if not isinstance(swizzle, Swizzle):
        raise LayoutError("convert", f"TVM has no notation for {swizzle}, a product of swizzles")
    inner = "" if swizzle.shift >= 0 else ", swizzle_inner=False"
    return f"T.ComposeLayout({swizzle.base}, {swizzle.bits}, {abs(swizzle.shift)}, {_tile(layout.layout)}{inner})"


def _tile(layout: TileLayout) -> str:
    if not layout.shard:
        raise LayoutError(
            "convert", f"TVM has no notation for {layout}, whose shard has no iters", "--canonical"
        )
    text = f"T.S[{_bracket(layout.shard)}]"
    if layout.replica:
        text += f" + T.R[{_bracket(layout.replica)}]"
    terms = [_term(value, axis) for axis, value in sorted(layout.offset.items())]
    if terms:
        text += f" + {terms[0]}" if len(terms) == 1 else f" + ({' + '.join(terms)})"
    return f"T.TileLayout({text})"


def _bracket(iters: Sequence[Iter]) -> str:
    extents = [str(it.extent) for it in iters]
    strides = [_term(it.stride, it.axis) for it in iters]
    return (
        f"{extents[0]}:{strides[0]}" if len(iters) == 1 else f"({', '.join(extents)}):({', '.join(strides)})"
    )


def _term(value: Any, axis: Any) -> str:
    return str(value) if axis == "m" else f"{value} @ Axis.{axis}"


NOTATIONS: Final[dict[str, Callable[[Layout], str]]] = {"text": str, "python": repr, "tvm": tvm_text}
"""Name -> what writes a layout in it: the notation, the same as a Python expression, what TVM prints."""
