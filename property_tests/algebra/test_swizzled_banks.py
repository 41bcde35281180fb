"""Swizzles do what they are for: the banks of a column and of the phases of ldmatrix, counted by hand (case C28)."""

from __future__ import annotations

import pytest

from tilelayout import S, Swizzle, SwizzledLayout, m

TILE = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))


def ways(addresses: list[int], banks: int = 32) -> int:
    """How many different words the busiest bank delivers."""
    return max(len({a for a in addresses if a % banks == bank}) for bank in range(banks))


@pytest.mark.parametrize(
    ("stride", "swizzle", "expected"),
    [
        (32, Swizzle(0, 0, 0), 32), (64, Swizzle(0, 0, 0), 32), (16, Swizzle(0, 0, 0), 16), (33, Swizzle(0, 0, 0), 1),
        (32, Swizzle(5, 0, 5), 1), (32, Swizzle(3, 0, 5), 4), (32, Swizzle(2, 0, 5), 8),
    ],
)  # fmt: skip
def test_c28_a_column_of_floats(stride: int, swizzle: Swizzle, expected: int) -> None:
    column = SwizzledLayout(S[(32, 32) : (stride, 1)], swizzle).slice((32, 32), [(0, 32), (0, 1)])
    assert ways([column.apply(lane)["m"] for lane in range(32)]) == expected


@pytest.mark.parametrize(
    ("ld", "swizzle", "expected"),
    [
        (32, Swizzle(0, 0, 0), 4), (32, Swizzle(2, 3, 3), 1), (32, Swizzle(3, 3, 4), 2), (64, Swizzle(0, 0, 0), 8),
        (64, Swizzle(3, 3, 3), 1), (72, Swizzle(0, 0, 0), 1), (72, Swizzle(3, 3, 3), 8), (128, Swizzle(3, 3, 3), 2),
        (128, Swizzle(3, 3, 4), 1),
    ],
)  # fmt: skip
def test_c28_a_phase_of_ldmatrix(ld: int, swizzle: Swizzle, expected: int) -> None:
    """Eight rows of 16 bytes, halves: the words of each row, in pairs of halves."""
    rows = SwizzledLayout(S[(8, 8) : (ld, 1)], swizzle).pack(2)
    words = rows.table((8, 4))[m]
    assert ways(words.ravel().tolist()) == expected
