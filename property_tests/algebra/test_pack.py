"""pack, unpack and storage: the width of the stored element, and the part of a layout that is memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import strategies
from property_tests.algebra import enumerations, reference
from tilelayout import LayoutError, P, R, S, TileLayout, laneid, m, pid, warpid

WIDTHS = st.sampled_from([1, 2, 3, 4, 8])


def moved(places: frozenset, times: int, plus: int) -> frozenset:
    """Places with their coordinate on m scaled and shifted; the other axes count no elements."""
    found = set()
    for place in places:
        values = dict(place)
        values["m"] = values.get("m", 0) * times + plus
        found.add(reference.place(values))
    return frozenset(found)


def can_be_packed(layout: TileLayout, n: int) -> bool:
    """The post-condition's own terms: whole groups of n neighbors on m, each beginning at a multiple of n."""
    function = reference.function(layout)
    if len(function) % n:
        return False
    for head in range(0, len(function), n):
        if any(dict(place).get("m", 0) % n for place in function[head]):
            return False
        if any(function[head + j] != moved(function[head], 1, j) for j in range(n)):
            return False
    return True


def check_packed(layout: TileLayout, n: int) -> bool:
    """Packed if and only if it can be; then element i stands for the n from i*n on."""
    try:
        found = layout.pack(n)
    except LayoutError:
        found = None
    assert (found is not None) == can_be_packed(layout, n), (layout, n)
    if found is None:
        return False
    assert reference.size(found) * n == reference.size(layout)
    for i, places in enumerate(reference.function(found)):
        assert moved(places, n, 0) == reference.owners(layout, i * n)
    return True


@given(strategies.layouts(max_size=32), WIDTHS)
def test_unpacked_elements_are_neighbors_on_m(layout: TileLayout, n: int) -> None:
    found = layout.unpack(n)
    assert reference.size(found) == reference.size(layout) * n
    for i, places in enumerate(reference.function(layout)):
        for j in range(n):
            assert reference.owners(found, i * n + j) == moved(places, n, j)


@given(strategies.layouts(max_size=32), WIDTHS)
def test_pack_undoes_unpack(layout: TileLayout, n: int) -> None:
    assert layout.unpack(n).pack(n).canonicalize() == layout.canonicalize()


@given(strategies.layouts(max_size=64), WIDTHS)
def test_what_cannot_be_packed_is_refused_and_nothing_else(layout: TileLayout, n: int) -> None:
    check_packed(layout, n)


@pytest.mark.parametrize(("size", "n"), [(4, 2), (6, 2), (6, 3), (8, 2), (8, 4), (12, 4), (12, 6)])
def test_every_small_shard_is_packed_iff_it_can_be(size: int, n: int) -> None:
    strides = (0, 1, 2, 3, 4, -2) if size < 12 else (1, 3, 4, 6)
    outcomes = [check_packed(layout, n) for layout in enumerations.functions(size, strides)]
    assert any(outcomes)
    assert not all(outcomes)


@pytest.mark.parametrize(
    ("offset", "replica"), [(4, ()), (2, ()), (0, ((2, 8),)), (0, ((2, 2),)), (0, ((1, 2),)), (0, ((5, 0),))]
)
def test_offset_and_replica_may_not_split_an_element(offset: int, replica: tuple) -> None:
    layout = TileLayout.from_iters([(2, 4), (4, 1)], replica, {m: offset})
    assert check_packed(layout, 4) == (offset % 4 == 0 and replica != ((2, 2),))


@pytest.mark.parametrize(
    ("layout", "n", "packed"),
    [
        (S[16:1], 2, S[8:1]),  # C22
        (S[(8, 4) : (4 @ laneid, 1)], 2, S[(8, 2) : (4 @ laneid, 1)]),
        (S[(8, 2, 2) : (4 @ laneid, 2, 1)], 4, S[8 : 4 @ laneid]),
        (S[(2, 4) : (8, 1)] + 16 + 3 @ warpid, 4, S[2:2] + 4 + 3 @ warpid),
        (S[(2, 4) : (-8, 1)] + R[2:32], 4, S[2:-2] + R[2:8]),
        (S[(1, 4) : (3, 1)], 4, S[1:0]),
    ],
)
def test_named_packings(layout: object, n: int, packed: object) -> None:
    assert TileLayout(layout).pack(n).canonicalize() == TileLayout(packed)


@pytest.mark.parametrize(
    ("layout", "n", "word"),
    [
        (S[16:2], 2, "not neighbors"),
        (S[16 : 1 @ laneid], 2, "not neighbors"),
        (S[15], 2, "2 does not divide the 15 elements"),
        (S[(2, 2, 2) : (0, 16, 0)], 2, "not neighbors"),  # C22
        (S[8] + 1, 2, "splits an element"),
        (S[(2, 2) : (3, 1)], 2, "moves by a part"),
        (S[8] + R[2:1], 2, "moves by a part"),
        (S[8], 0, "at least 1"),
        (S[8], -2, "at least 1"),
        (S[8], 2.0, "integer"),
        (S[8], True, "integer"),
        (S[8], "2", "integer"),
        (S[8], None, "integer"),
    ],
)
def test_bad_packings_are_refused(layout: object, n: object, word: str) -> None:
    with pytest.raises(LayoutError, match=word) as caught:
        TileLayout(layout).pack(n)
    assert caught.value.operation == "pack"


@pytest.mark.parametrize("n", [0, -1, 2.0, True, None, "2", 1.5])
def test_bad_unpackings_are_refused(n: object) -> None:
    with pytest.raises(LayoutError, match="unpack: num"):
        TileLayout(S[8]).unpack(n)


@given(strategies.layouts())
def test_storage_keeps_what_is_on_memory_axes(layout: TileLayout) -> None:
    """Index k of the result runs over the memory iters in the order of the shard."""
    found = layout.storage()
    at = [i for i, it in enumerate(layout.shard) if it.axis.is_memory()]
    extents = [it.extent for it in layout.shard]
    for k, coord in enumerate(reference.coordinates([extents[i] for i in at])):
        whole = [0] * len(extents)
        for i, c in zip(at, coord, strict=True):
            whole[i] = c
        owners = reference.owners(layout, reference.flatten(whole, extents))
        memory = {frozenset(p for p in place if p[0] in ("m", "P")) for place in owners}
        assert reference.owners(found, k) == memory


def test_storage_of_each_kind_of_axis() -> None:
    layout = TileLayout(
        S[(2, 3, 4, 5) : (1 @ laneid, 1 @ P, 1 @ pid, 7)] + R[(2, 2) : (1 @ warpid, 64)] + 1 @ pid + 2 @ P
    )
    assert layout.storage() == TileLayout(S[(3, 5) : (1 @ P, 7)] + R[2:64] + 2 @ P)
    assert TileLayout(S[8 : 1 @ laneid]).storage() == TileLayout(S[()])
