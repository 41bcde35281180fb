"""The copy engine: boxes of tensors between global and shared memory, one thread's order, done later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tilelayout import LayoutError

from ...control import TensorMap
from ...errors import MachineError
from ...isa.operand_map import LANES
from ...program import Address, Instr, instr_text
from .access import AddressOperand
from .boxes import UNIT, swizzled_units
from .expressions import Expressions, per_lane
from .faults import Wrong
from .lanes import Lanes, lanes_of
from .mbarrier import BarrierOperand, MBarrier
from .plan import Plan
from .shadow import Touch, touch

if TYPE_CHECKING:
    from .clocks import Clocks
    from .cta import CTA
    from .global_memory import GlobalBuffer
    from .shadow import Shadow
    from .warp import Warp


@dataclass
class Transfer:
    """A box on its way.

    Attributes:
        cta, shadow: whose shared memory it is, and the history of the buffer there.
        units: 16-byte units of the whole shared memory, in the order of the box.
        touched: the granules.
        memory: bytes of the elements in global memory, one row each.
        index, inside: element of each place of the box, and whether it is read or written.
        event: the instruction.
        column: the thread's, in the clocks.
    """

    cta: CTA
    shadow: Shadow
    units: Any
    touched: Touch
    memory: Any
    index: Any
    inside: Any
    event: int
    column: int

    def from_global(self) -> Any:
        """The box's bytes, zeros beyond the tensor: ``[units, 16]``."""
        if self.inside.all():
            found = self.memory[self.index]
        else:
            found = np.zeros((self.index.size, self.memory.shape[1]), np.uint8)
            found[self.inside] = self.memory[self.index[self.inside]]
        return found.reshape(-1, UNIT)

    def from_shared(self) -> Any:
        """The box's bytes, a row for each element."""
        return self.cta.shared.bytes.reshape(-1, UNIT)[self.units].reshape(-1, self.memory.shape[1])


@dataclass
class Load(Transfer):
    """A load.  `barrier` counts its bytes."""

    barrier: MBarrier

    def land(self) -> None:
        """The box is in shared memory, and the barrier knows."""
        self.cta.shared.bytes.reshape(-1, UNIT)[self.units] = self.from_global()
        self.shadow.land(self.touched.granules, self.barrier.column, self.event)
        self.barrier.land(self, self.units.size * UNIT, self._fail)

    def _fail(self, problem: str) -> None:
        raise MachineError(f"{self.cta.describe(self.event)}: {problem} ({self.cta.name})")


@dataclass
class Store(Transfer):
    """A store."""

    tensor: GlobalBuffer
    bytes: Any = None
    is_read: bool = False
    is_written: bool = False

    def read(self) -> None:
        """The engine reads the box, if it has not yet."""
        if self.bytes is None:
            self.bytes = self.from_shared()

    def end_read(self) -> None:
        """The thread has waited for that: shared memory may be overwritten."""
        if not self.is_read:
            self.read()
            self.is_read = True
            self.shadow.end_copy(self.touched.granules, self.column)

    def write(self) -> None:
        """The box is in global memory, if it is not yet."""
        if not self.is_written:
            self.read()
            self.is_written = True
            self.memory[self.index[self.inside]] = self.bytes[self.inside]

    def end_write(self) -> None:
        """The thread has waited for that: what it counts from here on includes it."""
        self.write()
        self.tensor.written(self.index[self.inside], self.cta.order)


