"""is_injective, is_surjective, is_bijective: the answers and their witnesses, against every element and place."""

from __future__ import annotations

from itertools import product
from math import prod
from random import Random
from time import perf_counter

import pytest
from hypothesis import given

from property_tests import strategies
from property_tests.algebra import compacts, enumerations, reference
from tilelayout import Iter, LayoutError, R, S, TileLayout, Undecided, laneid, m, warpid
from tilelayout.algebra import injective as module


def check(layout: TileLayout) -> bool:
    owners = reference.function(layout)
    held: dict[reference.Place, int] = {}
    injective = all(held.setdefault(place, i) == i for i, places in enumerate(owners) for place in places)
    answer = layout.is_injective()
    assert bool(answer) == injective, (layout, answer)
    if answer:
        assert answer.witness is None
    else:
        first, second = answer.witness
        assert 0 <= first < second < len(owners)
        assert owners[first] & owners[second], (layout, answer)
    axes = [
        str(a) for a in dict.fromkeys([*layout.offset, *[it.axis for it in (*layout.shard, *layout.replica)]])
    ]
    places = {tuple(dict(place).get(a, 0) for a in axes) for found in owners for place in found}
    ranges = [(min(v), max(v)) for v in zip(*places, strict=True)]
    surjective = len(places) == prod(high - low + 1 for low, high in ranges)
    answer = layout.is_surjective()
    assert bool(answer) == surjective, (layout, answer)
    if not answer:
        missed = tuple(answer.witness.get(a, 0) for a in axes)
        assert missed not in places, (layout, answer)
        assert all(low <= x <= high for x, (low, high) in zip(missed, ranges, strict=True)), (layout, answer)
    both = layout.is_bijective()
    assert bool(both) == (injective and surjective)
    assert bool(both) or both.witness in (layout.is_injective().witness, answer.witness)
    return injective


def check_random(seed: int, count: int) -> None:
    rng = Random(seed)
    outcomes = [0, 0]
    for _ in range(count):
        axes = rng.choice(((m,), (m, laneid)))
        outcomes[check(compacts.anything(rng, 24, axes, rng.random() < 0.5))] += 1
    assert min(outcomes) > count // 10


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 8, 9])
def test_every_small_shard(size: int) -> None:
    for shard in enumerations.shards(size, (-1, 0, 1, 2, 3), (m,)):
        check(TileLayout.from_iters(shard))


@pytest.mark.slow
@pytest.mark.parametrize(("size", "largest"), [(8, 12), (12, 9), (16, 6), (18, 7), (24, 5)])
def test_every_shard_of_larger_strides(size: int, largest: int) -> None:
    for shard in enumerations.shards(size, range(1, largest), (m,)):
        check(TileLayout.from_iters(shard))


def test_random_layouts() -> None:
    check_random(1, 800)


@pytest.mark.slow
def test_ten_thousand_random_layouts() -> None:
    check_random(2, 10_000)


HUGE_IN_PART = strategies.layouts(max_size=36, strides=(*strategies.SMALL_STRIDES, 2**31, -(2**64), 10**30))


@given(HUGE_IN_PART)
def test_injectivity_with_huge_strides_and_copies(layout: TileLayout) -> None:
    owners = reference.function(layout)
    held: dict[reference.Place, int] = {}
    injective = all(held.setdefault(place, i) == i for i, places in enumerate(owners) for place in places)
    answer = layout.is_injective()
    assert bool(answer) == injective
    if not answer:
        first, second = answer.witness
        assert owners[first] & owners[second]


# --- structured families of rank 40 ------------------------------------------------------------------------


def nested(rng: Random, rank: int = 40) -> list[Iter]:
    found, stride = [], 1
    for _ in range(rank):
        extent = rng.randint(2, 2**40)
        found.append(Iter(extent, stride * rng.choice((1, -1))))
        stride *= extent * rng.choice((1, 1, 3))
    return found


def timed(layout: TileLayout) -> bool:
    """The answer, which may take 10 ms; the best of three, since a machine may be busy."""
    spent = []
    for _ in range(3):
        begin = perf_counter()
        answer = layout.is_injective()
        spent.append(perf_counter() - begin)
    assert min(spent) < 0.01, layout
    if not answer:
        places = [layout.apply(i) for i in answer.witness]
        assert places[0] == places[1]
        assert answer.witness[0] != answer.witness[1]
    return bool(answer)


