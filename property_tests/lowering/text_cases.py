"""What the tests of the text backends share: lowered gemms, inputs on which every sum is exact, and their check."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering import Lowered, Tile, gemm, lower
from lowering.compose import Kernel
from lowering.dtypes import dtype
from lowering.program import Program
from lowering.registers import LANE, WARP
from property_tests.gemm_cases import Case, all_cases, one_warp
from tilelayout.expr import Index

CASES = {case.name: case for case in all_cases()}

LARGE = [((4, 8, 4, 16), "float16", 0.0), ((4, 6, 5, 16), "bfloat16", 1.0)]
"""(tiling, type, beta): the largest kernels that must not spill."""

ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")

SMALLEST = ((1, 1, 1, 16), "float16")

EXPRESSIONS: tuple[Index, ...] = (
    -2 * LANE % 3, -2 * LANE // 3, (5 - 2 * LANE) % 4 * WARP, -LANE // 8, -LANE * 2**33 // 3, -LANE * 2**33 % 7,
    (LANE - 20) >> (WARP % 3), (20 - LANE * 2**33) >> (WARP % 3),
    LANE * 2**33 >> (WARP % 7 + 30), (LANE * 2**33 + WARP * 3) & (WARP * 5), LANE * (2**33 + 1) // 1000003,
    LANE * (2**33 + 1) % (WARP + 3), LANE * 2**33 // (WARP + 2**20) * 3, (LANE * 2**33 ^ WARP * 3) - LANE,
    (LANE ^ WARP) * (LANE % 3) * 2**30, (LANE - 7) ^ (WARP * 2**33), 1 << (LANE % 29), WARP << (LANE + 3) % 27,
    2**31 - (1 << (LANE % 3)),
)  # fmt: skip
"""Index expressions in which signs and widths of 32 and 64 bits meet."""


def one(case: Case, target: str = "sm_80") -> Lowered:
    return lower(case.call, target=target, scope=case.scope, launch=case.launch)


def warp(
    tiling: tuple[int, int, int, int], element: str, beta: float = 0.0, target: str = "sm_80"
) -> Lowered:
    return lower(one_warp(tiling, element, beta, in_place=False), target=target, scope="warp")


def renamed(names: dict[str, str]) -> Lowered:
    """A small gemm whose tiles have other names, by role."""
    call = one_warp((1, 2, 1, 16), "float16", 1.0, in_place=False)
    tiles = {r: Tile(names[r], t.shape, t.dtype, t.layout) for r, t in call.tiles.items()}
    return lower(gemm(**tiles, beta=1.0), target="sm_80", scope="warp")


def multiplications(program: Program) -> list[list[list[tuple[str, int]]]]:
    """The registers of every mma of a program as (group, number), in the order of PTX's operands: D, A, B, C."""
    found = []
    for step in program.steps:
        if step.instruction.collective:
            d, a, b = [[(r.name, i) for r, i in argument] for argument in step.arguments]  # type: ignore[union-attr]
            found.append([d, a, b, d])
    return found


def inputs(kernel: Kernel) -> list[Any]:
    """An array a buffer: small integers, so that a wrong or missing product shows and no sum is rounded.

    What D holds before is NaN.
    """
    arrays = []
    for seed, b in enumerate(kernel.buffers):
        kind = dtype(b.dtype).numpy
        values = np.random.default_rng(seed).integers(-8, 9, b.shape).astype(kind)
        arrays.append(np.full(b.shape, np.nan, kind) if b.role == "D" else values)
    return arrays


def check(lowered: Lowered, after: list[Any], before: list[Any]) -> None:
    """D is ``A @ B + C``, every other buffer is as it was."""
    held = {b.role: x.astype(np.float64) for b, x in zip(lowered.kernel.buffers, before, strict=True)}
    a = held["A"].T if lowered.call.transpose_a else held["A"]
    b = held["B"].T if lowered.call.transpose_b else held["B"]
    d = a @ b + held.get("C", 0.0)
    for buffer, x, y in zip(lowered.kernel.buffers, after, before, strict=True):
        np.testing.assert_array_equal(x, d if buffer.role == "D" else y)
