"""``copy`` between shared memory and registers by matrix moves: variants ``copy.ldmatrix`` and ``copy.stmatrix``.

A move's record says where each element of each line of 16 bytes goes.  A register (or the few that one matrix fills)
fits a form when what the layouts put there, in every lane of every warp, are lines of that form: 16 neighboring bytes
at a multiple of 16, whatever pads or swizzles them.  The largest moves whose addresses one expression gives are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

from tilelayout.expr import Index, Var, evaluate, substitute

from ..dispatch import predicate, register_dispatch
from ..errors import fail
from ..isa.ldmatrix import LDMATRIX
from ..isa.matrix_move import LINE_BYTES, MatrixMove
from ..isa.stmatrix import STMATRIX
from ..ops import CopyCall
from ..program import Address, Instr, Program
from ..registers import LANE
from ..scope import Context
from .copy_operands import CONDITIONS, Pieces, places, take_apart


def _from_shared(call: CopyCall, context: Context) -> Any:
    scopes = (call.src.tile.scope, call.dst.tile.scope)
    return (
        scopes == ("shared", "local")
        or f"ldmatrix loads from shared to local, not from {' to '.join(scopes)}"
    )


def _to_shared(call: CopyCall, context: Context) -> Any:
    scopes = (call.src.tile.scope, call.dst.tile.scope)
    return (
        scopes == ("local", "shared")
        or f"stmatrix stores from local to shared, not from {' to '.join(scopes)}"
    )


@register_dispatch(
    "copy", "cuda", variant="copy.ldmatrix", priority=30,
    when=(*CONDITIONS, predicate("shared_to_local", _from_shared)),
)  # fmt: skip
def copy_ldmatrix(call: CopyCall, context: Context) -> Program:
    """x4, x2 or x1, with ``.trans`` where a line runs across the lanes' registers."""
    return _by_matrices(call, context, LDMATRIX)


@register_dispatch(
    "copy", "cuda", variant="copy.stmatrix", priority=30,
    when=(*CONDITIONS, predicate("local_to_shared", _to_shared)),
)  # fmt: skip
def copy_stmatrix(call: CopyCall, context: Context) -> Program:
    """The same, stored."""
    return _by_matrices(call, context, STMATRIX)


