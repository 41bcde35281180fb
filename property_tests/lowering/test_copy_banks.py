"""Bank conflicts of programs' accesses to shared memory: the table of C28, and what `explain` says."""

from __future__ import annotations

from typing import Any

import pytest

from lowering import Tile, copy, lower
from lowering.backends.banks import shared_accesses
from lowering.compose import sequence
from lowering.fragments import A_FRAG
from tilelayout import S, Swizzle, TileLayout, laneid, warpid
from tilelayout.analysis import Access, bank_conflicts

from ..sequence_cases import staged_gemm


def stage(width: int, swizzle: Any = None) -> Any:
    layout = TileLayout(S[(16, 16) : (width, 1)])
    return layout if swizzle is None else layout.swizzle(Swizzle(*swizzle))


@pytest.mark.parametrize(
    ("width", "swizzle", "degree"),
    [
        (32, None, 4),
        (32, (2, 3, 3), 1),
        (32, (3, 3, 4), 2),
        (64, None, 8),
        (64, (3, 3, 3), 1),
        (72, None, 1),
        (72, (3, 3, 3), 8),
        (128, (3, 3, 3), 2),
        (128, (3, 3, 4), 1),
    ],
)
def test_ldmatrix_of_halves(width: int, swizzle: Any, degree: int) -> None:
    """C28: a phase is 8 rows of 16 bytes."""
    held = Tile("held", (16, 16), "float16", A_FRAG)
    memory = Tile("memory", (16, 16), "float16", stage(width, swizzle), "shared")
    lowered = lower(copy(held, memory), target="sm_80", scope="warp")
    (access,) = shared_accesses(lowered.program)
    assert access.degree == degree
    assert access.report.access.kind == "ldmatrix"
    wanted = bank_conflicts(memory.layout, Access.matrices((16, 16), [(0, 0), (8, 0), (0, 8), (8, 8)]), 16)
    assert access.report.wavefronts == wanted.wavefronts
    text = lowered.explain()
    assert (f"{degree}-way" in text) == (degree > 1)
    assert f"1 access of a warp, {'1' if degree > 1 else 'none'} with bank conflicts" in text


@pytest.mark.parametrize(
    ("stride", "swizzle", "degree"),
    [
        (32, None, 32),
        (64, None, 32),
        (16, None, 16),
        (33, None, 1),
        (32, (5, 0, 5), 1),
        (32, (3, 0, 5), 4),
        (32, (2, 0, 5), 8),
    ],
)
def test_a_column_of_floats(stride: int, swizzle: Any, degree: int) -> None:
    """C28: one float32 a lane, down a column."""
    layout = TileLayout(S[(32, 1) : (stride, 1)])
    layout = layout if swizzle is None else layout.swizzle(Swizzle(*swizzle))
    held = Tile("held", (32, 1), "float32", TileLayout(S[(32, 1) : (1 @ laneid, 1)]))
    memory = Tile("memory", (32, 1), "float32", layout, "shared")
    for call in (copy(held, memory), copy(memory, held)):
        (access,) = shared_accesses(lower(call, target="sm_80", scope="warp").program)
        assert access.degree == degree


def test_the_worst_warp_counts() -> None:
    """Warp 0 reads a row, warp 1 a column."""
    held = Tile("held", (2, 32), "float32", TileLayout(S[(2, 32) : (1 @ warpid, 1 @ laneid)]))
    memory = Tile("memory", (2, 32), "float32", TileLayout(S[(2, 32) : (1, 32)]), "shared")
    lowered = lower(copy(held, memory), target="sm_80", scope="cta", launch=64)
    (access,) = shared_accesses(lowered.program)
    assert access.degree == 32


def test_global_memory_has_no_banks() -> None:
    held = Tile("held", (16, 16), "float16", A_FRAG)
    memory = Tile("memory", (16, 16), "float16", stage(64), "global")
    lowered = lower(copy(held, memory), target="sm_80", scope="warp")
    assert shared_accesses(lowered.program) == ()
    assert "shared memory" not in lowered.explain()


def test_a_whole_kernel_without_conflicts() -> None:
    swizzled = {
        "a_stage": TileLayout(S[64, 64]).swizzle(3, 3, 3),
        "b_stage": TileLayout(S[64, 64]).swizzle(3, 3, 3),
    }
    found = shared_accesses(staged_gemm(sizes=(64, 64, 64), **swizzled).program)
    assert len(found) > 10
    assert {access.degree for access in found} == {1}
    plain = {"a_stage": TileLayout(S[64, 64]), "b_stage": TileLayout(S[64, 64])}
    worst = [a for a in shared_accesses(staged_gemm(sizes=(64, 64, 64), **plain).program) if a.degree > 1]
    assert {a.degree for a in worst} == {8}
    assert all("ldmatrix" in a.text for a in worst)


def test_gathered_halves_are_two_accesses() -> None:
    held = Tile("held", (32, 2), "float16", TileLayout(S[(32, 2) : (1 @ laneid, 1)]))
    memory = Tile("memory", (32, 2), "float16", TileLayout(S[(32, 2) : (1, 32)]), "shared")
    found = sequence([lower(copy(held, memory), target="sm_80", scope="warp")])
    assert [a.degree for a in shared_accesses(found.program)] == [1, 1]
