"""slice returns a layout if and only if one exists: every small function, every range, against a search.

What exists is decided by `reference.is_layout`, which tries every factorization of the values.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import enumerations, reference
from tilelayout import LayoutError, TileLayout

AXES = enumerations.TWO_AXES


@cache
def searched(values: tuple[reference.Vector, ...]) -> bool:
    return reference.is_layout(values)


def check(layout: TileLayout, values: list, shape: tuple[int, ...], region: list[tuple[int, int]]) -> bool:
    """Exactness of one slice of a layout with these values; whether there was one."""
    box = [values[flat] for flat in reference.box(shape, region)]
    expected = searched(tuple(reference.subtract(v, box[0]) for v in box))
    try:
        found = layout.slice(shape, region)
    except LayoutError:
        assert not expected, (layout, shape, region)
        return False
    base = tuple(found.offset.get(axis, 0) for axis in AXES)
    assert [reference.total(base, [v], [1]) for v in reference.vectors(found.shard, AXES)] == box, (
        layout,
        shape,
        region,
    )
    return True


def check_all_ranges(size: int, strides: tuple[int, ...], axes: tuple = AXES) -> None:
    outcomes = set()
    for layout in enumerations.functions(size, strides, axes):
        values = reference.vectors(layout.shard, AXES)
        for begin in range(size):
            for end in range(begin + 1, size + 1):
                outcomes.add(check(layout, values, (size,), [(begin, end)]))
    assert True in outcomes


@pytest.mark.parametrize("size", range(1, 12))
def test_every_range_of_every_small_function(size: int) -> None:
    check_all_ranges(size, (-1, 0, 1, 2, 3) if size != 8 else (-1, 1, 2))


@pytest.mark.parametrize(("size", "strides"), [(12, (0, 1, 3)), (16, (1, 3)), (24, (1,))])
def test_every_range_of_plain_functions_on_one_axis(size: int, strides: tuple[int, ...]) -> None:
    check_all_ranges(size, strides, AXES[:1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "strides"),
    [
        *[(size, (-2, -1, 0, 1, 2, 3, 4)) for size in range(1, 12)],
        *[(size, (-1, 0, 1, 2)) for size in range(12, 16)],
        (16, (-1, 0, 1, 2)),
        (18, (0, 1, 2)),
        (20, (-1, 1)),
        (24, (1,)),
        (32, (1,)),
    ],
)
def test_every_range_of_every_function(size: int, strides: tuple[int, ...]) -> None:
    check_all_ranges(size, strides)


@pytest.mark.slow
@pytest.mark.parametrize("strides", [(-1, 1), (0, 5), (1, 6)])
def test_every_range_of_thirty_six_elements_on_one_axis(strides: tuple[int, ...]) -> None:
    check_all_ranges(36, strides, AXES[:1])


def check_all_boxes(size: int, strides: tuple[int, ...]) -> None:
    """Every box of every shape, of two dimensions and more, whether or not the iters can be grouped to it."""
    for layout in enumerations.functions(size, strides):
        values = reference.vectors(layout.shard, AXES)
        for shape in enumerations.extents_of(size):
            ranges = [[(b, e) for b in range(n) for e in range(b + 1, n + 1)] for n in shape]
            for region in product(*ranges):
                check(layout, values, shape, list(region))


@pytest.mark.parametrize(
    ("size", "strides"), [(4, (-1, 1, 2)), (6, (-1, 1, 2)), (8, (1,)), (9, (1,)), (10, (1, 3))]
)
def test_every_box_of_every_shape(size: int, strides: tuple[int, ...]) -> None:
    check_all_boxes(size, strides)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "strides"), [(6, (-2, -1, 0, 1, 2, 3, 4)), (8, (-1, 0, 1, 2)), (12, (1, 2)), (18, (1,))]
)
def test_every_box_of_every_shape_at_larger_sizes(size: int, strides: tuple[int, ...]) -> None:
    check_all_boxes(size, strides)


LARGER = strategies.layouts(
    max_size=400, among=AXES, strides=(0, 1, 1, 2, 3, -1, -2, 5), replicated=False, moved=False
)


@given(LARGER, st.data())
def test_random_boxes_of_larger_layouts(layout: TileLayout, data: st.DataObject) -> None:
    values = reference.vectors(layout.shard, AXES)
    shape = data.draw(strategies.factorizations(reference.size(layout), units=False))
    for _ in range(5):
        check(layout, values, shape, data.draw(strategies.regions(shape)))
