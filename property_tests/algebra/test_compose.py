"""compose: ``A.compose(B)`` is i -> A(B(i)) at every index, returned exactly where a layout has that table."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import compacts, reference
from tilelayout import LayoutError, R, S, TileLayout, Undecided, laneid, m, warpid
from tilelayout.algebra import compose as module


def check(a: TileLayout, b: TileLayout, exact: bool = True) -> TileLayout | None:
    """The post-condition; `exact` also asks that nothing is refused that exists."""
    size = reference.size(a)
    indices = compacts.places(b)
    found = compacts.attempt(lambda: a.compose(b))
    if isinstance(found, LayoutError):
        if isinstance(found, Undecided):
            assert not exact, (a, b)
        elif 0 <= min(indices) and max(indices) < size:
            axes = sorted({str(it.axis) for it in a.shard})
            values = [tuple(reference.displacement(a, i).get(axis, 0) for axis in axes) for i in indices]
            assert not reference.greedy_is_layout(values), (a, b, found)
        else:
            assert "codomain of B exceeds the size of A" in str(found), (a, b)
        return None
    assert reference.size(found) == reference.size(b)
    assert reference.function(found) == [reference.owners(a, i) for i in indices], (a, b, found)
    assert found.shard == found.canonicalize().shard
    return found


def into(size: int, rng: Random) -> TileLayout:
    """A right side with values in [0, size), most of the time."""
    b = compacts.anything(rng, 16)
    low, high = min(compacts.places(b)), max(compacts.places(b))
    begin = rng.randint(0, size - 1 - (high - low)) if high - low < size else 0
    moved = b.offset.get(m, 0) - low + rng.choice((0, 0, begin))
    return TileLayout.from_iters(b.shard, (), {m: moved})


@compacts.by_count(800, (1, 2))
def test_random_pairs(count: int, seed: int) -> None:
    rng = Random(seed)
    outcomes = {True: 0, False: 0}
    for _ in range(count):
        a = compacts.anything(
            rng, rng.choice((24, 24, 48)), rng.choice(((m,), (m, laneid))), rng.random() < 0.3
        )
        outcomes[check(a, into(reference.size(a), rng)) is not None] += 1
    assert min(outcomes.values()) > count // 20, outcomes


def test_every_pair_of_small_compact_layouts() -> None:
    outcomes = [check(a, b) is not None for a, b in compacts.pairs(range(1, 13))]
    assert True in outcomes
    assert False in outcomes


@pytest.mark.slow
def test_every_pair_of_compact_layouts_with_gaps_axes_and_copies() -> None:
    rng = Random(3)
    for a, b in compacts.pairs(range(13, 25)):
        check(a, b)
        check(compacts.on_axes(compacts.with_gaps(a, rng), rng), b)
        spread = compacts.with_gaps(b, rng)
        room = max(compacts.places(spread)) + 1
        check(rng.choice(compacts.compact(min(48, room + rng.randint(0, 3)))), spread)


@given(strategies.layouts(max_size=48), st.data())
def test_any_layout_of_axes_and_copies_read_through_its_own_indices(
    a: TileLayout, data: st.DataObject
) -> None:
    """Huge strides, replicas and offsets of A; B has any strides that stay in range."""
    size = a.size()
    b = data.draw(
        strategies.layouts(
            max_size=12, max_rank=3, among=(m,), strides=(0, 1, 2, 3, 4, 6, -1, -2), replicated=False
        )
    )
    low = min(compacts.places(b)) - b.offset.get(m, 0)
    reach = max(compacts.places(b)) - b.offset.get(m, 0) - low
    begin = data.draw(st.integers(0, max(0, size - 1 - reach)))
    check(a, TileLayout.from_iters(b.shard, (), {m: begin - low}))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_found_without_listing_is_right_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With hardly any positions listed, most answers come from the strides alone; the rest are Undecided."""
    monkeypatch.setattr(module, "LIST_LIMIT", 1)
    rng = Random(seed)
    found = 0
    for _ in range(300):
        a = compacts.anything(rng, 48)
        found += check(a, into(reference.size(a), rng), exact=False) is not None
    assert found > 100


# --- named families ------------------------------------------------------------------------------------


def test_composing_with_the_identity_changes_nothing() -> None:
    for a in compacts.compact(24):
        assert a.compose(TileLayout(S[24])).equivalent(a)
        assert TileLayout(S[24]).compose(a).equivalent(a)


def test_composition_is_associative() -> None:
    rng, found = Random(4), 0
    for _ in range(500):
        a, b, c = (rng.choice(compacts.compact(size)) for size in (24, 12, 6))
        try:
            inner, outer = b.compose(c), a.compose(b)
        except LayoutError:
            continue
        left, right = check(a, inner), check(outer, c)
        assert left is None if right is None else right == left
        found += right is not None
    assert found > 10


