"""`TileLayout`: the value that users hold, with evaluation and the algebra as methods.

Validation happens here or in the notation, once, at birth; the methods only pass validated values on to
`algebra` and `evaluate`.  Pictures, other systems and lowering may not be imported; `display`
finds the painter when a layout is shown.
"""

from __future__ import annotations

from .algebra import canonicalize as _canonicalize
from .algebra import evaluate as _evaluate
from .algebra import group as _group
from .algebra.later import Later
from .axis import Axis
from .axis import axis as known_axis
from .conditional import Conditional
from .display import Displayed
from .errors import LayoutError
from .explain import Explained
from .functions import Functions
from .parts import Iter, M, as_entries, as_integer, as_iter, as_iters, as_shape, nonzero, product
from .questions import Questions
from .spec import Spec, parse, to_text
from .structure import Structure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from .algebra import lookup as _lookup
    from .algebra import slice as _slice
    from .algebra import tile as _tile
    from .algebra.lookup import Reader
    from .parts import Integer, Offset, Parts, RawIter
    from .swizzle import XorMap
    from .swizzled import SwizzledLayout
else:
    _lookup, _slice, _tile = Later("lookup"), Later("slice"), Later("tile")

_mapping_view = type(type.__dict__)


class _Fields:
    """The fields of a layout, which can be written until `_trusted` turns it into a `TileLayout`."""

    __slots__ = ("_hash", "_iters", "_offset", "_reader", "_replica", "_shard", "_size")

    _shard: tuple[RawIter, ...]
    _replica: tuple[RawIter, ...]
    _offset: Offset
    # Calculated when first asked for, None before:
    _iters: tuple[tuple[Iter, ...], tuple[Iter, ...]] | None
    _hash: int | None
    _size: Integer | None
    _reader: Reader | None


