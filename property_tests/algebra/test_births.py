"""Layouts and iters are valid from birth: integers of every type are accepted, everything else is refused."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pytest

from tilelayout import Iter, LayoutError, R, S, TileLayout, laneid, m, warpid

LAYOUT = TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid)


def test_zero_offsets_are_dropped() -> None:
    for layout in (
        TileLayout(S[8] + 0),
        TileLayout(S[8] + 0 @ laneid + 5 - 5),
        TileLayout.from_iters([(8, 1)], offset={"m": 0, laneid: 0}),
    ):
        assert layout == TileLayout(S[8])
        assert layout.offset == {}


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.intp]
)
def test_numpy_integers_are_integers(dtype: type) -> None:
    eight, two = dtype(8), dtype(2)
    for layout in (
        TileLayout(S[(eight, two) : (two @ laneid, two)] + R[two : eight @ warpid] + two @ warpid + two),
        TileLayout(two + S[(eight, two) : (two @ laneid, two)] + two @ warpid + R[two : eight @ warpid]),
        TileLayout.from_iters(
            [Iter(eight, two, "laneid"), (two, two)], [(two, eight, warpid)], {"warpid": two, m: two}
        ),
    ):
        assert layout == TileLayout(S[(8, 2) : (2 @ laneid, 2)] + R[2 : 8 @ warpid] + 2 @ warpid + 2)
        numbers = [*layout.offset.values(), *(x for it in layout.shard + layout.replica for x in it[:2])]
        assert {type(x) for x in numbers} == {int}


@pytest.mark.parametrize("value", [np.uint8(5), np.uint64(5), np.int8(-128), np.int64(-(2**63))])
def test_numpy_integers_do_not_wrap_when_they_are_subtracted(value: np.integer) -> None:
    expected = {m: -int(value)}
    assert TileLayout(S[8] - value).offset == expected
    assert TileLayout(S[8] - value @ m).offset == expected
    assert TileLayout(S[8] + (-(value @ m))).offset == expected
    assert TileLayout(S[8] - (1 @ laneid + value - 1 @ laneid)).offset == expected
    assert Iter(8, -int(value)) == TileLayout(S[8 : -(value @ m)]).shard[0]


def test_other_integers_become_ints() -> None:
    sympy = pytest.importorskip("sympy")

    class Word(int):
        pass

    class Size(IntEnum):
        FOUR = 4

    class Index:
        def __index__(self) -> int:
            return 4

    for four in (sympy.Integer(4), Word(4), Size.FOUR, Index(), np.array(4), sympy.Integer(8) / 2):
        it = Iter(four, four)
        assert it == Iter(4, 4)
        assert {type(it.extent), type(it.stride)} == {int}
        assert TileLayout(S[four:four] + four @ laneid) == TileLayout(S[4:4] + 4 @ laneid)


class Liar:
    def __index__(self) -> str:
        return "4"


class Truth:
    def __index__(self) -> bool:
        return True


def bad_numbers() -> list[object]:
    import decimal
    import fractions

    import sympy

    return [
        True, False, np.True_, np.bool_(False), 4.0, 4.5, np.float32(4), np.float64(4), float("nan"), 4j, "4", b"4",
        None, [4], {4}, (4,), np.array([4]), np.array(4.0), np.array(True), decimal.Decimal(4), fractions.Fraction(4),
        sympy.Float(4.0), sympy.Float(0.0), sympy.Rational(1, 2), sympy.pi, sympy.oo, sympy.nan, sympy.true,
        sympy.I, sympy.Symbol("x"), sympy.Symbol("x", real=True), sympy.Symbol("x", integer=True) / 2,
        Liar(), Truth(), object(), int, ...,
    ]  # fmt: skip


@pytest.mark.parametrize("bad", bad_numbers(), ids=lambda bad: type(bad).__name__)
def test_what_is_no_integer_is_refused_everywhere(bad: object) -> None:
    """As an extent, a stride, an offset, added or subtracted, and as an argument of every operation."""
    attempts = [
        lambda: Iter(bad, 1),
        lambda: Iter(4, bad),
        lambda: S[(4, bad)],
        lambda: S[(4, 4) : (1, bad)],
        lambda: S[(4, 4) : (1, bad @ laneid)],
        lambda: S[(4, 4) : (1, -(bad @ laneid))],
        lambda: R[(bad,) : (1,)],
        lambda: TileLayout(S[4] + bad @ laneid),
        lambda: TileLayout(S[4] - bad @ laneid),
        lambda: TileLayout(S[4] + (1 @ laneid + bad @ laneid)),
        lambda: TileLayout.from_iters([(4, bad)]),
        lambda: TileLayout.from_iters([(4, 1)], [(bad, 1)]),
        lambda: TileLayout.from_iters([(4, 1)], (), {"m": bad}),
        lambda: LAYOUT.group((4, bad)),
        lambda: LAYOUT.apply(4, bad),
        lambda: LAYOUT.slice((8, 4), [(0, bad), (0, 4)]),
        lambda: LAYOUT.slice((8, 4), [(bad, 8), (0, 4)]),
        lambda: LAYOUT.tile_to((8, bad), (8, 4)),
        lambda: LAYOUT.permute_dims((0, bad)),
        lambda: LAYOUT.permute_by_groups((0, bad, 2), (1, 0)),
        lambda: LAYOUT.pack(bad),
        lambda: LAYOUT.unpack(bad),
    ]
    for attempt in attempts:
        with pytest.raises(LayoutError):
            attempt()


@pytest.mark.parametrize("bad", [True, 5.0, 5.5, np.float32(5), np.True_, 5j])
def test_an_offset_that_is_a_number_but_no_integer_is_refused_with_its_value(bad: object) -> None:
    for attempt in (
        lambda: S[4] + bad,
        lambda: bad + S[4],
        lambda: S[4] - bad,
        lambda: S[4] + (bad + 1 @ laneid),
        lambda: S[4] + (1 @ laneid - bad),
        lambda: S[4] - (1 @ laneid - bad),
    ):
        with pytest.raises(LayoutError, match="integer"):
            attempt()


@pytest.mark.parametrize("extent", [0, -1, -(2**70), np.int64(0)])
def test_extents_below_one_are_refused(extent: object) -> None:
    for attempt in (
        lambda: Iter(extent, 1),
        lambda: S[extent],
        lambda: S[(4, extent) : (1, 1)],
        lambda: R[extent:1],
        lambda: TileLayout.from_iters([(4, 1), (extent, 1)]),
    ):
        with pytest.raises(LayoutError, match="must be at least 1, got"):
            attempt()


@pytest.mark.parametrize(
    ("attempt", "word"),
    [
        (lambda: S[(2, 3) : (1,)], "2 extents (2, 3) and 1 strides (1,)"),
        (lambda: S[2 : (1, 2)], "1 extents (2,) and 2 strides (1, 2)"),
        (lambda: R[(2, 3) : 1], "R: 2 extents"),
        (lambda: S[(2, (3, 4)) : (1, (2, 3))], "extent 1 must be an integer, got tuple (3, 4)"),
        (lambda: S[2:1:1], "a part too many"),
        (lambda: S[8, 4:2], "entry 1 is not an extent"),
        (lambda: S[8, 4 @ laneid], "entry 1 is not an extent"),
        (lambda: S[4 @ laneid], "entry 0 is not an extent"),
        (lambda: S[8:], "stride 0 must be an integer, got NoneType"),
        (lambda: S[:8], "extent 0 must be an integer, got NoneType"),
        (lambda: S["8"], "extent 0 must be an integer, got str '8'"),
        (lambda: S[8 : 4 @ laneid @ warpid], "stride 0 must be an integer, got Term"),
        (lambda: S[8 : 4 @ laneid + 1], "stride 0 must be an integer, got TermSum"),
        (lambda: S[2] + S[3], "a layout has one shard"),
        (lambda: TileLayout(R[2:1]), "has no shard"),
        (lambda: TileLayout("S[8]"), "TileLayout.parse(text)"),
        (lambda: TileLayout([(8, 1)]), "TileLayout.from_iters"),
        (lambda: TileLayout(None), "takes the notation"),
        (lambda: TileLayout(8), "takes the notation"),
        (lambda: TileLayout.from_iters([5]), "an iter is (extent, stride, axis), got 5"),
        (lambda: TileLayout.from_iters([[8, 1]]), "an iter is (extent, stride, axis)"),
        (lambda: TileLayout.from_iters(["ab"]), "an iter is (extent, stride, axis)"),
        (lambda: TileLayout.from_iters([(8,)]), "an iter is (extent, stride, axis)"),
        (lambda: TileLayout.from_iters([(8, 1, "m", 0)]), "an iter is (extent, stride, axis)"),
        (lambda: TileLayout.from_iters(5), "must be a sequence, got int 5"),
        (lambda: TileLayout.from_iters({(8, 1), (2, 8)}), "must be a sequence, got set"),
        (lambda: TileLayout.from_iters([(8, 1)], offset=[("m", 1)]), "offset must be a mapping"),
        (lambda: TileLayout.from_iters([(8, 1)], offset=5), "offset must be a mapping"),
    ],
)
def test_bad_births_are_refused_with_a_reason(attempt: object, word: str) -> None:
    with pytest.raises(LayoutError) as caught:
        attempt()
    assert word in str(caught.value)


@pytest.mark.parametrize("other", [None, "64", [1], object(), TileLayout(S[4])])
def test_what_is_no_number_has_no_place_in_a_sum(other: object) -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        S[4] + other


def test_an_iter_is_an_extent_a_stride_and_an_axis() -> None:
    it = Iter(8, 4, "laneid")
    assert (it.extent, it.stride, it.axis) == tuple(it) == (8, 4, laneid)
    assert Iter(8, 4) == Iter(8, 4, m)
    assert repr(it) == "Iter(8, 4 @ laneid)"
    assert repr(Iter(8, -4)) == "Iter(8, -4)"
    assert hash(it) == hash(Iter(8, 4, laneid))
