"""Barriers that count arrivals and bytes, on the machine of CTAs: phases, releases, and what they do not order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering.control import Compare, If, Set
from lowering.registers import LANE
from tilelayout.expr import Var

from .cta_cases import (
    THREAD,
    TURN,
    WARP,
    WARP_SYNC,
    arrive,
    arrive_behind,
    arrive_first_behind,
    by_lane,
    by_thread,
    by_warp,
    empty,
    execute,
    expect,
    full,
    init,
    ldmatrix,
    load,
    named,
    on,
    read,
    refuse,
    repeat,
    start,
    store,
    wait,
    write,
)


def hand_over(turns: int, *release: Any, arrivals: int = 1, use: bool = True, after: Any = ()) -> list[Any]:
    """Warp 0 writes a word of each lane and arrives at `full`; warp 1 reads it and releases it."""
    at = 32 * TURN + LANE
    return [
        *start((full(), 32), (empty(), arrivals)),
        by_warp(
            0,
            *repeat(turns, wait(empty(), 1 - TURN % 2), load(at), write(LANE), arrive(full())),
        ),
        by_warp(
            1,
            *repeat(
                turns,
                wait(full(), TURN % 2),
                read(LANE ^ 1, 1),
                *([store(at, 1)] if use else []),
                *release,
                *after,
            ),
        ),
    ]


SWAPPED = np.arange(128) ^ 1


@pytest.mark.parametrize(
    ("release", "arrivals"),
    [
        ([arrive(empty())], 32),
        ([WARP_SYNC, by_lane(7, arrive(empty()))], 1),
        ([arrive_behind(empty(), 1)], 1),
        ([arrive_first_behind(empty(), 1)], 1),
        ([on(Compare(LANE, "<", 16), arrive(empty())), on(Compare(LANE, ">=", 16), arrive(empty()))], 32),
    ],
)
def test_words_are_handed_over_phase_after_phase(release: list[Any], arrivals: int) -> None:
    body = hand_over(4, *release, arrivals=arrivals)
    np.testing.assert_array_equal(execute(*body, warps=2, size=128), SWAPPED)


def test_an_arrival_of_one_lane_releases_that_lane_alone() -> None:
    body = hand_over(4, by_lane(7, arrive(empty())))
    refuse(r"races: overwrites what warp 1, lane \d+ read in shared by `ld\.shared", *body, warps=2)


def test_an_arrival_does_not_wait_for_loads() -> None:
    """Used behind the arrival, or behind one of another register: the stage is overwritten while it is read."""
    said = (
        r"overwrites shared while warp 1 may still read it: the result of `ld\.shared.* was not used before"
    )
    at = 32 * TURN + LANE
    refuse(said, *hand_over(4, arrive(empty()), arrivals=32, use=False, after=[store(at, 1)]), warps=2)
    refuse(
        said, *hand_over(4, WARP_SYNC, by_lane(0, arrive(empty())), use=False, after=[store(at, 1)]), warps=2
    )
    other = [load(0, 2), arrive_behind(empty(), 2)]
    refuse(said, *hand_over(4, *other, use=False, after=[store(at, 1)]), warps=2)
    execute(*hand_over(4, arrive_behind(empty(), 1), use=False, after=[store(at, 1)]), warps=2, size=128)
    # Another load into the same register waits for the first, as its use does.
    execute(
        *hand_over(4, read(LANE ^ 2, 1), store(at, 1), arrive(empty()), arrivals=32, use=False),
        warps=2,
        size=128,
    )


def test_a_stage_may_be_released_while_the_next_is_loaded() -> None:
    """Loads of other memory may be under way: stage s is released behind its use while stage s + 1 is being loaded."""
    at = 32 * TURN + LANE
    stage, place = TURN % 2, TURN % 2 * 32
    later = 32 * ((TURN + 1) % 2)
    body = [
        *start((full(0), 32), (full(1), 32), (empty(0), 1), (empty(1), 1)),
        by_warp(
            0,
            *repeat(
                5, wait(empty(stage), 1 - TURN // 2 % 2), load(at), write(place + LANE), arrive(full(stage))
            ),
        ),
        by_warp(
            1,
            wait(full(0), 0),
            read(LANE ^ 1, 1),
            *repeat(
                4,
                wait(full((TURN + 1) % 2), (TURN + 1) // 2 % 2),
                store(at, 1),
                read(later + (LANE ^ 1), 1),
                arrive_behind(empty(stage), 0),
            ),
        ),
    ]
    first = [load(0), *body]
    np.testing.assert_array_equal(execute(*first, warps=2, size=128), SWAPPED)


def test_collective_loads_belong_to_the_warp() -> None:
    """`ldmatrix` reads for all lanes: one lane's arrival does not release it, one behind a meeting does."""
    at = Compare(LANE, "==", 0)

    def body(*release: Any) -> list[Any]:
        return [
            *start((full(), 32), (empty(), 1)),
            by_warp(
                0,
                *repeat(
                    3,
                    wait(empty(), 1 - TURN % 2),
                    load(4 * LANE, count=4),
                    write(4 * LANE, count=4),
                    arrive(full()),
                ),
            ),
            by_warp(
                1,
                *repeat(
                    3, wait(full(), TURN % 2), ldmatrix(4 * LANE, 4), store(32 * TURN + LANE, 5), *release
                ),
            ),
        ]

    execute(*body(WARP_SYNC, on(at, arrive(empty()))), warps=2, size=96)
    execute(*body(arrive_behind(empty(), 4)), warps=2, size=96)
    refuse(
        r"races: overwrites what warp 1 read in shared by `ldmatrix", *body(on(at, arrive(empty()))), warps=2
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([arrive(full())], r"full\[0\] has not been initialized"),
        (
            [by_thread(init(full(), 64)), by_warp(1, arrive(full()))],
            r"full\[0\] has not been initialized|no barrier lies between the initialization of full\[0\] and this use",
        ),
        (
            [by_thread(init(full(), 64)), by_warp(0, arrive(full()))],
            r"no barrier lies between the init.*warp 0, lane 1",
        ),
        ([by_thread(init(full(), 1), init(full(), 1))], r"full\[0\] has been initialized before"),
        ([by_thread(init(full(), 0))], r"cannot wait for 0 arrivals"),
        ([by_thread(init(full(4), 1))], r"touches elements 4 to 4 of full, which has 4"),
        ([*start((full(), 31)), arrive(full())], r"32 arrivals at full\[0\], phase 0 lacks 31 of 31"),
        ([*start((full(), 64)), wait(full(), 2)], r"parity 2 is neither 0 nor 1"),
        (
            [*start((full(), 64)), wait(full(), LANE % 2)],
            r"parity differs from that of lane 0 \(warp \d, lane 1",
        ),
        (
            [*start((full(), 65)), arrive(full()), wait(full(), 0)],
            r"no warp can go on\n  warps 0, 1: .*phase 0 of full\[0\] \(parity 0\), which lacks 1 of 65 arrivals",
        ),
        (
            [*start((full(), 64)), by_thread(expect(full(), 64)), arrive(full())],
            r"32 arrivals at full\[0\], phase 0 lacks 31 of 64",
        ),
        ([*start((full(), 3)), arrive_behind(full(), 0)], r"reads r\[0\], which holds nothing"),
        ([*start((full(), 3)), load(0), arrive_behind(full(), 0, zero=1)], r"zero is not 0"),
        (
            [*start((full(), 1)), load(0), arrive_first_behind(full(), 0), wait(full(), 0)],
            r"1 arrivals at full\[0\]|no warp",
        ),
        (
            [*start((full(), 3)), load(0), by_lane(0, arrive_behind(full(), 0))],
            r"all lanes must execute it together",
        ),
        (
            [*start((full(), 3)), load(0), by_lane(0, arrive_first_behind(full(), 0))],
            r"all lanes must execute it together",
        ),
        (
            [*start((full(0), 3), (full(1), 3)), load(0), arrive_behind(full(LANE % 2), 0)],
            r"lanes name different barriers",
        ),
        (
            [*start((full(), 1)), load(0), store(0, 0, full().buffer)],
            r"buffer full holds mbarriers, and other instructions read or write",
        ),
    ],
)
def test_misuse(body: list[Any], said: str) -> None:
    refuse(said, *body, warps=2)


