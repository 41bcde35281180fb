"""complement and inverse: both read the digits of a layout on m in the order of their strides."""

from __future__ import annotations

from ..algebra.canonicalize import fuse
from ..algebra.complement import complement as complemented
from ..algebra.complement import digits_on_m
from ..algebra.integers import quotient, same
from ..algebra.inverse import inverse as inverted
from ..parts import UNIT, M, as_extent
from .write import iter_text, made, number, parts_of, shard_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..algebra.complement import Digit
    from ..parts import Integer, Parts, RawIter
    from .derivation import Board


def complement(board: Board, layout: Any, cosize: Any) -> Any:
    """The digits by rising stride, and the iters that lie between them and beyond."""
    parts = parts_of(layout, "complement")
    whole = as_extent(cosize, "complement", "cosize")
    digits, least = _sorted(board, parts, "complement")
    filled: Integer = 1
    gaps: list[RawIter] = []
    lines: list[str] = []
    for s, e, _ in digits:
        gap = quotient(s, filled)
        if gap is None or gap == 0:
            lines.append(
                f"{e}:{s} comes next, but {filled} does not divide its stride {s}: the strides don't nest"
            )
            break
        if gap == 1:
            lines.append(f"{e}:{s} follows at once; with it [0, {s * e}) is filled")
        else:
            gaps.append((gap, filled, M))
            lines.append(
                f"{e}:{s} begins at {s}: {s} / {filled} = {gap}, so {gap}:{filled} is missing; then [0, {s * e})"
            )
        filled = s * e
    else:
        rest = quotient(whole, filled)
        if rest is None:
            lines.append(f"what remains of {whole}: {filled} does not divide it")
        elif rest != 1:
            gaps.append((rest, filled, M))
            lines.append(
                f"what remains of {whole}: {whole} / {filled} = {rest}, so {rest}:{filled} is missing"
            )
        else:
            lines.append(f"nothing remains of {whole}")
    board.write("filling [0, cosize) from below", *lines)
    _checked(complemented, parts, whole)
    iters = tuple(reversed(gaps)) or (UNIT,)
    board.write("the missing iters, largest stride first", shard_text(iters))
    offset = {} if least == 0 else {M: -least}
    if offset:
        board.write(
            "the layout begins elsewhere than at 0, which the offset makes up for",
            f"0 - {number(least)} = {-least}",
        )
    return made(layout, (iters, (), offset))


def inverse(board: Board, layout: Any) -> Any:
    """The digits by rising stride have to count through [0, size); each is then read back into its weight."""
    shard, replica, offset = parts_of(layout, "inverse")
    parts = fuse(shard), replica, offset
    digits, least = _sorted(board, parts, "inverse")
    first = digits_on_m(parts, "inverse")[2]
    if not same(least, 0):
        board.write("the least place has to be 0", f"it is {least}")
    filled: Integer = 1
    lines: list[str] = []
    for s, e, _ in digits:
        if not same(s, filled):
            lines.append(f"{e}:{s}: the stride should be {filled}")
            break
        lines.append(f"{e}:{s}: [0, {filled}) becomes [0, {filled * e})")
        filled = filled * e
    board.write("each stride has to be the number of places filled before it", *(lines or ["one place, 0"]))
    _checked(inverted, (shard, replica, offset))
    board.write(
        "place // stride % extent is the digit, and the digit counts its weight in the flat index",
        *(f"{e}:{s} is read back as {e}:{w}, of weight {s} in the place" for s, e, w in reversed(digits)),
    )
    if first != 0:
        board.write("a negative stride is walked from its other end: element at place 0", f"{first}")
    iters = tuple([(e, w, M) for _, e, w in reversed(digits)]) or (UNIT,)
    return made(layout, (iters, (), {} if first == 0 else {M: first}))


def _sorted(board: Board, parts: Parts, operation: str) -> tuple[list[Digit], Integer]:
    """The digits by rising stride, and the least place; weights are those of the flat index."""
    board.write("the iters on m", *(iter_text(it) for it in parts[0] if it[0] != 1))
    digits, least, _ = digits_on_m(parts, operation)
    turned = (
        ", a negative stride as its positive" if any(w < 0 for _, _, w in digits if type(w) is int) else ""
    )
    board.write(f"sorted by stride{turned}", ", ".join(f"{e}:{s}" for s, e, _ in digits) or "none")
    return digits, least


def _checked(operation: Any, *operands: Any) -> None:
    """Refused where the real operation is."""
    operation(*operands)
