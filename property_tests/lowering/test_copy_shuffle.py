"""``copy.shuffle``: from one fragment to another of the same warp, or declined with the remedy."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import Lowered, Tile, copy, lower, sequence
from lowering.backends.arrays import to_bits
from lowering.backends.assemble import assemble
from lowering.dtypes import dtype
from lowering.fragments import A_FRAG, D_FRAG
from lowering.target import TARGETS, target
from tilelayout import R, S, TileLayout, laneid, warpid
from tilelayout.parts import Iter

from .copy_cases import attempt, numbered

NAMES = ("float16", "float32", "float64", "int8", "int4", "bfloat16", "uint1")


@st.composite
def fragments_of(draw: Any, registers: int, copies: int, warps: int) -> TileLayout:
    """2**(5 + registers + warps - copies) elements, bit by bit to lanes, registers and warps, in any order."""
    places = [Iter(2, 1 << i, laneid) for i in range(5)]
    places += [Iter(2, 1 << i, warpid) for i in range(warps)]
    chosen = draw(st.lists(st.integers(0, 4), min_size=copies, max_size=copies, unique=True))
    replica = [places[i] for i in chosen]
    shard = [p for i, p in enumerate(places) if i not in chosen] + [
        Iter(2, 1 << i, "m") for i in range(registers)
    ]
    return TileLayout.from_iters(draw(st.permutations(shard)), replica)


def check(found: Lowered, name: str) -> None:
    shape = found.call.src.tile.shape
    array = numbered(shape, name)
    element = dtype(name)
    np.testing.assert_array_equal(to_bits(found.run(src=array), element), to_bits(array, element))


@given(st.data())
def test_any_fragment_to_any_other(data: Any) -> None:
    name = data.draw(st.sampled_from(NAMES))
    least = {"int8": 2, "int4": 3, "uint1": 5, "float16": 1, "bfloat16": 1}.get(name, 0)
    registers = data.draw(st.integers(least, least + 2))
    warps = data.draw(st.sampled_from((0, 0, 1)))
    copies = data.draw(st.tuples(st.integers(0, 1), st.integers(0, 1)))
    least_copies = min(copies)
    size = registers + 5 + warps
    layouts = [data.draw(fragments_of(registers + c - least_copies, c, warps)) for c in copies]
    shape = (1 << size - least_copies,)
    src, dst = (Tile(n, shape, name, lay) for n, lay in zip(("source", "target"), layouts, strict=True))
    options = {"scope": "cta", "launch": 64} if warps else {"scope": "warp"}
    found = attempt(copy(dst, src), target="sm_75", **options)
    if isinstance(found, str):
        assert warps or dtype(name).bits < 8, found
        assert "go through shared memory" in found or "only whole registers" in found, found
        return
    assert found.variant == "copy.shuffle"
    check(found, name)


@pytest.mark.parametrize("name", ["float16", "float32", "int8", "float64"])
def test_an_accumulator_becomes_a_factor(name: str) -> None:
    """D of one product as A of the next: for halves nothing moves, for others lanes exchange."""
    pair = TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)])
    src = Tile("d", (16, 16), name, D_FRAG.tile_to((16, 16), (16, 8)))
    for layout in (A_FRAG, pair):
        found = lower(copy(Tile("a", (16, 16), name, layout), src), target="sm_80", scope="warp")
        check(found, name)
        assert not [i for i in found.program.instructions if i.name.startswith("shfl")]


def test_rows_to_columns() -> None:
    """A transpose of 32 x 32 words: every lane sends to every other, 31 rounds and what stays."""
    src = Tile("rows", (32, 32), "float32", TileLayout(S[(32, 32) : (1 @ laneid, 1)]))
    dst = Tile("columns", (32, 32), "float32", TileLayout(S[(32, 32) : (1, 1 @ laneid)]))
    found = lower(copy(dst, src), target="sm_80", scope="warp")
    check(found, "float32")
    assert sum(s.instruction.name.startswith("shfl") for s in found.program.steps) <= 32


def test_a_region_leaves_the_other_registers() -> None:
    shape = (16, 32)
    src = Tile("source", (16, 16), "float16", D_FRAG.tile_to((16, 16), (16, 8)))
    dst = Tile("target", shape, "float16", A_FRAG.tile_to(shape, (16, 16)))
    found = lower(copy(dst[:, 16:], src), target="sm_80", scope="warp")
    before, new = numbered(shape, "float16", 1), numbered((16, 16), "float16", 2)
    result = found.run(src=new, dst=before).view("u2")
    np.testing.assert_array_equal(result[:, :16], before.view("u2")[:, :16])
    np.testing.assert_array_equal(result[:, 16:], new.view("u2"))


def test_what_is_declined() -> None:
    rows = TileLayout(S[(2, 32, 2) : (1 @ warpid, 1 @ laneid, 1)])
    swapped = TileLayout(S[(32, 2, 2) : (1 @ laneid, 1 @ warpid, 1)])
    src, dst = (Tile(n, (128,), "float32", lay) for n, lay in (("source", rows), ("target", swapped)))
    said = str(attempt(copy(dst, src), target="sm_80", scope="cta", launch=64))
    assert "elements have to change warps" in said
    assert "go through shared memory: copy to a tile there, let the warps meet, and copy from it" in said
    same = str(attempt(copy(src, src), target="sm_80", scope="cta", launch=64))
    assert "src and dst are both in source" in same
    whole = TileLayout(S[(32, 2) : (1 @ laneid, 1)] + R[2 : 1 @ warpid])
    part = Tile("part", (64,), "float32", whole)
    other = Tile("other", (64,), "float32", whole)
    assert isinstance(attempt(copy(part, other), target="sm_80", scope="cta", launch=64), Lowered)
    memory = Tile("memory", (64,), "float32", TileLayout(S[64]), "shared")
    assert "copies local to shared: both sides must be in local scope" in str(
        attempt(copy(memory, other), target="sm_80", scope="cta", launch=64, dispatch="copy.shuffle")
    )


@pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for it"
)
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_every_target_assembles_it(name: str) -> None:
    """All kinds of instructions: both shuffles, choices, parts of registers; as a kernel, in PTX and CUDA C++."""
    pairs = [
        (
            "int8",
            TileLayout(S[(32, 8) : (1 @ laneid, 1)]),
            TileLayout(S[(8, 4, 8) : (1, 1 @ laneid, 4 @ laneid)]),
        ),
        ("float64", TileLayout(S[(32, 2) : (1 @ laneid, 1)]), TileLayout(S[(2, 32) : (1, 1 @ laneid)])),
        ("float32", TileLayout(S[(32, 2) : (1 @ laneid, 1)]), TileLayout(S[(2, 32) : (1, 1 @ laneid)])),
    ]
    for kind, have, want in pairs:
        size = int(have.size())
        tiles = {
            n: Tile(n, (size,), kind, lay, scope)
            for n, lay, scope in (
                ("x", TileLayout(S[size]), "global"), ("source", have, "local"),
                ("target", want, "local"), ("y", TileLayout(S[size]), "global"),
            )
        }  # fmt: skip
        calls = [
            copy(tiles[a], tiles[b]) for a, b in (("source", "x"), ("target", "source"), ("y", "target"))
        ]
        kernel = sequence([lower(c, target=name, scope="warp") for c in calls])
        array = numbered((size,), kind)
        bits = dtype(kind)
        np.testing.assert_array_equal(to_bits(kernel.run(x=array)["y"], bits), to_bits(array, bits))
        assert assemble(kernel.ptx, target(name)).local_bytes == 0
        assert "shfl.sync" in kernel.cuda
