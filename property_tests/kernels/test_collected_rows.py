"""Rows of the result through shared memory: every number of slots and of blocks, tile after tile, and every sender."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering.backends.cta_machine import EXAMPLES
from lowering.kernels import Config, gemm
from lowering.kernels.gemm.config import FEEDS, MOST


def right(config: Config, m: int, n: int, k: int, target: str = "sm_90a", **more: Any) -> None:
    """Small integers, whose sums are exact."""
    rng = np.random.default_rng(3)
    a = rng.integers(-3, 4, (m, k)).astype(np.float16)
    b = np.asfortranarray(rng.integers(-3, 4, (k, n)).astype(np.float16))
    kernel = gemm("float16", B="column", target=target, config=config)
    np.testing.assert_array_equal(kernel.simulate(a, b, **more).astype(np.float64), a.astype(np.float64) @ b)


@pytest.mark.parametrize("slots", [1, 2, 3, 4])
@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("sender", ["threads", "bulk"])
def test_a_slot_is_filled_when_it_has_been_read(sender: Any, blocks: int, slots: int) -> None:
    """A CTA takes several tiles, so that the last block of one comes before the first of the next."""
    config = Config((16 * blocks, 32, 32), (1, 1), 2, "tma", slots=slots, sender=sender)
    right(config, 16 * blocks * 4 + 7, 64, 32, schedule=EXAMPLES[2])


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("splits", [1, 2])
def test_ctas_that_begin_at_different_places_see_all_of_k(feed: Any, splits: int) -> None:
    right(Config((16, 16, 32), (1, 1), 2, feed, splits=splits, spread=True), 40, 130, 296)
    right(Config((16, 16, 32), (1, 1), 2, feed, splits=splits, spread=True), 40, 130, 0)


@pytest.mark.parametrize("feed", ["tma", "cp_async"])
def test_as_many_stages_as_there_may_be(feed: Any) -> None:
    right(Config((16, 16, 16), (1, 1), MOST["stages"], feed, fragments=1), 20, 24, 1200)
