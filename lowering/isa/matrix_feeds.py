"""Whether the registers that a matrix move fills (or drains) are an mma operand's registers.

The move says where each element of its lines goes, the operand which element each place wants.  A move feeds an operand
when every line is a run of neighbors along one of the operand's dimensions: then the answer says where each lane's
address points.  Else it says which lane would get what instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tilelayout.errors import LayoutError

from .matrix_move import MatrixMove
from .operand_map import operand_map

Along = Literal["rows", "columns"]
Element = tuple[int, int]


@dataclass(frozen=True)
class Feed:
    """Whether a move feeds an operand; its truth value is the answer.

    Attributes:
        reason: why not; empty where it does.
        lines: for each lane whose address is used, the element (row, column) at the start of its line.
        shift: bits by which each register must be shifted left after a load (right before a store): elements of 4 bits
            come in the low bits of their byte, and ``kind::f8f6f4`` wants them in the middle.
    """

    reason: str = ""
    lines: tuple[Element, ...] = ()
    shift: int = 0

    def __bool__(self) -> bool:
        return not self.reason


def feeds(
    move: MatrixMove,
    shape: tuple[int, int],
    bits: int,
    *,
    per_register: int = 0,
    along: Along = "columns",
    first: int = 0,
) -> Feed:
    """Whether the move's registers are registers `first` on of an operand.

    Post-condition where it is true: with the line of lane l being the elements from ``lines[l]`` on, ``along`` the
    dimension, executing a load leaves the operand's elements (shifted by `shift`) in its registers, by its operand map.

    Args:
        move: the form.
        shape: the operand as (rows, columns) = (M, K) for A, (N, K) for B, (M, N) for C and D.
        bits: width of an element.
        per_register: elements of the operand in a register; 32 / bits unless elements sit in wider places (4 for all
            types of ``kind::f8f6f4``).
        along: the dimension whose neighbors are neighbors in shared memory: "columns" for row-major.
        first: the operand's register that the move's first one is.

    >>> from lowering.isa.ldmatrix import LDMATRIX
    >>> move = {m.name: m for m in LDMATRIX}
    >>> A = feeds(move["ldmatrix.m8n8.x4.b16"], (16, 16), 16)
    >>> bool(A), [A.lines[lane] for lane in (0, 8, 16, 24)]
    (True, [(0, 0), (8, 0), (0, 8), (8, 8)])
    >>> print(feeds(move["ldmatrix.m8n8.x2.trans.b16"], (8, 32), 8, along="rows").reason)
    register 0 of lane 0 would hold (0, 0), (1, 0), (0, 2), (1, 2); the operand wants (0, 0), (0, 1), (0, 2), (0, 3)
    >>> bool(feeds(move["ldmatrix.m16n16.x1.trans.b8"], (16, 16), 8, along="rows"))
    True

    Errors: LayoutError for an operand that no bijection describes, or an unknown dimension.
    """
    if along not in ("rows", "columns"):
        raise LayoutError("feeds", f"along must be 'rows' or 'columns', got {along!r}")
    place = 32 // (per_register or max(1, 32 // bits))
    if bits > 32:
        return Feed(f"an element of {bits} bits is no part of a 32-bit register")
    reason = _widths(move, bits, place)
    if reason:
        return Feed(reason)
    wanted = _wanted(shape, 32 // place, first, move.registers)
    if wanted is None:
        total = shape[0] * shape[1] // 32 * place // 32
        return Feed(
            f"the operand has {total} registers, the move fills {first} to {first + move.registers - 1}"
        )
    return _matched(move, wanted, place, along, shape)


def _widths(move: MatrixMove, bits: int, place: int) -> str:
    """What is wrong with the widths: an operand's places are filled as they are, or widened exactly as it wants."""
    if move.source_bits == move.bits:
        if bits != place and bits < 8:
            return f"{move.name} leaves elements packed, and the operand wants each of {bits} bits in {place}"
        return ""
    if (bits, place) != (move.source_bits, move.bits):
        return f"{move.name} puts {move.source_bits} bits into {move.bits}, the operand has {bits} in {place}"
    return ""


def _wanted(shape: tuple[int, int], per_register: int, first: int, registers: int) -> Any:
    """(row, column) arrays ``[32, slots]`` of those registers of the operand, or None where it has fewer."""
    row, column = operand_map(*shape, per_register)
    part = slice(first * per_register, (first + registers) * per_register)
    if first < 0 or part.stop > row.shape[1]:
        return None
    return row[:, part], column[:, part]


def _matched(move: MatrixMove, wanted: Any, place: int, along: Along, shape: tuple[int, int]) -> Feed:
    """Follow each element of each line to the place that it goes to, and ask what the operand wants there."""
    ratio = move.bits // place if move.bits >= place else 0
    if not ratio:
        return _wide(move, wanted, place, along, shape)
    matrix, line, element = (x.repeat(ratio, axis=1) for x in move.fragment)
    element = element * ratio + _cycle(ratio, element.shape[1])
    return _runs(move, (matrix, line, element), wanted, along, shape)


def _wide(move: MatrixMove, wanted: Any, place: int, along: Along, shape: tuple[int, int]) -> Feed:
    """An operand whose places are wider than the move's elements: whole places must arrive in one piece."""
    ratio = place // move.bits
    matrix, line, element = move.fragment
    firsts = [x[:, ::ratio] for x in (matrix, line, element)]
    whole = (element.reshape(32, -1, ratio) == firsts[2][..., None] + _cycle(ratio, ratio)).all() and (
        line.reshape(32, -1, ratio) == firsts[1][..., None]
    ).all()
    if not whole:
        return Feed(
            f"{move.name} moves units of {move.bits} bits to different lanes, and an element has {place}: "
            "it would be torn apart"
        )
    return _runs(move, (firsts[0], firsts[1], firsts[2] // ratio), wanted, along, shape)


def _cycle(count: int, total: int) -> Any:
    import numpy as np

    return np.arange(total) % count


def _runs(move: MatrixMove, held: Any, wanted: Any, along: Along, shape: tuple[int, int]) -> Feed:
    """Whether every line is a run of wanted elements along the dimension; the first of each, by lane."""
    import numpy as np

    matrix, line, element = held
    number = matrix * move.lines + line
    row, column = wanted
    start = (row - element, column) if along == "rows" else (row, column - element)
    begin = np.empty((2, move.count * move.lines), int)
    origin = element == 0
    for axis in range(2):
        begin[axis][number[origin]] = start[axis][origin]
    if (begin[0][number] == start[0]).all() and (begin[1][number] == start[1]).all():
        shift = 2 if (move.source_bits, move.bits) == (4, 8) else 0
        return Feed("", tuple([(int(r), int(c)) for r, c in begin.T]), shift)
    step = (element, 0 * element) if along == "rows" else (0 * element, element)
    gets = begin[0][number] + step[0], begin[1][number] + step[1]
    wrong = (gets[0] != row) | (gets[1] != column)
    lane, slot = (int(x) for x in np.argwhere(wrong)[0])
    per = row.shape[1] // move.registers
    register = slice(slot // per * per, (slot // per + 1) * per)
    would, wants = (
        ", ".join(f"({int(r)}, {int(c)})" for r, c in zip(x[lane, register], y[lane, register], strict=True))
        for x, y in (gets, (row, column))
    )
    return Feed(f"register {slot // per} of lane {lane} would hold {would}; the operand wants {wants}")