class BulkBegin:
    """The instruction that begins a load or a store."""

    def __init__(self, plan: Plan, instr: Instr) -> None:
        self._plan, self._instr = plan, instr
        by_name = {o.name: (o, a) for o, a in zip(instr.instruction.operands, instr.arguments, strict=True)}
        self._loads = "bar" in by_name
        tensor = by_name["map"][1]
        operand, address = by_name["dst" if self._loads else "src"]
        if not isinstance(tensor, TensorMap) or not isinstance(address, Address):
            raise TypeError(f"{instr_text(instr)}: a tensor map and an address are needed")
        self._map = tensor
        self._address = AddressOperand(plan, instr, operand, address)
        coordinates = [by_name[f"c{i}"][1] for i in range(len(tensor.sizes))]
        self._coordinates = Expressions(coordinates, self._where)  # type: ignore[arg-type]
        self._barrier = BarrierOperand(plan, instr) if self._loads else None
        self._known: dict[tuple[int, int, int], tuple[Any, Touch]] = {}

    def _where(self) -> str:
        return instr_text(self._instr)

    def run(self, warp: Warp, lanes: Lanes) -> None:
        """Each lane begins one."""
        places, _ = self._address.index(warp, lanes)
        coordinates = [per_lane(x, lanes) for x in self._coordinates(warp, lanes)]
        for which, lane in enumerate(lanes.index.tolist()):
            self._begin(
                warp, lane, int(places[which]), [int(x[which]) for x in coordinates], lanes_of(1 << lane)
            )

    def _begin(self, warp: Warp, lane: int, at: int, coordinates: list[int], one: Lanes) -> None:
        cta = warp.cta
        try:
            units, touched = self._touch(warp.number, lane, at, cta.clocks)
            memory = cta.memory[self._map.buffer.name]
            index, inside = cta.launch.boxes[self._map.name].places(coordinates, not self._loads)
            try:
                memory.check(index[inside], 1, not self._loads, cta.order, under_way=True)
            except Wrong as wrong:
                raise self._explained(cta, wrong, coordinates, inside) from None
            shadow = cta.shared.shadows[self._address.buffer.name]
            shadow.check_engine(warp.number, touched, lane, self._loads)
        except Wrong as wrong:
            box = f"a box at {tuple(coordinates)}, {self._address.buffer.name}[{at}]"
            warp.fault(self._where(), lane, f"{wrong.problem}, {box}")
        except LayoutError as error:
            warp.fault(self._where(), lane, str(error))
        event = cta.note(self._instr, warp)
        rows = memory.bytes().reshape(memory.data.size, -1)
        parts = (cta, shadow, units, touched, rows, index, inside, event, warp.number * LANES + lane)
        if self._barrier is None:
            self._begin_store(warp, Store(*parts, memory), one)
        else:
            barrier = self._barrier.of(warp, one, by_engine=True)[0][0]
            shadow.begin(touched.granules, event)
            cta.engine.begin(Load(*parts, barrier))

    def _explained(self, cta: CTA, wrong: Wrong, coordinates: list[int], touched: Any) -> Wrong:
        """The error; why the engine touches that element where the tensor has it not."""
        _, inside = cta.launch.boxes[self._map.name].places(coordinates)
        if inside[np.flatnonzero(touched)[wrong.which]]:
            return wrong
        behind = f"behind a row of {self._map.name}: the copy engine stores whole units of {UNIT} bytes"
        return Wrong(f"{wrong.problem}, {behind}", wrong.which)

    def _begin_store(self, warp: Warp, store: Store, one: Lanes) -> None:
        store.shadow.begin_copy(store.touched.granules, store.event)
        if warp.cta.schedule.lands_early():
            store.write()
        warp.reads.begin(store, one)
        warp.stores.begin(store, one)

    def _touch(self, warp: int, lane: int, at: int, clocks: Clocks) -> tuple[Any, Touch]:
        """The box's 16-byte units in shared memory, and its granules.  Errors: Wrong."""
        key = (warp, lane, at)
        if key not in self._known:
            self._known[key] = self._resolve(warp, lane, at, clocks)
        return self._known[key]

    def _resolve(self, warp: int, lane: int, at: int, clocks: Clocks) -> tuple[Any, Touch]:
        shared, buffer, swizzle = self._address.shared, self._address.buffer, self._map.swizzle
        if shared is None:
            raise TypeError(f"buffer {buffer.name} does not lie in shared memory")
        self._address.check_alignment(np.array([at]))
        if swizzle and buffer.alignment % (8 * swizzle):
            raise Wrong(
                f"{self._map.name} swizzles {swizzle} bytes, a pattern of {8 * swizzle} bytes, and {buffer.name} is "
                f"aligned to {buffer.alignment}"
            )
        begin, size = at * buffer.unit_bytes, self._map.bytes
        units = swizzled_units(shared.offset + begin, size // UNIT, swizzle)
        inside = units - shared.offset // UNIT
        if begin < 0 or inside.min() < 0 or (inside.max() + 1) * UNIT > buffer.bytes:
            raise Wrong(f"a box of {size} bytes leaves {buffer.name}, which has {buffer.bytes}")
        per = UNIT // shared.granule
        granules = (inside[:, None] * per + np.arange(per)).reshape(1, -1)
        return units, touch(clocks, warp, np.array([lane]), granules, np.array([at]), False)


class Lands(Protocol):
    """What is done later, all at once."""

    def land(self) -> None:
        """It is done now."""


class Engine:
    """What a CTA has begun and no thread waits for by itself: loads, and copies of threads that arrive at mbarriers."""

    def __init__(self, early: Callable[[], bool]) -> None:
        self._early = early
        self._under_way: list[Lands] = []

    def begin(self, load: Lands) -> None:
        """It lands at once where the schedule says so."""
        if self._early():
            load.land()
        else:
            self._under_way.append(load)

    @property
    def busy(self) -> int:
        """How many are under way."""
        return len(self._under_way)

    def land(self, which: int = 0) -> None:
        """One of them, in the order in which they began."""
        self._under_way.pop(which).land()