TRIES = 8
"""Of four matrices that one move might take; it finds those of every grid of tiles, and bounds the search."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """Registers that one matrix of a move fills, and where its lines begin.

    Attributes:
        registers: in order.
        lines: first coordinate of each line, in terms of warp.
        begin: position of that element in memory, ``[warps, lines]``.
    """

    registers: tuple[int, ...]
    lines: tuple[tuple[Index, ...], ...]
    begin: Any


def _by_matrices(call: CopyCall, context: Context, moves: tuple[MatrixMove, ...]) -> Program:
    pieces = take_apart(call, context)
    operation = moves[0].operation
    if pieces.registers.bits != 32:
        fail(
            f"{operation} moves registers of 32 bits, {call.dst.tile.dtype} is held in {pieces.registers.bits}"
        )
    if pieces.alignment % LINE_BYTES:
        fail(f"{pieces.alignment_text}, {operation} needs {LINE_BYTES}")
    families: dict[tuple[str, bool], dict[int, MatrixMove]] = {}
    for move in moves:
        if move.source_bits == move.bits and move.bits in (16, pieces.element_bits):
            families.setdefault((move.shape, move.transposed), {})[move.count] = move
    reasons: list[str] = []
    for family in families.values():
        one = family[1]
        found = one.instruction.refusal(context.target) or _matrices(pieces, one)
        body = _moves(pieces, found, family) if isinstance(found, list) else found
        if isinstance(body, list):
            name = f"copy_{operation}_{call.src.tile.name}_to_{call.dst.tile.name}"
            counts = [i.instruction.name for i in body]
            notes = [f"{counts.count(x)} {x}" for x in dict.fromkeys(counts)]
            return pieces.program(name, notes, body, context)
        reasons.append(f"{_form(one)}: {body}")
    return fail("; ".join(reasons))


def _form(move: MatrixMove) -> str:
    return f"{move.shape}{'.trans' * move.transposed}.b{move.bits}"


# --- whether registers are matrices -------------------------------------------------------------


def _matrices(pieces: Pieces, move: MatrixMove) -> list[Matrix] | str:
    """The registers as matrices of a move of one matrix, or why they are none."""
    rest, each = list(pieces.held), move.registers
    if len(rest) % each:
        return f"{len(rest)} registers are no whole matrices of {each}"
    out: list[Matrix] = []
    while rest:
        reason = ""
        for others in permutations(rest[1:], each - 1):
            found = _matrix(pieces, move, (rest[0], *others))
            if isinstance(found, Matrix):
                break
            reason = reason or found
        else:
            return reason
        out.append(found)
        rest = [r for r in rest if r not in found.registers]
    return out


def _matrix(pieces: Pieces, move: MatrixMove, registers: tuple[int, ...]) -> Matrix | str:
    import numpy as np

    at = np.concatenate([pieces.at[r] for r in registers], axis=-1)
    bits, unit = pieces.element_bits, move.bits
    units = _units(at, bits, unit)
    if units is None:
        warp, lane, k = _torn(at, bits, unit)
        return (
            f"moves units of {unit} bits, and elements {k} and {k + 1} of {pieces.registers.name}[{registers[0]}] in "
            f"lane {lane} of warp {warp}, {bits} bits each, are at positions {at[warp, lane, k]} and "
            f"{at[warp, lane, k + 1]}"
        )
    _, line, element = move.fragment
    begin = np.empty((units.shape[0], move.lines), np.int64)
    source: list[tuple[int, int]] = [(0, 0)] * move.lines
    for lane, slot in np.argwhere(element == 0).tolist():
        begin[:, line[lane, slot]] = units[:, lane, slot]
        source[line[lane, slot]] = lane, slot
    expected = begin[:, line] + element * unit
    if (expected != units).any():
        return _not_a_line(pieces, move, registers, units, expected, source)
    if (begin % (8 * LINE_BYTES)).any():
        warp, number = (int(x) for x in np.argwhere(begin % (8 * LINE_BYTES))[0])
        return f"line {number} of warp {warp} begins at byte {begin[warp, number] // 8}, no multiple of {LINE_BYTES}"
    elements = [x for r in registers for x in pieces.held[r]]
    firsts = [(lane, elements[slot * unit // bits]) for lane, slot in source]
    lines = tuple([tuple([substitute(x, {"lane": lane}) for x in at]) for lane, at in firsts])
    return Matrix(registers, lines, begin // bits)


def _units(at: Any, bits: int, unit: int) -> Any:
    """Where each unit of a register begins, in bits, ``[warps, lanes, units]``; None where one is in several pieces."""
    import numpy as np

    start = at * bits
    if bits >= unit:
        return (start[..., None] + np.arange(bits // unit) * unit).reshape(*at.shape[:2], -1)
    parts = start.reshape(*at.shape[:2], -1, unit // bits)
    whole = parts[..., :1] + np.arange(unit // bits) * bits
    return parts[..., 0] if (parts == whole).all() and not (parts[..., 0] % 8).any() else None


def _torn(at: Any, bits: int, unit: int) -> tuple[int, int, int]:
    """(warp, lane, element) where the next element of the same unit is not the neighbor."""
    import numpy as np

    ratio = unit // bits
    wrong = (at[..., 1:] - at[..., :-1] != 1) & (np.arange(1, at.shape[-1]) % ratio != 0)
    found = np.argwhere(wrong)
    return tuple(int(x) for x in found[0]) if len(found) else (0, 0, 0)  # type: ignore[return-value]


def _not_a_line(
    pieces: Pieces, move: MatrixMove, registers: tuple[int, ...], units: Any, expected: Any, source: Any
) -> str:
    """What is where, instead of the byte that a line would have there."""
    import numpy as np

    warp, lane, slot = (int(x) for x in np.argwhere(expected != units)[0])
    first, _ = source[int(move.fragment[1][lane, slot])]
    register = registers[slot // move.per_register]
    torn = ""
    if pieces.element_bits > move.bits and move.transposed:
        torn = f", and an element of {pieces.element_bits} bits would be torn apart"
    return (
        f"{pieces.registers.name}[{register}] of lane {lane} of warp {warp} holds what is at byte "
        f"{units[warp, lane, slot] // 8}; the 16 bytes of the line that lane {first} begins have byte "
        f"{expected[warp, lane, slot] // 8} there{torn}"
    )


# --- moves --------------------------------------------------------------------------------------


def _moves(pieces: Pieces, matrices: list[Matrix], family: dict[int, MatrixMove]) -> list[Instr] | str:
    """Moves of as many matrices as have their addresses in one expression."""
    body: list[Instr] = []
    rest = list(matrices)
    while rest:
        found = _next(pieces, rest, sorted(family, reverse=True))
        if found is None:
            return f"the lines' addresses in {pieces.buffer.name} are no expression in the bits of the lane's number"
        some, address = found
        slots = tuple([pieces.slot(r) for matrix in some for r in matrix.registers])
        instruction = family[len(some)].instruction
        body.append(Instr(instruction, (slots, address) if pieces.load else (address, slots)))
        rest = [matrix for matrix in rest if matrix not in some]
    return body


def _next(pieces: Pieces, rest: list[Matrix], counts: list[int]) -> tuple[list[Matrix], Address] | None:
    """The first of the matrices with as many others as one move takes, and the move's address."""
    for count in counts:
        for some in _candidates(rest, count):
            address = _address(pieces, some)
            if address is not None:
                return some, address
    return None


