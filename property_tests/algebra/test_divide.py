"""The divides: every element once, tile by tile, exactly where all tiles are alike."""

from __future__ import annotations

from math import prod
from random import Random
from typing import Any

import pytest

from property_tests.algebra import compacts, reference
from property_tests.algebra.filling import filling
from tilelayout import LayoutError, R, S, TileLayout, laneid, m, warpid

DIVIDES = ("logical_divide", "zipped_divide", "tiled_divide", "flat_divide")


def tile_of(tiler: Any) -> list[int]:
    return list(range(tiler)) if isinstance(tiler, int) else compacts.places(tiler)


def expected(
    a: TileLayout, shape: tuple[int, ...], tilers: tuple[Any, ...]
) -> list[tuple[list[int], list[int]]] | None:
    """Per dimension where the tiles begin and what one holds; None where the tilers don't fill the dimensions."""
    out = []
    for n, tiler in zip(shape, tilers, strict=True):
        tile = tile_of(tiler)
        begins = filling(tile, n)
        if begins is None:
            return None
        out.append((begins, tile))
    return out


def elements(
    split: list[tuple[list[int], list[int]]], shape: tuple[int, ...], kind: str
) -> tuple[list[int], list[int]]:
    """The flat indices of A in the order of the divided layout, and its shape with every dimension apart."""
    rests = [("rest", d) for d in range(len(shape))]
    tiles = [("tile", d) for d in range(len(shape))]
    order = (
        [x for pair in zip(rests, tiles, strict=True) for x in pair]
        if kind == "logical_divide"
        else rests + tiles
    )
    values = {("rest", d): begins for d, (begins, _) in enumerate(split)}
    values |= {("tile", d): tile for d, (_, tile) in enumerate(split)}
    sizes = [len(values[x]) for x in order]
    flats = []
    for coord in reference.coordinates(sizes):
        at = dict(zip(order, coord, strict=True))
        index = [
            values["rest", d][at["rest", d]] + values["tile", d][at["tile", d]] for d in range(len(shape))
        ]
        flats.append(reference.flatten(index, shape))
    return flats, sizes


def shape_of(sizes: list[int], kind: str) -> tuple[int, ...]:
    half = len(sizes) // 2
    rests, tiles = sizes[:half], sizes[half:]
    return {
        "logical_divide": tuple(sizes),
        "zipped_divide": (prod(rests), prod(tiles)),
        "tiled_divide": (*rests, prod(tiles)),
        "flat_divide": (*rests, *tiles),
    }[kind]


def check(
    a: TileLayout, shape: tuple[int, ...], tilers: tuple[Any, ...], kind: str = "logical_divide"
) -> bool:
    split = expected(a, shape, tilers)
    divided = compacts.attempt(lambda: getattr(a, kind)(tilers, shape))
    if isinstance(divided, LayoutError):
        if split is None:
            return False
        axes = sorted({str(it.axis) for it in a.shard})
        flats, sizes = elements(split, shape, kind)
        values = [tuple(reference.displacement(a, i).get(axis, 0) for axis in axes) for i in flats]
        whole = [
            tuple(reference.displacement(a, i).get(axis, 0) for axis in axes)
            for i in range(reference.size(a))
        ]
        alike = reference.is_grouped(values, sizes) and reference.is_grouped(whole, shape)
        assert not alike, (a, shape, tilers, divided)
        return False
    assert split is not None, (a, shape, tilers, divided)
    layout, out_shape = divided
    flats, sizes = elements(split, shape, kind)
    assert out_shape == shape_of(sizes, kind) == divided.shape
    assert reference.size(layout) == prod(out_shape) == reference.size(a)
    assert reference.function(layout) == [reference.owners(a, i) for i in flats], (a, shape, tilers, divided)
    moving = [[it for it in x.shard if it.extent != 1] for x in (layout, layout.group(out_shape)[0])]
    assert moving[0] == moving[1], "the iters fall into the dimensions as they are"
    return True


def tilers_of(size: int, rng: Random, count: int) -> list[Any]:
    """For a dimension of that size: every number, and compact layouts with gaps that may or may not fill it."""
    out: list[Any] = [n for n in range(1, size + 1) if size % n == 0 or rng.random() < 0.2]
    for _ in range(count):
        tile = rng.choice(compacts.compact(rng.choice([d for d in range(1, size + 1) if size % d == 0])))
        out.append(compacts.with_gaps(tile, rng))
    return out


def test_flat_divides_of_compact_layouts() -> None:
    rng = Random(1)
    outcomes = set()
    for size in range(1, 17):
        for a in compacts.compact(size):
            for tiler in tilers_of(size, rng, 2):
                outcomes.add(check(compacts.on_axes(compacts.with_gaps(a, rng), rng), (size,), (tiler,)))
    assert outcomes == {True, False}


