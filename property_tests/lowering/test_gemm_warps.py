"""Gemms of several warps: each operand held by exactly the warps that need it."""

from __future__ import annotations

import numpy as np
import pytest

from lowering import GemmCall, Tile, gemm, lower
from lowering.backends import reference
from tilelayout import Iter, R, S, TileLayout, laneid, tx, warpid

from ..gemm_cases import DTYPES, SPLITS, several_warps
from .gemm_answers import answer, arrays_of, check, refusal

# Written out rather than made by `fragments.spread`: (warps along M, along N, strides of the two on the warp axis).
GRIDS = [
    (2, 1, 1, 0), (1, 2, 0, 1), (4, 1, 1, 0), (1, 4, 0, 1), (8, 1, 1, 0), (1, 8, 0, 1),
    (2, 2, 2, 1), (2, 2, 1, 2), (4, 2, 2, 1), (4, 2, 1, 4), (2, 4, 4, 1), (2, 4, 1, 2),
]  # fmt: skip


def iters(*parts: tuple) -> list[Iter]:
    return [Iter(*part) for part in parts if part[0] > 1]


def grid(
    along_m: int,
    along_n: int,
    stride_m: int,
    stride_n: int,
    name: str = "warpid",
    dtype: str = "float16",
    **more: object,
) -> GemmCall:
    """One k16 atom a warp; warp = stride_m * i + stride_n * j computes block (i, j)."""
    m, n = (along_m, stride_m, name), (along_n, stride_n, name)
    lanes8, lanes4 = (8, 4, "laneid"), (4, 1, "laneid")
    d = TileLayout.from_iters(iters(m, (2, 2), lanes8, n, lanes4, (2, 1)))
    a = TileLayout.from_iters(iters(m, (2, 2), lanes8, (2, 4), lanes4, (2, 1)), iters(n))
    b = TileLayout.from_iters(iters((2, 2), lanes4, (2, 1), n, lanes8), iters(m))
    rows, columns = 16 * along_m, 8 * along_n
    tile = Tile("D", (rows, columns), "float32", d)
    return gemm(tile, Tile("A", (rows, 16), dtype, a), Tile("B", (16, columns), dtype, b), tile, **more)


def changed(call: GemmCall, **layouts: TileLayout) -> GemmCall:
    """The call with other layouts for some operands."""
    regions = {}
    for role, region in call.operands():
        layout = layouts.get(role, region.tile.layout)
        name = region.tile.name if layout == region.tile.layout else role + "_other"
        regions[role] = Tile(name, region.tile.shape, region.tile.dtype, layout)
    return gemm(**regions, beta=call.beta)


def replicated(layout: TileLayout, *replica: tuple) -> TileLayout:
    return TileLayout.from_iters(layout.shard, replica, layout.offset)


@pytest.mark.parametrize("grid_of_warps", GRIDS, ids=str)
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_warps_of_a_cta(grid_of_warps: tuple[int, int, int, int], beta: float) -> None:
    warps = grid_of_warps[0] * grid_of_warps[1]
    lowered = check(grid(*grid_of_warps, beta=beta), "cta", 32 * warps)
    assert lowered.program.warps == warps
    assert sum(s.instruction.collective for s in lowered.program.steps) == 1


@pytest.mark.parametrize("grid_of_warps", [g for g in GRIDS if g[0] * g[1] == 4], ids=str)
@pytest.mark.parametrize("launch", [None, 128, 256])
def test_warps_of_a_warpgroup(grid_of_warps: tuple[int, int, int, int], launch: int | None) -> None:
    lowered = check(grid(*grid_of_warps, "wid_in_wg", "bfloat16"), "warpgroup", launch)
    assert lowered.program.warps == 4


