"""The shipped fragments, the tables of the instructions and the views of registers, against the PTX ISA's formulas."""

from __future__ import annotations

import pytest

from lowering import Tile, gemm, lower
from lowering.fragments import (
    A_FRAG,
    A_FRAG_K8,
    B_FRAG,
    B_FRAG_K8,
    D_FRAG,
    layout,
    operand_shape,
    replicated,
    spread,
    tiled,
    transposed,
)
from lowering.isa import MMA_INSTRUCTIONS
from lowering.isa.operand_map import operand_map
from tilelayout import R, S, TileLayout, laneid, warpid

from ..gemm_cases import TILINGS, one_warp
from .ptx_isa import fragment

SHIPPED = {
    "D_FRAG": (D_FRAG, "D", 8, (16, 8)),
    "A_FRAG_K8": (A_FRAG_K8, "A", 8, (16, 8)),
    "B_FRAG_K8": (B_FRAG_K8, "B", 8, (8, 8)),
    "A_FRAG": (A_FRAG, "A", 16, (16, 16)),
    "B_FRAG": (B_FRAG, "B", 16, (16, 8)),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_every_element_of_a_shipped_fragment_is_where_ptx_has_it(name: str) -> None:
    found, role, k, shape = SHIPPED[name]
    wanted = fragment(role, k)
    assert len(wanted) == shape[0] * shape[1] == found.size()
    for (row, column), (lane, slot) in wanted.items():
        (place,) = found.owners(row, column, shape=shape)
        assert {a: v for a, v in place.items() if v} == {
            a: v for a, v in (("laneid", lane), ("m", slot)) if v
        }, (row, column)


def test_the_shipped_fragments_are_written_as_published() -> None:
    assert TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]) == D_FRAG == A_FRAG_K8
    assert TileLayout(S[(4, 2, 8) : (1 @ laneid, 1, 4 @ laneid)]) == B_FRAG_K8
    assert A_FRAG_K8.tile_to([16, 16], [16, 8]) == A_FRAG
    assert B_FRAG_K8.tile_to([16, 8], [8, 8]) == B_FRAG


@pytest.mark.parametrize("role", "ABCD")
@pytest.mark.parametrize("record", MMA_INSTRUCTIONS, ids=lambda r: r.name)
def test_every_record_derives_the_fragment_that_ptx_has(record, role: str) -> None:
    found, shape = layout(record, role), operand_shape(record, role)
    places = {}
    for (row, column), where in fragment(role, record.k).items():
        at = found.apply(row, column, shape=shape)
        places[row, column] = (at.get(laneid, 0), at.get("m", 0))
        assert places[row, column] == where
    assert len(set(places.values())) == shape[0] * shape[1]


@pytest.mark.parametrize("record", MMA_INSTRUCTIONS, ids=lambda r: r.name)
def test_counts_of_registers_follow_from_the_record(record) -> None:
    registers = {16: (4, 4, 2), 8: (4, 2, 1)}[record.k]
    assert (record.d_registers, record.a_registers, record.b_registers) == registers
    counts = {o.name: o.count for o in record.instruction.operands}
    assert counts == dict(zip("DAB", registers, strict=True))
    assert (record.m, record.n, record.row_blocks, record.column_registers) == (16, 8, 2, 2)
    assert record.k_blocks == record.k // 8


def test_the_table_has_four_records_and_states_k_pack() -> None:
    # The catalogue grows later: the four of today stay in front, in this order.
    today = [(r.name, r.k_pack, r.sm) for r in MMA_INSTRUCTIONS[:4]]
    assert today == [
        ("m16n8k16.f16", 2, 80),
        ("m16n8k16.bf16", 2, 80),
        ("m16n8k8.f16", 2, 75),
        ("m16n8k8.bf16", 2, 80),
    ]
    assert type(MMA_INSTRUCTIONS[0]).__dataclass_fields__["k_pack"].init
    for record in MMA_INSTRUCTIONS[:4]:
        kind = "f16" if record.a == "float16" else "bf16"
        wanted = f"mma.sync.aligned.m16n8k{record.k}.row.col.f32.{kind}.{kind}.f32"
        assert record.instruction.mnemonic == wanted
        assert record.instruction.collective


@pytest.mark.parametrize(
    ("rows", "columns", "role", "k"), [(16, 8, "D", 8), (16, 8, "A", 8), (16, 16, "A", 16)]
)
def test_the_operand_map_of_the_machine_is_that_of_ptx(rows: int, columns: int, role: str, k: int) -> None:
    row, column = operand_map(rows, columns, 2)
    for place, (lane, element) in fragment(role, k).items():
        assert (row[lane, element], column[lane, element]) == place


@pytest.mark.parametrize("k", [8, 16])
def test_the_operand_map_of_b_counts_rows_along_n(k: int) -> None:
    row, column = operand_map(8, k, 2)
    for (term, n), (lane, element) in fragment("B", k).items():
        assert (row[lane, element], column[lane, element]) == (n, term)


@pytest.mark.parametrize(("rows", "columns", "per_register"), [(16, 6, 2), (12, 8, 2), (16, 8, 3)])
def test_an_operand_map_that_is_no_bijection_is_refused(rows: int, columns: int, per_register: int) -> None:
    with pytest.raises(ValueError, match="bijection"):
        operand_map(rows, columns, per_register)


