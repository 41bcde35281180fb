"""What a target has room for, and which feed the arrays' alignment allows."""

from __future__ import annotations

from ...target import Target
from .config import Feed
from .numbers import Extents
from .placed import is_boxed
from .problem import Matrix, Problem

SHARED = {
    75: 64,
    80: 163,
    86: 99,
    87: 163,
    88: 99,
    89: 99,
    90: 227,
    100: 227,
    103: 227,
    110: 227,
    120: 99,
    121: 99,
}
"""Compute capability -> KiB of shared memory of a CTA (CUDA programming guide, "Technical Specifications per Compute
Capability")."""
RESERVED = 2048
"""Bytes left for barriers and alignment."""
BULK_ALIGNMENT = 16


def feed_of(problem: Problem, target: Target) -> Feed:
    """The fastest feed that the target has and the matrices' alignment allows."""
    factors = (problem.A, problem.B)
    if target.sm >= 90 and all(m.alignment % BULK_ALIGNMENT == 0 and is_boxed(m) for m in factors):
        return "tma"
    if target.sm >= 80 and all(_copied_by_four(m) for m in factors):
        return "cp_async"
    return "registers"


def _copied_by_four(matrix: Matrix) -> bool:
    return matrix.alignment % 4 == 0


def stages_of(problem: Problem, tile: tuple[int, int, int], target: Target, beside: int = 0) -> int:
    """Stages that shared memory holds beside other bytes, at most 8."""
    each = tile[2] * (tile[0] * problem.A.bytes + tile[1] * problem.B.bytes)
    return min(8, (SHARED[target.sm] * 1024 - RESERVED - beside) // each)


def ends_within_unit(problem: Problem, extents: Extents) -> bool:
    """Whether D's rows end within 16 bytes, all of which the copy engine would store, beyond the end too."""
    return extents.N * problem.D.bytes % BULK_ALIGNMENT != 0
