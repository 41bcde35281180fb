"""A plain machine for the statements of copies: every active lane at once, asynchronous copies at once, guarded memory.

Nothing is stepped and nothing raced here: it says what a copy's statements do to memory and registers, element by
element, and refuses whatever touches memory that holds no element.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lowering.control import If, Set, comparisons
from lowering.isa import protocols
from lowering.isa.record import Place
from lowering.program import Address, Buffer, Comment, Instr, Program, Registers
from tilelayout.expr import bounds, evaluate

RELATIONS = {
    "<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


@dataclass
class Guarded:
    """Memory in units (elements, or bytes that several share): what it holds, what may be touched, what was written."""

    data: Any
    allowed: Any
    written: Any = None

    def __post_init__(self) -> None:
        if self.written is None:
            self.written = np.zeros(self.data.shape, bool)


@dataclass
class Machine:
    """A program's run by `warps` warps."""

    warps: int
    memory: dict[str, Guarded]
    variables: dict[str, int]
    registers: dict[Registers, Any] = field(default_factory=dict)
    known: dict[Registers, Any] = field(default_factory=dict)
    count: int = 0
    """instructions executed, for tests that ask which branch was taken"""

    def run(self, program: Program) -> None:
        warp, lane = np.indices((self.warps, 32)).reshape(2, -1)
        self.env: dict[str, Any] = {"warp": warp, "lane": lane}
        self.env |= {name: np.full(warp.shape, x, np.int64) for name, x in self.variables.items()}
        for r in program.registers:
            if r not in self.registers:
                self.registers[r] = np.full((warp.size, r.words), 0xDEADBEEF, np.uint32)
                self.known[r] = np.zeros((warp.size, r.words), bool)
        self.body(program.body, np.arange(warp.size))

    def value(self, x: Any, active: Any) -> Any:
        here = {name: v[active] for name, v in self.env.items()}
        found = np.broadcast_to(evaluate(x, here), active.shape)
        low, high = bounds(x)
        assert (found >= low).all(), f"{x} is below its bounds"
        assert (found <= high).all(), f"{x} is above its bounds"
        return found

    def body(self, body: Any, active: Any) -> None:
        for s in body:
            if not active.size:
                return
            if isinstance(s, Set):
                found = self.value(s.value, active)
                assert (found >= s.variable.lo).all(), f"{s.variable} = {s.value} breaks its promise"
                assert (found <= s.variable.hi).all(), f"{s.variable} = {s.value} breaks its promise"
                self.env.setdefault(s.variable.name, np.full(self.warps * 32, 1 << 62))[active] = found
            elif isinstance(s, If):
                good = np.ones(active.shape, bool)
                for c in comparisons(s.condition):
                    good &= RELATIONS[c.relation](self.value(c.left, active), self.value(c.right, active))
                self.body(s.body, active[good])
                self.body(s.orelse, active[~good])
            elif not isinstance(s, Comment):
                self.count += 1
                self.execute(s, active)

    def execute(self, s: Instr, active: Any) -> None:
        names = [o.name for o in s.instruction.operands]
        given = dict(zip(names, s.arguments, strict=True))
        if s.instruction.protocol == protocols.CP_ASYNC:
            self.cp_async(s, given, active)
        elif s.instruction.protocol in (protocols.BULK_LOAD, protocols.BULK_STORE):
            self.bulk(s, given)
        else:
            assert not s.instruction.protocol
            self.plain(s, given, active)

    # --- instructions ---------------------------------------------------------------------------

    def places(self, address: Address, active: Any, size: int) -> Any:
        """Units that are touched, ``[lanes, units]``, after checking alignment."""
        b = address.buffer
        at = self.value(address.unit, active)
        units = max(1, size // b.unit_bytes)
        if size:
            assert (at * b.unit_bytes % size == 0).all(), f"{address} is no multiple of {size} bytes"
            assert b.alignment % size == 0, f"{b.name} is aligned to {b.alignment}, {size} are taken at once"
        return at[:, None] + np.arange(units)

    def touch(self, buffer: Buffer, units: Any) -> Guarded:
        store = self.memory[buffer.name]
        assert (units >= 0).all(), f"before {buffer.name}"
        assert (units < store.data.size).all(), f"behind {buffer.name}"
        assert store.allowed[units].all(), f"touches {buffer.name} where it holds no element of the box"
        return store

    def plain(self, s: Instr, given: dict[str, Any], active: Any) -> None:
        values: dict[str, Any] = {"lanes": (1, active.size)}
        for o in s.instruction.operands:
            argument = given[o.name]
            if isinstance(argument, Address):
                units = self.places(argument, active, o.bytes)
                store = self.touch(argument.buffer, units)
                if s.instruction.stores:
                    store.written[units] = True
                elif argument.buffer.space == "shared":
                    assert store.written[units].all(), "reads shared memory that holds nothing"
                bit = self.value(argument.bit, active)[None]
                values[o.name] = Place(store.data, units[None, :, 0], bit)
            elif o.kind == "value":
                values[o.name] = self.value(argument, active)[None]
            elif o.reads:
                for slot in argument:
                    w = self.words(slot)
                    assert self.known[slot.registers][active][:, w].all(), (
                        f"reads {slot}, which holds nothing"
                    )
                found = [self.registers[x.registers][active][:, self.words(x)] for x in argument]
                values[o.name] = np.concatenate(found, axis=-1)[None]
        written = s.instruction.meaning(values)
        for o in s.instruction.operands:
            if o.is_registers and o.writes:
                for k, slot in enumerate(given[o.name]):
                    w, each = self.words(slot), slot.registers.bits // 32
                    self.registers[slot.registers][active[:, None], w] = written[o.name][
                        0, :, k * each : (k + 1) * each
                    ]
                    self.known[slot.registers][active[:, None], w] = True

    @staticmethod
    def words(slot: Any) -> Any:
        each = slot.registers.bits // 32
        return np.arange(slot.index * each, (slot.index + 1) * each)

    def cp_async(self, s: Instr, given: dict[str, Any], active: Any) -> None:
        size = s.instruction.operands[0].bytes
        dst, src = (self.places(given[n], active, size) for n in ("dst", "src"))
        n = self.value(given["n"], active)
        assert ((n >= 0) & (n <= size)).all()
        unit = given["src"].buffer.unit_bytes
        assert (n % unit == 0).all()
        taken = np.arange(dst.shape[1])[None] < (n // unit)[:, None]
        source = self.touch(given["src"].buffer, src[taken])
        self.touch(given["src"].buffer, src[:, 0])  # an address inside, whatever n is
        store = self.touch(given["dst"].buffer, dst)
        assert not store.written[dst].any(), "is copied twice"
        store.data[dst] = np.where(taken, source.data[np.where(taken, src, 0)], 0)
        store.written[dst] = True

    def bulk(self, s: Instr, given: dict[str, Any]) -> None:
        """A box by the rules of the copy engine, by one thread."""
        tensor_map, load = given["map"], s.instruction.protocol == protocols.BULK_LOAD
        one = np.array([0])
        number = lambda x: int(self.value(x, one)[0])  # noqa: E731
        rank = len(tensor_map.box)
        begin = [number(given[f"c{d}"]) for d in range(rank)]
        sizes = [number(x) for x in tensor_map.sizes]
        strides = [1, *[number(x) for x in tensor_map.strides]]
        tile, unit = given["dst" if load else "src"], tensor_map.buffer.unit_bytes
        assert tensor_map.buffer.alignment % 16 == 0
        assert all(x * unit % 16 == 0 for x in strides[1:])
        first = number(tile.element) * unit
        assert first % max(128, 8 * tensor_map.swizzle) == 0
        assert tile.buffer.alignment % max(128, 8 * tensor_map.swizzle) == 0
        grid = np.indices(tensor_map.box[::-1]).reshape(rank, -1)[::-1]  # dimension 0 runs fastest
        local = first + np.arange(grid.shape[1]) * unit
        if tensor_map.swizzle:
            mask = tensor_map.swizzle // 16 - 1
            local = local ^ ((local >> 7 & mask) << 4)
        local = local // unit
        assert begin[0] * unit % 16 == 0, "a box begins within 16 bytes"
        if not load:  # in whole units of 16 bytes
            sizes[0] = -(-sizes[0] * unit // 16) * 16 // unit
        x = [g + b for g, b in zip(grid, begin, strict=True)]
        inside = np.all([(0 <= v) & (v < n) for v, n in zip(x, sizes, strict=True)], axis=0)
        place = sum(v * n for v, n in zip(x, strides, strict=True))
        tensor, shared = self.touch(tensor_map.buffer, place[inside]), self.touch(tile.buffer, local)
        if load:
            assert not shared.written[local].any()
            shared.data[local] = 0
            shared.data[local[inside]] = tensor.data[place[inside]]
            shared.written[local] = True
        else:
            assert shared.written[local].all()
            tensor.data[place[inside]] = shared.data[local[inside]]
            tensor.written[place[inside]] = True
