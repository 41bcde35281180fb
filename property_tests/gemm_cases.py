"""The gemms that the tests of several rooms share: tilings, orientations, splits over warps, as calls on tiles.

Where a new case goes: here if both the reference machine and the GPU should run it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lowering import GemmCall, Tile, gemm
from lowering.fragments import operand_shape, replicated, spread, tiled, transposed
from lowering.isa import MMA_INSTRUCTIONS

TILINGS = (
    (1, 1, 1, 16), (2, 1, 1, 16), (1, 2, 1, 16), (1, 1, 2, 16), (2, 2, 2, 16), (4, 1, 1, 16),
    (1, 1, 1, 8), (1, 1, 3, 8), (2, 2, 3, 8),
)  # fmt: skip
"""(Mt, Nt, Kt, k): tiles along M, N and K of instructions m16n8k16 or m16n8k8."""

DTYPES = ("float16", "bfloat16")

SPLITS = (
    ("cta", 2, 1), ("cta", 1, 2), ("cta", 2, 2), ("cta", 4, 2),
    ("warpgroup", 4, 1), ("warpgroup", 1, 4), ("warpgroup", 2, 2),
)  # fmt: skip
"""(scope, warps along M, warps along N)."""


@dataclass(frozen=True)
class Case:
    """A call with where it is lowered."""

    name: str
    call: GemmCall
    scope: str = "warp"
    launch: int | None = None


def instruction(dtype: str, k: int) -> Any:
    """The record of m16n8k with that input type."""
    return next(i for i in MMA_INSTRUCTIONS if i.a == dtype and i.k == k)


def one_warp(
    tiling: tuple[int, int, int, int],
    dtype: str,
    beta: float = 0.0,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    in_place: bool = True,
) -> GemmCall:
    """A gemm of shipped fragments in one warp; C is D, or a tile of its own."""
    mt, nt, kt, k = tiling
    record = instruction(dtype, k)
    layouts = {
        "A": tiled(record, "A", (mt, kt)),
        "B": tiled(record, "B", (kt, nt)),
        "D": tiled(record, "D", (mt, nt)),
    }
    shapes = {"A": (16 * mt, k * kt), "B": (k * kt, 8 * nt), "D": (16 * mt, 8 * nt)}
    for role, flag in (("A", transpose_a), ("B", transpose_b)):
        if flag:
            layouts[role], shapes[role] = transposed(layouts[role], shapes[role]), shapes[role][::-1]
    d = Tile("D", shapes["D"], "float32", layouts["D"])
    a, b = (Tile(role, shapes[role], dtype, layouts[role]) for role in "AB")
    c = d if in_place else Tile("C", shapes["D"], "float32", layouts["D"])
    return gemm(d, a, b, c, transpose_a=transpose_a, transpose_b=transpose_b, beta=beta)


def several_warps(dtype: str, scope: str, along_m: int, along_n: int, beta: float = 0.0) -> GemmCall:
    """Each warp computes 32 x 16 x 32; warp number = ``along_n * i + j`` for block (i, j)."""
    axis = "warpid" if scope == "cta" else "wid_in_wg"
    record = instruction(dtype, 16)
    d, a, b = tiled(record, "D", (2, 2)), tiled(record, "A", (2, 2)), tiled(record, "B", (2, 2))
    m, k = operand_shape(record, "A")
    rows, columns, terms = 2 * m, 2 * record.n, 2 * k
    d = _split(_split(d, (rows, columns), 1, along_n, axis), (rows, columns * along_n), 0, along_m, axis)
    a = _split(_copies(a, along_n, axis), (rows, terms), 0, along_m, axis)
    b = _copies(_split(b, (terms, columns), 1, along_n, axis), along_m, axis)
    tile_d = Tile("D", (rows * along_m, columns * along_n), "float32", d)
    tile_a = Tile("A", (rows * along_m, terms), dtype, a)
    tile_b = Tile("B", (terms, columns * along_n), dtype, b)
    return gemm(tile_d, tile_a, tile_b, tile_d, beta=beta)


def _split(layout: Any, shape: tuple[int, int], dimension: int, warps: int, axis: str) -> Any:
    return layout if warps == 1 else spread(layout, shape, dimension, warps, axis)


def _copies(layout: Any, warps: int, axis: str) -> Any:
    return layout if warps == 1 else replicated(layout, warps, axis)


def all_cases() -> Iterator[Case]:
    """Tilings x types x beta, orientations x types, splits over warps x types."""
    for tiling in TILINGS:
        for dtype in DTYPES:
            for beta in (0.0, 1.0):
                name = f"{'x'.join(map(str, tiling))} {dtype} beta={beta:g}"
                yield Case(name, one_warp(tiling, dtype, beta, in_place=False))
    for dtype in DTYPES:
        for a in (False, True):
            for b in (False, True):
                name = f"transpose_a={a:d} transpose_b={b:d} {dtype}"
                yield Case(name, one_warp((2, 2, 2, 16), dtype, transpose_a=a, transpose_b=b))
    for scope, along_m, along_n in SPLITS:
        for dtype in DTYPES:
            call = several_warps(dtype, scope, along_m, along_n, beta=1.0)
            yield Case(f"{scope} {along_m}x{along_n} warps {dtype}", call, scope, 32 * along_m * along_n)
