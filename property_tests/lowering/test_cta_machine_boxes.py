"""Boxes of the copy engine on the machine of CTAs: where each element goes, by a formula, for all swizzles and rims."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import MachineError
from lowering.backends.cta_machine import EXAMPLES, run_grid
from lowering.control import SWIZZLES, Compare, Parameter, TensorMap
from lowering.program import Buffer
from lowering.registers import LANE
from tilelayout import LayoutError

from .cta_cases import (
    BUFFERS,
    BULK_GROUP,
    FENCE,
    RESULT,
    SOURCE,
    WARP_SYNC,
    bulk_load,
    bulk_store,
    by_lane,
    by_thread,
    execute,
    expect,
    full,
    kernel,
    load,
    on,
    on_buffer,
    read,
    refuse,
    start,
    store,
    wait,
    wait_stores,
    write,
)


def place_in_shared(at: tuple[int, ...], box: tuple[int, ...], swizzle: int, size: int) -> int:
    """Byte of an element of a box, dimension 0 first: packed, then bits 4 on of the address xor bits 7 on."""
    flat = 0
    for x, n in reversed(list(zip(at, box, strict=True))):
        flat = flat * n + x
    byte = flat * size
    for bit in range({0: 0, 32: 1, 64: 2, 128: 3}[swizzle]):
        byte ^= (byte >> 7 + bit & 1) << 4 + bit
    return byte


@st.composite
def boxes(draw: Any) -> tuple[TensorMap, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """A map of words, sizes, strides and a coordinate that may overhang on every side, by whole units of 16 bytes."""
    rank, swizzle = draw(st.integers(1, 3)), draw(st.sampled_from(sorted(SWIZZLES)))
    inner = draw(st.sampled_from([4, 8, 16, 32])) if not swizzle else swizzle // 4
    box = (inner, *[draw(st.integers(1, 6)) for _ in range(rank - 1)])
    sizes = tuple(draw(st.integers(1, 2 * n + 3)) for n in box)
    strides: list[int] = []
    reach = sizes[0]
    for n in sizes[1:]:
        strides.append((reach + 3) // 4 * 4 + 4 * draw(st.integers(0, 2)))
        reach = strides[-1] * n
    at = tuple(draw(st.integers(-n - 1, size + 1)) for n, size in zip(box, sizes, strict=True))
    at = (at[0] // 4 * 4, *at[1:])
    return TensorMap("map", SOURCE, sizes, tuple(strides), box, swizzle), sizes, tuple(strides), at


@given(boxes(), st.sampled_from(EXAMPLES))
def test_a_load_brings_the_box(case: Any, schedule: int) -> None:
    """Every element of the box at its place, zeros beyond the tensor, nothing anywhere else; coordinates are data."""
    tensor, sizes, strides, at = case
    words = tensor.bytes // 4
    count = -(-words // 32)
    body = [
        *start((full(), 1)),
        by_thread(expect(full(), tensor.bytes), bulk_load(0, tensor, at, full())),
        wait(full(), 0),
        *[
            on(Compare(LANE + 32 * i, "<", words), read(32 * i + LANE, 1), store(32 * i + LANE, 1))
            for i in range(count)
        ],
    ]
    big = Buffer("shared", "S", "uint32", (8192,), 0, "shared", 1024)
    body = [on_buffer(s, big) for s in body]
    length = 1 + sum((n - 1) * s for n, s in zip(sizes, (1, *strides), strict=True))
    source = np.arange(1, length + 1, dtype=np.uint32)
    touched = np.zeros(length, bool)
    wanted = np.zeros(words, np.uint32)
    for inside in product(*[range(n) for n in tensor.box]):
        coordinate = [a + i for a, i in zip(at, inside, strict=True)]
        if all(0 <= x < n for x, n in zip(coordinate, sizes, strict=True)):
            element = sum(x * s for x, s in zip(coordinate, (1, *strides), strict=True))
            touched[element] = True
            wanted[place_in_shared(inside, tensor.box, tensor.swizzle, 4) // 4] = source[element]
    program = kernel(*body, buffers=(SOURCE, RESULT, big, *BUFFERS[3:]), maps=(tensor,))
    memory = {"source": source, "result": np.full(words, 0xFFFFFFFF, np.uint32)}
    found = run_grid(program, (1, 1, 1), memory, schedule=schedule, guarded={"source": ~touched})
    np.testing.assert_array_equal(found["result"], wanted)


@given(boxes(), st.sampled_from(EXAMPLES))
def test_a_store_writes_the_box(case: Any, schedule: int) -> None:
    """Elements of the tensor, and of the unit in which a row ends, get what lies at their place; all others stay."""
    tensor, sizes, strides, at = case
    tensor = TensorMap("map", RESULT, tensor.sizes, tensor.strides, tensor.box, tensor.swizzle)
    words = tensor.bytes // 4
    count = -(-words // 32)
    big = Buffer("shared", "S", "uint32", (8192,), 0, "shared", 1024)
    body = [
        *[
            on(Compare(LANE + 32 * i, "<", words), load(32 * i + LANE), write(32 * i + LANE))
            for i in range(count)
        ],
        FENCE,
        WARP_SYNC,
        by_lane(9, bulk_store(tensor, at, 0), BULK_GROUP, wait_stores()),
    ]
    body = [on_buffer(s, big) for s in body]
    stored = (-(-sizes[0] // 4) * 4, *sizes[1:])
    length = 1 + sum((n - 1) * s for n, s in zip(stored, (1, *strides), strict=True))
    wanted = np.zeros(length, np.uint32)
    for inside in product(*[range(n) for n in tensor.box]):
        coordinate = [a + i for a, i in zip(at, inside, strict=True)]
        if all(0 <= x < n for x, n in zip(coordinate, stored, strict=True)):
            element = sum(x * s for x, s in zip(coordinate, (1, *strides), strict=True))
            wanted[element] = 1 + place_in_shared(inside, tensor.box, tensor.swizzle, 4) // 4
    program = kernel(*body, buffers=(SOURCE, RESULT, big), maps=(tensor,))
    memory = {"source": np.arange(1, words + 1, dtype=np.uint32), "result": np.zeros(length, np.uint32)}
    found = run_grid(program, (1, 1, 1), memory, schedule=schedule, guarded={"result": wanted == 0})
    np.testing.assert_array_equal(found["result"], wanted)


def sent(at: tuple[int, ...], *sizes: int, buffer: Buffer = RESULT, **more: Any) -> Any:
    """A box of 32 x 2 words, 1 to 64, or as many bytes, stored to rows that lie 32 apart."""
    per = 32 // buffer.container
    tensor = TensorMap("out", buffer, sizes, (32 * per,), (32 * per, 2), **more)
    body = [
        *[x for i in range(2) for x in (load(32 * i + LANE), write(32 * i + LANE))],
        FENCE,
        WARP_SYNC,
        by_lane(0, bulk_store(tensor, at, 0), BULK_GROUP, wait_stores()),
    ]
    return kernel(*body, buffers=(SOURCE, buffer, *BUFFERS[2:]), maps=(tensor,))


SENT = np.arange(1, 65, dtype=np.uint32)


@pytest.mark.parametrize("schedule", EXAMPLES)
@pytest.mark.parametrize("columns", range(1, 33))
def test_a_store_writes_whole_units(columns: int, schedule: int) -> None:
    """What is behind a row gets what the box has, up to the next 16 bytes; guarded, or not there, it is an error."""
    program, whole = sent((0, 0), columns, 2), -(-columns // 4) * 4

    def run(size: int, guarded: Any = None) -> Any:
        memory = {"source": SENT, "result": np.zeros(size, np.uint32)}
        return run_grid(program, (1, 1, 1), memory, schedule=schedule, guarded=guarded)["result"]

    wanted = np.zeros((2, 32), np.uint32)
    wanted[:, :whole] = SENT.reshape(2, 32)[:, :whole]
    np.testing.assert_array_equal(run(64).reshape(2, 32), wanted)
    np.testing.assert_array_equal(run(32 + whole), wanted.ravel()[: 32 + whole])
    behind = np.arange(64) % 32 >= columns
    if columns == whole:
        np.testing.assert_array_equal(run(64, {"result": behind}).reshape(2, 32), wanted)
        return
    said = r", behind a row of out: the copy engine stores whole units of 16 bytes, a box at \(0, 0\)"
    with pytest.raises(MachineError, match=f"writes a guarded element of result, number {columns}{said}"):
        run(64, {"result": behind})
    with pytest.raises(
        MachineError, match=f"touches elements {32 + columns} to {32 + columns} of result, which has.*{said}"
    ):
        run(32 + columns)
    first = np.zeros(64, bool)
    first[columns - 1] = True
    with pytest.raises(MachineError, match=f"guarded element of result, number {columns - 1}, a box"):
        run(64, {"result": first})


def test_units_are_of_bytes() -> None:
    """Of 16 bytes, or 8 halves: rows of one element more are stored as two units; other rows are left alone."""
    for name, bits in (("uint8", 8), ("uint16", 16)):
        result = Buffer("result", "D", name, (0,), bits, "global", 16)
        kind, per, unit = np.dtype(name), 32 // bits, 128 // bits
        program = sent((0, 1), unit + 1, 2, buffer=result)  # the box's second row is outside
        found = run_grid(program, (1, 1, 1), {"source": SENT, "result": np.full(64 * per, 99, kind)})[
            "result"
        ]
        wanted = np.full((2, 32 * per), 99, kind)
        wanted[1, : 2 * unit] = SENT.view(kind)[: 2 * unit]
        np.testing.assert_array_equal(found.reshape(2, -1), wanted)


def test_a_promise_of_whole_units_is_kept_at_the_launch() -> None:
    memory = {"source": SENT, "result": np.zeros(64, np.uint32)}
    run_grid(sent((0, 0), 28, 2, whole_units=True), (1, 1, 1), memory)
    with pytest.raises(
        LayoutError, match="out promises rows of whole units of 16 bytes, they have 27 elements of 32"
    ):
        run_grid(sent((0, 0), 27, 2, whole_units=True), (1, 1, 1), memory)


@pytest.mark.parametrize("first", [-33, -5, -2, -1, 1, 2, 3, 6, 35])
def test_a_box_begins_with_a_unit(first: int) -> None:
    """Other coordinates are an illegal instruction, before the tensor too; those of the other dimensions are free."""
    memory = {"source": SENT, "result": np.zeros(64, np.uint32)}
    run_grid(sent((first * 4, 1), 32, 2), (1, 1, 1), memory)
    said = rf"coordinate {first} of dimension 0, elements of 32 bits, is no multiple of 16 bytes: an illegal"
    with pytest.raises(MachineError, match=said):
        run_grid(sent((first, 0), 32, 2), (1, 1, 1), memory)
    tensor = TensorMap("map", SOURCE, (1024,), (), (32,))
    body = [*start((full(), 1)), by_thread(expect(full(), 128), bulk_load(0, tensor, (first,), full()))]
    refuse(said, *body, maps=(tensor,))


def test_the_swizzle_follows_the_address_not_the_box() -> None:
    """A box that begins in the middle of a pattern continues it."""
    tensor = TensorMap("map", SOURCE, (32, 8), (32,), (32, 4), 128)
    body = [
        *start((full(), 1)),
        by_thread(expect(full(), 512), bulk_load(128, tensor, (0, 0), full())),
        wait(full(), 0),
        *[x for i in range(4) for x in (read(128 + 32 * i + LANE, 1), store(32 * i + LANE, 1))],
    ]
    found = execute(*body, size=128, maps=(tensor,)).reshape(4, 8, 4)
    for row, unit in product(range(4), range(8)):
        np.testing.assert_array_equal(found[row, unit ^ (4 + row)], 32 * row + 4 * unit + np.arange(4))


def test_sizes_and_strides_come_from_the_launch() -> None:
    rows = Parameter("m", "s32", 0, 64)
    tensor = TensorMap("map", SOURCE, (8, rows.variable), (4 * rows.variable,), (8, 16))
    body = [
        *start((full(), 1)),
        by_thread(expect(full(), 512), bulk_load(0, tensor, (0, 0), full())),
        wait(full(), 0),
        *[x for i in range(4) for x in (read(32 * i + LANE, 1), store(32 * i + LANE, 1))],
    ]
    more: dict[str, Any] = {"maps": (tensor,), "parameters": (rows,), "size": 128}
    found = execute(*body, values={"m": 5}, **more).reshape(16, 8)
    np.testing.assert_array_equal(found[:5], 20 * np.arange(5)[:, None] + np.arange(8))
    assert not found[5:].any()
    with pytest.raises(LayoutError, match="tensor map map has sizes"):
        execute(*body, values={"m": 0}, **more)