# --- tilings and orientations -------------------------------------------------------------------


@pytest.mark.parametrize("role", "ABD")
@pytest.mark.parametrize("tiles", [(1, 1), (2, 1), (1, 3), (2, 3), (4, 2)])
@pytest.mark.parametrize("k", [8, 16])
def test_a_tiling_is_the_fragment_again_in_further_registers(
    role: str, tiles: tuple[int, int], k: int
) -> None:
    record = next(r for r in MMA_INSTRUCTIONS if r.k == k)
    rows, columns = operand_shape(record, role)
    found = tiled(record, role, tiles)
    shape = (rows * tiles[0], columns * tiles[1])
    one = fragment(role, k)
    each = len(one) // 32
    for i in range(tiles[0]):
        for j in range(tiles[1]):
            for (row, column), (lane, slot) in one.items():
                at = found.apply(i * rows + row, j * columns + column, shape=shape)
                assert at.get(laneid, 0) == lane
                assert at.get("m", 0) == (i * tiles[1] + j) * each + slot


@pytest.mark.parametrize(("found", "shape"), [(A_FRAG, (16, 16)), (B_FRAG, (16, 8)), (D_FRAG, (16, 8))])
def test_a_transposed_fragment_has_the_same_registers(found: TileLayout, shape: tuple[int, int]) -> None:
    turned = transposed(found, shape)
    for i in range(shape[0]):
        for j in range(shape[1]):
            assert turned.apply(j, i, shape=shape[::-1]) == found.apply(i, j, shape=shape)


def test_spread_gives_each_warp_a_copy_of_its_own() -> None:
    found = spread(D_FRAG, (16, 8), 0, 4, "warpid")
    for warp in range(4):
        for (row, column), (lane, slot) in fragment("D", 8).items():
            (place,) = found.owners(16 * warp + row, column, shape=(64, 8))
            assert (place.get(warpid, 0), place.get(laneid, 0), place.get("m", 0)) == (warp, lane, slot)


def test_replicated_gives_every_warp_the_whole() -> None:
    found = replicated(spread(B_FRAG, (16, 8), 1, 2, "warpid"), 3, "warpid")
    for (row, column), (lane, slot) in fragment("B", 16).items():
        for block in range(2):
            places = found.owners(row, 8 * block + column, shape=(16, 16))
            assert sorted(p.get(warpid, 0) for p in places) == [block, block + 2, block + 4]
            assert {(p.get(laneid, 0), p.get("m", 0)) for p in places} == {(lane, slot)}
    assert replicated(D_FRAG, 2, "warpid") == TileLayout(
        S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)] + R[2 : 1 @ warpid]
    )


# --- mediated views -----------------------------------------------------------------------------

NAMES = {"D": "Mo No rM rN", "C": "Mo No rM rN", "A": "Mo Ko rM kHi p", "B": "Ko No kHi p"}


@pytest.mark.parametrize("tiling", TILINGS, ids=str)
def test_the_mediated_views_find_every_register_by_its_ptx_number(tiling: tuple[int, int, int, int]) -> None:
    mt, nt, kt, k = tiling
    call = one_warp(tiling, "float16", in_place=False)
    program = lower(call, target="sm_80", scope="warp").program
    views = {v.registers.role: v for v in program.views}
    sizes = {"Mo": mt, "No": nt, "Ko": kt, "rM": 2, "rN": 2, "kHi": k // 8, "p": 2}
    for role, names in NAMES.items():
        view = views[role]
        assert view.shape == tuple(sizes[n] for n in names.split())
        one = {where: place for place, where in fragment(role, k).items()}
        tile = call.tiles[role]
        per_tile = len(one) // 32
        for number, slot in enumerate(view.slots()):
            at = {}
            for name in reversed(names.split()):
                number, at[name] = divmod(number, sizes[name])
            # The PTX number of the element, in the slot order that the article gives.
            weights = {"A": {"kHi": 4, "rM": 2, "p": 1}, "B": {"kHi": 2, "p": 1}}.get(
                role, {"rM": 2, "rN": 1}
            )
            element = sum(weight * at[name] for name, weight in weights.items())
            outer, inner = (at[n] for n in names.split()[:2])
            assert slot == (outer * sizes[names.split()[1]] + inner) * per_tile + element
            rows, columns = {"A": (16, k), "B": (k, 8)}.get(role, (16, 8))
            for lane in range(32):
                row, column = one[lane, element]
                place = tile.layout.apply(outer * rows + row, inner * columns + column, shape=tile.shape)
                assert (place.get(laneid, 0), place.get("m", 0)) == (lane, slot)


def test_the_views_come_in_the_order_d_a_b_c() -> None:
    d, a = Tile("D", (16, 8), "float32", D_FRAG), Tile("A", (16, 16), "float16", A_FRAG)
    b = Tile("B", (16, 8), "float16", B_FRAG)
    program = lower(gemm(d, a, b, d), target="sm_80", scope="warp").program
    assert [(v.registers.role, v.registers.name) for v in program.views] == [
        ("D", "d_local"),
        ("A", "a_words"),
        ("B", "b_words"),
        ("C", "c_local"),
    ]