def _candidates(rest: list[Matrix], count: int) -> list[list[Matrix]]:
    """Which matrices might go together: the first in order, and for four the corners of a few parallelograms."""
    found = [rest[:count]] if len(rest) >= count else []
    if count == 4:
        corner = {matrix.lines[0]: matrix for matrix in rest}
        first = rest[0].lines[0]
        for second, third in combinations(rest[1:], 2):
            pairs = zip(first, second.lines[0], third.lines[0], strict=True)
            fourth = corner.get(tuple([y + z - x for x, y, z in pairs]))
            if fourth is not None and fourth not in (rest[0], second, third):
                found.append([rest[0], second, third, fourth])
            if len(found) == TRIES:
                break
    return found


def _address(pieces: Pieces, matrices: list[Matrix]) -> Address | None:
    """The address of lane l: of line l, counted through the matrices.  None where no expression gives all of them.

    The coordinate of line l is tried as the sum of what each bit of l adds, and must be right for all lines and warps;
    lanes beyond the lines repeat them.
    """
    import numpy as np

    lines = [x for matrix in matrices for x in matrix.lines]
    begin = np.concatenate([matrix.begin for matrix in matrices], axis=1)
    coordinate: list[Index] = []
    for dimension in range(len(lines[0])):
        values = [line[dimension] for line in lines]
        steps = [values[1 << b] - values[0] for b in range((len(lines) - 1).bit_length())]
        if not all(isinstance(step, int) for step in steps):
            return None
        coordinate.append(values[0] + _by_bits(steps))  # type: ignore[arg-type]
    position = pieces.position(tuple(coordinate))
    where = places(pieces.warps)
    found = np.broadcast_to(evaluate(position, where), where["lane"].shape)
    address = pieces.address(tuple(coordinate))
    return address if (found == begin[:, where["lane"][0] % len(lines)]).all() else None


def _by_bits(steps: list[int]) -> Index:
    """``sum(bit b of lane * steps[b])``; bits that count in one go are one digit."""
    lane: Var = LANE
    total: Index = 0
    b = 0
    while b < len(steps):
        width = 1
        while b + width < len(steps) and steps[b + width] == steps[b] << width:
            width += 1
        total = total + lane // (1 << b) % (1 << width) * steps[b]
        b += width
    return total