class TileLayout(_Fields, Functions, Questions, Structure, Explained, Conditional, Displayed):
    """Where each element of a logical tensor lives: the set of places of every flat index.

    ``TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid)``

    For a coordinate in a shape of the layout's size, with flat the row-major flattening (last dimension
    fastest) and ``c_k`` the digits of flat in the shard's extents:
    ``L = { sum(c_k * s_k) + offset + r : r in replica }``, a set of axis coordinates.  An axis that is not
    mentioned has coordinate 0.  The same layout serves every shape of its size.

    Values are frozen, hashable and picklable.  ``==`` compares structure (iters in order, offsets).

    Sizes, strides and bounds may be sympy integers.  What an operation needs is proved from their assumptions, or
    refused with the condition that is missing.  Methods with `assuming` take such conditions, one or several:
    ``Eq(Mod(n, 16), 0)``, ``Eq(n, 16*k)``, ``n >= 64``, ``m < n``, ``And(...)``.  What is false or contradicts the
    symbols' assumptions is refused.  The result rests on them (`conditions`), and what is made of it does, too.

    Source of the model: Axe (named-axis layouts) and TVM TIRx's TileLayout.
    """

    __slots__ = ()

    _rests = False  # whether there are conditions

    def __new__(cls, spec: Spec | TileLayout) -> TileLayout:
        if type(spec) is not Spec:
            if isinstance(spec, TileLayout):
                return spec
            raise LayoutError(
                "TileLayout",
                f"takes the notation S[...] + R[...] + offset, got {type(spec).__name__} {spec!r}",
                "TileLayout.parse(text) for text, TileLayout.from_iters(...) for iters",
            )
        if not spec.has_shard:
            raise LayoutError(
                "TileLayout", f"{spec} has no shard", "begin with S[...]; S[1:0] for a single element"
            )
        return _trusted(spec.shard, spec.replica, {**spec.offset})

    @classmethod
    def from_iters(
        cls,
        shard: Iterable[Iter | tuple[Any, ...]],
        replica: Iterable[Iter | tuple[Any, ...]] = (),
        offset: Mapping[Any, Any] | None = None,
    ) -> TileLayout:
        """A layout of iters, or of ``(extent, stride, axis)`` tuples, and a mapping axis -> offset."""
        checked: Offset = {}
        if offset is not None:
            if not hasattr(offset, "items"):
                raise LayoutError("TileLayout", f"offset must be a mapping axis -> integer, got {offset!r}")
            for name, value in offset.items():
                known = known_axis(name)
                checked[known] = as_integer(value, "TileLayout", f"offset on {known}")
        parts = (("the shard", shard), ("the replica", replica))
        iters = [tuple([as_iter(it) for it in as_entries(part, "TileLayout", what)]) for what, part in parts]
        return _trusted(iters[0], iters[1], nonzero(checked))

    @classmethod
    def parse(
        cls, text: str, symbols: Mapping[str, Any] | None = None, *, assuming: Any = None
    ) -> TileLayout:
        """The layout that `text` writes in the notation (or in TVM's printed form).

        Names that are no axis are looked up in `symbols` (name -> sympy symbol); with symbols there may be what sympy
        prints: ``floor(n/16)``, ``Mod(n, 4)``.  A layout that rests on conditions is read with them.
        Post-condition: ``parse(str(x), symbols, assuming=x.conditions) == x``, with the same conditions.
        Errors: LayoutError with the position.

        >>> TileLayout.parse("T.TileLayout(T.S[(8, 4):(4 @ Axis.laneid, 1)] + 5 @ Axis.warpid)")
        TileLayout(S[(8, 4) : (4 @ laneid, 1)] + 5 @ warpid)
        >>> from sympy import Eq, Mod, Symbol
        >>> n = Symbol("n", integer=True, positive=True)
        >>> TileLayout.parse("S[(floor(n/16), 16):(16, 1)]", {"n": n}, assuming=Eq(Mod(n, 16), 0))
        TileLayout(S[(floor(n/16), 16):(16, 1)])
        """
        if assuming is not None:
            from .conditional.carry import born

            return born("parse", assuming, lambda: cls(parse(text, symbols, whole=True)))
        return cls(parse(text, symbols, whole=True))

    # --- the value ------------------------------------------------------------------------------

    @property
    def shard(self) -> tuple[Iter, ...]:
        """The iters that the logical index runs over, outermost first."""
        return (self._iters or self._named_iters())[0]

    @property
    def replica(self) -> tuple[Iter, ...]:
        """The iters that enumerate further copies."""
        return (self._iters or self._named_iters())[1]

    def _named_iters(self) -> tuple[tuple[Iter, ...], tuple[Iter, ...]]:
        iters = as_iters(self._shard), as_iters(self._replica)
        _set_iters(self, iters)
        return iters

    @property
    def offset(self) -> Mapping[Axis, Integer]:
        """Axis -> offset, for the axes whose offset is not zero."""
        return _mapping_view(self._offset)  # type: ignore[call-arg,return-value]  # mappingproxy

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"TileLayout is frozen: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"TileLayout is frozen: cannot delete {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TileLayout):
            return NotImplemented
        return (
            self._shard == other._shard and self._replica == other._replica and self._offset == other._offset
        )

    def __hash__(self) -> int:
        if self._hash is None:
            _set_hash(self, hash((self._shard, self._replica, frozenset(self._offset.items()))))
        return self._hash  # type: ignore[return-value]  # set just now

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _unpickle, (self._shard, self._replica, dict(self._offset))

    def __str__(self) -> str:
        return to_text(self._shard, self._replica, self._offset)

    def __repr__(self) -> str:
        return f"TileLayout({self})"

    # --- evaluation -----------------------------------------------------------------------------

    def size(self) -> Integer:
        """The number of logical elements.

        >>> TileLayout(S[8, 4]).size()
        32
        """
        if self._size is None:
            _set_size(self, product(it[0] for it in self._shard))
        return self._size  # type: ignore[return-value]  # set just now

    def span(self, axis: Axis | str = M, *, assuming: Any = None) -> Integer:
        """max - min + 1 of the coordinate on `axis`, over shard and replica; the offset does not count.

        >>> TileLayout(S[(8, 4) : (4 @ laneid, 1)] + 64).span("laneid")
        29
        """
        if assuming is not None:
            return self._under("span", assuming, axis)
        return _tile.spans(self._shard, self._replica).get(known_axis(axis), 1)

    def apply(
        self, *coord: Any, shape: Sequence[Any] | int | None = None, assuming: Any = None
    ) -> dict[Axis, Any]:
        """Axis -> value at a coordinate, the replica left out.

        With `shape` the coordinate is in that shape; without, one integer is a flat index and several are
        one per shard iter.  Coordinates may be ints, numpy integer arrays (broadcast together) or sympy
        expressions, which are taken to be in range.
        Errors: LayoutError for a coordinate out of range, of the wrong rank or type, or a shape of another size.

        >>> TileLayout(S[(8, 4) : (4 @ laneid, 1)] + 5 @ warpid).apply(3, 2)
        {warpid: 5, laneid: 12, m: 2}
        """
        if assuming is not None:
            return self._under("apply", assuming, *coord, shape=shape)
        reader = self._reader
        if reader is None:
            reader = _lookup.Reader(self._shard, self._offset)
            _set_reader(self, reader)
        known, width, axes = reader.tables
        if shape is known:  # this very object was found valid before, see `lookup`
            high = low = -1
            if width:
                if len(coord) == 1 and type(low := coord[0]) is int:
                    high = low // width
                    low %= width
            elif len(coord) == 2 and type(low := coord[1]) is int and low >= 0 and type(coord[0]) is int:
                high = coord[0]
            if high >= 0:
                try:
                    out: dict[Axis, Any] = {}
                    for a, above, below in axes:
                        out[a] = above[high] + below[low]
                    return out
                except IndexError:
                    pass  # out of range: the general case says so
        if len(coord) > 2:
            return _evaluate.apply(self._shard, self._offset, reader.plan, coord, shape)
        return reader.apply(coord, shape)

    # --- the algebra ----------------------------------------------------------------------------

    def canonicalize(self, scope: str | None = None, *, assuming: Any = None) -> TileLayout:
        """The canonical form: the same function with the fewest iters.

        With a `scope` the thread axes of a CTA are first counted as it counts them, see `fuse_threads` and
        `split_threads`: "cta" by tx, "warpgroup" by wgid and tid_in_wg, "warp" by warpid and laneid.

        >>> TileLayout(S[(2, 3, 4) : (12, 4, 1)]).canonicalize()
        TileLayout(S[24:1])
        >>> TileLayout(S[(4, 32) : (1 @ wid_in_wg, 1 @ laneid)]).canonicalize("cta")
        TileLayout(S[128 : 1 @ tx])
        """
        if assuming is not None:
            return self._under("canonicalize", assuming, scope)
        if scope is not None:
            return self._canonicalize_threads(scope)
        return _trusted(*_canonicalize.canonicalize(self._shard, self._replica, self._offset))

    def group(
        self, shape: Sequence[Any] | int, *, assuming: Any = None
    ) -> tuple[TileLayout, tuple[int, ...]]:
        """The same function with iters split at the dimensions of `shape`, and the separators.

        Dimension d is ``result.shard[seps[d]:seps[d + 1]]``; refused where a boundary cuts an iter unevenly.

        >>> TileLayout(S[8:1]).group((2, 4))
        (TileLayout(S[(2, 4):(4, 1)]), (0, 1, 2))
        """
        if assuming is not None:
            return self._under("group", assuming, shape)
        shard, seps = _group.group(self._shard, as_shape(shape, "group"))
        return _trusted(shard, self._replica, self._offset), seps

    def slice(self, shape: Sequence[Any] | int, region: Sequence[Any], *, assuming: Any = None) -> TileLayout:
        """The layout of a box: `region` gives (begin, end) or (begin, end, step) per dimension of `shape`, half open.

        At every coordinate of the box the result has the owners of ``begin + step * coordinate``.  A layout is
        returned iff one exists, for boxes whose lengths are numbers.  A length that stays a symbol is refused by name,
        unless it is the whole dimension: what exists depends on its value.

        >>> TileLayout(S[8, 16]).slice((8, 16), [(2, 4), (8, 16)])
        TileLayout(S[(2, 8):(16, 1)] + 40)
        >>> TileLayout(S[8, 16]).slice((8, 16), [(1, 8, 3), (8, 16)])
        TileLayout(S[(3, 8):(48, 1)] + 24)
        """
        if assuming is not None:
            return self._under("slice", assuming, shape, region)
        return _trusted(*_slice.slice_layout(self._parts(), as_shape(shape, "slice"), region))

    def tile(
        self,
        outer: TileLayout,
        outer_shape: Sequence[Any] | int,
        inner_shape: Sequence[Any] | int,
        *,
        assuming: Any = None,
    ) -> TileLayout:
        """Copies of this layout placed by `outer`, over the interleaved shape (Axe's tiling).

        ``f(x || y) = f_outer(x) * span(self) + f_self(y)`` on every axis.
        Pre-condition: `outer` can be grouped to `outer_shape` and this layout to `inner_shape`, dimensions joined where
        the other shape counts one between them; shapes that cut an iter are refused, though a layout may exist.

        >>> TileLayout(S[4:1]).tile(TileLayout(S[2 : 1 @ warpid]), (2,), (4,))
        TileLayout(S[(2, 4) : (1 @ warpid, 1)])
        """
        if not isinstance(outer, TileLayout):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LayoutError("tile", f"outer must be a TileLayout, got {type(outer).__name__}")
        if assuming is not None or outer._rests:
            return self._under("tile", assuming, outer, outer_shape, inner_shape)
        return _trusted(
            *_tile.tile(
                self._parts(), outer._parts(), as_shape(outer_shape, "tile"), as_shape(inner_shape, "tile")
            )
        )

    def tile_to(
        self, to_shape: Sequence[Any] | int, current_shape: Sequence[Any] | int, *, assuming: Any = None
    ) -> TileLayout:
        """`tile` with the row-major copies on `m` that fill `to_shape`; dimensions must divide, and as for `tile`.

        >>> TileLayout(S[2, 4]).tile_to((4, 4), (2, 4))
        TileLayout(S[(2, 2, 1, 4):(8, 4, 0, 1)])
        >>> TileLayout(S[(4, 3) : (1, 5)]).tile_to(
        ...     (12, 2), (6, 2)
        ... )  # copies along the outermost dimension cut none
        TileLayout(S[(2, 4, 3):(14, 1, 5)])
        """
        if assuming is not None:
            return self._under("tile_to", assuming, to_shape, current_shape)
        return _trusted(
            *_tile.tile_to(self._parts(), as_shape(to_shape, "tile_to"), as_shape(current_shape, "tile_to"))
        )

    def swizzle(
        self,
        swizzle: XorMap | int,
        base: int | None = None,
        shift: int | None = None,
        *,
        unit_bits: int | None = None,
        element_bits: int | None = None,
    ) -> SwizzledLayout:
        """This layout, and then the swizzle of its coordinate on `m`.

        Takes a `Swizzle` or `XorMap`, or a swizzle's bits, base and shift.  They count elements, as strides do.  For
        parameters that count something else, such as the bytes of hardware manuals, give the widths of both:
        `unit_bits` of what the swizzle counts, `element_bits` of an element.
        Post-condition: a place v on `m` becomes ``swizzle.in_units(unit_bits, element_bits)(v)``.
        Errors: LayoutError for one width without the other, and where an element would be torn apart.

        >>> TileLayout(S[8, 64]).swizzle(3, 3, 3)
        SwizzledLayout(S[(8, 64):(64, 1)], Swizzle(3, 3, 3))
        >>> tf32 = TileLayout(S[(32, 8) : (1, 32)])
        >>> tf32.swizzle(3, 4, 3, unit_bits=8, element_bits=32).apply(0, 1)  # the 128-byte swizzle
        {m: 36}
        >>> tf32.swizzle(3, 4, 3).apply(0, 1)  # another swizzle: here the parameters count elements
        {m: 32}
        """
        from .swizzled.birth import swizzled

        return swizzled(self, swizzle, base, shift, unit_bits, element_bits)

    def _parts(self) -> Parts:
        return self._shard, self._replica, self._offset

    @staticmethod
    def _made(shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], offset: Offset) -> TileLayout:
        """A layout of parts that are known to be valid, for the methods that are written elsewhere."""
        return _trusted(shard, replica, offset)

    @staticmethod
    def _resting(parts: Parts, conditions: tuple[Any, ...]) -> TileLayout:
        """The same, of a layout that rests on conditions."""
        if not _Conditioned._hands_on:  # pyright: ignore[reportPrivateUsage]  # of this file
            from .conditional.carry import hand_on

            # `subs` takes care of the conditions, and a swizzled layout has this one inside it.
            hand_on(_Conditioned, ("subs", "swizzle"))
            _Conditioned._hands_on = True  # pyright: ignore[reportPrivateUsage]  # of this file
        self: Any = _new(_Conditioned)
        for set_field, value in zip(_set_fields, (*parts, conditions, None, None, None, None), strict=True):
            set_field(self, value)
        return self


