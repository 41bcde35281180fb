"""Asynchronous copies by threads that arrive at mbarriers, on the machine of CTAs: what they release, and what not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.backends.cta_machine import EXAMPLES
from lowering.control import Compare, TensorMap
from lowering.registers import LANE

from .cta_cases import (
    BULK_GROUP,
    COMMIT,
    FENCE,
    RESULT,
    SYNC,
    THREAD,
    TURN,
    WARP,
    WARP_SYNC,
    arrive,
    arrive_behind,
    arrive_first_behind,
    arrive_with_copies,
    bulk_store,
    by_lane,
    by_thread,
    by_warp,
    copy_async,
    empty,
    execute,
    full,
    init,
    load,
    on,
    read,
    refuse,
    repeat,
    spin,
    start,
    store,
    wait,
    wait_copies,
    wait_stores,
    write,
)

COPY = copy_async(4 * THREAD, 4 * THREAD)
ARRIVE = arrive_with_copies(full())
WAIT = spin(full(), 0)
OWN = [read(4 * THREAD, count=4), store(4 * THREAD, count=4)]
OTHERS = [read(4 * (THREAD ^ 33), count=4), store(4 * THREAD, count=4)]
STARTED = start((full(), 64), (full(1), 64), (empty(), 64), fence=False)
BEFORE = "reads shared before its wait"


@pytest.mark.parametrize("waiting", [spin, wait])
def test_who_waits_may_read_what_all_copied(waiting: Any) -> None:
    found = execute(*STARTED, COPY, ARRIVE, waiting(full(), 0), *OTHERS, warps=2, size=256)
    np.testing.assert_array_equal(found.reshape(64, 4), np.arange(256).reshape(64, 4)[np.arange(64) ^ 33])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            [COPY, ARRIVE, *OWN],
            f"{BEFORE}: `cp.async.*|{BEFORE}: the thread has waited for `cp.async.* neither at",
        ),
        ([COPY, ARRIVE, *OTHERS], f"{BEFORE}|holds nothing"),
        ([COPY, ARRIVE, SYNC, *OTHERS], BEFORE),
        ([COPY, ARRIVE, by_lane(0, WAIT), *OWN], rf"{BEFORE}.*warp \d, lane 1"),
        ([COPY, ARRIVE, by_warp(0, WAIT), by_warp(1, *OWN)], BEFORE),
        ([COPY, ARRIVE, spin(full(), 1), *OWN], BEFORE),  # the parity of the phase before passes at once
        ([ARRIVE, COPY, WAIT, *OWN], BEFORE),
        ([COPY, ARRIVE, by_lane(5, COMMIT), *OWN], BEFORE),
        ([COPY, ARRIVE, wait_copies(), *OWN], BEFORE),  # in no group
        ([COPY, ARRIVE, COMMIT, wait_copies(), *OTHERS], rf"{BEFORE}|races|holds nothing"),
        (
            [COPY, WAIT, *OWN],
            r"no warp can go on\n  warps 0, 1: .*phase 0 of full\[0\].*lacks 64 of 64 arrivals",
        ),
        (
            [COPY, on(Compare(LANE, "<", 31), ARRIVE), WAIT, *OWN],
            r"no warp can go on\n.*lacks 2 of 64 arrivals",
        ),
        ([COPY, ARRIVE, COPY], r"overwrites shared before its wait: "),
        ([load(0), COPY, ARRIVE, write(4 * THREAD)], r"overwrites shared before its wait: "),
        (
            [load(0), COPY, ARRIVE, WAIT, write(4 * (THREAD ^ 1)), ARRIVE, spin(full(), 1), *OWN],
            "races: reads",
        ),
        ([arrive_with_copies(empty(1)), spin(empty(1), 0)], r"empty\[1\] has not been initialized"),
    ],
)
def test_misuse(body: list[Any], said: str) -> None:
    refuse(said, *STARTED, *body, warps=2)


def test_too_many_arrivals() -> None:
    """Where the lanes' copies land together; apart, what is too much counts for the next phase, and data is missed."""
    few = start((full(), 31), fence=False)
    said = r"cp\.async\.mbarrier.*: 32 arrivals at full\[0\], phase 0 lacks 31 of 31"
    refuse(said, *few, COPY, ARRIVE, WAIT, schedules=(0, -1, -2))
    refuse(said, *few, COPY, ARRIVE, schedules=(0, -1, -2))  # at the end of the CTA
    refuse(said, *few, ARRIVE, schedules=(0, -1, -2))
    refuse(rf"{BEFORE}|no warp can go on|arrivals at", *few, COPY, ARRIVE, WAIT, *OWN)
    mixed = [COPY, by_warp(0, arrive(full())), ARRIVE, WAIT, *OTHERS]
    refuse(rf"{BEFORE}|holds nothing", *STARTED, *mixed, warps=2)


