"""pack and unpack: elements of another width, which scales what counts storage, the axis m, and nothing else."""

from __future__ import annotations

from ..algebra.canonicalize import fuse
from ..algebra.group import split
from ..algebra.integers import quotient
from ..errors import LayoutError
from ..parts import M, as_extent, product
from .write import becomes, iter_text, made, number, parts_of, shard_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..parts import Integer, RawIter
    from .derivation import Board


def unpack(board: Board, layout: Any, num: Any) -> Any:
    """Strides on m times num, and a new innermost iter that counts the parts."""
    shard, replica, offset = parts_of(layout, "unpack")
    n = as_extent(num, "unpack", "num")
    if n == 1:
        board.write("an element stays one element")
        return made(layout, (shard, replica, offset))
    shard = _times(board, shard, n, "shard")
    replica = _times(board, replica, n, "replica")
    if M in offset:
        board.write("the offset on m likewise", f"{number(offset[M])} * {n} = {offset[M] * n}")
        offset[M] = offset[M] * n
    board.write("a new innermost iter counts the parts of an element", f"{n}:1")
    return made(layout, ((*shard, (n, 1, M)), replica, offset))


def _times(board: Board, iters: tuple[RawIter, ...], n: Integer, what: str) -> tuple[RawIter, ...]:
    if iters:
        board.write(
            f"strides of the {what} on m times {n}; other axes don't count storage",
            *(
                becomes(it, (it[0], it[1] * n, M), f"{number(it[1])} * {n} = {it[1] * n}")
                if it[2] is M
                else f"{iter_text(it)} stays"
                for it in iters
            ),
        )
    return tuple([(e, s * n if a is M else s, a) for e, s, a in iters])


def pack(board: Board, layout: Any, num: Any) -> Any:
    """The innermost num elements have to be neighbors; then they go, and all else on m is divided by num."""
    shard, replica, offset = parts_of(layout, "pack")
    n = as_extent(num, "pack", "num")
    if n == 1:
        board.write("an element stays one element")
        return made(layout, (shard, replica, offset))
    size = product(it[0] for it in shard)
    count = quotient(size, n)
    if count is None:
        board.write("the number of wide elements", f"{n} does not divide {size}")
        raise LayoutError("pack", "no whole number of elements")
    board.write("the number of wide elements", f"{size} / {n} = {count}")
    found = split(shard, (count, n)) or split(fuse(shard), (count, n))
    if found is None:
        board.write(
            f"the innermost {n} elements as iters of their own",
            f"{shard_text(fuse(shard))} cannot be cut at a multiple of {n}",
        )
        raise LayoutError("pack", "no cut")
    cut = found[1][1]
    outer, inner = found[0][:cut], found[0][cut:]
    fused = fuse(inner)
    neighbors = fused == ((n, 1, M),)
    board.write(
        f"the innermost {n} elements: {shard_text(inner)}",
        f"fused: {shard_text(fused)}, " + ("neighbors on m" if neighbors else f"not the neighbors S[{n}:1]"),
    )
    if not neighbors:
        raise LayoutError("pack", "no neighbors")
    outer = _divided(board, outer, n, "rest of the shard")
    replica = _divided(board, replica, n, "replica")
    if M in offset:
        q = quotient(offset[M], n)
        board.write(
            "the offset on m likewise",
            f"{offset[M]} / {n} = {q}" if q is not None else f"{n} does not divide {offset[M]}",
        )
        if q is None:
            raise LayoutError("pack", "offset splits an element")
        offset[M] = q
    return made(layout, (outer, replica, offset))


def _divided(board: Board, iters: tuple[RawIter, ...], n: Integer, what: str) -> tuple[RawIter, ...]:
    """Strides on m over n; where one doesn't divide, the line that says so is the last."""
    if not iters:
        return iters
    out: list[RawIter] = []
    lines: list[str] = []
    refused = False
    for it in iters:
        e, s, a = it
        if a is M and s != 0:
            q = quotient(s, n) if e != 1 else 0
            refused = refused or q is None
            if q is None:
                lines.append(f"{iter_text(it)}: {n} does not divide {s}")
                continue
            lines.append(
                becomes(it, (e, q, a), f"{number(s)} / {n} = {q}" if e != 1 else "it carries nothing")
            )
            it = (e, q, a)
        else:
            lines.append(f"{iter_text(it)} stays")
        out.append(it)
    board.write(f"strides of the {what} on m over {n}; other axes don't count storage", *lines)
    if refused:
        raise LayoutError("pack", "a stride splits an element")
    return tuple(out)
