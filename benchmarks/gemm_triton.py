"""The product as one writes it in Triton: tiles in groups of rows, a loop over K, a handful of ways to cut it.

The ways are compiled in several processes beforehand and timed in one; the fastest stands for Triton.  Needs torch and
triton.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import triton
import triton.language as tl

from .gemm_arrays import Set, torch_type
from .gemm_rows import WIDTH, Row


class Cut(NamedTuple):
    """Rows, columns and depth of a tile, in elements of 2 bytes; warps and stages."""

    m: int
    n: int
    k: int
    warps: int
    stages: int


LARGE = (
    Cut(128, 256, 64, 8, 3),
    Cut(128, 256, 64, 8, 4),
    Cut(128, 128, 64, 4, 4),
    Cut(128, 128, 64, 8, 3),
    Cut(64, 256, 64, 4, 4),
)
SMALL = (Cut(16, 128, 128, 4, 4), Cut(16, 64, 128, 4, 5), Cut(64, 64, 128, 4, 4), Cut(64, 128, 64, 4, 4))
GROUP = 8


@triton.jit
def product(
    a_pointer, b_pointer, d_pointer, M, N, K, a_row, a_column, b_row, b_column, d_row, d_column,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP_M: tl.constexpr, EVEN: tl.constexpr,
    SUMS: tl.constexpr,
):  # fmt: skip
    """One CTA makes one tile of D."""
    number = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, TILE_M), tl.cdiv(N, TILE_N)
    in_group = GROUP_M * tiles_n
    first = number // in_group * GROUP_M
    height = tl.minimum(tiles_m - first, GROUP_M)
    tile_m, tile_n = first + number % in_group % height, number % in_group // height
    rows = tile_m * TILE_M + tl.arange(0, TILE_M)
    columns = tile_n * TILE_N + tl.arange(0, TILE_N)
    depth = tl.arange(0, TILE_K)
    # Beyond the rims rows and columns are read again from the front; what comes of them is not stored.
    a_at = a_pointer + (rows % M)[:, None] * a_row + depth[None, :] * a_column
    b_at = b_pointer + depth[:, None] * b_row + (columns % N)[None, :] * b_column
    sums = tl.zeros((TILE_M, TILE_N), dtype=SUMS)
    for k in range(tl.cdiv(K, TILE_K)):
        if EVEN:
            a, b = tl.load(a_at), tl.load(b_at)
        else:
            left = K - k * TILE_K
            a = tl.load(a_at, mask=depth[None, :] < left, other=0.0)
            b = tl.load(b_at, mask=depth[:, None] < left, other=0.0)
        sums = tl.dot(a, b, sums, out_dtype=SUMS)
        a_at += TILE_K * a_column
        b_at += TILE_K * b_row
    d_at = d_pointer + rows[:, None] * d_row + columns[None, :] * d_column
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(d_at, sums.to(d_pointer.dtype.element_ty), mask=inside)


def supported(row: Row) -> bool:
    """Whether the row is measured: Triton's products have no float64 here, and the kernel above no batches."""
    return row.dtype != "float64" and row.batches is None


def cuts(row: Row) -> tuple[Cut, ...]:
    return SMALL if row.M <= 64 else LARGE


def options(row: Row, cut: Cut) -> dict[str, Any]:
    depth = max(16, cut.k * 2 // WIDTH[row.dtype])
    sums = tl.int32 if row.dtype == "int8" else tl.float32
    return {"TILE_M": cut.m, "TILE_N": cut.n, "TILE_K": depth, "GROUP_M": GROUP, "EVEN": row.K % depth == 0,
            "SUMS": sums, "num_warps": cut.warps, "num_stages": cut.stages}  # fmt: skip


def strides(x: Set) -> tuple[int, ...]:
    return (*x.A.stride(), *x.B.stride(), *x.D.stride())


def run(row: Row, cut: Cut, x: Set) -> Any:
    """Launch."""
    grid = (triton.cdiv(row.M, cut.m) * triton.cdiv(row.N, cut.n),)
    product[grid](x.A, x.B, x.D, row.M, row.N, row.K, *strides(x), **options(row, cut))
    return x.D


def compile_one(row: Row, cut: Cut, steps: tuple[int, ...]) -> str:
    """Compile into Triton's cache on disk, for `run` in another process; what went wrong, or nothing."""
    kind, out = torch_type(row.dtype), torch_type(row.out)
    try:
        product.warmup(kind, kind, out, row.M, row.N, row.K, *steps, grid=(1,), **options(row, cut))
    except Exception as error:  # noqa: BLE001  # Triton's errors are of many kinds; a cut that it can't do is left out
        return f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}"
    return ""