@pytest.mark.parametrize(("scope", "along_m", "along_n"), SPLITS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_splits_of_the_shipped_fragments(scope: str, along_m: int, along_n: int, dtype: str) -> None:
    call = several_warps(dtype, scope, along_m, along_n, beta=1.0)
    lowered = check(call, scope, 32 * along_m * along_n)
    assert sum(s.instruction.collective for s in lowered.program.steps) == 8


def test_a_cta_of_one_warp_needs_no_axis() -> None:
    check(grid(1, 1, 0, 0), "cta", 32)


def test_regions_of_tiles_over_warps() -> None:
    axis_m, lanes8, lanes4 = (4, 1, "warpid"), (8, 4, "laneid"), (4, 1, "laneid")
    a = Tile(
        "A", (64, 32), "float16", TileLayout.from_iters(iters(axis_m, (2, 2), lanes8, (4, 4), lanes4, (2, 1)))
    )
    b = Tile("B", (16, 8), "float16", TileLayout.from_iters(iters((2, 2), lanes4, (2, 1), lanes8), [axis_m]))
    d = Tile(
        "D", (64, 16), "float32", TileLayout.from_iters(iters(axis_m, (2, 2), lanes8, (2, 4), lanes4, (2, 1)))
    )
    check(gemm(d[:, 8:16], a[:, 16:32], b, d[:, 0:8], beta=1.0), "cta", 128)


# --- replicas -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("along_m", "along_n", "role"), [(4, 1, "B"), (1, 4, "A"), (2, 2, "A"), (2, 2, "B")])
def test_a_missing_or_wrong_replica_names_the_one_that_is_needed(
    along_m: int, along_n: int, role: str
) -> None:
    good = grid(along_m, along_n, along_n, 1)
    layout = good.tiles[role].layout
    (needed,) = layout.replica
    wanted = f"it needs replica R[{needed.extent} : {needed.stride} @ warpid]"
    who = "that split M" if role == "B" else "that split N"
    for replica in (
        [],
        [(needed.extent, needed.stride + 1, "warpid")],
        [(needed.extent + 1, needed.stride, "warpid")],
        [(needed.extent, needed.stride, "laneid")],
        [(needed.extent, needed.stride, "m")],
        [needed, (2, 8, "warpid")],
        [needed, (2, 8, "m")],
    ):
        text = refusal(changed(good, **{role: replicated(layout, *replica)}), "cta", 128)
        assert wanted in text, (replica, text)
        assert f"{role} must be held by the {needed.extent} warps {who}" in text


@pytest.mark.parametrize("role", "CD")
def test_an_accumulator_takes_no_replica(role: str) -> None:
    good = grid(2, 2, 2, 1, beta=1.0)
    bad = replicated(good.tiles["D"].layout, (2, 4, "warpid"))
    call = changed(good, **({"C": bad} if role == "C" else {"C": good.tiles["D"].layout, "D": bad}))
    text = refusal(call, "cta", 128)
    assert f"{role}: layout has a replica" in text
    assert "no replica is accepted" in text


def test_a_replica_that_nobody_needs_is_declined() -> None:
    good = grid(4, 1, 1, 0)
    text = refusal(changed(good, A=replicated(good.tiles["A"].layout, (2, 4, "warpid"))), "cta", 128)
    assert "A: layout has a replica" in text
    assert "no other warp needs them" in text


def test_replicas_that_add_no_copy_do_not_count() -> None:
    good = grid(4, 1, 1, 0)
    layouts = {
        "A": replicated(good.tiles["A"].layout, (1, 3, "warpid"), (3, 0, "m")),
        "B": replicated(good.tiles["B"].layout, (2, 1, "warpid"), (2, 2, "warpid")),
    }
    check(changed(good, **layouts), "cta", 128)


@pytest.mark.parametrize("role", "DABC")
@pytest.mark.parametrize("replica", [(2, 1, "warpid"), (2, 8), (2, 32, "laneid")])
def test_at_warp_scope_no_replica_is_accepted(role: str, replica: tuple) -> None:
    good = grid(1, 1, 0, 0, beta=1.0)
    layouts = {"C": good.tiles["D"].layout, role: replicated(good.tiles[role].layout, replica)}
    text = refusal(changed(good, **layouts))
    assert "no_replica" in text
    assert f"{role} (" in text
    assert "at warp scope no replica is accepted" in text


# --- which warps --------------------------------------------------------------------------------


def test_k_over_warps_needs_a_reduction() -> None:
    lanes8, lanes4 = (8, 4, "laneid"), (4, 1, "laneid")
    a = TileLayout.from_iters([(2, 2), lanes8, (2, 1, "warpid"), (2, 4), lanes4, (2, 1)])
    b = TileLayout.from_iters([(2, 1, "warpid"), (2, 2), lanes4, (2, 1), lanes8])
    d = Tile("D", (16, 8), "float32", TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]))
    call = gemm(d, Tile("A", (16, 32), "float16", a), Tile("B", (32, 8), "float16", b), d)
    assert "K is split over warps: the partial products would have to be reduced" in refusal(call, "cta", 64)


@pytest.mark.parametrize("launch", [32, 96, 160, 256])
def test_the_scope_has_exactly_the_warps_that_hold_d(launch: int) -> None:
    text = refusal(grid(4, 1, 1, 0), "cta", launch)
    assert (
        f"D is held by warps [0, 1, 2, 3]; at cta scope it must be spread over all {launch // 32} warps"
        in text
    )


