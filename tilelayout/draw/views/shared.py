"""Shared memory: lines of 32 banks, with what each bank's word holds, what a swizzle moved, and what collides."""

from __future__ import annotations

from ...analysis.access import Access, coordinate_of
from ...analysis.banks import BANK_BYTES, BANKS, LINE_BYTES, bank_conflicts
from ...analysis.memory import as_bits, as_number, positions
from ...errors import LayoutError
from ...swizzled import SwizzledLayout
from ..colors import paint
from ..model import Cell, Grid, Panel, Picture
from ..places import MAX_ROWS, as_layout, drawn_shape, tile_layout
from ..wording import coordinate, told, width_text
from .logical import as_limits, swizzle_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Final

    from ...analysis.banks import BankReport
    from ..places import Layout

BANK_BITS: Final = 8 * BANK_BYTES
LINE_BITS: Final = 8 * LINE_BYTES
VECTOR_BITS: Final = 128
CHUNKS: Final = (4, 8, 16)


def shared(
    layout: Any,
    shape: Sequence[int] | int | None = None,
    bits: int = 16,
    *,
    access: Access | None = None,
    chunk: int = 4,
    base: int = 0,
    color: Callable[[tuple[int, ...]], Any] | bool | None = None,
    palette: str = "categories",
    title: str | None = None,
    max_rows: int = MAX_ROWS,
) -> Picture:
    """A tile in shared memory: a row for each line of 128 bytes, a column for each bank (or 2 or 4 of them).

    Args:
        layout: where each element is, on `m`, counted in elements; without a replica.
        shape: the tile's.
        bits: width of an element.
        access: one instruction of a warp, to be marked: which lanes touch what, and which words collide
            (`analysis.bank_conflicts`).
        chunk: bytes of a cell: 4 (one bank), 8 or 16 (a vector of ldmatrix).
        base: byte address of position 0.
        color: a function of an element's coordinate, False for none; by default the 16 bytes of its row in which
            an element lies, whose order a swizzle changes.
        max_rows: lines that are shown; the picture says so where there are more.

    Post-condition: a cell's `elements` are exactly those of which some bit lies in its bytes; a cell is marked "moved"
    iff one of them lies in another cell without the swizzle, and "conflict" iff its banks take part in a conflict and a
    lane of that conflict touches it.
    Errors: LayoutError where an element has several addresses, one below 0, or one that is not on `m`; those of
    `bank_conflicts` for an access that is none under this layout.

    >>> from tilelayout.draw import shared
    >>> tile = SwizzledLayout(S[8, 64], Swizzle(3, 3, 3))
    >>> shared(tile, (8, 64), 16, chunk=16).grid.cells[1][0].elements[0]
    (1, 8)
    >>> from tilelayout.analysis import Access
    >>> column = Access.matrices((8, 64))
    >>> [m for cell in shared(TileLayout(S[8, 64]), (8, 64), access=column).cells for m in cell.marks].count(
    ...     "conflict"
    ... )
    32
    """
    drawn = as_layout(layout, "shared")
    dims = drawn_shape(drawn, shape, "shared")
    width = as_bits(bits, "shared")
    if chunk not in CHUNKS:
        raise LayoutError("shared", f"a cell of {chunk} bytes", "chunk=4 (a bank), 8 or 16")
    lines, _ = as_limits(max_rows, 1, "shared")
    tile = _Tile(drawn, dims, width, as_number(base, "shared", "base"), 8 * chunk)
    if access is not None and access.shape != dims:
        raise LayoutError("shared", f"the access is to a tile {access.shape}, and this one is {dims}")
    report = None if access is None else bank_conflicts(drawn, access, width, base=base)
    touched = _touched(report, tile)
    first, last = tile.first_line, tile.last_line
    rows = [
        tuple(
            [
                _cell(tile, line * LINE_BITS + c * 8 * chunk, touched, color)
                for c in range(LINE_BYTES // chunk)
            ]
        )
        for line in range(first, min(last, first + lines - 1) + 1)
    ]
    step = chunk // BANK_BYTES
    grid = Grid(
        tuple(rows),
        tuple([str(first + i) for i in range(len(rows))]),
        tuple([str(c) if step == 1 else f"{c}-{c + step - 1}" for c in range(0, BANKS, step)]),
        "line",
        "bank" if step == 1 else "banks",
        size=(last - first + 1, LINE_BYTES // chunk),
        join=" ",
    )
    painted, legend = paint([grid], "16-byte vector of the row" if color is None else "color", palette)
    notes = swizzle_note(drawn, width)
    if report is not None:
        notes = (*notes, *str(report).splitlines())
    return Picture(
        str(layout) if title is None else title,
        (Panel(painted[0]),),
        f"shared memory, {width}-bit elements of ({coordinate(dims)}): lines of {LINE_BYTES} bytes, "
        f"{chunk} bytes a cell",
        notes,
        legend,
        palette,
    )


class _Tile:
    """A tile in memory, by the cells that its elements fall into."""

    def __init__(self, layout: Layout, dims: tuple[int, ...], bits: int, base: int, cell_bits: int) -> None:
        self.dims, self.bits, self.cell_bits = dims, bits, cell_bits
        self.begin = self._begins(layout, base)
        plain = self._begins(tile_layout(layout), base) if isinstance(layout, SwizzledLayout) else self.begin
        if min(self.begin) < 0:
            flat = self.begin.index(min(self.begin))
            raise LayoutError(
                "shared",
                f"element ({coordinate(coordinate_of(flat, dims))}) is at bit {self.begin[flat]}, before address 0",
                "say with base where position 0 is",
            )
        self.cells: dict[int, list[int]] = {}
        self.moved: set[int] = set()
        for flat, (at, before) in enumerate(zip(self.begin, plain, strict=True)):
            for cell in range(at - at % cell_bits, at + bits, cell_bits):
                self.cells.setdefault(cell, []).append(flat)
            if at // cell_bits != before // cell_bits:
                self.moved.add(flat)
        self.first_line = min(self.begin) // LINE_BITS
        self.last_line = (max(self.begin) + bits - 1) // LINE_BITS

    def _begins(self, layout: Layout, base: int) -> list[int]:
        """Flat index -> address in bits."""
        return [int(v) * self.bits + 8 * base for v in positions(layout, self.dims, "shared").tolist()]


def _touched(report: BankReport | None, tile: _Tile) -> dict[int, tuple[list[int], bool]]:
    """Cell -> the lanes that touch it, and whether one of them waits there for another."""
    found: dict[int, tuple[list[int], bool]] = {}
    if report is None:
        return found
    waiting: dict[int, set[int]] = {}
    for phase in report.phases:
        for conflict in phase.conflicts:
            for lane in conflict.lanes:
                waiting.setdefault(lane, set()).update(conflict.banks)
    for lane, elements in enumerate(report.access.lanes):
        if not elements:
            continue
        start = tile.begin[elements[0]]
        for word in range(start - start % BANK_BITS, start + len(elements) * tile.bits, BANK_BITS):
            cell = word - word % tile.cell_bits
            lanes, collides = found.get(cell, ([], False))
            if lane not in lanes:
                lanes.append(lane)
            found[cell] = lanes, collides or word // BANK_BITS % BANKS in waiting.get(lane, ())
    return found


def _cell(tile: _Tile, at: int, touched: dict[int, tuple[list[int], bool]], color: Any) -> Cell:
    flats = sorted(tile.cells.get(at, []), key=lambda flat: tile.begin[flat])
    elements = tuple([coordinate_of(flat, tile.dims) for flat in flats])
    banks = at // BANK_BITS % BANKS, (at + tile.cell_bits - 1) // BANK_BITS % BANKS
    place = f"bytes {at // 8}-{(at + tile.cell_bits) // 8 - 1}, line {at // LINE_BITS}, " + (
        f"bank {banks[0]}" if banks[0] == banks[1] else f"banks {banks[0]}-{banks[1]}"
    )
    lanes, collides = touched.get(at, ([], False))
    listed = [
        f"element ({coordinate(e)}): {width_text(tile.begin[flat] // tile.bits, tile.bits, False)}"
        if tile.begin[flat] % tile.bits == 0
        else f"element ({coordinate(e)}): bits {tile.begin[flat]}-{tile.begin[flat] + tile.bits - 1}"
        for e, flat in zip(elements, flats, strict=True)
    ]
    title = [place, *told("elements", listed or ["no element"])]
    lines = [_run(elements)] if elements else []
    if lanes:
        text = ",".join(map(str, lanes)) if len(lanes) <= 3 else f"{lanes[0]}..{lanes[-1]}"
        lines.append(f"T{text}")
        title.append("touched by lanes " + ", ".join(map(str, lanes)))
    marks = ("conflict",) * collides + ("moved",) * any(flat in tile.moved for flat in flats)
    key = None
    if elements and color is not False:
        key = elements[0][-1] * tile.bits // VECTOR_BITS if color is None else color(elements[0])
    holders = tuple([{"m": tile.begin[flat] // tile.bits} for flat in flats])
    return Cell(tuple(lines), "\n".join(title), elements, holders, key, marks=marks)


def _run(elements: tuple[tuple[int, ...], ...]) -> str:
    """``3,8..15`` for a run along the last dimension, else the first, and how many more."""
    first = ",".join(map(str, elements[0]))
    if len(elements) == 1:
        return first
    run = [(*elements[0][:-1], elements[0][-1] + k) for k in range(len(elements))]
    if list(elements) == run:
        return f"{first}..{elements[-1][-1]}"
    return f"{first} +{len(elements) - 1}"
