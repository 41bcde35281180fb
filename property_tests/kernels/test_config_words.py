"""What a configuration cannot be: nonsense, what a target lacks, for arrays that lie badly; and what works instead."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lowering.kernels import Config, gemm
from tilelayout import LayoutError, S, TileLayout

PLAIN: dict[str, Any] = {"tile": (64, 64, 32), "warps": (2, 2), "stages": 4, "feed": "tma"}


@pytest.mark.parametrize(
    ("field", "value"),
    [("fragments", 1.0), ("fragments", np.float32(2)), ("fragments", True), ("fragments", np.array([1, 2])),
     ("slots", 0.0), ("slots", False), ("slots", np.array([1, 2])), ("slots", -1), ("packed", np.array("A")),
     ("packed", ["A"]), ("packed", "BA"), ("packed", None),
     ("feed", np.array(["tma", "x"])), ("feed", ""), ("sender", None), ("sender", "copy engine"),
     ("spread", 1), ("spread", "yes"), ("stages", True), ("stages", np.array([3])), ("group", np.array(3.0)),
     ("stages", 64), ("tile", [64, 64, 32]), ("tile", (64, 64)), ("tile", (64, 64, 0)), ("warps", (2, 2.0))],
)  # fmt: skip
def test_nonsense_is_refused_by_name(field: str, value: Any) -> None:
    words = {"slots": "slots", "fragments": "sets of fragments"}.get(field, field)
    with pytest.raises(LayoutError, match=f"Config: .*{words}.*") as caught:
        Config(**{**PLAIN, field: value})
    assert repr(value) in str(caught.value) or field == "slots"


def test_integers_of_other_libraries_are_integers() -> None:
    same = Config((np.int64(64), np.uint8(64), 32), (2, np.int32(2)), np.int64(4), "tma", slots=np.int8(0))  # type: ignore[arg-type]
    assert same == Config(**PLAIN)
    assert repr(same) == repr(Config(**PLAIN))
    assert hash(same) == hash(Config(**PLAIN))


def test_nobody_sends_what_is_not_collected() -> None:
    assert Config(**PLAIN, sender="threads") == Config(**PLAIN)


TARGETS = {
    "sm_80": ({"feed": "tma"}, "feed='tma' is of sm_90 and later", {"feed": "cp_async"}),
    "sm_75": ({"feed": "cp_async"}, "feed='cp_async' is of sm_80 and later", {"feed": "registers"}),
    "sm_86": (
        {"feed": "cp_async", "slots": 1, "stages": 2},
        "sender='bulk' is of sm_90 and later",
        {"sender": "threads"},
    ),
}


@pytest.mark.parametrize("name", TARGETS)
def test_what_a_target_lacks(name: str) -> None:
    changed, words, instead = TARGETS[name]
    config = Config(**{**PLAIN, **changed})
    with pytest.raises(LayoutError, match=re.escape(words)) as caught:
        gemm("float16", target=name, config=config).ptx  # noqa: B018
    ((field, value),) = instead.items()
    assert f"{field}={value!r}" in str(caught.value)
    assert ".entry gemm" in gemm("float16", target=name, config=replace(config, **instead)).ptx


def test_sums_beyond_a_threads_registers() -> None:
    config = Config((512, 512, 64), (2, 2), 2, "registers")
    with pytest.raises(
        LayoutError, match="512 x 512 take 2048 registers of each thread of 4 warps, 255 at most"
    ):
        gemm("float16", target="sm_80", config=config).ptx  # noqa: B018


def test_rows_that_are_too_short_for_the_copy_engine() -> None:
    config = Config((32, 8, 64), (2, 1), 2, "tma")
    with pytest.raises(LayoutError, match=re.escape("tile[1] = 8 are 8 bytes of B")) as caught:
        gemm("int8", target="sm_90", config=config).ptx  # noqa: B018
    assert "tile[1]=16" in str(caught.value)
    assert ".entry gemm" in gemm("int8", target="sm_90", config=replace(config, tile=(32, 16, 64))).ptx


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("feed", ["tma", "cp_async"])
@pytest.mark.parametrize("packed", ["", "A", "B"])
def test_the_letters_that_are_named_do(feed: Any, packed: str, order: str) -> None:
    """Of two factors that lie badly both have to be packed, whichever is already."""
    a, b = np.ones((40, 63), np.float16), np.ones((63, 37), np.float16)
    config = Config((64, 64, 32), (2, 2), 2, feed, packed=packed)
    with pytest.raises(LayoutError, match="is aligned to 2 bytes") as caught:
        gemm("float16", D=order, target="sm_90a", config=config).simulate(a, b)
    (letters,) = re.findall(r"packed='(\w*)'", str(caught.value))
    for mine, yours in zip("AB", "BA", strict=True):
        assert (f"its {mine} is your {yours}" in str(caught.value)) == (order == "column" and mine in letters)
    found = gemm("float16", D=order, target="sm_90a", config=replace(config, packed=letters)).simulate(a, b)
    assert (found == 63).all()


@pytest.mark.parametrize("packed", ["A", "AB"])
def test_a_layout_has_no_rows_to_pack(packed: str) -> None:
    placed = TileLayout(S[(64, 64) : (65, 1)])
    config = Config((64, 32, 32), (2, 2), 2, "registers", packed=packed)
    with pytest.raises(LayoutError, match=r"A is placed by .*, and rows are packed") as caught:
        gemm("float16", A=placed, shape=(64, 32, 64), target="sm_90a", config=config).ptx  # noqa: B018
    (letters,) = re.findall(r"packed='(\w*)'", str(caught.value))
    done = gemm(
        "float16", A=placed, shape=(64, 32, 64), target="sm_90a", config=replace(config, packed=letters)
    )
    assert ".entry gemm" in done.ptx


def test_a_layout_has_no_leading_dimension_to_pad() -> None:
    placed = TileLayout(S[(64, 64) : (65, 1)])
    made = gemm(
        "float16",
        A=placed,
        shape=(64, 32, 64),
        target="sm_90a",
        config=Config((64, 32, 32), (2, 2), 3, "cp_async"),
    )
    words = r"A is aligned to 2 bytes, cp.async copies at least 4 \(remedy: feed='registers', or leave config= out\)"
    with pytest.raises(LayoutError, match=words):
        made.ptx  # noqa: B018


def test_registers_use_two_stages_whatever_is_said() -> None:
    two = Config((64, 64, 32), (2, 2), 2, "registers")
    texts = {
        gemm("float16", target="sm_80", config=replace(two, stages=n, unroll=u)).ptx
        for n, u in ((2, 1), (8, 1), (8, 4))
    }
    assert len(texts) == 1
