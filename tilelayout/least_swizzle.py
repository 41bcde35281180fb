"""The smallest description of what a swizzle does to some values: the map that is chosen when many do the same there.

A layout reaches some values of the memory coordinate only, and `canonicalize`, `pack` and `tile` want one map for all
that agree on those.  Layouts may not enter: the values come as a basis of the vectors over F2 that are reached.
"""

from __future__ import annotations

from .algebra import binary as _binary
from .swizzle import Swizzle, XorMap, simplest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def smallest_on(f: XorMap, span: Sequence[int]) -> XorMap:
    """The smallest map that does what `f` does on the span of these vectors, a result of `binary.basis`.

    >>> from tilelayout.swizzle import Swizzle
    >>> smallest_on(Swizzle(3, 3, 3), [32, 16, 8, 4, 2, 1]), smallest_on(Swizzle(3, 3, 3), [64, 8])
    (Swizzle(0, 0, 0), Swizzle(1, 3, 3))
    """
    return f if len(span) == f.width != 0 else smallest_map(span, [f.apply(v) for v in span])


def smallest_map(span: Sequence[int], images: Sequence[int]) -> XorMap:
    """The smallest map that takes ``span[k]`` to ``images[k]``: the identity, a swizzle, or any `XorMap`.

    Only what is asked for decides, so that equal functions get equal maps.  Both are independent, and `span` is a
    result of `binary.basis`.
    """
    moved = [v ^ image for v, image in zip(span, images, strict=True)]
    if not any(moved):
        return Swizzle(0, 0, 0)
    found = _binary.simplest_shift(span, moved, max([v.bit_length() for v in (*span, *images)]))
    return simplest(_binary.extended(span, images)) if found is None else Swizzle(*found)
