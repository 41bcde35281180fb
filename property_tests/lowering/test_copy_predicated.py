"""``copy.predicated``: windows of run-time extent, shared memory and fragments, element by element at the rim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import Lowered, Tile, copy
from lowering.backends.reference import File, fill, placement
from lowering.dtypes import dtype
from lowering.fragments import D_FRAG
from lowering.isa.elements import unpack
from tilelayout import S, Swizzle, SwizzledLayout, TileLayout
from tilelayout.expr import Var

from .copy_cases import Held, attempt, fragments, numbered
from .window_cases import (
    If,
    Tensor,
    check_load,
    check_store,
    check_stored,
    instructions,
    memory_bits,
    row_major,
    tensors,
)
from .window_machine import Machine

NAMES = ("float16", "float32", "float64", "int8", "int4", "uint1", "bfloat16", "float6_e3m2fn")
BOXES = ((16, 32), (8, 64), (24, 48), (3, 32), (5, 16), (64, 8), (2, 3), (7, 5), (1, 40))
WAY: dict[str, Any] = {"target": "sm_75", "scope": "cta", "launch": 64}


def stage(box: tuple[int, int], name: str = "float16", layout: Any = None) -> Tile:
    return Tile("tile", box, name, layout or row_major(box), "shared")


# --- shared memory ------------------------------------------------------------------------------


@given(st.data())
def test_every_rim(data: Any) -> None:
    """From single elements to 16 bytes, in rows and columns on both sides, there and back."""
    name = data.draw(st.sampled_from(NAMES))
    bits = memory_bits(name)
    box = data.draw(st.sampled_from(BOXES if bits >= 8 else BOXES[:4] if bits > 1 else BOXES[:2]))
    tensor = data.draw(tensors(box, name))
    pad = data.draw(st.sampled_from((0, 1, 2, 8))) if bits >= 8 else 0
    lay = row_major(box, pad) if data.draw(st.booleans()) else TileLayout(S[box : (1, box[0] + pad)])
    if data.draw(st.booleans()):
        unit = data.draw(st.integers(0, 3)) if bits >= 8 else 5
        lay = SwizzledLayout(lay, Swizzle(data.draw(st.integers(1, 3)), unit, 3))
    options = {**WAY, "launch": 32 * data.draw(st.sampled_from((1, 2, 4)))}
    tile = stage(box, name, lay)
    for call, check in ((copy(tile, tensor.window), check_load), (copy(tensor.window, tile), check_store)):
        found = attempt(call, **options)
        if isinstance(found, str):
            assert bits < 8
            assert "accesses of 1 bytes: " in found or "are not known to fill their last byte" in found
            return
        assert found.variant == "copy.predicated"
        check(found, tensor)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 10, 15, 16, 17])
@pytest.mark.parametrize("columns", range(1, 18))
@pytest.mark.parametrize("leading", [16, 20, 18, 17])
def test_rows_and_columns_around_a_tile(rows: int, columns: int, leading: int) -> None:
    """N=13: 1 vector of 8 and 5 lone halves a row (C55); 10 rows of a 16-row tile (C56)."""
    tensor = Tensor((rows, columns), max(leading, columns), (16, 16), (0, 0))
    tile = stage((16, 16), layout=row_major((16, 16)).swizzle(1, 3, 3))
    for call, check in ((copy(tile, tensor.window), check_load), (copy(tensor.window, tile), check_store)):
        found = attempt(call, **WAY)
        assert isinstance(found, Lowered), found
        check(found, tensor)


@pytest.mark.parametrize("origin", [(i, j) for i in (0, 2) for j in (0, 3, 6)])
def test_three_by_eight_in_tiles_of_two_by_three(origin: tuple[int, int]) -> None:
    """C56: every tile of (3, 8) in tiles of (2, 3)."""
    for symbolic in (True, False):
        tensor = Tensor((3, 8), 8, (2, 3), origin, symbolic=symbolic)
        for call, check in (
            (copy(stage((2, 3)), tensor.window), check_load),
            (copy(tensor.window, stage((2, 3))), check_store),
        ):
            found = attempt(call, **WAY)
            assert isinstance(found, Lowered)
            check(found, tensor)


@pytest.mark.parametrize(
    ("leading", "base", "size"),
    [(96, 0, 16), (104, 8, 16), (100, 0, 8), (96, 4, 8), (98, 0, 4), (96, 2, 4), (101, 0, 2), (96, 1, 2)],
)
def test_width_follows_from_the_promise(leading: int, base: int, size: int) -> None:
    tensor = Tensor((20, 96), leading, (16, 32), (16, 32), base=base)
    found = attempt(copy(stage((16, 32)), tensor.window), **WAY)
    assert isinstance(found, Lowered)
    assert f"accesses of {size} bytes a thread to X, of {size} to tile" in str(found)
    check_load(found, tensor)


@pytest.mark.parametrize("name", ["int8", "float16", "float32"])
def test_a_tile_is_turned(name: str) -> None:
    """Columns in global memory, rows in shared: wide loads, and stores of an element each."""
    tensor = Tensor((40, 50), 48, (32, 16), (32, 48), name, column=True)
    found = attempt(copy(stage((32, 16), name), tensor.window), **WAY)
    assert isinstance(found, Lowered)
    assert f"accesses of 16 bytes a thread to X, of {dtype(name).bits // 8} to tile" in str(found)
    check_load(found, tensor)


@pytest.mark.parametrize("load", [True, False])
def test_in_two_parts(load: bool) -> None:
    """What fills the registers and what empties them, apart: together they are the copy."""
    tensor = Tensor((20, 100), 104, (16, 64), (16, 64))
    tile = stage((16, 64))
    call = copy(tile, tensor.window) if load else copy(tensor.window, tile)
    first, second = (attempt(call, **WAY, config={"part": part}) for part in ("load", "store"))
    assert isinstance(first, Lowered)
    assert isinstance(second, Lowered)
    assert first.program.outputs == second.program.inputs
    assert not first.program.inputs
    joined = replace(
        first.program,
        body=first.program.body + second.program.body,
        outputs=(),
        scratch=first.program.outputs,
    )
    (check_load if load else check_store)(replace(first, program=joined), tensor)
    wrong = attempt(call, **WAY, config={"part": "both"})
    assert "part 'both' is neither 'load' nor 'store'" in str(wrong)


@pytest.mark.parametrize("number", range(3))
def test_stages_by_number(number: int) -> None:
    stages = Tile("tile", (3, 16, 64), "float16", TileLayout(S[3, 16, 64]).swizzle(3, 3, 3), "shared")
    tensor = Tensor((20, 100), 104, (16, 64), (16, 64))
    part = stages[Var("s", 0, 2)]
    for call, check in ((copy(part, tensor.window), check_load), (copy(tensor.window, part), check_store)):
        found = attempt(call, **WAY)
        assert isinstance(found, Lowered)
        check(found, tensor, number)


def test_a_box_that_is_known_to_be_inside_has_one_form() -> None:
    tensor = Tensor((64, 96), 96, (16, 32), (16, 32), symbolic=False)
    found = attempt(copy(stage((16, 32)), tensor.window), **WAY)
    assert isinstance(found, Lowered)
    assert not [s for s in found.program.body if isinstance(s, If)]
    assert instructions(found) == ["load.v4.b32", "store.shared.v4.b32"]
    check_load(found, tensor)


# --- fragments ----------------------------------------------------------------------------------


def check_fragment(found: Lowered, held: Tile, tensor: Tensor, load: bool) -> None:
    """Elements get into registers and out of them by the tile's layout alone."""
    program, axis = found.program, found.context.warp_axis
    (group,) = program.registers
    memory = tensor.memory()
    before = memory.data.copy()
    machine = Machine(program.warps, {"X": memory}, tensor.variables)
    file = File.empty(group, program.warps)
    per = max(1, 8 // tensor.bits)
    if load:
        machine.run(program)
        at = placement(held, axis)
        words = machine.registers[group].reshape(program.warps, 32, -1)
        codes = unpack(words, group.dtype, group.container)[at.warp, at.lane, at.slot]
        wanted = tensor.wanted(memory).ravel()[at.element].astype(np.uint64)
        mask = np.uint64((1 << tensor.bits) - 1)
        np.testing.assert_array_equal(codes & mask, wanted & mask)
        assert (memory.data == before).all()
        return
    array = numbered(held.shape, held.dtype)
    fill(file, held, array, axis)
    machine.registers[group] = file.words.reshape(program.warps * 32, -1)
    machine.known[group] = np.ones(machine.registers[group].shape, bool)
    machine.run(program)
    at = placement(held, axis)
    codes = np.zeros(held.shape, np.uint64).ravel()
    codes[at.element] = unpack(file.words, group.dtype, group.container)[at.warp, at.lane, at.slot]
    assert per == 1 or tensor.bits < 8
    check_stored(tensor, memory, before, codes.reshape(held.shape).astype(memory.data.dtype))


@given(st.data())
def test_fragments_of_the_catalogue(data: Any) -> None:
    """Every operand of every instruction, over warps, into matrices of any shape and row length."""
    load = data.draw(st.booleans())
    held: Held = data.draw(fragments(shared=load))
    tensor = data.draw(tensors(held.shape, held.dtype))
    tile = held.tile()
    call = copy(tile, tensor.window) if load else copy(tensor.window, tile)
    found = attempt(call, target="sm_75", **held.where)
    if isinstance(found, str):
        assert tensor.bits < 8
        assert "and no lane has all of one" in found or "are not known to fill their last byte" in found
        return
    check_fragment(found, tile, tensor, load)


@pytest.mark.parametrize(("leading", "size"), [(100, 8), (102, 8), (101, 4)])
def test_pairs_of_an_accumulator(leading: int, size: int) -> None:
    """Two floats that are neighbors along N: 8 bytes where rows are aligned to that, else 4."""
    for sizes in ((20, 100), (9, 7), (16, 8), (1, 1), (3, 99)):
        tensor = Tensor(sizes, leading, (16, 8), (0, 0), "float32")
        tile = Tile("d", (16, 8), "float32", D_FRAG)
        for load in (True, False):
            call = copy(tile, tensor.window) if load else copy(tensor.window, tile)
            found = attempt(call, target="sm_80", scope="warp")
            assert isinstance(found, Lowered)
            assert f"{16 // size} accesses of {size} bytes a lane" in str(found)
            check_fragment(found, tile, tensor, load)


@pytest.mark.parametrize(
    ("leading", "names"), [(100, ["store.b32"] * 2), (101, ["store.b16.from.0", "store.b16.from.16"] * 2)]
)
def test_pairs_of_halves(leading: int, names: list[str]) -> None:
    tensor = Tensor((40, 100), leading, (16, 8), (16, 8), symbolic=False)
    tile = Tile("d", (16, 8), "float16", D_FRAG)
    found = attempt(copy(tensor.window, tile), target="sm_80", scope="warp")
    assert isinstance(found, Lowered)
    assert instructions(found) == names
    check_fragment(found, tile, tensor, False)


def test_registers_outside_the_region_stay() -> None:
    layout = TileLayout(S[(2, 16, 8)])  # by hand: two fragments, one behind the other
    layout = D_FRAG.tile_to((32, 8), (16, 8))
    held = Tile("held", (32, 8), "float32", layout)
    tensor = Tensor((20, 100), 100, (16, 8), (16, 8), "float32")
    found = attempt(copy(held[16:], tensor.window), target="sm_80", scope="warp")
    assert isinstance(found, Lowered)
    assert found.program.inputs == found.program.outputs
    (group,) = found.program.registers
    machine = Machine(1, {"X": tensor.memory()}, tensor.variables)
    machine.run(found.program)
    assert (machine.known[group][:, 4:]).all()
    assert not machine.known[group][:, :4].any()


# --- what is declined ---------------------------------------------------------------------------


def test_a_static_overhang_is_refused_with_numbers() -> None:
    """C56: 384 x 2 elements into 192."""
    source = Tile("source", (384, 2), "float16", row_major((384, 2)), "global")
    for dst in (stage((192, 1)), stage((96, 2))):
        said = attempt(copy(dst, source), target="sm_80", scope="cta", launch=32)
        assert f"dst has extents {dst.shape}, src has (384, 2) (768 > 192 elements)" in str(said)
    tensor = Tensor((384, 2), 2, (384, 2), (0, 0))
    said = attempt(copy(stage((96, 2)), tensor.window), target="sm_80", scope="cta", launch=32)
    assert "src has (384, 2) (768 > 192 elements)" in str(said)


def test_other_variants_decline_windows() -> None:
    tensor = Tensor((20, 100), 104, (16, 16), (0, 0))
    tile = stage((16, 16))
    said = str(
        attempt(copy(tile, tensor.window), target="sm_80", scope="warp", dispatch="copy.through_registers")
    )
    assert "src (X[16*t0:16*t0 + 16, 16*t1:16*t1 + 16]) is a window of run-time extent" in said
    assert "copy.predicated and copy.bulk_tensor and copy.cp_async take those" in said
    two = str(
        attempt(copy(tensor.window, replace(tensor, box=(16, 16)).window), target="sm_80", scope="warp")
    )
    assert "one side must be a Window on a tensor in global memory" in two
