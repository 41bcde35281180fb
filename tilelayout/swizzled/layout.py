"""`SwizzledLayout`: the algebra of swizzled layouts, exact or refused."""

from __future__ import annotations

from ..algebra import binary as _binary
from ..algebra import residues as _residues
from ..algebra import swizzled_copies as _swizzled_copies
from ..algebra import swizzled_tile as _swizzled_tile
from ..algebra import tile as _tile
from ..algebra import unswizzle as _unswizzle
from ..algebra.group import find
from ..algebra.integers import quotient
from ..errors import LayoutError
from ..explain import Explained
from ..layout import TileLayout
from ..least_swizzle import smallest_map, smallest_on
from ..parts import M, as_extent, as_shape, nonzero
from ..spec import Spec
from ..swizzle import Swizzle, XorMap
from .base import parts_of
from .questions import SwizzledQuestions
from .text import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..parts import Integer, Offset, Parts, RawIter

_set = object.__setattr__


class SwizzledLayout(SwizzledQuestions, Explained):
    """Where each element lives when a tile layout's coordinate on `m` goes through a swizzle.

    ``SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))``

    ``L(x) = { swizzle(place) : place in layout(x) }``, where a swizzle acts on the coordinate on `m` and on no other
    axis.  Offset and replica of the layout come before it.  The same value serves every shape of its size.  Swizzle
    and layout count in the same units, elements as a rule; `pack` and `unpack` change both.

    Values are frozen, hashable and picklable.  ``==`` compares structure; `equivalent` compares functions.

    Source: CuTe's ``ComposedLayout`` (Swizzle o offset o layout) and TVM TIRx's ``ComposeLayout``.

    >>> tile = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))
    >>> tile
    SwizzledLayout(S[(8, 64):(64, 1)], Swizzle(3, 3, 3))
    >>> print(tile.slice((8, 64), [(0, 8), (4, 12)]))
    Swizzle(3, 3, 3) o (S[(8, 8):(64, 1)] + 4)
    """

    __slots__ = ()

    def __new__(cls, layout: TileLayout | Spec | SwizzledLayout, swizzle: XorMap) -> SwizzledLayout:
        if not isinstance(swizzle, XorMap):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LayoutError(
                "SwizzledLayout",
                f"the second operand is a swizzle, got {type(swizzle).__name__} {swizzle!r}",
                "SwizzledLayout(layout, Swizzle(bits, base, shift))",
            )
        if isinstance(layout, SwizzledLayout):
            return _made(layout.layout, swizzle.compose(layout.swizzle))
        return _made(TileLayout(layout), swizzle)

    @classmethod
    def parse(
        cls, text: str, symbols: Mapping[str, Any] | None = None, *, assuming: Any = None
    ) -> SwizzledLayout:
        """The layout that `text` writes: ``swizzle o layout``, the printed form, or TVM's.

        The swizzle is written ``Swizzle(3, 3, 3)``, ``XorMap((1, 3))``, or ``S<3,3,3>`` and ``Sw<3,3,3>`` as CuTe does;
        the layout as `TileLayout.parse` takes it.  Post-condition: ``parse(str(x)) == parse(repr(x)) == x``, given the
        symbols of x and ``assuming=x.conditions``.
        Errors: LayoutError with the position.

        >>> SwizzledLayout.parse("S<3,3,3> o (S[8, 64] + 4)")
        SwizzledLayout(S[(8, 64):(64, 1)] + 4, Swizzle(3, 3, 3))
        >>> print(
        ...     SwizzledLayout.parse("T.ComposeLayout(3, 2, 4, T.TileLayout(T.S[64:1]), swizzle_inner=False)")
        ... )
        Swizzle(2, 3, -4) o S[64:1]
        """
        found = read(text)
        if found is None:
            shown = text[:80] if type(text) is str else type(text).__name__
            raise LayoutError(
                "parse",
                f"at position 0: expected a swizzle and a layout, found {shown!r}",
                "write swizzle o layout",
            )
        swizzle, rest = found
        return _made(TileLayout.parse(rest, symbols, assuming=assuming), swizzle)

    # --- the algebra ----------------------------------------------------------------------------

    def canonicalize(self, scope: str | None = None, *, assuming: Any = None) -> TileLayout | SwizzledLayout:
        """The same function in its simplest form: a tile layout where it is one, else the smallest swizzle.

        `scope` counts thread axes as `TileLayout.canonicalize` does with it.

        Post-conditions: the same owners at every flat index; idempotent.  Only the bits that are reached count: what
        the swizzle does to others is dropped, and a swizzle that leaves all values alone with it.  Where the values
        are those of a tile layout (a row of a swizzled tile, for instance), that layout's canonical form is returned;
        this is seen wherever the bits of the values don't carry into one another, else up to 2**12 elements.  Equal
        forms mean equal functions; whether different forms do is for `equivalent`.

        >>> SwizzledLayout(S[10:2], Swizzle(3, 4, 3)).canonicalize()  # C26
        TileLayout(S[10:2])
        >>> SwizzledLayout(S[4, 64], Swizzle(3, 3, 3)).canonicalize()
        SwizzledLayout(S[256:1], Swizzle(2, 3, 3))
        >>> SwizzledLayout(S[64] + 64, Swizzle(3, 3, 3)).canonicalize()
        TileLayout(S[(4, 2, 8):(16, -8, 1)] + 72)
        """
        if assuming is not None or self._rests:
            return self._under("canonicalize", assuming, scope)
        swizzle = self._least_swizzle("canonicalize")
        inner = self._layout.canonicalize(scope)
        if swizzle.is_identity():
            return inner
        try:
            plain = _unswizzle.unswizzled(parts_of(inner), swizzle.apply, swizzle.width, "canonicalize")
        except LayoutError:  # not known to be plain: the swizzled form is right all the same
            plain = None
        return _made(inner, swizzle) if plain is None else TileLayout.from_iters(*plain).canonicalize(scope)

    def as_tile_layout(self, *, assuming: Any = None) -> TileLayout:
        """The tile layout with the same owners at every flat index, if there is one.

        >>> SwizzledLayout(S[64] + 64, Swizzle(3, 3, 3)).as_tile_layout()
        TileLayout(S[(4, 2, 8):(16, -8, 1)] + 72)

        Errors: LayoutError where there is none; Undecided where the strides carry into one another and there are more
        than 2**12 elements.
        """
        if assuming is not None or self._rests:
            return self._under("as_tile_layout", assuming)
        found = _unswizzle.unswizzled(
            self._parts(), self._swizzle.apply, self._swizzle.width, "as_tile_layout"
        )
        if found is None:
            raise LayoutError(
                "as_tile_layout",
                f"{self}: two digits of the index meet in one bit, and no tile layout has these values",
                "slice until the bits that the swizzle reads are constant",
            )
        return TileLayout.from_iters(*found).canonicalize()

    def _least_swizzle(self, operation: str) -> XorMap:
        """The smallest swizzle with the same values here, the swizzle itself where that isn't known."""
        try:
            reached = _residues.reached_basis(self._parts(), self._swizzle.width, operation)
        except LayoutError:
            return self._swizzle
        least = smallest_on(self._swizzle, reached)
        return Swizzle(0, 0, 0) if not least.is_identity() and self._only_copies_trade_places() else least

    def _only_copies_trade_places(self) -> bool:
        """Whether the swizzle leaves every element's set of places alone, and only moves its copies among them."""
        if not any(it[2] is M for it in self._layout.replica):
            return False
        try:
            return bool(self.equivalent(self._layout))
        except LayoutError:
            return False

    def group(
        self, shape: Sequence[Any] | int, *, assuming: Any = None
    ) -> tuple[SwizzledLayout, tuple[int, ...]]:
        """The same function with iters split at the dimensions of `shape`, and the separators: see `TileLayout.group`.

        >>> SwizzledLayout(S[512], Swizzle(3, 3, 3)).group((8, 64))
        (SwizzledLayout(S[(8, 64):(64, 1)], Swizzle(3, 3, 3)), (0, 1, 2))
        """
        grouped, seps = self._layout.group(shape, assuming=assuming)
        return _made(grouped, self._swizzle), seps

    def slice(
        self, shape: Sequence[Any] | int, region: Sequence[Any], *, assuming: Any = None
    ) -> SwizzledLayout:
        """The layout of a box: `region` gives (begin, end) or (begin, end, step) per dimension of `shape`, half open.

        At every coordinate of the box the result has the owners of ``begin + step * coordinate``.  Where the box begins
        is an offset before the swizzle, so that no begin is refused for the swizzle's sake: since a swizzle is a
        bijection, there is a layout with this swizzle iff the tile layout has the slice.

        >>> print(
        ...     SwizzledLayout(S[(10, 2) : (2, 1)], Swizzle(3, 4, 3)).slice((10, 2), [(0, 10), (0, 1)])
        ... )  # C26
        Swizzle(3, 4, 3) o S[(10, 1):(2, 0)]

        Errors: those of `TileLayout.slice`.
        """
        return _made(self._layout.slice(shape, region, assuming=assuming), self._swizzle)

    def split_offset(self, *, assuming: Any = None) -> tuple[Integer, SwizzledLayout]:
        """The offset on `m` that commutes with the swizzle, and the rest: a base address and what is swizzled.

        Post-condition: with ``(start, rest) = x.split_offset()``, every place of `x` is `start` beyond that of `rest`
        on `m`; `start` is a multiple of ``2**swizzle.width``, and the offset of `rest` is less than that.

        >>> SwizzledLayout(S[8, 64] + 1540, Swizzle(3, 3, 3)).split_offset()
        (1536, SwizzledLayout(S[(8, 64):(64, 1)] + 4, Swizzle(3, 3, 3)))
        """
        if assuming is not None or self._rests:
            return self._under("split_offset", assuming)
        shard, replica, offset = self._parts()
        start, block = offset.get(M, 0), 1 << self._swizzle.width
        if type(start) is int:
            left = start % block
        elif quotient(start, block) is not None:
            left = 0
        else:
            raise LayoutError("split_offset", f"offset {start} is not known to be a multiple of {block}")
        rest = TileLayout.from_iters(shard, replica, {**offset, M: left})
        return start - left, _made(rest, self._swizzle)

    def tile(
        self,
        outer: TileLayout,
        outer_shape: Sequence[Any] | int,
        inner_shape: Sequence[Any] | int,
        *,
        assuming: Any = None,
    ) -> SwizzledLayout:
        """Copies of this layout placed by `outer`, over the interleaved shape.

        ``f(x || y) = f_outer(x) * span(self) + f_self(y)`` on every axis: each copy is swizzled like the first, which
        one swizzle does only where copies lie whole periods apart.  The result has this swizzle, or the smallest
        that does the same here.

        >>> print(SwizzledLayout(S[8, 64], Swizzle(3, 3, 3)).tile(TileLayout(S[2, 1]), (2, 1), (8, 64)))
        Swizzle(3, 3, 3) o S[(2, 8, 1, 64):(512, 64, 0, 1)]

        Errors: LayoutError where the swizzle would mix copies; those of `TileLayout.tile`.
        """
        if not isinstance(outer, TileLayout):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LayoutError("tile", f"outer must be a TileLayout, got {type(outer).__name__}")
        if assuming is not None or self._rests or outer._rests:  # pyright: ignore[reportPrivateUsage]  # as in TileLayout
            return self._under("tile", assuming, outer, outer_shape, inner_shape)
        return self._tiled(
            parts_of(outer), as_shape(outer_shape, "tile"), as_shape(inner_shape, "tile"), "tile"
        )

    def tile_to(
        self, to_shape: Sequence[Any] | int, current_shape: Sequence[Any] | int, *, assuming: Any = None
    ) -> SwizzledLayout:
        """`tile` with the row-major copies on `m` that fill `to_shape`; dimensions must divide.

        >>> print(SwizzledLayout(S[4, 64], Swizzle(3, 3, 3)).tile_to((8, 64), (4, 64)))
        Swizzle(2, 3, 3) o S[(2, 4, 1, 64):(256, 64, 0, 1)]

        Errors: as for `tile`.
        """
        if assuming is not None or self._rests:
            return self._under("tile_to", assuming, to_shape, current_shape)
        to, current = as_shape(to_shape, "tile_to"), as_shape(current_shape, "tile_to")
        _tile.tile_to(self._parts(), to, current)  # refuses what doesn't fit
        counts = tuple([quotient(n, k) or 1 for n, k in zip(to, current, strict=True)])
        return self._tiled((_tile.row_major(counts), (), {}), counts, current, "tile_to")

    def _tiled(
        self,
        outer: Parts,
        outer_shape: tuple[Integer, ...],
        inner_shape: tuple[Integer, ...],
        operation: str,
    ) -> SwizzledLayout:
        inner = self._parts()
        span = self.span()
        scale = {**_tile.spans(inner[0], inner[1], operation), M: span}
        moved = _swizzled_tile.placed(outer, scale)
        swizzle = self._swizzle
        move = _swizzled_tile.torn(inner, moved, swizzle.apply, swizzle.width, operation)
        if move is not None:
            swizzle = self._least_swizzle(operation)
            move = _swizzled_tile.torn(inner, moved, swizzle.apply, swizzle.width, operation)
        if move is None:
            shapes = outer_shape, inner_shape
            return _made(
                TileLayout.from_iters(*_swizzled_tile.interleaved(inner, moved, shapes, operation)), swizzle
            )
        plain = self.canonicalize()
        if isinstance(plain, TileLayout) and find(plain.shard, inner_shape, operation) is not None:
            copies = _tile.tile(parts_of(plain), outer, outer_shape, inner_shape, operation)
            return _made(TileLayout.from_iters(*copies), Swizzle(0, 0, 0))
        maps = self._swizzle.apply, self._swizzle.inverse().apply
        found = _swizzled_copies.copied(inner, moved, (outer_shape, inner_shape), maps, operation)
        if found is not None:
            return _made(TileLayout.from_iters(*found), self._swizzle)
        raise LayoutError(
            operation,
            f"copies of {self} span {span} places, and a copy that lies {move} away is not swizzled like the first: "
            f"{self._swizzle} repeats every {1 << self._swizzle.width}",
            "tile the layout first and swizzle the whole: SwizzledLayout(x.layout.tile(...), x.swizzle)",
        )

    def permute_dims(self, perm: Sequence[Any]) -> SwizzledLayout:
        """The shard's iters in another order: iter k of the result is iter ``perm[k]``.

        >>> SwizzledLayout(S[8, 64], Swizzle(3, 3, 3)).permute_dims((1, 0))
        SwizzledLayout(S[(64, 8):(1, 64)], Swizzle(3, 3, 3))
        """
        return _made(self._layout.permute_dims(perm), self._swizzle)

    def permute_by_groups(self, seps: Sequence[Any], perm: Sequence[Any]) -> SwizzledLayout:
        """The groups ``shard[seps[g]:seps[g + 1]]`` in another order: group k of the result is ``perm[k]``.

        >>> SwizzledLayout(S[2, 4, 64], Swizzle(3, 3, 3)).permute_by_groups((0, 2, 3), (1, 0))
        SwizzledLayout(S[(64, 2, 4):(1, 256, 64)], Swizzle(3, 3, 3))
        """
        return _made(self._layout.permute_by_groups(seps, perm), self._swizzle)

    def pack(self, num: Any, *, assuming: Any = None) -> SwizzledLayout:
        """`num` neighbors on `m` become one wider element; the swizzle counts in the wider ones too.

        Post-condition: ``g(i) = f(i*num) / num`` on `m`, where ``f(i*num + j) = f(i*num) + j`` for ``0 <= j < num``.

        >>> SwizzledLayout(S[8, 64], Swizzle(3, 3, 3)).pack(2)
        SwizzledLayout(S[(8, 32):(32, 1)], Swizzle(3, 2, 3))

        Errors: LayoutError where the swizzle tears the elements apart, where `num` is no power of two and the swizzle
        moves anything, and as `TileLayout.pack`.
        """
        return self._rescaled(num, "pack", assuming)

    def unpack(self, num: Any, *, assuming: Any = None) -> SwizzledLayout:
        """Each element becomes `num` narrower neighbors on `m`; the swizzle counts in the narrower ones too.

        Post-condition: ``g(i*num + j) = f(i)*num + j`` on `m`.

        >>> SwizzledLayout(S[8, 32], Swizzle(3, 2, 3)).unpack(2)
        SwizzledLayout(S[(8, 32, 2):(64, 2, 1)], Swizzle(3, 3, 3))

        Errors: LayoutError where `num` is no power of two and the swizzle moves anything, and as `TileLayout.unpack`.
        """
        return self._rescaled(num, "unpack", assuming)

    def _rescaled(self, num: Any, operation: str, assuming: Any) -> SwizzledLayout:
        if assuming is not None or self._rests:
            return self._under(operation, assuming, num)
        count = as_extent(num, operation, "num")
        rescale = self._layout.pack if operation == "pack" else self._layout.unpack
        layout = rescale(count)
        if type(count) is int and not count & count - 1:
            places = count.bit_length() - 1
            moved = self._swizzle.moved(-places if operation == "pack" else places)
            return _made(layout, self._packed_swizzle(places, operation) if moved is None else moved)
        if not self._least_swizzle(operation).is_identity():
            raise LayoutError(
                operation,
                f"{self._swizzle} mixes the bits of a coordinate, and num {count} is not a power of two",
                f"{operation} the layout before it is swizzled",
            )
        return _made(layout, Swizzle(0, 0, 0))

    def _packed_swizzle(self, places: int, operation: str) -> XorMap:
        """What the swizzle does to elements of ``2**places``, the values being whole runs of so many."""
        if self._only_copies_trade_places():
            return Swizzle(0, 0, 0)
        apply = self._swizzle.apply
        reached = _residues.reached_basis(self._parts(), self._swizzle.width, operation)
        torn = [v for v in reached if (v ^ apply(v)) & (1 << places) - 1]
        torn += [1 << i for i in range(places) if apply(1 << i) != 1 << i]
        if torn:
            raise LayoutError(
                "pack",
                f"{self._swizzle} tears runs of {1 << places} elements apart: it takes {torn[0]} to {apply(torn[0])}",
                "pack fewer, or pack the layout before it is swizzled",
            )
        span = _binary.basis([v >> places for v in reached], self._swizzle.width)
        return smallest_map(span, [apply(v << places) >> places for v in span])

    def compose(self, other: TileLayout, *, assuming: Any = None) -> SwizzledLayout:
        """The layout ``i -> self(other(i))``: `TileLayout.compose`, and then the swizzle.

        >>> print(SwizzledLayout(S[8, 64], Swizzle(3, 3, 3)).compose(TileLayout(S[(64, 8) : (1, 64)])))
        Swizzle(3, 3, 3) o S[(64, 8):(1, 64)]

        Errors: those of `TileLayout.compose`.
        """
        return _made(self._layout.compose(other, assuming=assuming), self._swizzle)

    def storage(self) -> SwizzledLayout:
        """The memory part: iters and offsets on memory axes only, as one holder sees its elements.

        >>> SwizzledLayout(S[(8, 64) : (1 @ warpid, 1)] + 64, Swizzle(3, 3, 3)).storage()
        SwizzledLayout(S[64:1] + 64, Swizzle(3, 3, 3))
        """
        return _made(self._layout.storage(), self._swizzle)

    # --- under conditions: see `conditional` ------------------------------------------------------

    def _made(  # pyright: ignore[reportIncompatibleMethodOverride]  # of this swizzle: a method here
        self, shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], offset: Offset
    ) -> SwizzledLayout:
        return _made(TileLayout.from_iters(shard, replica, offset), self._swizzle)

    def _resting(  # pyright: ignore[reportIncompatibleMethodOverride]  # likewise
        self, parts: Parts, conditions: tuple[Any, ...]
    ) -> SwizzledLayout:
        shard, replica = (tuple([(it[0], it[1], it[2]) for it in iters]) for iters in parts[:2])
        layout = TileLayout._resting((shard, replica, nonzero(parts[2])), conditions)  # pyright: ignore[reportPrivateUsage]
        return _made(layout, self._swizzle)


def _made(layout: TileLayout, swizzle: XorMap) -> SwizzledLayout:
    """A swizzled layout of operands that are known to be valid."""
    self = object.__new__(SwizzledLayout)
    _set(self, "_layout", layout)
    _set(self, "_swizzle", swizzle)
    _set(self, "_hash", hash((layout, swizzle)))
    return self
