"""Which lane points at which row: cases C43 and C44, and ldmatrix executed on what was found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests.analysis.register_file import load_matrices, register_file
from tilelayout import LayoutError, S, TileLayout, laneid, warpid
from tilelayout.analysis import bank_conflicts, best_staging, matrix_accesses

A = TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)])
"""A of m16n8k16 with 16-bit elements, (M, K) = (16, 16)."""
B = TileLayout(S[(2, 4, 2, 8) : (2, 1 @ laneid, 1, 4 @ laneid)])
"""B of m16n8k16 with 16-bit elements, (K, N) = (16, 8)."""


def starts(fragment: TileLayout, shape: tuple[int, int], **options: object) -> list[list[tuple[int, ...]]]:
    found = matrix_accesses(fragment, shape, **options)  # type: ignore[arg-type]
    return [[access.coordinates(lane)[0] for lane in range(len(access.lanes))] for access in found.accesses]


def nk(fragment: TileLayout, shape: tuple[int, int]) -> TileLayout:
    grouped, seps = fragment.group(shape)
    return grouped.permute_by_groups(seps, (1, 0))


def test_c43_a_row_major() -> None:
    assert starts(A, (16, 16)) == [[(lane % 16, 8 * (lane // 16)) for lane in range(32)]]
    wrong = [(lane % 8 + 8 * (lane // 16), 8 * (lane // 8 % 2)) for lane in range(32)]
    assert starts(A, (16, 16)) != [wrong]  # that one swaps registers 1 and 2


def test_c43_b_as_n_k_needs_no_trans() -> None:
    found = matrix_accesses(nk(B, (16, 8)), (8, 16))
    assert not found.transposed
    assert starts(nk(B, (16, 8)), (8, 16)) == [[(lane % 8, 8 * (lane // 8 % 2)) for lane in range(16)]]


def test_c43_b_as_k_n_is_transposed() -> None:
    found = matrix_accesses(B, (16, 8))
    assert found.transposed
    assert starts(B, (16, 8)) == [[(lane % 16, 0) for lane in range(16)]]


@pytest.mark.parametrize(
    ("bits", "fragment", "shape", "needs"),
    [
        (
            8,
            TileLayout(S[(2, 4, 4, 8) : (4, 1 @ laneid, 1, 4 @ laneid)]),
            (32, 8),
            r"\(0, 0\), \(1, 0\), \(2, 0\), \(3, 0\)",
        ),
        (32, TileLayout(S[(2, 4, 8) : (1, 1 @ laneid, 4 @ laneid)]), (8, 8), r"needs \(0, 0\), and lanes"),
    ],
)
def test_c44_no_trans_below_and_above_16_bits(
    bits: int, fragment: TileLayout, shape: tuple[int, int], needs: str
) -> None:
    """B stored as (K, N): s8 and fp8, then tf32."""
    with pytest.raises(
        LayoutError,
        match=f"register 0 of lane 0 {'needs ' if bits == 8 else ''}{needs}.*never single elements of {bits}",
    ):
        matrix_accesses(fragment, shape, bits)
    assert not matrix_accesses(fragment, shape, bits, along=0).transposed  # stored as (N, K) it is plain


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_a_fragments_of_every_width(bits: int) -> None:
    e = 32 // bits
    shape = (16, 8 * e)
    fragment = TileLayout(S[(2, 8, 2, 4, e) : (e, 4 @ laneid, 2 * e, 1 @ laneid, 1)])
    found = matrix_accesses(fragment, shape, bits)
    assert [len(access.lanes) for access in found.accesses] == [32]
    assert (load_matrices(found.accesses, found.transposed, bits) == register_file(fragment, 32, 4 * e)).all()


@given(st.data(), st.sampled_from([8, 16, 32]), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_executing_the_loads_leaves_the_fragment(
    data: st.DataObject, bits: int, down: int, across: int, rows: bool
) -> None:
    """A stack of down x across matrices in any order of registers, stored along either dimension."""
    e = 32 // bits
    outer = data.draw(st.permutations([(down, 0), (across, 1)]))
    strides, stride = [0, 0], e
    for count, d in outer:
        strides[d], stride = stride, stride * count
    fragment = TileLayout(S[(down, 8, across, 4, e) : (strides[0], 4 @ laneid, strides[1], 1 @ laneid, 1)])
    shape = (8 * down, 4 * e * across)
    found = matrix_accesses(fragment, shape, bits)
    assert not found.transposed
    sizes = [len(access.lanes) // 8 for access in found.accesses]
    assert sum(sizes) == down * across
    assert sizes == sorted(sizes, reverse=True)
    wanted = register_file(fragment, 32, e * down * across)
    assert (load_matrices(found.accesses, False, bits) == wanted).all()
    if bits == 16:
        turned = matrix_accesses(fragment, shape, bits, along=0)
        assert turned.transposed
        assert (load_matrices(turned.accesses, True, bits) == wanted).all()


def test_each_warp_has_its_own_rows() -> None:
    fragment = TileLayout(S[(2, 2, 8, 2, 4, 2) : (1 @ warpid, 2, 4 @ laneid, 4, 1 @ laneid, 1)])
    assert starts(fragment, (32, 16), warp=1) == [[(16 + lane % 16, 8 * (lane // 16)) for lane in range(32)]]


def test_the_accesses_are_what_staging_takes() -> None:
    fragment = A.tile_to((16, 64), (16, 16))
    loads = matrix_accesses(fragment, (16, 64)).accesses
    assert len(loads) == 4
    plan = best_staging((16, 64), 16, loads)
    assert plan.best.is_free
    assert {bank_conflicts(plan.plain, load, 16).degree for load in loads} == {8}


@pytest.mark.parametrize(
    ("fragment", "shape", "bits", "message"),
    [
        (
            TileLayout(S[(8, 4, 2) : (1 @ laneid, 8 @ laneid, 1)]),
            (8, 8),
            16,
            "make no 8 rows of 16 contiguous bytes, nor their transpose",
        ),
        (
            TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 2)]),
            (8, 8),
            16,
            "slots 0 to 1 of lane 0 of warp 0 are not all in use",
        ),
        (
            TileLayout(S[(4, 4, 2) : (4 @ laneid, 1 @ laneid, 1)]),
            (4, 8),
            16,
            "lane 16 of warp 0 are not all in use",
        ),
        (A, (16, 8), 16, "has 128 elements, the fragment 256"),
        (A, (16, 16), 64, "64 bits is no part of a 32-bit register"),
        (TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)]), (16, 4), 16, "leaves dimension -1"),
    ],
)
def test_refusals_say_what_is_wrong(
    fragment: TileLayout, shape: tuple[int, int], bits: int, message: str
) -> None:
    with pytest.raises(LayoutError, match=message):
        matrix_accesses(fragment, shape, bits)


@pytest.mark.parametrize("fragment", [None, "S[8]", S[8, 8], TileLayout(S[8, 8]).swizzle(1, 0, 1), 5])
def test_what_is_no_tile_layout_is_refused(fragment: object) -> None:
    with pytest.raises(LayoutError, match="matrix_accesses: the fragment is a tile layout, got"):
        matrix_accesses(fragment, (8, 8))
