"""Compositions, complements, inverses, divides and products that have tripped other systems, with the right answers.

Under the numbers they are known by.  They are published in CuTe's order, first mode fastest; `cute` reverses them.
"""

from __future__ import annotations

import pytest

from property_tests.algebra import compacts, reference
from tilelayout import Iter, LayoutError, S, TileLayout, m


def flat(x: object) -> list[int]:
    return [n for part in x for n in flat(part)] if isinstance(x, tuple) else [x]  # type: ignore[list-item]


def cute(shape: object, stride: object) -> TileLayout:
    """CuTe's ``shape:stride``, nested or not."""
    return TileLayout.from_iters(
        [Iter(e, s) for e, s in zip(flat(shape)[::-1], flat(stride)[::-1], strict=True)]
    )


def places(layout: TileLayout) -> list[int]:
    return compacts.places(layout)


def test_c01_a_composition_that_carries_is_no_layout() -> None:
    for a, b, values in (
        (cute((6, 2), (1, 7)), cute((3, 2), (2, 3)), [0, 2, 4, 3, 5, 8]),
        (cute((6, 3), (1, 100)), cute((3, 4), (2, 3)), [0, 2, 4, 3, 5, 101, 100, 102, 104, 103, 105, 201]),
    ):
        assert [places(a)[i] for i in places(b)] == values
        with pytest.raises(
            LayoutError, match="carry in A or move along several axes, and no layout has the positions"
        ):
            a.compose(b)
    with pytest.raises(LayoutError, match="B reaches from 0 to 13, A has 12 elements"):
        cute((6, 2), (1, 100)).compose(cute((3, 4), (2, 3)))


def test_c04_a_right_side_outside_the_domain() -> None:
    with pytest.raises(
        LayoutError, match="codomain of B exceeds the size of A: B reaches from 0 to 9, A has 6"
    ):
        cute((2, 3), (4, 1)).compose(cute((3, 4), (3, 1)))
    found = cute((6, 2), (8, 3)).compose(cute((4, 3), (3, 1)))
    assert found == cute(((2, 2), 3), ((24, 3), 8))


def test_c05_the_left_side_is_fused_first() -> None:
    found = cute((2, 3), (1, 2)).compose(cute((2, 3), (3, 1)))
    assert found == cute((2, 3), (3, 1))
    assert found.size() == 6


def test_the_composition_of_the_facts_that_checks_by_mode_reject() -> None:
    assert cute((4, 2, 8), (3, 12, 97)).compose(cute(3, 3)) == cute(3, 9)


def test_c07_complements() -> None:
    assert cute(4, 2).complement(24) == cute((2, 3), (1, 8))
    assert cute((2, 2), (1, 6)).complement(24) == cute((3, 2), (2, 12))
    assert cute(4, 2).complement(8) == cute(2, 1)
    with pytest.raises(LayoutError, match="not injective"):
        cute(4, 0).complement(8)
    with pytest.raises(LayoutError, match="takes 8 places, which does not divide the cosize 7"):
        cute(4, 2).complement(7)


@pytest.mark.parametrize(
    ("shape", "stride", "injective"),
    [((2, 3), (2, 1), False), ((2, 3), (3, 2), True), ((2, 2), (2, 2), False), ((2, 2), (2, 1), True)],
)
def test_c08_overlapping_and_interleaved(shape: tuple, stride: tuple, injective: bool) -> None:
    layout = cute(shape, stride)
    answer = layout.is_injective()
    assert bool(answer) == injective
    if not injective:
        first, second = answer.witness
        assert places(layout)[first] == places(layout)[second]
    if (shape, stride) != ((2, 2), (2, 1)):
        for cosize in range(1, 60):
            with pytest.raises(LayoutError):
                layout.complement(cosize)


def test_c10_inverses_with_stride_zero_and_extent_one() -> None:
    for layout in (cute((4, 2), (1, 0)), cute(4, 0)):
        with pytest.raises(LayoutError, match="left_inverse: not injective"):
            layout.left_inverse()
    assert cute((4, 2), (1, 0)).right_inverse() == cute(4, 1)
    assert cute(4, 0).right_inverse() == cute(1, 0)
    for operation in ("left_inverse", "right_inverse", "inverse"):
        assert getattr(cute(1, 5), operation)() == cute(1, 0)
        assert getattr(cute((1, 4), (7, 1)), operation)() == cute(4, 1)
        assert getattr(cute((2, 4, 6), (4, 1, 8)), operation)() == cute((4, 2, 6), (2, 1, 8))


def test_c13_a_tile_that_runs_through_an_iter_is_refused_however_it_is_given() -> None:
    import sympy

    a = cute((12, (4, 8)), (7, (1, 30)))
    assert a.size() == 384
    n = sympy.Symbol("n", integer=True, positive=True)
    for tiler in (128, cute(128, 1), sympy.Integer(128), (n + 128) - n):
        with pytest.raises(
            LayoutError, match=r"a tile of 128 ends within an iter of \(8, 4, 12\), so tiles aren't alike"
        ):
            a.logical_divide(tiler)
    for tiler in (n, 128 * n):
        with pytest.raises(LayoutError, match="does not divide 384"):
            a.logical_divide(tiler)


def test_c14_a_layout_as_tiler_and_one_tiler_for_each_dimension() -> None:
    a = cute((12, 32), (1, 12))
    by_layout = a.logical_divide(cute((4, 8), (1, 4)))
    assert (
        by_layout.layout
        == cute(((4, 8), 12), ((1, 4), 32)).group((12, 32))[0].canonicalize().group((12, 32))[0]
    )
    assert by_layout.shape == (12, 32)
    by_dimension = a.zipped_divide((8, 4), (32, 12))
    assert by_dimension.layout == cute(((4, 8), (3, 4)), ((1, 12), (4, 96)))
    assert by_dimension.shape == (12, 32)


def test_c16_copies_that_cannot_be_laid_out_evenly() -> None:
    a = cute((2, 2), (4, 1))
    with pytest.raises(LayoutError, match=r"no layout has the positions of A=\(5:8, 2:2\), B=\(5:1\)"):
        a.logical_product(5)
    found = a.logical_product(4)
    assert found.layout == cute(((2, 2), (2, 2)), ((4, 1), (2, 8)))
    assert found.shape == (4, 4)


def test_c17_blocked_raked_and_logical_products() -> None:
    a, b = cute((2, 5), (5, 1)), cute((3, 4), (1, 3))
    logical = a.logical_product(b)
    assert logical.layout.equivalent(cute(((2, 5), (3, 4)), ((5, 1), (10, 30))))
    assert logical.shape == (12, 10)
    blocked = a.blocked_product(b)
    assert blocked.layout == cute(((2, 3), (5, 4)), ((5, 10), (1, 30)))
    assert blocked.shape == (20, 6)
    raked = a.raked_product(b)
    assert raked.layout == cute(((3, 2), (4, 5)), ((10, 5), (30, 1)))
    assert raked.shape == (20, 6)


def test_c59_a_map_of_many_elements_to_one_place() -> None:
    halved = TileLayout(S[(128, 2) : (1, 0)])
    assert [reference.displacement(halved, i)["m"] for i in range(256)] == [i // 2 for i in range(256)]
    assert halved.is_injective().witness == (0, 1)
    for ask in (
        halved.left_inverse,
        halved.inverse,
        lambda: halved.complement(256),
        lambda: halved.logical_product(2),
    ):
        with pytest.raises(LayoutError, match=r"not injective.*make it a replica"):
            ask()
    assert halved.elements({m: 7}) == (14, 15)
