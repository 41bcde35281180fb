"""Asynchronous copies by threads on the machine of CTAs: groups, waits, zero fill, poison until they have landed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.control import Compare, If, Set
from lowering.registers import LANE
from tilelayout.expr import Var

from .cta_cases import (
    COMMIT,
    SYNC,
    THREAD,
    TURN,
    WARP_SYNC,
    by_lane,
    copy_async,
    execute,
    load,
    on,
    read,
    refuse,
    repeat,
    store,
    wait_copies,
    write,
)

COPY = copy_async(4 * THREAD, 4 * THREAD)
OWN = [read(4 * THREAD, count=4), store(4 * THREAD, count=4)]
OTHERS = [read(4 * (THREAD ^ 33), count=4), store(4 * THREAD, count=4)]


def test_a_thread_reads_its_own_behind_its_wait() -> None:
    found = execute(COPY, COMMIT, wait_copies(), *OWN, warps=2, size=256)
    np.testing.assert_array_equal(found, np.arange(256))


def test_others_behind_a_barrier() -> None:
    found = execute(COPY, COMMIT, wait_copies(), SYNC, *OTHERS, warps=2, size=256)
    np.testing.assert_array_equal(found.reshape(64, 4), np.arange(256).reshape(64, 4)[np.arange(64) ^ 33])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([COPY, COMMIT, *OWN], r"reads shared before its wait: `cp.async.* of warp \d is still under way"),
        ([COPY, COMMIT, SYNC, *OTHERS], r"reads shared before its wait: `cp.async"),
        ([COPY, COMMIT, wait_copies(1), *OWN], r"reads shared before its wait"),
        ([COPY, wait_copies(), *OWN], r"reads shared before its wait"),  # never committed
        (
            [COPY, COMMIT, wait_copies(), *OTHERS],
            r"races: reads what warp \d, lane \d+ wrote in shared by `cp|before its wait|holds nothing",
        ),
        (
            [COPY, COMMIT, SYNC, wait_copies(), *OTHERS],
            r"races: reads what warp \d|before its wait|holds nothing",
        ),
        ([load(0), COPY, COMMIT, write(4 * THREAD)], r"overwrites shared before its wait: `cp.async"),
        ([COPY, COPY], r"overwrites shared before its wait"),
        ([copy_async(0, 4 * LANE)], r"two threads write one element"),
        ([load(THREAD), write(THREAD), COPY], r"races: overwrites what warp \d, lane 1 wrote"),
        (
            [copy_async(4 * THREAD, 4 * THREAD + 800)],
            r"touches elements 1024 to 1027 of source, which has 1024.*lane 24",
        ),
        ([copy_async(4 * THREAD, 4 * THREAD + 1)], r"an address in source is no multiple of 16 bytes"),
        ([copy_async(2 * THREAD, 4 * THREAD)], r"an address in shared is no multiple of 16 bytes"),
        ([copy_async(4 * THREAD + 400, 0)], r"touches elements 5\d\d to 5\d\d of shared, which has 512"),
        ([copy_async(4 * THREAD, 0, 17)], r"copies 17 of 16 bytes"),
        ([copy_async(4 * THREAD, 0, LANE - 1)], r"copies -1 of 16 bytes"),
        ([COPY, COMMIT, wait_copies(LANE // 31)], r"pending differs from that of lane 0"),
    ],
)
def test_misuse(body: list[Any], said: str) -> None:
    refuse(said, *body, warps=2)


@given(st.integers(0, 16), st.sampled_from([4, 8, 16]), st.booleans())
def test_what_is_not_copied_is_zero_and_not_touched(n: int, size: int, past: bool) -> None:
    """The first n bytes come from memory; with n = 0 the address may lie anywhere."""
    n = min(n // 4 * 4, size)
    words = size // 4
    at = 4000 if past and n == 0 else words * LANE
    body = [
        copy_async(words * LANE, at, n, size),
        COMMIT,
        wait_copies(),
        read(words * LANE, count=words),
        store(words * LANE, count=words),
    ]
    found = execute(*body, source=np.arange(1, 129, dtype=np.uint32), size=32 * words)
    wanted = np.arange(1, 32 * words + 1).reshape(32, words).copy()
    wanted[:, n // 4 :] = 0
    np.testing.assert_array_equal(found, wanted.ravel())


def test_lanes_differ_in_what_they_copy() -> None:
    """Zeros beyond the rim: n is 0 where the row lies outside, 4 or 8 at the rim."""
    left = 203
    n = Var("n", 0, 16)
    body = [
        Set(n, 0),
        If(
            Compare(4 * LANE + 4, "<=", left - 100),
            (Set(n, 16),),
            (If(Compare(4 * LANE, "<", left - 100), (Set(n, 4 * (left - 100) - 16 * Var("lane", 0, 25)),)),),
        ),
        copy_async(4 * LANE, 4 * LANE + 100, n),
        COMMIT,
        wait_copies(),
        *OWN,
    ]
    found = execute(*body, source=np.arange(left, dtype=np.uint32), size=128)
    wanted = np.where(np.arange(128) < left - 100, np.arange(128) + 100, 0)
    np.testing.assert_array_equal(found, wanted)
    missing = np.arange(left) < left - 1
    refuse(
        "reads an element of source that holds nothing, number 202",
        *body,
        source=np.arange(left, dtype=np.uint32),
        written={"source": missing},
    )


@given(st.integers(1, 4), st.integers(1, 9), st.booleans())
def test_a_pipeline_of_any_depth(stages: int, tiles: int, late: bool) -> None:
    """`stages` copies under way, each tile added to memory in turn; a wait that leaves one more is an error."""
    slot = Var("slot", 0, stages - 1)

    def begin(tile: Any) -> list[Any]:
        return [
            on(
                Compare(tile, "<", tiles), copy_async(128 * (tile % stages) + 4 * LANE, 128 * tile + 4 * LANE)
            ),
            COMMIT,
        ]

    body: list[Any] = [x for s in range(stages - 1) for x in begin(s)]
    late = late and stages < 4  # one more would be no stage that is read
    body += repeat(
        tiles,
        *begin(TURN + stages - 1),
        wait_copies(stages - 1 + late),
        WARP_SYNC,
        Set(slot, TURN % stages),
        read(128 * slot + 4 * (LANE ^ 5), count=4),
        store(128 * TURN + 4 * LANE, count=4),
        WARP_SYNC,
    )
    source = np.arange(128 * tiles, dtype=np.uint32)
    if late:
        refuse("reads shared before its wait", *body, source=source, size=128 * tiles, schedules=(0, -1, 1))
        return
    found = execute(*body, source=source, size=128 * tiles, schedules=(0, -1, 1))
    wanted = source.reshape(tiles, 32, 4)[:, np.arange(32) ^ 5].ravel()
    np.testing.assert_array_equal(found, wanted)


def test_groups_are_each_lanes_own() -> None:
    """Lane 3 commits once more than the others, so that its first copy is done when theirs are not."""
    first, second = copy_async(4 * LANE, 4 * LANE), copy_async(128 + 4 * LANE, 128 + 4 * LANE)
    body = [first, COMMIT, second, COMMIT, by_lane(3, COMMIT), wait_copies(2)]
    at = by_lane(3, read(4 * LANE, count=4), store(4 * LANE, count=4))
    np.testing.assert_array_equal(execute(*body, at)[12:16], np.arange(12, 16))
    refuse("before its wait", *body, by_lane(4, read(4 * LANE)))
    refuse("before its wait", *body, by_lane(3, read(128 + 4 * LANE)))
    part = [
        on(Compare(LANE, "<", 8), first, COMMIT),
        second,
        COMMIT,
        on(Compare(LANE, "<", 16), wait_copies(1)),
    ]
    execute(*part, on(Compare(LANE, "<", 8), read(4 * LANE)))
    refuse("before its wait", *part, on(Compare(LANE, "<", 16), read(128 + 4 * LANE)))
    execute(*part, wait_copies(), read(128 + 4 * LANE))
