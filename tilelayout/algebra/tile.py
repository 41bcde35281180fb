"""Tiling by the Axe paper's definition: an outer layout places copies of an inner one."""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import M, nonzero
from .integers import either, if_divides, quotient, sign
from .later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..axis import Axis
    from ..parts import Integer, Parts, RawIter

_interleave = Later("interleave")


def spans(
    shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], operation: str = "span"
) -> dict[Axis, Integer]:
    """Per axis, max - min + 1 of the coordinate over shard and replica; the offset does not count.

    An axis that nothing moves along has span 1 and may be left out.
    """
    out: dict[Axis, Integer] = {}
    for e, s, a in (*shard, *replica) if replica else shard:
        if type(s) is not int and sign(s, operation, "stride") < 0:
            s = -s
        elif type(s) is int and s < 0:
            s = -s
        out[a] = out.get(a, 1) + (e - 1) * s
    return out


def tile(
    inner: Parts,
    outer: Parts,
    outer_shape: tuple[Integer, ...],
    inner_shape: tuple[Integer, ...],
    operation: str = "tile",
) -> Parts:
    """``f(x || y) = f_outer(x) * span_inner + f_inner(y)``, axis by axis, over the interleaved shape.

    Dimension d of the result has extent ``outer_shape[d] * inner_shape[d]``; its index is
    ``x[d] * inner_shape[d] + y[d]``.  Offsets and replicas of the outer layout are scaled like its
    coordinates: ``O = O_outer * span + O_inner``; ``R`` is ``span * R_outer`` with ``R_inner``.
    """
    if len(outer_shape) != len(inner_shape):
        raise LayoutError(
            operation, f"outer shape {outer_shape} and inner shape {inner_shape} differ in rank"
        )
    inner_shard, inner_replica, inner_offset = inner
    outer_shard, outer_replica, outer_offset = outer
    scale = spans(inner_shard, inner_replica, operation)
    if scale:
        outer_shard = scaled(outer_shard, scale)
        outer_replica = scaled(outer_replica, scale)
    shard = _interleave.interleave(
        outer_shard, outer_shape, inner_shard, inner_shape, operation, ("outer", "inner")
    )
    offset = dict(inner_offset)
    for name, value in outer_offset.items():
        offset[name] = offset.get(name, 0) + value * scale.get(name, 1)
    return shard, outer_replica + inner_replica, nonzero(offset) if outer_offset else offset


def scaled(iters: tuple[RawIter, ...], scale: dict[Axis, Integer]) -> tuple[RawIter, ...]:
    """Every stride times its axis's factor (1 where `scale` has none)."""
    return tuple([(e, s * scale.get(a, 1), a) for e, s, a in iters])


def tile_to(inner: Parts, to_shape: tuple[Integer, ...], current_shape: tuple[Integer, ...]) -> Parts:
    """`tile` with as many row-major copies on `m` as fill `to_shape`; dimensions must divide."""
    if len(to_shape) != len(current_shape):
        raise LayoutError("tile_to", f"shapes {to_shape} and {current_shape} differ in rank")
    counts: list[Integer] = []
    for d, (to, current) in enumerate(zip(to_shape, current_shape, strict=True)):
        count = quotient(to, current)
        if count is None:
            left = f": {to} % {current} = {to % current}" if type(to) is int and type(current) is int else ""
            raise LayoutError(
                "tile_to",
                f"dimension {d}: {current} does not divide {to}{left}",
                either(if_divides(current, to), "cover with a larger shape and predicate the rim"),
            )
        counts.append(count)
    return tile(inner, (row_major(counts), (), {}), tuple(counts), current_shape, "tile_to")


def row_major(extents: list[Integer] | tuple[Integer, ...]) -> tuple[RawIter, ...]:
    """Iters that count `extents` on `m`, last fastest."""
    out: list[RawIter] = []
    stride: Integer = 1
    for e in reversed(extents):
        out.append((e, stride, M))
        stride = stride * e
    out.reverse()
    return tuple(out)
