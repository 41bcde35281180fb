"""Which matrix moves fill which operands: every form against every operand, byte by byte; the cases C43 and C44."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from lowering.dtypes import dtype
from lowering.isa.ldmatrix import LDMATRIX
from lowering.isa.matrix_feeds import Feed, feeds
from lowering.isa.matrix_move import MatrixMove
from lowering.isa.mma import DENSE, MmaInstruction
from lowering.isa.record import Place
from lowering.isa.stmatrix import STMATRIX
from tilelayout import LayoutError, S, TileLayout, laneid
from tilelayout.analysis import matrix_accesses

from . import matrix_isa

MOVES = {move.name: move for move in (*LDMATRIX, *STMATRIX)}
ROW, TRANS = MOVES["ldmatrix.m8n8.x4.b16"], MOVES["ldmatrix.m8n8.x4.trans.b16"]

Operand = tuple[tuple[int, int], int, int]  # (rows, columns), bits of an element, elements of a register


def operands() -> list[Operand]:
    """Every A and B (as (N, K)) of a warp-level product, and C/D, of elements up to 32 bits."""
    found: set[Operand] = set()
    for record in DENSE:
        if record.rule != "warp" or record.a == "float64":
            continue
        for role, shape in (("A", (record.m, record.k)), ("B", (record.n, record.k))):
            found.add((shape, dtype(record.element(role)).bits, record.k_pack))
        if dtype(record.d).bits == 16:
            found.add(((record.m, record.n), 16, 2))
    return sorted(found)


@cache
def wanted(shape: tuple[int, int], per_register: int) -> dict[tuple[int, int, int], tuple[int, int]]:
    """(lane, register, element of the register) -> (row, column), by the rule of the PTX figures."""
    blocks = shape[0] // 8
    out = {}
    for lane in range(32):
        for register in range(shape[0] * shape[1] // 32 // per_register):
            for s in range(per_register):
                row = lane // 4 + 8 * (register % blocks)
                column = per_register * (4 * (register // blocks) + lane % 4) + s
                out[lane, register, s] = (row, column)
    return out


def brute(move: MatrixMove, operand: Operand, along: str) -> list[tuple[int, int]] | None:
    """The start of every line if each is a run of neighbors along the dimension, followed byte by byte; else None."""
    shape, bits, per_register = operand
    container = 32 // per_register
    widened = move.source_bits != move.bits
    if widened and (bits, container) != (move.source_bits, 8):
        return None
    if not widened and bits != container and bits < 8:
        return None
    elements = wanted(shape, per_register)
    source = (
        matrix_isa.widened_move(move.shape, move.count)
        if widened
        else matrix_isa.move_of_bytes(move.shape, move.count, move.transposed)
    )
    starts: dict[int, tuple[int, int]] = {}
    for (matrix, line, byte), (lane, register, at) in sorted(source.items()):
        if (lane, register, 0) not in elements:
            return None
        for bit in range(0, 8, min(8, container)):  # the elements of that byte, or the byte of that element
            number, within = divmod(8 * at + bit, container)
            row, column = elements[lane, register, number]
            position, rest = divmod(8 * byte + bit, container)
            if rest != within:
                return None
            start = (row - position, column) if along == "rows" else (row, column - position)
            if starts.setdefault(matrix * move.lines + line, start) != start:
                return None
    return [starts[i] for i in range(len(starts))]


@pytest.mark.parametrize("along", ["rows", "columns"])
@pytest.mark.parametrize("name", MOVES)
def test_every_form_and_operand(name: str, along: Any) -> None:
    move = MOVES[name]
    yes = 0
    for operand in operands():
        shape, bits, per_register = operand
        found = feeds(move, shape, bits, per_register=per_register, along=along)
        starts = brute(move, operand, along)
        assert bool(found) == (starts is not None), (operand, found.reason)
        assert bool(found) == (found.reason == "")
        if found:
            yes += 1
            assert list(found.lines) == starts
            assert found.shift == (2 if bits == 4 and per_register == 4 else 0)
            check_by_execution(move, operand, along, found)
    # Each form feeds something along the one dimension that it is made for; stmatrix.m16n8 takes an accumulator that
    # was narrowed to bytes, which is the operand of no instruction.
    made_for = "" if move.shape == "m16n8" else "rows" if move.transposed else "columns"
    assert (yes > 0) == (along == made_for), name


def check_by_execution(move: MatrixMove, operand: Operand, along: str, feed: Feed) -> None:
    """Load random elements from memory where `lines` point: the operand's registers hold them, each in its place."""
    if move.operation != "ldmatrix" or operand[1] < 4:
        return
    shape, bits, per_register = operand
    rng = np.random.default_rng(3)
    matrix = rng.integers(0, 2**bits, shape, dtype=np.uint64)
    lines = []
    for row, column in feed.lines:
        count = 16 if move.source_bits != move.bits else 128 // bits
        run = matrix[row : row + count, column] if along == "rows" else matrix[row, column : column + count]
        packed = sum(int(x) << (bits * i) for i, x in enumerate(run))
        lines.append(list(packed.to_bytes(16, "little")))
    memory = np.array(lines, np.uint8).ravel()
    at = 16 * np.arange(32)[None, :]
    words = move.load({"p": Place(memory, at)})["D"][0]
    container = 32 // per_register
    for (lane, register, s), (row, column) in wanted(shape, per_register).items():
        if register >= move.registers:
            continue
        held = int(words[lane, register]) << feed.shift >> (container * s) & ((1 << container) - 1)
        middle = 2 if bits == 4 and container == 8 else 0
        assert held >> middle & ((1 << bits) - 1) == matrix[row, column]


