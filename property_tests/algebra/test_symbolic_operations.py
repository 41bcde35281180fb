"""Random symbolic layouts, shapes and bounds: what isn't refused is right, whatever numbers are put in."""

from __future__ import annotations

from math import prod

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from property_tests.algebra import reference
from property_tests.algebra.test_symbols import VALUES, K, N, Q, at, number
from tilelayout import Iter, LayoutError, TileLayout, laneid, m

EXTENTS = [1, 2, 3, 4, N, 2 * N, 4 * N, Q, N * Q, N + 1, 2 * N + 2]
STRIDES = [0, 1, 2, 4, -1, K, N, 2 * N, -Q, N * Q, 4 * Q, N + 1]
BOUNDS = [0, 1, 2, 3, 4, 8, N, 2 * N, Q, N + 1, N - 1, N * Q, 4 * N, N + Q, K, Q - 1]


@st.composite
def symbolic_layouts(draw: st.DrawFn) -> TileLayout:
    """Every other neighbor counts on through the wrap, so that there is something to prove."""
    iters: list[Iter] = []
    for _ in range(draw(st.integers(1, 3))):
        extent = draw(st.sampled_from(EXTENTS))
        if iters and draw(st.booleans()):
            iters.append(Iter(extent, iters[-1].extent * iters[-1].stride, iters[-1].axis))
        else:
            iters.append(Iter(extent, draw(st.sampled_from(STRIDES)), draw(st.sampled_from([m, laneid]))))
    offset = draw(st.dictionaries(st.sampled_from([m, laneid]), st.sampled_from(STRIDES), max_size=2))
    return TileLayout.from_iters(reversed(iters), (), offset)


@st.composite
def symbolic_shapes(draw: st.DrawFn, layout: TileLayout) -> list:
    """The layout's extents, joined here and there, factors taken apart, multiplied out or not, sometimes shuffled."""
    shape: list = []
    for it in layout.shard:
        factors = sympy.Mul.make_args(sympy.factor(it.extent)) if draw(st.booleans()) else [it.extent]
        for factor in factors:
            if shape and draw(st.booleans()):
                shape[-1] = draw(st.sampled_from([sympy.expand, sympy.factor]))(shape[-1] * factor)
            else:
                shape.append(factor)
    if draw(st.integers(0, 3)) == 3:
        shape = draw(st.permutations(shape))
    return shape


@given(symbolic_layouts(), st.data())
def test_groups(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(symbolic_shapes(layout))
    try:
        grouped, seps = layout.group(shape)
    except LayoutError:
        return
    for values in VALUES[::5]:
        concrete = at(grouped, values)
        assert reference.function(concrete) == reference.function(at(layout, values))
        for d, n in enumerate(shape):
            assert prod(it.extent for it in concrete.shard[seps[d] : seps[d + 1]]) == number(n, values)


@pytest.mark.parametrize("rank", [1, 2])
@settings(max_examples=150)
@given(layout=symbolic_layouts(), data=st.data())
def test_slices(rank: int, layout: TileLayout, data: st.DataObject) -> None:
    """Where the bounds lie in the shape: what is returned is right there."""
    shape = data.draw(symbolic_shapes(layout))
    while len(shape) > rank:
        last = shape.pop()
        shape[-1] = shape[-1] * last
    region = []
    for n in shape:
        begin = data.draw(st.sampled_from(BOUNDS))
        region.append(
            data.draw(st.sampled_from([(0, n), (begin, begin + data.draw(st.sampled_from(BOUNDS[1:])))]))
        )
    try:
        found = layout.slice(shape, region)
    except LayoutError:
        return
    for values in VALUES[::5]:
        numbers = [number(n, values) for n in shape]
        bounds = [(number(b, values), number(e, values)) for b, e in region]
        assert all(0 <= b < e <= n for (b, e), n in zip(bounds, numbers, strict=True)), "proved, so true"
        concrete = at(layout, values)
        expected = [reference.owners(concrete, flat) for flat in reference.box(numbers, bounds)]
        assert reference.function(at(found, values)) == expected


@given(symbolic_layouts(), st.sampled_from([2, 3, 4, N, Q, 2 * N]))
def test_packs(layout: TileLayout, n: object) -> None:
    try:
        found = layout.pack(n)
    except LayoutError:
        return
    for values in VALUES[::5]:
        concrete = at(layout, values)
        width = number(n, values)
        wide = at(found, values).unpack(width)
        assert reference.function(wide) == reference.function(concrete)


@given(symbolic_layouts())
def test_canonical_forms(layout: TileLayout) -> None:
    canonical = layout.canonicalize()
    assert canonical.canonicalize() == canonical
    for values in VALUES[::5]:
        assert reference.function(at(canonical, values)) == reference.function(at(layout, values))