@pytest.mark.slow
def test_every_compact_layout_of_up_to_24_elements_by_every_compact_tiler() -> None:
    rng = Random(2)
    for a, b in compacts.pairs(range(1, 25)):
        size = reference.size(a)
        if size % reference.size(b) == 0:
            check(a, (size,), (b,))
            check(compacts.on_axes(compacts.with_gaps(a, rng), rng), (size,), (compacts.with_gaps(b, rng),))


@compacts.by_count(600, (3, 4))
def test_random_divides_by_dimension(count: int, seed: int) -> None:
    rng = Random(seed)
    done = 0
    for _ in range(count):
        a = compacts.anything(rng, 36, rng.choice(((m,), (m, laneid))), rng.random() < 0.2)
        shape = tuple(compacts.factors(reference.size(a), rng)) or (1,)
        tilers = tuple([rng.choice(tilers_of(n, rng, 2)) for n in shape])
        done += check(a, shape, tilers, rng.choice(DIVIDES))
    assert done > count // 10


@pytest.mark.parametrize("kind", DIVIDES)
def test_a_flat_divide_is_one_by_a_shape_of_one_dimension(kind: str) -> None:
    a = TileLayout(S[(4, 6) : (1, 4)] + 3)
    for tiler in (2, 3, 6, TileLayout(S[2:3]), TileLayout(S[2:12])):
        assert getattr(a, kind)(tiler) == getattr(a, kind)(tiler, 24) == getattr(a, kind)((tiler,), (24,))


def test_axes_replica_and_offset_are_kept() -> None:
    a = TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid)
    divided = a.zipped_divide((2, 4), (8, 4))
    assert divided.layout == TileLayout(
        S[(4, 1, 2, 4) : (8 @ laneid, 0, 4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid
    )
    assert divided.shape == (4, 8)


def test_a_tiler_walked_backwards() -> None:
    divided = TileLayout(S[8:10]).logical_divide(TileLayout(S[4:-1] + 3))
    assert divided.layout == TileLayout(S[(2, 4) : (40, -10)] + 30)


def test_huge_layouts() -> None:
    n = 2**40
    a = TileLayout(S[(n, n) : (n, 1)])
    divided = a.flat_divide((128, 64), (n, n))
    assert divided.shape == (n // 128, n // 64, 128, 64)
    assert divided.layout.apply(1, 2, 3, 4, shape=divided.shape) == {m: (128 + 3) * n + 2 * 64 + 4}


def test_refusals_name_the_rule() -> None:
    a = TileLayout(S[32, 12])
    with pytest.raises(LayoutError, match=r"dimension 1: the tile of 5 does not divide 12: 12 % 5 = 2"):
        a.zipped_divide((8, 5), (32, 12))
    with pytest.raises(LayoutError, match=r"1 tilers for the 2 dimensions"):
        a.zipped_divide((8,), (32, 12))
    with pytest.raises(
        LayoutError, match=r"\(8, 4\) is one tiler for each dimension, but the dimensions aren't given"
    ):
        a.zipped_divide((8, 4))
    with pytest.raises(LayoutError, match=r"shape \(30, 12\) has 360 elements"):
        a.zipped_divide((2, 4), (30, 12))
    with pytest.raises(LayoutError, match="tiler 0"):
        a.logical_divide(0)
    with pytest.raises(LayoutError, match="tiler 0"):
        a.logical_divide("8")
    with pytest.raises(LayoutError, match="flat_divide: not injective"):
        a.flat_divide(TileLayout(S[4:0]))
    with pytest.raises(LayoutError, match="does not divide the cosize"):
        a.flat_divide(TileLayout(S[5:2]))


def test_the_result_is_a_pair_that_can_be_kept() -> None:
    import pickle

    divided = TileLayout(S[8]).logical_divide(2)
    layout, shape = divided
    assert (layout, shape) == (divided.layout, divided.shape) == divided
    assert pickle.loads(pickle.dumps(divided)) == divided
    assert repr(divided) == "Shaped(S[(4, 2):(2, 1)], (4, 2))"
    assert len({divided, TileLayout(S[8]).logical_divide(2)}) == 1


def test_a_swizzled_tiler_is_refused_by_name() -> None:
    layout, swizzled = TileLayout(S[8, 4]), TileLayout(S[8, 4]).swizzle(1, 0, 1)
    for ask in (layout.logical_divide, layout.logical_product, layout.blocked_product):
        with pytest.raises(LayoutError, match=r"is the swizzled .* takes an integer or a tile layout"):
            ask(swizzled)
    with pytest.raises(LayoutError, match="tiler 0 is the swizzled"):
        layout.zipped_divide((swizzled, 2), (8, 4))
