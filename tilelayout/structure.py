"""The structure of layouts, as methods of `TileLayout`: refine, add, take apart, choose axes, count threads.

Operands are validated here; the work is done in `algebra`.
"""

from __future__ import annotations

from .algebra.later import Later
from .axis import axis as known_axis
from .errors import LayoutError
from .parts import Parted, as_entries, as_extent, as_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

    from .algebra import by_axis as _by_axis
    from .algebra import direct_sum as _direct_sum
    from .algebra import pack as _pack
    from .algebra import permute as _permute
    from .algebra import recover as _recover
    from .algebra import refine as _refine
    from .algebra import threads as _threads
    from .axis import Axis
else:
    _by_axis, _direct_sum, _recover = Later("by_axis"), Later("direct_sum"), Later("recover")
    _pack, _permute, _refine, _threads = Later("pack"), Later("permute"), Later("refine"), Later("threads")


class Structure(Parted):
    """How iters are arranged, and what layouts are put together from."""

    __slots__ = ()

    def group_many(
        self, shapes: Sequence[Sequence[Any] | int], *, assuming: Any = None
    ) -> tuple[Self, tuple[tuple[int, ...], ...]]:
        """`group` for several shapes at once: the same function over their minimal common refinement.

        Post-conditions, with ``seps[k]`` the separators of shape k: its dimension d is
        ``result.shard[seps[k][d]:seps[k][d + 1]]``, at least one iter; ``seps[k]`` goes from 0 to the iters' number.
        A unit dimension of any shape is a unit iter.
        Errors: LayoutError for no shapes, a shape of another size, or shapes whose boundaries no layout can have
        together, with the two dimensions.

        >>> TileLayout(S[24]).group_many([(2, 12), (4, 6), (24,)])
        (TileLayout(S[(2, 2, 6):(12, 6, 1)]), ((0, 1, 3), (0, 2, 3), (0, 3)))
        >>> TileLayout(S[24]).group_many([(4, 6), (3, 8)])
        Traceback (most recent call last):
        tilelayout.errors.LayoutError: group_many: dimension 0 of (3, 8) and dimension 0 of (4, 6) end in places ...
        """
        if assuming is not None:
            return self._under("group_many", assuming, shapes)
        several = as_entries(shapes, "group_many", "shapes")
        if not several:
            raise LayoutError("group_many", "takes at least one shape")
        dims = [as_shape(shape, "group_many", f"shape {k}") for k, shape in enumerate(several)]
        shard, seps = _refine.group_many(self._shard, dims)
        return self._made(shard, self._replica, self._offset), seps

    def permute_dims(self, perm: Sequence[Any]) -> Self:
        """The shard's iters in another order: iter k of the result is iter ``perm[k]``.

        >>> TileLayout(S[2, 3]).permute_dims((1, 0))
        TileLayout(S[(3, 2):(1, 3)])
        """
        return self._made(_permute.permute_dims(self._shard, perm), self._replica, self._offset)

    def permute_by_groups(self, seps: Sequence[Any], perm: Sequence[Any]) -> Self:
        """The groups ``shard[seps[g]:seps[g + 1]]`` in another order: group k of the result is ``perm[k]``.

        >>> TileLayout(S[2, 3, 4]).permute_by_groups((0, 1, 3), (1, 0))
        TileLayout(S[(3, 4, 2):(4, 1, 12)])
        """
        return self._made(_permute.permute_by_groups(self._shard, seps, perm), self._replica, self._offset)

    def pack(self, num: Any, *, assuming: Any = None) -> Self:
        """`num` neighbors on `m` become one wider element; refused where they are not neighbors.

        >>> TileLayout(S[(8, 4) : (4 @ laneid, 1)]).pack(2)
        TileLayout(S[(8, 2) : (4 @ laneid, 1)])
        """
        if assuming is not None:
            return self._under("pack", assuming, num)
        return self._made(*_pack.pack(self._parts(), num))

    def unpack(self, num: Any, *, assuming: Any = None) -> Self:
        """Each element becomes `num` narrower neighbors on `m`.

        >>> TileLayout(S[(8, 2) : (4 @ laneid, 1)]).unpack(2)
        TileLayout(S[(8, 2, 2) : (4 @ laneid, 2, 1)])
        """
        if assuming is not None:
            return self._under("unpack", assuming, num)
        return self._made(*_pack.unpack(self._parts(), num))

    def direct_sum(
        self,
        left: Self,
        left_shape: Sequence[Any] | int,
        right_shape: Sequence[Any] | int,
        *,
        assuming: Any = None,
    ) -> Self:
        """The sum of `left` and this layout over the interleaved shape; neither is scaled (TIRx's direct_sum).

        Pre-condition: `left` can be grouped to `left_shape` and this layout to `right_shape`, of one rank, dimensions
        joined where the other shape counts one between them; shapes that cut an iter are refused, though a layout may
        exist.
        Post-condition: ``f(x || y) = f_left(x) + f_self(y)`` on every axis, owners with owners: dimension d has extent
        ``left_shape[d] * right_shape[d]`` and index ``x[d] * right_shape[d] + y[d]``.

        >>> TileLayout(S[4:1]).direct_sum(TileLayout(S[(2, 3) : (100, 10)] + 7), (2, 3), (4, 1))
        TileLayout(S[(2, 4, 3, 1):(100, 1, 10, 0)] + 7)
        """
        _check_layout(left, "direct_sum", "left")
        if assuming is not None or left._rests:
            return self._under("direct_sum", assuming, left, left_shape, right_shape)
        return self._made(
            *_direct_sum.direct_sum(
                left._parts(),
                self._parts(),
                as_shape(left_shape, "direct_sum", "left shape"),
                as_shape(right_shape, "direct_sum", "right shape"),
            )
        )

    # --- tilings and sums taken apart -----------------------------------------------------------

    def recover_outer(
        self,
        tiled: Self,
        tiled_shape: Sequence[Any] | int,
        inner_shape: Sequence[Any] | int,
        *,
        assuming: Any = None,
    ) -> Self:
        """The layout that places copies of this one as `tiled` has them (TIRx's is_tile_inner).

        Post-condition: ``self.tile(result, outer_shape, inner_shape)`` is equivalent to `tiled`, with
        ``outer_shape = tiled_shape / inner_shape``.
        Errors: LayoutError that says why there is none; Undecided where replicas would have to be searched.

        >>> TileLayout(S[4:1]).recover_outer(TileLayout(S[(2, 4) : (1 @ warpid, 1)]), (8,), (4,))
        TileLayout(S[2 : 1 @ warpid])
        >>> TileLayout(S[4:1]).recover_outer(TileLayout(S[(2, 4) : (6, 1)]), (8,), (4,))
        Traceback (most recent call last):
        tilelayout.errors.LayoutError: recover_outer: the stride 6 of an outer iter of extent 2 on m is no ...
        """
        return self._recovered(
            "recover_outer", "tiled", tiled, tiled_shape, ("inner shape", inner_shape), assuming
        )

    def recover_inner(
        self,
        tiled: Self,
        tiled_shape: Sequence[Any] | int,
        outer_shape: Sequence[Any] | int,
        *,
        assuming: Any = None,
    ) -> Self:
        """The layout whose copies this one places as `tiled` has them (TIRx's is_tile_outer).

        Post-condition: ``result.tile(self, outer_shape, inner_shape)`` is equivalent to `tiled`, with
        ``inner_shape = tiled_shape / outer_shape``.
        Errors: LayoutError that says why there is none; Undecided where replicas would have to be searched.

        >>> TileLayout(S[2 : 1 @ warpid]).recover_inner(TileLayout(S[(2, 4) : (1 @ warpid, 1)]), (8,), (2,))
        TileLayout(S[4:1])
        >>> TileLayout(S[2:1]).recover_inner(TileLayout(S[(2, 4) : (6, 1)]), (8,), (2,))
        Traceback (most recent call last):
        tilelayout.errors.LayoutError: recover_inner: the whole does not move like the outer layout (scaled ...
        """
        return self._recovered(
            "recover_inner", "tiled", tiled, tiled_shape, ("outer shape", outer_shape), assuming
        )

    def recover_left(
        self,
        total: Self,
        shape: Sequence[Any] | int,
        right_shape: Sequence[Any] | int,
        *,
        assuming: Any = None,
    ) -> Self:
        """The layout that with this one as the right addend sums to `total` (TIRx's is_direct_sum_right).

        `shape` is the shape of the sum, or its interleaved form ``(left_0, right_0, left_1, right_1, ...)``.
        Post-condition: ``self.direct_sum(result, left_shape, right_shape)`` is equivalent to `total`.
        Errors: LayoutError that says why there is none; Undecided where replicas would have to be searched.

        >>> TileLayout(S[4:1]).recover_left(TileLayout(S[(2, 4) : (6, 1)] + 3), (8,), (4,))
        TileLayout(S[2:6] + 3)
        """
        return self._recovered("recover_left", "total", total, shape, ("right shape", right_shape), assuming)

    def recover_right(
        self,
        total: Self,
        shape: Sequence[Any] | int,
        left_shape: Sequence[Any] | int,
        *,
        assuming: Any = None,
    ) -> Self:
        """The layout that with this one as the left addend sums to `total` (TIRx's is_direct_sum_left).

        `shape` is the shape of the sum, or its interleaved form ``(left_0, right_0, left_1, right_1, ...)``.
        Post-condition: ``result.direct_sum(self, left_shape, right_shape)`` is equivalent to `total`.
        Errors: LayoutError that says why there is none; Undecided where replicas would have to be searched.

        >>> TileLayout(S[2:6]).recover_right(TileLayout(S[(2, 4) : (6, 1)] + 3), (2, 4), (2,))
        TileLayout(S[4:1] + 3)
        """
        return self._recovered("recover_right", "total", total, shape, ("left shape", left_shape), assuming)

    def _recovered(
        self, operation: str, called: str, whole: Self, shape: Any, part: tuple[str, Any], assuming: Any
    ) -> Self:
        """What makes `whole`, as it is `called`, of this layout; `part` is the name and the shape of what is known."""
        _check_layout(whole, operation, called)
        name, known = part
        if assuming is not None or whole._rests:
            return self._under(operation, assuming, whole, shape, known)
        dims = as_shape(shape, operation), as_shape(known, operation, name)
        return self._made(*getattr(_recover, operation)(self._parts(), whole._parts(), *dims))

    # --- axes -----------------------------------------------------------------------------------

    def broadcast(
        self, num: Any, position: Any = -1, axis: Axis | str = "m", *, assuming: Any = None
    ) -> Self:
        """The layout with a dimension of `num` indices that moves nothing, as iter `position` of the shard.

        Positions are those of `list.insert`, with -1 after the last iter.
        Post-condition: the owners do not depend on the new coordinate, and are as before in the others.

        >>> TileLayout(S[2, 3]).broadcast(4)
        TileLayout(S[(2, 3, 4):(3, 1, 0)])
        >>> TileLayout(S[2, 3]).broadcast(4, 0, "laneid")
        TileLayout(S[(4, 2, 3) : (0 @ laneid, 3, 1)])
        """
        if assuming is not None:
            return self._under("broadcast", assuming, num, position, axis)
        extent = as_extent(num, "broadcast", "extent")
        shard = _by_axis.broadcast(self._shard, extent, position, known_axis(axis))
        return self._made(shard, self._replica, self._offset)

    def select(self, *axes: Axis | str) -> Self:
        """The part on `axes`: iters on others become unit ones, so that the rank stays and the size tells.

        Post-condition: the coordinates on `axes` of the elements whose other iters' coordinates are 0.  Replica and
        offset are kept on `axes` alone.  `project` keeps the size instead.

        >>> TileLayout(S[(8, 4) : (4 @ laneid, 1)] + 3).select("laneid")
        TileLayout(S[(8, 1) : (4 @ laneid, 0)])
        """
        return self._made(*_by_axis.select(self._parts(), _as_axes(axes, "select")))

    def project(self, *axes: Axis | str) -> Self:
        """The same logical elements, with their coordinates on `axes` alone.

        Post-condition: at every index the owners, the coordinates on other axes forgotten.

        >>> TileLayout(S[(8, 4) : (4 @ laneid, 1)] + 3).project("m")
        TileLayout(S[(8, 4):(0, 1)] + 3)
        """
        return self._made(*_by_axis.project(self._parts(), _as_axes(axes, "project")))

    def join(self, *others: Self, assuming: Any = None) -> Self:
        """One layout of this one and `others`, which have its size and axes of their own.

        Post-condition: at every index, every choice of one owner from each, put together; canonical shard.
        Returned iff a layout has that function: digits of two operands that move together would lie on two axes.
        Errors: LayoutError for sizes that differ, axes that overlap, and where there is none.

        >>> lanes, registers = TileLayout(S[(8, 4) : (4 @ laneid, 0)]), TileLayout(S[(8, 4) : (0, 1)] + 3)
        >>> lanes.join(registers)
        TileLayout(S[(8, 4) : (4 @ laneid, 1)] + 3)
        """
        for other in others:
            _check_layout(other, "join", "an operand")
        if assuming is not None or any(other._rests for other in others):
            return self._under("join", assuming, *others)
        return self._made(*_by_axis.join([self._parts(), *[other._parts() for other in others]]))

    def storage(self) -> Self:
        """The memory part: iters and offsets on memory axes only, as one holder sees its elements.

        Index k of the result runs over the memory iters in the order of the shard.

        >>> TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 1 @ warpid] + 3).storage()
        TileLayout(S[4:1] + 3)
        """
        shard = tuple([it for it in self._shard if it[2].kind == "memory"])
        replica = tuple([it for it in self._replica if it[2].kind == "memory"])
        return self._made(shard, replica, {a: v for a, v in self._offset.items() if a.kind == "memory"})

    # --- threads --------------------------------------------------------------------------------

    def fuse_threads(self, whole: Axis | str, *, assuming: Any = None) -> Self:
        """All axes that make up `whole` replaced by it, along `tilelayout.axis.THREAD_HIERARCHY`.

        ``tx = 32 * warpid + laneid = 128 * wgid + tid_in_wg``, ``tid_in_wg = 32 * wid_in_wg + laneid``,
        ``warpid = 4 * wgid + wid_in_wg``.  An axis that isn't mentioned has coordinate 0.
        Post-condition: at every index the same threads; other axes as before.
        Errors: LayoutError where an inner axis leaves its range, or axes count the same threads twice.

        >>> TileLayout(S[(4, 32, 2) : (1 @ warpid, 1 @ laneid, 1)] + 2 @ warpid).fuse_threads("tx")
        TileLayout(S[(4, 32, 2) : (32 @ tx, 1 @ tx, 1)] + 64 @ tx)
        >>> TileLayout(S[64 : 1 @ laneid]).fuse_threads("tx")
        Traceback (most recent call last):
        tilelayout.errors.LayoutError: fuse_threads: laneid reaches from 0 to 63, which straddles ...
        """
        if assuming is not None:
            return self._under("fuse_threads", assuming, whole)
        return self._made(*_threads.fuse_threads(self._parts(), known_axis(whole)))

    def split_threads(
        self, whole: Axis | str, outer: Axis | str | None = None, *, assuming: Any = None
    ) -> Self:
        """`whole` replaced by the two axes that make it up: `outer` (default: warps, for tx) and the inner one.

        Post-condition: at every index the same threads, and the inner axis stays within its range for every owner.
        Errors: LayoutError where an iter straddles the boundary between two outer places; for the shard, iff no layout
        has the coordinates.

        >>> TileLayout(S[(128, 2) : (1 @ tx, 1)]).split_threads("tx")
        TileLayout(S[(4, 32, 2) : (1 @ warpid, 1 @ laneid, 1)])
        >>> TileLayout(S[256 : 1 @ tx]).split_threads("tx", "wgid")
        TileLayout(S[(2, 128) : (1 @ wgid, 1 @ tid_in_wg)])
        >>> TileLayout(S[32 : 1 @ tx] + 16 @ tx).split_threads("tx")
        Traceback (most recent call last):
        tilelayout.errors.LayoutError: split_threads: laneid reaches from 16 to 47, which straddles ...
        """
        if assuming is not None:
            return self._under("split_threads", assuming, whole, outer)
        known = None if outer is None else known_axis(outer)
        return self._made(*_threads.split_threads(self._parts(), known_axis(whole), known))

    def _canonicalize_threads(self, scope: Any) -> Self:
        return self._made(*_threads.canonicalize_threads(self._parts(), scope))


def _check_layout(x: Any, operation: str, what: str) -> None:
    if not isinstance(x, Structure):
        raise LayoutError(operation, f"{what} must be a TileLayout, got {type(x).__name__}")


def _as_axes(axes: tuple[Axis | str, ...], operation: str) -> tuple[Axis, ...]:
    if not axes:
        raise LayoutError(operation, "takes the axes to keep, got none")
    return tuple([known_axis(a) for a in axes])
