"""Swizzled layouts: a tile layout followed by a swizzle of the memory coordinate.

`base` is the value and its evaluation, `questions` what can be asked of it, `layout` the algebra on top, `birth` makes
one from a tile layout, `text` reads it.  What decides stands in `algebra` (residues, unswizzle, swizzled_equal,
swizzled_tile), the maps themselves in `swizzle`.  Pictures, other systems and lowering may not be imported.
"""

from .layout import SwizzledLayout

__all__ = ["SwizzledLayout"]
