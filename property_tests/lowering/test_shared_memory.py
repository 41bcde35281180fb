"""Shared memory on the reference machine: what holds nothing, what lies outside, what is not aligned, who races."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering import MachineError, Tile, copy, lower
from lowering.backends.memory import Memory, collect_memory, fill_memory
from lowering.backends.reference import File, run_program
from lowering.isa import BAR_SYNC, LOADS, STORES
from lowering.isa.ldmatrix import LDMATRIX
from lowering.isa.stmatrix import STMATRIX
from lowering.program import Address, Buffer, Instr, Program, Registers, Slot
from lowering.registers import LANE, WARP
from tilelayout import LayoutError, R, S, Swizzle, SwizzledLayout, TileLayout, laneid

from .copy_cases import row_major

MOVE = {move.name: move.instruction for move in (*LDMATRIX, *STMATRIX)}
WORDS = Registers("r", "A", "float32", 4, "b32")
BUFFER = Buffer("s", "S", "float32", (128,), 0, "shared", 16)
BARRIER = Instr(BAR_SYNC, ())


def slots(*numbers: int) -> tuple[Slot, ...]:
    return tuple([Slot(WORDS, i) for i in numbers])


def store(at: Any, count: int = 1, buffer: Buffer = BUFFER) -> Instr:
    return Instr(STORES["shared", "b32", count], (Address(buffer, (at,)), slots(*range(count))))


def load(at: Any, count: int = 1, buffer: Buffer = BUFFER) -> Instr:
    return Instr(LOADS["shared", "b32", count], (slots(*range(count)), Address(buffer, (at,))))


def run(*body: Instr, warps: int = 1, buffer: Buffer = BUFFER) -> tuple[Any, Memory]:
    """All lanes hold numbers; what they hold afterwards, and the memory."""
    file = File.empty(WORDS, warps)
    file.words[...] = np.arange(file.words.size, dtype=np.uint32).reshape(file.words.shape)
    file.written[...] = True
    memory = {buffer: Memory.empty(buffer)}
    run_program(Program("p", warps, (WORDS,), (WORDS,), body, (buffer,)), {WORDS: file}, memory)
    return file.words, memory[buffer]


def test_words_go_through_shared_memory() -> None:
    words, memory = run(store(4 * LANE, 4), BARRIER, load(4 * (31 - LANE), 4))
    np.testing.assert_array_equal(words[0], np.arange(128).reshape(32, 4)[::-1])
    assert memory.written.all()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([load(LANE)], r"ld\.shared\.b32.*reads an element of s that holds nothing \(warp 0, lane 0, at 0\)"),
        ([store(LANE), BARRIER, load(LANE + 1)], r"holds nothing \(warp 0, lane 31, at 32\)"),
        (
            [store(4 * LANE + 4, 4)],
            r"st\.shared\.v4.*touches elements 4 to 131 of s, which has 128 \(warp 0, lane 31",
        ),
        ([store(LANE - 1)], r"touches elements -1 to 30 of s.*\(warp 0, lane 0, at -1\)"),
        ([store(2 * LANE + 2, 4)], r"an address in s is no multiple of 16 bytes \(warp 0, lane 0, at 2\)"),
        ([store(2 * LANE, 4)], r"an address in s is no multiple of 16 bytes \(warp 0, lane 1, at 2\)"),
        ([store(LANE // 2)], r"two threads write one element of s"),
        (
            [store(LANE), load(31 - LANE)],
            r"reads what another thread has written in s, with no barrier between",
        ),
        ([store(LANE), store(31 - LANE)], r"overwrites what another thread has written in s"),
        (
            [store(LANE), BARRIER, load(LANE ^ 1), store(LANE)],
            r"step 3, st.*overwrites what another thread has read in s, with no barrier between \(warp 0, lane 0",
        ),
        ([store(LANE), BARRIER, load(0), store(LANE)], r"has read in s.*\(warp 0, lane 0, at 0\)"),
    ],
)
def test_what_no_hardware_defines_is_an_error(body: list[Instr], said: str) -> None:
    with pytest.raises(MachineError, match=said):
        run(*body)


def test_what_a_barrier_orders_is_none() -> None:
    words, _ = run(store(LANE), load(LANE), BARRIER, load(31 - LANE), BARRIER, store(LANE), warps=1)
    np.testing.assert_array_equal(words[0, :, 0], 4 * np.arange(32)[::-1])
    run(store(LANE), BARRIER, load(0), load(LANE // 4), BARRIER, store(31 - LANE))


def test_warps_race_too() -> None:
    with pytest.raises(MachineError, match=r"two threads write one element of s \(warp"):
        run(store(LANE), warps=2)
    with pytest.raises(
        MachineError, match=r"reads what another thread has written in s.*\(warp 0, lane 0, at 32\)"
    ):
        run(store(32 * WARP + LANE), load(32 * (1 - WARP) + LANE), warps=2)
    words, _ = run(store(32 * WARP + LANE), BARRIER, load(32 * (1 - WARP) + LANE), warps=2)
    np.testing.assert_array_equal(words[0, :, 0], 4 * np.arange(32, 64))


@pytest.mark.parametrize("name", ["ldmatrix.m8n8.x4.b16", "stmatrix.m8n8.x4.b16"])
def test_matrix_moves_name_the_lane(name: str) -> None:
    def move(at: Any) -> Instr:
        pair = (slots(0, 1, 2, 3), Address(BUFFER, (at,)))
        return Instr(MOVE[name], pair if name.startswith("ld") else pair[::-1])

    run(store(4 * LANE, 4), BARRIER, move(4 * LANE))
    for at, said in (
        (4 * LANE - LANE // 31, r"no multiple of 16 bytes \(warp 0, lane 31, at 123\)"),
        (4 * LANE + 4 * (LANE // 31), r"touches elements 0 to 131 of s, which has 128 \(warp 0, lane 31"),
    ):
        with pytest.raises(MachineError, match=f"{name.split('.')[0]}.*{said}"):
            run(store(4 * LANE, 4), BARRIER, move(at))


def test_matrices_of_lines_that_hold_nothing() -> None:
    with pytest.raises(MachineError, match=r"ldmatrix.*holds nothing \(warp 0, lane 8, at 32\)"):
        run(
            store(LANE),
            BARRIER,
            Instr(MOVE["ldmatrix.m8n8.x4.b16"], (slots(0, 1, 2, 3), Address(BUFFER, (4 * LANE,)))),
        )


def test_an_access_wider_than_the_alignment() -> None:
    loose = Buffer("s", "S", "float32", (128,), 0, "shared", 8)
    with pytest.raises(MachineError, match=r"takes 16 bytes at once, s is aligned to 8"):
        run(store(4 * LANE, 4, loose), buffer=loose)
    run(store(2 * LANE, 2, loose), buffer=loose)


def test_instructions_name_the_memory_that_they_take() -> None:
    with pytest.raises(LayoutError, match=r"operand p is of kind address, s lies in shared memory"):
        Instr(LOADS["global", "b32", 1], (slots(0), Address(BUFFER, (LANE,))))
    with pytest.raises(LayoutError, match=r"operand p is of kind shared, g lies in global memory"):
        Instr(LOADS["shared", "b32", 1], (slots(0), Address(Buffer("g", "A", "float32", (32,)), (LANE,))))


def test_buffers_in_shared_memory_say_their_alignment() -> None:
    with pytest.raises(LayoutError, match="in shared memory, aligned to 0 bytes"):
        Buffer("s", "S", "float32", (128,), 0, "shared")
    with pytest.raises(LayoutError, match="in tensor memory"):
        Buffer("s", "S", "float32", (128,), 0, "tensor", 16)


# --- arrays in and out --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float32", "float16", "int8", "int4", "uint1", "float6_e3m2fn"])
def test_arrays_lie_where_the_layout_says(name: str) -> None:
    layout = TileLayout(S[(8, 32) : (40, 1)] + 8)
    tile = Tile("t", (8, 32), name, layout, "shared")
    container = 8 if "float6" in name else 0
    buffer = Buffer("t", "t", name, (8 + 7 * 40 + 32,), container, "shared", 16)
    memory = Memory.empty(buffer)
    codes = np.random.default_rng(0).integers(0, 2, (8, 32))
    array = codes.astype(tile.element.numpy)
    fill_memory(memory, buffer, tile, array)
    np.testing.assert_array_equal(collect_memory(memory, buffer, tile), array)
    assert memory.written.sum() * buffer.per_unit == 256


def test_copies_of_an_element_are_all_filled() -> None:
    tile = Tile("t", (32,), "float32", TileLayout(S[32] + R[2:64]), "shared")
    buffer = Buffer("t", "t", "float32", (96,), 0, "shared", 16)
    memory = Memory.empty(buffer)
    fill_memory(memory, buffer, tile, np.arange(32, dtype=np.float32))
    np.testing.assert_array_equal(memory.data[:32], memory.data[64:])
    assert memory.written.sum() == 64


def test_copies_of_a_swizzled_element_are_swizzled_each() -> None:
    layout = SwizzledLayout(TileLayout(S[8, 8] + R[2:64]), Swizzle(3, 0, 3))
    tile = Tile("t", (8, 8), "float32", layout, "shared")
    buffer = Buffer("t", "t", "float32", (128,), 0, "shared", 16)
    memory = Memory.empty(buffer)
    fill_memory(memory, buffer, tile, np.arange(64, dtype=np.float32).reshape(8, 8))
    for flat in range(64):
        for place in layout.owners(flat):
            assert memory.data[place["m"]] == flat
    assert memory.written.all()


@pytest.mark.parametrize(
    "layout", [S[(8, 8) : (8 @ laneid, 1)], S[8, 8] + R[2 : 1 @ laneid], S[8, 8] + 1 @ laneid]
)
def test_what_leaves_memory_is_an_error(layout: Any) -> None:
    tile = Tile("t", (8, 8), "float32", TileLayout(layout), "shared")
    buffer = Buffer("t", "t", "float32", (128,), 0, "shared", 16)
    with pytest.raises(MachineError, match="leaves memory, along laneid"):
        fill_memory(Memory.empty(buffer), buffer, tile, np.zeros((8, 8), np.float32))


# --- tiles --------------------------------------------------------------------------------------


def tile(**given: Any) -> Tile:
    return Tile(
        "t", (8, 64), **{"dtype": "float16", "layout": row_major((8, 64)), "scope": "shared", **given}
    )


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, 16),
        ({"alignment": 128}, 128),
        ({"alignment": 2}, 2),
        ({"layout": row_major((8, 64)).swizzle(3, 3, 3)}, 1024),
        ({"layout": row_major((8, 64)).swizzle(1, 3, 3)}, 256),
        ({"layout": row_major((8, 64)).swizzle(2, 3, 3)}, 512),
        ({"layout": row_major((8, 64)).swizzle(3, 5, 5)}, 1024),
        ({"layout": row_major((8, 64)).swizzle(3, 3, 3), "alignment": 16}, 16),
        ({"scope": "global"}, 16),
    ],
)
def test_a_tile_in_memory_has_an_alignment(given: dict[str, Any], wanted: int) -> None:
    assert tile(**given).alignment == wanted


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"alignment": 12}, "alignment 12 is no power of two"),
        ({"alignment": -16}, "alignment -16 is no power of two"),
        ({"alignment": 1}, "alignment 1 is less than the 2 bytes of a float16"),
        (
            {"alignment": 16, "scope": "local", "layout": S[(8, 64) : (1 @ laneid, 1)]},
            "alignment 16 in local scope",
        ),
        ({"layout": row_major((8, 64)).swizzle(3, 3, 3), "scope": "local"}, "is swizzled, in local scope"),
        ({"layout": row_major((8, 64)).swizzle(3, 3, 3), "scope": "global"}, "is swizzled, in global scope"),
    ],
)
def test_what_no_tile_in_memory_has(given: dict[str, Any], said: str) -> None:
    if given.get("scope") == "local" and not isinstance(given["layout"], SwizzledLayout):
        given = {**given, "layout": TileLayout(given["layout"])}
    with pytest.raises(LayoutError, match=said):
        tile(**given)


def test_a_misaligned_tile_is_no_reason_for_a_wrong_program() -> None:
    """The program of a tile aligned to 4 bytes runs on exactly that."""
    held = Tile("held", (32, 8), "float16", TileLayout(S[(32, 8) : (1 @ laneid, 1)]))
    memory = Tile("memory", (32, 8), "float16", row_major((32, 8)), "shared", 4)
    found = lower(copy(held, memory), target="sm_80", scope="warp")
    array = np.arange(256.0).reshape(32, 8)
    np.testing.assert_array_equal(found.run(src=array), array)
    assert max(o.bytes for i in found.program.instructions for o in i.operands) == 4
