"""Layouts and iters are values: frozen, hashable, picklable, equal by structure."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import given

import tilelayout
from property_tests import strategies
from tilelayout import Iter, LayoutError, R, S, TileLayout, Undecided, laneid, warpid

LAYOUT = TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid)


# --- equal, hashed, copied --------------------------------------------------------------------------


@given(strategies.layouts())
def test_a_layout_of_the_same_parts_is_equal_and_hashes_alike(layout: TileLayout) -> None:
    again = TileLayout.from_iters(
        [(it.extent, it.stride, it.axis.name) for it in layout.shard],
        [Iter(*it) for it in layout.replica],
        {a.name: v for a, v in reversed(layout.offset.items())},
    )
    assert again == layout
    assert hash(again) == hash(layout)
    assert (again != layout) is False
    assert len({again, layout, TileLayout(layout)}) == 1


@given(strategies.layouts(), strategies.layouts())
def test_equality_is_that_of_the_parts(one: TileLayout, other: TileLayout) -> None:
    parts = [(x.shard, x.replica, dict(x.offset)) for x in (one, other)]
    assert (one == other) == (parts[0] == parts[1])


@given(strategies.layouts())
def test_copies_and_pickles_are_equal(layout: TileLayout) -> None:
    hash(layout)  # a hash that is kept must not be carried along
    for again in (copy.copy(layout), copy.deepcopy(layout), pickle.loads(pickle.dumps(layout))):
        assert again == layout
        assert hash(again) == hash(layout)
        assert all(it.axis is tilelayout.Axis(it.axis.name) for it in again.shard + again.replica)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(layout, protocol)) == layout
        assert [pickle.loads(pickle.dumps(it, protocol)) for it in layout.shard] == list(layout.shard)


def test_structure_is_compared_and_not_the_function() -> None:
    assert TileLayout(S[8, 4]) != TileLayout(S[32])
    assert TileLayout(S[1:5]) != TileLayout(S[1:6])
    assert TileLayout(S[8]) != TileLayout(S[8] + 1)
    assert TileLayout(S[8]) != TileLayout(S[8] + R[1:0])
    assert TileLayout(S[8 : 1 @ laneid]) != TileLayout(S[8 : 1 @ warpid])


@pytest.mark.parametrize("other", [None, 5, "S[8:1]", (8,), S[8], [], object()])
def test_a_layout_equals_nothing_else(other: object) -> None:
    assert TileLayout(S[8]) != other
    assert (TileLayout(S[8]) == other) is False


IN_ANOTHER_PROCESS = """
import pickle, sys
layouts = pickle.load(sys.stdin.buffer)
from tilelayout import R, S, TileLayout, laneid, warpid, axis_of_another
assert layouts[0] == TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid)
assert {layouts[0]: 1}[TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid)] == 1
assert axis_of_another.kind == "device"
sys.stdout.buffer.write(pickle.dumps(layouts))
"""


@pytest.mark.parametrize("seed", ["0", "77"])
def test_layouts_travel_between_processes(seed: str) -> None:
    """With another seed for the hashes of strings, and an axis that the other process doesn't have yet."""
    sympy = pytest.importorskip("sympy")
    new = tilelayout.register_axis("axis_of_another", "device")
    n = sympy.Symbol("n", integer=True, positive=True)
    layouts = [LAYOUT, TileLayout(S[(4, 2) : (1 @ new, -(2**70))] + 3 @ new), TileLayout(S[(n, 4) : (4, 1)])]
    hash(LAYOUT)
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS],
        input=pickle.dumps(layouts),
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert pickle.loads(done.stdout) == layouts


def test_errors_travel_too() -> None:
    for error in (LayoutError("op", "rule", "remedy"), Undecided("op", "rule"), LayoutError("op")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert (again.operation, again.rule, again.remedy) == (error.operation, error.rule, error.remedy)
    assert issubclass(Undecided, LayoutError)
    assert issubclass(LayoutError, ValueError)


# --- frozen -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["shard", "replica", "offset", "_offset", "_hash", "new"])
def test_a_layout_is_frozen(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(LAYOUT, name, ())
    with pytest.raises(AttributeError):
        delattr(LAYOUT, name)


def test_the_parts_of_a_layout_are_frozen() -> None:
    with pytest.raises(TypeError):
        LAYOUT.offset["m"] = 1
    with pytest.raises(TypeError):
        LAYOUT.shard[0] = Iter(1, 1)
    for name in ("extent", "stride", "axis", "new"):
        with pytest.raises(AttributeError):
            setattr(LAYOUT.shard[0], name, 1)
    assert type(LAYOUT.shard) is type(LAYOUT.replica) is tuple


def test_what_a_layout_was_made_of_can_change_without_it() -> None:
    offset = {"m": 1}
    iters = [(2, 1)]
    layout = TileLayout.from_iters(iters, iters, offset)
    offset["m"] = 2
    iters.append((3, 1))
    assert layout == TileLayout(S[2] + R[2:1] + 1)


def test_initialization_twice_changes_nothing() -> None:
    layout = TileLayout(S[8])
    with contextlib.suppress(TypeError, LayoutError):
        layout.__init__(S[4])  # type: ignore[misc]
    assert layout == TileLayout(S[8])
