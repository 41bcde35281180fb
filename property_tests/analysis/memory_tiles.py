"""Tiles in memory for these tests: a swizzle put on a layout by hand, and strategies for tiles and accesses."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import strategies as st

from tilelayout import S, TileLayout
from tilelayout.analysis import Access


class Xored:
    """A layout whose positions are swizzled by the formula of the facts, independent of the library's Swizzle."""

    def __init__(self, layout: TileLayout, bits: int, base: int, shift: int) -> None:
        self.layout, self.swizzle = layout, f"S<{bits},{base},{shift}>"
        self._mask, self._shift = ((1 << bits) - 1) << base + shift, shift

    def table(self, shape: Any) -> dict[str, Any]:
        x = self.layout.table(shape)["m"]
        return {"m": x ^ ((x & self._mask) >> self._shift)}


def rounds(accesses: list[tuple[int, int]]) -> int:
    """Rounds of one phase, byte by byte, from the (first byte, bytes) of its lanes."""
    wanted: dict[int, set[int]] = defaultdict(set)
    for first, width in accesses:
        for byte in range(first, first + width):
            wanted[byte // 4 % 32].add(byte // 128)
    return max((len(lines) for lines in wanted.values()), default=0)


def phases(lanes: int, width: int, matrix: bool = False) -> list[list[int]]:
    size = 8 if matrix or width == 16 else 16 if width == 8 else 32
    return [list(range(lanes))[k : k + size] for k in range(0, lanes, size)]


def row_major(rows: int, columns: int, pitch: int | None = None) -> TileLayout:
    return TileLayout(S[(rows, columns) : (pitch or columns, 1)])


@st.composite
def swizzles(draw: st.DrawFn, max_bits: int = 3, max_base: int = 5) -> tuple[int, int, int]:
    bits = draw(st.integers(1, max_bits))
    return bits, draw(st.integers(0, max_base)), draw(st.integers(bits, 5))


@st.composite
def scalar_accesses(draw: st.DrawFn, shape: tuple[int, ...], lanes: int = 32) -> Access:
    """Any element for any lane, some lanes off."""
    size = 1
    for n in shape:
        size *= n
    one = st.one_of(st.none(), st.integers(0, size - 1), st.integers(0, size - 1))
    drawn = draw(st.lists(one, min_size=1, max_size=lanes))
    return Access(
        shape, [*drawn, 0] if all(x is None for x in drawn) and len(drawn) < lanes else [0, *drawn[1:]]
    )
