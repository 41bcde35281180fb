"""The canonical form: equal functions get equal forms (Axe, appendix A; one rule of ours for zero strides)."""

from __future__ import annotations

from ..parts import UNIT, Iter, M, trusted_iter
from .integers import same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parts import Integer, Offset, Parts


def canonicalize(shard: tuple[Iter, ...], replica: tuple[Iter, ...], offset: Offset) -> Parts:
    """Post-condition: the same set of owners at every flat index; idempotent.

    The shard's form is unique among all shards of the same function.  The replica's is unique where
    consecutive strides leave gaps (extent * stride of one below the stride of the next on its axis).
    """
    if replica:
        replica, offset = fuse_replica(replica, offset)
    return fuse(shard), replica, offset


def fuse(shard: tuple[Iter, ...]) -> tuple[Iter, ...]:
    """Drop extent 1, put zero strides on `m`, and merge neighbors that count on through the wrap.

    A neighbor pair merges when ``outer stride == inner extent * inner stride`` on one axis.  After that
    every wrap of a digit breaks the inner run, which is why the form is unique.
    """
    out: list[Iter] = []
    extent: Integer = 1
    stride: Integer = 0
    axis = M
    changed = False
    for it in shard:
        e, s, a = it
        if e == 1:
            changed = True
            continue
        if s == 0 and a is not M:
            a = M
            it = trusted_iter(e, 0, M)
            changed = True
        if extent != 1 and a is axis and (stride == e * s or (type(stride) is not int and same(stride, e * s))):
            it = trusted_iter(extent * e, s, a)
            out[-1] = it
            changed = True
        else:
            out.append(it)
        extent, stride, axis = it
    if not changed:
        return shard or (UNIT,)
    return tuple(out) or (UNIT,)


def fuse_replica(replica: tuple[Iter, ...], offset: Offset) -> tuple[tuple[Iter, ...], Offset]:
    """Canonical replica and the offset that it leaves: the same set of displacements.

    Extent 1 and stride 0 add no owner and go.  A negative stride is flipped, its far end moving into the
    offset.  On one axis, ``(e1, s)`` absorbs ``(e2, q*s)`` for ``1 <= q <= e1`` as
    ``(e1 + q*(e2 - 1), s)``: the copies of the run overlap or touch, so the union is one run.
    """
    moved = dict(offset)
    by_axis: dict[str, list[Iter]] = {}
    for it in replica:
        e, s, a = it
        if e == 1 or s == 0:
            continue
        if type(s) is int and s < 0 or type(s) is not int and s.is_negative:
            total = moved.get(a, 0) + (e - 1) * s
            if total == 0:
                moved.pop(a, None)
            else:
                moved[a] = total
            it = trusted_iter(e, -s, a)
        by_axis.setdefault(a, []).append(it)
    out: list[Iter] = []
    for name in sorted(by_axis):
        out.extend(_absorb(by_axis[name]))
    return tuple(out), moved


def _absorb(iters: list[Iter]) -> list[Iter]:
    """One axis's replica iters, absorbed to a fixpoint, by rising stride."""
    pending = sorted(iters, key=_by_stride)
    done = False
    while not done:
        done = True
        for i, (e1, s1, a) in enumerate(pending):
            for j, (e2, s2, _) in enumerate(pending):
                if i != j and type(s1) is int and type(s2) is int and s2 % s1 == 0 and 1 <= s2 // s1 <= e1:
                    merged = trusted_iter(e1 + (s2 // s1) * (e2 - 1), s1, a)
                    pending = [p for k, p in enumerate(pending) if k not in (i, j)]
                    pending.append(merged)
                    pending.sort(key=_by_stride)
                    done = False
                    break
            if not done:
                break
    return pending


def _by_stride(it: Iter) -> tuple[bool, int, str]:
    """Plain strides first by value, symbolic ones after them by text: any fixed order will do."""
    e, s, _ = it
    return (False, s, str(e)) if type(s) is int else (True, 0, f"{s} {e}")
