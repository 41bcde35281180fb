"""elements: who sits at a place, for every place that is held and for others."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import compacts, reference
from tilelayout import Iter, LayoutError, R, S, TileLayout, Undecided, laneid, m, warpid


def check(layout: TileLayout) -> None:
    held: dict[reference.Place, list[int]] = {}
    for i, places in enumerate(reference.function(layout)):
        for place in places:
            held.setdefault(place, []).append(i)
    for place, elements in held.items():
        assert layout.elements(dict(place)) == tuple(elements), (layout, place)
        moved = {**dict(place), "m": dict(place).get("m", 0) + 1}
        key = frozenset((a, v) for a, v in moved.items() if v)
        assert layout.elements(moved) == tuple(held.get(key, ())), (layout, moved)


@given(strategies.layouts(max_size=48))
def test_every_place_of_any_layout(layout: TileLayout) -> None:
    check(layout)


@compacts.by_count(500, (1, 2))
def test_random_layouts(count: int, seed: int) -> None:
    rng = Random(seed)
    for _ in range(count):
        check(compacts.anything(rng, 24, rng.choice(((m,), (m, laneid))), rng.random() < 0.3))


@given(strategies.layouts(max_size=48), st.sampled_from(("m", "laneid", "warpid")))
def test_any_coordinate_of_an_axis(layout: TileLayout, axis: str) -> None:
    owners = reference.function(layout)
    place = dict(next(iter(owners[0])))
    rest = {a: v for a, v in place.items() if a != axis}
    expected = [
        i
        for i, places in enumerate(owners)
        if any({a: v for a, v in p if a != axis} == rest for p in map(dict_of, places))
    ]
    assert layout.elements({**rest, axis: ...}) == tuple(expected)


def dict_of(place: reference.Place) -> list[tuple[str, int]]:
    return list(place)


def test_lane_and_register_of_a_fragment() -> None:
    fragment = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    for lane in range(32):
        for register in range(4):
            row, column = lane // 4 + 8 * (register // 2), 2 * (lane % 4) + register % 2
            assert fragment.elements({"laneid": lane, "m": register}) == (8 * row + column,)
    assert fragment.elements({laneid: 32}) == ()
    assert fragment.elements({laneid: 3, warpid: 1}) == ()
    assert fragment.elements({}) == (0,)


def test_every_warp_that_holds_a_copy() -> None:
    layout = TileLayout(S[8] + R[2 : 4 @ warpid])
    assert layout.elements({warpid: 4, m: 5}) == layout.elements({m: 5}) == (5,)
    assert layout.elements({warpid: 2, m: 5}) == ()


def test_huge_layouts() -> None:
    n = 2**40
    layout = TileLayout(S[(n, n, 4) : (1 @ laneid, -5, 1)] + 5 * (n - 1))
    assert layout.elements({laneid: 12345, m: 5 * 678 + 3}) == ((12345 * n + n - 1 - 678) * 4 + 3,)
    assert TileLayout(S[(n, n) : (n + 1, n)]).elements({m: 3 * n + 1}) == (n + 2,)


def test_refusals_name_the_rule() -> None:
    layout = TileLayout(S[(2**30, 4) : (0, 1)])
    with pytest.raises(LayoutError, match="more than 1048576 elements"):
        layout.elements({m: 1})
    with pytest.raises(LayoutError, match="unknown axis 'lane'"):
        layout.elements({"lane": 1})
    with pytest.raises(LayoutError, match="coordinate on m must be an integer"):
        layout.elements({m: 1.0})
    with pytest.raises(LayoutError, match="must be a mapping"):
        layout.elements(3)
    rng = Random(1)
    hard = TileLayout.from_iters([Iter(2, rng.randint(1, 2**200)) for _ in range(60)])
    with pytest.raises(Undecided, match="sums of the strides"):
        hard.elements({m: sum(it.stride for it in hard.shard[::2])})


def test_symbols_are_refused() -> None:
    import sympy

    n = sympy.Symbol("n", integer=True, positive=True)
    with pytest.raises(LayoutError, match="n is symbolic"):
        TileLayout(S[4:n]).elements({m: 1})
