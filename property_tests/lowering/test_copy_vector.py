"""``copy.vector`` and ``copy.scalar``: how wide accesses are, and what the widths follow from (C55)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import Lowered, Tile, copy, lower
from lowering.dtypes import dtype
from lowering.isa import GATHERS, LOADS, SCATTERS, STORES
from lowering.program import Address
from tilelayout import S, TileLayout, laneid
from tilelayout.expr import evaluate

from .copy_cases import attempt, check, fragments, memory_layouts, row_major

ROWS = TileLayout(S[(32, 16) : (1 @ laneid, 1)])
"""A row of 16 elements in each lane."""


def rows(memory: Any, name: str = "float16", scope: str = "shared", **options: Any) -> Lowered:
    """32 rows of 16 elements, one a lane, by vectors."""
    tile = Tile("memory", (32, 16), name, memory, scope, **options)
    found = lower(
        copy(Tile("held", (32, 16), name, ROWS), tile), target="sm_75", scope="warp", dispatch="copy.vector"
    )
    check(found)
    check(lower(copy(tile, Tile("held", (32, 16), name, ROWS)), target="sm_75", scope="warp"))
    return found


def widths(lowered: Lowered) -> list[int]:
    """Bytes of each access."""
    return [
        operand.bytes
        for step in lowered.program.steps
        for operand in step.instruction.operands
        if operand.is_address
    ]


@pytest.mark.parametrize(
    ("stride", "width", "limit"),
    [
        (16, 16, ""),
        (24, 16, ""),
        (100, 8, "lane 1 of warp 0 would take 16 bytes at byte 200"),
        (18, 4, "lane 1 of warp 0 would take 8 bytes at byte 36"),
    ],
)
def test_width_of_halves_follows_from_the_row_stride(stride: int, width: int, limit: str) -> None:
    """C55: rows of 200 bytes are 8-aligned only."""
    found = rows(TileLayout(S[(32, 16) : (stride, 1)]))
    assert widths(found) == [width] * (32 // width)
    assert limit in str(found)
    assert f"{32 // width} accesses of {width} bytes a lane" in str(found)


def test_an_odd_stride_leaves_elements() -> None:
    """C55: ld 101, two bytes at a time."""
    tile = Tile("memory", (32, 16), "float16", TileLayout(S[(32, 16) : (101, 1)]), "shared")
    found = lower(copy(Tile("held", (32, 16), "float16", ROWS), tile), target="sm_90", scope="warp")
    assert found.variant == "copy.scalar"
    assert "no access is wider than an element: lane 1 of warp 0 would take 4 bytes at byte 202" in " ".join(
        found.explain().split()
    )
    check(found)


@pytest.mark.parametrize(("alignment", "width"), [(4, 4), (8, 8), (16, 16), (128, 16)])
@pytest.mark.parametrize("scope", ["shared", "global"])
def test_width_follows_from_the_alignment_of_the_tile(alignment: int, width: int, scope: str) -> None:
    found = rows(row_major((32, 16)), scope=scope, alignment=alignment)
    assert set(widths(found)) == {width}
    if width < 16:
        assert f"memory is aligned to {alignment} bytes, not to {2 * width}" in str(found)


def test_a_base_two_bytes_on_leaves_elements() -> None:
    """C55: base pointer + 2 B, said by the alignment or by an offset in the layout."""
    for tile in (
        Tile("memory", (32, 16), "float16", row_major((32, 16)), "global", 2),
        Tile("memory", (32, 16), "float16", TileLayout(S[32, 16] + 1), "global"),
    ):
        found = lower(copy(Tile("held", (32, 16), "float16", ROWS), tile), target="sm_90", scope="warp")
        assert found.variant == "copy.scalar"
        check(found)


def test_registers_of_a_vector_may_be_in_any_order() -> None:
    """Slots run backwards through pairs: the registers of a vector are named in the order of memory."""
    held = Tile("held", (32, 4, 2), "float16", TileLayout(S[(32, 4, 2) : (1 @ laneid, -2, 1)] + 6))
    memory = Tile("memory", (32, 4, 2), "float16", TileLayout(S[32, 4, 2]), "shared")
    found = lower(copy(held, memory), target="sm_75", scope="warp", dispatch="copy.vector")
    (step,) = found.program.steps
    assert [i for _, i in step.arguments[0]] == [3, 2, 1, 0]
    check(found)


def test_columns_of_a_lane_are_gathered() -> None:
    found = lower(
        copy(
            Tile("held", (32, 16), "int8", ROWS),
            Tile("memory", (32, 16), "int8", TileLayout(S[(32, 16) : (1, 32)]), "shared"),
        ),
        target="sm_90",
        scope="warp",
    )
    assert {i.name for i in found.program.instructions} == {"load.shared.4xb8"}
    assert "elements 0 and 1 of held[0] in lane 0 of warp 0 lie at positions 0 and 32" in " ".join(
        found.explain().split()
    )
    check(found)


def test_some_registers_whole_and_some_not() -> None:
    """Two of three pairs are neighbors in memory."""
    layout = TileLayout(S[(32, 3, 2) : (1 @ laneid, 2, 1)])
    memory = TileLayout(S[(32, 3, 2) : (8, 3, 1)])  # pairs at 0, 3 and 6: the second is not aligned
    found = lower(
        copy(
            Tile("held", (32, 3, 2), "float16", layout),
            Tile("memory", (32, 3, 2), "float16", memory, "shared"),
        ),
        target="sm_75",
        scope="warp",
    )
    assert found.variant == "copy.scalar" or "element by element" in str(found)
    check(found)


@pytest.mark.parametrize(("name", "most"), [("float64", 2), ("float32", 4), ("bfloat16", 8), ("int8", 16)])
def test_sixteen_bytes_of_every_width(name: str, most: int) -> None:
    found = rows(row_major((32, 16)), name)
    assert set(widths(found)) == {16}
    assert len(widths(found)) == 16 // most


@given(st.data())
def test_no_wider_access_would_fit(data: Any) -> None:
    """Accesses are aligned and inside; and where two of one width could be one, some lane stands against it."""
    held = data.draw(fragments(shared=True))
    layout = data.draw(memory_layouts(held.shape, dtype(held.dtype).bits))
    src = Tile("memory", held.shape, held.dtype, layout, "shared")
    found = attempt(copy(held.tile(), src), target="sm_80", dispatch="copy.vector", **held.where)
    if isinstance(found, str):
        assert "no access is wider than an element" in found
        return
    lane, warp = np.indices((32, held.warps))
    spans = [
        (
            np.broadcast_to(evaluate(a.unit, {"lane": lane, "warp": warp}), lane.shape) * a.buffer.unit_bytes,
            o.bytes,
        )
        for step in found.program.steps
        for o, a in zip(step.instruction.operands, step.arguments, strict=True)
        if isinstance(a, Address) and o.bytes
    ]
    for start, width in spans:
        assert (start % width == 0).all()
        assert not any(
            w == width < 16 and (other == start + width).all() and (start % (2 * width) == 0).all()
            for other, w in spans
        )


def test_every_record_of_both_memories_is_there() -> None:
    for table in (LOADS, STORES):
        assert {(space, kind, n) for space, kind, n in table} == {
            (space, kind, n)
            for space in ("global", "shared")
            for kind, n in [(k, n) for k in ("b32", "f32") for n in (1, 2, 4)] + [("f64", 1), ("f64", 2)]
        }
    assert {width for _, width in GATHERS} == {1, 4, 8, 16}
    assert {width for _, width in SCATTERS} == {8, 16}
