"""``copy`` from a window to shared memory past the registers: variant ``copy.cp_async``.

Each thread begins copies of 16, 8 or 4 bytes.  At the tensor's rim a copy takes as many bytes as are inside, and the
rest of its place in shared memory becomes zero; where none are, it reads nothing.
"""

from __future__ import annotations

from typing import Any

from tilelayout.expr import Index, Var

from ..control import If, Set
from ..dispatch import predicate, register_dispatch
from ..errors import fail
from ..isa.cp_async import CP_ASYNC
from ..ops import CopyCall
from ..program import Address, Comment, Instr, Program
from ..scope import Context
from ..window import Window
from .copy_operands import full_active_lanes
from .window_places import Places
from .window_sides import WINDOW_AND_SHARED, Sides, sides
from .window_vectors import Vector, along, check_packed, known_inside, vectors, widest
from .window_walk import Walk

WIDTHS = tuple(sorted(CP_ASYNC, reverse=True))


def _from_global(call: CopyCall, context: Context) -> Any:
    return isinstance(call.src, Window) or "cp.async copies from global to shared memory, not back"


@register_dispatch(
    "copy", "cuda", variant="copy.cp_async", priority=6,
    when=(
        predicate("full_active_lanes", full_active_lanes), WINDOW_AND_SHARED,
        predicate("from_global", _from_global),
    ),
)  # fmt: skip
def copy_cp_async(call: CopyCall, context: Context) -> Program:
    """Copies by all threads of the scope, done later: the caller commits and waits.

    ``config={"inside": (d, ..)}`` names dimensions of the window in which the caller knows the box to be within the
    tensor.  Lower priority than what is done when it ends: take it by name.
    """
    two = sides(call, context)
    problem = CP_ASYNC[WIDTHS[0]].refusal(context.target)
    if problem:
        fail(f"cp.async: {problem}")
    width = widest(two, WIDTHS, "copies")
    count = 8 * width // two.bits
    turns = vectors(two, count, context.warps)
    at = Places(two.window, two.dims, known_inside(context.config, len(two.window.box)))
    for turn in turns:
        at.family(turn.coordinate)
    interior = at.interior
    walk = Walk(at, [turn.coordinate for turn in turns])
    whole: list[Any] = []
    for i, turn in enumerate(turns):
        whole += [*walk.before(i), *_guarded(turn, [_copy(two, walk.place(i), turn, width, width)])]
    body: list[Any] = [Comment(f"{len(turns)} copies of {width} bytes a thread"), *at.statements]
    if interior.comparisons:
        check_packed(two.window, two.dims[along(two)], two.source)
        body.append(If(interior, tuple(whole), tuple(_at_rim(two, at, walk, turns, width))))
    else:
        body += whole
    return Program(
        f"copy_cp_async_{call.src.tile.name}_to_{call.dst.tile.name}",
        context.warps,
        (),
        (),
        tuple(body),
        (two.source, two.buffer),
    )


def _guarded(turn: Vector, body: list[Any]) -> list[Any]:
    return body if turn.guard is None else [If(turn.guard, tuple(body))]


def _copy(two: Sides, place: Index, turn: Vector, width: int, n: Index) -> Instr:
    return Instr(CP_ASYNC[width], (two.address(turn.coordinate), Address(two.source, (place,)), n))


def _at_rim(two: Sides, at: Places, walk: Walk, turns: list[Vector], width: int) -> list[Any]:
    """The copies where the box reaches beyond the tensor: with the bytes that are inside, and none from nowhere."""
    rim = _Rim(two, at, width)
    out: list[Any] = []
    for i, turn in enumerate(turns):
        out += [*walk.before(i), *_guarded(turn, rim.turn(turn, walk.place(i)))]
    return out


class _Rim:
    """Bytes that a copy takes, by arithmetic that no thread leaves the others for.

    ``x >> bits - 1`` is all ones where ``x`` is negative, else 0.
    """

    def __init__(self, two: Sides, at: Places, width: int) -> None:
        self.two, self.at, self.width = two, at, width
        self.along = two.dims[along(two)]
        self.count = 8 * width // two.bits
        self.left: dict[Index, Var] = {}

    def turn(self, turn: Vector, place: Index) -> list[Any]:
        """The copy of one turn, from a place if that is inside; and what it sets before."""
        out: list[Any] = []
        inside = self._set(out, "inside", -1, 0, self._inside(turn))
        n = inside * -self.width
        if self.at.doubtful(self.along) and self.count > 1:
            left = self._left(out, self.at.x(turn.coordinate, self.along))
            missing = left & left >> self.at.bits(self.along) - 1 & inside
            missing = self._set(out, "missing", -self.count, 0, missing)
            n = n + missing * self.two.bits // 8
        base = self.at.window.base  # where the tensor's first element is: taken where none is read
        out.append(_copy(self.two, base + (place - base & inside), turn, self.width, n))
        return out

    def _inside(self, turn: Vector) -> Index:
        """All ones where the vector's first element is inside, else 0."""
        found: Index = -1
        for d in range(len(self.at.window.box)):
            if self.at.doubtful(d):
                x = self.at.x(turn.coordinate, d)
                negative = x - self.at.window.sizes[d] >> self.at.bits(d) - 1
                found = negative if found == -1 else found & negative
        return found

    def _left(self, out: list[Any], x: Index) -> Var:
        """What is left of the row behind a vector that begins at x: negative where the rim cuts it."""
        if x not in self.left:
            bits = self.at.bits(self.along)
            name = ("left" if bits == 32 else "left_wide") + f"_{len(self.left)}" * bool(self.left)
            value = self.at.window.sizes[self.along] - x - self.count
            self.left[x] = self._set(out, name, 1 - (1 << bits - 1), (1 << bits - 1) - 1, value)
        return self.left[x]

    def _set(self, out: list[Any], name: str, lo: int, hi: int, value: Index) -> Var:
        variable = Var(f"{self.at.window.name}_{name}", lo, hi)
        out.append(Set(variable, value))
        return variable


__all__ = ["copy_cp_async"]
