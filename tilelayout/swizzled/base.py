"""A layout and a swizzle as one frozen value, and where it puts elements."""

from __future__ import annotations

from ..algebra import residues as _residues
from ..algebra import tile as _tile
from ..axis import axis as known_axis
from ..conditional import Conditional
from ..display import Displayed
from ..layout import TileLayout
from ..parts import M

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    import numpy.typing as npt

    from ..axis import Axis
    from ..parts import Integer, Parts
    from ..swizzle import XorMap


class Swizzled(Displayed, Conditional):
    """What `SwizzledLayout` consists of, and its evaluation."""

    __slots__ = ("_hash", "_layout", "_swizzle")

    _layout: TileLayout
    _swizzle: XorMap
    _hash: int

    # --- the value ------------------------------------------------------------------------------

    @property
    def layout(self) -> TileLayout:
        """The tile layout, whose coordinate on `m` is swizzled."""
        return self._layout

    @property
    def swizzle(self) -> XorMap:
        """The map on `m`: a `Swizzle`, or an `XorMap` that is none."""
        return self._swizzle

    @property
    def conditions(self) -> tuple[Any, ...]:
        """The sympy conditions that it rests on: those of its tile layout, see `TileLayout.conditions`."""
        return self._layout.conditions

    @property
    def _rests(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]  # read only, there as here
        return self._layout._rests  # pyright: ignore[reportPrivateUsage]  # the same

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Swizzled):
            return NotImplemented
        return self._layout == other._layout and self._swizzle == other._swizzle

    def __hash__(self) -> int:
        return self._hash

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"SwizzledLayout is frozen: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"SwizzledLayout is frozen: cannot delete {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._layout, self._swizzle)

    def __str__(self) -> str:
        inner = str(self._layout)
        return (
            f"{self._swizzle} o ({inner})"
            if self._layout.replica or self._layout.offset
            else f"{self._swizzle} o {inner}"
        )

    def __repr__(self) -> str:
        return f"SwizzledLayout({self._layout}, {self._swizzle})"

    # --- evaluation -----------------------------------------------------------------------------

    def size(self) -> Integer:
        """The number of logical elements.

        >>> SwizzledLayout(S[8, 64], Swizzle(3, 3, 3)).size()
        512
        """
        return self._layout.size()

    def span(self, axis: Axis | str = M, *, assuming: Any = None) -> Integer:
        """max - min + 1 of the coordinate on `axis`, over shard and replica.

        On `m` these are the swizzled values, so it counts places that the XOR reaches beyond the layout's own; an
        offset comes before the swizzle and matters.

        >>> SwizzledLayout(S[100], Swizzle(3, 0, 3)).span()  # C26
        104

        Errors: LayoutError where bits that the swizzle sees are symbolic; Undecided for a swizzle of more than 20 bits
        where more than 2**20 values are in doubt.
        """
        if assuming is not None or self._rests:
            return self._under("span", assuming, axis)
        if known_axis(axis) is not M or not self._swizzle.width:
            return self._layout.span(axis)
        width = self._swizzle.width
        base, digits, _ = _residues.memory_digits(self._parts(), width, "span")
        least, most = _residues.mapped_extremes(self._swizzle.apply, width, base, digits, "span")
        shard, replica, _ = self._parts()
        blocks = _tile.spans(_residues.by_blocks((*shard, *replica), width), ()).get(M, 1)
        return most - least + blocks

    def apply(
        self, *coord: Any, shape: Sequence[Any] | int | None = None, assuming: Any = None
    ) -> dict[Axis, Any]:
        """Axis -> value at a coordinate, the replica left out: `TileLayout.apply`, then the swizzle of `m`.

        Takes what `TileLayout.apply` takes: ints, numpy integer arrays, expressions, sympy.
        Errors: those of `TileLayout.apply`.

        >>> SwizzledLayout(S[8, 64], Swizzle(3, 3, 3)).apply(2, 9, shape=(8, 64))
        {m: 153}
        >>> from tilelayout.expr import Var
        >>> SwizzledLayout(S[8, 64], Swizzle(3, 3, 3)).apply(Var("row", 0, 7), Var("column", 0, 63))
        {m: 64*row + (column ^ (8*row))}
        """
        if assuming is not None:
            return self._under("apply", assuming, *coord, shape=shape)
        values = self._layout.apply(*coord, shape=shape)
        if M in values:  # as `_swizzled`, without a call
            values[M] = self._swizzle.apply(values[M])
        return values

    def owners(
        self, *coord: Any, shape: Sequence[Any] | int | None = None, assuming: Any = None
    ) -> tuple[dict[Axis, Any], ...]:
        """Every place that holds the element: `TileLayout.owners`, then the swizzle of each.

        >>> SwizzledLayout(S[64] + R[2:64], Swizzle(3, 3, 3)).owners(9)
        ({m: 9}, {m: 65})
        """
        if assuming is not None:
            return self._under("owners", assuming, *coord, shape=shape)
        return tuple([self._swizzled(place) for place in self._layout.owners(*coord, shape=shape)])

    def table(self, shape: Sequence[Any] | int | None = None) -> dict[Axis, npt.NDArray[Any]]:
        """The whole map: axis -> array of `shape` (default: the shard's extents), replica left out.

        >>> SwizzledLayout(S[4, 4], Swizzle(2, 0, 2)).table()[m].tolist()
        [[0, 1, 2, 3], [5, 4, 7, 6], [10, 11, 8, 9], [15, 14, 13, 12]]
        """
        return self._swizzled(self._layout.table(shape))

    def _swizzled(self, values: dict[Axis, Any]) -> dict[Axis, Any]:
        if M in values:  # else it is 0, and 0 stays
            values[M] = self._swizzle.apply(values[M])
        return values

    def _parts(self) -> Parts:
        return parts_of(self._layout)


def parts_of(layout: TileLayout) -> Parts:
    return layout.shard, layout.replica, dict(layout.offset)
