"""Inputs that have tripped systems of this kind, with the right answers, under the numbers they are known by.

Each stands for its whole kind, which the other files test; the answers here were worked out by hand.
"""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from property_tests.algebra import reference
from tilelayout import LayoutError, R, S, Swizzle, SwizzledLayout, TileLayout, laneid, m, warpid


def test_c19_an_offset_at_and_past_two_to_the_31() -> None:
    layout = TileLayout(S[(2**29 + 1, 4) : (4, 1)])
    assert layout.apply(2**29, 0) == {m: 2147483648}
    assert layout.apply(2**29 - 1, 3) == {m: 2147483647}, "the last that fits 32 bits"
    found = layout.apply(np.array([2**29], dtype=np.int32), np.array([0], dtype=np.int8))
    assert found[m].tolist() == [2147483648]


def test_c19_a_size_of_two_to_the_32() -> None:
    layout = TileLayout(S[65536, 65536])
    assert layout.size() == 4294967296
    assert layout.apply(65535, 65535) == {m: 4294967295}
    assert layout.apply(4294967295) == {m: 4294967295}
    assert layout.span() == 4294967296
    assert layout.canonicalize() == TileLayout(S[4294967296:1])
    last = np.array([4294967295], dtype=np.uint32)
    assert layout.apply(last)[m].tolist() == [4294967295]


def test_c19_beyond_64_bits() -> None:
    layout = TileLayout(S[2**40, 2**40])
    assert layout.size() == 2**80
    assert layout.apply(2**80 - 1) == {m: 2**80 - 1}
    assert layout.canonicalize() == TileLayout(S[2**80])
    assert layout.slice((2**40, 2**40), [(2**39, 2**40), (0, 1)]).apply(1, 0) == {m: 2**79 + 2**40}


def test_c20_a_huge_stride_on_a_dimension_of_extent_one() -> None:
    layout = TileLayout(S[(1, 2**20, 64, 128) : (2**33, 8192, 128, 1)])
    assert layout.canonicalize() == TileLayout(S[2**33 : 1])
    assert layout.span() == 2**33
    index = np.array([2**33 - 1])
    assert layout.apply(index)[m].tolist() == [2**33 - 1]
    beyond = TileLayout(S[(1, 4) : (2**70, 1)])
    assert beyond.apply(np.arange(4))[m].tolist() == [0, 1, 2, 3]


def test_c22_pack_of_sixteen_halves_and_unpack_of_zero_strides() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    assert TileLayout(S[16:1]).pack(2) == TileLayout(S[8:1])
    assert TileLayout(S[2 * n : 1]).pack(2) == TileLayout(S[n:1])
    unpacked = TileLayout(S[(1, 1) : (0, 0)]).unpack(4)
    assert [unpacked.apply(i)[m] for i in range(4)] == [0, 1, 2, 3]
    assert unpacked.size() == 4


def test_c22_unpack_of_a_broadcast_gains_an_iter() -> None:
    unpacked = TileLayout(S[(2, 2, 2) : (0, 16, 0)]).unpack(4)
    assert unpacked == TileLayout(S[(2, 2, 2, 4) : (0, 64, 0, 1)])


def test_c23_widths_whose_ratio_is_no_power_of_two_are_refused_for_a_swizzle() -> None:
    """8-bit elements read as 6-bit ones: for the swizzle alone, and by way of bits."""
    swizzle = Swizzle(3, 4, 3)
    for old, new in ((8, 6), (6, 8)):
        with pytest.raises(
            LayoutError, match=f"the ratio of the widths {old} and {new} is not a power of two"
        ):
            swizzle.in_units(old, new)
    bits = SwizzledLayout(S[8, 48], swizzle).unpack(8)
    with pytest.raises(LayoutError, match="num 6 is not a power of two"):
        bits.pack(6)
    plain = TileLayout(S[8, 48]).unpack(8).pack(6)
    assert plain.size() == 8 * 64, "without a swizzle the ratio is nobody's concern"
    assert [plain.apply(i)[m] for i in (0, 63, 64)] == [0, 63, 64]


def test_c30_grouping_of_a_mesh_with_unit_dimensions_keeps_the_separators() -> None:
    mesh = TileLayout(S[(1, 1, 1, 1) : (1, 1, 1, 1)])
    grouped, seps = mesh.group((1, 1, 1))
    assert seps == (0, 1, 2, 3)
    assert len(grouped.shard) == 3


