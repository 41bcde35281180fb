"""The copy engine on the machine of CTAs: bytes that barriers count, proxies and fences, groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering.control import TensorMap
from lowering.program import Buffer
from lowering.registers import LANE
from tilelayout import LayoutError

from .cta_cases import (
    BUFFERS,
    BULK_GROUP,
    FENCE,
    RESULT,
    SOURCE,
    SYNC,
    TURN,
    WARP_SYNC,
    arrive,
    arrive_behind,
    bulk_load,
    bulk_store,
    by_lane,
    by_thread,
    by_warp,
    empty,
    execute,
    expect,
    full,
    init,
    load,
    on_buffer,
    read,
    refuse,
    repeat,
    start,
    store,
    wait,
    wait_reads,
    wait_stores,
    write,
)

# --- when it is done ----------------------------------------------------------------------------

ROW = TensorMap("row", SOURCE, (1024,), (), (32,))
OUT = TensorMap("out", RESULT, (1024,), (), (32,))
MAPS = (ROW, OUT)
BYTES = 128


def fetch(to: Any = 0, at: Any = 0, bar: Any = None, size: Any = BYTES) -> list[Any]:
    bar = full() if bar is None else bar
    return [expect(bar, size), bulk_load(to, ROW, (at,), bar)]


USE = [read(LANE ^ 1, 1), store(LANE, 1)]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            [*start((full(), 1)), by_thread(*fetch()), *USE, wait(full(), 0)],
            r"reads shared before its wait: (`cp.async.bulk.* is still under way|the thread has not waited for `cp)",
        ),
        (
            [*start((full(), 1)), by_thread(*fetch()), wait(full(), 1), *USE, wait(full(), 0)],
            r"reads shared before its wait|no warp can go on",
        ),
        (
            [*start((full(), 1)), by_thread(*fetch()), by_lane(0, wait(full(), 0)), *USE],
            r"reads shared before its wait: the thread has not waited for",
        ),
        (
            [
                *start((full(), 1), (full(1), 1)),
                by_thread(*fetch(), *fetch(32, 32, full(1))),
                wait(full(), 0),
                read(32 + LANE, 1),
                wait(full(1), 0),
            ],
            r"reads shared before its wait",
        ),
        (
            [*start((full(), 1)), by_thread(*fetch(size=BYTES + 4)), wait(full(), 0)],
            r"no warp can go on\n.*phase 0 of full\[0\].* lacks 0 of 1 arrivals and 4 bytes",
        ),
        (
            [*start((full(), 1)), by_thread(*fetch(size=BYTES - 4)), wait(full(), 0)],
            r"4 bytes more have landed at full\[0\] in phase 0 than it expects",
        ),
        (
            [*start((full(), 1)), by_thread(*fetch(), *fetch(32, bar=full()))],
            r"1 arrivals at full\[0\], phase 0 lacks 0|ends, and no thread",
        ),
        (
            [*start((full(), 1)), by_thread(*fetch())],
            r"CTA 0 ends, and no thread has waited for it on full\[0\]",
        ),
        (
            [*start((full(), 1), fence=False), by_thread(*fetch())],
            r"the copy engine does not know full\[0\]: fence.mbarrier_init",
        ),
        ([by_thread(init(full(), 1), *fetch())], r"the copy engine does not know full\[0\]"),
        ([*start((full(), 1)), by_thread(*fetch(8))], r"an address in shared is no multiple of 128 bytes"),
        ([*start((full(), 1)), by_thread(*fetch(512))], r"a box of 128 bytes leaves shared, which has 2048"),
        (
            [*start((full(), 1)), by_thread(*fetch(), *fetch(bar=full(0)))],
            r"1 arrivals at|overwrites shared before its wait",
        ),
        (
            [*start((full(), 1)), load(LANE), write(LANE), SYNC, by_thread(*fetch())],
            r"the copy engine may not see what warp 0, lane 0 wrote in shared by `st",
        ),
        (
            [*start((full(), 1)), load(LANE), write(LANE), FENCE, by_thread(*fetch())],
            r"races: overwrites what warp 0, lane 1 wrote",
        ),
        (
            [*start((full(), 1)), by_thread(*fetch()), load(LANE), write(LANE), wait(full(), 0)],
            r"overwrites shared before its wait",
        ),
    ],
)
def test_misuse_of_loads(body: list[Any], said: str) -> None:
    refuse(said, *body, maps=MAPS)


def test_a_load_beyond_the_data_is_an_error_and_beyond_the_tensor_none() -> None:
    wide = TensorMap("wide", SOURCE, (64,), (), (32,))
    body = [
        *start((full(), 1)),
        by_thread(expect(full(), BYTES), bulk_load(0, wide, (48,), full())),
        wait(full(), 0),
        *USE,
    ]
    refuse(
        r"touches elements 60 to 60 of source, which has 60, a box at \(48,\), shared\[0\] \(warp 0, lane 0",
        *body,
        maps=(wide,),
        source=np.arange(60, dtype=np.uint32),
    )
    found = execute(*body, maps=(wide,), source=np.arange(64, dtype=np.uint32), size=32)
    wanted = np.where(np.arange(32) < 16, np.arange(48, 80), 0)
    np.testing.assert_array_equal(found, wanted[np.arange(32) ^ 1])


@pytest.mark.parametrize("turns", [1, 2, 3, 7])
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_a_pipeline(turns: int, stages: int) -> None:
    """One lane of warp 2 feeds two warps through some stages; each stage is released behind its use."""
    stage = TURN % stages
    parity = TURN // stages % 2
    body = [
        *start(*[(full(i), 1) for i in range(stages)], *[(empty(i), 2) for i in range(stages)]),
        by_warp(
            2,
            by_lane(
                0, *repeat(turns, wait(empty(stage), 1 - parity), *fetch(32 * stage, 32 * TURN, full(stage)))
            ),
        ),
        *[
            by_warp(
                w,
                *repeat(
                    turns,
                    wait(full(stage), parity),
                    read(32 * stage + (LANE ^ 1), 1),
                    store(64 * TURN + 32 * w + LANE, 1),
                    arrive_behind(empty(stage), 1),
                ),
            )
            for w in range(2)
        ],
    ]
    found = execute(*body, warps=3, size=64 * turns, maps=MAPS, schedules=(0, -1, -2, 1, 2, 3))
    wanted = np.repeat(np.arange(32 * turns).reshape(turns, 1, 32) ^ 1, 2, axis=1)
    np.testing.assert_array_equal(found, wanted.ravel())


def test_an_early_release_is_found_when_the_stage_is_overwritten() -> None:
    def body(*release: Any) -> list[Any]:
        return [
            *start((full(), 1), (empty(), 1)),
            by_warp(1, by_lane(0, *repeat(3, wait(empty(), 1 - TURN % 2), *fetch(0, 32 * TURN)))),
            by_warp(0, *repeat(3, wait(full(), TURN % 2), read(LANE ^ 1, 1), *release)),
        ]

    used = store(32 * TURN + LANE, 1)
    one = by_lane(0, arrive(empty()))
    execute(*body(used, WARP_SYNC, one), warps=2, size=96, maps=MAPS)
    refuse(
        r"overwrites shared while warp 0 may still read it", *body(WARP_SYNC, one, used), warps=2, maps=MAPS
    )
    refuse(
        r"races: overwrites what warp 0, lane 1 read in shared by `ld", *body(used, one), warps=2, maps=MAPS
    )


# --- stores -------------------------------------------------------------------------------------

SEND = [bulk_store(OUT, (0,), 0), BULK_GROUP]
FILL = [load(LANE), write(LANE)]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            [*FILL, WARP_SYNC, by_lane(0, *SEND, wait_stores())],
            r"the copy engine may not see what warp 0, lane 0 wrote in shared by `st.*fence.proxy.async",
        ),
        (
            [*FILL, WARP_SYNC, by_lane(0, FENCE, *SEND, wait_stores())],
            r"may not see what warp 0, lane 1 wrote",
        ),
        (
            [*FILL, WARP_SYNC, FENCE, by_lane(0, *SEND, wait_stores())],
            r"may not see what warp 0, lane 1 wrote",
        ),
        ([*FILL, FENCE, by_lane(0, *SEND, wait_stores())], r"races: reads what warp 0, lane 1 wrote"),
        (
            [load(LANE), FENCE, write(LANE), WARP_SYNC, by_lane(0, *SEND, wait_stores())],
            r"may not see what warp 0, lane 0",
        ),
        ([by_lane(0, *SEND, wait_stores())], r"reads an element of shared that holds nothing"),
        (
            [*FILL, FENCE, WARP_SYNC, by_lane(0, *SEND)],
            r"CTA 0 ends while the copy engine may still read its shared memory",
        ),
        (
            [*FILL, FENCE, WARP_SYNC, by_lane(0, *SEND[:1], wait_reads())],
            r"CTA 0 ends while the copy engine may still",
        ),
        (
            [*FILL, FENCE, WARP_SYNC, by_lane(0, *SEND), SYNC, write(LANE)],
            r"overwrites shared while `cp.async.bulk.* may still read it: its wait_group.read is missing",
        ),
        (
            [*FILL, FENCE, WARP_SYNC, by_lane(0, *SEND, wait_reads(1)), SYNC, write(LANE)],
            r"its wait_group.read is missing",
        ),
        (
            [*FILL, FENCE, WARP_SYNC, by_lane(0, *SEND, wait_reads()), write(LANE)],
            r"no barrier behind its wait_group.read",
        ),
        (
            [*FILL, FENCE, WARP_SYNC, by_lane(1, *SEND), by_lane(0, wait_reads()), SYNC, write(LANE)],
            r"wait_group.read is missing",
        ),
    ],
)
def test_misuse_of_stores(body: list[Any], said: str) -> None:
    refuse(said, *body, maps=MAPS)


def test_two_slots_are_stored_in_turn() -> None:
    """While one slot is read the other is filled; a wait that leaves one group more is an error."""
    slot = 32 * (TURN % 2)

    def body(pending: int) -> list[Any]:
        return [
            *repeat(
                5,
                by_lane(0, wait_reads(pending)),
                WARP_SYNC,
                load(32 * TURN + (LANE ^ 3)),
                write(slot + LANE),
                FENCE,
                WARP_SYNC,
                by_lane(0, bulk_store(OUT, (32 * TURN,), slot), BULK_GROUP),
            ),
            by_lane(0, wait_stores()),
        ]

    found = execute(*body(1), size=1024, maps=MAPS)
    np.testing.assert_array_equal(found[:160], np.arange(160) ^ 3)
    refuse("its wait_group.read is missing", *body(2), maps=MAPS)


def test_what_is_stored_is_written_when_the_cta_ends() -> None:
    """Only reading was waited for."""
    found = execute(*FILL, FENCE, WARP_SYNC, by_lane(0, *SEND, wait_reads()), maps=MAPS)
    np.testing.assert_array_equal(found[:32], np.arange(32))


def test_a_box_may_go_through() -> None:
    """Loaded and stored by the engine alone: no fence, but a wait."""
    body = [*start((full(), 1)), by_thread(*fetch(0, 64), wait(full(), 0), *SEND, wait_stores())]
    np.testing.assert_array_equal(execute(*body, maps=MAPS)[:32], np.arange(64, 96))
    refuse(
        r"before its wait",
        *start((full(), 1)),
        by_thread(*fetch(0, 64), *SEND, wait(full(), 0), wait_stores()),
        maps=MAPS,
    )


def test_a_swizzle_needs_an_aligned_buffer() -> None:
    loose = Buffer("loose", "S", "uint32", (512,), 0, "shared", 512)
    tensor = TensorMap("map", SOURCE, (32, 8), (32,), (32, 4), 128)
    body = [*start((full(), 1)), by_thread(expect(full(), 512), bulk_load(0, tensor, (0, 0), full()))]
    body = [on_buffer(s, loose) for s in body]
    refuse(
        r"map swizzles 128 bytes, a pattern of 1024 bytes, and loose is aligned to 512",
        *body,
        buffers=(*BUFFERS[:2], loose, *BUFFERS[3:]),
        maps=(tensor,),
    )
    with pytest.raises(LayoutError, match="the program has no tensor map map"):
        execute(*body, buffers=(*BUFFERS[:2], loose, *BUFFERS[3:]))
