"""Who carries a gemm out: scopes, narrowed threads, launches that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from lowering import DispatchError, Tile, gemm, lower
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG
from tilelayout import laneid

from .gemm_answers import refusal

A = Tile("A", (16, 16), "float16", A_FRAG)
B = Tile("B", (16, 8), "float16", B_FRAG)
D = Tile("D", (16, 8), "float32", D_FRAG)


# --- scopes and threads -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("active", "words"),
    [
        ({"laneid": (0, 16)}, "active lanes on laneid are [0, 16), all of [0, 32) are needed"),
        ({"laneid": (16, 32)}, "[16, 32)"),
        ({"laneid": 31}, "[0, 31)"),
        ({"laneid": range(8, 24)}, "[8, 24)"),
        ({"laneid": (0, 64)}, "[0, 64)"),
        ({"laneid": (0, 32), "warpid": (0, 1)}, "active axis warpid is not one of warp scope's"),
        ({"laneid": (0, 32), "cbx": (0, 1)}, "active axis cbx"),
        ({}, "active set does not mention laneid"),
    ],
)
def test_narrowed_lanes(active: dict, words: str) -> None:
    text = refusal(gemm(D, A, B, D), active=active)
    assert "full_active_lanes" in text
    assert words in text


def test_narrowed_warps() -> None:
    for scope, name in (("cta", "warpid"), ("warpgroup", "wid_in_wg")):
        text = refusal(gemm(D, A, B, D), scope, 128, active={"laneid": (0, 32), name: (0, 2)})
        assert f"active warps on {name} are [0, 2), all of [0, 4) are needed" in text
        assert f"does not mention {name}" in refusal(gemm(D, A, B, D), scope, 128, active={"laneid": (0, 32)})


@pytest.mark.parametrize(
    "active", [{"laneid": (0, 32)}, {"laneid": 32}, {"laneid": range(32)}, {laneid: [0, 32]}, None]
)
def test_the_full_set_is_not_narrowed(active: object) -> None:
    assert lower(gemm(D, A, B, D), target="sm_80", scope="warp", active=active).variant


@pytest.mark.parametrize("scope", ["thread", "cluster"])
def test_scopes_that_are_no_whole_warps(scope: str) -> None:
    assert f"{scope} scope: mma.sync is carried out by whole warps" in refusal(gemm(D, A, B, D), scope, 32)


# --- launch and targets -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "launch", [0, -32, 33, 1056, 2048, True, 32.0, "32", (16, 3), [], {}, (32, 0), (32, True)]
)
def test_launches_that_are_no_warps(launch: object) -> None:
    with pytest.raises(DispatchError, match="launch="):
        lower(gemm(D, A, B, D), target="sm_80", scope="warp", launch=launch)


def test_launches_and_scopes_that_do_not_go_together() -> None:
    with pytest.raises(DispatchError, match="cta scope needs launch="):
        lower(gemm(D, A, B, D), target="sm_80", scope="cta")
    with pytest.raises(DispatchError, match="warpgroup scope needs 128 threads, launch has 96"):
        lower(gemm(D, A, B, D), target="sm_80", scope="warpgroup", launch=96)
    for launch in (32, np.int32(32), (32, 1, 1), (8, 4), [4, 4, 2]):
        assert lower(gemm(D, A, B, D), target="sm_80", scope="cta", launch=launch).program.warps == 1


@pytest.mark.parametrize("scope", ["wrap", "", None, 5, ["warp"], {"warp"}])
def test_scopes_that_nobody_knows(scope: object) -> None:
    with pytest.raises(DispatchError, match="unknown scope") as error:
        lower(gemm(D, A, B, D), target="sm_80", scope=scope)  # type: ignore[arg-type]
    assert "did you mean 'warp'" in str(error.value) or "known: thread, warp" in str(error.value)


@pytest.mark.parametrize(
    "active",
    [
        [("laneid", 32)],
        {"lane": (0, 32)},
        {"laneid": "all"},
        {"laneid": (0, 16, 32)},
        {"laneid": (0.0, 32.0)},
        {"laneid": range(0, 32, 2)},
        {"laneid": (0, sympy.Symbol("n", integer=True, positive=True))},
        {5: (0, 32)},
    ],
)
def test_active_sets_that_cannot_be_read(active: object) -> None:
    with pytest.raises(DispatchError, match="active="):
        lower(gemm(D, A, B, D), target="sm_80", scope="warp", active=active)