def test_c31_offsets_on_several_axes_all_count() -> None:
    expected = {laneid: 1, warpid: 2, m: 64}
    chained = TileLayout(S[8 : 4 @ laneid] + 1 @ laneid + 2 @ warpid + 64)
    assert chained.offset == expected
    assert chained == TileLayout(S[8 : 4 @ laneid] + (1 @ laneid + 64 + 2 @ warpid))
    assert chained == TileLayout(64 + S[8 : 4 @ laneid] + (1 @ laneid + 2 @ warpid))
    for text in (
        "S[8:4@laneid] + 1@laneid + 2@warpid + 64",
        "64 + S[8:4@laneid] + 1@laneid + 2@warpid",
        "S[8 : 4 @ laneid] + (1 @ laneid + 64 + 2 @ warpid)",
        "T.TileLayout(T.S[8:4 @ Axis.laneid] + (1 @ Axis.laneid + 64 + 2 @ Axis.warpid))",
        "S[8:4@laneid] + (64 + (2@warpid)) + 1@laneid",
        str(chained),
        repr(chained),
    ):
        assert TileLayout.parse(text) == chained, text


def test_c31_offsets_on_one_axis_add_up() -> None:
    assert TileLayout(S[8] + 1 @ laneid + 2 @ laneid - 3 @ laneid + 5) == TileLayout(S[8] + 5)


def test_c33_the_upper_half_of_each_slab() -> None:
    """64 rows in the upper half of each slab of 32 lanes: row r lives on lane 32*(r//16) + 16 + r%16.

    The offset of the half is part of the layout; compared as a table, since load then store can't prove it.
    """
    slabs = TileLayout(S[(4, 2, 16) : (32 @ laneid, 16 @ laneid, 1 @ laneid)])
    half = slabs.slice((4, 2, 16), [(0, 4), (1, 2), (0, 16)])
    assert half.offset == {laneid: 16}
    table = half.table((64,))[laneid]
    assert table.tolist() == [32 * (r // 16) + 16 + r % 16 for r in range(64)]
    rows_and_columns = TileLayout(S[(4, 2, 16, 8) : (32 @ laneid, 16 @ laneid, 1 @ laneid, 1)])
    fragment = rows_and_columns.slice((4, 2, 16, 8), [(0, 4), (1, 2), (0, 16), (0, 8)])
    for r in range(64):
        for c in range(8):
            expected = {laneid: 32 * (r // 16) + 16 + r % 16, m: c}
            assert reference.place(fragment.apply(r, c, shape=(64, 8))) == reference.place(expected)


def test_c34_bounds_that_fold_to_numbers_are_numbers() -> None:
    k = sympy.Symbol("k", integer=True)
    layout = TileLayout(S[32, 4])
    expected = layout.slice((32, 4), [(8, 16), (0, 4)])
    assert layout.slice((32, 4), [((8 * 2) - (4 * 2), 16), (0, 4)]) == expected
    assert layout.slice((32, 4), [(8, (2 * k + 16) - (2 * k)), (0, 4)]) == expected
    assert layout.slice((32, 4), [((2 * k + 16) - (2 * k) - 8, sympy.Integer(16)), (0, 4)]) == expected


def test_c34_bounds_that_are_truly_symbolic_are_refused_by_name() -> None:
    k = sympy.Symbol("k", integer=True, positive=True)
    with pytest.raises(LayoutError, match=r"dimension 0: length k is symbolic"):
        TileLayout(S[32, 4]).slice((32, 4), [(0, k), (0, 4)])


def test_c37_a_tile_that_does_not_divide_is_refused_with_the_remainder() -> None:
    with pytest.raises(LayoutError, match=r"dimension 0: 8 does not divide 30: 30 % 8 = 6"):
        TileLayout(S[8, 16]).tile_to([30, 32], [8, 16])
    with pytest.raises(LayoutError, match=r"128 does not divide 229"):
        TileLayout(S[128]).tile_to([229], [128])
    with pytest.raises(LayoutError, match="predicate"):
        TileLayout(S[128]).tile_to([229], [128])
    assert TileLayout(S[8, 16]).tile_to([32, 32], [8, 16]).size() == 32 * 32


def test_the_slice_of_the_facts_with_one_wrap() -> None:
    found = TileLayout(S[(2, 2, 2) : (100, 10, 1)]).slice((8,), [(3, 5)])
    assert [found.apply(i)[m] for i in range(2)] == [11, 100]


def test_a_typo_in_an_axis_is_no_new_axis() -> None:
    with pytest.raises(LayoutError, match="did you mean 'warpid'"):
        TileLayout.parse("S[8 : 4 @ warp_id]")


def test_extents_and_strides_of_different_number() -> None:
    with pytest.raises(LayoutError, match="2 extents"):
        S[(2, 3) : (1,)]


def test_a_replica_with_a_negative_stride_has_the_same_owners() -> None:
    one = TileLayout(S[4] + R[4 : -2 @ warpid] + 6 @ warpid)
    other = TileLayout(S[4] + R[4 : 2 @ warpid])
    assert reference.function(one) == reference.function(other)
    assert one.canonicalize() == other.canonicalize()
