"""The same questions put to TVM TIRx, thousands at a time.

Wherever the two disagree the model decides, evaluated by brute force, and it must decide for us, always.
Disagreements are counted by their reason; a kind that isn't listed fails.

What is known of TVM 0.27 (layouts with positive strides, no replica, no offset, everything in range):
  - group and what builds on it work on the iters as they are written, not on the fused ones: shapes that need
    the fused form are refused;
  - slice has a rule for one wrap that is wrong on some ranges, and misses some slices;
  - pack and unpack scale the strides of every axis as if lanes counted elements of storage, and pack takes iters
    whose strides aren't multiples of the width.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from property_tests.algebra import reference
from property_tests.algebra.test_notation import as_tvm_prints
from property_tests.algebra.test_slice import exists
from property_tests.oracles import sampling
from property_tests.oracles.tvm_client import Tvm, as_data, as_layout
from tilelayout import LayoutError, R, S, TileLayout, laneid, warpid

pytestmark = pytest.mark.slow

CASES = 3000


def attempt(ours: Callable[[], Any]) -> Any:
    """Our answer, or None where we refuse."""
    try:
        return ours()
    except LayoutError:
        return None


def compare(
    tvm: Tvm,
    cases: list[tuple[TileLayout, dict[str, Any]]],
    do: str,
    ours: Callable[..., Any],
    read: Callable[[Any], Any] = as_layout,
) -> list[tuple[TileLayout, dict[str, Any], Any, Any]]:
    """Rows of layout, arguments, our answer and TVM's, each None where it was refused."""
    answers = tvm.ask([{"do": do, "layout": as_data(layout), **arguments} for layout, arguments in cases])
    assert len(answers) == len(cases)
    rows = []
    for (layout, arguments), answer in zip(cases, answers, strict=True):
        assert "crashed" not in answer, (do, layout, arguments)
        theirs = answer.get("is")
        mine = attempt(lambda layout=layout, arguments=arguments: ours(layout, **arguments))
        rows.append((layout, arguments, mine, None if theirs is None else read(theirs)))
    return rows


def sample(seed: int, count: int = CASES, **options: Any) -> tuple[Random, list[TileLayout]]:
    rng = Random(seed)
    return rng, [sampling.layout(rng, **options) for _ in range(count)]


def test_evaluation(tvm: Tvm) -> None:
    rng, layouts = sample(1, 1000)
    cases = [(layout, {"shape": sampling.factors(rng, layout.size())}) for layout in layouts]
    for layout, arguments, mine, theirs in compare(tvm, cases, "table", TileLayout.table, dict):
        found = {axis.name: values.flatten().tolist() for axis, values in mine.items()}
        moving = [{axis: values for axis, values in x.items() if any(values)} for x in (found, theirs)]
        assert moving[0] == moving[1], (layout, arguments)


def test_size_and_span(tvm: Tvm) -> None:
    rng, layouts = sample(2)
    cases = [(layout, {"axis": rng.choice(layout.shard).axis.name}) for layout in layouts]

    def measure(layout: TileLayout, axis: str) -> dict[str, int]:
        return {"size": layout.size(), "span": layout.span(axis)}

    for layout, arguments, mine, theirs in compare(tvm, cases, "measure", measure, dict):
        assert mine == theirs, (layout, arguments)


def test_canonicalize(tvm: Tvm) -> None:
    """The same form, but for a single element: here that is S[1:0] on whatever axis it was written."""
    _, layouts = sample(3)
    rows = compare(tvm, [(layout, {}) for layout in layouts], "canonicalize", TileLayout.canonicalize)
    for layout, _, mine, theirs in rows:
        assert mine == theirs or (layout.size() == theirs.size() == 1 and mine == TileLayout(S[1:0])), layout