@pytest.mark.parametrize(("stride_m", "stride_n"), [(1, 1), (2, 2), (1, 3), (4, 1), (3, 2)])
def test_warps_are_numbered_from_zero_without_gaps(stride_m: int, stride_n: int) -> None:
    text = refusal(grid(2, 2, stride_m, stride_n), "cta", 128)
    assert "it must be spread over all 4 warps, each once" in text


def test_the_split_of_a_dimension_is_the_same_in_every_operand() -> None:
    good = grid(2, 2, 2, 1, beta=1.0)
    for role in "AC":
        other = grid(2, 2, 1, 2).tiles["D" if role == "C" else role].layout
        layouts = {"C": good.tiles["D"].layout, role: replicated(other, *good.tiles[role].layout.replica)}
        assert "M is split over warps differently: D has R[2 : 2 @ warpid]" in refusal(
            changed(good, **layouts), "cta", 128
        )
    b = replicated(grid(2, 2, 1, 2).tiles["B"].layout, *good.tiles["B"].layout.replica)
    assert "N is split over warps differently: D has R[2 : 1 @ warpid]" in refusal(
        changed(good, B=b), "cta", 128
    )


def test_d_on_another_warp_than_a_and_b() -> None:
    good = grid(1, 1, 0, 0)
    moved = TileLayout.from_iters(good.tiles["D"].layout.shard, (), {"warpid": 1})
    for scope, launch in (("warp", None), ("cta", 32)):
        text = refusal(changed(good, D=moved, C=moved), scope, launch)
        assert "warp offset on warpid differs: D is at 1, A at 0" in text


def test_fragments_begin_at_the_first_warp() -> None:
    good = grid(2, 1, 1, 0)
    moved = {
        role: TileLayout.from_iters(t.layout.shard, t.layout.replica, {"warpid": 2})
        for role, t in good.tiles.items()
    }
    assert "warp offset 2 on warpid" in refusal(changed(good, **moved), "cta", 128)


def test_an_equal_offset_on_another_thread_axis_drops_out() -> None:
    good = grid(4, 1, 1, 0)
    moved = {
        role: TileLayout.from_iters(t.layout.shard, t.layout.replica, {"wid_in_wg": 2, "bx": 1})
        for role, t in good.tiles.items()
    }
    lowered = check(changed(good, **moved), "cta", 128)
    arrays = arrays_of(lowered.call, np.random.default_rng(0))
    given = {role: arrays[role] for role in "AB"}
    np.testing.assert_array_equal(
        reference.run_kernel(lowered.kernel.program, given), answer(lowered.call, arrays)
    )


@pytest.mark.parametrize(
    ("scope", "launch", "name"),
    [
        ("cta", 128, "wid_in_wg"),
        ("warpgroup", None, "warpid"),
        ("warp", None, "warpid"),
        ("warp", None, "wid_in_wg"),
        ("cta", 128, "wgid"),
    ],
)
def test_the_warps_of_another_scope_are_declined(scope: str, launch: int | None, name: str) -> None:
    text = refusal(grid(4, 1, 1, 0, name), scope, launch)
    assert f"axis {name}" in text or "no_replica" in text
    other = {"cta": "warpid", "warpgroup": "wid_in_wg"}.get(scope) if name != "wgid" else None
    assert (f"partition(..., axis='{other}') makes those" in text) == (other is not None)


def test_warpid_where_laneid_is_meant() -> None:
    good = grid(1, 1, 0, 0)
    for role in "DAB":
        shard = [
            Iter(e, s, warpid) if a == laneid else Iter(e, s, a) for e, s, a in good.tiles[role].layout.shard
        ]
        bad = TileLayout.from_iters(shard)
        layouts = {"D": bad, "C": bad} if role == "D" else {role: bad}
        assert "is on axis warpid" in refusal(changed(good, **layouts))
        assert "must be on axis laneid" in refusal(changed(good, **layouts), "cta", 1024)


def test_tx_is_no_lane() -> None:
    good = grid(1, 1, 0, 0)
    shard = [Iter(e, s, tx if a == laneid else a) for e, s, a in good.tiles["A"].layout.shard]
    assert "is on axis tx" in refusal(changed(good, A=TileLayout.from_iters(shard)))


def test_every_warp_of_the_kernel_gets_its_own_rows() -> None:
    layout = TileLayout(S[(4, 2, 8, 4, 2) : (1 @ warpid, 2, 4 @ laneid, 1 @ laneid, 1)])
    assert grid(4, 1, 1, 0).tiles["D"].layout == layout
    assert grid(4, 1, 1, 0).tiles["B"].layout.replica == TileLayout(S[1:0] + R[4 : 1 @ warpid]).replica
    lowered = lower(grid(4, 1, 1, 0), target="sm_80", scope="cta", launch=128)
    assert "warp" in str(lowered.kernel.program)
