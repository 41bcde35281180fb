"""slice with steps: the owners of every step-th index, and a layout if and only if one exists."""

from __future__ import annotations

from itertools import product

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import enumerations, reference
from property_tests.algebra.refusals import check_refusal
from tilelayout import LayoutError, R, S, TileLayout, laneid, m, warpid

AXES = enumerations.TWO_AXES


def box(shape: tuple[int, ...], region: list[tuple[int, int, int]]) -> list[int]:
    """The flat indices, in the row-major order of the box."""
    return [reference.flatten(coord, shape) for coord in product(*[range(*r) for r in region])]


def check(layout: TileLayout, shape: tuple[int, ...], region: list[tuple[int, int, int]]) -> bool:
    """Exactness of one slice; whether there was one."""
    flats = box(shape, region)
    axes = sorted({it.axis for it in layout.shard})
    places = [reference.displacement(layout, flat) for flat in flats]
    exists = reference.greedy_is_layout([tuple(at.get(a, 0) for a in axes) for at in places])
    try:
        found = layout.slice(shape, region)
    except LayoutError as error:
        check_refusal(error, "slice", "no layout has its positions")
        assert not exists, (layout, shape, region)
        return False
    assert reference.function(found) == [reference.owners(layout, flat) for flat in flats], (
        layout,
        shape,
        region,
    )
    return True


@st.composite
def stepped_regions(draw: st.DrawFn, shape: tuple[int, ...]) -> list[tuple[int, int, int]]:
    region = []
    for begin, end in draw(strategies.regions(shape)):
        steps = [d for d in range(1, end - begin + 2) if draw(st.booleans()) or d in (1, 2)]
        region.append((begin, end, draw(st.sampled_from(steps))))
    return region


@given(strategies.layouts(), st.data())
def test_a_box_of_a_shape_that_fits_the_iters(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.fitting_shapes([it.extent for it in layout.shard]))
    check(layout, shape, data.draw(stepped_regions(shape)))


@given(strategies.layouts(), st.data())
def test_a_box_of_any_shape(layout: TileLayout, data: st.DataObject) -> None:
    """Also of shapes that the layout can't be grouped to."""
    shape = data.draw(strategies.factorizations(reference.size(layout)))
    check(layout, shape, data.draw(stepped_regions(shape)))


@pytest.mark.parametrize(
    ("size", "strides"), [*[(n, (-1, 0, 1, 2)) for n in (4, 6, 9)], (8, (-1, 0, 1)), (10, (1, 3)), (12, (1,))]
)
def test_every_range_and_step_of_every_small_function(size: int, strides: tuple[int, ...]) -> None:
    outcomes = set()
    for layout in enumerations.functions(size, strides):
        for begin in range(size):
            for step in range(2, size):
                # Ends that take in no further index give the same positions.
                for end in range(begin + 1, size + 1, step):
                    outcomes.add(check(layout, (size,), [(begin, end, step)]))
    assert outcomes == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "strides"), [(12, (-1, 0, 1, 2)), (16, (1,)), (18, (1, 2)), (24, (1,)), (30, (1,))]
)
def test_every_range_and_step_of_every_function(size: int, strides: tuple[int, ...]) -> None:
    test_every_range_and_step_of_every_small_function(size, strides)


@given(strategies.layouts(), st.data())
def test_a_step_of_one_is_no_step(layout: TileLayout, data: st.DataObject) -> None:
    shape = data.draw(strategies.factorizations(reference.size(layout)))
    region = data.draw(strategies.regions(shape))
    try:
        plain = layout.slice(shape, region)
    except LayoutError:
        with pytest.raises(LayoutError):
            layout.slice(shape, [(b, e, 1) for b, e in region])
        return
    assert layout.slice(shape, [(b, e, 1) for b, e in region]).canonicalize() == plain.canonicalize()


def test_steps_that_divide_the_digit_or_are_multiples_of_it() -> None:
    layout = TileLayout(S[(4, 8) : (100, 1)])
    assert layout.slice((32,), [(1, 32, 2)]) == TileLayout(S[(4, 4) : (100, 2)] + 1)
    assert layout.slice((32,), [(3, 32, 8)]) == TileLayout(S[4:100] + 3)
    assert layout.slice((32,), [(3, 32, 16)]) == TileLayout(S[2:200] + 3)
    assert layout.slice((32,), [(2, 14, 6)]) == TileLayout(S[2:98] + 2)
    with pytest.raises(
        LayoutError, match=r"dimension 0: \[0, 32\) by steps of 3 of 32 carries in the iters \(4, 8\)"
    ):
        layout.slice((32,), [(0, 32, 3)])
    with pytest.raises(
        LayoutError, match=r"dimension 0: \[2, 20\) by steps of 2 of 32 carries in the iters \(4, 8\)"
    ):
        layout.slice((32,), [(2, 20, 2)])


def test_a_step_that_carries_and_still_has_a_layout() -> None:
    """Row-major on both sides: the wrap is no break."""
    assert TileLayout(S[(4, 8) : (8, 1)]).slice((32,), [(1, 32, 3)]) == TileLayout(S[11:3] + 1)
    layout = TileLayout(S[(3, 2) : (10, 1)])
    assert layout.slice((6,), [(0, 6, 5)]).canonicalize() == TileLayout(S[2:21])


