"""``copy.ldmatrix`` and ``copy.stmatrix``: which form is taken, where lanes point, and why a form is declined.

Cases: which lane points at which row (C43), transposed operands below and above 16 bits (C44).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import Lowered, Tile, copy, lower
from lowering.dtypes import dtype
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG, layout, operand_shape, tiled, transposed
from lowering.isa import DENSE, MMA_INSTRUCTIONS
from lowering.isa.ldmatrix import LDMATRIX
from lowering.isa.matrix_feeds import feeds
from lowering.program import Address
from tilelayout import S, Swizzle, TileLayout, laneid
from tilelayout.expr import evaluate

from .copy_cases import attempt, check, column_major, row_major

RECORD = {i.name: i for i in DENSE}
LANES = np.arange(32)


def shared(shape: tuple[int, ...], name: str, lay: Any, **options: Any) -> Tile:
    return Tile("memory", shape, name, lay, "shared", **options)


def loaded(shape: tuple[int, int], name: str, fragment: TileLayout, lay: Any, **options: Any) -> Lowered:
    """A fragment loaded by ldmatrix, and checked."""
    call = copy(Tile("held", shape, name, fragment), shared(shape, name, lay))
    lowered = lower(call, **{"target": "sm_75", "scope": "warp", "dispatch": "copy.ldmatrix", **options})
    check(lowered)
    return lowered


def names(lowered: Lowered) -> list[str]:
    return [step.instruction.name for step in lowered.program.steps]


def points(lowered: Lowered, step: int = 0) -> Any:
    """Element of memory that each lane of warp 0 points at."""
    (address,) = [a for a in lowered.program.steps[step].arguments if isinstance(a, Address)]
    return np.broadcast_to(evaluate(address.element, {"lane": LANES, "warp": 0 * LANES}), 32)


def refusal(shape: tuple[int, int], name: str, fragment: TileLayout, lay: Any, **options: Any) -> str:
    call = copy(Tile("held", shape, name, fragment), shared(shape, name, lay))
    found = attempt(call, dispatch="copy.ldmatrix", scope="warp", **{"target": "sm_90", **options})
    assert isinstance(found, str)
    return found


# --- which lane points at which row (C43) -------------------------------------------------------


def test_a_of_m16n8k16_from_rows() -> None:
    found = loaded((16, 16), "float16", A_FRAG, row_major((16, 16), 8))
    assert names(found) == ["ldmatrix.m8n8.x4.b16"]
    np.testing.assert_array_equal(points(found), LANES % 16 * 24 + 8 * (LANES // 16))


def test_b_as_n_k_from_rows() -> None:
    """Column-major B: (N, K) rows of K, without .trans."""
    found = loaded((8, 16), "float16", transposed(B_FRAG, (16, 8)), row_major((8, 16)))
    assert names(found) == ["ldmatrix.m8n8.x2.b16"]
    np.testing.assert_array_equal(points(found)[:16], (LANES % 8 * 16 + 8 * (LANES // 8))[:16])


def test_b_as_k_n_from_rows_is_transposed() -> None:
    found = loaded((16, 8), "float16", B_FRAG, row_major((16, 8), 8))
    assert names(found) == ["ldmatrix.m8n8.x2.trans.b16"]
    np.testing.assert_array_equal(points(found)[:16], LANES[:16] * 16)


def test_lanes_beyond_the_lines_point_at_lines_too() -> None:
    """sm_75 wants every lane's address valid."""
    found = loaded((8, 16), "float16", transposed(B_FRAG, (16, 8)), row_major((8, 16)))
    assert set(points(found)) == set(points(found)[:16])


@pytest.mark.parametrize(
    ("tiles", "wanted"),
    [((1, 1), ["x4"]), ((1, 2), ["x4"] * 2), ((2, 2), ["x4"] * 4)],
)
def test_as_many_matrices_as_there_are(tiles: tuple[int, int], wanted: list[str]) -> None:
    shape = (16 * tiles[0], 16 * tiles[1])
    found = loaded(shape, "bfloat16", tiled(MMA_INSTRUCTIONS[1], "A", tiles), row_major(shape))
    assert names(found) == [f"ldmatrix.m8n8.{x}.b16" for x in wanted]


