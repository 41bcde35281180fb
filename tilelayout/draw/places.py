"""What views ask of a layout: a shape to draw it in, who holds an element, and which elements a place holds."""

from __future__ import annotations

from ..algebra.evaluate import copies
from ..errors import LayoutError
from ..layout import TileLayout
from ..parts import as_integer, as_shape, product
from ..spec import Spec
from ..swizzled import SwizzledLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    from ..axis import Axis

    Layout = TileLayout | SwizzledLayout
    Place = Mapping[Any, int]

LISTED: Final = 2**16
"""Elements times copies up to which the whole map is listed; beyond, each place is asked for."""

MAX_ROWS: Final = 64
MAX_COLUMNS: Final = 64
"""How much of a grid is shown unless more is asked for."""


def as_layout(x: Any, operation: str) -> Layout:
    """A layout, or one from its notation.  Errors: LayoutError for anything else, and for symbols."""
    if isinstance(x, Spec):
        x = TileLayout(x)
    if not isinstance(x, (TileLayout, SwizzledLayout)):
        raise LayoutError(operation, f"a layout is expected, got {type(x).__name__} {x!r}")
    plain = tile_layout(x)
    numbers = [*plain.offset.values(), *[n for it in (*plain.shard, *plain.replica) for n in it[:2]]]
    for n in numbers:
        if type(n) is not int:
            raise LayoutError(
                operation, f"{n} in {x} is symbolic", "substitute numbers first, or draw the view 'iters'"
            )
    return x


def tile_layout(layout: Layout) -> TileLayout:
    """The layout without its swizzle."""
    return layout.layout if isinstance(layout, SwizzledLayout) else layout


def drawn_shape(layout: Layout, shape: Any, operation: str) -> tuple[int, ...]:
    """`shape` as plain extents, checked against the layout; without one, `natural_shape`."""
    if shape is None:
        return natural_shape(layout)
    dims = [as_integer(n, operation, "extent") for n in as_shape(shape, operation)]
    if not dims or any(type(n) is not int for n in dims):
        raise LayoutError(operation, f"a shape of one or more numbers is needed, got {shape!r}")
    size, have = product(dims), layout.size()
    if size != have:
        raise LayoutError(operation, f"shape {tuple(dims)} has {size} elements, layout {layout} has {have}")
    return tuple(dims)  # type: ignore[arg-type]  # plain


def natural_shape(layout: Layout) -> tuple[int, int]:
    """A shape of rows and columns for a layout that comes without: cut between two iters, as square as can be.

    A layout of one iter (or none) is cut into rows of 32, or of what divides it.

    >>> (
    ...     natural_shape(TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])),
    ...     natural_shape(TileLayout(S[96])),
    ... )
    ((16, 8), (3, 32))
    """
    extents: list[int] = [int(it[0]) for it in tile_layout(layout).shard if it[0] != 1]  # type: ignore[call-overload]
    size = int(product(extents))  # type: ignore[arg-type]
    if len(extents) < 2:
        columns = size if size <= 32 else next(n for n in (32, 16, 8, 4, 2, size) if size % n == 0)
        return size // columns, columns
    cuts = [int(product(extents[:k])) for k in range(1, len(extents))]  # type: ignore[arg-type]
    rows = min(cuts, key=lambda n: (max(n, size // n), n))
    return rows, size // rows


def rows_and_columns(shape: tuple[int, ...]) -> tuple[int, int]:
    """The grid of a shape: its last dimension runs along the columns, the others together down the rows."""
    return int(product(shape[:-1])), shape[-1]  # type: ignore[arg-type]


def unflattened(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The coordinate of a flat row-major index."""
    digits: list[int] = []
    for n in reversed(shape):
        flat, digit = divmod(flat, n)
        digits.append(digit)
    return tuple(reversed(digits))


def moving_axes(layout: Layout) -> list[Axis]:
    """The axes on which a coordinate can be other than 0: of the iters, then of the offset in the order of its text."""
    plain = tile_layout(layout)
    iters = [it[2] for it in (*plain.shard, *plain.replica) if it[0] != 1 and it[1] != 0]
    return list(dict.fromkeys([*iters, *sorted(plain.offset, key=lambda a: (a == "m", a))]))


def reach(layout: Layout, axis: Axis) -> tuple[int, int]:
    """Bounds of the coordinate on an axis; a swizzle's are rounded to the blocks in which it permutes."""
    plain = tile_layout(layout)
    low: Any = plain.offset.get(axis, 0)
    high: Any = low
    for e, s, a in (*plain.shard, *plain.replica):
        if a is axis:
            low, high = low + min(0, (e - 1) * s), high + max(0, (e - 1) * s)
    if isinstance(layout, SwizzledLayout) and axis == "m":
        block = (1 << layout.swizzle.width) - 1
        low, high = low & ~block, high | block
    return low, high


class Inverse:
    """Places read backwards: which elements are at a place on some axes, in any coordinate of the others.

    A layout of up to `LISTED` elements (times copies) is listed once; a larger one is asked place by place, which
    needs no list.
    """

    def __init__(self, layout: Layout, axes: Sequence[Axis]) -> None:
        self.layout, self.axes = layout, tuple(axes)
        self._listed: dict[tuple[int, ...], list[int]] | None = None
        plain = tile_layout(layout)
        self._all = moving_axes(layout)
        steps = copies(plain.replica)
        if int(layout.size()) * len(steps) <= LISTED:  # type: ignore[arg-type]
            self._listed = self._list(plain, steps)

    def _list(self, plain: TileLayout, steps: list[Any]) -> dict[tuple[int, ...], list[int]]:
        size = int(plain.size())  # type: ignore[arg-type]
        table = plain.table(size)
        found: dict[tuple[int, ...], list[int]] = {}
        for step in steps:
            columns: list[list[int]] = []
            for axis in self.axes:
                distance = step.get(axis, 0)
                values = [v + distance for v in table[axis].tolist()] if axis in table else [distance] * size
                if isinstance(self.layout, SwizzledLayout) and axis == "m":
                    values = [self.layout.swizzle.apply(v) for v in values]
                columns.append(values)
            for flat, place in enumerate(zip(*columns, strict=True) if columns else [()] * size):
                there = found.setdefault(place, [])
                if not there or there[-1] != flat:
                    there.append(flat)
        return {place: sorted(set(flats)) for place, flats in found.items()}

    def ranges(self) -> list[tuple[int, int]]:
        """Bounds of the coordinate on each of the axes: exact where the map is listed."""
        if self._listed:
            places = list(self._listed)
            return [(min(p[k] for p in places), max(p[k] for p in places)) for k in range(len(self.axes))]
        return [reach(self.layout, axis) for axis in self.axes]

    def elements(self, place: tuple[int, ...]) -> list[int]:
        """The flat indices there, rising."""
        if self._listed is not None:
            return self._listed.get(place, [])
        at: dict[Any, Any] = dict.fromkeys(self._all, ...)
        for axis, value in zip(self.axes, place, strict=True):
            swizzled = isinstance(self.layout, SwizzledLayout) and axis == "m"
            at[axis] = self.layout.swizzle.inverse().apply(value) if swizzled else value  # type: ignore[union-attr]
        return list(tile_layout(self.layout).elements(at))
