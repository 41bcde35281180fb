"""``copy`` from and to a window by plain loads and stores: variant ``copy.predicated``.

Between a window and registers each lane moves what its fragment holds; between a window and shared memory the threads
share vectors out and carry them through registers.  At the tensor's rim every access asks whether it is inside.
"""

from __future__ import annotations

from typing import Any

from tilelayout.expr import evaluate

from ..dispatch import predicate, register_dispatch
from ..errors import fail
from ..isa.memory import WIDEST
from ..ops import CopyCall
from ..program import Comment, If, Program, Registers
from ..scope import Context
from ..window import Window
from .copy_operands import KINDS, container_bits, full_active_lanes, places, registers_of
from .regions import same_shape
from .threads import check_registers
from .window_accesses import Access, Mover, in_order, move, zeros
from .window_places import Coordinate, Places
from .window_sides import Sides, sides, tensor
from .window_vectors import (
    along,
    along_by,
    check_packed,
    global_problem,
    known_inside,
    shared_problem,
    vector_problem,
    vectors,
)

WIDTHS = (16, 8, 4, 2, 1)
"""Bytes of an access, the widest first."""


def _one_window(call: CopyCall, context: Context) -> Any:
    others = [x for _, x in call.operands() if not isinstance(x, Window)]
    if len(others) != 1:
        return f"copies {call}: one side must be a Window on a tensor in global memory"
    scope = others[0].tile.scope
    return (
        scope in ("local", "shared")
        or f"{others[0]} is in {scope} scope, neither registers nor shared memory"
    )


@register_dispatch(
    "copy", "cuda", variant="copy.predicated", priority=9,
    when=(predicate("full_active_lanes", full_active_lanes), predicate("one_window", _one_window)),
)  # fmt: skip
def copy_predicated(call: CopyCall, context: Context) -> Program:
    """Accesses of 16 bytes down to an element, each predicated where the box reaches beyond the tensor.

    config:
        inside: dimensions of the window in which the caller knows the box to be within the tensor.
        part: "load" or "store": of a copy through registers only what fills them, or only what empties them, so that
            a kernel can do something between.  Both have the same register group.
    """
    local = any(x.tile.scope == "local" for _, x in call.operands())
    part = context.config.get("part", "")
    if part not in ("", "load", "store") or (part and local):
        fail(
            f"config: part {part!r} is neither 'load' nor 'store' of a copy between a window and shared memory"
        )
    return _fragment(call, context) if local else _through_registers(call, context, part)


def _program(call: CopyCall, context: Context, note: str, body: list[Any], **fields: Any) -> Program:
    name = f"copy_predicated_{call.src.tile.name}_to_{call.dst.tile.name}"
    given = {"inputs": (), "outputs": (), **fields}
    program = Program(name, context.warps, body=(Comment(note), *body), **given)
    for r in program.registers:
        check_registers(Program(name, context.warps, (), (), (), scratch=(r,)))
    return program


# --- shared memory ------------------------------------------------------------------------------


