"""``copy.cp_async``: from windows of run-time extent to shared memory, rims zero-filled (C55, C56)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import Tile, Window, copy
from lowering.dtypes import dtype
from tilelayout import S, Swizzle, SwizzledLayout, TileLayout
from tilelayout.expr import Var

from .copy_cases import attempt
from .window_cases import If, Tensor, check_load, instructions, row_major, tensors

WAY: dict[str, Any] = {"target": "sm_80", "scope": "cta", "launch": 64, "dispatch": "copy.cp_async"}


def stage(box: tuple[int, int], name: str = "float16", layout: Any = None) -> Tile:
    return Tile("tile", box, name, layout or row_major(box), "shared")


@given(st.data())
def test_every_rim(data: Any) -> None:
    name = data.draw(st.sampled_from(("float16", "float32", "float64", "int8", "int4", "bfloat16")))
    box = data.draw(st.sampled_from(((16, 32), (8, 64), (24, 48), (3, 32), (5, 12), (64, 8))))
    tensor = data.draw(tensors(box, name))
    bits = dtype(name).bits
    order = data.draw(st.booleans())
    pad = data.draw(st.sampled_from((0, 8, 16)))
    lay = row_major(box, pad) if order else TileLayout(S[box : (1, box[0] + pad)])
    if data.draw(st.booleans()):
        unit = (128 // bits).bit_length() - 1
        lay = SwizzledLayout(lay, Swizzle(data.draw(st.integers(1, 3)), unit, 3))
    warps = data.draw(st.sampled_from((1, 2, 4)))
    call = copy(stage(box, name, lay), tensor.window)
    found = attempt(call, **{**WAY, "launch": 32 * warps})
    if isinstance(found, str):
        assert "copies of 16 bytes: " in found or "are not known to fill their last byte" in found
        return
    check_load(found, tensor)


@pytest.mark.parametrize("rows", range(1, 18))
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 15, 16, 17, 31, 33])
def test_rows_and_columns_around_a_tile(rows: int, columns: int) -> None:
    """10 rows with a 16-row tile, and their like: rows beyond are zero and never read; vectors are cut."""
    tensor = Tensor((rows, columns), -(-columns // 8) * 8, (16, 32), (0, 0))
    found = attempt(copy(stage((16, 32), layout=row_major((16, 32)).swizzle(2, 3, 3)), tensor.window), **WAY)
    assert not isinstance(found, str)
    check_load(found, tensor)


@pytest.mark.parametrize("origin", [(0, 0), (16, 0), (0, 32), (16, 32), (32, 64), (48, 96)])
def test_boxes_of_a_grid(origin: tuple[int, int]) -> None:
    tensor = Tensor((37, 77), 80, (16, 32), origin)
    found = attempt(copy(stage((16, 32)), tensor.window), **WAY)
    assert not isinstance(found, str)
    check_load(found, tensor)


# --- widths (C55) -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("leading", "base", "size"), [(96, 0, 16), (104, 8, 16), (100, 0, 8), (96, 4, 8), (98, 0, 4), (96, 2, 4)]
)
def test_width_follows_from_the_promise(leading: int, base: int, size: int) -> None:
    tensor = Tensor((20, 96), leading, (16, 32), (16, 32), base=base)
    found = attempt(copy(stage((16, 32)), tensor.window), **WAY)
    assert not isinstance(found, str)
    assert set(instructions(found)) == {f"cp.async.{size}"}
    check_load(found, tensor)


@pytest.mark.parametrize(("leading", "base"), [(101, 0), (96, 1)])
def test_two_bytes_never(leading: int, base: int) -> None:
    """Rows of 101 halves, or a pointer that is 2 bytes off: no cp.async copies one half."""
    tensor = Tensor((20, 96), leading, (16, 32), (0, 0), base=base)
    found = attempt(copy(stage((16, 32)), tensor.window), **WAY)
    assert isinstance(found, str)
    assert "copies of 4 bytes: X and its strides are aligned to 2 bytes" in found


def test_columns_of_halves_into_rows() -> None:
    """Neighbors in global memory that lie apart in shared memory: lone halves."""
    tensor = Tensor((32, 64), 32, (32, 64), (0, 0), column=True)
    found = attempt(copy(stage((32, 64)), tensor.window), **WAY)
    assert isinstance(found, str)
    assert (
        "copies of 4 bytes: elements 0 and 1 of a vector along dimension 0 lie at positions 0 and 64" in found
    )
    words = Tensor((32, 64), 32, (32, 64), (0, 0), "float32", column=True)
    wide = attempt(copy(stage((32, 64), "float32"), words.window), **WAY)
    assert not isinstance(wide, str)  # a word is 4 bytes, wherever it goes
    assert set(instructions(wide)) == {"cp.async.4"}
    check_load(wide, words)


def test_an_origin_that_is_not_known_to_be_aligned() -> None:
    n = Var("n", 1, 1 << 20)
    at = Var("at", 0, 1 << 20)
    window = Window("X", "float16", (((n, n),), ((n, 1),)), (n, n), (0, at), (16, 32), 16)
    found = attempt(copy(stage((16, 32)), window), **WAY)
    assert isinstance(found, str)
    assert "copies of 16 bytes: X begins at at, not known to be a multiple of 8 elements" in found


def test_older_targets_have_none() -> None:
    tensor = Tensor((20, 96), 96, (16, 32), (0, 0))
    found = attempt(copy(stage((16, 32)), tensor.window), **{**WAY, "target": "sm_75"})
    assert isinstance(found, str)
    assert "needs sm_80 or newer, the target is sm_75" in found


def test_stores_are_declined() -> None:
    tensor = Tensor((20, 96), 96, (16, 32), (0, 0))
    found = attempt(copy(tensor.window, stage((16, 32))), **WAY)
    assert isinstance(found, str)
    assert "cp.async copies from global to shared memory, not back" in found


# --- two forms ----------------------------------------------------------------------------------


def test_one_condition_for_the_whole_box() -> None:
    tensor = Tensor((64, 96), 96, (16, 32), (16, 32))
    found = attempt(copy(stage((16, 32)), tensor.window), **WAY)
    assert not isinstance(found, str)
    (branch,) = [s for s in found.program.body if isinstance(s, If)]
    assert str(branch.condition) == "16*t0 + 16 <= M and 32*t1 + 32 <= N"
    assert len(branch.body) == 1
    assert check_load(found, tensor).count == 1


def test_a_box_that_is_known_to_be_inside_needs_no_condition() -> None:
    tensor = Tensor((64, 96), 96, (16, 32), (16, 32), symbolic=False)
    found = attempt(copy(stage((16, 32)), tensor.window), **WAY)
    assert not isinstance(found, str)
    assert not [s for s in found.program.body if isinstance(s, If)]
    check_load(found, tensor)


@pytest.mark.parametrize(
    ("inside", "condition"), [((0,), "32*t1 + 32 <= N"), ((1,), "16*t0 + 16 <= M"), ((0, 1), "")]
)
def test_what_the_caller_knows(inside: tuple[int, ...], condition: str) -> None:
    tensor = Tensor((64, 96), 96, (16, 32), (16, 32))
    found = attempt(copy(stage((16, 32)), tensor.window), **WAY, config={"inside": inside})
    assert not isinstance(found, str)
    assert [str(s.condition) for s in found.program.body if isinstance(s, If)] == [condition] * bool(
        condition
    )
    check_load(found, tensor)
    wrong = attempt(copy(stage((16, 32)), tensor.window), **WAY, config={"inside": (2,)})
    assert isinstance(wrong, str)
    assert "inside (2,) is no tuple of dimensions below 2" in wrong


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("lay", [TileLayout(S[3, 16, 64]), TileLayout(S[3, 16, 64]).swizzle(3, 3, 3)])
def test_stages_by_number(number: int, lay: Any) -> None:
    stages = Tile("tile", (3, 16, 64), "float16", lay, "shared")
    tensor = Tensor((20, 100), 104, (16, 64), (16, 64))
    found = attempt(copy(stages[Var("s", 0, 2)], tensor.window), **WAY)
    assert not isinstance(found, str)
    check_load(found, tensor, number)


def test_stages_that_are_not_aligned_are_narrower() -> None:
    stages = Tile("tile", (3, 16, 64), "float16", TileLayout(S[(3, 16, 64) : (1028, 64, 1)]), "shared")
    tensor = Tensor((20, 100), 104, (16, 64), (16, 64))
    found = attempt(copy(stages[Var("s", 0, 2)], tensor.window), **WAY)
    assert not isinstance(found, str)
    assert set(instructions(found)) == {"cp.async.8"}
    check_load(found, tensor, 2)


def test_dimensions_of_several_iters() -> None:
    """A tensor of tiles: vectors stay within the innermost."""
    lay = TileLayout(S[(2, 16, 4, 16) : (1024, 16, 256, 1)])
    window = Window.of(
        "X", "float16", lay, (32, 64), (Var("t0", 0, 1) * 16, Var("t1", 0, 1) * 32), (16, 32), 16
    )
    found = attempt(copy(stage((16, 32)), window), **WAY)
    assert not isinstance(found, str)
    import numpy as np

    from .window_cases import in_tile
    from .window_machine import Guarded, Machine

    data = np.random.default_rng(0).integers(0, 1 << 16, 2048).astype(np.uint16)
    table = np.asarray(lay.table((32, 64))["m"])  # type: ignore[index]
    for t0, t1 in ((0, 0), (1, 1), (0, 1)):
        target = Guarded(np.zeros(512, np.uint16), np.ones(512, bool))
        machine = Machine(2, {"X": Guarded(data, np.ones(2048, bool)), "tile": target}, {"t0": t0, "t1": t1})
        machine.run(found.program)
        codes, _ = in_tile(stage((16, 32)), Tensor((1, 1), 1, (1, 1), (0, 0)), target)
        np.testing.assert_array_equal(codes, data[table[16 * t0 : 16 * t0 + 16, 32 * t1 : 32 * t1 + 32]])