@pytest.mark.parametrize(("columns", "wanted"), [(8, "x2"), (16, "x4"), (24, "x4 x2"), (40, "x4 x4 x2")])
def test_what_is_left_over_takes_fewer(columns: int, wanted: str) -> None:
    """Two matrices for each 8 columns of B, taken four at a time."""
    shape = (16, columns)
    found = loaded(shape, "float16", tiled(MMA_INSTRUCTIONS[0], "B", (1, columns // 8)), row_major(shape))
    assert names(found) == [f"ldmatrix.m8n8.{x}.trans.b16" for x in wanted.split()]


def test_one_matrix() -> None:
    found = loaded(
        (8, 8), "float16", TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)]), row_major((8, 8))
    )
    assert names(found) == ["ldmatrix.m8n8.x1.b16"]


@pytest.mark.parametrize(("tiles", "wanted"), [((2, 3), "x4 x2"), ((3, 2), "x4 x2"), ((2, 5), "x4 x2 x4")])
def test_matrices_of_one_move_need_not_follow_one_another(tiles: tuple[int, int], wanted: str) -> None:
    """B of m16n8k8: one matrix a tile.  In a grid two by three, four corners go together and two are left."""
    shape = (8 * tiles[0], 8 * tiles[1])
    found = loaded(shape, "float16", tiled(MMA_INSTRUCTIONS[2], "B", tiles), row_major(shape))
    assert names(found) == [f"ldmatrix.m8n8.{x}.trans.b16" for x in wanted.split()]


@given(st.data())
def test_every_16_bit_operand_from_every_good_stage(data: Any) -> None:
    """Rows or columns at multiples of 16 bytes, padded or swizzled in units of 16 bytes or more: always ldmatrix."""
    record = MMA_INSTRUCTIONS[data.draw(st.integers(0, 3))]
    role = data.draw(st.sampled_from("AB"))
    tiles = data.draw(st.tuples(st.sampled_from((1, 2, 4)), st.sampled_from((1, 2, 4))))
    one = operand_shape(record, role)
    shape = (one[0] * tiles[0], one[1] * tiles[1])
    fragment = tiled(record, role, tiles)
    make = data.draw(st.sampled_from((row_major, column_major)))
    lay = make(shape, 8 * data.draw(st.integers(0, 3)))
    if data.draw(st.booleans()):
        bits = data.draw(st.integers(1, 3))
        lay = lay.swizzle(Swizzle(bits, 3 + data.draw(st.integers(0, 1)), data.draw(st.integers(bits, 4))))
    found = loaded(shape, record.a, fragment, lay)
    across = (make is row_major) == (role == "B")
    assert all(("trans" in name) == across for name in names(found))
    whole, rest = divmod(sum(r.count for r in found.program.registers), 4)
    assert len(names(found)) == whole + rest.bit_count()


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_89"])
def test_stmatrix_begins_with_sm_90(target: str) -> None:
    held, dst = Tile("held", (16, 8), "float16", D_FRAG), shared((16, 8), "float16", row_major((16, 8)))
    found = lower(copy(dst, held), target=target, scope="warp")
    assert found.variant == "copy.vector"
    assert f"needs sm_90 or newer, the target is {target}" in " ".join(found.explain().split())
    check(found)
    for newer in ("sm_90", "sm_120"):
        stored = lower(copy(dst, held), target=newer, scope="warp")
        assert names(stored) == ["stmatrix.m8n8.x2.b16"]
        check(stored)


# --- below and above 16 bits (C44) --------------------------------------------------------------


@pytest.mark.parametrize("name", ["m16n8k32.s8", "m16n8k32.e4m3", "m16n8k64.s4", "m16n8k8.tf32"])
def test_row_major_a_of_any_width(name: str) -> None:
    """A line is 16 bytes of neighbors along K, whatever the elements are."""
    record = RECORD[name]
    shape = operand_shape(record, "A")
    found = loaded(shape, record.a, layout(record, "A"), row_major(shape), target="sm_80")
    assert names(found) == ["ldmatrix.m8n8.x4.b16"]


@pytest.mark.parametrize("name", ["m16n8k32.s8", "m16n8k32.e4m3", "m16n8k8.tf32"])
def test_b_stored_as_k_n_has_no_ldmatrix(name: str) -> None:
    record = RECORD[name]
    shape = operand_shape(record, "B")
    said = refusal(shape, record.b, layout(record, "B"), row_major(shape, 16))
    if dtype(record.b).bits == 8:
        assert "m8n8.trans.b16: moves units of 16 bits, and elements 0 and 1 of held[0] in lane 0" in said
        assert "8 bits each, are at positions 0 and 24" in said
        assert "m16n16.trans.b8: needs sm_100a" in said
    else:
        assert "an element of 32 bits would be torn apart" in said
    call = copy(
        Tile("held", shape, record.b, layout(record, "B")), shared(shape, record.b, row_major(shape, 16))
    )
    other = lower(call, target="sm_90", scope="warp")
    assert other.variant == "copy.scalar"
    check(other)