def test_the_initialization_must_be_known() -> None:
    refuse("no barrier lies between the init", by_thread(init(full(), 32)), COPY, ARRIVE, WAIT)


def test_each_lane_arrives_once_with_or_without_copies() -> None:
    """Lanes with no copy under way arrive too; the phase stands for those that have one."""
    some = on(Compare(LANE % 3, "==", 0), copy_async(4 * LANE, 4 * LANE))
    mine = on(Compare(LANE % 3, "==", 0), read(4 * LANE, count=4), store(4 * LANE, count=4))
    found = execute(*start((full(), 32), fence=False), some, ARRIVE, WAIT, mine, size=128)
    there = np.arange(128) // 4 % 3 == 0
    np.testing.assert_array_equal(found[there], np.arange(128)[there])
    nobody = execute(*start((full(), 32), fence=False), ARRIVE, WAIT, load(LANE), store(LANE), size=32)
    np.testing.assert_array_equal(nobody, np.arange(32))


def test_an_arrival_releases_all_copies_before_it() -> None:
    """Those that earlier arrivals stand for too, and none that came later."""
    first, second = COPY, copy_async(256 + 4 * THREAD, 256 + 4 * THREAD)
    both = [read(256 + 4 * (THREAD ^ 33), count=4), store(256 + 4 * THREAD, count=4)]
    steps = [first, ARRIVE, second, arrive_with_copies(full(1))]
    found = execute(*STARTED, *steps, spin(full(1), 0), *OTHERS, *both, warps=2, size=512)
    wanted = np.arange(512).reshape(2, 64, 4)[:, np.arange(64) ^ 33]
    np.testing.assert_array_equal(found, wanted.ravel())
    execute(*STARTED, *steps, WAIT, *OTHERS, warps=2, size=512)
    refuse(BEFORE, *STARTED, *steps, WAIT, *both, warps=2)


def test_an_arrival_with_copies_releases_nothing_else() -> None:
    """Not what the thread stored itself, nor what it read."""
    handed = [
        load(THREAD),
        write(THREAD),
        arrive_with_copies(full()),
        WAIT,
        read(THREAD ^ 32, 1),
        store(THREAD, 1),
    ]
    refuse("races: reads what warp", *STARTED, *handed, warps=2)
    # Warp 1's words are copied by warp 0, read, and overwritten by warp 0 behind such an arrival.
    again = [
        *start((full(), 32), (empty(), 32), fence=False),
        by_warp(0, COPY, ARRIVE, WAIT, spin(empty(), 0), copy_async(4 * LANE, 128), ARRIVE),
        by_warp(1, WAIT, read(4 * LANE, count=4), store(4 * LANE, count=4), arrive_with_copies(empty())),
    ]
    refuse("overwrites shared while|races: overwrites what warp 1", *again, warps=2)


def test_what_was_waited_for_as_a_group_is_known_too() -> None:
    """To the thread itself, and behind a barrier to others; a group that may be under way is not."""
    second = copy_async(256 + 4 * THREAD, 256 + 4 * THREAD)
    body = [*STARTED, COPY, COMMIT, second, COMMIT, ARRIVE]
    np.testing.assert_array_equal(execute(*body, wait_copies(1), *OWN, warps=2, size=256), np.arange(256))
    execute(*body, wait_copies(1), SYNC, *OTHERS, warps=2, size=256)
    execute(*body, wait_copies(), arrive(empty()), spin(empty(), 0), *OTHERS, warps=2, size=256)
    last = [read(256 + 4 * THREAD, count=4), store(4 * THREAD, count=4)]
    execute(*body, wait_copies(), *last, warps=2, size=256)
    execute(*body, wait_copies(1), WAIT, *last, *OTHERS, warps=2, size=256)
    refuse(BEFORE, *body, wait_copies(1), *last, warps=2)
    refuse(BEFORE, *body, wait_copies(1), SYNC, *last, warps=2)


