"""`TileLayout`: the value that users hold, with evaluation and the algebra as methods.

Validation happens here or in the notation, once, at birth; the methods only pass validated values on to
`algebra` and `evaluate`.  Pictures, other systems and lowering may not be imported: they fill `display_hooks`.
"""

from __future__ import annotations

from .algebra import canonicalize as _canonicalize
from .algebra import evaluate as _evaluate
from .algebra import group as _group
from .algebra import pack as _pack
from .algebra import permute as _permute
from .algebra import slice as _slice
from .algebra import tile as _tile
from .axis import Axis
from .axis import axis as known_axis
from .errors import LayoutError
from .explain import Explained
from .functions import Functions
from .parts import Iter, M, as_entries, as_integer, as_iters, as_shape, nonzero, product
from .questions import Questions
from .spec import Spec, parse, to_text
from .structure import Structure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    import numpy.typing as npt

    from .parts import Integer, Offset, Parts, RawIter

display_hooks: dict[str, Callable[[TileLayout], str]] = {}
"""MIME type -> function from a layout to that text; filled by the rooms that draw."""

_mapping_view = type(type.__dict__)


class _Fields:
    """The fields of a layout, which can be written until `_trusted` turns it into a `TileLayout`."""

    __slots__ = ("_hash", "_iters", "_offset", "_plan", "_replica", "_shard", "_size")

    _shard: tuple[RawIter, ...]
    _replica: tuple[RawIter, ...]
    _offset: Offset
    # Calculated when first asked for, None before:
    _iters: tuple[tuple[Iter, ...], tuple[Iter, ...]] | None
    _hash: int | None
    _size: Integer | None
    _plan: _evaluate.Plan | None


