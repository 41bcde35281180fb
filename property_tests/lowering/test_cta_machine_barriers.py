"""Barriers of warps on the machine of CTAs: who is ordered, who is not, and who waits in vain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering.control import Compare, If
from lowering.registers import LANE

from .cta_cases import (
    SYNC,
    THREAD,
    WARP,
    by_warp,
    execute,
    load,
    named,
    on,
    read,
    refuse,
    repeat,
    store,
    write,
)

OTHER = 32 * (WARP ^ 1) + LANE


def exchange(meet: Any) -> list[Any]:
    """Each warp reads what its neighbor wrote."""
    return [load(THREAD), write(THREAD), meet, read(OTHER, 1), store(THREAD, 1)]


def test_a_cta_barrier_orders_all_warps() -> None:
    body = repeat(3, *exchange(SYNC), SYNC)
    np.testing.assert_array_equal(execute(*body, warps=4, size=128), np.arange(128) ^ 32)


def test_a_loop_without_its_second_barrier_races() -> None:
    refuse(
        r"races: (overwrites what warp \d, lane \d+ read|reads what warp \d, lane \d+ wrote) in shared",
        *repeat(3, *exchange(SYNC)),
        warps=4,
    )


def test_named_barriers_order_who_meets_there() -> None:
    pair = 1 + WARP // 2
    body = repeat(3, *exchange(named(pair, 64)), named(pair, 64))
    np.testing.assert_array_equal(execute(*body, warps=4, size=128), np.arange(128) ^ 32)


def test_and_nobody_else() -> None:
    far = 32 * ((WARP + 2) % 4) + LANE
    body = [load(THREAD), write(THREAD), named(1 + WARP // 2, 64), read(far, 1), store(THREAD, 1)]
    refuse(r"races: reads what warp \d|which holds nothing", *body, warps=4)


def test_order_is_passed_on() -> None:
    """Warp 0 meets 1, then 1 meets 2: 2 knows what 0 wrote."""
    body = [
        by_warp(0, load(LANE), write(LANE), named(1, 64)),
        by_warp(1, named(1, 64), named(2, 64)),
        by_warp(2, named(2, 64), read(LANE, 1), store(LANE, 1)),
    ]
    np.testing.assert_array_equal(execute(*body, warps=3, size=32), np.arange(32))
    late = [
        by_warp(0, named(1, 64), load(LANE), write(LANE)),
        by_warp(1, named(1, 64), named(2, 64)),
        by_warp(2, named(2, 64), read(LANE, 1), store(LANE, 1)),
    ]
    refuse(r"races: (reads what warp 0|overwrites what warp 2)|which holds nothing", *late, warps=3)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            [If(Compare(WARP, "<", 3), (SYNC,))],
            r"CTA 0: no warp can go on\n  warps 0, 1, 2: bar.sync 0;: barrier 0: 4 warps must come, 3 have "
            r"\(warps 0, 1, 2\)\n  warps that have ended: 3",
        ),
        (
            [If(Compare(WARP, "<", 2), (named(1, 128),), (SYNC,))],
            r"warps 0, 1: bar.sync 1, 128;: barrier 1: 4 warps must come, 2 have.*\n.*warps 2, 3: bar.sync 0;",
        ),
        ([named(1 + WARP // 3, 128)], r"no warp can go on"),
        (
            [named(1, 64 + 64 * (WARP // 2))],
            r"wants 128 threads, warp \d is.* wants 64|wants 64 threads|no warp can go on",
        ),
        ([named(0, 128)], "there is no named barrier 0"),
        ([named(16, 128)], "there is no named barrier 16"),
        ([named(1, 100)], "100 threads: a multiple of 32"),
        ([named(1, 256)], "256 threads: a multiple of 32 up to the CTA's 128"),
        ([named(1 + LANE // 16, 128)], r"id differs from that of lane 0 \(warp \d, lane 16"),
        ([on(Compare(LANE, "<", 31), named(1, 128))], "all lanes must execute it together, only 31 of 32"),
    ],
)
def test_misuse(body: list[Any], said: str) -> None:
    refuse(said, *body, warps=4)
