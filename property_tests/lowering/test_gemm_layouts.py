"""Layouts other than the shipped ones that compute the same product: permuted indices, regions, gaps, offsets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy

from lowering import Tile, gemm, lower
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG, tiled
from lowering.isa import MMA_INSTRUCTIONS
from tilelayout import S, TileLayout, laneid, pid, warpid

from .gemm_answers import answer, arrays_of, check, refusal

F16 = MMA_INSTRUCTIONS[0]
A = Tile("A", (16, 16), "float16", A_FRAG)
B = Tile("B", (16, 8), "float16", B_FRAG)
D = Tile("D", (16, 8), "float32", D_FRAG)


def tile(name: str, shape: tuple[int, ...], layout: TileLayout) -> Tile:
    return Tile(name, shape, "float32" if name in "CD" else "float16", layout)


# --- permuted indices ---------------------------------------------------------------------------

# Digits of each logical dimension, outermost first, in the shipped fragments: M = rM, g; N = t, rN; K = kHi, t, p.
DIGITS = {"M": [("rM", 2), ("g", 8)], "N": [("t", 4), ("rN", 2)], "K": [("kHi", 2), ("t", 4), ("p", 2)]}
STRIDES = {
    "D": {"rM": 2, "g": 4 @ laneid, "t": 1 @ laneid, "rN": 1},
    "A": {"rM": 2, "g": 4 @ laneid, "kHi": 4, "t": 1 @ laneid, "p": 1},
    "B": {"kHi": 2, "t": 1 @ laneid, "p": 1},
}


def permuted(m: tuple[int, ...], n: tuple[int, ...], k: tuple[int, ...]) -> tuple[Tile, Tile, Tile]:
    """D, A and B with the digits of M, N and K in another order, the same one in every operand."""
    order = {
        "M": [DIGITS["M"][i] for i in m],
        "N": [DIGITS["N"][i] for i in n],
        "K": [DIGITS["K"][i] for i in k],
    }

    def layout(role: str, dims: str) -> TileLayout:
        digits = [digit for dim in dims for digit in order[dim]]
        extents = tuple(e for _, e in digits)
        return TileLayout(S[extents : tuple(STRIDES[role][name] for name, _ in digits)])

    # B holds N as 8 lanes: D's digit t is B's outer lanes, rN its inner ones.
    b_digits = [*[(x, "K") for x in order["K"]], *[(x, "N") for x in order["N"]]]
    lanes = {"t": 8 @ laneid, "rN": 4 @ laneid}
    b = TileLayout(
        S[
            tuple(e for (_, e), _ in b_digits) : tuple(
                STRIDES["B"][name] if dim == "K" else lanes[name] for (name, _), dim in b_digits
            )
        ]
    )
    return (
        tile("D", (16, 8), layout("D", "MN")),
        tile("A", (16, 16), layout("A", "MK")),
        tile("B", (16, 8), b),
    )


PERMUTED = list(
    itertools.product(
        itertools.permutations(range(2)), itertools.permutations(range(2)), itertools.permutations(range(3))
    )
)


@pytest.mark.parametrize(("m", "n", "k"), PERMUTED, ids=str)
def test_indices_permuted_alike_in_every_operand_fit(m, n, k) -> None:
    d, a, b = permuted(m, n, k)
    lowered = check(gemm(d, a, b, d, beta=1.0))
    # Rows, columns and terms are renumbered, the registers are not.
    (mma,) = [s for s in lowered.program.steps if s.instruction.collective]
    assert [[i for _, i in argument] for argument in mma.arguments] == [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1]]


def test_interleaved_rows_fit_only_if_every_operand_has_them() -> None:
    d, a, b = permuted((1, 0), (0, 1), (0, 1, 2))  # M = 2g + rM
    check(gemm(d, a, b, d))
    other = Tile("C", D.shape, D.dtype, D.layout)
    for bad, what in (
        (gemm(D, a, b, D), "A.M"),
        (gemm(d, A, b, d), "A.M"),
        (gemm(d, a, b, other, beta=1.0), "C.M"),
    ):
        assert f"{what}: a group of 8 is not one stride but S[(" in refusal(bad)


# --- registers in other places ------------------------------------------------------------------


@pytest.mark.parametrize("rM", [2, 4, 6, 10, 100])
@pytest.mark.parametrize("kHi", [2, 4, 8, 30])
def test_rm_and_khi_of_a_may_be_anywhere_in_whole_words(rM: int, kHi: int) -> None:
    layout = TileLayout(S[(2, 8, 2, 4, 2) : (rM, 4 @ laneid, kHi, 1 @ laneid, 1)])
    call = gemm(D, tile("A", (16, 16), layout), B, D)
    if rM == kHi:
        assert "A: register strides collide" in refusal(call)
        return
    lowered = check(call)
    (mma,) = [s for s in lowered.program.steps if s.instruction.collective]
    # Between rM and kHi the larger stride is the outer digit; words are named where they lie.
    assert [i for _, i in mma.arguments[1]] == [0, rM // 2, kHi // 2, (rM + kHi) // 2]


def test_gaps_offsets_and_falling_registers() -> None:
    d = tile("D", (16, 8), TileLayout(S[(2, 8, 4, 2) : (-5, 4 @ laneid, 1 @ laneid, 1)] + 8))
    c = tile("C", (16, 8), TileLayout(S[(2, 8, 4, 2) : (7, 4 @ laneid, 1 @ laneid, 1)] + 1))
    a = tile("A", (16, 16), TileLayout(S[(2, 8, 2, 4, 2) : (16, 4 @ laneid, -4, 1 @ laneid, 1)] + 10))
    b = tile("B", (16, 8), TileLayout(S[(2, 4, 2, 8) : (12, 1 @ laneid, 1, 4 @ laneid)] + 6))
    lowered = check(gemm(d, a, b, c, beta=1.0))
    views = {v.registers.role: v for v in lowered.program.views}
    assert (views["D"].offset, views["C"].offset, views["A"].offset, views["B"].offset) == (8, 1, 10, 6)
    assert {v.registers.role: v.registers.count for v in lowered.program.views} == {
        "D": 10,
        "C": 10,
        "A": 14,
        "B": 10,
    }
    text = str(lowered)
    assert "{d_local[8], d_local[9], d_local[3], d_local[4]}" in text
    assert "{a_words[5], a_words[13], a_words[3], a_words[11]}, {b_words[3], b_words[9]}" in text


def test_c_may_have_registers_of_its_own() -> None:
    c = tile("C", (16, 8), TileLayout(S[(2, 8, 4, 2) : (32, 4 @ laneid, 1 @ laneid, 1)] + 5))
    text = str(check(gemm(D, A, B, c, beta=1.0)))
    for i, j in enumerate((5, 6, 37, 38)):
        assert f"mov.f32 d_local[{i}], c_local[{j}];" in text


def test_the_same_thread_offset_everywhere_drops_out() -> None:
    shifted = [
        Tile(t.name, t.shape, t.dtype, TileLayout.from_iters(t.layout.shard, (), {warpid: 3, pid: 1}))
        for t in (D, A, B)
    ]
    d, a, b = shifted
    assert str(check(gemm(d, a, b, d)).program) == str(check(gemm(D, A, B, D)).program)


def test_iters_that_carry_nothing_do_not_count() -> None:
    d = tile(
        "D",
        (16, 8),
        TileLayout(S[(1, 2, 1, 8, 4, 2, 1) : (9, 2, 5 @ warpid, 4 @ laneid, 1 @ laneid, 1, 3 @ laneid)]),
    )
    b = tile(
        "B",
        (16, 8),
        TileLayout(S[(2, 4, 2, 2, 2, 2) : (2, 1 @ laneid, 1, 16 @ laneid, 8 @ laneid, 4 @ laneid)]),
    )
    check(gemm(d, A, b, d))


# --- regions ------------------------------------------------------------------------------------


def test_regions_of_larger_tiles() -> None:
    a = tile("A", (32, 64), tiled(F16, "A", (2, 4)))
    b = tile("B", (64, 24), tiled(F16, "B", (4, 3)))
    for row, term in itertools.product((0, 16), (0, 16, 32, 48)):
        check(gemm(D, a[row : row + 16, term : term + 16], b[term : term + 16, 8:16], D))
    check(gemm(D, a[16:32, 16:48], b[16:48, 16:24], D, beta=1.0))
    check(gemm(D, a[0:16, 8:16], b[8:16, 0:8], D))  # half of a k16 fragment is a k8 one
    check(gemm(D, a[0:16, 16:40], tile("B", (64, 8), tiled(F16, "B", (4, 1)))[16:40], D))


def test_a_region_of_d_keeps_the_rest() -> None:
    d = tile("D", (32, 24), tiled(F16, "D", (2, 3)))
    c = tile("C", (32, 24), tiled(F16, "D", (2, 3)))
    region = d[16:32, 8:16]
    for beta, other in itertools.product((0.0, 1.0), (region, c[0:16, 16:24], d[0:16, 8:16])):
        lowered = check(gemm(region, A, B, other, beta=beta))
        inputs = {r.role for r in lowered.program.inputs}
        assert inputs == {"A", "B"} | ({"C"} if beta else set()) | (
            {"D"} if not beta or other.tile == c else set()
        )


def test_what_a_region_of_d_leaves_is_nan_when_it_was_not_given() -> None:
    d = tile("D", (32, 8), tiled(F16, "D", (2, 1)))
    lowered = lower(gemm(d[16:32], A, B, d[16:32]), target="sm_80", scope="warp")
    arrays = arrays_of(lowered.call, np.random.default_rng(0))
    found = lowered.run(A=arrays["A"], B=arrays["B"])
    assert np.isnan(found[:16]).all()
    np.testing.assert_array_equal(found[16:], answer(lowered.call, arrays)[16:])


def test_unit_dimensions_are_ignored() -> None:
    a = tile("A", (1, 16, 1, 16), A_FRAG)
    b = tile("B", (16, 1, 8), B_FRAG)
    d = tile("D", (16, 8, 1), D_FRAG)
    check(gemm(d, a, b, d, beta=1.0))
    stack = tile("A", (3, 16, 2, 16), A_FRAG.tile_to((3, 16, 2, 16), (1, 16, 1, 16)))
    for i, j in itertools.product(range(3), range(2)):
        check(gemm(D, stack[i, :, j, :], B, D))
    batch = tile("D", (2, 16, 8), D_FRAG.tile_to((2, 16, 8), (1, 16, 8)))
    check(gemm(batch[1], A, B, batch[0], beta=1.0))


def test_bounds_and_extents_that_fold() -> None:
    k = sympy.Symbol("k", integer=True, positive=True)
    a = tile("A", (16, 32), tiled(F16, "A", (1, 2)))
    check(gemm(D, a[:, (8 * 2) : (8 * 4)], B, D))
    check(gemm(D, a[: 2 * k + 16 - 2 * k, 0 : sympy.Integer(16)], B, D))
    check(gemm(D, Tile("A", (16, 3 * k + 16 - 3 * k), "float16", A_FRAG), B, D))


def test_a_slice_that_no_layout_has_is_declined() -> None:
    a = tile("A", (32, 16), tiled(F16, "A", (2, 1)))
    assert "A (A[4:20, 0:16]): layout" in refusal(gemm(D, a[4:20], B, D))
    assert "cannot be read as 16 x 16" in refusal(gemm(D, a[4:20], B, D))


# --- the rest of a region's tile ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("outer", "words"),
    [
        ((2, 1, warpid), "spread over axis warpid"),
        ((2, 32, laneid), "reaches laneid 0 to 63"),
        ((2, -32, laneid), "reaches laneid -32 to 31"),
        ((2, 0), "share a register"),
        ((2, 2), "share a register"),
        ((2, -8), "reaches register slot -8"),
        ((2, 1, pid), "spread over axis pid"),
    ],
    ids=str,
)
@pytest.mark.parametrize("role", "ADC")
def test_a_tile_that_is_not_wholly_in_the_warps_registers_is_declined(
    role: str, outer: tuple, words: str
) -> None:
    """The region alone would fit; but its tile comes and goes as a whole, and there two elements share a place."""
    one = {"A": A, "D": D, "C": D}[role]
    layout = TileLayout.from_iters([outer, *one.layout.shard])
    whole = Tile(role, (32, one.shape[1]), one.dtype, layout)
    operands = {"D": D, "A": A, "B": B, "C": D, role: whole[0:16]}
    if role == "D":
        operands["C"] = whole[0:16]
    assert words in refusal(gemm(*operands.values(), beta=1.0))


def test_lanes_of_a_tile_that_overlap_are_declined() -> None:
    layout = TileLayout(S[(2, 2, 8, 4, 2) : (1 @ laneid, 2, 2 @ laneid, 1 @ laneid, 1)])
    whole = Tile("C", (32, 8), "float32", layout)
    assert "overlap" in refusal(gemm(D, A, B, whole[0:16], beta=1.0))