def _through_registers(call: CopyCall, context: Context, part: str) -> Program:
    two = sides(call, context)
    wide, narrow = _widths(two)
    turns = vectors(two, 8 * wide // two.bits, context.warps, 8 * narrow // two.bits)
    kind = KINDS.get(two.window.dtype, "b32")
    bits = 64 if kind == "f64" else 32
    name = f"{two.window.name}_staged"
    count = -(-len(turns) * 8 * wide // bits)
    group = Registers(name, "staged", two.window.dtype, count, kind, two.bits)
    held = [in_order(group, turn.coordinate, 8 * wide * i, wide, turn.guard) for i, turn in enumerate(turns)]
    d = along(two)
    at = Places(two.window, two.dims, known_inside(context.config, len(two.window.box)))
    if at.interior.comparisons:
        check_packed(two.window, two.dims[d], two.source)
    outside = Mover(at, two.source, group, d, two.load).statements(held)
    inside = _shared(two, group, held, narrow)
    first, second = (outside, inside) if two.load else (inside, outside)
    where = {"": first + second, "load": first, "store": second}[part]
    fields = {"": {"scratch": (group,)}, "load": {"outputs": (group,)}, "store": {"inputs": (group,)}}[part]
    note = f"{len(turns)} accesses of {wide} bytes a thread to {two.window.name}, of {narrow} to {two.buffer.name}"
    return _program(call, context, note, where, buffers=(two.source, two.buffer), **fields)


def _widths(two: Sides) -> tuple[int, int]:
    """Bytes of an access to the window and of one to shared memory."""
    least = max(1, two.bits // 8)
    reasons: list[str] = []
    for wide in WIDTHS:
        reason = global_problem(two, wide)
        narrow = (
            0 if reason else next((n for n in WIDTHS if least <= n <= wide and not shared_problem(two, n)), 0)
        )
        if narrow:
            return wide, narrow
        reasons.append(f"accesses of {wide} bytes: {reason or shared_problem(two, least)}")
        if wide == least:
            break
    return fail("; ".join(reasons))


def _shared(two: Sides, group: Registers, held: list[Access], size: int) -> list[Any]:
    """What moves the registers from or to shared memory, `size` bytes at once."""
    d = along(two)
    body: list[Any] = [] if two.load or 8 * size >= group.bits else [*zeros(group, held)]
    for a in held:
        moves: list[Any] = []
        for k in range(0, 8 * a.size // two.bits, 8 * size // two.bits):
            coordinate = along_by(a.coordinate, d, k)
            part = a.part(group, k * two.bits, size, coordinate)
            moves.append(move(not two.load, group, part, two.address(coordinate)))
        body += moves if a.guard is None else [If(a.guard, tuple(moves))]
    return body


# --- fragments ----------------------------------------------------------------------------------


def _fragment(call: CopyCall, context: Context) -> Program:
    """Between a window and registers that a fragment layout names."""
    load = isinstance(call.src, Window)
    window, region = (call.src, call.dst) if load else (call.dst, call.src)
    roles = ("src", "dst") if load else ("dst", "src")
    shape = same_shape(call)
    group, held = registers_of(region, roles[1], shape, context)
    dims = tuple([d for d, n in enumerate(window.box) if n != 1]) or (0,)
    buffer = tensor(window, roles[0], container_bits(window.dtype, context))
    d = dims.index(window.contiguous) if window.contiguous in dims else len(shape) - 1
    at = Places(window, dims, known_inside(context.config, len(window.box)))
    if at.interior.comparisons:
        check_packed(window, dims[d], buffer)
    found = _Fragment(window, dims, shape, d, group, held, context.warps).accesses()
    body = Mover(at, buffer, group, d, load).statements(found)
    passed = load and not region.is_full
    sizes = [a.size for a in found]
    note = ", ".join([f"{sizes.count(n)} accesses of {n} bytes a lane" for n in dict.fromkeys(sizes)])
    return _program(
        call,
        context,
        note,
        body,
        buffers=(buffer,),
        inputs=(group,) if not load or passed else (),
        outputs=(group,) if load else (),
    )


class _Fragment:
    """Which registers of a lane are neighbors in a window, in every lane."""

    def __init__(
        self,
        window: Window,
        dims: tuple[int, ...],
        shape: tuple[int, ...],
        d: int,
        group: Registers,
        held: dict[int, tuple[Coordinate, ...]],
        warps: int,
    ) -> None:
        import numpy as np

        self.window, self.dims, self.shape, self.d, self.group, self.held = (
            window,
            dims,
            shape,
            d,
            group,
            held,
        )
        where = places(warps)
        self.at: dict[int, Any] = {
            r: np.stack(
                [
                    np.stack([np.broadcast_to(evaluate(x, where), where["lane"].shape) for x in element])
                    for element in elements
                ]
            )
            for r, elements in held.items()
        }
        """register -> coordinates ``[elements, dimensions, warps, lanes]``"""

    def accesses(self) -> list[Access]:
        """The widest that cover all registers, those of one row after one another."""
        found: list[Access] = []
        for r in [r for r in self.held if not self._whole(r)]:
            found += self._single(r)
        free = dict.fromkeys(sorted([r for r in self.held if self._whole(r)], key=self._first))
        starts = {self.at[r][0].tobytes(): r for r in free}
        while free:
            run = self._run(next(iter(free)), starts, free)
            found.append(Access(self.held[run[0]][0], tuple(run), 0, len(run) * self.group.bits // 8))
            for r in run:
                del free[r]
        return sorted(found, key=self._place)

    def _place(self, a: Access) -> tuple[int, ...]:
        """Where lane 0 has its first element: the dimension that accesses go along counts last."""
        at = self.at[a.registers[0]][a.bit // self.group.container][:, 0, 0].tolist()
        return *at[: self.d], *at[self.d + 1 :], at[self.d]

    def _first(self, r: int) -> int:
        """Where lane 0 has the register along the dimension of vectors, so that runs begin where they can."""
        return int(self.at[r][0][self.d, 0, 0])

    def _whole(self, r: int) -> bool:
        """Whether a register's elements are neighbors, and may be one access."""
        at = self.at[r]
        return self._aligned(at[0], len(at)) and all(
            self._follows(at[0], at[k], k) for k in range(1, len(at))
        )

    def _follows(self, first: Any, other: Any, k: int) -> bool:
        step = other - first
        step[self.d] -= k
        return not step.any()

    def _aligned(self, first: Any, count: int) -> bool:
        size = count * self.group.container // 8
        if (first[self.d] % count).any():
            return False
        return not vector_problem(self.window, self.dims, self.shape, self.d, size, count)

    def _run(self, r: int, starts: dict[bytes, int], free: dict[int, None]) -> list[int]:
        """Registers from r on that are one access."""
        run, per = [r], self.group.per_register
        while 2 * len(run) * self.group.bits <= 8 * WIDEST and self._aligned(
            self.at[r][0], 2 * len(run) * per
        ):
            wanted = []
            for k in range(2 * len(run)):
                at = self.at[r][0].copy()
                at[self.d] += k * per
                wanted.append(starts.get(at.tobytes()))
            if any(x is None or x not in free for x in wanted):
                break
            run = [x for x in wanted if x is not None]
        return run

    def _single(self, r: int) -> list[Access]:
        """A register, element by element; of elements that share a byte, byte by byte."""
        bits = self.group.container
        unit = max(1, 8 // bits)
        found: list[Access] = []
        for k in range(0, self.group.per_register, unit):
            first = self.at[r][k]
            torn = [j for j in range(1, unit) if not self._follows(first, self.at[r][k + j], j)]
            if torn or not self._aligned(first, unit):
                fail(
                    f"{self.group.name}[{r}] holds elements of {bits} bits, {unit} of which share a byte of "
                    f"{self.window.name}, and no lane has all of one"
                )
            found.append(Access(self.held[r][k], (r,), k * bits, unit * bits // 8))
        return found


__all__ = ["copy_predicated"]
