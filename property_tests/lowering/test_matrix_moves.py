"""ldmatrix, stmatrix, movmatrix: their maps against the PTX ISA's, their meaning on random memory, what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowering.errors import MachineError
from lowering.isa.ldmatrix import LDMATRIX
from lowering.isa.matrix_move import MatrixMove
from lowering.isa.movmatrix import MOVMATRIX
from lowering.isa.record import Place
from lowering.isa.stmatrix import STMATRIX
from lowering.matrix_fragments import MOVMATRIX_RESULT, MOVMATRIX_SOURCE, address_layout, move_layout
from tilelayout import LayoutError, laneid

from . import matrix_isa

MOVES = (*LDMATRIX, *STMATRIX)
by_name = pytest.mark.parametrize("move", MOVES, ids=lambda move: move.name)


def places(move: MatrixMove) -> dict[matrix_isa.Byte, matrix_isa.Place]:
    """By the PTX ISA: (matrix, line, byte) or, of widened elements, (matrix, line, element) -> register byte."""
    if move.source_bits != move.bits:
        return matrix_isa.widened_move(move.shape, move.count)
    return matrix_isa.move_of_bytes(move.shape, move.count, move.transposed)


def test_every_form_is_there_once() -> None:
    assert len({move.name for move in MOVES}) == len(MOVES) == 6 + 6 + 6 + 6 + 3
    assert {move.name for move in LDMATRIX if move.sm == 75} == {
        f"ldmatrix.m8n8.x{n}{t}.b16" for n in (1, 2, 4) for t in ("", ".trans")
    }
    assert "ldmatrix.m16n16.x2.trans.b8x16.b4x16_p64" in {move.name for move in LDMATRIX}
    assert "stmatrix.m16n8.x4.trans.b8" in {move.name for move in STMATRIX}


@by_name
def test_the_map_is_that_of_ptx_and_a_bijection(move: MatrixMove) -> None:
    wanted = places(move)
    matrix, line, element = move.fragment
    assert matrix.shape == (32, move.registers * move.per_register)
    bytes_each = 1 if move.source_bits != move.bits else move.bits // 8
    found = {}
    for lane in range(32):
        for slot in range(matrix.shape[1]):
            for byte in range(bytes_each):
                where = (matrix[lane, slot], line[lane, slot], element[lane, slot] * bytes_each + byte)
                register, rest = divmod(slot, move.per_register)
                found[tuple(int(x) for x in where)] = (lane, register, rest * bytes_each + byte)
    assert found == wanted
    assert len(set(wanted.values())) == len(wanted) == move.count * move.lines * move.elements * bytes_each


@by_name
def test_the_layouts_say_the_same(move: MatrixMove) -> None:
    shape = (move.count, move.lines, move.elements)
    layout, addresses = move_layout(move), address_layout(move)
    bytes_each = 1 if move.source_bits != move.bits else move.bits // 8
    for (matrix, line, byte), (lane, register, at) in places(move).items():
        if byte % bytes_each:
            continue
        held = layout.apply(matrix, line, byte // bytes_each, shape=shape)
        assert held.get(laneid, 0) == lane
        assert held.get("m", 0) == register * move.per_register + at // bytes_each
        # C43: lanes 8r to 8r + 7 feed register r of the 8 x 8 forms.
        source = addresses.apply(matrix, line, shape=shape[:2]).get(laneid, 0)
        assert source == move.address_lane(matrix, line) == matrix * move.lines + line
        if move.lines == 8:
            assert source // 8 == register


def memory_of(move: MatrixMove, warps: int, seed: int) -> tuple[Any, Any]:
    """Random bytes and a random, non-overlapping, aligned byte address for every lane."""
    rng = np.random.default_rng(seed)
    lines = rng.permutation(warps * 32 + 17)[: warps * 32].reshape(warps, 32)
    return rng.integers(0, 256, 16 * (warps * 32 + 17), dtype=np.uint8), 16 * lines


def arrays(move: MatrixMove) -> tuple[Any, Any, Any, Any]:
    """`places` as arrays: line, byte (or element) of the line, lane, byte of the lane's registers."""
    found = np.array([(*source, *place) for source, place in places(move).items()])
    matrix, line, byte, lane, register, at = found.T
    return matrix * move.lines + line, byte, lane, 4 * register + at


ARRAYS = {move.name: arrays(move) for move in MOVES}


