"""A lane's elements of a box, to and from a window on a tensor of run-time extent, as wide as they may be.

A lane's elements come in *lines*: those of one row (or column) of the box, along the dimension in which the tensor is
contiguous.  Of each line neighbors become one access.  Where the whole box is inside, which all threads know alike, no
access is guarded; elsewhere each is, by what its elements ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilelayout import LayoutError
from tilelayout.expr import evaluate

from ..isa.convert import KINDS
from ..isa.memory import WIDEST
from ..isa.record import Kind
from ..program import Buffer, Slot, Statement
from ..storage import RUN_TIME
from ..variants.copy_operands import places
from ..variants.window_accesses import Access, Mover
from ..variants.window_places import Coordinate, Places
from ..window import Window


@dataclass(frozen=True)
class Run:
    """Neighbors in memory: elements `first` to ``first + count - 1`` of a line."""

    first: int
    count: int


@dataclass(frozen=True)
class Line:
    """Coordinates that differ only along the contiguous dimension, in order, and what is accessed at once."""

    coordinates: tuple[Coordinate, ...]
    runs: tuple[Run, ...]


class Accesses:
    """Elements of a window that each lane holds.

    Attributes:
        window: the box of the tensor.
        places: where its elements are.  Their statements come before all that is made here.
        buffer: the tensor, as a kernel's parameter.
        kind: class of the registers that hold its elements.
        per: elements in a register.
    """

    def __init__(self, window: Window, role: str, warps: int, inside: frozenset[int] = frozenset()) -> None:
        bits = window.element.bits
        if bits < 8 or bits & bits - 1:
            raise LayoutError("epilogue", f"{role} is {window.dtype}; elements of whole bytes are stored")
        self.window, self.bits, self.warps = window, bits, warps
        self.dims = tuple([d for d, n in enumerate(window.box) if n != 1]) or (0,)
        self.places = Places(window, self.dims, inside)
        self.buffer = Buffer(window.name, role, window.dtype, (RUN_TIME,), bits, "global", window.alignment)
        self.kind: Kind = KINDS.get(window.dtype, "b32")
        self.per = max(1, 32 // bits)

    # --- lines and runs -------------------------------------------------------------------------

    @property
    def along(self) -> int:
        """The dimension of a coordinate along which lines go: where the tensor is contiguous, else the last."""
        contiguous = self.window.contiguous
        return self.dims.index(contiguous) if contiguous in self.dims else len(self.dims) - 1

    def step(self, one: Coordinate, other: Coordinate) -> int | None:
        """How far the other is along the line of the first; None where it is on another line."""
        steps = [y - x for x, y in zip(one, other, strict=True)]
        if any(s != 0 for d, s in enumerate(steps) if d != self.along):
            return None
        found = steps[self.along]
        return found if isinstance(found, int) else None

    def line(self, coordinates: Sequence[Coordinate]) -> Line:
        """The line of coordinates that differ along it alone, which must be in order."""
        steps = [self.step(coordinates[0], c) for c in coordinates]
        if any(s is None for s in steps) or sorted(steps) != steps:  # type: ignore[type-var]
            raise LayoutError("epilogue", f"{list(coordinates)} are no line of {self.window.name} in order")
        runs: list[Run] = []
        first = 0
        while first < len(coordinates):
            count = 1
            while self._run(coordinates, steps, first, 2 * count):  # type: ignore[arg-type]
                count *= 2
            runs.append(Run(first, count))
            first += count
        return Line(tuple(coordinates), tuple(runs))

    def _run(self, coordinates: Sequence[Coordinate], steps: list[int], first: int, count: int) -> bool:
        """Whether so many elements are one access: neighbors, aligned in every lane, and whole parts of registers."""
        window, d = self.window, self.dims[self.along]
        size = count * self.bits // 8
        if first + count > len(coordinates) or first % count or size > WIDEST or window.alignment % size:
            return False
        if d != window.contiguous or window.origin[d] % count != 0:
            return False
        if len(window.dims[d]) > 1 and window.dims[d][-1][0] % count != 0:
            return False
        if any(steps[first + i] - steps[first] != i for i in range(count)):
            return False
        begin = evaluate(coordinates[first][self.along], places(self.warps))
        return bool((begin % count == 0).all())

    # --- registers ------------------------------------------------------------------------------

    def count(self, line: Line) -> int:
        """Registers that a line takes, element i in register ``i // per``."""
        return -(-len(line.coordinates) // self.per)

    def lines(self, coordinates: Sequence[Coordinate], most: int) -> list[tuple[Line, list[int]]]:
        """Coordinates as lines of at most so many, and the numbers of those that are in each."""
        rest = list(range(len(coordinates)))
        out: list[tuple[Line, list[int]]] = []
        while rest:
            steps = {i: self.step(coordinates[rest[0]], coordinates[i]) for i in rest}
            found = {i: step for i, step in steps.items() if step is not None}
            mine = sorted(found, key=lambda i: found[i])
            rest = [i for i in rest if i not in found]
            for first in range(0, len(mine), most):
                part = mine[first : first + most]
                out.append((self.line([coordinates[i] for i in part]), part))
        return out

    def load(self, parts: Sequence[tuple[Line, Sequence[Slot]]]) -> list[Statement]:
        """The elements of lines that the tensor has, each line into registers of one group; zeros for the others."""
        return self._moved(parts, load=True)

    def store(self, parts: Sequence[tuple[Line, Sequence[Slot]]]) -> list[Statement]:
        """The elements of lines to the tensor, where it has them."""
        return self._moved(parts, load=False)

    def _moved(self, parts: Sequence[tuple[Line, Sequence[Slot]]], *, load: bool) -> list[Statement]:
        found: list[Access] = []
        for line, registers in parts:
            for run in line.runs:
                first, within = divmod(run.first, self.per)
                own = registers[first : first + max(1, run.count // self.per)]
                numbers = tuple([int(r.index) for r in own])  # type: ignore[call-overload]
                size = run.count * self.bits // 8
                found.append(Access(line.coordinates[run.first], numbers, within * self.bits, size))
        mover = Mover(self.places, self.buffer, parts[0][1][0].registers, self.along, load)
        known = len(self.places.statements)  # which come before, once, and which the mover would repeat
        return mover.statements(found)[known:]


__all__ = ["Accesses", "Line", "Run"]