@pytest.mark.parametrize("seed", range(5))
def test_structured_layouts_of_rank_40_take_no_time(seed: int) -> None:
    rng = Random(seed)
    iters = nested(rng)
    assert timed(TileLayout.from_iters(iters))
    rng.shuffle(iters)
    assert timed(TileLayout.from_iters(iters))
    bits = [Iter(2, 2**k, m) for k in rng.sample(range(40), 40)]
    assert timed(TileLayout.from_iters(bits))
    assert TileLayout.from_iters(bits).is_bijective()
    assert (
        not timed(TileLayout.from_iters([*bits[:-1], Iter(3, bits[-1].stride)])) or bits[-1].stride == 2**39
    )
    wide = [Iter(2**40, 2 ** (40 * k)) for k in rng.sample(range(40), 40)]
    assert timed(TileLayout.from_iters(wide))
    assert not timed(TileLayout.from_iters([*wide, Iter(2, 2 ** (40 * rng.randint(0, 39) + 7))]))
    axes = [Iter(it.extent, it.stride, rng.choice((m, laneid, warpid))) for it in iters]
    assert timed(TileLayout.from_iters(axes))


def test_coprime_strides_of_the_chinese_remainder() -> None:
    primes = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
    assert TileLayout.from_iters([Iter(p, prod(primes) // p) for p in primes]).is_injective()
    assert not TileLayout.from_iters([Iter(p + 1, prod(primes) // p) for p in primes]).is_injective()


def test_what_is_hard_is_searched_and_then_undecided() -> None:
    rng = Random(1)
    few = TileLayout.from_iters([Iter(2, rng.randint(1, 2**40)) for _ in range(14)])
    assert few.is_injective()
    many = TileLayout.from_iters([Iter(2, rng.randint(1, 2**200)) for _ in range(40)])
    with pytest.raises(Undecided, match=f"not found among {module.BUDGET} sums"):
        many.is_injective()


def test_halves_that_meet_find_the_same_as_every_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUICK_BUDGET", 0)
    check_random(5, 500)
    for strides in product((4, 6, 9, 10, 15), repeat=3):
        check(TileLayout.from_iters([Iter(e, s) for e, s in zip((2, 3, 3), strides, strict=True)]))


# --- what the answers are ----------------------------------------------------------------------------------


def test_copies_of_one_element_are_no_collision() -> None:
    assert TileLayout(S[4] + R[2:0]).is_injective()
    assert TileLayout(S[4:2] + R[2:1]).is_bijective()
    assert TileLayout(S[4] + R[2 : 1 @ warpid]).is_bijective()
    assert TileLayout(S[2:4] + R[(2, 3) : (1, 1)]).is_injective()
    assert TileLayout(S[4] + R[2:1]).is_injective().witness == (0, 1)


def test_an_answer_is_its_truth_and_its_witness() -> None:
    yes, no = TileLayout(S[4]).is_injective(), TileLayout(S[4:0]).is_injective()
    assert yes == True  # noqa: E712 - the point
    assert no == False  # noqa: E712 - the point
    assert yes != no
    assert yes != 1
    assert hash(yes) == hash(True)
    assert no == TileLayout(S[2:0]).is_injective()
    assert (repr(yes), repr(no)) == ("yes", "no, see (0, 1)")


def test_a_place_that_is_missed_lies_inside_the_box() -> None:
    answer = TileLayout(S[(2, 4) : (-3 @ laneid, 2)] + 7 @ laneid + 1).is_surjective()
    assert not answer
    assert answer.witness in ({laneid: 5, m: 1}, {laneid: 4, m: 2})


def test_symbolic_strides_are_decided_where_they_are_proved() -> None:
    import sympy

    n, k = sympy.symbols("n k", integer=True, positive=True)
    q = sympy.Symbol("q", integer=True)
    assert TileLayout(S[(n, k) : (k, 1)]).is_bijective()
    assert TileLayout(S[(4, k) : (k + 3, 1)]).is_injective()
    assert not TileLayout(S[(n + 1, 4) : (0, 1 @ laneid)]).is_injective()
    assert TileLayout(S[(4, n + 1) : (k, k)]).is_injective().witness is not None
    assert TileLayout(S[(4, k) : (k + 1, 1)]).is_surjective().witness == {m: k}
    with pytest.raises(LayoutError, match="depends on symbols"):
        TileLayout(S[(4, 4) : (n, 1)]).is_injective()
    with pytest.raises(LayoutError, match="depends on symbols"):
        TileLayout(S[(4, 4) : (n, 1)]).is_surjective()
    with pytest.raises(LayoutError, match="sign of stride q is not known"):
        TileLayout(S[4:q]).is_injective()
