"""The products: every copy where no other is, in the order that the second layout says."""

from __future__ import annotations

from math import prod
from random import Random

import pytest

from property_tests.algebra import compacts, reference
from property_tests.algebra.filling import free
from tilelayout import LayoutError, R, S, TileLayout, laneid


def check(a: TileLayout, b: TileLayout) -> bool:
    places, numbers = compacts.places(a), compacts.places(b)
    found = compacts.attempt(lambda: a.logical_product(b))
    if isinstance(found, LayoutError):
        offsets = (
            free(places, max(numbers) + 1) if len(set(places)) == len(places) and min(numbers) >= 0 else None
        )
        if offsets is not None or not any(numbers):
            offsets = offsets or [0]
            assert not reference.greedy_is_layout([(offsets[j],) for j in numbers]), (a, b, found)
        return False
    layout, shape = found
    offsets = free(places, max(numbers) + 1) if max(numbers) else [0]
    assert offsets is not None, (a, b)
    assert shape == (len(numbers), len(places))
    assert reference.size(layout) == prod(shape)
    assert compacts.places(layout) == [offsets[j] + p for j in numbers for p in places], (a, b, layout)
    return True


@compacts.by_size(8, 24)
def test_every_pair_of_compact_layouts_with_gaps(sizes: range, seed: int) -> None:
    rng = Random(seed)
    for size in sizes:
        for a in compacts.compact(size):
            for copies in range(1, 7):
                for b in compacts.compact(copies):
                    assert check(a, b)
                    check(compacts.with_gaps(a, rng), b)
                    check(compacts.with_gaps(a, rng), compacts.with_gaps(b, rng))


@compacts.by_count(600)
def test_random_products(count: int, seed: int) -> None:
    rng = Random(seed)
    done = sum(check(compacts.anything(rng, 12), compacts.anything(rng, 8)) for _ in range(count))
    assert done > count // 20


def test_a_number_is_that_many_copies() -> None:
    a = TileLayout(S[(2, 2) : (1, 4)])
    assert a.logical_product(4) == a.logical_product(TileLayout(S[4]))
    assert a.logical_product(1).layout == TileLayout(S[(1, 2, 2) : (0, 1, 4)])


def check_by_dimension(
    a: TileLayout, b: TileLayout, a_shape: tuple[int, ...], b_shape: tuple[int, ...]
) -> bool:
    """Element x of copy y is at y * n + x in each dimension of the blocked product, at x * k + y of the raked one."""
    try:
        found = a.blocked_product(b, a_shape, b_shape), a.raked_product(b, a_shape, b_shape)
    except LayoutError:
        return False
    whole, _ = a.logical_product(b)
    for (layout, shape), raked in zip(found, (False, True), strict=True):
        assert shape == tuple([n * k for n, k in zip(a_shape, b_shape, strict=True)])
        for y in reference.coordinates(b_shape):
            for x in reference.coordinates(a_shape):
                index = [
                    xd * k + yd if raked else yd * n + xd
                    for xd, yd, n, k in zip(x, y, a_shape, b_shape, strict=True)
                ]
                flat = reference.flatten(y, b_shape) * prod(a_shape) + reference.flatten(x, a_shape)
                assert reference.displacement(
                    layout, reference.flatten(index, shape)
                ) == reference.displacement(whole, flat), (a, b, raked)
    return True


def test_blocked_and_raked_products() -> None:
    rng = Random(5)
    done = 0
    for _ in range(300):
        a_shape, b_shape = (tuple([rng.randint(1, 4) for _ in range(2)]) for _ in range(2))
        a, b = (compacts.with_gaps(rng.choice(compacts.compact(prod(s))), rng) for s in (a_shape, b_shape))
        done += check_by_dimension(a, b, a_shape, b_shape)
    assert done > 30


def test_the_shapes_of_products_are_the_iters_where_they_arent_given() -> None:
    a, b = TileLayout(S[(5, 2) : (1, 5)]), TileLayout(S[(4, 3) : (3, 1)])
    assert a.blocked_product(b) == a.blocked_product(b, (5, 2), (4, 3))
    with pytest.raises(LayoutError, match=r"A's shape \(5, 2\) and B's shape \(12,\) differ in rank"):
        a.blocked_product(12)
    assert a.blocked_product(12, other_shape=(4, 3)).shape == (20, 6)


def test_huge_layouts() -> None:
    n = 2**40
    layout, shape = TileLayout(S[(n, n) : (4 * n, 2)]).logical_product(
        TileLayout(S[(2, 2, 2, n) : (n, 1, 2, 8)])
    )
    assert shape == (8 * n, n * n)
    assert layout.group((2, 2, 2, n, n, n))[0].shard[1].stride == 1


def test_refusals_name_the_rule() -> None:
    with pytest.raises(LayoutError, match="logical_product: the strides don't nest"):
        TileLayout(S[(2, 3) : (3, 2)]).logical_product(2)
    with pytest.raises(LayoutError, match=r"logical_product: not injective.*remedy: make it a replica"):
        TileLayout(S[4:0]).logical_product(2)
    with pytest.raises(LayoutError, match="moves on laneid"):
        TileLayout(S[4 : 1 @ laneid]).logical_product(2)
    with pytest.raises(LayoutError, match="replica"):
        TileLayout(S[4] + R[2:4]).logical_product(2)
    with pytest.raises(LayoutError, match="number of copies"):
        TileLayout(S[4]).logical_product(0)
    with pytest.raises(LayoutError, match="codomain of B"):
        TileLayout(S[4]).logical_product(TileLayout(S[2] - 1))
    with pytest.raises(LayoutError, match="B is negative"):
        TileLayout(S[4]).logical_product(TileLayout(S[2] - 7))
