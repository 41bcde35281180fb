"""Inputs that have tripped systems of this kind, under the numbers they are known by: structure and ownership."""

from __future__ import annotations

import pytest

from property_tests.algebra import reference
from tilelayout import LayoutError, S, TileLayout, TLane, laneid, m, pid, warpid


def flattened(mesh: TileLayout, shape: tuple, order: tuple) -> TileLayout:
    """The dimensions of a mesh in another order, by their groups."""
    grouped, seps = mesh.group(shape)
    return grouped.permute_by_groups(seps, order)


def test_c30_a_mesh_of_unit_dimensions_is_flattened_like_any_other() -> None:
    mesh = TileLayout(S[(1, 1, 1, 1) : (1 @ pid, 1 @ pid, 1 @ pid, 1 @ pid)])
    found, seps = mesh.group_many([(1, 1, 1, 1), (1, 1, 1)])
    assert [len(s) for s in seps] == [5, 4]
    assert seps[0] == (0, 1, 2, 3, 4)
    assert reference.function(found) == [frozenset({frozenset()})]
    assert len(mesh.group((1, 1, 1))[0].shard) == 3


def test_c30_flattening_dimensions_that_are_not_neighbors() -> None:
    mesh = TileLayout(S[(2, 3, 4) : (12 @ pid, 4 @ pid, 1 @ pid)])
    outer = mesh.slice((2, 3, 4), [(0, 2), (0, 1), (0, 4)]).canonicalize()
    assert outer == TileLayout(S[(2, 4) : (12 @ pid, 1 @ pid)])
    values = [outer.apply(i)[pid] for i in range(8)]
    assert values == [0, 1, 2, 3, 12, 13, 14, 15]
    reordered = flattened(mesh, (2, 3, 4), (0, 2, 1))
    assert [reordered.apply(i, 0, shape=(8, 3))[pid] for i in range(8)] == values


def test_c30_an_accumulator_with_and_without_a_unit_dimension_is_one_function() -> None:
    """WGMMA's C with N = 8: ((4, 8, 4), (2, 2)) and ((4, 8, 4), (2, 2, 1)), last fastest here."""
    two = TileLayout(S[(4, 2, 8, 4, 2) : (1 @ warpid, 2, 4 @ laneid, 1 @ laneid, 1)])
    three = TileLayout(S[(4, 2, 8, 1, 4, 2) : (1 @ warpid, 2, 4 @ laneid, 4, 1 @ laneid, 1)])
    assert two != three
    assert len(reference.function(two)) == 512
    assert reference.function(two) == reference.function(three)
    assert two.canonicalize() == three.canonicalize()
    assert two.equivalent(three)
    grouped, seps = three.group_many([(64, 8), (64, 1, 8)])
    assert seps[1][2] - seps[1][1] == 1, "the unit dimension is an iter of its own"
    assert two.equivalent(grouped)


def test_c33_the_offset_of_the_half_lives_in_the_layout() -> None:
    """Row r of 64 lies in lane 32*(r//16) + 16 + r%16: compared by tables, as a slice, a sum and a stepped range."""
    expected = [32 * (r // 16) + 16 + r % 16 for r in range(64)]
    slabs = TileLayout(S[(4, 2, 16) : (32 @ TLane, 16 @ TLane, 1 @ TLane)])
    half = slabs.slice((4, 2, 16), [(0, 4), (1, 2), (0, 16)])
    assert half.table((64,))[TLane].tolist() == expected
    assert slabs.slice((8, 16), [(1, 8, 2), (0, 16)]).table((64,))[TLane].tolist() == expected
    rows = TileLayout(S[16 : 1 @ TLane])
    summed = rows.direct_sum(TileLayout(S[4 : 32 @ TLane] + 16 @ TLane), (4,), (16,))
    assert summed.table((64,))[TLane].tolist() == expected
    assert rows.recover_left(half, (64,), (16,)).equivalent(TileLayout(S[4 : 32 @ TLane] + 16 @ TLane))


def test_c33_the_upper_half_is_not_the_lower_with_the_same_round_trip() -> None:
    slabs = TileLayout(S[(4, 2, 16) : (32 @ TLane, 16 @ TLane, 1 @ TLane)])
    halves = [slabs.slice((4, 2, 16), [(0, 4), (h, h + 1), (0, 16)]) for h in (0, 1)]
    assert not halves[0].equivalent(halves[1])
    assert halves[0].shard == halves[1].shard


def test_c34_stepped_bounds_that_fold() -> None:
    layout = TileLayout(S[32, 4])
    assert layout.slice((32, 4), [((8 * 2) - (4 * 2), 16, 2 + 2), (0, 4)]) == layout.slice(
        (32, 4), [(8, 16, 4), (0, 4)]
    )


COMPUTE = TileLayout(S[(2, 2, 4, 16, 64) : (4 @ warpid, 0, 1 @ warpid, 64, 1)])
"""256 rows on 8 warps, as two tiles of 128 rows whose halves of 64 rows each go to four warps."""
STORE = TileLayout(S[(2, 8, 16, 64) : (0, 1 @ warpid, 64, 1)])
"""The same rows as an epilogue took them: 16 rows a warp, tile by tile."""


def test_c51_the_owners_of_compute_and_of_store_are_compared() -> None:
    def owner_compute(r: int) -> int:
        return (r // 128) * 4 + (r % 64) // 16

    def owner_store(r: int) -> int:
        return (r % 128) // 16

    shape = (256, 64)
    for r in range(256):
        for c in (0, 1, 63):
            assert COMPUTE.apply(r, c, shape=shape)[warpid] == owner_compute(r)
            assert STORE.apply(r, c, shape=shape)[warpid] == owner_store(r)
    compute, store = COMPUTE.project(warpid), STORE.project(warpid)
    answer = compute.equivalent(store, shape=shape)
    assert not answer
    differ = [r for r in range(256) if owner_compute(r) != owner_store(r)]
    assert differ == [*range(64, 192)], "the second and the third block of 64 rows are swapped"


def test_c51_one_layout_for_both_is_equal_everywhere() -> None:
    """The store's rows, put in the order in which the warps computed them, are owned by the same warps."""
    swapped = STORE.group((2, 2, 4, 16 * 64))[0]
    seps = STORE.group((2, 2, 4, 16 * 64))[1]
    reordered = swapped.permute_by_groups(seps, (1, 0, 2, 3))
    assert reordered.project(warpid).equivalent(COMPUTE.project(warpid))
    assert COMPUTE.project("warpid").equivalent(COMPUTE.canonicalize().project(warpid))
    registers, warps = COMPUTE.project(m), COMPUTE.project(warpid)
    assert warps.join(registers).equivalent(COMPUTE)
    with pytest.raises(LayoutError, match="both have coordinates on warpid"):
        warps.join(STORE)


def test_c51_a_fragment_is_owned_alike_however_its_threads_are_counted() -> None:
    by_warp = TileLayout(S[(4, 2, 8, 4, 2) : (1 @ warpid, 2, 4 @ laneid, 1 @ laneid, 1)])
    by_thread = TileLayout.parse("S[(4, 2, 8, 4, 2) : (32 @ tx, 2, 4 @ tx, 1 @ tx, 1)]")
    assert by_warp.canonicalize("cta") == by_thread.canonicalize("cta")
    assert by_thread.split_threads("tx").equivalent(by_warp)
    assert by_warp.select(laneid).canonicalize() == TileLayout(S[32 : 1 @ laneid])
