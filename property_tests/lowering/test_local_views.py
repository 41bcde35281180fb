"""`Tile.local`: the registers of a lane, in physical order or through a mediated view."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy

from lowering import Tile
from lowering.fragments import A_FRAG, A_FRAG_K8, B_FRAG, D_FRAG, layout, operand_shape, tiled, transposed
from lowering.isa import MMA_INSTRUCTIONS
from tilelayout import LayoutError, R, S, TileLayout, bx, laneid, tx, warpid
from tilelayout.expr import Var, evaluate

from .ptx_isa import fragment


def tile_of(found: TileLayout, shape: tuple[int, ...], dtype: str = "float16") -> Tile:
    return Tile("A", shape, dtype, found)


# --- raw order ----------------------------------------------------------------------------------


def test_the_raw_order_of_a_is_khi_rm_pack() -> None:
    view = tile_of(A_FRAG, (16, 16)).local(2, 2, 2)
    for kHi, rM, p in itertools.product(range(2), repeat=3):
        assert view.slot(kHi, rM, p) == 4 * kHi + 2 * rM + p
        for lane in range(32):
            group, thread = lane >> 2, lane % 4
            assert view.coordinate(kHi, rM, p, lane=lane) == (group + 8 * rM, 2 * thread + p + 8 * kHi)


def test_the_raw_order_of_tilings_has_the_tiles_outermost() -> None:
    record = MMA_INSTRUCTIONS[0]
    a = tile_of(tiled(record, "A", (2, 3)), (32, 48)).local(2, 3, 2, 2, 2)
    for mo, ko, kHi, rM, p, lane in itertools.product(
        range(2), range(3), range(2), range(2), range(2), (0, 7, 30)
    ):
        group, thread = lane >> 2, lane % 4
        wanted = (16 * mo + group + 8 * rM, 16 * ko + 2 * thread + p + 8 * kHi)
        assert a.coordinate(mo, ko, kHi, rM, p, lane=lane) == wanted
    b = tile_of(tiled(record, "B", (2, 3)), (32, 24)).local(2, 3, 2, 2)
    for ko, no, kHi, p, lane in itertools.product(range(2), range(3), range(2), range(2), (0, 7, 30)):
        group, thread = lane >> 2, lane % 4
        assert b.coordinate(ko, no, kHi, p, lane=lane) == (16 * ko + 2 * thread + p + 8 * kHi, 8 * no + group)
    d = tile_of(tiled(record, "D", (2, 3)), (32, 24), "float32").local(2, 3, 2, 2)
    for mo, no, rM, rN, lane in itertools.product(range(2), range(3), range(2), range(2), (0, 7, 30)):
        group, thread = lane >> 2, lane % 4
        assert d.coordinate(mo, no, rM, rN, lane=lane) == (16 * mo + group + 8 * rM, 8 * no + 2 * thread + rN)


@pytest.mark.parametrize("record", MMA_INSTRUCTIONS[:3:2], ids=lambda r: r.name)
@pytest.mark.parametrize("role", "ABD")
def test_the_flat_view_reads_every_register_of_every_lane(record, role: str) -> None:
    tile = tile_of(layout(record, role), operand_shape(record, role))
    wanted = fragment(role, record.k)
    view = tile.local(len(wanted) // 32)
    read = {
        view.coordinate(slot, lane=lane): (lane, slot)
        for lane in range(32)
        for slot in range(len(wanted) // 32)
    }
    assert read == wanted
    assert tile.local().shape == (len(wanted) // 32,)


def test_a_transposed_fragment_is_read_with_its_indices_exchanged() -> None:
    view = tile_of(transposed(B_FRAG, (16, 8)), (8, 16)).local(4)
    wanted = {(n, k): place for (k, n), place in fragment("B", 16).items()}
    assert {view.coordinate(s, lane=t): (t, s) for t in range(32) for s in range(4)} == wanted


def test_coordinates_are_expressions_for_an_expression() -> None:
    lane = Var("lane", 0, 31)
    view = tile_of(A_FRAG, (16, 16)).local(2, 2, 2)
    row, column = view.coordinate(1, 0, 1, lane=lane)
    assert [(evaluate(row, {"lane": x}), evaluate(column, {"lane": x})) for x in range(32)] == [
        view.coordinate(1, 0, 1, lane=x) for x in range(32)
    ]


# --- gaps, offsets, mediated views --------------------------------------------------------------


def test_the_span_counts_gaps_and_the_offset() -> None:
    found = TileLayout(S[(2, 8, 4, 2) : (6, 4 @ laneid, 1 @ laneid, 2)] + 3)  # slots 3, 5, 9, 11
    tile = tile_of(found, (16, 8), "float32")
    view = tile.local(12)
    assert view.coordinate(5, lane=0) == (0, 1)
    assert view.coordinate(11, lane=31) == (15, 7)
    for slot in sorted(set(range(12)) - {3, 5, 9, 11}):
        with pytest.raises(LayoutError, match=f"slot {slot} is a gap"):
            view.coordinate(slot, lane=0)
    for wrong in ((4,), (11,), (2, 2), (3, 5)):
        with pytest.raises(LayoutError, match="register span is 12"):
            tile.local(*wrong)
    assert tile.local(3, 4).slot(2, 3) == 11


def test_a_mediated_view_renumbers_the_registers() -> None:
    tile = tile_of(A_FRAG, (16, 16))
    order = TileLayout(S[(2, 2, 2) : (2, 4, 1)])  # [rM, kHi, k_pack]
    view = tile.local(2, 2, 2, layout=order)
    for rM, kHi, p in itertools.product(range(2), repeat=3):
        assert view.coordinate(rM, kHi, p, lane=13) == (3 + 8 * rM, 2 + p + 8 * kHi)
    half = tile.local(2, 2, layout=TileLayout(S[(2, 2) : (2, 1)] + 4))
    assert half.coordinate(0, 0, lane=0) == (0, 8)


@pytest.mark.parametrize(
    ("shape", "order", "words"),
    [
        ((2, 2), TileLayout(S[8:1]), "4 registers, the view's layout has 8"),
        ((9,), TileLayout(S[9:1]), "leaves the lane's 8 registers"),
        ((8,), TileLayout(S[8:1] + 1), "leaves the lane's 8 registers"),
        ((8,), TileLayout(S[8 : 1 @ laneid]), "leaves the lane's 8 registers"),
        ((4,), TileLayout(S[4:1] + R[2:4]), "leaves the lane's 8 registers"),
        ((8,), TileLayout(S[8:-1]), "reaches register slot -7"),
    ],
)
def test_a_mediated_view_stays_on_the_lanes_registers(shape: tuple, order: TileLayout, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        tile_of(A_FRAG, (16, 16)).local(*shape, layout=order)


def test_an_index_outside_the_view_is_refused() -> None:
    view = tile_of(A_FRAG, (16, 16)).local(2, 2, 2)
    for index in ((2, 0, 0), (0, 0, -1), (0, 0), (0, 0, 0, 0)):
        with pytest.raises(LayoutError):
            view.slot(*index)
        with pytest.raises(LayoutError):
            view.coordinate(*index, lane=0)


@pytest.mark.parametrize("shape", [(4, 0), (0,), (-8,), (8.0,), (True, 8)])
def test_a_malformed_shape_is_refused(shape: tuple) -> None:
    with pytest.raises(LayoutError):
        tile_of(A_FRAG, (16, 16)).local(*shape)


def test_a_lane_that_holds_nothing_has_no_coordinate() -> None:
    some = tile_of(TileLayout(S[(16, 2) : (1 @ laneid, 1)] + 8 @ laneid), (16, 2))
    assert some.local(2).coordinate(1, lane=8) == (0, 1)
    assert some.local(2).coordinate(1, lane=23) == (15, 1)
    even = tile_of(TileLayout(S[(16, 2) : (2 @ laneid, 1)]), (16, 2))
    assert even.local(2).coordinate(0, lane=30) == (15, 0)
    for tile, lanes in ((some, (0, 7, 24, 31)), (even, (1, 31))):
        for lane in lanes:
            with pytest.raises(LayoutError, match=f"lane {lane} .*holds nothing"):
                tile.local(2).coordinate(0, lane=lane)
            with pytest.raises(LayoutError, match="holds nothing"):
                tile.local(2).coordinate(0, lane=np.int64(lane))
    assert even.local(2).coordinate(np.int64(0), lane=np.uint8(30), warp=np.int32(0)) == (15, 0)
    for lane in (-1, 32, True, 3.0, np.float64(3), np.arange(4), None, "3"):
        with pytest.raises(LayoutError):
            tile_of(D_FRAG, (16, 8)).local(4).coordinate(0, lane=lane)


def test_warps_hold_their_own_part() -> None:
    tile = tile_of(
        TileLayout(S[(4, 2, 8, 4, 2) : (1 @ warpid, 2, 4 @ laneid, 1 @ laneid, 1)]), (64, 8), "float32"
    )
    assert tile.local(4).coordinate(2, lane=5, warp=3) == (48 + 1 + 8, 2)
    with pytest.raises(LayoutError, match="warp 4 holds nothing"):
        tile.local(4).coordinate(2, lane=5, warp=4)


def test_an_offset_alone_names_a_warp_and_drops_out() -> None:
    tile = tile_of(TileLayout.from_iters(D_FRAG.shard, (), {"warpid": 3, "wid_in_wg": 1}), (16, 8))
    assert tile.local(4).coordinate(2, lane=5) == tile_of(D_FRAG, (16, 8)).local(4).coordinate(2, lane=5)


def test_replicas_hold_the_same() -> None:
    tile = tile_of(TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)] + R[2 : 2 @ warpid]), (16, 8))
    view = tile.local(4)
    assert view.coordinate(3, lane=9, warp=0) == view.coordinate(3, lane=9, warp=2) == (10, 3)
    with pytest.raises(LayoutError, match="warp 1 holds nothing"):
        view.coordinate(3, lane=9, warp=1)


# --- what has no local view ---------------------------------------------------------------------


def test_only_registers_have_local_views() -> None:
    with pytest.raises(LayoutError, match="shared scope"):
        Tile("A", (16, 16), "float16", A_FRAG, "shared").local(8)


def test_registers_below_zero_and_symbolic_ones_are_refused() -> None:
    with pytest.raises(LayoutError, match="slot -2"):
        tile_of(TileLayout(S[(2, 8, 4, 2) : (-2, 4 @ laneid, 1 @ laneid, 1)]), (16, 8)).local(4)
    upside_down = tile_of(TileLayout(S[(2, 8, 4, 2) : (-2, 4 @ laneid, 1 @ laneid, 1)] + 2), (16, 8))
    assert upside_down.local(4).coordinate(0, lane=0) == (8, 0)
    n = sympy.Symbol("n", integer=True, positive=True)
    with pytest.raises(LayoutError, match="symbolic"):
        tile_of(TileLayout(S[(n, 32) : (1, 1 @ laneid)]), (n, 32)).local(4)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (TileLayout(S[(8, 4, 4) : (4 @ laneid, 2 @ laneid, 1)]), "overlap"),
        (TileLayout(S[(4, 8, 4) : (0, 4 @ laneid, 1)]), "share a register"),
        (TileLayout(S[(8, 4, 4) : (4 @ laneid, 1 @ laneid, 0)]), "share a register"),
    ],
)
def test_a_register_with_two_elements_has_no_coordinate(found: TileLayout, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        Tile("A", (found.size(),), "float16", found).local().coordinate(0, lane=0)


def test_axes_and_lanes_that_cannot_be_read_backwards_are_refused() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    for found, words in (
        (TileLayout(S[(8, 8, 2) : (1 @ bx, 1 @ laneid, 1)]), "axis bx"),
        (TileLayout(S[(16, 2) : (1 @ tx, 1)]), "axis tx"),
        (TileLayout(S[(16, 2) : (n @ laneid, 1)]), "symbolic"),
    ):
        with pytest.raises(LayoutError, match=words):
            Tile("A", (found.size(),), "float16", found).local(2).coordinate(0, lane=0)


def test_the_view_of_k8_has_no_high_block() -> None:
    view = tile_of(A_FRAG_K8, (16, 8)).local(2, 2)
    assert [view.slot(rM, p) for rM in range(2) for p in range(2)] == [0, 1, 2, 3]
