"""Layouts as functions, as the methods of `TileLayout`: compose, invert, complement, divide, multiply.

Operands are validated here; the work is done in `algebra`.

The examples of CuTe's documentation hold with the modes reversed: CuTe counts its first mode fastest, here the last
dimension is.  ``(2, 2):(1, 6)`` there is ``S[(2, 2):(6, 1)]`` here.
"""

from __future__ import annotations

from .algebra.later import Later
from .errors import LayoutError
from .parts import M, Parted, as_entries, as_extent, as_shape, product

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

    from .algebra import complement as _complement
    from .algebra import compose as _compose
    from .algebra import divide as _divide
    from .algebra import inverse as _inverse
    from .algebra import left_inverse as _left_inverse
    from .algebra import product_of as _product
    from .parts import Integer, Offset, Parts, RawIter
else:
    _complement, _compose, _divide = (Later(name) for name in ("complement", "compose", "divide"))
    _inverse, _left_inverse, _product = (Later(name) for name in ("inverse", "left_inverse", "product_of"))


_pair: Any = tuple.__dict__["__new__"]  # without a look-up: divisions are made by the thousand


class Shaped(tuple["Any", "tuple[Any, ...]"]):
    """A layout and the shape in which it is read: ``layout.apply(*coord, shape=shape)``.

    A pair ``(layout, shape)``.  The iters of the layout fall into the dimensions of the shape.
    """

    __slots__ = ()

    def __new__(cls, layout: Any, shape: tuple[Any, ...]) -> Shaped:
        return _pair(cls, (layout, shape))

    @property
    def layout(self) -> Any:
        """The layout."""
        return self[0]

    @property
    def shape(self) -> tuple[Any, ...]:
        """The dimensions, last fastest."""
        return self[1]

    def __repr__(self) -> str:
        return f"Shaped({self[0]}, {self[1]})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Shaped, (self[0], self[1])


