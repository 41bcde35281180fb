"""The canonical form: equal functions get equal forms (Axe, appendix A; one rule of ours for zero strides)."""

from __future__ import annotations

from ..parts import UNIT, M
from .integers import at_most, same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parts import Integer, Offset, Parts, RawIter


def canonicalize(shard: tuple[RawIter, ...], replica: tuple[RawIter, ...], offset: Offset) -> Parts:
    """Post-condition: the same set of owners at every flat index; idempotent.

    The shard's form is unique among all shards of the same function.  The replica's is unique where
    consecutive strides leave gaps (extent * stride of one below the stride of the next on its axis).
    """
    if replica:
        replica, offset = fuse_replica(replica, offset)
    return fuse(shard), replica, offset


def fuse(shard: tuple[RawIter, ...]) -> tuple[RawIter, ...]:
    """Drop extent 1, put zero strides on `m`, and merge neighbors that count on through the wrap.

    A neighbor pair merges when ``outer stride == inner extent * inner stride`` on one axis.  After that
    every wrap of a digit breaks the inner run, which is why the form is unique.
    """
    out: list[RawIter] = []
    extent: Integer = 1  # of the neighbors merged so far
    stride: Integer = 0
    axis = M
    for e, s, a in shard:
        if e == 1:
            continue
        if s == 0:
            a = M
        if extent != 1:
            if a is axis and (stride == e * s or (type(stride) is not int and same(stride, e * s))):
                extent, stride = extent * e, s
                continue
            out.append((extent, stride, axis))
        extent, stride, axis = e, s, a
    if extent != 1:
        out.append((extent, stride, axis))
    return tuple(out) or (UNIT,)


def fuse_replica(replica: tuple[RawIter, ...], offset: Offset) -> tuple[tuple[RawIter, ...], Offset]:
    """Canonical replica and the offset that it leaves: the same set of displacements.

    Extent 1 and stride 0 add no owner and go.  A negative stride is flipped, its far end moving into the
    offset.  On one axis, ``(e1, s)`` absorbs ``(e2, q*s)`` for ``1 <= q <= e1`` as
    ``(e1 + q*(e2 - 1), s)``: the copies of the run overlap or touch, so the union is one run.
    """
    moved = dict(offset)
    by_axis: dict[str, list[RawIter]] = {}
    for it in replica:
        e, s, a = it
        if e == 1 or s == 0:
            continue
        if s < 0 if type(s) is int else s.is_negative:  # type: ignore[union-attr]
            total = moved.get(a, 0) + (e - 1) * s
            if total == 0:
                moved.pop(a, None)
            else:
                moved[a] = total
            it = (e, -s, a)
        by_axis.setdefault(a, []).append(it)
    out: list[RawIter] = []
    for name in sorted(by_axis):
        out.extend(_absorb(by_axis[name]))
    return tuple(out), moved


def _absorb(iters: list[RawIter]) -> list[RawIter]:
    """One axis's replica iters, absorbed to a fixpoint, by rising stride."""
    pending = sorted(iters, key=_by_stride)
    i = 0
    while i < len(pending):
        e1, s1, a = pending[i]
        j = i + 1
        # One pass is the fixpoint: absorbing keeps the stride, and only a rising q waits for the extent to grow.
        while type(s1) is int and j < len(pending):
            e2, s2, _ = pending[j]
            if type(s2) is int and s2 % s1 == 0 and at_most(s2 // s1, e1):
                e1 = e1 + (s2 // s1) * (e2 - 1)
                pending[i] = (e1, s1, a)
                del pending[j]
            elif type(s2) is not int or (type(e1) is int and s2 > s1 * e1):
                break  # so are all that follow
            else:
                j += 1
        i += 1
    return pending


def _by_stride(it: RawIter) -> tuple[bool, int, str]:
    """Plain strides first by value, symbolic ones after them by text: any fixed order will do."""
    e, s, _ = it
    return (False, s, str(e)) if type(s) is int else (True, 0, f"{s} {e}")
