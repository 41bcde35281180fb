"""The operands of any instruction of the catalogue: layout, shape, and where in registers an element is.

Everything is read from the records and their proved layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tilelayout import LayoutError, TileLayout
from tilelayout.draw.places import unflattened
from tilelayout.parts import product

from ..dtypes import dtype
from ..fragments import layout as fragment
from ..fragments import operand_shape
from ..isa.catalogue import CATALOGUE, named, unknown
from ..isa.elements import shift_within
from ..isa.matrix_move import MatrixMove
from ..isa.mma import MmaInstruction
from ..isa.movmatrix import MatrixTranspose
from ..isa.sparse import SparseMma
from ..isa.wgmma import WGMMA_FRAGMENTS, Wgmma
from ..matrix_fragments import MOVMATRIX_RESULT, MOVMATRIX_SOURCE, move_layout, sparse_layout, wgmma_layout

REGISTER_BITS = 32


@dataclass(frozen=True)
class Held:
    """An element in a lane's registers: bits `low` to `high` of register `register`.

    Attributes:
        warp: the warp of the warpgroup, None for an instruction of one warp.
    """

    element: tuple[int, ...]
    warp: int | None
    lane: int
    register: int
    low: int
    high: int

    @property
    def bits(self) -> str:
        """``0-15``, or ``3`` for a single bit."""
        return f"{self.low}-{self.high}" if self.high > self.low else str(self.low)


@dataclass(frozen=True)
class Operand:
    """One operand of an instruction.

    Attributes:
        role: A, B, C, D, SFA, SFB, metadata; "matrices" of a matrix move.
        layout: element -> (laneid, slot), and wid_in_wg for a warpgroup's.
        shape, dimensions: its logical shape, and what the dimensions are called.
        type: the element type, or its width where any type will do.
        bits: width of the element.
        container: bits of a register that one slot takes.
        shift: the element's lowest bit in them.
    """

    role: str
    layout: TileLayout
    shape: tuple[int, ...]
    dimensions: tuple[str, ...]
    type: str
    bits: int
    container: int
    shift: int = 0

    @property
    def registers(self) -> int:
        """Registers of a lane: of 64 bits for elements of 64 bits, of 32 otherwise."""
        return -(-int(self.layout.span("m")) * self.container // max(REGISTER_BITS, self.container))

    def held(self, flat: int) -> Iterator[Held]:
        """Every place of an element."""
        element = unflattened(flat, self.shape)
        for place in self.layout.owners(flat):
            yield self._at(element, place)

    def _at(self, element: tuple[int, ...], place: Mapping[Any, int]) -> Held:
        width = max(REGISTER_BITS, self.container)
        register, bit = divmod(place.get("m", 0) * self.container, width)
        low = bit + self.shift
        return Held(
            element, place.get("wid_in_wg"), place.get("laneid", 0), register, low, low + self.bits - 1
        )

    def table(self) -> list[Held]:
        """Every element at every place, by warp, lane, register and bit."""
        found = [held for flat in range(int(product(self.shape))) for held in self.held(flat)]
        return sorted(found, key=lambda h: (h.warp or 0, h.lane, h.register, h.low))


def record_named(name: str) -> Any:
    """The record of that name or mnemonic, wgmma's included.  Errors: LayoutError with the nearest."""
    found = {r.name: r for r in WGMMA_FRAGMENTS} | {r.mnemonic: r for r in WGMMA_FRAGMENTS}
    if name in found:
        return found[name]
    try:
        return named(name)
    except LayoutError:  # it looks through its own table alone
        mnemonics = [*(r.instruction.mnemonic for r in CATALOGUE), *(r.mnemonic for r in WGMMA_FRAGMENTS)]
        raise unknown(name, names(), mnemonics) from None


def names() -> list[str]:
    """Every name."""
    return [r.name for r in (*CATALOGUE, *WGMMA_FRAGMENTS)]


def operands(record: Any) -> dict[str, Operand]:
    """Role -> operand, of those that are in registers."""
    if isinstance(record, MmaInstruction):
        return {o.role: o for o in _dense(record)}
    if isinstance(record, SparseMma):
        return {o.role: o for o in _sparse(record)}
    if isinstance(record, Wgmma):
        a, d = dtype(record.a), dtype(record.d)
        return {
            "A": Operand(
                "A", wgmma_layout(record, "A"), record.shape("A"), ("M", "K"), a.name, a.bits, a.bits
            ),
            "D": Operand(
                "D", wgmma_layout(record, "D"), record.shape("D"), ("M", "N"), d.name, d.bits, d.bits
            ),
        }
    if isinstance(record, MatrixMove):
        shape = (record.count, record.lines, record.elements)
        names = ("matrix", "line", "element")
        type_ = f"{record.source_bits} bits"
        layout = move_layout(record)
        return {"matrices": Operand("matrices", layout, shape, names, type_, record.source_bits, record.bits)}
    if isinstance(record, MatrixTranspose):
        sides = {"A": MOVMATRIX_SOURCE, "D": MOVMATRIX_RESULT}
        return {
            r: Operand(r, x, (8, 8), ("row", "column"), "16 bits", 16, record.bits) for r, x in sides.items()
        }
    raise TypeError(f"operands of {type(record).__name__} are not known")


_DIMENSIONS = {
    "A": ("M", "K"), "B": ("K", "N"), "C": ("M", "N"), "D": ("M", "N"), "SFA": ("M", "block"), "SFB": ("block", "N"),
}  # fmt: skip


def _dense(record: MmaInstruction) -> Iterator[Operand]:
    for role in ("A", "B", "C", "D"):
        kind, container = dtype(record.element(role)), record.container(role)
        shape = operand_shape(record, role)
        dimensions = ("product",) * (len(shape) - 2) + _DIMENSIONS[role]
        shift = shift_within(kind.name, container)
        yield Operand(role, fragment(record, role), shape, dimensions, kind.name, kind.bits, container, shift)
    if record.scale is not None:
        yield from _scales(record)


def _scales(record: MmaInstruction) -> Iterator[Operand]:
    kind = record.scale.type if record.scale else ""
    for role in ("SFA", "SFB"):
        shape = operand_shape(record, role)
        yield Operand(role, fragment(record, role), shape, _DIMENSIONS[role], kind, 8, 8)


def _sparse(record: SparseMma) -> Iterator[Operand]:
    dense = record.dense
    for role in ("A", "B", "C", "D"):
        kind, container = dtype(dense.element(role)), dense.container(role)
        dimensions = ("M", "stored K") if role == "A" else _DIMENSIONS[role]
        shape, layout = record.operand_shape(role), sparse_layout(record, role)
        shift = shift_within(kind.name, container)
        yield Operand(role, layout, shape, dimensions, kind.name, kind.bits, container, shift)
    codes = sparse_layout(record, "metadata")
    yield Operand("metadata", codes, (16, record.sparsity.groups), ("M", "group"), "code of 4 bits", 4, 4)
    if dense.scale is not None:
        yield from _scales(dense)
