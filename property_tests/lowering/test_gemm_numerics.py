"""The lowered gemm on the reference machine: tilings, types, beta, orientations; exactly, and against float64."""

from __future__ import annotations

import numpy as np
import pytest

from lowering import Tile, gemm, lower
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG, tiled
from lowering.isa import MMA_INSTRUCTIONS
from tilelayout import TileLayout

from ..gemm_cases import DTYPES, TILINGS, one_warp
from .gemm_answers import arrays_of, check, product, run

CASES = [
    (t, dtype, beta, place)
    for t in TILINGS
    for dtype in DTYPES
    for beta in (0.0, 1.0)
    for place in (True, False)
]


@pytest.mark.parametrize(("tiling", "dtype", "beta", "in_place"), CASES, ids=str)
def test_tilings_are_exact_on_small_integers(tiling, dtype: str, beta: float, in_place: bool) -> None:
    lowered = check(one_warp(tiling, dtype, beta, in_place=in_place))
    mt, nt, kt, k = tiling
    multiplications = [s for s in lowered.program.steps if s.instruction.collective]
    assert len(multiplications) == mt * nt * kt
    assert lowered.variant == "mma.m16n8k*"
    name = "f16" if dtype == "float16" else "bf16"
    assert lowered.instructions == (f"mma.sync.aligned.m16n8k{k}.row.col.f32.{name}.{name}.f32",)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("beta", [0.0, 1.0])
@pytest.mark.parametrize("tiling", TILINGS, ids=str)
def test_tilings_agree_with_float64(tiling, dtype: str, beta: float) -> None:
    """Products of 16-bit inputs are exact in float64, and so nearly are their sums; f32 rounds once an mma.

    So the error is at most one half unit in the last place of f32 for each of the Kt instructions, relative to the
    sum of the terms' magnitudes, and what float64 itself loses.
    """
    call = one_warp(tiling, dtype, beta, in_place=False)
    lowered = lower(call, target="sm_80", scope="warp")
    rng = np.random.default_rng(1)
    arrays = {
        role: rng.standard_normal(tile.shape).astype(np.float32).astype(tile.element.numpy)
        for role, tile in call.tiles.items()
    }
    found = run(lowered, arrays)
    wanted, magnitude = product(call, arrays)
    steps = tiling[2]
    assert (np.abs(found - wanted) <= steps * magnitude * (2.0**-24 + 2.0**-40)).all()
    assert (found != wanted).any()  # it does round: the data is not trivial


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_orientations(dtype: str, transpose_a: bool, transpose_b: bool, beta: float) -> None:
    plain = lower(one_warp((2, 2, 2, 16), dtype, beta), target="sm_80", scope="warp")
    call = one_warp((2, 2, 2, 16), dtype, beta, transpose_a=transpose_a, transpose_b=transpose_b)
    lowered = check(call)
    # The physical registers do not change with the orientation.
    assert [s.arguments for s in lowered.program.steps] == [s.arguments for s in plain.program.steps]


def by_groups(layout: TileLayout, shape: tuple[int, int]) -> TileLayout:
    grouped, seps = layout.group(shape)
    return grouped.permute_by_groups(seps, [1, 0])


@pytest.mark.parametrize("k", [8, 16])
def test_orientations_by_group_and_permute_by_groups(k: int) -> None:
    record = next(r for r in MMA_INSTRUCTIONS if r.k == k)
    a = Tile("A", (2 * k, 32), "float16", by_groups(tiled(record, "A", (2, 2)), (32, 2 * k)))
    b = Tile("B", (24, 2 * k), "float16", by_groups(tiled(record, "B", (2, 3)), (2 * k, 24)))
    d = Tile("D", (32, 24), "float32", tiled(record, "D", (2, 3)))
    check(gemm(d, a, b, d, transpose_a=True, transpose_b=True, beta=1.0))


def test_the_first_record_that_fits_wins() -> None:
    # K = 24 is no multiple of 16; fragments stacked from k8 along K are k16's.
    assert "k8." in check(one_warp((1, 1, 3, 8), "float16")).instructions[0]
    assert "k16." in check(one_warp((1, 1, 2, 8), "float16")).instructions[0]
    # On sm_75 only m16n8k8.f16 exists.
    assert "k8." in check(one_warp((1, 1, 2, 16), "float16"), target="sm_75").instructions[0]


def test_a_large_tile() -> None:
    lowered = check(one_warp((4, 8, 4, 16), "bfloat16", 1.0))
    assert sum(s.instruction.collective for s in lowered.program.steps) == 4 * 8 * 4


def test_one_tile_can_be_both_inputs() -> None:
    a = Tile("A", (16, 16), "float16", A_FRAG)
    d = Tile("D", (16, 16), "float32", D_FRAG.tile_to((16, 16), (16, 8)))
    check(gemm(d, a, a, d, transpose_b=True, beta=1.0))


def test_special_values_pass_through() -> None:
    a, b = Tile("A", (16, 16), "float16", A_FRAG), Tile("B", (16, 8), "float16", B_FRAG)
    d = Tile("D", (16, 8), "float32", D_FRAG)
    call = gemm(d, a, b, d, beta=1.0)
    arrays = arrays_of(call, np.random.default_rng(3))
    arrays["A"][3, 5] = np.inf
    arrays["A"][4, 5] = np.nan
    arrays["B"][5, :] = 1
    arrays["C"][7, 7] = -np.inf
    with np.errstate(invalid="ignore"):
        found = run(lower(call, target="sm_80", scope="warp"), arrays)
    assert (found[3] == np.inf).all()
    assert np.isnan(found[4]).all()
    assert found[7, 7] == -np.inf
    assert np.isfinite(np.delete(found, [3, 4, 7], axis=0)).all()
