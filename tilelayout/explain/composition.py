"""compose: where each iter of B goes in A, and whether the iters carry into one another there."""

from __future__ import annotations

from ..algebra.canonicalize import fuse
from ..algebra.compose import compose as composed
from ..algebra.evaluate import apply, plan
from ..errors import LayoutError
from ..parts import M, nonzero, product
from .derivation import Unexplained
from .write import SHOWN, iter_text, listed, made, offset_text, parts_of, shard_text, sum_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..axis import Axis
    from ..parts import Parts, RawIter
    from .derivation import Board

    Counter = tuple[tuple[int, int, Axis], ...]


def compose(board: Board, layout: Any, other: Any) -> Any:
    """A fused is a counter; each iter of B is walked through its digits alone, then they are added."""
    a, b = parts_of(layout, "compose"), parts_of(other, "compose")
    digits, steps = fuse(a[0]), fuse(b[0])
    weights = [product(it[0] for it in digits[k + 1 :]) for k in range(len(digits))]
    board.write(
        f"A = {shard_text(a[0])} as a counter, merged",
        *(
            f"digit {k}: {iter_text(it)}, weight {w}"
            for k, (it, w) in enumerate(zip(digits, weights, strict=True))
        ),
    )
    base = b[2].get(M, 0)
    if any(type(x) is not int for it in (*digits, *steps) for x in it[:2]) or type(base) is not int:
        board.write("symbols: the iters of B go to", shard_text(composed(a, b)[0]))
        raise Unexplained
    if b[1] or any(axis is not M for axis in (*b[2], *(it[2] for it in steps))):
        board.write("B has to give one number, on m, for each index", str(other))
        raise Unexplained
    low = base + sum([(e - 1) * s for e, s, _ in steps if s < 0])  # type: ignore[operator]  # plain
    high = base + sum([(e - 1) * s for e, s, _ in steps if s > 0])  # type: ignore[operator]
    size = product(it[0] for it in digits)
    board.write(f"B = {other} reaches", f"from {low} to {high}; A has {size} elements")
    alone = [_alone(digits, it) for it in steps]
    if low < 0 or high >= size:  # type: ignore[operator]
        raise Unexplained
    board.write(
        "each iter of B alone",
        *(
            f"{iter_text(it)} goes to {shard_text(found)}" if found else f"{iter_text(it)} carries by itself"
            for it, found in zip(steps, alone, strict=True)
        ),
    )
    whole = [found for found in alone if found is not None]
    if len(whole) < len(alone) or _carries(board, digits, steps, low):  # type: ignore[arg-type]  # plain
        _listing(board, a, b)
        raise Unexplained
    board.write(
        "nothing carries: side by side, and merged",
        shard_text(fuse(tuple([it for part in whole for it in part]))),
    )
    offset = dict(a[2])
    if base:
        moved = nonzero(apply(digits, {}, plan(digits, {}), (base,), None))
        for axis, value in moved.items():
            offset[axis] = offset.get(axis, 0) + value
        board.write(
            f"B begins at {base}, which A puts at {offset_text(moved)}",
            f"the offset is {offset_text(offset)}",
        )
        offset = nonzero(offset)
    return made(layout, (fuse(tuple([it for part in whole for it in part])), a[1], offset))


def _alone(digits: tuple[RawIter, ...], it: RawIter) -> tuple[RawIter, ...] | None:
    """Where one iter of B goes, walked from its lower end; None where it can't be walked."""
    e, s, _ = it
    down = s < 0  # type: ignore[operator]  # plain
    try:
        found = composed((digits, (), {}), (((e, -s if down else s, M),), (), {}))[0]
    except LayoutError:
        return None
    return tuple([(n, -t if down else t, axis) for n, t, axis in found])


def _carries(board: Board, digits: Counter, steps: Counter, low: int) -> bool:
    """Whether in some digit of A the largest digits that B's iters reach sum to its extent or more."""
    lines: list[str] = []
    carries = False
    for k, (e, _, _) in enumerate(digits):
        counting = tuple([(n, 1 if i == k else 0, M) for i, (n, _, _) in enumerate(digits)])
        known = plan(counting, {})
        addends = [apply(counting, {}, known, (low,), None)[M]]
        for f, t, _ in steps:
            found = _alone(counting, (f, abs(t), M))
            if found is None:
                return True
            addends.append(sum([(n - 1) * s for n, s, _ in found]))
        total = sum(addends)
        over = total >= e
        carries = carries or over
        compared = f">= {e}: it carries" if over else f"< {e}"
        lines.append(f"digit {k}: {sum_text(addends)} = {total} {compared}")
    board.write(
        "the largest digits together, where B begins and then for each iter of B, stay below the extent",
        *lines,
    )
    return carries


def _listing(board: Board, a: Parts, b: Parts) -> None:
    """The first places of the composition, from which the result was recognized or found to be no layout."""
    there, index = plan(a[0], a[2]), plan(b[0], b[2])
    count = min(index[0], SHOWN + 1)
    indices = [apply(b[0], b[2], index, (i,), None).get(M, 0) for i in range(count)]
    places = [apply(a[0], a[2], there, (x,), None) for x in indices]
    shown = listed([offset_text(nonzero(p)) for p in places])
    board.write(
        "the iters carry into one another, so the places decide whether there is a layout",
        f"B is at {listed(map(str, indices))}{', ...' if index[0] > count else ''}",
        f"A puts these at {shown}{', ...' if index[0] > count else ''}",
    )
