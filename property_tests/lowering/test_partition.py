"""The layouts of whole warp-tiled gemms, against the PTX ISA's formulas."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import Tile, gemm, lower
from lowering.fragments import partition
from lowering.isa import DENSE, MMA_INSTRUCTIONS, MmaInstruction
from lowering.isa.ldmatrix import LDMATRIX
from lowering.isa.mma import QUADPAIR
from lowering.isa.sparse import MMA_SP
from tilelayout import LayoutError, TileLayout, laneid, warpid

from .mma_isa import scale_lane
from .test_mma_records import SCALED, fragment_of

WHOLE = [r for r in DENSE if r not in QUADPAIR]
FORMS = list({(r.shape, r.k_pack, r.b_registers): r for r in WHOLE}.values())
"""One record of each set of fragments."""

ORIENTATIONS = [(False, False), (False, True), (True, False), (True, True)]


def holders(
    layout: TileLayout, at: tuple[int, int], shape: tuple[int, int], axis: str = warpid
) -> set[tuple[int, int, int]]:
    return {(p.get(axis, 0), p.get(laneid, 0), p.get("m", 0)) for p in layout.owners(*at, shape=shape)}


def check(
    record: MmaInstruction, tiles: tuple[int, int, int], warps: tuple[int, int], ta: bool, tb: bool
) -> None:
    """Every element is in the warps that need it, in the lane and slot of PTX's formula, tiles row-major."""
    (mt, nt, kt), (wm, wn) = tiles, warps
    M, N, K = mt * wm * record.m, nt * wn * record.n, kt * record.k
    found = partition(record, M, N, K, warps, transpose_a=ta, transpose_b=tb)
    assert (found.tiles, found.warps, found.instruction) == (tiles, warps, record)
    assert found.C == found.D
    a, b, d = (fragment_of(record, role) for role in "ABD")
    ea, eb, ed = (len(x) // 32 for x in (a, b, d))
    for i, j in product(range(M), range(N)):
        (rest_i, row), (rest_j, column) = divmod(i, record.m), divmod(j, record.n)
        (wi, ti), (wj, tj) = divmod(rest_i, mt), divmod(rest_j, nt)
        lane, slot = d[row, column]
        assert holders(found.D, (i, j), (M, N)) == {(wi * wn + wj, lane, (ti * nt + tj) * ed + slot)}
    for i, k in product(range(M), range(K)):
        (rest, row), (tk, column) = divmod(i, record.m), divmod(k, record.k)
        wi, ti = divmod(rest, mt)
        lane, slot = a[row, column]
        at, shape = ((k, i), (K, M)) if ta else ((i, k), (M, K))
        wanted = {(wi * wn + wj, lane, (ti * kt + tk) * ea + slot) for wj in range(wn)}
        assert holders(found.A, at, shape) == wanted
    for k, j in product(range(K), range(N)):
        (tk, row), (rest, column) = divmod(k, record.k), divmod(j, record.n)
        wj, tj = divmod(rest, nt)
        lane, slot = b[row, column]
        at, shape = ((j, k), (N, K)) if tb else ((k, j), (K, N))
        wanted = {(wi * wn + wj, lane, (tk * nt + tj) * eb + slot) for wi in range(wm)}
        assert holders(found.B, at, shape) == wanted


@pytest.mark.parametrize("record", FORMS, ids=lambda r: r.name)
def test_every_element_of_one_instruction(record: MmaInstruction) -> None:
    check(record, (1, 1, 1), (1, 1), ta=False, tb=False)


@pytest.mark.parametrize("name", ["m16n8k8.f16", "m8n8k4.f64", "m16n8k4.tf32", "m16n8k16.s8"])
@pytest.mark.parametrize(("ta", "tb"), ORIENTATIONS)
def test_every_element_over_warps_in_every_orientation(name: str, ta: bool, tb: bool) -> None:
    record = next(r for r in DENSE if r.name == name)
    check(record, (2, 1, 2), (2, 2), ta, tb)
    check(record, (1, 2, 1), (1, 4), ta, tb)


@given(
    st.sampled_from([r for r in FORMS if r.k <= 16]),
    st.tuples(*[st.integers(1, 2)] * 3),
    st.tuples(*[st.sampled_from([1, 2, 3])] * 2),
    st.booleans(),
    st.booleans(),
)
def test_drawn_partitions(
    record: MmaInstruction, tiles: tuple[int, int, int], warps: tuple[int, int], ta: bool, tb: bool
) -> None:
    if record.k * warps[0] * warps[1] <= 64:
        check(record, tiles, warps, ta, tb)


@pytest.mark.parametrize("record", [SCALED[0], *SCALED[-3:]], ids=lambda r: r.name)
def test_scale_factors_over_warps(record: MmaInstruction) -> None:
    """A register of four bytes for each tile, row-major; as many holders as A and B have."""
    (mt, nt, kt), (wm, wn), blocks = (2, 3, 2), (2, 2), record.scale.vector  # type: ignore[union-attr]
    M, N, K = mt * wm * 16, nt * wn * 8, kt * record.k
    found = partition(record, M, N, K, (wm, wn))
    assert found.SFA is not None
    assert found.SFB is not None
    for i, block in product(range(M), range(kt * blocks)):
        (rest, row), (tk, within) = divmod(i, 16), divmod(block, blocks)
        wi, ti = divmod(rest, mt)
        slot = 4 * (ti * kt + tk) + within
        wanted = {(wi * wn + wj, scale_lane("SFA", row, 0), slot) for wj in range(wn)}
        assert holders(found.SFA, (i, block), (M, kt * blocks)) == wanted
    for block, j in product(range(kt * blocks), range(N)):
        (rest, column), (tk, within) = divmod(j, 8), divmod(block, blocks)
        wj, tj = divmod(rest, nt)
        slot = 4 * (tk * nt + tj) + within
        wanted = {(wi * wn + wj, scale_lane("SFB", column, 0), slot) for wi in range(wm)}
        assert holders(found.SFB, (block, j), (kt * blocks, N)) == wanted
    assert partition(MMA_INSTRUCTIONS[0], 16, 8, 16).SFA is None


def test_another_axis_holds_the_warps() -> None:
    found = partition(MMA_INSTRUCTIONS[0], 32, 16, 16, (2, 2), axis="wid_in_wg")
    assert holders(found.D, (31, 15), (32, 16), axis="wid_in_wg") == {(3, 31, 3)}
    assert {w for w, _, _ in holders(found.B, (0, 8), (16, 16), axis="wid_in_wg")} == {1, 3}


@pytest.mark.parametrize("record", MMA_INSTRUCTIONS, ids=lambda r: r.name)
@pytest.mark.parametrize(("ta", "tb"), ORIENTATIONS)
@pytest.mark.parametrize("warps", [(1, 1), (2, 2), (4, 1), (1, 4)])
def test_the_gemm_variant_takes_a_partition(
    record: MmaInstruction, ta: bool, tb: bool, warps: tuple[int, int]
) -> None:
    M, N, K = 32 * warps[0], 16 * warps[1], 32
    found = partition(record, M, N, K, warps, transpose_a=ta, transpose_b=tb)
    d = Tile("D", (M, N), record.d, found.D)
    a = Tile("A", (K, M) if ta else (M, K), record.a, found.A)
    b = Tile("B", (N, K) if tb else (K, N), record.b, found.B)
    call = gemm(d, a, b, d, transpose_a=ta, transpose_b=tb)
    count = warps[0] * warps[1]
    scope = {"scope": "warp"} if count == 1 else {"scope": "cta", "launch": 32 * count}
    program = lower(call, target="sm_90", **scope).program
    assert sum(s.instruction.collective for s in program.steps) == 2 * 2 * (32 // 16)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            (MMA_INSTRUCTIONS[0], 48, 8, 16, (2, 1)),
            r"M = 48 is no multiple of 32 \(2 warps of 16\).*m16n8k16.f16",
        ),
        ((MMA_INSTRUCTIONS[0], 16, 24, 16, (1, 2)), r"N = 24 is no multiple of 16 \(2 warps of 8\)"),
        ((MMA_INSTRUCTIONS[0], 16, 8, 24), r"K = 24 is no multiple of 16, which m16n8k16.f16 needs"),
        ((MMA_INSTRUCTIONS[0], 16, 8, 0), "partition"),
        ((MMA_INSTRUCTIONS[0], 16, 8, 16, (1, 0)), "partition"),
        ((MMA_INSTRUCTIONS[0], 16, 8, 16, (1, 1, 1)), "partition.*two numbers"),
        (
            (QUADPAIR[0], 8, 8, 4),
            r"A of m8n8k4.row.row.f16 is no matrix that tiles: its shape is \(4, 8, 4\)",
        ),
    ],
)
def test_extents_that_do_not_divide_are_refused(arguments: tuple, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        partition(*arguments)


@pytest.mark.parametrize("instruction", ["m16n8k16.f16", None, LDMATRIX[0], MMA_SP[0]])
def test_what_is_no_dense_product_is_refused(instruction: object) -> None:
    with pytest.raises(
        LayoutError, match=r"partition: instruction must be an MmaInstruction, got .*catalogue.named"
    ):
        partition(instruction, 64, 64, 64)  # type: ignore[arg-type]


@pytest.mark.parametrize("flag", ["transpose_a", "transpose_b"])
def test_a_flag_that_is_no_bool_is_refused(flag: str) -> None:
    with pytest.raises(LayoutError, match=f"partition: {flag} must be True or False, got 'no'"):
        partition(MMA_INSTRUCTIONS[0], 16, 8, 16, **{flag: "no"})  # type: ignore[arg-type]
