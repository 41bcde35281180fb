"""The lowering's rows on lowering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilelayout
from lowering import Lowered, lower

from .gemms import LARGE, SMALL, half, lowered, one_warp, text
from .worker import Row

VERSION = f"tilelayout {tilelayout.__version__}"


def rows() -> list[Row]:
    return [row for atoms in (SMALL, LARGE) for row in rows_of(atoms)]


def rows_of(atoms: tuple[int, int, int]) -> list[Row]:
    calls = 40 if atoms == SMALL else 10

    def new_calls(n: int) -> list[Any]:
        return [one_warp(atoms, half()) for _ in range(n)]

    def new_lowered(n: int) -> list[Any]:
        return [lowered(atoms) for _ in range(n)]

    def mmas(found: Lowered) -> int:
        return sum(step.instruction.collective for step in found.program.steps)

    def row(
        name: str,
        prepare: Callable[[int], list[Any]],
        call: Callable[[Any], Any],
        answer: Callable[[Any], Any],
    ) -> Row:
        return Row(f"{name} {text(atoms)}", prepare, call, answer, calls)

    a, b = (
        np.ones(tile.shape, np.float16)
        for tile in (one_warp(atoms, half()).A.tile, one_warp(atoms, half()).B.tile)
    )
    return [
        row("lower", new_calls, lambda call: lower(call, target="sm_80", scope="warp"), mmas),
        row("print the nest", new_lowered, str, len),
        row("PTX text", new_lowered, lambda x: x.ptx, len),
        row("CUDA text", new_lowered, lambda x: x.cuda, len),
        row("reference machine", new_lowered, lambda x: x.run(A=a, B=b), lambda d: float(d.sum())),
    ]
