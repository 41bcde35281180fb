"""The registers of a gemm's operands as arrays: which of a lane's registers each mma takes."""

from __future__ import annotations

from typing import Literal

from tilelayout import LayoutError
from tilelayout.axis import axis

from ..errors import fail
from ..isa import MmaInstruction
from ..ops import GemmCall
from ..program import Registers, View
from ..registers import register_span
from ..tile import Tile
from .gemm_operands import Operand
from .mma_fit import Fit

NAMES = {"A": "a_words", "B": "b_words", "C": "c_local", "D": "d_local"}

Role = Literal["A", "B", "C", "D"]
STEPS: dict[str, tuple[str, ...]] = {
    "A": ("Mo", "Ko", "rM", "kHi", "k_pack"),
    "B": ("Ko", "No", "kHi", "k_pack"),
    "C": ("Mo", "No", "rM", "rN"),
    "D": ("Mo", "No", "rM", "rN"),
}
"""The dimensions of each operand's view, see `register_views`."""


def register_views(call: GemmCall, found: Fit, operands: dict[str, Operand]) -> dict[str, View]:
    """Per lane, in element slots: D and C as [Mo, No, rM, rN], A as [Mo, Ko, rM, kHi, k_pack], B as
    [Ko, No, kHi, k_pack].
    """
    record, (mt, nt, kt) = found.instruction, found.tiles
    at = found.carved
    rM, rN, kHi, p = record.row_blocks, record.column_registers, record.k_blocks, record.k_pack
    out: dict[str, View] = {}
    for role, region in call.operands():
        tile = region.tile
        offset = int(operands[role].offset.get(axis("m"), 0))
        if role == "A":
            m, k = at["A", "M"], at["A", "K"]
            shape = (mt, kt, rM, kHi, p)
            strides = (m.tile_stride, k.tile_stride, m.stride(1), k.stride(1), k.stride(2))
        elif role == "B":
            k, n = at["B", "K"], at["B", "N"]
            shape = (kt, nt, kHi, p)
            strides = (k.tile_stride, n.tile_stride, k.stride(1), k.stride(2))
        else:
            m, n = at[role, "M"], at[role, "N"]
            shape = (mt, nt, rM, rN)
            strides = (m.tile_stride, n.tile_stride, m.stride(1), n.stride(1))
        view = View(register_group(role, tile, record), shape, strides, offset)  # type: ignore[arg-type]
        check_view(role, view)
        out[role] = view
    return out


def register_group(role: Role, tile: Tile, record: MmaInstruction) -> Registers:
    """A tile's registers, as many as its whole register span takes, of the class and the containers that the
    instruction has for the operand.
    """
    try:
        span = register_span(tile.layout)
    except LayoutError as error:
        fail(f"{role} ({tile.name}): {error.rule}")
    operands = {o.name: o for o in record.instruction.operands}
    kind = operands.get(role, operands["D"]).kind  # a C that D's registers hold is no operand of its own
    container = record.container(role)
    count = -(-span * container // (64 if kind == "f64" else 32))
    return Registers(NAMES[role], role, tile.dtype, count, kind, container)


def check_view(role: str, view: View) -> None:
    """The registers that a view names are whole and distinct.

    The elements that share a register are the last dimension (all of A's and B's, the first few of D's), of stride 1.
    """
    packed = view.registers.per_register
    what = f"splits a {view.registers.bits}-bit register of {packed} elements"
    if view.offset % packed:
        fail(f"{role}: register offset {view.offset} {what}")
    last = len(view.shape) - 1
    for i, (name, n, stride) in enumerate(zip(STEPS[role], view.shape, view.strides, strict=True)):
        if n > 1 and i < last and stride % packed:
            fail(f"{role}: {name} stride {stride} {what}")
    slots = view.slots()
    if len(set(slots)) != len(slots):
        steps = ", ".join(
            f"{name} {n}:{s}" for name, n, s in zip(STEPS[role], view.shape, view.strides, strict=True)
        )
        fail(f"{role}: register strides collide ({steps}): two elements of a lane share a register")
