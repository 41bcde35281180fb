"""tile by the definition of the Axe paper, and tile_to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference
from tilelayout import LayoutError, R, S, TileLayout, laneid, m, warpid


def spans(layout: TileLayout) -> dict[str, int]:
    """max - min + 1 per axis over all owners: a shift leaves it as it is, so the offset doesn't count."""
    places = [dict(o) for owners in reference.function(layout) for o in owners]
    axes = {axis for place in places for axis in place}
    values = {axis: [place.get(axis, 0) for place in places] for axis in axes}
    return {axis: max(v) - min(v) + 1 for axis, v in values.items()}


def check_tiled(
    inner: TileLayout, outer: TileLayout, outer_shape: tuple, inner_shape: tuple, found: TileLayout
) -> None:
    """``f(x || y) = f_outer(x) * span_inner + f_inner(y)``, owners taken with owners."""
    span = spans(inner)
    shape = [x * y for x, y in zip(outer_shape, inner_shape, strict=True)]
    assert reference.size(found) == reference.size(inner) * reference.size(outer)
    for flat, coord in enumerate(reference.coordinates(shape)):
        x = reference.flatten([c // n for c, n in zip(coord, inner_shape, strict=True)], outer_shape)
        y = reference.flatten([c % n for c, n in zip(coord, inner_shape, strict=True)], inner_shape)
        expected = set()
        for a in reference.owners(outer, x):
            for b in reference.owners(inner, y):
                place = dict(b)
                for axis, value in a:
                    place[axis] = place.get(axis, 0) + value * span.get(axis, 1)
                expected.add(reference.place(place))
        assert reference.owners(found, flat) == expected


PARTS = strategies.layouts(max_size=12, max_rank=3)


@st.composite
def tilings(draw: st.DrawFn) -> tuple[TileLayout, TileLayout, tuple[int, ...], tuple[int, ...]]:
    inner, outer = draw(PARTS), draw(PARTS)
    rank = draw(st.integers(1, 3))
    shapes = [
        draw(strategies.fitting_shapes([it.extent for it in part.shard], rank)) for part in (inner, outer)
    ]
    return inner, outer, shapes[1], shapes[0]


@given(tilings())
def test_the_definition_holds_at_every_coordinate(drawn: tuple) -> None:
    """Offsets, replicas, negative and huge strides on both sides."""
    inner, outer, outer_shape, inner_shape = drawn
    check_tiled(inner, outer, outer_shape, inner_shape, inner.tile(outer, outer_shape, inner_shape))


@given(PARTS, PARTS, st.data())
def test_any_shapes_are_tiled_or_refused(inner: TileLayout, outer: TileLayout, data: st.DataObject) -> None:
    outer_shape = data.draw(strategies.factorizations(reference.size(outer)))
    inner_shape = data.draw(strategies.factorizations(reference.size(inner)))
    try:
        found = inner.tile(outer, outer_shape, inner_shape)
    except LayoutError:
        return
    check_tiled(inner, outer, outer_shape, inner_shape, found)


@given(strategies.layouts(max_size=12, max_rank=3), st.data())
def test_tile_to_is_tile_with_row_major_copies(layout: TileLayout, data: st.DataObject) -> None:
    current = data.draw(
        strategies.fitting_shapes([it.extent for it in layout.shard], data.draw(st.integers(1, 3)))
    )
    counts = tuple(data.draw(st.integers(1, 3)) for _ in current)
    target = tuple(c * n for c, n in zip(counts, current, strict=True))
    found = layout.tile_to(target, current)
    outer = TileLayout(S[counts])
    assert found == layout.tile(outer, counts, current)
    check_tiled(layout, outer, counts, current, found)


@given(strategies.layouts(max_size=12, max_rank=3), st.data())
def test_tile_to_refuses_exactly_what_does_not_divide(layout: TileLayout, data: st.DataObject) -> None:
    current = data.draw(strategies.fitting_shapes([it.extent for it in layout.shard], 2))
    target = tuple(data.draw(st.integers(1, 12)) for _ in current)
    if all(t % c == 0 for t, c in zip(target, current, strict=True)):
        layout.tile_to(target, current)
        return
    with pytest.raises(LayoutError, match=r"tile_to: dimension \d: \d+ does not divide \d+"):
        layout.tile_to(target, current)


def test_offset_and_replica_of_the_outer_are_scaled_those_of_the_inner_are_not() -> None:
    inner = TileLayout(S[4:1] + R[2:4] + 3)  # span 8 on m
    outer = TileLayout(S[2:1] + R[2:10] + 100)
    assert inner.tile(outer, (2,), (4,)) == TileLayout(S[(2, 4) : (8, 1)] + R[(2, 2) : (80, 4)] + 803)


def test_the_span_of_a_negative_stride_counts_its_distance() -> None:
    inner = TileLayout(S[4:-2])
    assert inner.tile(TileLayout(S[3:1]), (3,), (4,)) == TileLayout(S[(3, 4) : (7, -2)])


def test_axes_are_scaled_each_by_its_own_span() -> None:
    inner = TileLayout(S[(8, 4) : (4 @ laneid, 1)])
    outer = TileLayout(S[(2, 2) : (1 @ warpid, 1)])
    found = inner.tile(outer, (2, 2), (8, 4))
    assert found == TileLayout(S[(2, 8, 2, 4) : (1 @ warpid, 4 @ laneid, 4, 1)])


def test_offsets_that_cancel_are_dropped() -> None:
    assert TileLayout(S[4] - 4).tile(TileLayout(S[2] + 1), (2,), (4,)).offset == {}
    assert dict(TileLayout(S[4] - 4).tile(TileLayout(S[2] + 2), (2,), (4,)).offset) == {m: 4}


@pytest.mark.parametrize(
    ("outer", "outer_shape", "inner_shape", "word"),
    [
        (TileLayout(S[2]), (2,), (2, 2), "differ in rank"),
        (TileLayout(S[2]), (3,), (4,), "3 elements"),
        (TileLayout(S[2]), (2,), (5,), "5 elements"),
        (TileLayout(S[(2, 3) : (9, 1)]), (3, 2), (2, 2), "unevenly"),
        (S[2], (2,), (4,), "must be a TileLayout"),
        (None, (2,), (4,), "must be a TileLayout"),
        ("S[2]", (2,), (4,), "must be a TileLayout"),
        (TileLayout(S[2]), (0,), (4,), "at least 1"),
        (TileLayout(S[2]), (2.0,), (4,), "integer"),
        (TileLayout(S[2]), {2}, (4,), "order"),
    ],
)
def test_bad_tilings_are_refused(outer: object, outer_shape: object, inner_shape: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word) as caught:
        TileLayout(S[4]).tile(outer, outer_shape, inner_shape)
    assert caught.value.operation == "tile"


@pytest.mark.parametrize(
    ("target", "current", "word"),
    [
        ((8,), (2, 2), "differ in rank"),
        ((2,), (4,), "4 does not divide 2"),
        ((8,), (5,), "5 does not divide 8"),
        ((10,), (5,), "5 elements"),
        ((0,), (4,), "at least 1"),
        ((8.0,), (4,), "integer"),
    ],
)
def test_bad_targets_are_refused(target: object, current: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word) as caught:
        TileLayout(S[4]).tile_to(target, current)
    assert caught.value.operation == "tile_to"


def test_dimensions_are_joined_where_the_other_side_counts_one() -> None:
    inner = TileLayout(S[(4, 3) : (1, 5)])
    for to in ((6, 2), (12, 2), (30, 2)):
        check_tiled(inner, TileLayout(S[to[0] // 6]), (to[0] // 6, 1), (6, 2), inner.tile_to(to, (6, 2)))
    outer = TileLayout(S[(4, 3) : (1 @ laneid, 5 @ laneid)] + R[2 : 4 @ warpid] + 3)
    part = TileLayout(S[(5, 2) : (-2, 1 @ laneid)])
    check_tiled(part, outer, (6, 2), (1, 10), part.tile(outer, (6, 2), (1, 10)))
    check_tiled(part, outer, (2, 6, 1), (1, 5, 2), part.tile(outer, (2, 6, 1), (1, 5, 2)))
    assert "joined" in str(inner.explain("tile_to", (12, 2), (6, 2)))


@pytest.mark.parametrize(
    ("ask", "side"),
    [
        (lambda x: x.tile_to((6, 4), (6, 2)), "the inner layout"),
        (lambda x: TileLayout(S[4]).tile(x, (6, 2), (2, 2)), "the outer layout"),
        (lambda x: TileLayout(S[4]).direct_sum(x, (6, 2), (2, 2)), "the left layout"),
        (lambda x: x.logical_divide((3, 2), (6, 2)), ""),
    ],
)
def test_shapes_that_cut_an_iter_are_refused_by_name(ask: object, side: str) -> None:
    with pytest.raises(LayoutError, match=f"{side}.*cuts an iter .* takes shapes that cut no iter"):
        ask(TileLayout(S[(4, 3) : (1, 5)]))  # type: ignore[operator]