def test_others_learn_by_a_barrier_behind_the_wait() -> None:
    body = [*STARTED, COPY, ARRIVE, by_warp(0, WAIT), SYNC, *OTHERS]
    execute(*body, warps=2, size=256)


def test_the_copy_engine_needs_a_fence() -> None:
    out = TensorMap("out", RESULT, (1024,), (), (128,))
    stored = [by_lane(0, bulk_store(out, (0,), 0), BULK_GROUP, wait_stores())]
    begin = start((full(), 32))
    fenced = [*begin, COPY, ARRIVE, WAIT, FENCE, WARP_SYNC, *stored]
    np.testing.assert_array_equal(execute(*fenced, maps=(out,))[:128], np.arange(128))
    refuse("copy engine may not see", *begin, COPY, ARRIVE, WAIT, WARP_SYNC, *stored, maps=(out,))
    refuse("before its wait|may not see", *begin, COPY, ARRIVE, FENCE, WAIT, WARP_SYNC, *stored, maps=(out,))


def pipeline(turns: int, stages: int, release: Any, copied_by: int = 2, acquire: bool = True) -> list[Any]:
    """Two warps copy `stages - 1` turns ahead, read what both copied, and give the stage back."""
    ahead = TURN + stages - 1
    place = 128 * (ahead % stages)
    word = 2 * LANE + 64 * WARP

    def copies(turn: Any, at: Any) -> Any:
        return on(Compare(turn, "<", turns), copy_async(at + word, 128 * turn + word, 8, 8))

    slot = TURN % stages
    barriers = [(full(i), 32 * copied_by) for i in range(stages)] + [(empty(i), 2) for i in range(stages)]
    first = [x for s in range(stages - 1) for x in (copies(s, 128 * s), arrive_with_copies(full(s)))]
    return [
        *start(*barriers, fence=False),
        *first,
        *repeat(
            turns,
            spin(full(slot), TURN // stages % 2),
            read(128 * slot + 2 * LANE + 64 * (1 - WARP), count=2),
            store(128 * TURN + word, count=2),
            *([release(empty(slot))] if release else []),
            *([spin(empty(ahead % stages), 1 - ahead // stages % 2)] if acquire else []),
            copies(ahead, place),
            arrive_with_copies(full(ahead % stages)),
        ),
    ]


def behind(bar: Any) -> Any:
    return arrive_behind(bar, 0)


def first_behind(bar: Any) -> Any:
    return arrive_first_behind(bar, 0)


@given(st.integers(1, 7), st.integers(2, 4), st.sampled_from([behind, first_behind]))
def test_a_pipeline_of_any_depth(turns: int, stages: int, release: Any) -> None:
    source = np.arange(128 * turns, dtype=np.uint32)
    body = pipeline(turns, stages, release)
    found = execute(*body, warps=2, source=source, size=128 * turns, schedules=(*EXAMPLES, 3))
    np.testing.assert_array_equal(found, source.reshape(turns, 2, 64)[:, ::-1].ravel())


def test_a_stage_that_nobody_gave_back() -> None:
    lost = r"overwrites shared while warp|races: overwrites what warp|before its wait|arrivals at full"
    refuse(lost, *pipeline(6, 3, behind, acquire=False), warps=2, size=768)
    refuse(r"no warp can go on", *pipeline(6, 3, None), warps=2, size=768)
    refuse(
        r"arrivals at full|before its wait|holds nothing|no warp can go on",
        *pipeline(6, 3, behind, copied_by=1),
        warps=2,
        size=768,
    )
    refuse(r"no warp can go on", *pipeline(6, 3, behind, copied_by=3), warps=2, size=768)
