"""The gemms that are measured: one warp, tiles of ``mma.m16n8k16`` fragments."""

from __future__ import annotations

from lowering import Lowered, Tile, gemm, lower
from lowering.fragments import tiled
from lowering.isa import MMA_INSTRUCTIONS, MmaInstruction
from lowering.ops import GemmCall

SMALL, LARGE = (1, 1, 1), (4, 8, 4)
"""Atoms along M, N and K: (1,1,1,16) and (4,8,4,16)."""


def one_warp(atoms: tuple[int, int, int], record: MmaInstruction) -> GemmCall:
    """``D = A @ B`` of so many atoms of one instruction; every tile and layout new."""
    mt, nt, kt = atoms
    m, n, k = mt * record.m, nt * record.n, kt * record.k
    D = Tile("D", (m, n), record.d, tiled(record, "D", (mt, nt)))
    A = Tile("A", (m, k), record.a, tiled(record, "A", (mt, kt)))
    B = Tile("B", (k, n), record.b, tiled(record, "B", (kt, nt)))
    return gemm(D, A, B, D)


def half() -> MmaInstruction:
    """``mma.m16n8k16`` on float16."""
    return next(r for r in MMA_INSTRUCTIONS if r.k == 16 and r.a == "float16")


def lowered(atoms: tuple[int, int, int]) -> Lowered:
    return lower(one_warp(atoms, half()), target="sm_80", scope="warp")


def text(atoms: tuple[int, int, int]) -> str:
    return f"({', '.join(map(str, atoms))}, 16)"