def test_huge_extents_take_no_longer() -> None:
    layout = TileLayout(S[(2**40, 2**20) : (2**21, 1)])
    found = layout.slice((2**60,), [(2**20 + 1, 2**60, 2)])
    assert found == TileLayout(S[(2**40 - 1, 2**19) : (2**21, 2)] + 2**21 + 1)
    with pytest.raises(LayoutError, match="no layout has its positions"):
        layout.slice((2**60,), [(1, 2**60, 2**10 + 1)])
    columns = layout.slice((2**40, 2**20), [(7, 2**40, 1024), (5, 2**20, 1023)])
    assert columns == TileLayout(S[(2**30, 1025) : (2**31, 1023)] + 7 * 2**21 + 5)


def test_columns_of_a_shape_that_cuts_across_the_iters() -> None:
    layout = TileLayout(S[(4, 6) : (100, 1)])
    assert check(layout, (3, 8), [(0, 3, 2), (2, 4, 1)])
    assert layout.slice((3, 8), [(0, 3, 2), (2, 4, 1)]) == TileLayout(S[(2, 2) : (298, 1)] + 2)
    assert not check(layout, (3, 8), [(0, 3, 1), (2, 3, 1)])


def test_offsets_and_replicas_stay() -> None:
    layout = TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 1 @ warpid] + 7)
    found = layout.slice((8, 4), [(1, 8, 2), (0, 4, 3)])
    assert found == TileLayout(S[(4, 2) : (8 @ laneid, 3)] + R[2 : 1 @ warpid] + 4 @ laneid + 7)


@pytest.mark.parametrize(
    ("bounds", "word"),
    [
        ((0, 8, 0), "step 0 is not a positive"),
        ((0, 8, -2), "step -2 is not a positive"),
        ((0, 9, 2), "ends past the extent 8"),
        ((4, 4, 2), "empty"),
        ((0, 8, 2.0), "integer"),
        ((0, 8, None), "integer"),
        ((0, 8, True), "integer"),
        ((0, None, 2), "integer"),
    ],
)
def test_bad_steps_are_refused(bounds: tuple, word: str) -> None:
    with pytest.raises(LayoutError, match=word) as caught:
        TileLayout(S[8]).slice((8,), [bounds])
    assert caught.value.operation == "slice"


# --- symbols ------------------------------------------------------------------------------------

K = sympy.Symbol("k", integer=True, nonnegative=True)
N = sympy.Symbol("n", integer=True, positive=True)


def at(layout: TileLayout, values: dict) -> TileLayout:
    def number(x: object) -> int:
        return int(sympy.sympify(x).subs(values))

    parts = [
        [(number(it.extent), number(it.stride), it.axis) for it in p] for p in (layout.shard, layout.replica)
    ]
    return TileLayout.from_iters(*parts, {a: number(v) for a, v in layout.offset.items()})


@pytest.mark.parametrize(
    ("layout", "bounds"),
    [
        (TileLayout(S[(8, 8) : (100, 1)]), (8 * (K % 8), 8 * (K % 8) + 8)),
        (TileLayout(S[(8, 8) : (100, 1)]), (8 * (K % 8) + 4, 8 * (K % 8) + 8)),
        (TileLayout(S[(8, 8) : (100, 1)]), (8 * (K % 8) + 3, 8 * (K % 8) + 6)),
        (TileLayout(S[(8, 8) : (100, 1)]), (4 * (K % 16), 4 * (K % 16) + 4)),
        (TileLayout(S[(8, 8) : (100, 1 @ laneid)]), (2 * (K % 32), 2 * (K % 32) + 2)),
        (TileLayout(S[(8, 8) : (100, 1)]), (8 * (K % 4), 8 * (K % 4) + 32, 8)),
        (TileLayout(S[(8, 8) : (100, 1)]), (8 * (K % 8) + 1, 8 * (K % 8) + 8, 2)),
        (TileLayout(S[64:3]), (K % 8, K % 8 + 50, 7)),
        (TileLayout(S[(2 * N, 4) : (9, 1)]), (0, 8 * N, 4)),
        (TileLayout(S[(2 * N, 4) : (9, 1)]), (0, 8 * N, 2)),
    ],
)
def test_symbolic_begins_that_are_provably_aligned(layout: TileLayout, bounds: tuple) -> None:
    size = sympy.sympify(layout.size())
    found = layout.slice((layout.size(),), [bounds])
    for k in range(20):
        values = {K: k, N: k % 3 + 1}
        numbers = tuple(int(sympy.sympify(x).subs(values)) for x in bounds)
        concrete = at(layout, values)
        expected = [reference.owners(concrete, i) for i in range(*numbers)]
        assert int(size.subs(values)) == reference.size(concrete)
        assert reference.function(at(found, values)) == expected, (k, found)


def test_a_begin_that_is_not_known_to_be_aligned_is_refused() -> None:
    layout = TileLayout(S[(8, 8) : (100, 1)])
    with pytest.raises(LayoutError, match="depends on symbols"):
        layout.slice((64,), [(K % 8, K % 8 + 4)])
    assert layout.slice((64,), [(8 * (K % 8), 8 * (K % 8) + 8)]) == TileLayout(S[8] + 100 * (K % 8))
    assert m in layout.slice((64,), [(8 * (K % 8), 8 * (K % 8) + 8)]).offset
