"""canonicalize, group and the permutations: what becomes of the iters when the function stays."""

from __future__ import annotations

from ..algebra.canonicalize import fuse, fuse_replica
from ..algebra.group import group as grouped
from ..algebra.group import split
from ..algebra.integers import same
from ..algebra.permute import check_seps
from ..algebra.permute import permute_by_groups as by_groups
from ..algebra.permute import permute_dims as dims_permuted
from ..parts import M, as_shape, check_permutation, product
from .write import iter_text, made, number, offset_text, parts_of, product_text, shard_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..parts import Integer, Offset, RawIter
    from .derivation import Board


# --- canonicalize -------------------------------------------------------------------------------


def canonicalize(board: Board, layout: Any, scope: str | None = None) -> Any:
    """Which iters are dropped, put on `m`, merged and by which equation; then the replica's."""
    if scope is not None:
        counted = layout.canonicalize(scope)
        board.write(f"the threads of a CTA as the scope {scope!r} counts them", f"{layout}", f"is {counted}")
        layout = counted
    shard, replica, offset = parts_of(layout, "canonicalize")
    shard = merge(board, shard)
    if replica:
        replica, offset = _merge_replica(board, replica, offset)
    return made(layout, (shard, replica, offset))


def merge(board: Board, shard: tuple[RawIter, ...]) -> tuple[RawIter, ...]:
    """The fused form of a shard, step by step: what `fuse` makes of one iter, and of each pair of neighbors."""
    kept = [it for it in shard if it[0] != 1]
    units = [f"iter {k}, {iter_text(it)}" for k, it in enumerate(shard) if it[0] == 1]
    if units and len(shard) > 1:
        board.write("an iter of extent 1 carries nothing and goes", *units)
    still = [it for it in kept if it[1] == 0 and it[2] is not M]
    if still:
        board.write("a stride of 0 moves along no axis and is put on m", *map(iter_text, still))
    lines: list[str] = []
    out: list[RawIter] = []
    for it in kept:
        inner = fuse((it,))[0]
        while out:
            outer = out[-1]
            pair = list(fuse((outer, inner)))
            right = f"{inner[0]} * {number(inner[1])}"
            shown = f"({iter_text(outer)})({iter_text(inner)}): "
            if len(pair) > 1:
                apart = inner[2] is not outer[2]
                why = f"{inner[2]} is not {outer[2]}" if apart else f"{outer[1]} is not {right}"
                lines.append(f"{shown}{why}, so they stay apart")
                break
            lines.append(f"{shown}{outer[1]} = {right}, so they merge into {iter_text(pair[0])}")
            out.pop()
            inner = pair[0]
        out.append(inner)
    if lines:
        board.write("neighbors merge where the outer stride is inner extent times inner stride", *lines)
    elif not (units and len(shard) > 1) and not still:
        board.write("nothing can be dropped or merged", shard_text(shard))
    return tuple(out) or fuse(())


def _merge_replica(
    board: Board, replica: tuple[RawIter, ...], offset: Offset
) -> tuple[tuple[RawIter, ...], Offset]:
    """The replica's canonical form, step by step: what `fuse_replica` makes of one iter, and of each pair."""
    lines: list[str] = []
    by_axis: dict[str, list[RawIter]] = {}
    moved = dict(offset)
    for it in replica:
        alone, far = fuse_replica((it,), moved)
        if not alone:
            lines.append(f"{iter_text(it)} adds no owner and goes")
            continue
        if alone[0][1] != it[1]:
            turned = f"{iter_text(it)} is walked from its other end, {iter_text(alone[0])}"
            lines.append(f"{turned}: the offset becomes {offset_text(far)}")
        moved = far
        by_axis.setdefault(it[2], []).append(alone[0])
    out: list[RawIter] = []
    for axis in sorted(by_axis):
        out += _absorbed(by_axis[axis], lines)
    board.write(
        "in the replica, e1:s absorbs e2:q*s with q <= e1 into (e1 + q*(e2 - 1)):s; by axis, then stride",
        *(lines or ["nothing to do"]),
    )
    return tuple(out), moved


def _absorbed(pending: list[RawIter], lines: list[str]) -> list[RawIter]:
    """One axis's iters merged pair by pair, as long as `fuse_replica` merges a pair."""
    ordered = sorted(
        pending, key=lambda it: (type(it[1]) is not int, it[1] if type(it[1]) is int else 0, str(it))
    )
    k = 0
    while k < len(ordered):
        j = k + 1
        while j < len(ordered):
            pair, _ = fuse_replica((ordered[k], ordered[j]), {})
            if len(pair) == 1:
                lines.append(f"{iter_text(ordered[k])} absorbs {iter_text(ordered[j])}: {iter_text(pair[0])}")
                ordered[k] = pair[0]
                del ordered[j]
            else:
                j += 1
        k += 1
    return list(fuse_replica(tuple(ordered), {})[0])