@pytest.mark.parametrize("move", LDMATRIX, ids=lambda move: move.name)
@settings(max_examples=20)  # each covers every element
@given(seed=st.integers(0, 2**32 - 1), item=st.sampled_from([1, 2, 4]))
def test_a_load_puts_every_element_where_ptx_has_it(move: MatrixMove, seed: int, item: int) -> None:
    memory, at = memory_of(move, 2, seed)
    found = move.instruction.meaning({"p": Place(memory.view(f"u{item}"), at // item)})["D"]
    assert found.shape == (2, 32, move.registers)
    assert found.dtype == np.uint32
    line, byte, lane, place = ARRAYS[move.name]
    lines = memory[at[..., None] + np.arange(16)]
    if move.source_bits != move.bits:
        lines = np.array(
            [
                [[matrix_isa.field(x, i, move.source_bits) for i in range(16)] for x in warp]
                for warp in lines.tolist()
            ]
        )
    registers = found.view(np.uint8).reshape(2, 32, -1)
    assert (registers[:, lane, place] == lines[:, line, byte]).all()


@pytest.mark.parametrize("move", STMATRIX, ids=lambda move: move.name)
@settings(max_examples=20)  # each covers every element
@given(seed=st.integers(0, 2**32 - 1))
def test_a_store_writes_every_byte_and_no_other(move: MatrixMove, seed: int) -> None:
    memory, at = memory_of(move, 2, seed)
    before = memory.copy()
    registers = np.random.default_rng(seed).integers(0, 2**32, (2, 32, move.registers), dtype=np.uint32)
    kept = registers.copy()
    assert move.instruction.meaning({"p": Place(memory, at), "A": registers}) == {}
    line, byte, lane, place = ARRAYS[move.name]
    before[at[:, line] + byte] = registers.view(np.uint8).reshape(2, 32, -1)[:, lane, place]
    assert (memory == before).all()
    assert (registers == kept).all()


@pytest.mark.parametrize("move", [m for m in STMATRIX if m.bits == 16], ids=lambda move: move.name)
@settings(max_examples=20)  # each covers every element
@given(seed=st.integers(0, 2**32 - 1))
def test_what_was_stored_can_be_loaded(move: MatrixMove, seed: int) -> None:
    memory, at = memory_of(move, 1, seed)
    registers = np.random.default_rng(seed).integers(0, 2**32, (1, 32, move.registers), dtype=np.uint32)
    move.store({"p": Place(memory, at), "A": registers})
    back = next(x for x in LDMATRIX if x.name == move.name.replace("stmatrix", "ldmatrix"))
    assert (back.load({"p": Place(memory, at)})["D"] == registers).all()


@pytest.mark.parametrize("count", [2, 4])
@settings(max_examples=20)  # each covers every element
@given(seed=st.integers(0, 2**32 - 1))
def test_two_byte_matrices_that_were_stored_are_one_that_is_loaded_up_to_an_exchange_of_bytes(
    count: int, seed: int
) -> None:
    """CUTLASS, ``copy_sm100.hpp``: load registers t0, t1 hold {d0.01, d1.01} and {d0.23, d1.23} of stores d0, d1."""
    move = next(x for x in STMATRIX if x.name == f"stmatrix.m16n8.x{count}.trans.b8")
    load = next(x for x in LDMATRIX if x.name == f"ldmatrix.m16n16.x{count // 2}.trans.b8")
    memory, at = memory_of(move, 1, seed)
    d = np.random.default_rng(seed).integers(0, 2**32, (1, 32, count), dtype=np.uint32)
    move.store({"p": Place(memory, at), "A": d})
    # Line 4c + 2a + b of the load is line 2c + b of the store's matrix a.
    order = [16 * (i // 16) + 8 * (i // 2 % 2) + 2 * (i % 16 // 4) + i % 2 for i in range(32)]
    t = load.load({"p": Place(memory, at[:, order])})["D"].view(np.uint8).reshape(32, count // 2, 2, 4)
    stored = d.view(np.uint8).reshape(32, count // 2, 2, 2, 2)  # lane, pair, matrix, half, byte
    assert (t[:, :, 0] == stored[:, :, :, 0].reshape(32, -1, 4)).all()
    assert (t[:, :, 1] == stored[:, :, :, 1].reshape(32, -1, 4)).all()


# --- addresses ------------------------------------------------------------------------------------


@by_name
def test_an_address_that_is_no_multiple_of_16_is_refused(move: MatrixMove) -> None:
    memory, at = memory_of(move, 2, 0)
    lane = move.count * move.lines - 1
    values: dict[str, Any] = {"A": np.zeros((2, 32, move.registers), np.uint32)}
    for wrong in (at[1, lane] + 8, at[1, lane] + 1):
        bad = at.copy()
        bad[1, lane] = wrong
        with pytest.raises(MachineError, match=rf"{wrong} of lane {lane} of warp 1 is no multiple of 16"):
            move.instruction.meaning({**values, "p": Place(memory, bad)})
    for wrong in (memory.size, -16):
        bad = at.copy()
        bad[1, lane] = wrong
        with pytest.raises(MachineError, match=rf"lane {lane} of warp 1 leaves the buffer's {memory.size}"):
            move.instruction.meaning({**values, "p": Place(memory, bad)})


@by_name
def test_addresses_of_lanes_that_serve_no_line_are_not_used(move: MatrixMove) -> None:
    memory, at = memory_of(move, 1, 3)
    used = move.count * move.lines
    values: dict[str, Any] = {"A": np.full((1, 32, move.registers), 7, np.uint32)}
    other = at.copy()
    other[:, used:] = -5
    first, second = memory.copy(), memory.copy()
    one = move.instruction.meaning({**values, "p": Place(first, at)})
    two = move.instruction.meaning({**values, "p": Place(second, other)})
    assert (first == second).all()
    assert all((one[x] == two[x]).all() for x in one)


@pytest.mark.parametrize("move", STMATRIX, ids=lambda move: move.name)
def test_two_lines_stored_to_one_address_are_refused(move: MatrixMove) -> None:
    memory, at = memory_of(move, 1, 1)
    at[0, 5] = at[0, 2]
    with pytest.raises(MachineError, match=f"two lanes give address {at[0, 2]}"):
        move.store({"p": Place(memory, at), "A": np.zeros((1, 32, move.registers), np.uint32)})


def test_a_line_that_is_not_there_has_no_lane() -> None:
    x2 = next(move for move in LDMATRIX if move.name == "ldmatrix.m8n8.x2.b16")
    assert [x2.address_lane(1, i) for i in range(8)] == list(range(8, 16))
    with pytest.raises(LayoutError, match="no line 0 of matrix 2"):
        x2.address_lane(2, 0)


def test_a_form_with_more_lines_than_lanes_is_refused() -> None:
    with pytest.raises(LayoutError, match="64 lines for 32 lanes"):
        MatrixMove("ldmatrix", "m16n16", 16, 4, 8, 8, True, 100, (8, 6), (), "")


# --- movmatrix ------------------------------------------------------------------------------------


@settings(max_examples=20)  # each covers every element
@given(seed=st.integers(0, 2**32 - 1))
def test_movmatrix_transposes(seed: int) -> None:
    (record,) = MOVMATRIX
    words = np.random.default_rng(seed).integers(0, 2**32, (3, 32, 1), dtype=np.uint32)
    found = record.instruction.meaning({"a": words})["d"]
    halves, out = (x.view(np.uint16).reshape(3, 32, 2) for x in (words, found))
    for lane in range(32):  # thread T holds a fragment of row T / 4, and of column T / 4 of the result
        for half in range(2):
            row, column = lane >> 2, 2 * (lane % 4) + half
            assert (out[:, 4 * column + row // 2, row % 2] == halves[:, lane, half]).all()
    assert (record.instruction.meaning({"a": found})["d"] == words).all()


def test_movmatrix_is_a_store_and_a_transposed_load() -> None:
    (record,) = MOVMATRIX
    words = np.random.default_rng(5).integers(0, 2**32, (1, 32, 1), dtype=np.uint32)
    memory, at = memory_of(STMATRIX[0], 1, 2)
    STMATRIX[0].store({"p": Place(memory, at), "A": words})
    transposed = next(move for move in LDMATRIX if move.name == "ldmatrix.m8n8.x1.trans.b16")
    loaded = transposed.load({"p": Place(memory, at)})["D"]
    assert (loaded == record.transpose({"a": words})["d"]).all()
    for i in range(8):
        for j in range(8):
            assert MOVMATRIX_SOURCE.apply(i, j, shape=(8, 8)) == MOVMATRIX_RESULT.apply(j, i, shape=(8, 8))
            assert MOVMATRIX_RESULT.apply(i, j, shape=(8, 8)) == move_layout(transposed).apply(
                i, j, shape=(8, 8)
            )
