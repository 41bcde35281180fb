"""``copy`` from registers to registers of the same warp: variant ``copy.shuffle``.

`tilelayout.analysis.conversion_plan` says which rounds of shuffles bring each register's content to the lanes that want
it; here they become instructions.  What has to change warps goes through shared memory instead, by copies of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from tilelayout import LayoutError
from tilelayout.analysis import conversion_plan

from ..dispatch import predicate, register_dispatch
from ..errors import fail
from ..isa.move import COPY
from ..isa.operand_map import LANES
from ..isa.record import Instruction
from ..isa.shuffle import extract, insert, select, shuffle
from ..ops import CopyCall
from ..program import Comment, Instr, Program, Registers, Slot
from ..scope import Context
from .copy_operands import full_active_lanes, registers_of
from .regions import same_shape, sliced
from .threads import check_registers

REMEDY = "go through shared memory: copy to a tile there, let the warps meet, and copy from it"


def _both_registers(call: CopyCall, context: Context) -> Any:
    scopes = (call.src.tile.scope, call.dst.tile.scope)
    return scopes == ("local", "local") or f"copies {' to '.join(scopes)}: both sides must be in local scope"


@register_dispatch(
    "copy", "cuda", variant="copy.shuffle", priority=8,
    when=(predicate("full_active_lanes", full_active_lanes), predicate("both_registers", _both_registers)),
)  # fmt: skip
def copy_shuffle(call: CopyCall, context: Context) -> Program:
    """Moves, choices by lane and ``shfl.sync``; every lane of every warp of the scope takes part."""
    if call.src.tile == call.dst.tile:
        fail(
            f"src and dst are both in {call.src.tile.name}: registers would be overwritten before they are read"
        )
    shape = same_shape(call)
    source, _ = registers_of(call.src, "src", shape, context, copies=True)
    target, held = registers_of(call.dst, "dst", shape, context)
    have, want = (sliced(x, role).layout for x, role in ((call.src, "src"), (call.dst, "dst")))
    try:
        plan = conversion_plan(have, want, source.container, via=None)
    except LayoutError as error:
        return fail(str(error))
    if plan.kind == "shared":
        fail(f"elements have to change warps, or no shuffles are known that bring them; {REMEDY}")
    code = _Code(plan, source, target, context.warps)
    code.everything(sorted(held))
    body, scratch = code.statements()
    name = f"copy_shuffle_{call.src.tile.name}_to_{call.dst.tile.name}"
    note = str(plan).split("\n", 1)[0].replace("{", "{{").replace("}", "}}")
    program = Program(
        name,
        context.warps,
        (source, *([] if call.dst.is_full else [target])),
        (target,),
        (Comment(note), *body),
        scratch=scratch,
    )
    check_registers(program)
    return program


Place = tuple[str, int]
"""A register: "source", "target" or "new" (one of its own for each value), and its number."""


@dataclass
class _Code:
    """Instructions under construction."""

    plan: Any
    source: Registers
    target: Registers
    warps: int
    lines: list[tuple[Instruction, tuple[Place, ...]]] = field(default_factory=list)
    new: int = 0

    def everything(self, registers: Sequence[int]) -> None:
        """All rounds, and then the target's registers of these numbers."""
        shuffled = [self.round(k) for k in range(len(self.plan.shuffles))]
        each = self.target.bits // self.unit
        for register in registers:
            for part in range(each):
                picks = self.per_lane(self.plan.results[register * each + part], "target")
                values = {
                    p: shuffled[p.number] if p.source == "shuffle" else self.unit_of(p.number)
                    for p in _known(picks)
                }
                chosen = self.choose(picks, values)
                goal = ("target", register)
                if part:
                    self.emit(insert(part * self.unit, self.unit), goal, chosen)
                else:
                    self.emit(COPY[self.target.kind], goal, chosen)  # type: ignore[index]

    @property
    def unit(self) -> int:
        """Bits of what travels together."""
        return int(self.plan.pack * self.plan.bits)

    def round(self, k: int) -> Place:
        """One shuffle; where its result is."""
        step = self.plan.shuffles[k]
        published = self.per_lane(step.publish, "source")
        put_up = self.choose(published, {u: self.unit_of(u) for u in _known(published)})
        lanes = self.per_lane(step.lanes, "source")
        apart = {lane ^ s for lane, s in enumerate(lanes) if s is not None}
        distance = apart.pop() if len(apart) == 1 else 0
        found = tuple([lane ^ distance if s is None else s for lane, s in enumerate(lanes)])
        return self.emit(shuffle(self.source.kind, found), self.fresh(), put_up)  # type: ignore[arg-type]

    def per_lane(self, values: Sequence[Any], what: str) -> list[Any]:
        """What all warps have in each lane; None where none of them has anything."""
        out: list[Any] = [None] * LANES
        for thread, value in enumerate(values):
            lane = thread % LANES
            if value is not None and out[lane] not in (None, value):
                fail(
                    f"warps would move different registers (lane {lane}: {out[lane]} and {value} of {what}); {REMEDY}"
                )
            out[lane] = out[lane] if value is None else value
        return out

    def unit_of(self, number: int) -> Place:
        """A unit of the source in the low bits of a register."""
        register, at = divmod(number * self.unit, self.source.bits)
        return self.emit(extract(at), self.fresh(), ("source", register)) if at else ("source", register)

    def choose(self, wanted: Sequence[Any], values: dict[Any, Place]) -> Place:
        """A register that holds in each lane the value that is wanted there."""
        first, *others = values
        found = values[first]
        for other in others:
            mask = sum(1 << lane for lane, x in enumerate(wanted) if x == other)
            found = self.emit(select(self.source.kind, mask), self.fresh(), values[other], found)  # type: ignore[arg-type]
        return found

    def fresh(self) -> Place:
        self.new += 1
        return "new", self.new - 1

    def emit(self, instruction: Instruction, to: Place, *values: Place) -> Place:
        self.lines.append((instruction, (to, *values)))
        return to

    def statements(self) -> tuple[list[Instr], tuple[Registers, ...]]:
        """The instructions, and the registers of their own that they take."""
        r = self.source
        numbers = self.shared_registers()
        count = max(numbers.values(), default=-1) + 1
        groups = {"source": r, "target": self.target}
        if count:
            name = f"{self.target.name}_shuffled"
            groups["new"] = Registers(name, "shuffled", r.dtype, count, r.kind, r.container)
        body = [
            Instr(
                instruction,
                tuple([(Slot(groups[which], numbers.get((which, n), n)),) for which, n in places]),
            )
            for instruction, places in self.lines
        ]
        return body, tuple([groups["new"]] if count else [])

    def shared_registers(self) -> dict[Place, int]:
        """A register for each new value; one whose value is not used again takes another."""
        last = {place: at for at, (_, places) in enumerate(self.lines) for place in places}
        numbers: dict[Place, int] = {}
        free: list[int] = []
        for at, (_, (to, *values)) in enumerate(self.lines):
            if to[0] == "new":
                numbers[to] = heappop(free) if free else len(set(numbers.values()))
            for place in dict.fromkeys((to, *values)):
                if place[0] == "new" and last[place] == at:
                    heappush(free, numbers[place])
        return numbers


def _known(values: Sequence[Any]) -> list[Any]:
    """The distinct values, in order of first mention."""
    return list(dict.fromkeys([v for v in values if v is not None]))


__all__ = ["copy_shuffle"]
