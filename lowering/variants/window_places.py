"""Where the elements of a window are and which of them the tensor has, as run-time variables and conditions.

Threads hold coordinates of the box as expressions in `lane` and `warp`.  Those that differ by constants share one set
of variables, *x* in each dimension and the place *at*, so that an address costs one step from the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilelayout.expr import Index, Var, bounds

from ..control import All, Compare, Set
from ..program import Address, Buffer
from ..window import MAX_DISTANCE, Window

Coordinate = tuple[Index, ...]
"""Of an element in the box, one for each of the dimensions whose extents are not 1."""

_SLACK = 64
"""How far a calculation with coordinates goes beyond them: more than the elements of a vector."""


@dataclass(frozen=True)
class Family:
    """Coordinates that differ by constants from the first of them.

    Attributes:
        first: in the box.
        x: the tensor's coordinates of that element, by dimension of the window: variables.
        at: its place, a variable.
    """

    first: Coordinate
    x: tuple[Index, ...]
    at: Var


@dataclass
class Places:
    """The run-time variables of a window's elements.

    Attributes:
        window: what they are places of.
        dims: which dimension of the window each dimension of a `Coordinate` is.
        inside: dimensions of the window that the caller knows the box to be within.
        statements: what sets the variables, to be executed before anything that uses them.
    """

    window: Window
    dims: tuple[int, ...]
    inside: frozenset[int] = frozenset()
    families: list[Family] = field(default_factory=list)
    statements: list[Set] = field(default_factory=list)

    def family(self, coordinate: Coordinate) -> tuple[Family, tuple[int, ...]]:
        """The family of a coordinate and its steps from the first, one for each dimension of the window."""
        for known in self.families:
            steps = [x - y for x, y in zip(coordinate, known.first, strict=True)]
            if all(isinstance(step, int) for step in steps):
                return known, self._spread(steps)  # type: ignore[arg-type]
        found = self._new(coordinate)
        self.families.append(found)
        return found, (0,) * len(self.window.box)

    def x(self, coordinate: Coordinate, d: int) -> Index:
        """The tensor's coordinate in dimension d of the window."""
        known, steps = self.family(coordinate)
        return known.x[d] + steps[d]

    def place(self, coordinate: Coordinate) -> Index:
        """Elements from the tensor's pointer to the element, if the tensor has it."""
        known, steps = self.family(coordinate)
        if any(step and len(self.window.dims[d]) > 1 for d, step in enumerate(steps)):
            return self.window.place([x + step for x, step in zip(known.x, steps, strict=True)])
        place: Index = known.at
        for d, step in enumerate(steps):
            place = place + step * self.window.dims[d][0][1]
        return place

    def address(self, buffer: Buffer, coordinate: Coordinate) -> Address:
        return Address(buffer, (self.place(coordinate),))

    # --- the rim --------------------------------------------------------------------------------

    def doubtful(self, d: int) -> bool:
        """Whether the box may reach beyond the tensor in dimension d of the window."""
        window = self.window
        if d in self.inside:
            return False
        most = bounds(window.origin[d] + window.box[d] - window.sizes[d])[1]
        return most is None or most > 0

    @property
    def interior(self) -> All:
        """That the whole box is inside: the same for all threads.  Of no comparisons where that is known."""
        window = self.window
        return All(
            tuple(
                [
                    Compare(window.origin[d] + n, "<=", window.sizes[d])
                    for d, n in enumerate(window.box)
                    if self.doubtful(d)
                ]
            )
        )

    def within(self, coordinate: Coordinate, d: int, count: int = 1) -> tuple[Compare, ...]:
        """That elements from a coordinate on are inside in dimension d; none where that is known."""
        if not self.doubtful(d):
            return ()
        last = self.x(coordinate, d) + (count - 1)
        return (Compare(last, "<", self.window.sizes[d]),)

    def bits(self, d: int) -> int:
        """Of signed registers that hold calculations with coordinates of dimension d."""
        window = self.window
        most = max(bounds(window.origin[d] + window.box[d])[1] or 0, bounds(window.sizes[d])[1] or 0)
        return 32 if most + window.box[d] + _SLACK < 1 << 31 else 64

    # --- variables ------------------------------------------------------------------------------

    def variable(self, name: str, lo: int, hi: int, value: Index) -> Var:
        """A variable of the window's that is set now."""
        variable = Var(f"{self.window.name}_{name}", lo, hi)
        self.statements.append(Set(variable, value))
        return variable

    def _new(self, coordinate: Coordinate) -> Family:
        suffix = f"_{len(self.families)}" if self.families else ""
        box = dict(zip(self.dims, coordinate, strict=True))
        x: list[Index] = []
        for d, origin in enumerate(self.window.origin):
            value, width = origin + box.get(d, 0), self.bits(d)
            wide = "" if width == 32 else "_wide"
            limit = (1 << 31) - 1 - _SLACK - self.window.box[d] if width == 32 else MAX_DISTANCE
            limit = min(limit, max(1, bounds(value)[1] or limit))
            x.append(
                value
                if isinstance(value, int | Var)
                else self.variable(f"x{d}{wide}{suffix}", 0, limit, value)
            )
        at = self.variable(f"at{suffix}", 0, MAX_DISTANCE, self.window.place(x))
        return Family(coordinate, tuple(x), at)

    def _spread(self, steps: list[int]) -> tuple[int, ...]:
        found = dict(zip(self.dims, steps, strict=True))
        return tuple([found.get(d, 0) for d in range(len(self.window.box))])


__all__ = ["Coordinate", "Family", "Places"]
