"""The canonical replica: the same set of copies, one form where strides leave gaps."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference
from tilelayout import Iter, R, S, TileLayout, laneid, m, warpid


def copies(layout: TileLayout) -> frozenset:
    return reference.owners(layout, 0)


@given(strategies.replicas(max_copies=24, max_rank=4), strategies.offsets())
def test_the_set_of_copies_stays(replica: tuple[Iter, ...], offset: dict) -> None:
    layout = TileLayout.from_iters([(2, 1)], replica, offset)
    canonical = layout.canonicalize()
    assert reference.function(canonical) == reference.function(layout)
    assert canonical.canonicalize() == canonical


@given(strategies.replicas(max_copies=24, max_rank=4))
def test_canonical_strides_are_positive_and_nothing_is_left_to_drop(replica: tuple[Iter, ...]) -> None:
    found = TileLayout.from_iters([(2, 1)], replica).canonicalize().replica
    assert all(it.extent > 1 and it.stride > 0 for it in found)


SMALL = [Iter(e, s, a) for e, s, a in product((1, 2, 3), (-3, -2, -1, 0, 1, 2, 3, 4), (m, laneid))]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_every_small_replica(count: int) -> None:
    for replica in product(SMALL, repeat=count):
        layout = TileLayout.from_iters([(1, 0)], replica, {m: 5})
        assert copies(layout.canonicalize()) == copies(layout)


def has_gaps(replica: tuple[Iter, ...]) -> bool:
    """The paper's condition: on an axis, extent * stride of one stays below the stride of the next."""
    for axis in {it.axis for it in replica}:
        rising = sorted((it.stride, it.extent) for it in replica if it.axis is axis)
        if any(s * e >= following for (s, e), (following, _) in pairwise(rising)):
            return False
    return True


def test_equal_sets_have_equal_forms_where_there_are_gaps() -> None:
    forms: dict[frozenset, set] = {}
    for replica in product(SMALL, repeat=2):
        canonical = TileLayout.from_iters([(1, 0)], replica).canonicalize()
        if has_gaps(canonical.replica):
            forms.setdefault(copies(canonical), set()).add(canonical)
    assert len(forms) > 100
    assert [found for found in forms.values() if len(found) > 1] == []


@given(strategies.replicas(max_copies=24, max_rank=4), st.data())
def test_the_order_of_replica_iters_is_of_no_account(replica: tuple[Iter, ...], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(replica))
    one, other = (TileLayout.from_iters([(2, 1)], r).canonicalize() for r in (replica, shuffled))
    assume(has_gaps(one.replica))
    assert one == other


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        (S[1:0] + R[4 : -2 @ warpid], S[1:0] + R[4 : 2 @ warpid] + (-6) @ warpid),
        (S[1:0] + R[4 : -2 @ warpid] + 6 @ warpid, S[1:0] + R[4 : 2 @ warpid]),
        (S[1:0] + R[(2, 4) : (4, 1)], S[1:0] + R[8:1]),
        (S[1:0] + R[(4, 2) : (1, 4)], S[1:0] + R[8:1]),
        (S[1:0] + R[(2, 2) : (1, 1)], S[1:0] + R[3:1]),
        (S[1:0] + R[(4, 2) : (1, 2)], S[1:0] + R[6:1]),
        (S[1:0] + R[(4, 2) : (1, 5)], S[1:0] + R[(4, 2) : (1, 5)]),
        (S[1:0] + R[(2, 2) : (2, 3)], S[1:0] + R[(2, 2) : (2, 3)]),
        (S[1:0] + R[(2, 2) : (1, -1)], S[1:0] + R[3:1] - 1),
        (S[1:0] + R[(5, 1) : (0, 9 @ laneid)], S[1:0]),
        (S[1:0] + R[(2, 2) : (1 @ warpid, 1 @ laneid)], S[1:0] + R[(2, 2) : (1 @ laneid, 1 @ warpid)]),
    ],
)
def test_named_forms(written: object, canonical: object) -> None:
    assert TileLayout(written).canonicalize() == TileLayout(canonical)


def test_many_iters_that_do_not_merge_are_no_burden() -> None:
    """A thousand strides without a common one, then a thousand that merge one by one."""
    apart = [(2, 3**k, laneid) for k in range(1000)]
    assert len(TileLayout.from_iters([(1, 0)], apart).canonicalize().replica) == 1000
    chain = [(2, 2**k, laneid) for k in range(1000)]
    merged = TileLayout.from_iters([(1, 0)], apart[1:] + chain).canonicalize().replica
    assert merged[0].stride == 1
