"""Questions about a swizzled layout: is it that function, is it injective, who is there?

A swizzle is a bijection on `m`: what is asked there is asked of the tile layout, before it.
"""

from __future__ import annotations

from ..algebra import injective as _injective
from ..algebra import residues as _residues
from ..algebra import swizzled_equal as _swizzled_equal
from ..algebra import tile as _tile
from ..algebra.equivalent import in_shape
from ..algebra.group import check_size
from ..algebra.integers import quotient, sign
from ..axis import axis as known_axis
from ..errors import LayoutError
from ..layout import TileLayout
from ..parts import M, as_integer, as_shape
from ..questions import Answer, Comparing
from ..swizzle import Swizzle
from .base import Swizzled, parts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..axis import Axis
    from ..parts import Integer, Parts


class SwizzledQuestions(Swizzled, Comparing):
    """What can be asked of a swizzled layout."""

    __slots__ = ()

    def equivalent(
        self,
        other: TileLayout | Swizzled,
        shape: Sequence[Any] | int | None = None,
        *,
        assuming: Any = None,
    ) -> Answer:
        """Whether `other` is the same function: the same set of owners at every index, offsets included.

        Witness: a flat index at which the owners differ, or its coordinate in `shape`, which must have the size of
        both.  Without a shape, layouts of different sizes differ at the first index that only one of them has.
        Errors: Undecided where neither arithmetic nor a list of 2**16 places tells; LayoutError where symbols decide.

        >>> tile = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))
        >>> tile.equivalent(TileLayout(S[8, 64]), shape=(8, 64))
        no, see (1, 0)
        >>> tile.equivalent(SwizzledLayout(S[8, 64], Swizzle(3, 3, 4)))
        no, see 64
        >>> SwizzledLayout(S[4:2], Swizzle(1, 0, 1)).equivalent(TileLayout(S[(2, 2) : (4, 3)]))
        yes
        """
        if assuming is not None or self._rests or getattr(other, "_rests", False):
            return self._under("equivalent", assuming, other, shape)
        if isinstance(other, Swizzled):
            there, back = other._layout, other._swizzle.inverse()
        elif isinstance(other, TileLayout):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            there, back = other, Swizzle(0, 0, 0)
        else:
            raise LayoutError("equivalent", f"other must be a layout, got {type(other).__name__} {other!r}")
        one, two = self._parts(), parts_of(there)
        dims = None if shape is None else as_shape(shape, "equivalent")
        if dims is not None:
            check_size(one[0], dims, "equivalent")
            check_size(two[0], dims, "equivalent")
        between = back.compose(self._swizzle)
        if _symbolic(one) or _symbolic(two):
            alike: tuple[Any, Any] = self.canonicalize(), other.canonicalize()  # type: ignore[attr-defined]  # of a layer above
            if alike[0] == alike[1]:
                return Answer(True)
            if all(isinstance(x, TileLayout) for x in alike):
                return alike[0].equivalent(alike[1], shape)
        flat = _swizzled_equal.swizzled_difference(one, two, between.apply, between.width, "equivalent")
        if flat is None:
            return Answer(True)
        return Answer(False, flat if dims is None else in_shape(flat, dims) if dims else ())

    def is_injective(self, *, assuming: Any = None) -> Answer:
        """Whether no place holds two elements: as for the tile layout, since a swizzle is a bijection.

        Witness: two flat indices, the smaller first, that have a place in common.
        Errors: those of `TileLayout.is_injective`.

        >>> SwizzledLayout(S[(2, 64) : (32, 1)], Swizzle(3, 3, 3)).is_injective()
        no, see (32, 64)
        """
        return self._layout.is_injective(assuming=assuming)

    def is_surjective(self, *, assuming: Any = None) -> Answer:
        """Whether every place of the box that the layout spans is held: on each axis, from its least to its greatest
        coordinate, swizzled.

        Witness: a mapping axis -> coordinate inside the box that no element has.
        Errors: LayoutError where symbols decide; Undecided for a swizzle of many bits on layouts with many gaps.

        >>> SwizzledLayout(S[8, 64], Swizzle(3, 3, 3)).is_surjective()
        yes
        >>> SwizzledLayout(S[100], Swizzle(3, 0, 3)).is_surjective()
        no, see {m: 96}
        """
        if assuming is not None or self._rests:
            return self._under("is_surjective", assuming)
        return self._onto("is_surjective")

    def _onto(self, operation: str) -> Answer:
        place = self._gap(operation)
        return Answer(place is None, place)

    def is_bijective(self, *, assuming: Any = None) -> Answer:
        """Whether every place of the spanned box holds exactly one element: injective and surjective.

        Witness: that of the question that fails, `is_injective` first.

        >>> SwizzledLayout(S[8, 64], Swizzle(3, 3, 3)).is_bijective()
        yes
        """
        if assuming is not None or self._rests:
            return self._under("is_bijective", assuming)
        try:
            found = self.is_injective()
        except LayoutError as error:
            raise type(error)("is_bijective", error.rule, error.remedy) from None
        return self._onto("is_bijective") if found else found

    def elements(self, place: Mapping[Any, Any]) -> tuple[int, ...]:
        """Who sits there: every flat index that has an owner at `place`, rising.

        `place` is that of `TileLayout.elements`: a swizzled coordinate on `m`, 0 for an axis that is left out, and
        ``...`` for any coordinate.
        Errors: those of `TileLayout.elements`.

        >>> tile = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))
        >>> tile.apply(2, 9, shape=(8, 64)), tile.elements({m: 153})  # 2 * 64 + 9 = 137
        ({m: 153}, (137,))
        """
        if hasattr(place, "items"):
            place = {
                known: self._swizzle.inverse().apply(as_integer(v, "elements", f"coordinate on {known}"))
                if known is M and v is not ...
                else v
                for known, v in [(known_axis(name), v) for name, v in place.items()]
            }
        return self._layout.elements(place)

    def _gap(self, operation: str) -> dict[Axis, Integer] | None:
        shard, replica, offset = self._parts()
        width = self._swizzle.width
        if not width:
            return _injective.gap(shard, replica, offset, operation)
        # Of whole blocks the box is that of the tile layout, and each block is permuted: full is full.
        blocks = _symbolic(self._parts()) and self._whole_blocks(operation)
        if blocks and _injective.gap(shard, replica, offset, operation) is None:
            return None
        rest = [tuple([it for it in x if it[2] is not M]) for x in (shard, replica)]
        still = {a: v for a, v in offset.items() if a is not M}
        base, digits, _ = _residues.memory_digits(self._parts(), None, operation)
        missing = _residues.mapped_gap(self._swizzle.apply, width, base, digits, operation)
        place = _injective.gap(rest[0], rest[1], still, operation)
        if place is None and missing is None:
            return None
        if place is None:
            place = {a: self._layout.apply(0).get(a, 0) for a in still}
        return {**place, M: self._swizzle.apply(base) if missing is None else missing}

    def _whole_blocks(self, operation: str) -> bool:
        """Whether the box on `m`, before the swizzle, is known to begin and end with blocks of its."""
        shard, replica, offset = self._parts()
        low: Any = offset.get(M, 0)
        for e, s, a in (*shard, *replica):
            if a is M and e != 1 and sign(s, operation, "stride") < 0:
                low = low + (e - 1) * s
        span = _tile.spans(shard, replica, operation).get(M, 1)
        block = 1 << self._swizzle.width
        return quotient(low, block) is not None and quotient(span, block) is not None


def _symbolic(parts: Parts) -> bool:
    shard, replica, offset = parts
    return any(
        type(n) is not int for n in (*offset.values(), *[n for it in (*shard, *replica) for n in it[:2]])
    )
