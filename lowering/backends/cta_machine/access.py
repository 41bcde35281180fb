"""Address operands: where the lanes of a warp point, checked for range and alignment.

What an address in shared memory comes to is kept by the values of its variables, since the same few come again and
again, turn after turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...isa.record import Operand, Place
from ...program import Address, Instr, instr_text
from .expressions import Expressions, per_lane
from .faults import Wrong
from .lanes import Lanes
from .plan import Plan, Shared, access_bytes
from .shadow import Touch, touch

if TYPE_CHECKING:
    from .warp import Warp

_KEPT = 1024
"""Results that an operand remembers."""


class AddressOperand:
    """An address operand of an instruction.

    Attributes:
        name: of the operand.
        buffer: that it points into.
        shared: its place, if that is in shared memory.
        count: elements, or bytes where these share them, of one access.
    """

    def __init__(self, plan: Plan, instr: Instr, operand: Operand, address: Address) -> None:
        self.name, self.buffer = operand.name, address.buffer
        self.shared: Shared | None = plan.shared.get(address.buffer.name)
        self._aligned = operand.bytes
        self._size = access_bytes(instr.instruction, operand, self.buffer)
        self.count = max(1, self._size // self.buffer.unit_bytes)
        self._used = operand.lanes
        self._collective = instr.instruction.collective
        self._instr = instr
        parts = (address.unit, address.bit) if self.buffer.per_unit > 1 else (address.unit,)
        self._index = Expressions(parts, lambda: instr_text(instr))
        self._known: dict[tuple[int, ...], tuple[Place, Touch, Any]] = {}

    def index(self, warp: Warp, lanes: Lanes) -> tuple[Any, Any]:
        """Elements (or bytes) and lowest bits that the lanes point to, each ``[lanes.count]``."""
        index, *bits = self._index(warp, lanes)
        return per_lane(index, lanes), per_lane(bits[0], lanes) if bits else 0

    # --- global ---------------------------------------------------------------------------------

    def in_global(self, warp: Warp, lanes: Lanes, stores: bool) -> Place:
        """The place in global memory, noted as written by stores.  Errors: MachineError."""
        index, bit = self.index(warp, lanes)
        memory = warp.cta.memory[self.buffer.name]
        used = index[: self._used] if self._collective else index
        try:
            self.check_alignment(used, bit)
            memory.check(used, self.count, stores, warp.cta.order)
        except Wrong as wrong:
            self.fail(warp, lanes, used, wrong)
        return Place(memory.data, index[None], bit if isinstance(bit, int) else bit[None])

    def counter(self, warp: Warp, lanes: Lanes, counts: bool) -> tuple[tuple[str, int], Any]:
        """The element in global memory that all lanes name: buffer and number, and what holds the buffer, unsigned.

        Errors: MachineError for lanes that name several, a place outside the buffer, and one that another CTA writes.
        """
        index, _ = self.index(warp, lanes)
        memory, at = warp.cta.memory[self.buffer.name], int(index[0])
        try:
            self.check_alignment(index)
            if (index != at).any():
                raise Wrong("lanes name several counters", int((index != at).argmax()))
            memory.check(index[:1], 1, False, warp.cta.order, counter=True)
        except Wrong as wrong:
            self.fail(warp, lanes, index, wrong)
        if counts:
            memory.counted(at, warp.cta.order)
        return (self.buffer.name, at), memory.data.view(np.uint32)

    # --- shared ---------------------------------------------------------------------------------

    def in_shared(self, warp: Warp, lanes: Lanes) -> tuple[Place, Touch]:
        """The place in shared memory, and what is touched there.  Errors: MachineError."""
        arguments = self._index.arguments(warp, lanes)
        key = (warp.number, lanes.mask, *[x if type(x) is int else id(x) for x in arguments])
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            place, touched = self._resolve(warp, lanes, self._index.of(arguments))
            # The arguments are kept so that no other array has the number of one.
            found = self._known[key] = (place, touched, arguments)
        place, touched, _ = found
        return Place(warp.cta.shared.arrays[self.buffer.name], place.index, place.bit), touched

    def _resolve(self, warp: Warp, lanes: Lanes, values: tuple[Any, ...]) -> tuple[Place, Touch]:
        index = per_lane(values[0], lanes)
        bit = per_lane(values[1], lanes) if len(values) > 1 else 0
        used = index[: self._used] if self._collective else index
        try:
            self.check_alignment(used, bit)
            self.check_range(used)
        except Wrong as wrong:
            self.fail(warp, lanes, used, wrong)
        if self.shared is None:
            raise TypeError(f"buffer {self.buffer.name} does not lie in shared memory")
        per = self._size // self.shared.granule
        granules = (used * self.buffer.unit_bytes // self.shared.granule)[:, None] + np.arange(per)
        touched = touch(
            warp.cta.clocks, warp.number, lanes.index[: used.size], granules, used, self._collective
        )
        return Place(None, index[None], bit if isinstance(bit, int) else bit[None]), touched

    # --- checks ---------------------------------------------------------------------------------

    def check_range(self, index: Any) -> None:
        """Whether accesses from those elements on stay in the buffer.  Errors: Wrong."""
        size = self.buffer.elements // self.buffer.per_unit
        outside = (index < 0) | (index + self.count > size)
        if outside.any():
            which = int(np.flatnonzero(outside)[0])
            first = int(index[which])
            unit = "bytes" if self.buffer.per_unit > 1 else "elements"
            raise Wrong(
                f"touches {unit} {first} to {first + self.count - 1} of {self.buffer.name}, which has {size}",
                which,
            )

    def check_alignment(self, index: Any, bit: Any = 0) -> None:
        """Whether they are multiples of what they stand for.  Errors: Wrong."""
        if not self._aligned or not index.size:
            return
        wrong = (index * self.buffer.unit_bytes % self._aligned != 0) | (bit != 0)
        if wrong.any():
            raise Wrong(
                f"an address in {self.buffer.name} is no multiple of {self._aligned} bytes",
                int(np.flatnonzero(wrong)[0]),
            )
        if self.buffer.alignment % self._aligned:
            raise Wrong(
                f"needs an address that is a multiple of {self._aligned} bytes, {self.buffer.name} is aligned to "
                f"{self.buffer.alignment}"
            )

    def fail(self, warp: Warp, lanes: Lanes, index: Any, wrong: Wrong) -> None:
        """The MachineError of that access."""
        lane = int(lanes.index[wrong.which])
        at = int(index[wrong.which])
        warp.fault(instr_text(self._instr), lane, f"{wrong.problem}, at {self.buffer.name}[{at}]")