class TileLayout(_Fields, Functions, Questions, Structure, Explained):
    """Where each element of a logical tensor lives: the set of places of every flat index.

    ``TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid)``

    For a coordinate in a shape of the layout's size, with flat the row-major flattening (last dimension
    fastest) and ``c_k`` the digits of flat in the shard's extents:
    ``L = { sum(c_k * s_k) + offset + r : r in replica }``, a set of axis coordinates.  An axis that is not
    mentioned has coordinate 0.  The same layout serves every shape of its size.

    Values are frozen, hashable and picklable.  ``==`` compares structure (iters in order, offsets).

    Source of the model: Axe (named-axis layouts) and TVM TIRx's TileLayout.
    """

    __slots__ = ()

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
        iters = [tuple([_as_iter(it) for it in as_entries(part, "TileLayout", what)]) for what, part in parts]
        return _trusted(iters[0], iters[1], nonzero(checked))

    @classmethod
    def parse(cls, text: str, symbols: Mapping[str, Any] | None = None) -> TileLayout:
        """The layout that `text` writes in the notation (or in TVM's printed form).

        Names that are no axis are looked up in `symbols` (name -> sympy symbol).
        Errors: LayoutError with the position.

        >>> TileLayout.parse("T.TileLayout(T.S[(8, 4):(4 @ Axis.laneid, 1)] + 5 @ Axis.warpid)")
        TileLayout(S[(8, 4) : (4 @ laneid, 1)] + 5 @ warpid)
        """
        return cls(parse(text, symbols))

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

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), **{mime: draw(self) for mime, draw in display_hooks.items()}}

    # --- evaluation -----------------------------------------------------------------------------

    def size(self) -> Integer:
        """The number of logical elements.

        >>> TileLayout(S[8, 4]).size()
        32
        """
        if self._size is None:
            _set_size(self, product(it[0] for it in self._shard))
        return self._size  # type: ignore[return-value]  # set just now

    def span(self, axis: Axis | str = M) -> Integer:
        """max - min + 1 of the coordinate on `axis`, over shard and replica; the offset does not count.

        >>> TileLayout(S[(8, 4) : (4 @ laneid, 1)] + 64).span("laneid")
        29
        """
        return _tile.spans(self._shard, self._replica).get(known_axis(axis), 1)

    def apply(self, *coord: Any, shape: Sequence[Any] | int | None = None) -> dict[Axis, Any]:
        """Axis -> value at a coordinate, the replica left out.

        With `shape` the coordinate is in that shape; without, one integer is a flat index and several are
        one per shard iter.  Coordinates may be ints, numpy integer arrays (broadcast together) or sympy
        expressions, which are taken to be in range.
        Errors: LayoutError for a coordinate out of range, of the wrong rank or type, or a shape of another size.

        >>> TileLayout(S[(8, 4) : (4 @ laneid, 1)] + 5 @ warpid).apply(3, 2)
        {warpid: 5, laneid: 12, m: 2}
        """
        plan = self._plan
        if plan is None:
            plan = _evaluate.plan(self._shard, self._offset)
            _set_plan(self, plan)
        return _evaluate.apply(self._shard, self._offset, plan, coord, shape)

    def owners(self, *coord: Any, shape: Sequence[Any] | int | None = None) -> tuple[dict[Axis, Any], ...]:
        """Every place that holds the element: one mapping per choice of replica coordinate.

        Places that several replica coordinates reach are listed once.

        >>> TileLayout(S[8:1] + R[2 : 4 @ warpid]).owners(3)
        ({m: 3, warpid: 0}, {m: 3, warpid: 4})
        """
        base = self.apply(*coord, shape=shape)
        if not self._replica:
            return (base,)
        base = _evaluate.with_room(base, self._shard, self._replica, self._offset)
        out: list[dict[Axis, Any]] = []
        for step in _evaluate.copies(self._replica):
            place = dict(base)
            for a, distance in step.items():
                place[a] = place.get(a, 0) + distance
            out.append(place)
        return tuple(out)

    def table(self, shape: Sequence[Any] | int | None = None) -> dict[Axis, npt.NDArray[Any]]:
        """The whole map: axis -> array of `shape` (default: the shard's extents), replica left out.

        Arrays are int64 where all values fit, else of Python integers.
        """
        dims = tuple([it[0] for it in self._shard]) if shape is None else as_shape(shape, "table")
        return _evaluate.table(self._shard, self._offset, dims)

    # --- the algebra ----------------------------------------------------------------------------

    def canonicalize(self, scope: str | None = None) -> TileLayout:
        """The canonical form: the same function with the fewest iters.

        With a `scope` the thread axes of a CTA are first counted as it counts them, see `fuse_threads` and
        `split_threads`: "cta" by tx, "warpgroup" by wgid and tid_in_wg, "warp" by warpid and laneid.

        >>> TileLayout(S[(2, 3, 4) : (12, 4, 1)]).canonicalize()
        TileLayout(S[24:1])
        >>> TileLayout(S[(4, 32) : (1 @ wid_in_wg, 1 @ laneid)]).canonicalize("cta")
        TileLayout(S[128 : 1 @ tx])
        """
        if scope is not None:
            return self._canonicalize_threads(scope)
        return _trusted(*_canonicalize.canonicalize(self._shard, self._replica, self._offset))

    def group(self, shape: Sequence[Any] | int) -> tuple[TileLayout, tuple[int, ...]]:
        """The same function with iters split at the dimensions of `shape`, and the separators.

        Dimension d is ``result.shard[seps[d]:seps[d + 1]]``; refused where a boundary cuts an iter unevenly.

        >>> TileLayout(S[8:1]).group((2, 4))
        (TileLayout(S[(2, 4):(4, 1)]), (0, 1, 2))
        """
        shard, seps = _group.group(self._shard, as_shape(shape, "group"))
        return _trusted(shard, self._replica, self._offset), seps

    def slice(self, shape: Sequence[Any] | int, region: Sequence[Any]) -> TileLayout:
        """The layout of a box: `region` gives (begin, end) or (begin, end, step) per dimension of `shape`, half open.

        At every coordinate of the box the result has the owners of ``begin + step * coordinate``.  A layout is
        returned iff one exists.

        >>> TileLayout(S[8, 16]).slice((8, 16), [(2, 4), (8, 16)])
        TileLayout(S[(2, 8):(16, 1)] + 40)
        >>> TileLayout(S[8, 16]).slice((8, 16), [(1, 8, 3), (8, 16)])
        TileLayout(S[(3, 8):(48, 1)] + 24)
        """
        return _trusted(*_slice.slice_layout(self._parts(), as_shape(shape, "slice"), region))

    def tile(
        self, outer: TileLayout, outer_shape: Sequence[Any] | int, inner_shape: Sequence[Any] | int
    ) -> TileLayout:
        """Copies of this layout placed by `outer`, over the interleaved shape (Axe's tiling).

        ``f(x || y) = f_outer(x) * span(self) + f_self(y)`` on every axis.

        >>> TileLayout(S[4:1]).tile(TileLayout(S[2 : 1 @ warpid]), (2,), (4,))
        TileLayout(S[(2, 4) : (1 @ warpid, 1)])
        """
        if not isinstance(outer, TileLayout):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise LayoutError("tile", f"outer must be a TileLayout, got {type(outer).__name__}")
        return _trusted(
            *_tile.tile(
                self._parts(), outer._parts(), as_shape(outer_shape, "tile"), as_shape(inner_shape, "tile")
            )
        )

    def tile_to(self, to_shape: Sequence[Any] | int, current_shape: Sequence[Any] | int) -> TileLayout:
        """`tile` with the row-major copies on `m` that fill `to_shape`; dimensions must divide.

        >>> TileLayout(S[2, 4]).tile_to((4, 4), (2, 4))
        TileLayout(S[(2, 2, 1, 4):(8, 4, 0, 1)])
        """
        return _trusted(
            *_tile.tile_to(self._parts(), as_shape(to_shape, "tile_to"), as_shape(current_shape, "tile_to"))
        )

    def permute_dims(self, perm: Sequence[Any]) -> TileLayout:
        """The shard's iters in another order: iter k of the result is iter ``perm[k]``.

        >>> TileLayout(S[2, 3]).permute_dims((1, 0))
        TileLayout(S[(3, 2):(1, 3)])
        """
        return _trusted(_permute.permute_dims(self._shard, perm), self._replica, self._offset)

    def permute_by_groups(self, seps: Sequence[Any], perm: Sequence[Any]) -> TileLayout:
        """The groups ``shard[seps[g]:seps[g + 1]]`` in another order: group k of the result is ``perm[k]``.

        >>> TileLayout(S[2, 3, 4]).permute_by_groups((0, 1, 3), (1, 0))
        TileLayout(S[(3, 4, 2):(4, 1, 12)])
        """
        return _trusted(_permute.permute_by_groups(self._shard, seps, perm), self._replica, self._offset)

    def pack(self, num: Any) -> TileLayout:
        """`num` neighbors on `m` become one wider element; refused where they are not neighbors.

        >>> TileLayout(S[(8, 4) : (4 @ laneid, 1)]).pack(2)
        TileLayout(S[(8, 2) : (4 @ laneid, 1)])
        """
        return _trusted(*_pack.pack(self._parts(), num))

    def unpack(self, num: Any) -> TileLayout:
        """Each element becomes `num` narrower neighbors on `m`.

        >>> TileLayout(S[(8, 2) : (4 @ laneid, 1)]).unpack(2)
        TileLayout(S[(8, 2, 2) : (4 @ laneid, 2, 1)])
        """
        return _trusted(*_pack.unpack(self._parts(), num))

    def storage(self) -> TileLayout:
        """The memory part: iters and offsets on memory axes only, as one holder sees its elements.

        Index k of the result runs over the memory iters in the order of the shard.

        >>> TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 1 @ warpid] + 3).storage()
        TileLayout(S[4:1] + 3)
        """
        shard = tuple([it for it in self._shard if it[2].kind == "memory"])
        replica = tuple([it for it in self._replica if it[2].kind == "memory"])
        return _trusted(shard, replica, {a: v for a, v in self._offset.items() if a.kind == "memory"})

    def _parts(self) -> Parts:
        return self._shard, self._replica, self._offset

    @staticmethod
    def _made(shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], offset: Offset) -> TileLayout:
        """A layout of parts that are known to be valid, for the methods that are written elsewhere."""
        return _trusted(shard, replica, offset)


