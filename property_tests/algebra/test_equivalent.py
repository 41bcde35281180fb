"""equivalent: the same owners at every index, and where not, an index that shows it."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import compacts, enumerations, reference
from tilelayout import Iter, LayoutError, R, S, TileLayout, Undecided, laneid, m


def check(one: TileLayout, other: TileLayout) -> bool:
    owners = [reference.function(layout) for layout in (one, other)]
    answer = one.equivalent(other)
    assert bool(answer) == (owners[0] == owners[1]), (one, other, answer)
    if not answer:
        at = answer.witness
        assert at == min(map(len, owners)) or owners[0][at] != owners[1][at], (one, other, answer)
        assert at < max(map(len, owners))
    if len(owners[0]) == len(owners[1]):
        shape = (1, len(owners[0]))
        assert one.equivalent(other, shape) == answer
        assert bool(answer) or one.equivalent(other, shape).witness == (0, answer.witness)
    return bool(answer)


@pytest.mark.parametrize("size", [2, 4, 6, 8])
def test_small_shards_are_equivalent_when_their_tables_are(size: int) -> None:
    layouts = [
        TileLayout.from_iters(x) for x in enumerations.shards(size, (-1, 0, 1, 2), enumerations.TWO_AXES)
    ]
    rng = Random(size)
    for one in rng.sample(layouts, min(len(layouts), 40)):
        for other in rng.sample(layouts, min(len(layouts), 40)):
            check(one, other)


@compacts.by_count(600, (1, 2))
def test_random_layouts_and_replicas(count: int, seed: int) -> None:
    """Replicas most of all: their sets of copies can be written in many ways."""
    rng = Random(seed)
    pool: dict[tuple, list[TileLayout]] = {}
    outcomes = [0, 0]
    while sum(outcomes) < count:
        axes = rng.choice(((m,), (m, laneid)))
        shard = [Iter(e, rng.choice((0, 1, 1, 2, 4, -1)), rng.choice(axes)) for e in compacts.factors(4, rng)]
        replica = [
            Iter(rng.choice((1, 2, 3)), rng.choice((0, 1, 2, 3, 4, 6, -1, -2)), rng.choice(axes))
            for _ in range(rng.randint(0, 3))
        ]
        layout = TileLayout.from_iters(shard, replica, {rng.choice(axes): rng.choice((0, 3, -2))})
        alike = pool.setdefault(tuple(reference.function(layout)), [])
        other = rng.choice(alike or rng.choice([x for x in pool.values() if x] or [[layout]]))
        outcomes[check(layout, other)] += 1
        alike.append(layout)
    assert min(outcomes) > count // 10


@given(strategies.layouts(max_size=48), st.data())
def test_a_layout_is_equivalent_to_its_other_forms(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.fitting_shapes([it.extent for it in layout.shard]))
    assert check(layout, layout.canonicalize())
    assert check(layout, layout.group(shape or (1,))[0])


@given(strategies.layouts(max_size=24), strategies.layouts(max_size=24))
def test_any_two_layouts(one: TileLayout, other: TileLayout) -> None:
    check(one, other)


def test_the_witness_is_found_in_layouts_of_any_size() -> None:
    n = 2**40
    one, other = TileLayout(S[(n, n, 2) : (2 * n, 2, 1)]), TileLayout(S[(n, n, 2) : (2 * n + 1, 2, 1)])
    answer = one.equivalent(other)
    assert answer.witness == 2 * n
    assert one.equivalent(other, (n, 2 * n)).witness == (1, 0)
    assert one.equivalent(TileLayout(S[2 * n * n])).witness is None


def test_layouts_of_different_sizes() -> None:
    assert TileLayout(S[4]).equivalent(TileLayout(S[8])).witness == 4
    assert TileLayout(S[8]).equivalent(TileLayout(S[4])).witness == 4
    with pytest.raises(LayoutError, match=r"equivalent: shape \(8,\) has 8 elements, the layout has 4"):
        TileLayout(S[4]).equivalent(TileLayout(S[8]), 8)


def test_copies_that_no_canonical_form_shows() -> None:
    """0 1 3 4 6 7 and the sums of 0 3 with 0 1 3 4: one set, two ways to write it that leave no gaps to tell by."""
    assert TileLayout(S[4] + R[(3, 2) : (3, 1)]).equivalent(TileLayout(S[4] + R[(2, 2, 2) : (3, 3, 1)]))
    far = TileLayout(S[4] + R[(2, 2, 2) : (10, 7, 3)])
    assert far.equivalent(TileLayout(S[4] + R[(2, 2, 2) : (7, 3, -10)] + 10))
    assert not far.equivalent(TileLayout(S[4] + R[(2, 2, 2) : (11, 6, 3)]))


def copies(*iters: tuple[int, int]) -> TileLayout:
    return TileLayout.from_iters([Iter(4, 1)], [Iter(e, s) for e, s in iters])


def test_many_copies_are_compared_as_places() -> None:
    """Too many to list one by one here; the reference lists the sums axis by axis."""
    outcomes = set()
    for a, b in ((6, 15), (12, 20)):  # 11 steps of 900 are 9 of 1100, where there are as many
        one, other = [((90, 7), (e, 900), (f, 1100), (10, 10**6)) for e, f in ((a, b), (a + 11, b - 9))]
        sums = []
        for iters in (one, other):
            found = {0}
            for e, s in iters:
                found = {v + c * s for v in found for c in range(e)}
            sums.append(found)
        assert bool(copies(*one).equivalent(copies(*other))) == (sums[0] == sums[1])
        outcomes.add(sums[0] == sums[1])
    assert outcomes == {True, False}


def test_copies_that_are_too_many_to_compare_are_undecided() -> None:
    n = 2**30
    one, other = copies((n, 7), (n, 9), (n, 11)), copies((n + 9, 7), (n - 7, 9), (n, 11))
    with pytest.raises(Undecided, match="isn't found by listing"):
        one.equivalent(other)


def test_symbolic_layouts() -> None:
    import sympy

    n, k = sympy.symbols("n k", integer=True, positive=True)
    assert TileLayout(S[(n, k) : (k, 1)]).equivalent(TileLayout(S[n * k]))
    assert TileLayout(S[2 * (n + 1)] + (n + k) ** 2).equivalent(
        TileLayout(S[(n + 1, 2) : (2, 1)] + n**2 + 2 * n * k + k**2)
    )
    assert TileLayout(S[n]).equivalent(TileLayout(S[n] + 1)).witness == 0
    assert TileLayout(S[n + 1]).equivalent(TileLayout(S[n + 1 : 2])).witness == 1
    assert TileLayout(S[n]).equivalent(TileLayout(S[n + k])).witness == n
    for one, other in ((S[n], S[k]), (S[4:n], S[4:k]), (S[n:1], S[n : 1 @ laneid])):
        with pytest.raises(LayoutError, match="neither proved nor refuted"):
            TileLayout(one).equivalent(TileLayout(other))


def test_an_operand_that_is_no_layout() -> None:
    with pytest.raises(LayoutError, match="other must be a layout"):
        TileLayout(S[4]).equivalent("S[4]")