class _Conditioned(TileLayout):
    """A layout that rests on conditions: each method knows them and hands them on.

    A class of its own, so that layouts without conditions need not ask for any.
    """

    __slots__ = ("_conditions",)

    _rests = True
    _hands_on = False  # whether its methods are in place: the first such layout sees to it

    @property
    def conditions(self) -> tuple[Any, ...]:
        return self._conditions

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _unpickle, (self._shard, self._replica, dict(self._offset), self._conditions)


_new = object.__new__
_set_hash = _Fields._hash.__set__  # type: ignore[attr-defined,union-attr]  # slot descriptors pass the frozen setattr
_set_iters = _Fields._iters.__set__  # type: ignore[attr-defined,union-attr]
_set_size = _Fields._size.__set__  # type: ignore[attr-defined,union-attr]
_set_reader = _Fields._reader.__set__  # type: ignore[attr-defined,union-attr]
_set_fields = [
    getattr(_Conditioned, name).__set__
    for name in ("_shard", "_replica", "_offset", "_conditions", "_iters", "_hash", "_size", "_reader")
]


def _trusted(shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], offset: Offset) -> TileLayout:
    """A layout of parts that are known to be valid."""
    self: Any = _new(_Fields)
    self._shard = shard
    self._replica = replica
    self._offset = offset
    self._iters = self._hash = self._size = self._reader = None
    self.__class__ = TileLayout
    return self


def _unpickle(
    shard: tuple[RawIter, ...],
    replica: tuple[RawIter, ...],
    offset: Offset,
    conditions: tuple[Any, ...] = (),
) -> TileLayout:
    known = {known_axis(a): v for a, v in offset.items()}
    if conditions:
        return TileLayout._resting((shard, replica, known), conditions)  # pyright: ignore[reportPrivateUsage]
    return _trusted(shard, replica, known)
