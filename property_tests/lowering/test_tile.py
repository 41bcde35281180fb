"""Tiles, regions and the calls made of them: data that is checked at birth and judged by nobody."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest
import sympy

from lowering import Tile, gemm
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG
from tilelayout import LayoutError, S, TileLayout

ROWS = TileLayout(S[4, 8])


def test_a_tile_is_a_frozen_hashable_picklable_value() -> None:
    tile = Tile("A", (16, 16), "float16", A_FRAG)
    assert tile == Tile("A", [16, 16], np.float16, A_FRAG, "local")
    assert hash(tile) == hash(Tile("A", (16, 16), np.dtype("float16"), A_FRAG))
    assert pickle.loads(pickle.dumps(tile)) == tile
    assert tile != Tile("A", (16, 16), "bfloat16", A_FRAG) != Tile("A", (16, 16), "float16", A_FRAG, "shared")
    with pytest.raises(AttributeError):
        tile.name = "B"  # type: ignore[misc]
    assert str(tile).startswith("A: float16[16, 16] in local S[")


@pytest.mark.parametrize(
    "dtype",
    [
        "bfloat16",
        ml_dtypes.bfloat16,
        np.dtype(ml_dtypes.bfloat16),
    ],
)
def test_bfloat16_has_three_spellings(dtype: object) -> None:
    tile = Tile("A", (4, 8), dtype, ROWS)
    assert (tile.dtype, tile.element.bits, tile.element.ptx) == ("bfloat16", 16, "bf16")
    assert tile.element.numpy == np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("2A", (4, 8), "float16", ROWS), "'2A' is not an identifier"),
        (("", (4, 8), "float16", ROWS), "'' is not an identifier"),
        ((None, (4, 8), "float16", ROWS), "None is not an identifier"),
        (("A", (4, 0), "float16", ROWS), "Tile A.*dimension 1 must be at least 1, got 0"),
        (("A", (4, -8), "float16", ROWS), "must be at least 1, got -8"),
        (("A", (4, 8.0), "float16", ROWS), "must be an integer, got float"),
        (("A", (4, True), "float16", ROWS), "must be an integer, got bool"),
        (("A", (4, 9), "float16", ROWS), r"\(4, 9\) has 36 elements.*has 32"),
        (("A", (4, 8), "flaot16", ROWS), "unknown element type 'flaot16'.*did you mean 'float16'"),
        (("A", (4, 8), "complex64", ROWS), "unknown element type"),
        (("A", (4, 8), None, ROWS), "unknown element type"),
        (("A", (4, 8), "float16", "S[4, 8]"), "layout must be a TileLayout, got str"),
        (("A", (4, 8), "float16", None), "layout must be a TileLayout, got NoneType"),
        (("A", (4, 8), "float16", ROWS, "register"), "unknown scope 'register'.*local, shared"),
        (("A", (4, 8), "float16", ROWS, ["local"]), "unknown scope"),
    ],
)
def test_a_malformed_tile_is_refused(arguments: tuple, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        Tile(*arguments)


def test_numpy_integers_and_lists_are_shapes() -> None:
    tile = Tile("A", [np.int64(4), np.uint8(8)], "float16", ROWS)
    assert tile.shape == (4, 8)
    assert all(type(n) is int for n in tile.shape)


# --- regions ------------------------------------------------------------------------------------


def test_regions_by_slicing() -> None:
    tile = Tile("A", (4, 8), "float16", ROWS)
    assert tile[0:4, 0:8] == tile.full == tile[:] == tile[:, :]
    assert tile[1:3].bounds == ((1, 3), (0, 8))
    assert tile[1:3, 2:].extents == (2, 6)
    assert tile[3].extents == (1, 8)
    assert tile[np.int32(3), :2].bounds == ((3, 4), (0, 2))
    assert (str(tile.full), str(tile[1:3])) == ("A", "A[1:3, 0:8]")
    assert tile.full.is_full
    assert not tile[1:3].is_full


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (np.s_[0:5], r"range \[0, 5\) is not within \[0, 4\)"),
        (np.s_[2:2], "is not within"),
        (np.s_[-1:2], "is not within"),
        (np.s_[-1], "is not within"),
        (np.s_[4], "is not within"),
        (np.s_[3:1], "is not within"),
        (np.s_[0:4:2], "step 2"),
        (np.s_[0:4:-1], "step -1"),
        (np.s_[0:1, 0:1, 0:1], "3 indices for the 2 dimensions"),
        (np.s_[0:1.5], "must be an integer, got float"),
        (np.s_[True], "must be an integer, got bool"),
        (np.s_["a"], "must be an integer, got str"),
        (np.s_[None], "must be an integer, got NoneType"),
        (np.s_[...], "must be an integer, got ellipsis"),
    ],
)
def test_a_region_outside_its_tile_is_refused(item: object, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        Tile("A", (4, 8), "float16", ROWS)[item]


def test_symbolic_bounds_fold_where_they_can() -> None:
    k, n = sympy.symbols("k n", integer=True, positive=True)
    tile = Tile("A", (4, 8), "float16", ROWS)
    assert tile[0 : sympy.Integer(2), 0 : 2 * k + 8 - 2 * k] == tile[0:2, 0:8]
    moving = tile[:, k : k + 4]
    assert moving.extents == (4, 4)
    assert type(moving.extents[1]) is int
    assert tile[:, k:n].extents == (4, n - k)


# --- calls --------------------------------------------------------------------------------------


def test_gemm_records_and_judges_nothing() -> None:
    d, a, b = (Tile(n, (16, 8), "float32", D_FRAG, "shared") for n in "DAB")
    call = gemm(d, a[0:2], b, d, transpose_a=True, alpha=7, beta="nonsense")
    assert (call.primitive, call.alpha, call.beta, call.transpose_a, call.transpose_b) == (
        "gemm",
        7,
        "nonsense",
        True,
        False,
    )
    assert [role for role, _ in call.operands()] == ["D", "A", "B", "C"]
    assert call.A.bounds == ((0, 2), (0, 8))
    assert call.C == d.full
    assert call.tiles == {"D": d, "A": a, "B": b, "C": d}


def test_a_call_prints_what_it_computes() -> None:
    d, a = Tile("D", (16, 8), "float32", D_FRAG), Tile("A", (16, 16), "float16", A_FRAG)
    b = Tile("B", (16, 8), "float16", B_FRAG)
    assert str(gemm(d, a, b, d)) == "D = 1.0 * A @ B + 0.0 * D"
    assert "A.T @ B.T" in str(gemm(d, a, b, d, transpose_a=True, transpose_b=True))


@pytest.mark.parametrize("role", range(4))
def test_an_operand_that_is_no_tile_is_refused_by_its_role(role: int) -> None:
    operands: list[object] = [Tile("D", (16, 8), "float32", D_FRAG)] * 4
    operands[role] = np.zeros((16, 8))
    with pytest.raises(LayoutError, match=f"operand {'DABC'[role]} must be a Tile.*ndarray"):
        gemm(*operands)  # type: ignore[arg-type]


@pytest.mark.parametrize("flag", ["transpose_a", "transpose_b"])
@pytest.mark.parametrize("value", [1, "N", None])
def test_a_flag_that_is_no_bool_is_refused(flag: str, value: object) -> None:
    tile = Tile("D", (16, 8), "float32", D_FRAG)
    with pytest.raises(LayoutError, match=flag):
        gemm(tile, tile, tile, tile, **{flag: value})  # type: ignore[arg-type]
