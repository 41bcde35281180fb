"""``copy`` between registers and memory: after it every place that dst's layout names holds its element of src.

Fragments of the whole catalogue, over warps, against row- and column-major, padded, shifted and swizzled memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Symbol

from lowering import Tile, copy, lower
from lowering.backends.arrays import to_bits
from lowering.dtypes import dtype
from lowering.fragments import A_FRAG
from tilelayout import LayoutError, R, S, TileLayout, laneid, warpid

from .copy_cases import Held, attempt, check, column_major, fragments, memory_layouts, numbered, row_major

TARGETS = ("sm_75", "sm_80", "sm_90", "sm_100a", "sm_120")


@given(st.data())
def test_memory_to_registers(data: Any) -> None:
    held = data.draw(fragments(shared=True))
    scope = data.draw(st.sampled_from(("shared", "shared", "global")))
    layout = data.draw(memory_layouts(held.shape, dtype(held.dtype).bits, scope))
    src = Tile("memory", held.shape, held.dtype, layout, scope)
    check(lower(copy(held.tile(), src), target=data.draw(st.sampled_from(TARGETS)), **held.where))


@given(st.data())
def test_registers_to_memory(data: Any) -> None:
    """4- and 1-bit elements that share a byte can be stored in whole registers only."""
    held = data.draw(fragments())
    scope = data.draw(st.sampled_from(("shared", "shared", "global")))
    layout = data.draw(memory_layouts(held.shape, dtype(held.dtype).bits, scope))
    dst = Tile("memory", held.shape, held.dtype, layout, scope)
    lowered = attempt(copy(dst, held.tile()), target=data.draw(st.sampled_from(TARGETS)), **held.where)
    if isinstance(lowered, str):
        assert dtype(held.dtype).bits < 8
        assert "no instruction scatters elements of" in lowered
    else:
        check(lowered)


@given(st.data())
def test_each_variant_that_lowers_a_copy_is_right(data: Any) -> None:
    held = data.draw(fragments(shared=True))
    layout = data.draw(memory_layouts(held.shape, dtype(held.dtype).bits))
    src = Tile("memory", held.shape, held.dtype, layout, "shared")
    lowered = 0
    for name in ("copy.ldmatrix", "copy.vector", "copy.scalar"):
        found = attempt(copy(held.tile(), src), target="sm_100a", dispatch=name, **held.where)
        if not isinstance(found, str):
            assert found.variant == name
            lowered += 1
            check(found)
    assert lowered


@given(st.data())
def test_regions_of_both_sides(data: Any) -> None:
    """A part of memory into a part of a fragment's tiles; the other registers keep what they hold."""
    blocks = data.draw(st.tuples(st.integers(1, 2), st.integers(1, 3)))
    shape = (16 * blocks[0], 16 * blocks[1])
    held = Tile("held", shape, "float16", A_FRAG.tile_to(shape, (16, 16)))
    begin = [16 * data.draw(st.integers(0, n - 1)) for n in blocks]
    end = [data.draw(st.integers(b // 16 + 1, n)) * 16 for b, n in zip(begin, blocks, strict=True)]
    margin = data.draw(st.tuples(st.sampled_from((0, 8, 16)), st.sampled_from((0, 8, 24))))
    whole = tuple(m + e - b for m, b, e in zip(margin, begin, end, strict=True))
    layout = data.draw(memory_layouts(whole, 16))
    memory = Tile("memory", whole, "float16", layout, "shared")
    mine = held[begin[0] : end[0], begin[1] : end[1]]
    other = memory[margin[0] :, margin[1] :]
    target = data.draw(st.sampled_from(TARGETS))
    check(lower(copy(mine, other), target=target, scope="warp"))
    check(lower(copy(other, mine), target=target, scope="warp"))


@settings(max_examples=settings.default.max_examples // 2)
@given(st.data())
def test_memory_to_memory(data: Any) -> None:
    """Global to shared, back, and between shared tiles, by vectors that all threads share out."""
    name = data.draw(st.sampled_from(("float16", "float32", "float64", "int8", "int4", "float6_e3m2fn")))
    bits = {"float6_e3m2fn": 8}.get(name, dtype(name).bits)
    shape = (data.draw(st.sampled_from((8, 16, 24))), data.draw(st.sampled_from((16, 32))))
    scopes = data.draw(st.sampled_from((("global", "shared"), ("shared", "global"), ("shared", "shared"))))
    src, dst = (
        Tile(role, shape, name, data.draw(memory_layouts(shape, bits, scope)), scope)
        for role, scope in zip(("one", "two"), scopes, strict=True)
    )
    warps = data.draw(st.sampled_from((1, 2, 4)))
    found = attempt(copy(dst, src), target="sm_80", scope="cta", launch=32 * warps)
    if isinstance(found, str):
        assert f"{warps * 32} threads of {8 if bits == 64 else 4} bytes each" in found or (
            bits < 8 and "no instruction scatters" in found
        )
        return
    array = numbered(shape, name)
    np.testing.assert_array_equal(to_bits(found.run(src=array), src.element), to_bits(array, src.element))


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
@pytest.mark.parametrize("lay", [row_major, column_major])
def test_a_stage_is_filled_by_16_bytes_a_thread(warps: int, lay: Any) -> None:
    """Threads go along what is contiguous in global memory; the stage is swizzled and free of conflicts."""
    src = Tile("src", (64, 64), "float16", lay((64, 64), 8), "global")
    dst = Tile("dst", (64, 64), "float16", lay((64, 64)).swizzle(3, 3, 3), "shared")
    found = lower(copy(dst, src), target="sm_80", scope="cta", launch=32 * warps)
    assert found.variant == "copy.through_registers"
    assert [s.instruction.name for s in found.program.steps] == [
        *["load.v4.b32"] * (16 // warps), *["store.shared.v4.b32"] * (16 // warps),
    ]  # fmt: skip
    assert "none with bank conflicts" in found.explain()
    array = numbered((64, 64), "float16")
    np.testing.assert_array_equal(found.run(src=array).view("u2"), array.view("u2"))


def test_small_tiles_take_narrower_vectors() -> None:
    src = Tile("src", (16, 16), "float16", row_major((16, 16)), "global")
    dst = Tile("dst", (16, 16), "float16", row_major((16, 16)), "shared")
    for warps, width in ((1, 16), (2, 8), (4, 4)):
        found = lower(copy(dst, src), target="sm_80", scope="cta", launch=32 * warps)
        assert {o.bytes for i in found.program.instructions for o in i.operands if o.is_address} == {width}
    text = attempt(copy(dst, src), target="sm_80", scope="cta", launch=256)
    assert "256 float16 are no whole number of 512: 256 threads of 4 bytes each" in text


def test_dimensions_of_extent_one_do_not_count() -> None:
    held = Tile("held", (16, 16), "float16", A_FRAG)
    stages = Tile("stages", (3, 16, 16), "float16", TileLayout(S[3, 16, 16]), "shared")
    for stage in range(3):
        lowered = lower(copy(held, stages[stage]), target="sm_80", scope="warp")
        assert lowered.variant == "copy.ldmatrix"
        check(lowered)


def test_registers_beside_the_region_stay() -> None:
    shape = (16, 32)
    held = Tile("held", shape, "float16", A_FRAG.tile_to(shape, (16, 16)))
    memory = Tile("memory", (16, 16), "float16", row_major((16, 16)), "shared")
    lowered = lower(copy(held[:, 16:], memory), target="sm_80", scope="warp")
    before, new = numbered(shape, "float16", 1), numbered((16, 16), "float16", 2)
    found = lowered.run(src=new, dst=before)
    np.testing.assert_array_equal(found.view("u2")[:, :16], before.view("u2")[:, :16])
    np.testing.assert_array_equal(found.view("u2")[:, 16:], new.view("u2"))


def test_run_takes_and_gives_arrays_by_role() -> None:
    held = Tile("held", (16, 16), "float16", A_FRAG)
    memory = Tile("memory", (16, 16), "float16", column_major((16, 16), 8), "shared")
    array = np.arange(256.0).reshape(16, 16)
    np.testing.assert_array_equal(
        lower(copy(held, memory), target="sm_75", scope="warp").run(src=array), array
    )
    lowered = lower(copy(memory, held), target="sm_75", scope="warp")
    np.testing.assert_array_equal(lowered.run(src=array), array)
    for wrong, said in (({"A": array}, "no operand A"), ({}, "operand src is read")):
        with pytest.raises(LayoutError, match=said):
            lowered.run(**wrong)
    with pytest.raises(LayoutError, match="no kernel by itself"):
        _ = lowered.ptx


# --- what is refused ----------------------------------------------------------------------------

SYMBOL = Symbol("n", positive=True, integer=True)
LOCAL = Tile("held", (16, 16), "float16", A_FRAG)
SHARED = Tile("memory", (16, 16), "float16", row_major((16, 16)), "shared")


def refusal(dst: Any, src: Any, **options: Any) -> str:
    found = attempt(copy(dst, src), **{"target": "sm_90", "scope": "warp", **options})
    assert isinstance(found, str)
    return found


def shared(layout: Any, shape: tuple[int, ...] = (16, 16), name: str = "float16", **options: Any) -> Tile:
    return Tile("memory", shape, name, TileLayout(layout), "shared", **options)


def local(layout: Any, shape: tuple[int, ...] = (32, 2), name: str = "float16") -> Tile:
    return Tile("held", shape, name, TileLayout(layout))


@pytest.mark.parametrize(
    ("dst", "src", "options", "said"),
    [
        (
            LOCAL,
            shared(S[16, 16], name="bfloat16"),
            {},
            "dst is float16, src is bfloat16: a copy converts nothing",
        ),
        (LOCAL, shared(S[8, 16], (8, 16)), {}, "dst has extents (16, 16), src has (8, 16)"),
        (SHARED, SHARED, {}, "src and dst are both in memory"),
        (LOCAL, LOCAL, {}, "copies local to local"),
        (LOCAL, SHARED, {"active": {"laneid": (0, 16)}}, "active lanes on laneid are [0, 16)"),
        (LOCAL, SHARED, {"scope": "thread"}, "thread scope: a copy is carried out by whole warps"),
        (LOCAL, SHARED, {"scope": "cta", "launch": 64}, "1 warps hold a part, all 2 of cta scope must"),
        (local(S[(16, 4) : (1 @ laneid, 1)]), shared(S[32, 2], (32, 2)), {}, "16 lanes hold a part, all 32"),
        (local(S[(32, 2) : (1 @ laneid, 1)] + 1 @ laneid), shared(S[32, 2], (32, 2)), {}, "begins at lane 1"),
        (
            local(S[(2, 32, 2) : (1 @ warpid, 1 @ laneid, 1)], (64, 2)),
            shared(S[64, 2], (64, 2)),
            {},
            "iter 2:1 is on axis warpid, of which a warp has one",
        ),
        (
            local(S[(32, 1) : (1 @ laneid, 1)], (32, 1)),
            shared(S[32, 1], (32, 1)),
            {},
            "register 0 holds 1 of the 2",
        ),
        (
            local(S[(32, 2) : (1 @ laneid, 2)]),
            shared(S[32, 2], (32, 2)),
            {},
            "register 0 holds 1 of the 2 float16",
        ),
        (
            shared(S[16, 2], (16, 2)),
            local(S[(16, 2) : (1 @ laneid, 1)] + R[2 : 16 @ laneid], (16, 2)),
            {},
            "has a replica: several threads would store each element",
        ),
        (shared(S[(16, 16) : (0, 1)]), LOCAL, {}, "is not injective: elements 0 and 16 share a place"),
        (LOCAL, shared(S[(16, 16) : (1 @ laneid, 1)]), {}, "is on axis laneid; memory is on m"),
        (LOCAL, shared(S[(16, 16) : (-16, 1)]), {}, "reaches position -240"),
        (
            LOCAL,
            shared(S[(16, 16) : (SYMBOL, 1)]),
            {},
            "has a symbolic value n; all of a layout must be numbers",
        ),
        (LOCAL, shared(S[16, 16] + SYMBOL), {}, "has a symbolic value n; all of a layout must be numbers"),
        (
            LOCAL[:, 1:9],
            shared(S[16, 8], (16, 8)),
            {},
            "dst (held[0:16, 1:9]): slice: dimension 1: [1, 9) of 16 crosses",
        ),
        (LOCAL, SHARED, {"config": {"container": "x"}}, "config: container 'x' is no number of bits"),
        (LOCAL, SHARED, {"config": {"container": 8}}, "8 bits for each float16 do not cut a register of 32"),
        (
            LOCAL,
            Tile("t", (16, 16), "float16", TileLayout(S[16, 16]), "tensor"),
            {},
            "copies tensor to local",
        ),
        (
            LOCAL,
            Tile("held", (16, 16), "float16", TileLayout(S[16, 16]), "shared"),
            {},
            "two different tiles share the name 'held'",
        ),
    ],
)
def test_refused_with_the_reason(dst: Tile, src: Tile, options: dict[str, Any], said: str) -> None:
    assert said in refusal(dst, src, **options)


def test_a_copy_takes_tiles() -> None:
    with pytest.raises(LayoutError, match="copy: operand src must be a Tile"):
        copy(LOCAL, np.zeros(3))  # type: ignore[arg-type]


def test_a_scope_of_several_warps_takes_its_own_axis() -> None:
    held = Held((64, 16), "float16", TileLayout(S[(4, 16, 16) : (1 @ warpid, 1 @ laneid, 1)]))
    src = Tile("memory", (64, 16), "float16", row_major((64, 16)), "shared")
    assert "on axis warpid, of which warpgroup scope has one" in refusal(held.tile(), src, scope="warpgroup")