# --- the cases ------------------------------------------------------------------------------------


def test_c43_which_lane_points_at_which_row() -> None:
    a = feeds(ROW, (16, 16), 16)
    assert a.lines == tuple([(lane % 16, 8 * (lane // 16)) for lane in range(32)])
    swapped = tuple([(lane % 8 + 8 * (lane // 16), 8 * (lane // 8 % 2)) for lane in range(32)])
    assert a.lines != swapped
    b = feeds(MOVES["ldmatrix.m8n8.x2.b16"], (8, 16), 16)
    assert b.lines == tuple([(lane % 8, 8 * (lane // 8 % 2)) for lane in range(16)])
    stored_by_k = feeds(MOVES["ldmatrix.m8n8.x2.trans.b16"], (8, 16), 16, along="rows")
    assert stored_by_k.lines == tuple(
        [(0, lane % 16) for lane in range(16)]
    )  # (n, k): the row of (K, N) is lane % 16


@pytest.mark.parametrize(("bits", "k"), [(8, 32), (32, 8), (4, 64)])
def test_c44_transposed_operands_of_other_widths_are_refused(bits: int, k: int) -> None:
    """(K, N)-stored B: .trans moves 16-bit units."""
    x2 = MOVES["ldmatrix.m8n8.x2.trans.b16"]
    refused = feeds(x2, (8, k), bits, along="rows")
    assert not refused
    if bits == 32:
        assert "torn apart" in refused.reason
    else:
        first = ", ".join(f"(0, {i})" for i in range(32 // bits))
        assert f"the operand wants {first}" in refused.reason
        assert "register 0 of lane 0" in refused.reason
    assert feeds(MOVES["ldmatrix.m8n8.x2.b16"], (8, k), bits, along="columns")
    assert feeds(x2, (8, 16), 16, along="rows")


def test_c44_eight_bit_elements_have_a_transposed_form_of_their_own() -> None:
    for name, shape in (("x1", (16, 16)), ("x2", (16, 32))):
        move = MOVES[f"ldmatrix.m16n16.{name}.trans.b8"]
        found = feeds(move, shape, 8, along="rows")
        assert found.lines == tuple([(0, k) for k in range(shape[1])])
        assert move.specific == (100, 103, 110, 120, 121)
    assert not feeds(MOVES["ldmatrix.m16n16.x1.trans.b8"], (16, 16), 16, along="rows")


def test_an_accumulator_is_narrowed_into_one_register_and_stored_transposed() -> None:
    """stmatrix.m16n8 takes bytes e0 to e3 in the order of an accumulator's four elements."""
    move = MOVES["stmatrix.m16n8.x1.trans.b8"]
    matrix, line, element = move.fragment
    for lane in range(32):
        for i in range(4):
            row = (lane >> 2) + (0 if i < 2 else 8)
            column = 2 * (lane % 4) + i % 2
            assert (matrix[lane, i], line[lane, i], element[lane, i]) == (0, column, row)


def test_registers_beyond_the_first_can_be_asked_for() -> None:
    x2 = MOVES["ldmatrix.m8n8.x2.b16"]
    upper = feeds(x2, (16, 16), 16, first=2)
    assert upper.lines == tuple([(lane, 8) for lane in range(16)])
    late = feeds(x2, (16, 16), 16, first=3)
    assert late.reason == "the operand has 4 registers, the move fills 3 to 4"
    assert "move fills -1 to 0" in feeds(x2, (16, 16), 16, first=-1).reason


def test_narrow_elements_need_the_form_that_widens_them() -> None:
    widening = MOVES["ldmatrix.m8n16.x4.b8x16.b4x16_p64"]
    assert feeds(widening, (16, 32), 4, per_register=4).shift == 2
    assert "puts 4 bits into 8, the operand has 6 in 8" in feeds(widening, (16, 32), 6, per_register=4).reason
    assert "puts 4 bits into 8, the operand has 4 in 4" in feeds(widening, (16, 64), 4).reason
    assert "leaves elements packed" in feeds(ROW, (16, 32), 4, per_register=4).reason
    assert feeds(ROW, (16, 64), 4)


def test_wide_elements() -> None:
    assert feeds(ROW, (16, 8), 32)
    assert "torn apart" in feeds(TRANS, (16, 8), 32, along="rows").reason
    assert "no part of a 32-bit register" in feeds(ROW, (16, 16), 64).reason


@pytest.mark.parametrize(("bits", "columns"), [(16, 16), (16, 8), (8, 32), (8, 16), (32, 8)])
def test_the_analysis_of_layouts_finds_the_same_lines(bits: int, columns: int) -> None:
    """`tilelayout.analysis` asks it of a layout, without records: another way to the same addresses."""
    e = 32 // bits
    fragment = TileLayout(S[(2, 8, columns // (4 * e), 4, e) : (e, 4 @ laneid, 2 * e, 1 @ laneid, 1)])
    for along, dimension in (("columns", 1), ("rows", 0)):
        transposed = ".trans" * (along == "rows")
        move = MOVES[f"ldmatrix.m8n8.x{columns * 16 // 32 // e}{transposed}.b16"]
        found = feeds(move, (16, columns), bits, along=along)  # type: ignore[arg-type]
        if found:
            (access,) = matrix_accesses(fragment, (16, columns), bits, along=dimension).accesses
            assert found.lines == tuple([access.coordinates(lane)[0] for lane in range(len(found.lines))])
        else:
            with pytest.raises(LayoutError, match="matrix_accesses"):
                matrix_accesses(fragment, (16, columns), bits, along=dimension)


def test_an_unknown_dimension_is_refused() -> None:
    with pytest.raises(LayoutError, match="'rows' or 'columns', got 'K'"):
        feeds(ROW, (16, 16), 16, along="K")  # type: ignore[arg-type]


def test_a_made_up_operand_of_a_made_up_record() -> None:
    """Elements of 16 bits at K = 32: x4 feeds its first and its last four registers."""
    record = MmaInstruction(
        16, 8, 32, "float16", "float16", "float32", "float32", k_pack=2, sm=999, ptx=(9, 9)
    )
    for first in (0, 4):
        found = feeds(ROW, (record.m, record.k), 16, per_register=record.k_pack, first=first)
        assert found.lines[0] == (0, 4 * first)
