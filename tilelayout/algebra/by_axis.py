"""Layouts taken apart and put together by axis: select, project, join; and a dimension that moves along none."""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import UNIT, M, as_integer, product
from .canonicalize import fuse
from .group import group
from .integers import same
from .refine import refine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..axis import Axis
    from ..parts import Integer, Offset, Parts, RawIter


def broadcast(shard: tuple[RawIter, ...], num: Integer, position: Any, axis: Axis) -> tuple[RawIter, ...]:
    """The shard with a digit of `num` values that moves nothing, inserted where `list.insert` would, -1 at the end."""
    rank = len(shard)
    at = as_integer(position, "broadcast", "position")
    if type(at) is not int or not -rank - 1 <= at <= rank:
        raise LayoutError(
            "broadcast",
            f"position {position} is outside the {rank + 1} places {-rank - 1} to {rank} of {rank} iters",
        )
    if at < 0:
        at += rank + 1
    return *shard[:at], (num, 0, axis), *shard[at:]


def select(parts: Parts, axes: Sequence[Axis]) -> Parts:
    """The iters on `axes` in their places, a unit one for each of the others."""
    shard, replica, offset = parts
    kept = tuple([it if it[2] in axes else UNIT for it in shard])
    return kept, *_on(replica, offset, axes)


def project(parts: Parts, axes: Sequence[Axis]) -> Parts:
    """Post-condition: at every index the owners, their coordinates on other axes forgotten."""
    shard, replica, offset = parts
    kept = tuple([it if it[2] in axes else (it[0], 0, M) for it in shard])
    return kept, *_on(replica, offset, axes)


def _on(
    replica: tuple[RawIter, ...], offset: Offset, axes: Sequence[Axis]
) -> tuple[tuple[RawIter, ...], Offset]:
    return tuple([it for it in replica if it[2] in axes]), {a: v for a, v in offset.items() if a in axes}


def join(layouts: Sequence[Parts]) -> Parts:
    """Post-condition: at every index every choice of one owner per layout, put together.

    Whatever layout has this function, its part on the axes of one operand is that operand, so its digits refine
    those of each; a digit that two operands move along would have to lie on two axes.
    Refused exactly when no layout has the function, and when axes overlap.
    """
    operation = "join"
    shards = [fuse(shard) for shard, _, _ in layouts]
    taken: dict[Axis, int] = {}
    for k, (_, replica, offset) in enumerate(layouts):
        moving = [a for e, s, a in (*shards[k], *replica) if s != 0 and e != 1]
        for a in {**dict.fromkeys(moving), **offset}:
            if taken.setdefault(a, k) != k:
                raise LayoutError(
                    operation,
                    f"operands {taken[a]} and {k} both have coordinates on {a}",
                    "project each to axes of its own, or add them with direct_sum",
                )
    sizes = [product([it[0] for it in shard]) for shard in shards]
    for k, size in enumerate(sizes):
        if not same(size, sizes[0]):
            raise LayoutError(operation, f"operand 0 has {sizes[0]} elements, operand {k} has {size}")
    dims, _ = refine([tuple([it[0] for it in shard]) for shard in shards], operation)
    out: list[RawIter] = [(n, 0, M) for n in dims]
    owner = [0] * len(dims)
    for k, shard in enumerate(shards):
        for d, (e, s, a) in enumerate(
            group(shard, dims, operation)[0]
        ):  # one iter each: `dims` refines the shard
            if s == 0:
                continue
            _, other, axis = out[d]
            if other != 0:
                raise LayoutError(
                    operation,
                    f"operands {owner[d]} and {k} move together: a digit of extent {e} goes by {other} on {axis} and "
                    f"by {s} on {a}, and an iter lies on one axis",
                )
            out[d], owner[d] = (e, s, a), k
    replica = tuple([it for _, more, _ in layouts for it in more])
    offset = {a: v for _, _, more in layouts for a, v in more.items()}
    return fuse(tuple(out)), replica, offset
