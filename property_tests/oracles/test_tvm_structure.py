"""group_many, direct_sum, broadcast and the four recognizers put to TVM TIRx.

As in test_tvm_layouts: where the two disagree the model decides, by brute force, and it must decide for us.

What is known of TVM 0.27 (positive strides, no replica, no offset):
  - group_many and the recognizers work on the iters as they are written, not on the fused ones, and refuse shapes
    that need the fused form;
  - its recognizers of tilings and sums answer None without a reason.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from random import Random
from typing import Any

import pytest

from property_tests.algebra import reference
from property_tests.oracles import sampling
from property_tests.oracles.test_tvm_layouts import compare
from property_tests.oracles.tvm_client import Tvm, as_data, as_layout
from tilelayout import TileLayout

pytestmark = pytest.mark.slow

CASES = 2000


def small(rng: Random) -> TileLayout:
    while True:
        found = sampling.layout(rng, axes=("m", "m", "laneid"))
        if found.size() <= 16:
            return found


def some_shape(rng: Random, layout: TileLayout, rank: int) -> list[int]:
    """A shape of that rank which the iters can be grouped to."""
    shape = sampling.fitting_shape(rng, layout)
    while len(shape) > rank:
        last = shape.pop()
        shape[-1] *= last
    while len(shape) < rank:
        shape.insert(rng.randint(0, len(shape)), 1)
    return shape


def test_group_many(tvm: Tvm) -> None:
    rng = Random(21)
    cases = []
    for _ in range(CASES):
        layout = sampling.layout(rng)
        kinds = [sampling.fitting_shape, lambda r, x: sampling.factors(r, x.size())]
        shapes = [rng.choices(kinds, (4, 1))[0](rng, layout) for _ in range(rng.randint(1, 3))]
        cases.append((layout, {"shapes": [s or [1] for s in shapes]}))
    kinds: Counter[str] = Counter()
    rows = compare(
        tvm,
        cases,
        "group_many",
        TileLayout.group_many,
        lambda x: (as_layout(x["layout"]), tuple(map(tuple, x["seps"]))),
    )
    for layout, arguments, mine, theirs in rows:
        if mine is not None:
            assert reference.function(mine[0]) == reference.function(layout), (layout, arguments)
        if theirs is None:
            kinds["both refuse" if mine is None else "TVM doesn't fuse"] += 1
            continue
        assert mine is not None, (layout, arguments)
        # Where TVM keeps unit iters of the layout itself, there are more iters, and no other function.
        extents = [[it.extent for it in x.shard if it.extent > 1] for x in (mine[0], theirs[0])]
        assert extents[0] == extents[1], (layout, arguments)
        for shape, seps, peer in zip(arguments["shapes"], mine[1], theirs[1], strict=True):
            for d, n in enumerate(shape):
                assert prod(it.extent for it in mine[0].shard[seps[d] : seps[d + 1]]) == n
                assert prod(it.extent for it in theirs[0].shard[peer[d] : peer[d + 1]]) == n
        if mine[1] == theirs[1]:
            kinds["same separators"] += 1
        else:
            kinds["other unit iters"] += 1
    assert kinds["same separators"] > CASES // 2, kinds
    assert kinds["both refuse"] > 0, kinds
    assert kinds["TVM doesn't fuse"] > 0, kinds


def pairs(seed: int) -> list[tuple[TileLayout, TileLayout, list[int], list[int]]]:
    rng = Random(seed)
    found = []
    for _ in range(CASES):
        one, other = small(rng), small(rng)
        rank = rng.randint(1, 3)
        found.append((one, other, some_shape(rng, one, rank), some_shape(rng, other, rank)))
    return found


def test_direct_sum(tvm: Tvm) -> None:
    cases = [
        (right, {"left": as_data(left), "left_shape": left_shape, "right_shape": right_shape})
        for left, right, left_shape, right_shape in pairs(22)
    ]

    def ours(right: TileLayout, left: dict, left_shape: list, right_shape: list) -> TileLayout:
        return right.direct_sum(as_layout(left), left_shape, right_shape)

    for layout, arguments, mine, theirs in compare(tvm, cases, "direct_sum", ours):
        assert theirs is not None, (layout, arguments)
        assert mine.canonicalize() == theirs.canonicalize(), (layout, arguments)


def test_broadcast(tvm: Tvm) -> None:
    rng = Random(23)
    cases = []
    for _ in range(500):
        layout = sampling.layout(rng)
        rank = len(layout.shard)
        cases.append((layout, {"num": rng.randint(1, 5), "position": rng.randint(-rank - 1, rank)}))
    for layout, arguments, mine, theirs in compare(tvm, cases, "broadcast", TileLayout.broadcast):
        assert mine == theirs, (layout, arguments)


OURS = {
    "is_tile_inner": TileLayout.recover_outer,
    "is_tile_outer": TileLayout.recover_inner,
    "is_direct_sum_right": TileLayout.recover_left,
    "is_direct_sum_left": TileLayout.recover_right,
}


def makes(name: str, part: TileLayout, found: TileLayout, other_shape: list, part_shape: list) -> TileLayout:
    """What the part and the recovered layout make."""
    if name == "is_tile_inner":
        return part.tile(found, other_shape, part_shape)
    if name == "is_tile_outer":
        return found.tile(part, part_shape, other_shape)
    if name == "is_direct_sum_right":
        return part.direct_sum(found, other_shape, part_shape)
    return found.direct_sum(part, part_shape, other_shape)


@pytest.mark.parametrize("name", OURS)
def test_recognizers(tvm: Tvm, name: str) -> None:
    rng = Random(name)
    cases = []
    shapes = []
    for one, other, one_shape, other_shape in pairs(24):
        left_is_known = name in ("is_tile_outer", "is_direct_sum_left")
        part, part_shape, rest_shape = (
            (one, one_shape, other_shape) if left_is_known else (other, other_shape, one_shape)
        )
        whole = (
            other.tile(one, one_shape, other_shape)
            if "tile" in name
            else other.direct_sum(one, one_shape, other_shape)
        )
        if rng.random() < 0.4:  # another part than the one that is in it
            it = part.shard[-1]
            part = TileLayout.from_iters(
                [*part.shard[:-1], (it.extent, it.stride + rng.choice((0, 1, 2)), it.axis)]
            )
        if rng.random() < 0.3:
            whole = whole.canonicalize()
        if "tile" in name:
            shape = [x * y for x, y in zip(one_shape, other_shape, strict=True)]
        else:
            shape = [n for pair in zip(one_shape, other_shape, strict=True) for n in pair]
        cases.append(
            (part, {"name": name, "whole": as_data(whole), "shape": shape, "part_shape": part_shape})
        )
        shapes.append(rest_shape)

    def ours(part: TileLayout, whole: dict, shape: list, part_shape: list, name: str) -> TileLayout:
        return OURS[name](part, as_layout(whole), shape, part_shape)

    def read(x: Any) -> Any:
        return as_layout(x)

    kinds: Counter[str] = Counter()
    rows = compare(tvm, cases, "recover", ours, read)
    for (part, arguments, mine, theirs), rest_shape in zip(rows, shapes, strict=True):
        whole = as_layout(arguments["whole"])
        for who, found in (("ours", mine), ("TVM's", theirs)):
            if found is None:
                continue
            again = makes(name, part, found, rest_shape, arguments["part_shape"])
            right = reference.function(again) == reference.function(whole)
            assert right or who != "ours", (part, arguments, found)
            kinds[f"{who} right" if right else f"{who} wrong"] += 1
        if mine is None and theirs is not None:
            again = makes(name, part, theirs, rest_shape, arguments["part_shape"])
            assert reference.function(again) != reference.function(whole), (part, arguments, theirs)
        if mine is not None and theirs is None:
            kinds["TVM misses it"] += 1
        if mine is not None and theirs is not None and reference.function(mine) == reference.function(theirs):
            kinds["agree"] += 1
    assert kinds["agree"] > CASES // 3, kinds
    assert kinds["ours right"] < CASES, kinds
    assert set(kinds) <= EXPECTED, kinds


EXPECTED = {"agree", "ours right", "TVM's right", "TVM misses it"}
