"""direct_sum by its definition, and what takes tilings and direct sums apart again."""

from __future__ import annotations

from itertools import product

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import reference
from property_tests.algebra.refusals import check_refusal
from property_tests.algebra.test_tile import check_tiled
from tilelayout import LayoutError, R, S, TileLayout, Undecided, laneid, warpid

# Strides that often agree, so that a whole often is what it might be.
NEAR = (1, 1, 2, 4, -1, 0, 8)
PARTS = strategies.layouts(max_size=12, max_rank=3)
CLOSE_PARTS = strategies.layouts(max_size=8, max_rank=2, strides=NEAR, among=(*strategies.AXES[:2],))


def check_sum(
    left: TileLayout, right: TileLayout, left_shape: tuple, right_shape: tuple, found: TileLayout
) -> None:
    """``f(x || y) = f_left(x) + f_right(y)``, owners taken with owners."""
    shape = [x * y for x, y in zip(left_shape, right_shape, strict=True)]
    assert reference.size(found) == reference.size(left) * reference.size(right)
    for flat, coord in enumerate(reference.coordinates(shape)):
        x = reference.flatten([c // n for c, n in zip(coord, right_shape, strict=True)], left_shape)
        y = reference.flatten([c % n for c, n in zip(coord, right_shape, strict=True)], right_shape)
        expected = set()
        for a, b in product(reference.owners(left, x), reference.owners(right, y)):
            place = dict(b)
            for axis, value in a:
                place[axis] = place.get(axis, 0) + value
            expected.add(reference.place(place))
        assert reference.owners(found, flat) == expected


@st.composite
def pairs(draw: st.DrawFn, parts: st.SearchStrategy = PARTS) -> tuple:
    """Two layouts and shapes of one rank that they can be grouped to."""
    both = draw(parts), draw(parts)
    rank = draw(st.integers(1, 3))
    return *both, *[draw(strategies.fitting_shapes([it.extent for it in p.shard], rank)) for p in both]


@given(pairs())
def test_the_definition_holds_at_every_coordinate(drawn: tuple) -> None:
    left, right, left_shape, right_shape = drawn
    check_sum(left, right, left_shape, right_shape, right.direct_sum(left, left_shape, right_shape))


@given(PARTS, PARTS, st.data())
def test_any_shapes_are_summed_or_refused(left: TileLayout, right: TileLayout, data: st.DataObject) -> None:
    shapes = [data.draw(strategies.factorizations(reference.size(part))) for part in (left, right)]
    try:
        found = right.direct_sum(left, *shapes)
    except LayoutError as error:
        check_refusal(error, "direct_sum")
        return
    check_sum(left, right, *shapes, found)


@pytest.mark.parametrize(
    ("left", "left_shape", "right_shape", "word"),
    [
        (TileLayout(S[2]), (2,), (2, 2), "differ in rank"),
        (TileLayout(S[2]), (3,), (4,), "3 elements"),
        (TileLayout(S[(2, 3) : (9, 1)]), (3, 2), (2, 2), "unevenly"),
        (None, (2,), (4,), "must be a TileLayout"),
        (S[2], (2,), (4,), "must be a TileLayout"),
    ],
)
def test_bad_sums_are_refused(left: object, left_shape: object, right_shape: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word) as caught:
        TileLayout(S[4]).direct_sum(left, left_shape, right_shape)
    assert caught.value.operation == "direct_sum"


# --- recovering parts ---------------------------------------------------------------------------


def same(one: TileLayout, other: TileLayout) -> bool:
    return reference.function(one) == reference.function(other)


def interleave(left: tuple, right: tuple) -> tuple:
    return tuple(n for pair in zip(left, right, strict=True) for n in pair)


@given(pairs(st.one_of(PARTS, CLOSE_PARTS)))
def test_parts_of_a_tiling_are_recovered(drawn: tuple) -> None:
    """In whatever form the whole is written."""
    outer, inner, outer_shape, inner_shape = drawn
    whole = inner.tile(outer, outer_shape, inner_shape)
    shape = tuple(x * y for x, y in zip(outer_shape, inner_shape, strict=True))
    for tiled in (whole, whole.canonicalize()):
        for recover in (
            lambda t: inner.tile(inner.recover_outer(t, shape, inner_shape), outer_shape, inner_shape),
            lambda t: outer.recover_inner(t, shape, outer_shape).tile(outer, outer_shape, inner_shape),
        ):
            try:
                again = recover(tiled)
            except Undecided:
                assert inner.replica, "only replicas are searched"
                assert outer.replica
                continue
            assert same(again, whole)


@given(pairs(st.one_of(PARTS, CLOSE_PARTS)))
def test_addends_are_recovered(drawn: tuple) -> None:
    left, right, left_shape, right_shape = drawn
    whole = right.direct_sum(left, left_shape, right_shape)
    shape = tuple(x * y for x, y in zip(left_shape, right_shape, strict=True))
    for total in (whole, whole.canonicalize()):
        for form in (shape, interleave(left_shape, right_shape)):
            for recover in (
                lambda t, s: right.direct_sum(right.recover_left(t, s, right_shape), left_shape, right_shape),
                lambda t, s: left.recover_right(t, s, left_shape).direct_sum(left, left_shape, right_shape),
            ):
                try:
                    again = recover(total, form)
                except Undecided:
                    assert left.replica
                    assert right.replica
                    continue
                assert same(again, whole)


WHOLES = strategies.layouts(max_size=24, max_rank=4, strides=NEAR, among=(*strategies.AXES[:2],))


@given(WHOLES, CLOSE_PARTS, st.data())
def test_what_is_recovered_of_anything_makes_it_again(
    whole: TileLayout, part: TileLayout, data: st.DataObject
) -> None:
    """Of layouts that have nothing to do with one another: right, or refused."""
    part_shape = (reference.size(part),)
    shape = (reference.size(whole),)
    other_shape = (shape[0] // part_shape[0],)
    ways = {
        "recover_outer": (
            lambda: part.recover_outer(whole, shape, part_shape),
            lambda x: part.tile(x, other_shape, part_shape),
        ),
        "recover_inner": (
            lambda: part.recover_inner(whole, shape, part_shape),
            lambda x: x.tile(part, part_shape, other_shape),
        ),
        "recover_left": (
            lambda: part.recover_left(whole, shape, part_shape),
            lambda x: part.direct_sum(x, other_shape, part_shape),
        ),
        "recover_right": (
            lambda: part.recover_right(whole, shape, part_shape),
            lambda x: x.direct_sum(part, part_shape, other_shape),
        ),
    }
    for name, (recover, make) in ways.items():
        try:
            found = recover()
        except LayoutError as error:
            check_refusal(error, name)
            continue
        assert same(make(found), whole)


SMALL = [
    TileLayout.from_iters([(e, s, "m") for e, s in zip(extents, strides, strict=True)], replica, {"m": at})
    for extents in [(2,), (3,), (2, 2)]
    for strides in product((1, 2, -1), repeat=len(extents))
    for replica in [(), ((2, 1, "m"),), ((2, 3, "m"),)]
    for at in (0, 1)
]


@pytest.mark.parametrize(("members", "wholes"), [(9, 5), pytest.param(1, 3, marks=pytest.mark.slow)])
def test_what_is_refused_does_not_exist(members: int, wholes: int) -> None:
    """Wholes that two members of a small family make are taken apart by every other member."""
    family = SMALL[::members]
    tilings: dict[tuple, set[int]] = {}
    sums: dict[tuple, set[int]] = {}
    made_of: dict[tuple, TileLayout] = {}
    for i, inner in enumerate(family):
        for outer in family:
            shapes = (outer.size(),), (inner.size(),)
            for made, known in (
                (inner.tile(outer, *shapes), tilings),
                (inner.direct_sum(outer, *shapes), sums),
            ):
                key = tuple(reference.function(made))
                known.setdefault(key, set()).add(i)
                made_of.setdefault(key, made)
    outcomes = set()
    for key, whole in list(made_of.items())[::wholes]:
        for i, part in enumerate(family):
            if whole.size() % part.size():
                continue
            rest = whole.size() // part.size()
            for recover, known, make in (
                (part.recover_outer, tilings, part.tile),
                (part.recover_left, sums, part.direct_sum),
            ):
                try:
                    found = recover(whole, (whole.size(),), (part.size(),))
                except LayoutError:
                    assert i not in known.get(key, ()), (whole, part)
                    outcomes.add(False)
                else:
                    assert same(make(found, (rest,), (part.size(),)), whole)
                    outcomes.add(True)
    assert outcomes == {True, False}


def test_replicas_that_were_fused_are_taken_apart() -> None:
    """(2, 2):(4, 2) and 2:1 make 8:1; of the eight copies those at even places are the outer's."""
    inner, outer = TileLayout(S[4] + R[2:1]), TileLayout(S[2:8] + R[(2, 2) : (4, 2)])
    whole = inner.direct_sum(outer, (2,), (4,)).canonicalize()
    assert whole.replica == TileLayout(S[1] + R[8:1]).replica
    found = inner.recover_left(whole, (8,), (4,))
    assert same(inner.direct_sum(found, (2,), (4,)), whole)


def test_the_span_of_an_inner_replica_is_found() -> None:
    """The outer's stride 1 stands for 8: the inner spans 4 and its replica reaches 4 further."""
    inner = TileLayout(S[4] + R[2:4] + 3)
    outer = TileLayout(S[2] + R[2:10] + 100)
    whole = inner.tile(outer, (2,), (4,))
    found = outer.recover_inner(whole, (8,), (2,))
    assert same(found, inner)
    check_tiled(found, outer, (2,), (4,), whole)


def test_a_symbolic_tiling() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    inner, outer = TileLayout(S[(n, 4) : (4, 1)]), TileLayout(S[(2, 3) : (3, 1)])
    whole = inner.tile(outer, (2, 3), (n, 4))
    assert inner.recover_outer(whole, (2 * n, 12), (n, 4)).canonicalize() == outer.canonicalize()
    assert outer.recover_inner(whole, (2 * n, 12), (2, 3)).canonicalize() == inner.canonicalize()


@pytest.mark.parametrize(
    ("refused", "word"),
    [
        (lambda: TileLayout(S[4]).recover_outer(TileLayout(S[(2, 4) : (6, 1)]), (8,), (4,)), "no multiple of 4"),
        (lambda: TileLayout(S[4]).recover_outer(TileLayout(S[(2, 4) : (8, 2)]), (8,), (4,)), r"coordinate \(1,\)"),
        (lambda: TileLayout(S[4]).recover_outer(TileLayout(S[8]), (8,), (3,)), "3 of the inner shape does not"),
        (lambda: TileLayout(S[4]).recover_outer(TileLayout(S[8]), (8,), (4, 1)), "differ in rank"),
        (lambda: TileLayout(S[4]).recover_outer(TileLayout(S[8] + 2), (8,), (4,)), "no multiple of 4"),
        (lambda: TileLayout(S[4]).recover_outer(TileLayout(S[8] + R[2:6]), (8,), (4,)), "no replica"),
        (lambda: TileLayout(S[4] + R[2:4]).recover_outer(TileLayout(S[(2, 4) : (8, 1)]), (8,), (4,)), "no replica"),
        (lambda: TileLayout(S[4]).recover_outer(None, (8,), (4,)), "must be a TileLayout"),
        (lambda: TileLayout(S[2:3]).recover_inner(TileLayout(S[8]), (8,), (2,)), "scaled"),
        (lambda: TileLayout(S[2:1] + R[3:1]).recover_inner(TileLayout(S[(2, 4) : (4, 1)]), (8,), (2,)), "span on m"),
        (lambda: TileLayout(S[4]).recover_left(TileLayout(S[8]), (2, 3), (4,)), "not dimension 0 of the right"),
        (lambda: TileLayout(S[4:2]).recover_left(TileLayout(S[8]), (8,), (4,)), "like the right layout"),
        (lambda: TileLayout(S[2:2]).recover_right(TileLayout(S[8]), (8,), (2,)), "like the left layout"),
        (lambda: TileLayout(S[2 : 4 @ laneid]).recover_right(TileLayout(S[8]), (8,), (2,)), "like the left layout"),
        (lambda: TileLayout(S[3]).recover_left(TileLayout(S[(2, 6) : (9, 1)]), (3, 4), (3, 1)), "elements|unevenly"),
        (lambda: TileLayout(S[2]).recover_right(TileLayout(S[8] + 3 @ warpid), (8,), None), "left shape"),
    ],
)  # fmt: skip
def test_what_cannot_be_recovered_is_refused_with_the_reason(refused: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word) as caught:
        refused()
    assert caught.value.operation.startswith("recover_")
