"""Is a swizzled layout that function, is it injective, surjective, bijective; each no with a witness."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference, swizzling
from tilelayout import LayoutError, S, Swizzle, SwizzledLayout, TileLayout, Undecided, m

TILE = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[SwizzledLayout, TileLayout | SwizzledLayout]:
    """A layout, and one that is often the same function in another form."""
    layout = draw(swizzling.swizzled_layouts(max_size=32))
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return layout, draw(swizzling.swizzled_layouts(max_size=32))
    if kind == 1:
        return layout, layout.canonicalize()
    if kind == 2:
        return layout, SwizzledLayout(layout.layout, draw(swizzling.maps()))
    shard = list(layout.layout.shard)
    if kind == 3 and shard:
        k = draw(st.integers(0, len(shard) - 1))
        shard[k] = (shard[k].extent, shard[k].stride + draw(st.sampled_from([0, 1, 8, 512])), shard[k].axis)
    offset = dict(layout.layout.offset)
    if kind == 4:
        offset[m] = offset.get(m, 0) + draw(st.sampled_from([0, 1, 8, 512]))
    other = SwizzledLayout(TileLayout.from_iters(shard, layout.layout.replica, offset), layout.swizzle)
    return layout, other.group(draw(strategies.fitting_shapes([it[0] for it in shard])))[0]


@given(pairs(), st.data())
def test_equivalent(pair: tuple, data: st.DataObject) -> None:
    one, other = pair
    functions = [swizzling.function(x) for x in pair]
    answer = one.equivalent(other)
    assert bool(answer) == (functions[0] == functions[1]), answer
    back = other.equivalent(one)  # whichever is asked, be it a tile layout
    assert bool(back) == bool(answer)
    if answer:
        assert answer.witness is None
    else:
        k = answer.witness
        assert [f[k] if k < len(f) else None for f in functions[:1]] != [
            f[k] if k < len(f) else None for f in functions[1:]
        ]
        if len(functions[0]) == len(functions[1]):
            shape = data.draw(strategies.factorizations(len(functions[0])))
            assert reference.flatten(one.equivalent(other, shape).witness, shape) == k
            there = reference.flatten(other.equivalent(one, shape).witness, shape)
            assert there == back.witness
            assert functions[0][there] != functions[1][there]


def test_equivalence_of_huge_layouts() -> None:
    """By arithmetic: extents to 2**40, and rank 40."""
    swizzle = Swizzle(3, 3, 3)
    one = SwizzledLayout(S[2**40, 2**40, 64], swizzle)
    assert one.equivalent(SwizzledLayout(S[2**70, 2**16], swizzle))
    assert (
        one.equivalent(SwizzledLayout(S[(2**40, 2**40, 64) : (2**46, 64, 1)], Swizzle(2, 3, 3))).witness
        == 256
    )
    assert one.equivalent(TileLayout(S[2**86])).witness == 64
    assert not one.equivalent(SwizzledLayout(S[2**40, 2**40, 65], swizzle))
    deep = TileLayout.from_iters([(2**10, 2 ** (10 * k), "m") for k in range(40)][::-1])
    assert SwizzledLayout(deep, swizzle).equivalent(SwizzledLayout(S[2**400], swizzle))
    far = SwizzledLayout(S[(2**40, 64) : (64, 1)] + 2**80, swizzle)
    assert far.equivalent(SwizzledLayout(S[2**46] + 2**80, swizzle))
    assert far.equivalent(SwizzledLayout(S[2**46], swizzle)).witness == 0


def test_what_is_left_undecided_is_not_guessed() -> None:
    even = SwizzledLayout(
        S[2**50 : 2], Swizzle(1, 0, -40)
    )  # nothing is read, but 41 bits are too many to see it
    assert even.equivalent(even)
    assert even.equivalent(TileLayout(S[2**50 : 3])).witness == 1
    for question in (lambda: even.equivalent(even.layout), even.is_surjective, even.span):
        with pytest.raises(Undecided):
            question()
    n = sympy.Symbol("n", integer=True, positive=True)
    with pytest.raises(LayoutError, match="symbolic"):
        SwizzledLayout(S[n, 64], Swizzle(3, 3, 3)).equivalent(TileLayout(S[n, 64]))
    assert SwizzledLayout(S[n, 64], Swizzle(3, 3, 3)).equivalent(SwizzledLayout(S[64 * n], Swizzle(3, 3, 3)))


def test_only_layouts_are_compared() -> None:
    for other in (None, S[8, 64], Swizzle(3, 3, 3), "S[8]"):
        with pytest.raises(LayoutError, match="equivalent: other must be a layout"):
            TILE.equivalent(other)


def test_a_tile_layout_is_compared_with_a_swizzled_one() -> None:
    tile = TILE.layout
    assert tile.equivalent(TILE).witness == 64
    assert tile.equivalent(TILE, shape=(8, 64)).witness == (1, 0)
    assert TileLayout(S[10:2]).equivalent(SwizzledLayout(S[10:2], Swizzle(3, 4, 3)))  # C26
    assert TileLayout(S[8]).equivalent(TILE).witness == 8
    with pytest.raises(LayoutError, match=r"equivalent: .*shape \(8, 8\)"):
        tile.equivalent(TILE, shape=(8, 8))


@given(swizzling.swizzled_layouts(max_size=32), st.data())
def test_who_sits_there(layout: SwizzledLayout, data: st.DataObject) -> None:
    function = swizzling.function(layout)
    held = [dict(place) for places in function for place in places]
    place = data.draw(st.sampled_from(held)) | data.draw(st.sampled_from([{}, {}, {"m": 3}, {"laneid": 1}]))
    there = [flat for flat, places in enumerate(function) if reference.place(place) in places]
    assert list(layout.elements(place)) == there
    any_m = [
        f for f, places in enumerate(function) if {**place, "m": 0} in [{**dict(p), "m": 0} for p in places]
    ]
    assert list(layout.elements({**place, "m": ...})) == any_m


def test_places_that_are_no_places() -> None:
    for place, word in (({"m": 1.5}, "integer"), ({"lanid": 0}, "laneid"), (3, "must be a mapping")):
        with pytest.raises(LayoutError, match=word):
            TILE.elements(place)


@given(swizzling.swizzled_layouts())
def test_injective(layout: SwizzledLayout) -> None:
    function = swizzling.function(layout)
    answer = layout.is_injective()
    shared = {
        place for k, places in enumerate(function) for other in function[:k] for place in places & other
    }
    assert bool(answer) == (not shared)
    if not answer:
        i, j = answer.witness
        assert i != j
        assert function[i] & function[j]


@given(swizzling.swizzled_layouts(max_size=32))
def test_surjective(layout: SwizzledLayout) -> None:
    held = {place for places in swizzling.function(layout) for place in places}
    axes = ("m", "laneid", "warpid")
    ends = {a: (min(vs := swizzling.values(layout, a)), max(vs)) for a in axes}
    room = 1
    for low, high in ends.values():
        room *= high - low + 1
    answer = layout.is_surjective()
    assert bool(answer) == (len(held) == room), answer
    assert bool(layout.is_bijective()) == (bool(answer) and bool(layout.is_injective()))
    if not answer:
        missing = reference.place(answer.witness)
        assert missing not in held
        assert all(low <= dict(missing).get(a, 0) <= high for a, (low, high) in ends.items())


def test_questions_about_huge_layouts() -> None:
    big = SwizzledLayout(S[2**40, 2**40], Swizzle(3, 3, 3))
    assert big.is_injective()
    assert big.is_surjective()
    assert big.is_bijective()
    assert SwizzledLayout(S[2**40 + 5], Swizzle(3, 0, 3)).is_surjective()
    assert SwizzledLayout(S[2**40 + 30], Swizzle(3, 0, 3)).is_surjective().witness[m] >= 2**40
    assert not SwizzledLayout(S[(2**40, 64) : (65, 1)], Swizzle(3, 3, 3)).is_surjective()
    assert SwizzledLayout(S[(2**40, 2) : (1, 1)], Swizzle(3, 3, 3)).is_injective().witness == (1, 2)


def test_answers_rest_on_the_conditions_of_both_layouts() -> None:
    n, k = sympy.symbols("n k", integer=True, positive=True)
    whole = (0, 64)
    rows = TileLayout(S[8, n]).slice((8, n), [(0, 1), whole], assuming=n >= 64)
    tile = TileLayout(S[8, k]).slice((8, k), [(0, 1), whole], assuming=k > 63).swizzle(3, 3, 3)
    for answer in (tile.is_injective(), tile.is_surjective(), tile.is_bijective()):
        assert answer.conditions == (k > 63,)
    for one, two in ((tile, rows), (rows, tile), (tile, rows.swizzle(3, 3, 3))):
        answer = one.equivalent(two)
        assert answer
        assert set(answer.conditions) == {k > 63, n >= 64}
    assert TileLayout(S[64]).equivalent(tile).conditions == (k > 63,)
    assert tile.equivalent(TileLayout(S[64:2])).conditions == (k > 63,)
    assert TILE.is_surjective().conditions == ()


def test_a_refusal_names_the_question_that_was_asked() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    unknown = sympy.Symbol("unknown", integer=True)
    for layout in (TileLayout(S[8:unknown]), TileLayout(S[n, 64])):
        with pytest.raises(LayoutError) as caught:
            layout.swizzle(3, 3, 3).is_bijective()
        assert caught.value.operation == "is_bijective"
