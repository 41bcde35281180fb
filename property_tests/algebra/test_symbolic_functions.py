"""Functions of symbolic layouts: what isn't refused is right, whatever numbers are put in."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests.algebra import compacts, reference
from property_tests.algebra.test_symbolic_operations import symbolic_layouts
from property_tests.algebra.test_symbols import VALUES, N, Q, at, number
from tilelayout import LayoutError, R, S, TileLayout, laneid, m, warpid

K = sympy.Symbol("k", integer=True, positive=True)


def refused(ask: Any) -> Any:
    try:
        return ask()
    except LayoutError:
        return None


def nested(extents: list[Any], gaps: list[Any], order: list[int]) -> TileLayout:
    """Digits of these extents with these gaps below them, in that order."""
    filled: Any = 1
    iters = []
    for extent, gap in zip(extents, gaps, strict=True):
        iters.append((extent, filled * gap, m))
        filled = filled * gap * extent
    return TileLayout.from_iters([iters[k] for k in order])


FACTORS = st.sampled_from([1, 2, 4, N, Q, 2 * N, N + 1])


@st.composite
def nested_layouts(draw: st.DrawFn, gaps: bool = True) -> TileLayout:
    rank = draw(st.integers(1, 3))
    extents = [draw(FACTORS) for _ in range(rank)]
    between = [draw(FACTORS) if gaps else 1 for _ in range(rank)]
    return nested(extents, between, draw(st.permutations(range(rank))))


def small(*layouts: TileLayout, values: dict) -> bool:
    return all(reference.size(at(x, values)) <= 200 for x in layouts)


@given(symbolic_layouts(), symbolic_layouts())
def test_compositions(a: TileLayout, b: TileLayout) -> None:
    found = refused(lambda: a.compose(b))
    if found is None:
        return
    for values in VALUES[::5]:
        if small(a, b, values=values):
            left, right = at(a, values), at(b, values)
            expected = [reference.owners(left, i) for i in compacts.places(right)]
            assert reference.function(at(found, values)) == expected


@given(nested_layouts(gaps=False), nested_layouts())
def test_compositions_of_nested_layouts(a: TileLayout, b: TileLayout) -> None:
    test_compositions.hypothesis.inner_test(a, b)


@given(nested_layouts(), FACTORS)
def test_complements_and_left_inverses_of_nested_layouts(a: TileLayout, times: Any) -> None:
    top = max(a.shard, key=lambda it: number(it.stride * it.extent, VALUES[3]))
    cosize = top.stride * top.extent * times
    complement, inverse = refused(lambda: a.complement(cosize)), refused(a.left_inverse)
    for values in VALUES[::5]:
        if not small(a, values=values) or number(cosize, values) > 2000:
            continue
        places = compacts.places(at(a, values))
        if complement is not None:
            more = compacts.places(at(complement, values))
            assert sorted(x + y for x in places for y in more) == list(range(number(cosize, values)))
        if inverse is not None:
            read = compacts.places(at(inverse, values))
            assert [read[p] for p in places] == list(range(len(places)))


@given(nested_layouts(gaps=False))
def test_inverses_of_nested_layouts(a: TileLayout) -> None:
    for found in (refused(a.inverse), refused(a.right_inverse)):
        for values in VALUES[::5]:
            if found is not None and small(a, values=values):
                places = compacts.places(at(a, values))
                assert [places[i] for i in compacts.places(at(found, values))] == list(range(len(places)))


def test_most_nested_layouts_are_proved() -> None:
    """Whatever is refused above must be the exception."""
    outcomes: Counter[tuple[str, bool]] = Counter()
    for extents in ([4, N], [N, Q], [2, N + 1, Q], [2 * N, 2], [N, 2, Q]):
        for gaps in ([1] * 3, [2, N, Q], [1, 2, 1], [N + 1, 1, 2]):
            for order in ([0, 1, 2], [1, 0, 2], [2, 0, 1]):
                between = gaps[: len(extents)]
                a = nested(extents, between, [k for k in order if k < len(extents)])
                cosize = sympy.prod([*extents, *between, 3])
                outcomes["complement", refused(lambda a=a, n=cosize: a.complement(n)) is not None] += 1
                outcomes["left_inverse", refused(a.left_inverse) is not None] += 1
                outcomes["injective", refused(a.is_injective) is not None] += 1
                if between == [1] * len(extents):
                    outcomes["inverse", refused(a.inverse) is not None] += 1
                    outcomes["bijective", refused(a.is_bijective) is not None] += 1
    assert {name for name, proved in outcomes if not proved} == set(), outcomes


def test_a_composition_with_symbols() -> None:
    a = TileLayout(S[(N, 4, K) : (1 @ laneid, K, 1)] + R[2 : 1 @ warpid] + 5)
    found = a.compose(TileLayout(S[(K, 4, N) : (1, K, 4 * K)]))
    assert found == TileLayout(S[(K, 4, N) : (1, K, 1 @ laneid)] + R[2 : 1 @ warpid] + 5).canonicalize()
    with pytest.raises(LayoutError, match=r"not proved that the codomain of B lies within the size of A"):
        a.compose(TileLayout(S[Q]))
    with pytest.raises(LayoutError, match=r"not proved (how|that B doesn't carry)"):
        TileLayout(S[(N, 2 * Q) : (1, N)]).compose(TileLayout(S[N:Q]))


def test_a_composition_begun_inside() -> None:
    a = TileLayout(S[(N, 4) : (1 @ laneid, 7)])
    found = a.compose(TileLayout(S[N:4] + 3))
    assert found == TileLayout(S[N : 1 @ laneid] + 21)


def test_divides_and_products_with_symbols() -> None:
    a = TileLayout(S[(8 * N, 4 * K) : (4 * K, 1)])
    divided = a.flat_divide((8, 4), (8 * N, 4 * K))
    assert divided.shape == (N, K, 8, 4)
    assert divided.layout == TileLayout(S[(N, K, 8, 4) : (32 * K, 4, 4 * K, 1)])
    strided = TileLayout(S[16 * N]).logical_divide(TileLayout(S[8 : 2 * N]))
    assert strided.layout.equivalent(TileLayout(S[(2 * N, 8) : (1, 2 * N)]))
    with pytest.raises(LayoutError, match="the tile of 8 does not divide n"):
        TileLayout(S[N]).logical_divide(8)
    product = TileLayout(S[N:2]).logical_product(2)
    assert product.layout == TileLayout(S[(2, N) : (1, 2)])
    assert TileLayout(S[4]).logical_product(N).layout == TileLayout(S[(N, 4) : (4, 1)])
    blocked = TileLayout(S[(2, N) : (N, 1)]).blocked_product(TileLayout(S[(K, 3) : (3, 1)]))
    assert blocked.layout == TileLayout(S[(K, 2, 3, N) : (6 * N, N, 2 * N, 1)])


def test_what_is_not_proved_is_refused_with_what_is_missing() -> None:
    with pytest.raises(LayoutError, match=r"the strides don't nest: 4 is not proved to divide the stride n"):
        TileLayout(S[(2, 4) : (N, 1)]).complement(8 * N)
    with pytest.raises(LayoutError, match=r"takes n places, which is not proved to divide the cosize 8"):
        TileLayout(S[N]).complement(8)
    with pytest.raises(LayoutError, match="not proved to be a multiple of extent times stride"):
        TileLayout(S[(2, 4) : (N, 1)]).left_inverse()
    with pytest.raises(LayoutError, match="depends on symbols"):
        TileLayout(S[(2, 4) : (N, 1)]).right_inverse()
    with pytest.raises(LayoutError, match="should be 1"):
        TileLayout(S[4:N]).inverse()
    z = sympy.Symbol("z", integer=True, nonnegative=True)
    for ask in (TileLayout(S[4:z]).left_inverse, lambda: TileLayout(S[4:z]).complement(4 * z + 4)):
        with pytest.raises(LayoutError, match="the sign of stride z is not known"):
            ask()


def test_compose_names_only_what_is_not_proved() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    with pytest.raises(LayoutError, match=r"that n - 1 < 8 \(remedy: .*assuming=n <= 8\)"):
        TileLayout(S[8]).compose(TileLayout(S[n]))
