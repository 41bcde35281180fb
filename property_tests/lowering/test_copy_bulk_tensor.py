"""``copy.bulk_tensor``: boxes of the copy engine (TMA) between windows and shared memory, by its own rules of rims."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import Lowered, Tile, Window, copy
from lowering.dtypes import dtype
from tilelayout import R, S, Swizzle, SwizzledLayout, TileLayout
from tilelayout.expr import Var

from .copy_cases import attempt
from .window_cases import (
    BARRIER,
    Tensor,
    bulk_bytes,
    check_load,
    check_store,
    instructions,
    replace,
    row_major,
    tensors,
)

WAY: dict[str, Any] = {
    "target": "sm_90",
    "scope": "warp",
    "dispatch": "copy.bulk_tensor",
    "config": {"barrier": BARRIER},
}
PROMISED: dict[str, Any] = {**WAY, "config": {"whole_units": True}}


def panels(rows: int, columns: int, width: int, bits: int, swizzled: bool = True) -> Any:
    """(rows, columns) as panels of `width` bytes a row, one behind the other, swizzled as the engine does it."""
    across = 8 * width // bits
    lay = TileLayout(S[(rows, columns // across, across) : (across, rows * across, 1)])
    if not swizzled:
        return lay
    return SwizzledLayout(lay, Swizzle((width // 16).bit_length() - 1, 4, 3).in_units(8, bits))


def turned(lay: Any, shape: tuple[int, int]) -> Any:
    """The transpose of a matrix of that shape."""
    plain = lay.layout if isinstance(lay, SwizzledLayout) else lay
    grouped, seps = plain.group(shape)
    found = grouped.permute_by_groups(seps, (1, 0))
    return SwizzledLayout(found, lay.swizzle) if isinstance(lay, SwizzledLayout) else found


def tile(box: tuple[int, ...], lay: Any, name: str = "float16", **options: Any) -> Tile:
    return Tile("tile", box, name, lay, "shared", **{"alignment": 1024, **options})


def both(box: tuple[int, int], lay: Any, tensor: Tensor) -> Lowered:
    """The load of a box and its store, checked; the load."""
    loaded = attempt(copy(tile(box, lay, tensor.dtype), tensor.window), **WAY)
    stored = attempt(
        copy(tensor.window, tile(box, lay, tensor.dtype)), **(PROMISED if tensor.symbolic else WAY)
    )
    assert isinstance(loaded, Lowered), loaded
    check_load(loaded, tensor)
    inner = tensor.sizes[0] if tensor.column else tensor.sizes[1]
    if inner * tensor.bits % 128:
        assert "for all that is known no whole units of 16 bytes" in str(stored)
    else:
        assert isinstance(stored, Lowered), stored
        check_store(stored, tensor)
    assert bulk_bytes(loaded.program) == box[0] * box[1] * tensor.bits // 8
    return loaded


@given(st.data())
def test_every_rim_and_every_swizzle(data: Any) -> None:
    name = data.draw(st.sampled_from(("float16", "float32", "int8", "float64")))
    bits = dtype(name).bits
    width = data.draw(st.sampled_from((32, 64, 128)))
    across = data.draw(st.integers(1, 2)) * 8 * width // bits
    rows = data.draw(st.sampled_from((8, 16, 64)))
    column = data.draw(st.booleans())
    lay = panels(rows, across, width, bits, data.draw(st.booleans()))
    box = (across, rows) if column else (rows, across)
    tensor = data.draw(tensors(box, name, column=column, base=0, symbolic=False))
    inner, unit = 0 if column else 1, 128 // bits
    sizes, origin = list(tensor.sizes), list(tensor.origin)
    origin[inner] = origin[inner] // unit * unit
    if data.draw(st.booleans()):
        sizes[inner] = -(-sizes[inner] // unit) * unit
    leading = -(-tensor.leading // unit) * unit
    tensor = Tensor((sizes[0], sizes[1]), leading, box, (origin[0], origin[1]), name, column)
    known = (
        sizes[inner] % unit == 0 and origin[inner] % box[inner] == 0
    )  # by the promise, and by the expression
    tensor = replace(tensor, symbolic=known and data.draw(st.booleans()))
    both(box, turned(lay, (rows, across)) if column else lay, tensor)


@pytest.mark.parametrize("column", [False, True])
def test_one_box_or_panels(column: bool) -> None:
    """128 x 64 halves: K-contiguous one box of 64 x 128; M-contiguous two panels of 64 rows of 128 bytes."""
    tensor = Tensor((296, 200), 304, (128, 64), (128, 64), column=column)
    if column:
        lay = turned(panels(64, 128, 128, 16), (64, 128))
        load = both((128, 64), lay, Tensor((296, 200), 304, (128, 64), (256, 128), column=True))
        assert [m.box for m in load.program.maps] == [(64, 64)]
        assert len(instructions(load)) == 2
    else:
        load = both((128, 64), row_major((128, 64)).swizzle(3, 3, 3), tensor)
        assert [(m.box, m.swizzle) for m in load.program.maps] == [((64, 128), 128)]
        assert len(instructions(load)) == 1


@pytest.mark.parametrize("number", range(3))
def test_stages_by_number(number: int) -> None:
    tensor = Tensor((40, 104), 104, (16, 64), (32, 64))
    stages = tile((3, 16, 64), TileLayout(S[3, 16, 64]).swizzle(3, 3, 3))
    part = stages[Var("s", 0, 2)]
    load = attempt(copy(part, tensor.window), **WAY)
    store = attempt(copy(tensor.window, part), **PROMISED)
    assert isinstance(load, Lowered)
    assert isinstance(store, Lowered)
    check_load(load, tensor, number)
    check_store(store, tensor, number)


def test_batches_are_a_dimension_of_the_map() -> None:
    n, batch = Var("n", 1, 1 << 20), Var("batch", 0, 15)
    dims = (((16, n * n * 8),), ((n, n * 8),), ((n * 8, 1),))
    window = Window("X", "float16", dims, (16, n, n * 8), (batch, 0, 64 * Var("t", 0, 9)), (1, 16, 64), 16)
    found = attempt(copy(tile((16, 64), row_major((16, 64)).swizzle(3, 3, 3)), window), **WAY)
    assert isinstance(found, Lowered)
    (tensor_map,) = found.program.maps
    assert (tensor_map.sizes, tensor_map.box) == ((n * 8, n, 16), (64, 16, 1))
    assert "[X_map, {64*t, 0, batch}]" in str(found)


# --- what is declined ---------------------------------------------------------------------------

NARROW = Tensor((40, 100), 100, (16, 64), (0, 0))
PLAIN = Tensor((40, 100), 104, (16, 64), (0, 0))


@pytest.mark.parametrize(
    ("tensor", "lay", "options", "said"),
    [
        (NARROW, row_major((16, 64)), {}, "X is aligned to 8 bytes, the copy engine needs 16"),
        (PLAIN, row_major((16, 64)), {"alignment": 64}, "tile is aligned to 64 bytes, boxes need 128"),
        (PLAIN, row_major((16, 64)).swizzle(3, 3, 3), {"alignment": 128}, "is aligned to 128 bytes, boxes need 1024"),
        (PLAIN, row_major((16, 64)).swizzle(2, 3, 3), {}, "neither plain boxes with rows of 128 bytes nor such"),
        (PLAIN, row_major((16, 64)).swizzle(3, 2, 3), {}, "neither plain boxes with rows of 128 bytes nor such"),
        (PLAIN, TileLayout(S[(16, 64) : (1, 16)]), {}, "neighbors along dimension 1 of X lie 16 elements apart"),
        (PLAIN, row_major((16, 64), 8), {}, "the box of (1, 0) begins at byte 144, no multiple of 128"),
        (PLAIN, TileLayout(S[(16, 16, 4) : (64, 1, 16)]), {}, "neighbors along dimension 1 of X lie 16 elements apart"),
        (PLAIN, TileLayout(S[(16, 16, 4) : (4, 64, 1)]), {}, "rows of 4 float16: a box has 16-byte units"),
        (PLAIN, TileLayout(S[16, 64] + R[2:1024]), {}, "has a replica"),
    ],
)  # fmt: skip
def test_reasons(tensor: Tensor, lay: Any, options: Any, said: str) -> None:
    found = attempt(copy(tile((16, 64), lay, **options), tensor.window), **WAY)
    assert isinstance(found, str), found
    assert said in found


@pytest.mark.parametrize("column", [False, True])
def test_stores_are_of_whole_units(column: bool) -> None:
    """Rows that are known to end with 16 bytes, or are promised to, by a map that holds a launch to it."""
    box = (64, 16) if column else (16, 64)
    lay = turned(row_major((16, 64)), (16, 64)) if column else row_major((16, 64))
    n, m = Var("n", 1, 1 << 20), Var("m", 1, 1 << 20)

    def store(inner: Any, way: dict[str, Any]) -> Lowered | str:
        dims = (((m, 8 * n),), ((inner, 1),))
        sizes, order = (m, inner), (1, 0) if column else (0, 1)
        there = Window(
            "X", "float16", tuple(dims[d] for d in order), tuple(sizes[d] for d in order), (0, 0), box, 16
        )
        return attempt(copy(there, tile(box, lay)), **way)

    for inner, whole in (
        (8 * n, True),
        (n // 8 * 8 + 8, True),
        (104, True),
        (n, False),
        (4 * n, False),
        (100, False),
    ):
        for way, promised in ((WAY, False), (PROMISED, True)):
            found = store(inner, way)
            if whole or promised:
                assert isinstance(found, Lowered), found
                assert [x.whole_units for x in found.program.maps] == [promised]
            else:
                assert (
                    f"X has {inner} float16 in dimension {1 - column}, along which memory is contiguous"
                    in str(found)
                )
                assert 'promise them by config={"whole_units": True}, or copy by threads' in str(found)
    said = store(n, {**WAY, "config": {"whole_units": 0}})
    assert "it would overwrite what is behind them" in str(said)


@pytest.mark.parametrize("load", [False, True])
def test_boxes_begin_with_a_unit(load: bool) -> None:
    plain, t = tile((16, 64), row_major((16, 64))), Var("t", 0, 99)
    for origin, good in (
        (8 * t, True),
        (64 * t + 8, True),
        (16, True),
        (t, False),
        (8 * t + 4, False),
        (4, False),
    ):
        there = Window("X", "float16", (((999, 800),), ((800, 1),)), (999, 800), (t, origin), (16, 64), 16)
        found = attempt(copy(plain, there) if load else copy(there, plain), **WAY)
        assert isinstance(found, Lowered) == good, found
        if not good:
            assert f"begins at {origin} in dimension 1" in str(found)
            assert "let it begin at a multiple of 8 elements, or copy by threads" in str(found)


def test_more_reasons() -> None:
    plain = tile((16, 64), row_major((16, 64)))
    old = attempt(copy(plain, PLAIN.window), **{**WAY, "target": "sm_80"})
    assert "cp.async.bulk.tensor.2d.load: needs sm_90 or newer, the target is sm_80" in str(old)
    lone = attempt(copy(plain, PLAIN.window), **{**WAY, "config": {}})
    assert 'config={"barrier": address} does not name the mbarrier' in str(lone)
    moved = attempt(copy(plain, Tensor((40, 100), 104, (16, 64), (0, 0), base=8).window), **WAY)
    assert "X begins base elements behind its pointer" in str(moved)
    packed = Tensor((40, 128), 128, (16, 64), (0, 0), "int4")
    assert "X packs elements of 4 bits, and the copy engine counts bytes" in str(
        attempt(copy(tile((16, 64), row_major((16, 64)), "int4"), packed.window), **WAY)
    )
    tiles = Window.of(
        "X", "float16", TileLayout(S[(2, 16, 64) : (1024, 64, 1)]), (32, 64), (0, 0), (16, 64), 16
    )
    folded = Window("X", "float16", (((2, 2048), (16, 64)), ((64, 1),)), (32, 64), (0, 0), (16, 64), 16)
    assert isinstance(attempt(copy(plain, tiles), **WAY), Lowered)  # one stride after all
    assert "dimension 0 of X has 2 iters, a tensor map one stride" in str(attempt(copy(plain, folded), **WAY))
    stages = tile((3, 16, 64), TileLayout(S[(3, 16, 64) : (1032, 64, 1)]))
    said = attempt(copy(stages[Var("s", 0, 2)], PLAIN.window), **WAY)
    assert "tile is aligned to 1024 bytes, and moves by 2064, boxes need 128" in str(said)
