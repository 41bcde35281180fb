"""Two variants that `lowering` does not have: ``gemm`` with alpha 2, and a primitive ``double``.

Importing this module registers them; `lowering` does so when it first lowers something.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from lowering import GemmCall, Tile, TileRegion, fail, lower, predicate, register_dispatch
from lowering.isa import Instruction, Operand
from lowering.program import Instr, Program, Registers, Slot
from lowering.registers import register_span
from lowering.scope import Context


def _twice(values: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    a = values["a"].view(np.float32)
    return {"d": (a + a).view(np.uint32)}


DOUBLE = Instruction(
    "double.f32",
    "add.f32 {d}, {a}, {a};",
    (Operand("d", 1, "f32", "write"), Operand("a", 1, "f32", "read")),
    75,
    (6, 3),
    "Floating Point Instructions: add",
    _twice,
)
"""One register times two.  An instruction of the plug-in's own: its text and its meaning."""


def _doubled(registers: Registers, source: Registers) -> tuple[Instr, ...]:
    return tuple([Instr(DOUBLE, ((Slot(registers, i),), (Slot(source, i),))) for i in range(registers.count)])


@register_dispatch(
    "gemm",
    "cuda",
    variant="example.alpha2",
    priority=20,
    when=[predicate("alpha_is_2", lambda call, context: call.alpha == 2 or f"alpha is {call.alpha}, not 2")],
)
def gemm_alpha2(call: GemmCall, context: Context) -> Program:
    """``D = 2 * A @ B``: the product by whatever lowers it, then every accumulator doubled."""
    if call.beta != 0:
        fail(f"beta is {call.beta}: C would be doubled too")
    plain = replace(call, alpha=1.0)
    found = lower(plain, target=context.target, scope=context.scope, launch=context.launch).program
    (d,) = found.outputs
    return replace(found, name=f"{found.name}_alpha2", body=(*found.body, *_doubled(d, d)))


@dataclass(frozen=True)
class Double:
    """``D = 2 * A`` on f32 registers, element by element."""

    primitive: ClassVar[str] = "double"

    D: TileRegion
    A: TileRegion

    def operands(self) -> Iterator[tuple[str, TileRegion]]:
        yield from (("D", self.D), ("A", self.A))

    @property
    def tiles(self) -> dict[str, Tile]:
        return {role: region.tile for role, region in self.operands()}

    def __str__(self) -> str:
        return f"{self.D} = 2 * {self.A}"


@register_dispatch("double", "cuda", variant="example.registers")
def double(call: Double, context: Context) -> Program:
    """One addition for each register."""
    if call.A.tile.layout != call.D.tile.layout:
        fail("D and A have different layouts")
    d, a = (
        Registers(name, role, "float32", register_span(call.tiles[role].layout), "f32")
        for name, role in (("d_local", "D"), ("a_local", "A"))
    )
    return Program("double", context.warps, (a,), (d,), _doubled(d, a))
