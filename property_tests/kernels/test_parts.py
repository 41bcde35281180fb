"""Parts of K: as many as were asked for, and no more than have a stage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.kernels import Config, gemm
from lowering.kernels.gemm import simulate as room
from lowering.kernels.gemm.chain import PARTS, spaces
from lowering.kernels.gemm.config import FEEDS, MOST, Feed
from lowering.kernels.gemm.numbers import Extents, k_tiles, numbers, parts_of
from lowering.kernels.gemm.traffic import traffic

CUT = Config((32, 32, 32), (1, 1), 2, "cp_async")
RNG = np.random.default_rng(7)


def extents(k: int, batches: int = 1) -> Extents:
    return Extents(40, 48, k, batches, {"A": k, "B": k, "D": 48}, {"A": 0, "B": 0, "D": 0})


@given(st.integers(0, 3000), st.integers(1, MOST["splits"]), st.sampled_from([1, 2, 3, 5]))
def test_every_part_has_a_stage_and_every_stage_a_part(k: int, splits: int, unroll: int) -> None:
    config = replace(CUT, stages=2 * unroll, unroll=unroll, splits=splits)
    stages, each = -(-k // config.tile[2]), k_tiles(config, extents(k))
    parts = parts_of(config, extents(k))
    begins = [each * part for part in range(parts)]
    assert 1 <= parts <= splits
    assert all(begin < stages for begin in begins) or (stages, parts) == (0, 1)
    assert begins[-1] + each >= stages


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize(("k", "parts"), [(16, 1), (64, 2), (136, 5), (320, 5)])
def test_more_parts_than_stages(feed: Feed, k: int, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that have nothing to add up are not carried out, and the result is right, with a bias, a C and batches."""
    launched: list[int] = []
    carry_out = room._launched

    def counted(built: Any, values: Any, *rest: Any, **how: Any) -> Any:
        launched.append(values["tiles"])
        return carry_out(built, values, *rest, **how)

    monkeypatch.setattr(room, "_launched", counted)
    config = replace(CUT, feed=feed, splits=MOST["splits"] if k < 300 else 6)
    made = gemm("float16", B="column", C="row", bias="row", batched=True, target="sm_90a", config=config)
    a, bt = (RNG.integers(-3, 4, (2, n, k)).astype(np.float16) for n in (40, 48))
    c, bias = RNG.integers(-9, 9, (2, 40, 48)).astype(np.float16), RNG.integers(-9, 9, 48).astype(np.float16)
    b = bt.swapaxes(-1, -2)
    found = made.simulate(a, b, C=c, bias=bias, beta=2.0)
    np.testing.assert_array_equal(found.astype(float), a.astype(float) @ b + 2.0 * c + bias)
    assert launched[0] == 2 * 2 * 2 * parts


def test_one_text_for_any_number_of_parts() -> None:
    """How many there are is a number of the launch, so that no extents ask for machine code of their own."""
    made = [gemm("float16", target="sm_80", config=replace(CUT, splits=n)).best for n in (2, 5, 64)]
    assert len({x.ptx for x in made}) == 1
    assert len({x.second.ptx for x in made if x.second is not None}) == 1


def test_nothing_is_kept_or_moved_for_parts_without_a_stage() -> None:
    problem = gemm("float16", target="sm_80", config=CUT).problem
    some, many = (replace(CUT, splits=n) for n in (4, 60))
    found = extents(100)
    assert traffic(problem, some, found) == traffic(problem, many, found)
    assert numbers(problem, some, found) == numbers(problem, many, found)
    built = gemm("float16", target="sm_80", config=many).best
    assert spaces(built, found)[PARTS].elements == 4 * 40 * 48


def test_explain_counts_the_parts_that_there_are() -> None:
    made = gemm("float16", target="sm_80", config=replace(CUT, splits=16))
    text = made.explain(64, 64, 96)
    assert "2 x 2 x 3 parts of K = 12, each of 1 stages" in text
    assert "parts of K      3: no more of 16 have a stage" in text
    assert "adds up the 3 parts of K" in text
    assert "no more of" not in made.explain(64, 64, 4096)