def test_group(tvm: Tvm) -> None:
    rng, layouts = sample(4)
    cases = []
    for layout in layouts:
        any_shape = rng.random() < 0.5
        shape = sampling.factors(rng, layout.size()) if any_shape else sampling.fitting_shape(rng, layout)
        cases.append((layout, {"shape": shape}))
    kinds: Counter[str] = Counter()
    rows = compare(
        tvm, cases, "group", TileLayout.group, lambda x: (as_layout(x["layout"]), tuple(x["seps"]))
    )
    for layout, arguments, mine, theirs in rows:
        if theirs is None:
            kinds["both refuse" if mine is None else "TVM doesn't fuse"] += 1
            if mine is not None:
                assert reference.function(mine[0]) == reference.function(layout)
            continue
        assert mine is not None, (layout, arguments)
        assert mine[1] == theirs[1], (layout, arguments)
        for it, peer in zip(mine[0].shard, theirs[0].shard, strict=True):
            assert it == peer or it.extent == peer.extent == 1, (layout, arguments)
        kinds["agree"] += 1
    assert kinds["agree"] > CASES // 2, kinds
    assert kinds["TVM doesn't fuse"] > 0, kinds
    assert kinds["both refuse"] > 0, kinds


def test_slice(tvm: Tvm) -> None:
    rng, layouts = sample(5, 2 * CASES)
    cases = []
    for layout in layouts:
        shapes = ([layout.size()], sampling.fitting_shape(rng, layout), sampling.factors(rng, layout.size()))
        shape = rng.choices(shapes, (5, 3, 2))[0]
        cases.append((layout, {"shape": shape, "region": sampling.region(rng, shape)}))
    kinds: Counter[str] = Counter()
    for layout, arguments, mine, theirs in compare(tvm, cases, "slice", TileLayout.slice):
        box = [reference.owners(layout, flat) for flat in reference.box(**arguments)]
        assert (mine is not None) == exists(layout, **arguments), (layout, arguments)
        assert mine is None or reference.function(mine) == box, (layout, arguments)
        if theirs is None:
            kinds["both refuse" if mine is None else "TVM misses it"] += 1
        else:
            kinds["agree" if reference.function(theirs) == box else "TVM is wrong"] += 1
    assert kinds["agree"] > CASES, kinds
    assert 0 < kinds["TVM is wrong"] < CASES // 50, kinds
    assert kinds["TVM misses it"] > 0, kinds


def test_the_slice_that_the_one_wrap_rule_of_tvm_gets_wrong(tvm: Tvm) -> None:
    """Should a later TVM get it right, the list above is out of date."""
    layout, arguments = TileLayout(S[(2, 2, 2) : (100, 10, 1)]), {"shape": [8], "region": [(3, 5)]}
    ((_, _, mine, theirs),) = compare(tvm, [(layout, arguments)], "slice", TileLayout.slice)
    assert [mine.apply(i)["m"] for i in range(2)] == [11, 100]
    assert [theirs.apply(i)["m"] for i in range(2)] == [11, 20]


def test_tile_to(tvm: Tvm) -> None:
    rng, layouts = sample(6)
    cases = []
    for layout in layouts:
        current = sampling.fitting_shape(rng, layout)
        target = [n * rng.choice((1, 1, 2, 3)) for n in current]
        cases.append((layout, {"to_shape": target, "current_shape": current}))
    for layout, arguments, mine, theirs in compare(tvm, cases, "tile_to", TileLayout.tile_to):
        assert (mine is None) == (theirs is None), (layout, arguments)
        if mine is not None:
            assert mine.canonicalize() == theirs.canonicalize(), (layout, arguments)