def _as_iter(it: Any) -> RawIter:
    if type(it) is not Iter:
        if not isinstance(it, tuple) or len(it) not in (2, 3):  # pyright: ignore[reportUnknownArgumentType]
            raise LayoutError("TileLayout", f"an iter is (extent, stride, axis), got {it!r}")
        it = Iter(*it)  # pyright: ignore[reportUnknownArgumentType]
    return it[0], it[1], it[2]


_new = object.__new__
_set_hash = _Fields._hash.__set__  # type: ignore[attr-defined,union-attr]  # slot descriptors pass the frozen setattr
_set_iters = _Fields._iters.__set__  # type: ignore[attr-defined,union-attr]
_set_size = _Fields._size.__set__  # type: ignore[attr-defined,union-attr]
_set_plan = _Fields._plan.__set__  # type: ignore[attr-defined,union-attr]


def _trusted(shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], offset: Offset) -> TileLayout:
    """A layout of parts that are known to be valid."""
    self: Any = _new(_Fields)
    self._shard = shard
    self._replica = replica
    self._offset = offset
    self._iters = self._hash = self._size = self._plan = None
    self.__class__ = TileLayout
    return self


def _unpickle(shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], offset: Offset) -> TileLayout:
    return _trusted(shard, replica, {known_axis(a): v for a, v in offset.items()})
