"""Changing the width of the stored element: several narrow elements as one wide one, and back.

Only the memory axis `m` counts elements of storage.  Lanes, warps and the other axes count places of their own,
which a change of width does not move.
"""

from __future__ import annotations

from ..errors import LayoutError
from ..parts import M, as_extent, product
from .canonicalize import fuse
from .group import split
from .integers import if_divides, quotient
from .tile import scaled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..parts import Integer, Offset, Parts, RawIter


def unpack(parts: Parts, num: Any) -> Parts:
    """Each element becomes `num` neighbors on `m`.

    Post-condition: ``g(i*num + j) = f(i) with m scaled by num, plus j on m``, for ``0 <= j < num``; offset and
    replica on `m` scale too.
    """
    shard, replica, offset = parts
    n = as_extent(num, "unpack", "num")
    if n == 1:
        return parts
    by = {M: n}
    return (
        (*scaled(shard, by), (n, 1, M)),
        scaled(replica, by),
        {a: v * n if a is M else v for a, v in offset.items()},
    )


def pack(parts: Parts, num: Any) -> Parts:
    """`num` neighbors become one element; the inverse of `unpack`.

    Post-condition: ``f(i*num + j) = f(i*num) + j on m`` held for all ``0 <= j < num``, every ``f(i*num)`` is a
    multiple of num on `m`, and the result is ``g(i) = f(i*num)`` with `m` divided by num.  Refused where that
    does not hold.
    """
    shard, replica, offset = parts
    n = as_extent(num, "pack", "num")
    if n == 1:
        return parts
    size = product(it[0] for it in shard)
    count = quotient(size, n)
    if count is None:
        raise LayoutError(
            "pack", f"{n} does not divide the {size} elements of the layout", if_divides(n, size)
        )
    found = split(shard, (count, n)) or split(fuse(shard), (count, n))
    if found is None or _neighbors(found[0][found[1][1] :], n) is None:
        raise LayoutError(
            "pack",
            f"the innermost {n} elements are not neighbors on m (stride 1) in every group",
            "make m's stride-1 iter the innermost, of an extent that num divides",
        )
    outer = found[0][: found[1][1]]
    return _divided(outer, n, "shard"), _divided(replica, n, "replica"), _divided_offset(offset, n)


def _neighbors(inner: tuple[RawIter, ...], n: Integer) -> RawIter | None:
    fused = fuse(inner)
    return fused[0] if fused == ((n, 1, M),) else None


def _divided(iters: tuple[RawIter, ...], n: Integer, what: str) -> tuple[RawIter, ...]:
    out: list[RawIter] = []
    for i, it in enumerate(iters):
        e, s, a = it
        if a is M and s != 0:
            q = quotient(s, n) if e != 1 else 0
            if q is None:
                raise LayoutError(
                    "pack",
                    f"iter {i} of the {what}, {e}:{s}, moves by a part of {n} elements on m",
                    if_divides(n, s),
                )
            it = (e, q, a)
        out.append(it)
    return tuple(out)


def _divided_offset(offset: Offset, n: Integer) -> Offset:
    if M not in offset:
        return offset
    q = quotient(offset[M], n)
    if q is None:
        raise LayoutError(
            "pack", f"offset {offset[M]} on m splits an element of {n}", if_divides(n, offset[M])
        )
    return {a: q if a is M else v for a, v in offset.items()}
