"""Windows as values: where their elements are, and what is refused at birth."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowering.window as window_room
from lowering import Tile, Window, copy, lower
from tilelayout import LayoutError, R, S, TileLayout, laneid
from tilelayout.expr import Var, evaluate

M, N, LD = (Var(name, 1, 1 << 20) for name in ("M", "N", "ld"))


def window(**changed: Any) -> Window:
    given: dict[str, Any] = {
        "name": "X",
        "dtype": "float16",
        "dims": (((M, LD),), ((N, 1),)),
        "sizes": (M, N),
        "origin": (0, 0),
        "box": (16, 32),
        "alignment": 16,
    }
    return Window(**{**given, **changed})


@given(st.data())
def test_places_are_the_layout(data: Any) -> None:
    """`Window.of` has every element where the layout has it, for layouts of several iters a dimension."""
    shape = data.draw(st.sampled_from(((8, 12), (16, 4), (6, 10), (4, 6, 8))))
    extents = [f for n in shape for f in data.draw(st.sampled_from([(n,), (2, n // 2)]))]
    order = data.draw(st.permutations(range(len(extents))))
    strides, reach = [0] * len(extents), 1
    for k in order:
        strides[k] = reach
        reach *= extents[k] + data.draw(st.integers(0, 1))
    layout = TileLayout(S[tuple(extents) : tuple(strides)] + data.draw(st.sampled_from((0, 3))))
    found = Window.of("X", "int8", layout, shape, (0,) * len(shape), shape, 1)
    x = np.indices(shape)
    variables = [Var(f"x{d}", 0, n - 1) for d, n in enumerate(shape)]
    place = evaluate(found.place(variables), {f"x{d}": x[d] for d in range(len(shape))})
    np.testing.assert_array_equal(np.broadcast_to(place, shape), layout.table(shape)["m"])  # type: ignore[index]


def test_the_contiguous_dimension() -> None:
    assert window().contiguous == 1
    assert window(dims=(((M, 1),), ((N, LD),))).contiguous == 0
    assert window(dims=(((M, LD),), ((N, LD),))).contiguous is None
    assert window(dims=(((M, 1),), ((N, 1),))).contiguous == 1  # the longer one of the box


def test_what_it_says() -> None:
    m = Var("m", 0, 100)
    assert str(window(origin=(m * 16, 32))) == "X[16*m:16*m + 16, 32:64]"
    tile = Tile("tile", (16, 32), "float16", TileLayout(S[16, 32]), "shared")
    assert str(copy(tile, window())) == "tile (shared) = X[0:16, 0:32] (global)"
    assert {role: x.name for role, x in copy(tile, window()).tiles.items()} == {"dst": "tile", "src": "X"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"name": "a b"}, "name 'a b' is not an identifier"),
        ({"dtype": "float17"}, "unknown element type"),
        ({"sizes": (M,)}, r"ranks of dims, sizes, origin and box differ: \[2, 1, 2, 2\]"),
        ({"box": (16, 0)}, "extent 1 of the box"),
        ({"box": (16, True)}, "extent 1 of the box"),
        ({"origin": (Var("m"), 0)}, "origin 0 m is unbounded"),
        ({"origin": (Var("m", -1, 4), 0)}, "origin 0 m reaches -1"),
        ({"sizes": (Var("m", 0, 4), N)}, r"size 0 m reaches 0 \(remedy: 1 or more\)"),
        ({"dims": (((M, Var("ld", -4, 4)),), ((N, 1),))}, r"of dimension 0 ld reaches -4 \(remedy: copy the tensor"),
        ({"dims": ((), ((N, 1),))}, "dimension 0 has no iter"),
        ({"dims": (((M, 100),), ((N, 1),))}, "stride 100 of dimension 0 is 200 bytes, which are no multiple of"),
        ({"base": 4}, "base is 8 bytes, which are no multiple of the 16 promised"),
        ({"base": -8}, r"base -8 reaches -8 \(remedy: 0 or more\)"),
        ({"alignment": 12}, "alignment 12 is no power of two"),
        ({"alignment": 1}, "alignment 1 is no power of two that holds a whole number of float16"),
        ({"origin": ("m", 0)}, "origin 0 must be an integer"),
    ],
)  # fmt: skip
def test_what_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(LayoutError, match=said):
        window(**changed)


@pytest.mark.parametrize(
    ("layout", "sizes", "said"),
    [
        (TileLayout(S[8, 8]), (8, 4), r"sizes \(8, 4\) have 32 elements"),
        (TileLayout(S[8, 8] + R[2:64]), (8, 8), r"has a replica; .* \(remedy: the layout without R"),
        (
            TileLayout(S[(8, 8) : (1 @ laneid, 1)]),
            (8, 8),
            r"is not on m alone; .* \(remedy: strides without an axis",
        ),
        (TileLayout(S[(8, 8) : (-8, 1)] + 56), (8, 8), r"reaches -8 \(remedy: copy the tensor"),
    ],
)
def test_layouts_that_are_no_tensor(layout: TileLayout, sizes: tuple[int, int], said: str) -> None:
    with pytest.raises(LayoutError, match=said):
        Window.of("X", "float16", layout, sizes, (0, 0), (4, 4), 2)


def test_a_window_does_not_run_alone() -> None:
    tile = Tile("tile", (16, 32), "float16", TileLayout(S[16, 32]), "shared")
    found = lower(copy(tile, window()), target="sm_80", scope="warp")
    with pytest.raises(LayoutError, match="is a window on a tensor whose extents a launch gives"):
        found.run(src=np.zeros((16, 32)))


@pytest.mark.parametrize("order", ["row", "column"])
def test_a_matrix_in_boxes(order: Any) -> None:
    """Every element of a box is where a matrix of that order has it, whatever the launch gives."""
    found = Window.matrix("A", "float16", (16, 64), order)
    assert found.contiguous == (1 if order == "row" else 0)
    given = {"A_rows": 100, "A_columns": 200, "A_leading": 208, "A_i": 3, "A_j": 2}
    origin = [evaluate(x, given) for x in found.origin]
    assert origin == [48, 128]
    assert [evaluate(x, given) for x in found.sizes] == [100, 200]
    for i, j in ((0, 0), (5, 7), (15, 63)):
        x = (found.origin[0] + i, found.origin[1] + j)
        row, column = origin[0] + i, origin[1] + j
        wanted = row * 208 + column if order == "row" else column * 208 + row
        assert evaluate(found.place(x), given) == wanted
    with pytest.raises(LayoutError, match=r"order 'rows'.*'row' or 'column'"):
        Window.matrix("A", "float16", (16, 64), "rows")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "box", [(0, 64), (-1, 4), (16,), (16, 8, 8), ("a", 4), (2.5, 4), (True, 4), "ab", 3, None]
)
def test_a_box_of_a_matrix_is_two_positive_integers(box: Any) -> None:
    with pytest.raises(LayoutError) as error:
        Window.matrix("A", "float16", box)
    said = str(error.value)
    assert f"box = {box!r}" in said
    assert "two positive integers" in said


def test_docstrings() -> None:
    failed, tried = doctest.testmod(window_room)
    assert failed == 0
    assert tried >= 8