def test_tile(tvm: Tvm) -> None:
    rng, layouts = sample(7)
    cases = []
    for inner in layouts[: CASES // 2]:
        outer = sampling.layout(rng, axes=("m", "laneid"))
        shapes = [[x.size(), 1] if rng.random() < 0.5 else [1, x.size()] for x in (outer, inner)]
        cases.append((inner, {"outer": as_data(outer), "outer_shape": shapes[0], "inner_shape": shapes[1]}))

    def ours(inner: TileLayout, outer: dict, outer_shape: list, inner_shape: list) -> TileLayout:
        return inner.tile(as_layout(outer), outer_shape, inner_shape)

    for inner, arguments, mine, theirs in compare(tvm, cases, "tile", ours):
        assert mine.canonicalize() == theirs.canonicalize(), (inner, arguments)


def test_permutations(tvm: Tvm) -> None:
    rng, layouts = sample(8)
    cases = [(x, {"perm": rng.sample(range(len(x.shard)), len(x.shard))}) for x in layouts]
    for layout, arguments, mine, theirs in compare(tvm, cases, "permute_dims", TileLayout.permute_dims):
        assert mine == theirs is not None, (layout, arguments)
    cases = []
    for layout in layouts:
        grouped, seps = layout.group(sampling.fitting_shape(rng, layout))
        count = len(seps) - 1
        cases.append((grouped, {"seps": list(seps), "perm": rng.sample(range(count), count)}))
    for layout, arguments, mine, theirs in compare(
        tvm, cases, "permute_by_groups", TileLayout.permute_by_groups
    ):
        assert mine == theirs is not None, (layout, arguments)


def test_unpack_of_memory(tvm: Tvm) -> None:
    rng, layouts = sample(9, axes=("m",))
    cases = [(layout, {"num": rng.choice((2, 4, 8))}) for layout in layouts]
    for layout, arguments, mine, theirs in compare(tvm, cases, "unpack", TileLayout.unpack):
        assert mine == theirs is not None, (layout, arguments)


def test_pack_of_memory(tvm: Tvm) -> None:
    """TVM refuses where the innermost iter is a unit one, and accepts strides that split an element."""
    rng, layouts = sample(10, axes=("m",))
    cases = [(layout, {"num": rng.choice((2, 4))}) for layout in layouts]
    kinds: Counter[str] = Counter()
    for layout, arguments, mine, theirs in compare(tvm, cases, "pack", TileLayout.pack):
        n = arguments["num"]
        heads = [reference.displacement(layout, i)["m"] for i in range(0, reference.size(layout), n)]
        runs = [reference.displacement(layout, i)["m"] - heads[i // n] for i in range(reference.size(layout))]
        possible = reference.size(layout) % n == 0 and all(r == i % n for i, r in enumerate(runs))
        possible = possible and all(h % n == 0 for h in heads)
        assert (mine is not None) == possible, (layout, arguments)
        if possible:
            assert [mine.apply(i)["m"] * n for i in range(len(heads))] == heads, (layout, arguments)
        if theirs is None:
            kinds["both refuse" if mine is None else "TVM doesn't fuse"] += 1
        elif mine is None:
            kinds["TVM splits an element"] += 1
        else:
            assert reference.function(mine) == reference.function(theirs), (layout, arguments)
            kinds["agree"] += 1
    assert kinds["agree"] > 50, kinds


def test_pack_and_unpack_leave_lanes_alone(tvm: Tvm) -> None:
    """A change of the element's width moves no lane; TVM scales the strides of every axis."""
    layout = TileLayout(S[(8, 4) : (4 @ laneid, 1)])
    for do, ours in (("pack", TileLayout.pack), ("unpack", TileLayout.unpack)):
        ((_, _, mine, theirs),) = compare(tvm, [(layout, {"num": 2})], do, ours)
        assert mine.span(laneid) == layout.span(laneid) == 29
        assert theirs.span(laneid) != 29


def test_printed_text_of_tvm_is_read(tvm: Tvm) -> None:
    rng, layouts = sample(11, 500)
    moved = [
        TileLayout.from_iters(
            x.shard,
            [(2, rng.choice((4, -4)), rng.choice(sampling.AXES))][: rng.randint(0, 1)],
            {axis: rng.choice((0, 5, -3, 64)) for axis in rng.sample(sampling.AXES[1:], rng.randint(0, 3))},
        )
        for x in layouts
    ]
    moved.append(TileLayout(S[8 : 4 @ laneid] + 1 @ laneid + 2 @ warpid + 64))  # C31
    moved.append(TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] - 5))
    texts = tvm.ask([{"do": "text", "layout": as_data(layout)} for layout in moved])
    for layout, text in zip(moved, texts, strict=True):
        assert TileLayout.parse(text["is"]) == layout
        assert text["is"] == as_tvm_prints(layout), "the form that test_notation writes is TVM's"


def test_a_crash_is_an_answer_and_not_the_end(tvm: Tvm) -> None:
    tvm.close()
    answers = tvm.ask(
        [{"do": "version", "layout": {"shard": [[1, 1, "m"]]}}, {"do": "nothing", "layout": {}}]
    )
    assert "is" in answers[0]
    assert "refused" in answers[1]
