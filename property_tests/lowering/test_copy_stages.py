"""Copies from and to one of several stages in shared memory, whose number is known at run time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import Lowered, Tile, copy, lower
from lowering.backends.banks import shared_accesses
from lowering.dtypes import dtype
from lowering.fragments import A_FRAG, D_FRAG
from lowering.program import unrolled
from tilelayout import LayoutError, S, Swizzle, SwizzledLayout, TileLayout
from tilelayout.expr import Var
from tilelayout.parts import Iter

from .copy_cases import attempt, check, fragments, memory_layouts

NUMBER = Var("s", 0, 2)


def at_stage(found: Lowered, call: Any, number: int) -> Lowered:
    """The same program where the stage's number is a constant."""
    body = unrolled(found.program.body, {"s": number})
    return replace(found, call=call, program=replace(found.program, body=body))


def staged(lay: Any, shape: tuple[int, ...], stride: int) -> Any:
    """Three stages of a layout, `stride` elements apart."""
    plain = lay.layout if isinstance(lay, SwizzledLayout) else lay
    stages = TileLayout.from_iters([Iter(3, stride, "m"), *plain.shard], plain.replica, dict(plain.offset))
    return SwizzledLayout(stages, lay.swizzle) if isinstance(lay, SwizzledLayout) else stages


@given(st.data())
def test_every_stage_is_right(data: Any) -> None:
    """Fragments of the catalogue, loaded and stored, in whatever layout: what holds for a constant holds for each."""
    load = data.draw(st.booleans())
    held = data.draw(fragments(shared=load))
    bits = dtype(held.dtype).bits
    lay = data.draw(memory_layouts(held.shape, bits))
    plain = lay.layout if isinstance(lay, SwizzledLayout) else lay
    reach = int(plain.span()) + int(plain.offset.get("m", 0))  # type: ignore[arg-type]
    unit = data.draw(st.sampled_from([n for n in (1, 2, 8, 1024) if n * bits % 8 == 0] or [8]))
    stride = -(-reach // unit) * unit
    memory = Tile("memory", (3, *held.shape), held.dtype, staged(lay, held.shape, stride), "shared")
    tile = held.tile()
    part = memory[NUMBER]
    found = attempt(copy(tile, part) if load else copy(part, tile), target="sm_100a", **held.where)
    if isinstance(found, str):
        torn = isinstance(lay, SwizzledLayout) and stride % (1 << lay.swizzle.width)
        assert torn or bits < 8
        assert "is no multiple of the" in found or "no instruction scatters" in found
        return
    for number in range(3):
        one = memory[number]
        check(at_stage(found, copy(tile, one) if load else copy(one, tile), number), number)


@pytest.mark.parametrize(
    ("stride", "variant"), [(256, "copy.ldmatrix"), (260, "copy.vector"), (257, "copy.scalar")]
)
def test_the_stride_decides_what_is_aligned(stride: int, variant: str) -> None:
    lay = TileLayout(S[(3, 16, 16) : (stride, 16, 1)])
    memory = Tile("memory", (3, 16, 16), "float16", lay, "shared")
    held = Tile("held", (16, 16), "float16", A_FRAG)
    found = lower(copy(held, memory[NUMBER]), target="sm_90", scope="warp")
    assert found.variant == variant
    if stride == 260:
        said = " ".join(found.explain().split())
        assert "memory is aligned to 16 bytes, and moves by 520, ldmatrix needs 16" in said
    for number in range(3):
        check(at_stage(found, copy(held, memory[number]), number))


def test_stores_to_a_stage() -> None:
    memory = Tile("memory", (3, 16, 8), "float16", TileLayout(S[3, 16, 8]), "shared")
    held = Tile("held", (16, 8), "float16", D_FRAG)
    found = lower(copy(memory[NUMBER], held), target="sm_90", scope="warp")
    assert found.variant == "copy.stmatrix"
    for number in range(3):
        check(at_stage(found, copy(memory[number], held), number))


def test_a_part_of_a_stage() -> None:
    memory = Tile("memory", (3, 32, 64), "float16", TileLayout(S[3, 32, 64]).swizzle(3, 3, 3), "shared")
    held = Tile("held", (16, 16), "float16", A_FRAG)
    found = lower(copy(held, memory[NUMBER, 16:32, 32:48]), target="sm_90", scope="warp")
    assert found.variant == "copy.ldmatrix"
    assert "4096" not in str(found)
    assert "none with bank conflicts" in found.explain()
    assert all(a.degree == 1 for a in shared_accesses(found.program))
    for number in range(3):
        check(at_stage(found, copy(held, memory[number, 16:32, 32:48]), number))


def test_bounds_keep_it_inside() -> None:
    memory = Tile("memory", (3, 16, 8), "float16", TileLayout(S[3, 16, 8]), "shared")
    for wrong in (Var("s", 0, 3), Var("s", -1, 2), Var("s", 0), Var("s")):
        with pytest.raises(LayoutError, match=r"dimension 0: range .* is not within \[0, 3\)"):
            memory[wrong]
    with pytest.raises(LayoutError, match="has no constant length"):
        memory[0 : Var("s", 1, 2)]
    assert memory[Var("s", 0, 1) + 1 : Var("s", 0, 1) + 2].extents == (1, 16, 8)


def test_other_places_that_begin_at_run_time() -> None:
    memory = Tile("memory", (3, 32, 16), "float16", TileLayout(S[3, 32, 16]), "shared")
    held = Tile("held", (16, 16), "float16", A_FRAG)
    row = Var("row", 0, 16)
    said = str(attempt(copy(held, memory[0, row : row + 16]), target="sm_90", scope="warp"))
    assert "dimension 1 begins at run time with extent 16; only a single stage may" in said
    pair = Tile("pair", (2, 16, 16), "float16", TileLayout.from_iters([Iter(2, 8, "m"), *A_FRAG.shard]))
    other = Tile("other", (16, 16), "float16", TileLayout(S[16, 16]), "shared")
    said = str(attempt(copy(pair[Var("s", 0, 1)], other), target="sm_90", scope="warp"))
    assert "dimension 0 begins at run time; the registers of pair are numbered by constants" in said
    folded = Tile(
        "folded", (4, 16, 16), "float16", TileLayout(S[(2, 2, 16, 16) : (256, 1024, 16, 1)]), "shared"
    )
    said = str(attempt(copy(held, folded[Var("s", 0, 3)]), target="sm_90", scope="warp"))
    assert "has no single stride along it" in said


def test_a_swizzle_that_a_stage_falls_across() -> None:
    lay = SwizzledLayout(TileLayout(S[(3, 16, 16) : (264, 16, 1)]), Swizzle(1, 3, 3))
    memory = Tile("memory", (3, 16, 16), "float16", lay, "shared")
    held = Tile("held", (16, 16), "float16", A_FRAG)
    said = str(attempt(copy(held, memory[NUMBER]), target="sm_90", scope="warp"))
    assert "its stride 264 is no multiple of the 128 elements that" in said
