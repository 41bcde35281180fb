"""What a configuration prints is read again, and nothing else is."""

from __future__ import annotations

import doctest
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lowering.kernels import Config
from lowering.kernels.gemm import config as room
from lowering.kernels.gemm.config import FEEDS, PACKED, SENDERS
from tilelayout import LayoutError

SIDES = st.integers(1, 512)
FEW = st.integers(1, 4)


@st.composite
def configs(draw: Any) -> Config:
    unroll = draw(FEW)
    given: dict[str, Any] = {
        "tile": (draw(SIDES), draw(SIDES), draw(SIDES)),
        "warps": (draw(FEW), draw(FEW)),
        "stages": unroll * draw(st.integers(2, 9)),
        "feed": draw(st.sampled_from(FEEDS)),
        "unroll": unroll,
        "group": draw(st.sampled_from((1, 8, 16, 32))),
        "splits": draw(FEW),
        "resident": draw(FEW),
        "slots": draw(st.integers(0, 3)),
        "fragments": draw(st.sampled_from((1, 2))),
        "sender": draw(st.sampled_from(SENDERS)),
        "spread": draw(st.booleans()),
        "packed": draw(st.sampled_from(PACKED)),
        "beside": draw(st.booleans()),
    }
    assert set(given) == {f.name for f in fields(Config)}
    assume(given["slots"] or given["sender"] == "bulk")  # without slots nobody sends
    return Config(**given)


@given(configs())
def test_a_configuration_reads_what_it_prints(config: Config) -> None:
    assert Config.parse(str(config)) == config


@given(configs(), configs())
def test_what_prints_alike_is_the_same(a: Config, b: Config) -> None:
    assert (str(a) == str(b)) == (a == b)


@pytest.mark.parametrize(
    "text",
    ["", "64x64x32", "64x64x32_w2x2_s3_tma", "64x64x32_w2x2_s3_tma_u1_g16_", "64x64x32_w2x2_s3_tma_u1_g16_pBA",
     "064x64x32_w2x2_s3_tma_u1_g16", "64x64x32_w2x2_s03_tma_u1_g16", "64x64x32_w2x2_s3_tma_u1_g16_k1",
     "64x64x32_w2x2_s3_tma_u1_g16_r1", "64x64x32_w2x2_s3_tma_u1_g16_o0", "64x64x32_w2x2_s3_tma_u1_g16_o0t",
     "64x64x32_w2x2_s3_tma_u1_g16_f2", "64x64x32_w2x2_s3_tma_u1_g16_spread_r2", "64x64x32_w2x2_s3_wgmma_u1_g16", 7,
     None],
)  # fmt: skip
def test_other_texts_are_refused(text: Any) -> None:
    with pytest.raises(LayoutError, match=r"Config\.parse: .*as a configuration prints itself"):
        Config.parse(text)


def test_texts_of_what_there_cannot_be() -> None:
    with pytest.raises(LayoutError, match="1 stages"):
        Config.parse("64x64x32_w2x2_s1_tma_u1_g16")


def test_the_example() -> None:
    failed, tried = doctest.testmod(room)
    assert tried
    assert not failed