# --- group --------------------------------------------------------------------------------------


def group(board: Board, layout: Any, shape: Any) -> tuple[Any, tuple[int, ...]]:
    """Which iter is split where, and which iters each dimension gets."""
    shard, replica, offset = parts_of(layout, "group")
    shard, seps = regroup(board, shard, as_shape(shape, "group"))
    return made(layout, (shard, replica, offset)), seps


def regroup(
    board: Board, shard: tuple[RawIter, ...], dims: tuple[Integer, ...], what: str = "the layout"
) -> tuple[tuple[RawIter, ...], tuple[int, ...]]:
    """The steps of grouping; what is refused is refused by the real `group` after the steps that lead to it."""
    have, need = product(it[0] for it in shard), product(dims)
    board.write(
        "the sizes",
        f"{what}: {product_text([it[0] for it in shard])} = {have}",
        f"the shape: {product_text(dims)} = {need}" + ("" if same(have, need) else f", not {have}"),
    )
    source = shard
    if same(have, need) and split(shard, dims) is None:
        board.write(
            "a boundary of the shape falls across an iter as it stands, so neighbors are merged first"
        )
        source = merge(board, shard)
        if (found := split(source, dims)) is None:
            begins = ", ".join(str(product(dims[d:])) for d in range(len(dims) - 1, 0, -1))
            ends = ", ".join(str(product(it[0] for it in source[k:])) for k in range(len(source) - 1, 0, -1))
            board.write(
                "each boundary of the shape has to cut the merged iters evenly",
                f"boundaries of the shape, from the inside: {begins or 'none'}",
                f"boundaries of the iters {shard_text(source)}: {ends or 'none'}",
            )
    found, seps = grouped(shard, dims)
    board.write("iters are cut where a dimension begins", *_cuts(source, found))
    board.write(
        "iters by dimensions",
        *(
            f"dimension {d} of extent {n}: {shard_text(found[seps[d] : seps[d + 1]])}"
            for d, n in enumerate(dims)
        ),
        f"separators {seps}",
    )
    return found, seps


def _cuts(source: tuple[RawIter, ...], found: tuple[RawIter, ...]) -> list[str]:
    """What became of each iter: the runs of `found` whose extents multiply to it."""
    lines: list[str] = []
    rest = [it for it in found if it[0] != 1]
    for k, it in enumerate(source):
        e, s, _ = it
        if e == 1:
            continue
        pieces = [rest.pop(0)]
        while not same(product(p[0] for p in pieces), e):
            pieces.append(rest.pop(0))
        if len(pieces) > 1:
            lines.append(
                f"iter {k}, {iter_text(it)}, into {shard_text(pieces)}: {e} = {product_text([p[0] for p in pieces])}, "
                f"a stride is {number(s)} times the extents inside it"
            )
    return lines or ["none needs a cut"]


# --- permutations -------------------------------------------------------------------------------


def permute_dims(board: Board, layout: Any, perm: Any) -> Any:
    """Which iter comes from where."""
    shard, replica, offset = parts_of(layout, "permute_dims")
    board.write("the iters", *(f"iter {k}: {iter_text(it)}" for k, it in enumerate(shard)))
    order = check_permutation(perm, len(shard), "permute_dims", "iters")
    board.write(
        "in their new order", *(f"iter {k} is iter {p}: {iter_text(shard[p])}" for k, p in enumerate(order))
    )
    return made(layout, (dims_permuted(shard, order), replica, offset))


def permute_by_groups(board: Board, layout: Any, seps: Any, perm: Any) -> Any:
    """Which group comes from where."""
    shard, replica, offset = parts_of(layout, "permute_by_groups")
    cuts = check_seps(seps, len(shard), "permute_by_groups")
    groups = [shard[cuts[g] : cuts[g + 1]] for g in range(len(cuts) - 1)]
    board.write("the groups", *(f"group {g}: {shard_text(part)}" for g, part in enumerate(groups)))
    order = check_permutation(perm, len(groups), "permute_by_groups", "groups")
    board.write(
        "in their new order",
        *(f"group {k} is group {g}: {shard_text(groups[g])}" for k, g in enumerate(order)),
    )
    return made(layout, (by_groups(shard, cuts, order), replica, offset))
