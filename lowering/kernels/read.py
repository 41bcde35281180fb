"""Elements that an epilogue reads beside the sums, as numbers: loaded together, taken apart when they are used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilelayout import LayoutError

from ..isa.convert import INT32_TO_FLOAT64, PACK, UNPACK, unpacking
from ..isa.record import Kind
from ..program import Slot
from ..variants.values import Values
from ..variants.window_places import Coordinate
from .accesses import Accesses, Line
from .epilogue_spec import AT_ONCE

NUMBER: dict[Kind, str] = {"f32": "float32", "f64": "float64", "b32": "int32"}
"""Class of registers that an epilogue is computed in -> the type of what they hold."""


_WIDENED = {"float32": PACK["float64"][0], "int32": INT32_TO_FLOAT64}
"""Type of an element -> what makes a float64 of it."""


@dataclass(eq=False)
class Loaded:
    """A register that elements were loaded into.

    Attributes:
        register: itself.
        count: elements of it that are still to be used.
        numbers: what it was taken apart into.
    """

    register: Slot
    count: int = 0
    numbers: list[Slot] = field(default_factory=list)


Element = tuple[Loaded, int]
"""Where an element is: a register, and which of the elements in it."""


@dataclass
class Reader:
    """What a lane reads through a window.

    Attributes:
        access: the window.
        values: statements under construction, and scratch registers.
        kind: class of the numbers that are wanted.
        at_once: elements of a lane that are loaded together, at most.
    """

    access: Accesses
    values: Values
    kind: Kind
    at_once: int = AT_ONCE

    def __post_init__(self) -> None:
        element, window = self.access.window.dtype, self.access.window
        known = {*UNPACK, *_WIDENED, "float64"}
        if element not in known:
            raise LayoutError(
                "epilogue", f"{window.name} is {element}", f"numbers are made of {', '.join(sorted(known))}"
            )

    def load(self, coordinates: Sequence[Coordinate]) -> list[Element]:
        """Statements that load elements; each is to be used once, as `number`."""
        parts: list[tuple[Line, list[Slot]]] = []
        out: dict[int, Element] = {}
        for line, mine in self.access.lines(coordinates, self.at_once):
            held = [Loaded(self.values.take(self.access.kind)) for _ in range(self.access.count(line))]
            parts.append((line, [x.register for x in held]))
            for position, i in enumerate(mine):
                at, k = divmod(position, self.access.per)
                held[at].count += 1
                out[i] = (held[at], k)
        if parts:
            self.values.statements += self.access.load(parts)
        return [out[i] for i in range(len(coordinates))]

    def number(self, element: Element) -> Slot:
        """The number, to be released; its register is taken apart when the first element of it is asked for."""
        held, k = element
        if not held.numbers:
            held.numbers = self._apart(held.register)
            self.values.release(*held.numbers[held.count :])
        return held.numbers[k]

    def _apart(self, register: Slot) -> list[Slot]:
        element, values = self.access.window.dtype, self.values
        if element == NUMBER[self.kind]:
            return [register]
        if self.kind == "f64" and element in _WIDENED:
            out = [values.take("f64")]
            values.do(_WIDENED[element], out[0], register)
            values.release(register)
            return out
        out = [values.take("f32") for _ in range(self.access.per)]
        values.do(unpacking(element, values.target), *out, register)
        values.release(register)
        return out if self.kind != "f64" else [self._widened(x) for x in out]

    def _widened(self, number: Slot) -> Slot:
        """A float32 as a float64, exactly."""
        out = self.values.take("f64")
        self.values.do(_WIDENED["float32"], out, number)
        self.values.release(number)
        return out


__all__ = ["NUMBER", "Element", "Reader"]
