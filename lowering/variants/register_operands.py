"""Tiles in registers that an operation combines element by element: which register of each holds the same element.

What counts is what each lane holds, in numbers for all lanes of all warps; how the layouts are written does not.  Every
refusal is a `fail` that names operand and rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tilelayout.expr import evaluate

from ..dispatch import Predicate, predicate
from ..errors import fail
from ..program import Registers, Slot
from ..scope import Context
from ..tile import TileRegion
from .copy_operands import places, registers_of
from .regions import region_shape
from .threads import narrowed

Place = tuple[int, int]
"""A register's number, and which of the elements in it, low bits first."""


def _in_registers(call: Any, context: Context) -> Any:
    for role, region in call.operands():
        scope = region.tile.scope
        if scope != "local":
            return f"{role} is in {scope} scope; {call.primitive} works on registers (local scope)"
    return True


def conditions(who: str) -> tuple[Predicate, ...]:
    """What every variant asks that works on registers alone; `who`, for the message."""
    return (
        predicate("full_active_lanes", lambda call, context: narrowed(context, who) or True),
        predicate("in_registers", _in_registers),
    )


@dataclass(frozen=True)
class Held:
    """A region of a tile in registers.

    Attributes:
        role: of the operand.
        region: the operand.
        registers: the whole group of its tile.
        elements: register of the region -> for each element in it what all lanes hold there, as a key.
        names: key -> the coordinate, for messages.
    """

    role: str
    region: TileRegion
    registers: Registers
    elements: dict[int, tuple[bytes, ...]]
    names: dict[bytes, str]

    @property
    def places(self) -> dict[bytes, Place]:
        """Key -> where that element is."""
        return {key: (r, k) for r, keys in self.elements.items() for k, key in enumerate(keys)}

    def slot(self, register: int) -> Slot:
        return Slot(self.registers, register)


def held(role: str, region: TileRegion, shape: tuple[int, ...], context: Context) -> Held:
    """What the lanes hold of a region, or DispatchFail."""
    import numpy as np

    registers, coordinates = registers_of(region, role, shape, context)
    where = places(context.warps)
    elements: dict[int, tuple[bytes, ...]] = {}
    names: dict[bytes, str] = {}
    for register, found in coordinates.items():
        keys: list[bytes] = []
        for coordinate in found:
            numbers = [np.broadcast_to(evaluate(x, where), where["lane"].shape) for x in coordinate]
            keys.append(np.stack(numbers).astype(np.int64).tobytes())
            names[keys[-1]] = f"({', '.join(map(str, coordinate))})"
        elements[register] = tuple(keys)
    return Held(role, region, registers, elements, names)


def common_shape(operands: Iterable[tuple[str, TileRegion]]) -> tuple[int, ...]:
    """The extents that all regions have, without those of 1."""
    (first, region), *others = operands
    shape = region_shape(region, first)
    for role, other in others:
        if region_shape(other, role) != shape:
            fail(f"{first} has extents {tuple(region.extents)}, {role} has {tuple(other.extents)}")
    return shape


def same_elements(dst: Held, src: Held) -> dict[Place, Place]:
    """Where in src each element of dst is, in the same lane; declines where a lane lacks one."""
    there = src.places
    out: dict[Place, Place] = {}
    for key, place in dst.places.items():
        if key not in there:
            fail(
                f"{src.role} ({src.region}): no register holds in every lane what {dst.registers.name}[{place[0]}] of "
                f"{dst.role} takes, element {dst.names[key]}; each lane must hold the same elements of both"
            )
        out[place] = there[key]
    return out


def check_names(operands: Iterable[tuple[str, TileRegion]]) -> None:
    """Tiles are told apart by name; a tile that is read and written is the same region of it."""
    given = list(operands)
    (_, dst), *srcs = given
    for i, (role, region) in enumerate(given):
        for other_role, other in given[:i]:
            if region.tile.name == other.tile.name and region.tile != other.tile:
                fail(f"{other_role} and {role} are two different tiles of one name, {region.tile.name!r}")
    for role, region in srcs:
        if region.tile == dst.tile and region.bounds != dst.bounds:
            fail(f"dst is {dst} and {role} is {region}: a tile is changed in place where it is read")