def test_lanes_may_arrive_at_several_barriers() -> None:
    body = [
        *start((full(0), 48), (full(1), 16)),
        load(THREAD),
        write(THREAD),
        by_warp(
            0,
            arrive(full(LANE // 16)),
            wait(full(0), 0),
            wait(full(1), 0),
            read(32 + LANE, 1),
            store(LANE, 1),
        ),
        by_warp(1, arrive(full(0))),
    ]
    np.testing.assert_array_equal(execute(*body, warps=2, size=32), 32 + np.arange(32))


def test_a_wrong_parity_passes_at_once_and_then_races() -> None:
    body = [
        *start((full(), 32)),
        by_warp(0, load(LANE), write(LANE), arrive(full())),
        by_warp(1, wait(full(), 1), read(LANE, 1), store(LANE, 1)),
    ]
    refuse(r"races|holds nothing|no warp can go on", *body, warps=2)


def test_a_phase_orders_only_what_was_before_its_arrivals() -> None:
    def body(*parts: Any) -> list[Any]:
        return [
            *start((full(), 32)),
            by_warp(0, load(LANE), *parts),
            by_warp(1, wait(full(), 0), read(LANE, 1), store(LANE, 1)),
        ]

    execute(*body(write(LANE), arrive(full())), warps=2, size=32)
    refuse(r"races|holds nothing", *body(arrive(full()), write(LANE)), warps=2)


def test_only_the_lanes_that_wait_know() -> None:
    body = [
        *start((full(), 32)),
        by_warp(0, load(LANE), write(LANE), arrive(full())),
        by_warp(1, by_lane(0, wait(full(), 0)), read(LANE, 1), store(LANE, 1)),
    ]
    refuse(r"races: reads what warp 0, lane 1 wrote.*warp 1, lane 1", *body, warps=2)
    met = [*body[:-1], by_warp(1, by_lane(0, wait(full(), 0)), WARP_SYNC, read(LANE, 1), store(LANE, 1))]
    execute(*met, warps=2, size=32)


def test_roles_of_many_warps() -> None:
    """One writing lane, three reading warps, three stages, eleven turns: as a kernel has it."""
    turns, stages = 11, 3
    slot, phase = Var("slot", 0, stages - 1), Var("parity", 0, 1)
    advance = [
        If(Compare(slot, "==", stages - 1), (Set(slot, 0), Set(phase, 1 - phase)), (Set(slot, slot + 1),))
    ]
    body = [
        *start(*[(full(i), 1) for i in range(stages)], *[(empty(i), 3) for i in range(stages)]),
        If(
            Compare(WARP, "==", 3),
            (
                by_lane(
                    0,
                    Set(slot, 0),
                    Set(phase, 1),
                    *repeat(
                        turns, wait(empty(slot), phase), load(TURN), write(slot), arrive(full(slot)), *advance
                    ),
                ),
            ),
            (
                Set(slot, 0),
                Set(phase, 0),
                *repeat(
                    turns,
                    wait(full(slot), phase),
                    read(slot, 1),
                    store(96 * TURN + THREAD, 1),
                    arrive_behind(empty(slot), 1),
                    *advance,
                ),
                named(1, 96),
            ),
        ),
    ]
    found = execute(*body, warps=4, size=96 * turns, schedules=(0, -1, -2, *range(1, 8)))
    np.testing.assert_array_equal(found, np.repeat(np.arange(turns), 96))
