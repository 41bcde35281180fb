"""Where a call is lowered for: targets, scopes, launches, active threads."""

from __future__ import annotations

import numpy as np
import pytest

from lowering.scope import context
from lowering.target import TARGETS, Target, target
from tilelayout import laneid, warpid, wid_in_wg


def test_the_targets_that_issue_one_names() -> None:
    for name in ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120a"):
        found = target(name)
        assert (found.name, str(found)) == (name, name)
        assert target(found) is found
        assert found.compute_capability == divmod(int(name[3:].rstrip("a")), 10)


def test_targets_are_ordered_and_carry_their_ptx() -> None:
    assert [t.name for t in sorted(TARGETS.values())] == list(TARGETS)
    # PTX ISA, release notes: the version that introduced each target.
    assert {
        n: TARGETS[n].ptx
        for n in (
            "sm_75",
            "sm_80",
            "sm_86",
            "sm_88",
            "sm_89",
            "sm_90",
            "sm_90a",
            "sm_100a",
            "sm_100f",
            "sm_120a",
        )
    } == {
        "sm_75": (6, 3),
        "sm_80": (7, 0),
        "sm_86": (7, 1),
        "sm_88": (9, 0),
        "sm_89": (7, 8),
        "sm_90": (7, 8),
        "sm_90a": (8, 0),
        "sm_100a": (8, 6),
        "sm_100f": (8, 8),
        "sm_120a": (8, 7),
    }


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("sm_99", ["sm_90a", "sm_100"]),
        ("sm_85", ["sm_80", "sm_86"]),
        ("sm_70", ["sm_75"]),
        ("sm_200", ["sm_121f"]),
        ("sm_101f", ["sm_100f", "sm_103"]),
        ("sm_88a", ["sm_88"]),
        ("sm_90b", ["sm_90a"]),
        ("sm_80a", ["sm_80"]),
        ("SM_80", ["sm_80"]),
        ("sm80", ["sm_80"]),
        ("compute_89", ["sm_89"]),
        ("90a", ["sm_90a"]),
        (80, ["sm_80"]),
        ("volta", list(TARGETS)),
        (None, list(TARGETS)),
        ("", list(TARGETS)),
        (["sm_80"], ["sm_80"]),
    ],
)
def test_an_unknown_target_names_the_nearest(name: object, near: list[str]) -> None:
    with pytest.raises(ValueError, match="unknown target") as error:
        target(name)
    head, _, known = str(error.value).partition("(known: ")
    assert repr(name) in head
    for n in near:
        assert n in (head if near != list(TARGETS) else known)
    assert all(n in known for n in TARGETS)


def test_contexts_know_their_warps() -> None:
    sm = target("sm_80")
    assert (context(sm, "warp").warps, context(sm, "warp").warp_axis) == (1, None)
    assert (context(sm, "warpgroup").warps, context(sm, "warpgroup").warp_axis) == (4, wid_in_wg)
    cta = context(sm, "cta", np.int64(256))
    assert (cta.warps, cta.warp_axis, cta.launch) == (8, warpid, 256)
    assert cta.full == cta.active == {laneid: (0, 32), warpid: (0, 8)}
    assert context(sm, "thread").full == {}
    assert context(sm, "cta", (32, 4, 2)).warps == 8


def test_active_sets_in_their_spellings() -> None:
    sm = target("sm_80")
    for spelling in (16, (0, 16), [0, 16], range(16), np.int32(16)):
        assert context(sm, "warp", active={"laneid": spelling}).active == {laneid: (0, 16)}
    assert context(sm, "warp", active={laneid: range(8, 16)}).active == {laneid: (8, 16)}


def test_a_target_is_a_value() -> None:
    assert Target(80, "", (7, 0)) == target("sm_80")
    assert len({target("sm_90"), target("sm_90a"), Target(90, "", (7, 8))}) == 2
