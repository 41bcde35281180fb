"""`TileLayout.swizzle`: a swizzled layout from a tile layout and the parameters of a swizzle, whatever they count."""

from __future__ import annotations

from ..errors import LayoutError
from ..swizzle import Swizzle, XorMap
from .layout import SwizzledLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..layout import TileLayout


def swizzled(
    layout: TileLayout, swizzle: Any, base: Any, shift: Any, unit_bits: Any, element_bits: Any
) -> SwizzledLayout:
    """`layout` and the swizzle, which is rescaled from units of `unit_bits` to elements of `element_bits`.

    Errors: LayoutError for parameters that are no swizzle, one width without the other, and those of `in_units`.
    """
    if isinstance(swizzle, XorMap):
        if base is not None or shift is not None:
            raise LayoutError(
                "swizzle", f"{swizzle} has its parameters, and got base {base} and shift {shift} besides"
            )
        chosen = swizzle
    elif base is None or shift is None:
        raise LayoutError(
            "swizzle",
            f"takes a swizzle or its three parameters, got {swizzle!r}, base {base} and shift {shift}",
            "swizzle(Swizzle(3, 3, 3)) or swizzle(3, 3, 3)",
        )
    else:
        chosen = Swizzle(swizzle, base, shift)
    if unit_bits is None and element_bits is None:
        return SwizzledLayout(layout, chosen)
    if unit_bits is None or element_bits is None:
        raise LayoutError(
            "swizzle",
            f"unit_bits {unit_bits} and element_bits {element_bits}: to rescale, the width of what the swizzle counts "
            "and the width of an element are needed",
            "give both, or none where the swizzle counts elements",
        )
    return SwizzledLayout(layout, chosen.in_units(unit_bits, element_bits))
