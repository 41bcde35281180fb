"""What a copy between registers and memory is, before any instruction is looked at.

One side lies in the registers of the scope's lanes, the other in shared or global memory.  `take_apart` checks both and
says for every register which elements it holds and where in memory they are: as expressions, to be emitted, and as
numbers for all lanes and warps, by which everything is decided.  Every refusal is a `fail` that names operand and rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

from tilelayout import LayoutError, SwizzledLayout
from tilelayout.axis import axis
from tilelayout.expr import Index, Var, evaluate, substitute

from ..dispatch import predicate
from ..dtypes import dtype
from ..errors import fail
from ..isa.operand_map import LANES
from ..ops import CopyCall
from ..program import Address, Buffer, Comment, Instr, Program, Registers, Slot
from ..registers import WARP_AXES, register_file, register_span
from ..scope import Context
from ..tile import MEMORY, TileRegion
from ..window import Window
from .regions import Sliced, same_shape, sliced
from .threads import LANE, check_registers, narrowed

KINDS = {"float32": "f32", "float64": "f64"}
"""Element type -> class of the registers that hold it, b32 for all others; as instructions of mma have it."""


def full_active_lanes(call: CopyCall, context: Context) -> Any:
    """No access is predicated, so all threads of the scope take part."""
    return narrowed(context, "a copy") or True


def registers_and_memory(call: CopyCall, context: Context) -> Any:
    """One side is held by lanes, the other has byte addresses."""
    scopes = {call.dst.tile.scope, call.src.tile.scope}
    if "local" in scopes and scopes & set(MEMORY):
        return True
    return (
        f"copies {call.src.tile.scope} to {call.dst.tile.scope}: one side must be in local scope (registers), the "
        f"other in shared or global"
    )


def constant_extent(call: CopyCall, context: Context) -> Any:
    """Both sides are tiles, all of whose layouts are numbers."""
    for role, region in call.operands():
        if isinstance(region, Window):
            return f"{role} ({region}) is a window of run-time extent; {' and '.join(WINDOW_VARIANTS)} take those"
    return True


WINDOW_VARIANTS = ("copy.predicated", "copy.bulk_tensor", "copy.cp_async")
"""In the order in which they are tried."""

CONSTANT_EXTENT = predicate("constant_extent", constant_extent)

CONDITIONS = (
    predicate("full_active_lanes", full_active_lanes),
    CONSTANT_EXTENT,
    predicate("registers_and_memory", registers_and_memory),
)


@dataclass(frozen=True)
class Pieces:
    """A copy between the registers of lanes and memory.

    Attributes:
        load: whether registers are what is written.
        registers: the whole register group of the local tile.
        buffer: the memory of the other.
        shape: extents of the region, without those of 1.
        memory: the layout of the region in memory: coordinate -> position on m, in elements.
        held: number of each register that takes part -> the coordinates of its elements, low bits first.
        at: the same -> integers ``[warps, lanes, elements]``: their positions in memory, in elements.
        warps: of the scope.
        passed: whether registers of the local tile lie outside the region, and keep what they hold.
        shift: what a run-time begin of the memory's region adds to every position.
        step: a number that `shift` is a multiple of; 0 where it is 0.
    """

    load: bool
    registers: Registers
    buffer: Buffer
    shape: tuple[int, ...]
    memory: Any
    held: dict[int, tuple[tuple[Index, ...], ...]]
    at: dict[int, Any]
    warps: int
    passed: bool
    shift: Index = 0
    step: int = 0

    @property
    def alignment(self) -> int:
        """Bytes that the region's first byte is a multiple of, wherever it begins."""
        return gcd(self.buffer.alignment, self.step * self.element_bits // 8)

    @property
    def alignment_text(self) -> str:
        """The same, for messages."""
        aligned = f"{self.buffer.name} is aligned to {self.buffer.alignment} bytes"
        step = self.step * self.element_bits // 8
        return aligned if self.alignment == self.buffer.alignment else f"{aligned}, and moves by {step}"

    @property
    def element_bits(self) -> int:
        """Bits that an element takes, in registers and in memory."""
        return self.buffer.container

    def address(self, coordinate: tuple[Index, ...]) -> Address:
        """Of the element at a coordinate (of `shape`), which may be in terms of lane and warp."""
        return Address(self.buffer, (self.position(coordinate) + self.shift,))

    def position(self, coordinate: tuple[Index, ...]) -> Index:
        """The same in elements, as `at` counts: without the shift."""
        return self.memory.apply(*coordinate, shape=self.shape).get("m", 0)  # type: ignore[no-any-return]

    def element(self, register: int, k: int) -> Address:
        """Of element k of a register.

        Post-condition, checked here: in every lane of every warp it is the position that `at` says.
        """
        position = self.position(self.held[register][k])
        if not (evaluate(position, places(self.warps)) == self.at[register][..., k]).all():
            raise LayoutError(
                "copy", f"{position} is not where {self.memory} has {self.registers.name}[{register}]"
            )
        return Address(self.buffer, (position + self.shift,))

    def slot(self, register: int) -> Slot:
        return Slot(self.registers, register)

    def program(self, name: str, notes: list[str], body: list[Instr], context: Context) -> Program:
        """The program of those instructions."""
        inputs = (self.registers,) if not self.load or self.passed else ()
        outputs = (self.registers,) if self.load else ()
        comments = [Comment(note.replace("{", "{{").replace("}", "}}")) for note in notes]
        program = Program(name, context.warps, inputs, outputs, (*comments, *body), (self.buffer,))
        check_registers(program)
        return program


def places(warps: int) -> dict[str, Any]:
    """Every lane of every warp, as arrays ``[warps, lanes]``."""
    import numpy as np

    warp, lane = np.indices((warps, LANES))
    return {"lane": lane, "warp": warp}


def take_apart(call: CopyCall, context: Context) -> Pieces:
    """The two sides of a copy, or DispatchFail with what is in the way."""
    shape = same_shape(call)
    load = call.dst.tile.scope == "local"
    local, memory = (call.dst, call.src) if load else (call.src, call.dst)
    roles = ("dst", "src") if load else ("src", "dst")
    registers, held = registers_of(local, roles[0], shape, context)
    place, buffer = memory_place(memory, roles[1], registers.container, not load)
    at = _positions(place.layout, shape, held, context.warps)
    passed = load and not local.is_full
    return Pieces(
        load, registers, buffer, shape, place.layout, held, at, context.warps, passed, place.shift, place.step
    )


# --- registers ----------------------------------------------------------------------------------


def registers_of(
    region: TileRegion, role: str, shape: tuple[int, ...], context: Context, copies: bool = False
) -> tuple[Registers, dict[int, tuple[tuple[Index, ...], ...]]]:
    """The register group of a local tile, and what its registers hold of the region.

    `copies`: whether several threads may hold an element of a source, as they may of a destination.
    """
    tile, name = region.tile, f"{role} ({region})"
    layout = sliced(region, role).layout
    _check_threads(layout, name, "dst" if copies else role, context)
    try:
        span = register_span(tile.layout)
        coordinates = register_file(layout, shape).coordinates
    except LayoutError as error:
        fail(f"{name}: {error}")
    container = container_bits(tile.dtype, context)
    kind = KINDS.get(tile.dtype, "b32")
    width = 64 if kind == "f64" else 32
    try:
        group = Registers(tile.name, role, tile.dtype, -(-span * container // width), kind, container)
    except LayoutError as error:
        fail(f"{name}: {error}")
    warp = Var("warp", 0, context.warps - 1) if context.warps > 1 else 0
    per = group.per_register
    held: dict[int, tuple[tuple[Index, ...], ...]] = {}
    for register in sorted({slot // per for slot in coordinates}):
        slots = range(register * per, (register + 1) * per)
        there = [s for s in slots if s in coordinates]
        if len(there) != per:
            fail(
                f"{name}: register {register} holds {len(there)} of the {per} {tile.dtype} that fill one; "
                f"only whole registers are copied"
            )
        held[register] = tuple([tuple([_at_warp(x, warp) for x in coordinates[s]]) for s in slots])
    return group, held


def container_bits(name: str, context: Context) -> int:
    """Bits that an element takes in registers and memory: its own, a byte for 6, or what ``config`` says."""
    bits = dtype(name).bits
    container = context.config.get("container", 8 if 4 < bits < 8 else bits)
    return (
        container if type(container) is int else fail(f"config: container {container!r} is no number of bits")
    )


def _at_warp(x: Index, warp: Index) -> Index:
    return substitute(x, {"warp": warp})


def _check_threads(layout: Any, name: str, role: str, context: Context) -> None:
    """Every lane of every warp of the scope holds its part, and no other thread holds any."""
    allowed = {LANE: LANES} | ({context.warp_axis: context.warps} if context.warp_axis else {})
    iters = [it for it in (*layout.shard, *layout.replica) if it.extent != 1]
    for it in iters:
        if it.axis != "m" and it.axis not in allowed:
            has = "a warp has" if context.warp_axis is None else f"{context.scope} scope has"
            fail(f"{name}: iter {it.extent}:{it.stride} is on axis {it.axis}, of which {has} one")
    for a, count in allowed.items():
        unit = "lanes" if a == LANE else "warps"
        shift = layout.offset.get(a, 0)
        if shift != 0:
            fail(f"{name}: begins at {unit[:-1]} {shift} on {a}; all {count} {unit} must hold a part")
        reach = 1
        for it in sorted([it for it in iters if it.axis == a], key=lambda it: (it.stride, it.extent)):
            if it.stride != reach:
                fail(
                    f"{name}: {unit} on {a} are not numbered through: iter {it.extent}:{it.stride} after {reach}"
                )
            reach *= it.extent
        if reach != count:
            fail(f"{name}: {reach} {unit} hold a part, all {count} of {context.scope} scope must")
    for a, value in layout.offset.items():
        if value != 0 and a not in allowed and a != "m" and a not in WARP_AXES:
            fail(f"{name}: offset {value} on axis {a}")
    if role == "src" and any(it.axis != "m" for it in layout.replica if it.extent != 1):
        fail(f"{name}: layout {layout} has a replica: several threads would store each element")
    if role == "dst" and any(it.axis == "m" for it in layout.replica if it.extent != 1):
        fail(f"{name}: layout {layout} has a replica in the registers of one lane")


# --- memory -------------------------------------------------------------------------------------


def memory_place(region: TileRegion, role: str, container: int, written: bool) -> tuple[Sliced, Buffer]:
    """Where the elements of a region in memory are, and the buffer of its tile; declines what may not be written."""
    tile, name = region.tile, f"{role} ({region})"
    place = sliced(region, role)
    layout = place.layout
    span = memory_span(tile.layout, tile.shape, f"{role} ({tile.name})")
    plain = layout.layout if isinstance(layout, SwizzledLayout) else layout
    if place.step * container % 8:
        fail(f"{name}: begins at a run-time multiple of {place.step * container} bits")
    if written:
        if any(it.extent != 1 for it in plain.replica):
            fail(f"{name}: layout {layout} has a replica: only one of each element's places would be written")
        answer = layout.is_injective()
        if not answer:
            fail(
                f"{name}: layout {layout} is not injective: elements {answer.witness[0]} and {answer.witness[1]} "
                f"share a place"
            )
    per = max(1, 8 // container)
    buffer = Buffer(
        tile.name, role, tile.dtype, (-(-span // per) * per,), container, tile.scope, tile.alignment
    )
    return place, buffer


def memory_span(layout: Any, shape: tuple[int, ...], name: str) -> int:
    """Elements from position 0 to the last that the layout reaches; declines where it leaves memory."""
    plain = layout.layout if isinstance(layout, SwizzledLayout) else layout
    for it in (*plain.shard, *plain.replica):
        if it.extent != 1 and it.axis != "m":
            fail(f"{name}: iter {it.extent}:{it.stride} is on axis {it.axis}; memory is on m")
    for a, value in plain.offset.items():
        if value != 0 and a != "m":
            fail(f"{name}: offset {value} on axis {a}; memory is on m")
    try:
        span = register_span(plain)  # of a lane there, of one memory here: from 0 to the last on m
    except LayoutError as error:
        return fail(f"{name}: {error.rule.replace('register slot', 'position')}")
    if isinstance(layout, SwizzledLayout):
        block = 1 << layout.swizzle.width
        most = 0 if plain.replica else int(layout.table(shape)[axis("m")].max())
        return most + 1 if most else -(-span // block) * block  # a swizzle permutes blocks of that many
    return span


def _positions(
    layout: Any, shape: tuple[int, ...], held: dict[int, tuple[tuple[Index, ...], ...]], warps: int
) -> dict[int, Any]:
    """Register -> positions of its elements, from the layout's table rather than from what will be emitted."""
    import numpy as np

    found = layout.table(shape).get("m")
    table = np.zeros(shape, np.int64) if found is None else np.asarray(found)
    where = places(warps)
    out: dict[int, Any] = {}
    for register, elements in held.items():
        columns = [
            table[tuple(np.broadcast_to(evaluate(x, where), (warps, LANES)) for x in coordinate)]
            for coordinate in elements
        ]
        out[register] = np.stack(columns, axis=-1)
    return out
