"""broadcast, select, project and join: layouts by their axes."""

from __future__ import annotations

from itertools import product

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import enumerations, reference
from property_tests.algebra.refusals import check_refusal
from tilelayout import LayoutError, P, R, S, TileLayout, laneid, m, warpid

SOME_AXES = st.lists(strategies.axes(), min_size=1, max_size=3)


def only(place: reference.Place, axes: list) -> reference.Place:
    return frozenset((a, v) for a, v in place if a in axes)


@given(strategies.layouts(), st.integers(1, 5), st.data())
def test_broadcast_adds_a_dimension_that_moves_nothing(
    layout: TileLayout, num: int, data: st.DataObject
) -> None:
    rank = len(layout.shard)
    position = data.draw(st.integers(-rank - 1, rank))
    found = layout.broadcast(num, position, data.draw(strategies.axes()))
    extents = [it.extent for it in layout.shard]
    at = position if position >= 0 else rank + 1 + position
    for flat, coord in enumerate(reference.coordinates([*extents[:at], num, *extents[at:]])):
        before = reference.flatten([*coord[:at], *coord[at + 1 :]], extents)
        assert reference.owners(found, flat) == reference.owners(layout, before)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((0,), "at least 1"),
        ((2.0,), "integer"),
        ((2, 3), "outside the 3 places"),
        ((2, -4), "outside the 3 places"),
        ((2, None), "integer"),
        ((2, 0, "lanid"), "did you mean 'laneid'"),
    ],
)
def test_bad_broadcasts_are_refused(arguments: tuple, word: str) -> None:
    with pytest.raises(LayoutError, match=word):
        TileLayout(S[2, 3]).broadcast(*arguments)


@given(strategies.layouts(), SOME_AXES)
def test_project_forgets_the_other_axes(layout: TileLayout, axes: list) -> None:
    found = layout.project(*axes)
    assert [it.extent for it in found.shard] == [it.extent for it in layout.shard]
    assert reference.function(found) == [
        frozenset(only(place, axes) for place in owners) for owners in reference.function(layout)
    ]


@given(strategies.layouts(), SOME_AXES)
def test_select_is_the_part_where_the_other_iters_are_at_0(layout: TileLayout, axes: list) -> None:
    found = layout.select(*axes)
    kept = [it.axis in axes for it in layout.shard]
    extents = [it.extent if keep else 1 for it, keep in zip(layout.shard, kept, strict=True)]
    assert [it.extent for it in found.shard] == extents
    for flat, coord in enumerate(reference.coordinates(extents)):
        whole = reference.flatten(coord, [it.extent for it in layout.shard])
        assert reference.owners(found, flat) == {only(p, axes) for p in reference.owners(layout, whole)}


@pytest.mark.parametrize("method", ["select", "project"])
def test_axes_are_named(method: str) -> None:
    with pytest.raises(LayoutError, match="takes the axes to keep"):
        getattr(TileLayout(S[4]), method)()
    with pytest.raises(LayoutError, match="did you mean 'laneid'"):
        getattr(TileLayout(S[4]), method)("lanid")


def together(layouts: list[TileLayout]) -> list[frozenset]:
    """Every choice of one owner from each, at every index."""
    functions = [reference.function(layout) for layout in layouts]
    return [
        frozenset(frozenset().union(*choice) for choice in product(*owners))
        for owners in zip(*functions, strict=True)
    ]


@given(strategies.layouts(max_rank=4), st.permutations([m, laneid, warpid, P]), st.integers(1, 3))
def test_projections_join_to_what_they_came_from(layout: TileLayout, axes: list, cut: int) -> None:
    """Where the axes are all there are, and the replica is a product of what its axes have."""
    layout = layout.project(*axes)
    parts = [layout.project(*axes[:cut]), layout.project(*axes[cut:])]
    found = parts[0].join(parts[1])
    assert reference.function(found) == together(parts) == reference.function(layout)
    assert found.shard == layout.canonicalize().shard


def exists(layouts: list[TileLayout]) -> bool:
    axes = sorted({it.axis for layout in layouts for it in layout.shard})
    sums: list[list] = []
    for flat in range(reference.size(layouts[0])):
        at = [reference.displacement(layout, flat) for layout in layouts]
        sums.append([sum(values.get(a, 0) for values in at) for a in axes])
    return reference.greedy_is_layout([tuple(v) for v in sums])


ON = [strategies.layouts(max_size=24, among=(axis,), strides=(0, 0, 1, 2, 3)) for axis in (m, laneid, warpid)]


@given(st.data())
def test_join_is_exact(data: st.DataObject) -> None:
    layouts = [data.draw(on) for on in ON[: data.draw(st.integers(2, 3))]]
    sizes = {reference.size(layout) for layout in layouts}
    if len(sizes) > 1:
        with pytest.raises(LayoutError, match=r"join: operand 0 has \d+ elements, operand \d has \d+"):
            layouts[0].join(*layouts[1:])
        return
    check_join(layouts)


def check_join(layouts: list[TileLayout]) -> bool:
    try:
        found = layouts[0].join(*layouts[1:])
    except LayoutError as error:
        check_refusal(error, "join")
        assert not exists(layouts)
        return False
    assert reference.function(found) == together(layouts)
    return True


@pytest.mark.parametrize(("size", "strides"), [(4, (0, 1, 2)), (6, (0, 1, -1)), (8, (0, 1)), (12, (0, 1))])
def test_every_two_small_functions(size: int, strides: tuple[int, ...]) -> None:
    ones, others = (enumerations.functions(size, strides, (axis,)) for axis in (m, laneid))
    assert {check_join([one, other]) for one in ones for other in others} == {True, False}


def test_axes_that_overlap_are_refused() -> None:
    one = TileLayout(S[4 : 1 @ laneid])
    for other in (
        TileLayout(S[4 : 2 @ laneid]),
        TileLayout(S[4] + R[2 : 4 @ laneid]),
        TileLayout(S[4] + 1 @ laneid),
    ):
        with pytest.raises(LayoutError, match="operands 0 and 1 both have coordinates on laneid"):
            one.join(other)
    with pytest.raises(LayoutError, match="must be a TileLayout, got int"):
        one.join(4)
    assert one.join() == one


def test_a_broadcast_dimension_claims_no_axis() -> None:
    one = TileLayout(S[(2, 4) : (0 @ laneid, 1)])
    other = TileLayout(S[(2, 4) : (1 @ laneid, 0)])
    assert one.join(other) == TileLayout(S[(2, 4) : (1 @ laneid, 1)])


def test_symbols() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    rows = TileLayout(S[(4 * n, 2) : (1 @ warpid, 0)])
    lanes = TileLayout(S[(4 * n, 2) : (0, 1 @ laneid)])
    assert rows.join(lanes) == TileLayout(S[(4 * n, 2) : (1 @ warpid, 1 @ laneid)])