def test_bytes_are_transposed_where_the_target_can() -> None:
    record = RECORD["m16n8k32.s8"]
    shape = (32, 16)
    found = loaded(shape, "int8", tiled(record, "B", (1, 2)), row_major(shape), target="sm_100a")
    assert set(names(found)) <= {"ldmatrix.m16n16.x1.trans.b8", "ldmatrix.m16n16.x2.trans.b8"}
    assert "needs sm_100a" in refusal(
        shape, "int8", tiled(record, "B", (1, 2)), row_major(shape), target="sm_100"
    )


FED = [
    (record, role, along)
    for record in {(i.shape, i.a): i for i in DENSE if i.rule != "quadpair" and not i.scale}.values()
    for role in "AB"
    for along in ("columns", "rows")
    if record.container(role) == dtype(getattr(record, role.lower())).bits <= 32
]


@pytest.mark.parametrize(("record", "role", "along"), FED, ids=lambda x: getattr(x, "name", x))
def test_it_agrees_with_the_feeds_of_the_catalogue(record: Any, role: str, along: Any) -> None:
    """Two ways to the same answer: here by where layouts put bytes, there by the operand's own map."""
    shape = operand_shape(record, role)  # type: ignore[arg-type]
    fragment = layout(record, role)  # type: ignore[arg-type]
    if role == "B":
        fragment, shape = transposed(fragment, shape), shape[::-1]
    name = getattr(record, role.lower())
    bits = dtype(name).bits
    registers = shape[0] * shape[1] * bits // 1024
    ones = [move for move in LDMATRIX if move.shape == "m8n8" and move.count == 1]
    fed = any(all(feeds(move, shape, bits, along=along, first=r) for r in range(registers)) for move in ones)
    pad = 128 // bits
    stage = row_major(shape, pad) if along == "columns" else column_major(shape, pad)
    call = copy(Tile("held", shape, name, fragment), shared(shape, name, stage))
    found = attempt(call, target="sm_90", scope="warp", dispatch="copy.ldmatrix")
    assert isinstance(found, Lowered) == fed, found


# --- other reasons ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lay", "said"),
    [
        (row_major((16, 16), 4), "m8n8.b16: line 1 of warp 0 begins at byte 40, no multiple of 16"),
        (row_major((16, 16), 1), "m8n8.b16: line 1 of warp 0 begins at byte 34, no multiple of 16"),
        (TileLayout(S[(16, 16) : (32, 2)]), "holds what is at byte 4"),
        (row_major((16, 16)).swizzle(Swizzle(1, 0, 3)), "holds what is at byte"),
        (row_major((16, 16)).swizzle(Swizzle(2, 2, 3)), "holds what is at byte"),
    ],
)
def test_lines_must_be_16_aligned_bytes(lay: Any, said: str) -> None:
    assert said in refusal((16, 16), "float16", A_FRAG, lay)


def test_the_tile_must_be_aligned() -> None:
    call = copy(
        Tile("held", (16, 16), "float16", A_FRAG),
        shared((16, 16), "float16", row_major((16, 16)), alignment=8),
    )
    found = attempt(call, target="sm_90", scope="warp", dispatch="copy.ldmatrix")
    assert isinstance(found, str)
    assert "memory is aligned to 8 bytes, ldmatrix needs 16" in found


def test_a_layout_that_is_no_fragment() -> None:
    rows = TileLayout(S[(32, 8) : (1 @ laneid, 1)])
    said = refusal((32, 8), "float16", rows, row_major((32, 8)))
    assert (
        "held[0] of lane 1 of warp 0 holds what is at byte 16; the 16 bytes of the line that lane 0 begins"
        in said
    )


def test_doubles_are_no_matrices() -> None:
    record = RECORD["m8n8k4.f64"]
    said = refusal((8, 4), "float64", layout(record, "A"), row_major((8, 4)))
    assert "ldmatrix moves registers of 32 bits, float64 is held in 64" in said


def test_other_directions_are_declined_by_scope() -> None:
    held = Tile("held", (16, 16), "float16", A_FRAG)
    memory = Tile("memory", (16, 16), "float16", row_major((16, 16)), "global")
    text = " ".join(lower(copy(held, memory), target="sm_90", scope="warp").explain().split())
    assert "ldmatrix loads from shared to local, not from global to local" in text
    assert "stmatrix stores from local to shared, not from global to local" in text