def test_the_carry_is_seen_where_b_has_an_offset() -> None:
    a = TileLayout(S[(4, 4) : (100, 1)])
    assert a.compose(TileLayout(S[2:1] + 2)) == TileLayout(S[2:1] + 2)
    with pytest.raises(LayoutError, match="carry"):
        a.compose(TileLayout(S[3:1] + 2))
    assert a.compose(TileLayout(S[2:1] + 3)) == TileLayout(S[2:97] + 3)


def test_iters_of_b_that_cannot_be_taken_one_by_one() -> None:
    """0, 1, 2, 9, 10, 11 read through A is 0, 1, 5, 6, 10, 11: a layout of other extents than B's."""
    found = TileLayout(S[(2, 3, 2) : (0, 5, 1)]).compose(TileLayout(S[(2, 3) : (9, 1)]))
    assert found == TileLayout(S[(3, 2) : (5, 1)])


def test_a_step_over_several_digits() -> None:
    found = TileLayout(S[(8, 2, 4) : (97, 12, 3)]).compose(TileLayout(S[3:3]))
    assert found == TileLayout(S[3:9])


def test_backwards_and_broadcast_in_b() -> None:
    a = TileLayout(S[(4, 4) : (1 @ laneid, 1)])
    assert check(a, TileLayout(S[16:-1] + 15)) == TileLayout(S[(4, 4) : (-1 @ laneid, -1)] + 3 @ laneid + 3)
    assert check(a, TileLayout(S[(3, 4) : (0, 4)])) == TileLayout(S[(3, 4) : (0, 1 @ laneid)])


def test_axes_replica_and_offset_of_a_are_kept() -> None:
    a = TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid + 64)
    found = check(a, TileLayout(S[(4, 8) : (1, 4)]))
    assert found == TileLayout(S[(4, 8) : (1, 4 @ laneid)] + R[2 : 4 @ warpid] + 5 @ warpid + 64)


def test_huge_layouts_are_composed_by_their_strides() -> None:
    n = 2**40
    a = TileLayout(S[(n, n) : (1 @ laneid, 3)])
    assert a.compose(TileLayout(S[(n, n) : (1, n)])) == TileLayout(S[(n, n) : (3, 1 @ laneid)])
    assert a.compose(TileLayout(S[(n // 4, 2) : (4 * n, 1)])) == TileLayout(S[(n // 4, 2) : (4 @ laneid, 3)])


def test_a_huge_layout_with_a_small_part_that_carries() -> None:
    """What can't carry into the rest is composed alone, and only that much is listed."""
    n = 2**40
    a = TileLayout(S[(n, 2, 3, 2) : (7, 0, 5, 1)])
    found = a.compose(TileLayout(S[(n, 2, 3) : (12, 9, 1)]))
    assert found == TileLayout(S[(n, 3, 2) : (7, 5, 1)])
    turned = a.compose(TileLayout(S[(2, 3, n) : (9, 1, 12)]))
    assert turned == TileLayout(S[(3, 2, n) : (5, 1, 7)])


def test_a_huge_carry_is_refused_or_undecided_and_never_guessed() -> None:
    a = TileLayout(S[(2**40, 3, 2**20) : (5, 2**50, 1)])
    with pytest.raises(LayoutError, match="no layout has the positions"):
        TileLayout(S[(2**40, 5) : (7, 1)]).compose(TileLayout(S[2**30 : 2]))
    with pytest.raises(Undecided, match="too many to list"):
        a.compose(TileLayout(S[(2**20, 2**19) : (2**19 + 1, 1)]))


# --- refusals --------------------------------------------------------------------------------------------


def test_values_of_b_outside_a() -> None:
    with pytest.raises(
        LayoutError, match=r"codomain of B exceeds the size of A: B reaches from 0 to 6, A has 6"
    ):
        TileLayout(S[6]).compose(TileLayout(S[7]))
    with pytest.raises(LayoutError, match=r"B reaches from -1 to 2"):
        TileLayout(S[6]).compose(TileLayout(S[4:1] - 1))


def test_b_on_another_axis_or_with_a_replica() -> None:
    a = TileLayout(S[8])
    with pytest.raises(LayoutError, match="B moves on laneid"):
        a.compose(TileLayout(S[4 : 1 @ laneid]))
    with pytest.raises(LayoutError, match="B has an offset on warpid"):
        a.compose(TileLayout(S[4] + 1 @ warpid))
    with pytest.raises(LayoutError, match="B has a replica"):
        a.compose(TileLayout(S[4] + R[2:4]))
    assert a.compose(TileLayout(S[4] + R[2:0])) == TileLayout(S[4])
    assert a.compose(TileLayout(S[(4, 1) : (1, 1 @ laneid)])) == TileLayout(S[4])


def test_an_operand_that_is_no_layout() -> None:
    with pytest.raises(LayoutError, match="other must be a TileLayout, got int 3"):
        TileLayout(S[8]).compose(3)