class Functions(Parted):
    """What can be made of layouts as functions."""

    __slots__ = ()

    if TYPE_CHECKING:

        def size(self) -> Integer: ...

    def compose(self, other: Self, *, assuming: Any = None) -> Self:
        """``i -> self(other(i))``, of the size of `other`.

        Pre-conditions: `other` moves on `m` alone, has no replica, and its values lie in ``[0, self.size())``.
        Post-condition: at every i the owners that this layout has at ``other(i)``: its axes, replica and offset.
        Returned whenever a layout has that table, in canonical form.
        Errors: LayoutError where none has; Undecided where it would take listing more than 65536 positions to tell.

        >>> TileLayout(S[(2, 20) : (4, 16)]).compose(TileLayout(S[(5, 4) : (4, 1)]))
        TileLayout(S[20:16])
        >>> TileLayout(S[(2, 6) : (7, 1)]).compose(TileLayout(S[(2, 3) : (3, 2)]))
        Traceback (most recent call last):
        tilelayout.errors.LayoutError: compose: steps of B carry in A or move along several axes, ...
        """
        if assuming is not None or _layout(other, "compose", "other")._rests:
            return self._under("compose", assuming, other)
        return self._made(*_compose.compose(self._parts(), other._parts()))

    def inverse(self, *, assuming: Any = None) -> Self:
        """The layout that reads places back: ``result(self(i)) = i`` and ``self(result(x)) = x``.

        Pre-condition: a bijection onto ``[0, size)`` on `m`.

        >>> TileLayout(S[(2, 4) : (1, 2)]).inverse()
        TileLayout(S[(4, 2):(1, 4)])
        >>> TileLayout(S[4:-1] + 3).inverse()
        TileLayout(S[4:-1] + 3)
        """
        if assuming is not None:
            return self._under("inverse", assuming)
        return self._made(*_inverse.inverse(self._parts()))

    def left_inverse(self, *, assuming: Any = None) -> Self:
        """A layout L with ``L(self(i)) = i`` for all i.

        Pre-condition: injective, on `m`, no place below 0.  The size of L exceeds the largest place; at places that
        no element has, what L gives means nothing.
        Errors: LayoutError where no layout does that; Undecided where strides interleave so that it is a long search.

        >>> TileLayout(S[4:2]).left_inverse()
        TileLayout(S[(4, 2):(1, 0)])
        >>> TileLayout(S[(2, 3) : (3, 2)]).left_inverse()
        TileLayout(S[(4, 2):(1, 2)])
        """
        if assuming is not None:
            return self._under("left_inverse", assuming)
        return self._made(*_left_inverse.left_inverse(self._parts()))

    def right_inverse(self, *, assuming: Any = None) -> Self:
        """The largest layout R with ``self(R(j)) = j`` for all j below its size; the inverse where there is one.

        Pre-condition: on `m`, with an element at 0.
        Errors: LayoutError without one; Undecided where a large layout overlaps itself or has places below 0.

        >>> TileLayout(S[(6, 4, 2) : (8, 1, 4)]).right_inverse()
        TileLayout(S[(6, 2, 4):(8, 1, 2)])
        >>> TileLayout(S[(2, 4) : (8, 1)]).right_inverse()
        TileLayout(S[4:1])
        """
        if assuming is not None:
            return self._under("right_inverse", assuming)
        return self._made(*_inverse.right_inverse(self._parts()))

    def complement(self, cosize: Any, *, assuming: Any = None) -> Self:
        """The layout that fills the gaps: each x in ``[0, cosize)`` is ``self(i) + result(j)`` in exactly one way.

        Pre-condition: on `m`, without a replica.  Positive strides that fall; where this layout begins elsewhere than
        at 0, the offset of the result makes up for it.
        Errors: LayoutError where no layout does that: strides that don't nest, a cosize that isn't a multiple.

        >>> TileLayout(S[4:2]).complement(24)
        TileLayout(S[(3, 2):(8, 1)])
        >>> TileLayout(S[(2, 2) : (6, 1)]).complement(24)
        TileLayout(S[(2, 3):(12, 2)])
        """
        if assuming is not None:
            return self._under("complement", assuming, cosize)
        return self._made(*_complement.complement(self._parts(), as_extent(cosize, "complement", "cosize")))

    # --- division -------------------------------------------------------------------------------

    def logical_divide(
        self, tiler: Any, shape: Sequence[Any] | int | None = None, *, assuming: Any = None
    ) -> Shaped:
        """The layout read tile by tile, each dimension split in two: ``(rest_0, tile_0, rest_1, tile_1, ...)``.

        `tiler` says which elements make a tile: an integer n, that many neighbors; or a layout on `m` from positions
        in the tile to positions in the dimension.  Without `shape` it divides the flat index.  With `shape` it is a
        tuple of one tiler for each dimension.
        Post-condition: with coordinates r and t, the owners are those at the coordinate
        ``tiler_d.complement(n_d)(r_d) + tiler_d(t_d)`` in `shape`.
        Pre-condition: this layout can be grouped to `shape`, and each dimension's iters are cut by no tile (they may be
        split evenly); what cuts one is refused, though a layout may exist.  So it is for the three that follow.
        Errors: LayoutError where a tiler doesn't divide, or a tile runs across an iter.

        >>> TileLayout(S[32, 12]).logical_divide(32)
        Shaped(S[(12, 32):(32, 1)], (12, 32))
        >>> TileLayout(S[(3, 2, 4) : (8, 1, 2)]).logical_divide(TileLayout(S[4:2]))
        Shaped(S[(3, 2, 2, 2):(8, 2, 1, 4)], (6, 4))
        """
        if assuming is not None or _rests(tiler):
            return self._under("logical_divide", assuming, tiler, shape)
        shard: list[RawIter] = []
        out: list[Integer] = []
        pieces, offset = self._divided(tiler, shape, "logical_divide")
        for rest, tile, count, size in pieces:
            shard += rest
            shard += tile
            out += (count, size)
        return self._shaped(shard, offset, out)

    def zipped_divide(
        self, tiler: Any, shape: Sequence[Any] | int | None = None, *, assuming: Any = None
    ) -> Shaped:
        """`logical_divide` with all rests first and then all tiles, as two dimensions: ``(rest, tile)``.

        >>> TileLayout(S[32, 12]).zipped_divide((8, 4), (32, 12))
        Shaped(S[(4, 3, 8, 4):(96, 4, 12, 1)], (12, 32))
        """
        if assuming is not None or _rests(tiler):
            return self._under("zipped_divide", assuming, tiler, shape)
        shard, offset, counts, inside = self._zipped(tiler, shape, "zipped_divide")
        return self._shaped(shard, offset, [product(counts), product(inside)])

    def tiled_divide(
        self, tiler: Any, shape: Sequence[Any] | int | None = None, *, assuming: Any = None
    ) -> Shaped:
        """`zipped_divide` with one dimension for each rest: ``(rest_0, rest_1, ..., tile)``.

        >>> TileLayout(S[32, 12]).tiled_divide((8, 4), (32, 12))
        Shaped(S[(4, 3, 8, 4):(96, 4, 12, 1)], (4, 3, 32))
        """
        if assuming is not None or _rests(tiler):
            return self._under("tiled_divide", assuming, tiler, shape)
        shard, offset, counts, inside = self._zipped(tiler, shape, "tiled_divide")
        return self._shaped(shard, offset, [*counts, product(inside)])

    def flat_divide(
        self, tiler: Any, shape: Sequence[Any] | int | None = None, *, assuming: Any = None
    ) -> Shaped:
        """`zipped_divide` with one dimension for each rest, then for each tile: ``(rest_0, ..., tile_0, ...)``.

        >>> TileLayout(S[32, 12]).flat_divide((8, 4), (32, 12))
        Shaped(S[(4, 3, 8, 4):(96, 4, 12, 1)], (4, 3, 8, 4))
        """
        if assuming is not None or _rests(tiler):
            return self._under("flat_divide", assuming, tiler, shape)
        shard, offset, counts, inside = self._zipped(tiler, shape, "flat_divide")
        return self._shaped(shard, offset, [*counts, *inside])

    def _divided(self, tiler: Any, shape: Any, operation: str) -> tuple[list[_divide.Pieces], Offset]:
        """What `algebra.divide` makes of it, the tilers checked."""
        given: tuple[Any, ...] = (tiler,)
        if shape is None:
            if isinstance(tiler, (tuple, list)):
                raise LayoutError(
                    operation,
                    f"{tiler!r} is one tiler for each dimension, but the dimensions aren't given",
                    "pass shape=; for a tile of the flat index, an integer or a TileLayout",
                )
            dims = None
        else:
            dims = as_shape(shape, operation)
            if len(dims) != 1 or isinstance(tiler, (tuple, list)):
                given = as_entries(tiler, operation, "tilers")
        tilers: list[Any] = []
        for d, x in enumerate(given):
            tilers.append(x._parts() if isinstance(x, Functions) else _count(x, operation, f"tiler {d}"))
        return _divide.divide(self._parts(), dims, tuple(tilers), operation)

    def _zipped(self, tiler: Any, shape: Any, operation: str) -> Any:
        """The iters between all tiles and then within them, the offset, and the sizes of both."""
        pieces, offset = self._divided(tiler, shape, operation)
        parts = [rest for rest, _, _, _ in pieces] + [tile for _, tile, _, _ in pieces]
        counts, sizes = [count for _, _, count, _ in pieces], [size for _, _, _, size in pieces]
        return [it for part in parts for it in part], offset, counts, sizes

    def _shaped(self, shard: list[RawIter], offset: Offset, shape: list[Integer]) -> Shaped:
        return _pair(Shaped, (self._made(tuple(shard), self._replica, offset), tuple(shape)))

    # --- products -------------------------------------------------------------------------------

    def logical_product(self, other: Any, *, assuming: Any = None) -> Shaped:
        """This layout repeated as `other` says, each copy where no other is: the shape is ``(copies, self)``.

        `other` is an integer n, that many copies, or a layout on `m` that numbers the free offsets: 0, 1, 2, ... are
        the elements of this layout's complement.
        Post-condition: at (j, i) the place is ``complement(other(j)) + self(i)``; the sizes multiply.
        Pre-condition: on `m`, without a replica, strides that nest; for one copy, whatever it is.
        Errors: LayoutError where the offsets that `other` picks are no layout.

        >>> TileLayout(S[(2, 2) : (1, 4)]).logical_product(4)
        Shaped(S[(2, 2, 2, 2):(8, 2, 1, 4)], (4, 4))
        >>> TileLayout(S[(2, 2) : (1, 4)]).logical_product(5)
        Traceback (most recent call last):
        tilelayout.errors.LayoutError: logical_product: steps of B carry in A or move along several axes, ...
        """
        repeated = _repeated(other, "logical_product")
        if assuming is not None or _rests(other):
            return self._under("logical_product", assuming, other)
        over, offset = _product.copies(self._parts(), repeated, "logical_product")
        return self._shaped([*over, *self._shard], offset, [product([it[0] for it in over]), self.size()])

    def blocked_product(
        self,
        other: Any,
        shape: Sequence[Any] | int | None = None,
        other_shape: Sequence[Any] | int | None = None,
        *,
        assuming: Any = None,
    ) -> Shaped:
        """`logical_product` by dimensions, copies whole: dimension d runs over the copies, and within each over this.

        `shape` and `other_shape` are the dimensions of both (default: one for each iter); they have the same rank.
        At index ``y[d] * shape[d] + x[d]`` in each dimension is element x of copy y.

        >>> TileLayout(S[(5, 2) : (1, 5)]).blocked_product(TileLayout(S[(4, 3) : (3, 1)]))
        Shaped(S[(4, 5, 3, 2):(30, 1, 10, 5)], (20, 6))
        """
        if assuming is not None or _rests(other):
            return self._under("blocked_product", assuming, other, shape, other_shape)
        return self._by_dimension(other, shape, other_shape, False, "blocked_product")

    def raked_product(
        self,
        other: Any,
        shape: Sequence[Any] | int | None = None,
        other_shape: Sequence[Any] | int | None = None,
        *,
        assuming: Any = None,
    ) -> Shaped:
        """`blocked_product` with copies interleaved: at index ``x[d] * other_shape[d] + y[d]`` is element x of copy y.

        >>> TileLayout(S[(5, 2) : (1, 5)]).raked_product(TileLayout(S[(4, 3) : (3, 1)]))
        Shaped(S[(5, 4, 2, 3):(1, 30, 5, 10)], (20, 6))
        """
        if assuming is not None or _rests(other):
            return self._under("raked_product", assuming, other, shape, other_shape)
        return self._by_dimension(other, shape, other_shape, True, "raked_product")

    def _by_dimension(self, other: Any, shape: Any, other_shape: Any, raked: bool, operation: str) -> Shaped:
        b = _repeated(other, operation)
        dims = [
            tuple([it[0] for it in parts[0]]) if given is None else as_shape(given, operation, what)
            for parts, given, what in ((self._parts(), shape, "shape"), (b, other_shape, "other_shape"))
        ]
        shard, offset, whole = _product.by_dimension(self._parts(), dims[0], b, dims[1], raked, operation)
        return Shaped(self._made(shard, self._replica, offset), whole)


def _layout(x: Any, operation: str, what: str) -> Any:
    if not isinstance(x, Functions):
        raise LayoutError(operation, f"{what} must be a TileLayout, got {type(x).__name__} {x!r}")
    return x


def _rests(x: Any) -> bool:
    """Whether a tiler, or one of several, or what is repeated, has conditions."""
    if isinstance(x, (tuple, list)):
        return any(_rests(y) for y in x)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return isinstance(x, Functions) and x._rests  # pyright: ignore[reportPrivateUsage]  # a layout's own


def _repeated(x: Any, operation: str) -> Parts:
    """What a product takes: a layout, or a number of copies."""
    if isinstance(x, Functions):
        return x._parts()  # pyright: ignore[reportPrivateUsage]  # a layout's own, for its room
    return ((_count(x, operation, "number of copies"), 1, M),), (), {}


def _count(x: Any, operation: str, what: str) -> Integer:
    if hasattr(x, "swizzle") and hasattr(x, "layout"):
        raise LayoutError(
            operation,
            f"{what} is the swizzled {x}, and takes an integer or a tile layout",
            "its tile layout, x.layout",
        )
    return as_extent(x, operation, what)
