"""Matrices that a layout places: A, B and C, in every way to cut; D lies in rows or columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering.kernels import Config, gemm
from tilelayout import S, TileLayout

M, N, K = 40, 48, 64
BLOCKS = (4, 8)
CUTS = {
    "chosen": None,
    "tma, slots": Config((32, 32, 32), (1, 1), 2, "tma", slots=1),
    "cp_async": Config((32, 32, 32), (1, 1), 2, "cp_async"),
    "cp_async, parts": Config((32, 32, 32), (1, 1), 2, "cp_async", splits=2),
    "registers, parts": Config((32, 32, 32), (1, 1), 2, "registers", splits=2),
    "registers, rows by threads": Config((32, 32, 32), (1, 1), 2, "registers", slots=1, sender="threads"),
}


def blocked(rows: int, columns: int) -> TileLayout:
    """Blocks of 4 x 8, each in one piece, block columns first."""
    high, wide = BLOCKS
    return TileLayout(
        S[(rows // high, high, columns // wide, wide) : (high * wide, wide, high * wide * (rows // high), 1)]
    )


def right(config: Config | None, **orders: Any) -> None:
    rng = np.random.default_rng(11)
    a, b, c = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((M, K), (K, N), (M, N)))
    made = gemm("float16", **orders, bias="row", target="sm_90a", config=config, shape=(M, N, K))
    bias = rng.integers(-3, 4, N).astype(np.float16)
    found = made.simulate(a, b, C=c, bias=bias, beta=2.0)
    np.testing.assert_array_equal(found.astype(float), a.astype(float) @ b + 2.0 * c + bias)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("d", ["row", "column"])
@pytest.mark.parametrize(
    "layout", [blocked(M, N), TileLayout(S[(M, N) : (1, M + 3)])], ids=["blocked", "columns"]
)
def test_a_layout_places_c(cut: str, d: str, layout: TileLayout) -> None:
    right(CUTS[cut], C=layout, D=d)


@pytest.mark.parametrize("cut", ["chosen", "registers, parts", "registers, rows by threads"])
@pytest.mark.parametrize("d", ["row", "column"])
def test_a_layout_places_all_that_is_read(cut: str, d: str) -> None:
    right(CUTS[cut], A=blocked(M, K), B=blocked(K, N), C=blocked(M, N), D=d)


@pytest.mark.parametrize("d", ["row", "column"])
def test_what_is_placed_is_not_written_in_place(d: str) -> None:
    """Another thread reads an element of C than the one that writes to its place."""
    for c, may in ((d, "C"), (blocked(M, N), None)):
        made = gemm("float16", C=c, D=d, target="sm_90a", shape=(M, N, K) if may is None else None)
        assert made.operands(True)[1]._in_place == may
