"""A launch: arguments checked, CTAs one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tilelayout import LayoutError

from ...control import GRID
from ...isa.numerics import check_numerics
from ...program import Program
from .boxes import Boxes
from .cta import CTA, Launch
from .global_memory import GlobalBuffer
from .order import Counters
from .plan import Plan, maps_of
from .schedule import Schedule
from .statements import Compiled, sequence

_GRID_LIMITS = (2**31 - 1, 65535, 65535)


class Code:
    """A program as the machine runs it."""

    def __init__(self, program: Program) -> None:
        self.plan = Plan(program)
        self.maps = maps_of(program, self.plan.body)
        self.parts: list[Compiled] = sequence(self.plan, self.plan.body)


_compiled: WeakValueDictionary[int, Program] = WeakValueDictionary()
_codes: dict[int, Code] = {}


def code_of(program: Program) -> Code:
    """The program compiled, once as long as it lives."""
    key = id(program)
    if _compiled.get(key) is not program:
        for dead in _codes.keys() - _compiled.keys():
            del _codes[dead]
        _codes[key] = Code(program)
        _compiled[key] = program
    return _codes[key]


def run_grid(
    program: Program,
    grid: tuple[int, int, int],
    memory: Mapping[str, Any],
    parameters: Mapping[str, int | float] | None = None,
    *,
    numerics: str = "exact",
    schedule: int = 0,
    written: Mapping[str, Any] | None = None,
    guarded: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Execute a kernel on a grid of CTAs; returns what the buffers in global memory hold afterwards.

    Args:
        program: a kernel over buffers; straight or with the statements of `control`.
        grid: CTAs along x, y and z.
        memory: by name of the buffer, a flat array of the element's numpy type; of bytes where elements share them or
            sit in a byte each, as `program.Buffer` says.  The arrays are not changed.
        parameters: by name, the numbers that the launch gives.
        numerics: the model by which products are added up, see `isa.numerics`.
        schedule: the order of warps, and when asynchronous data lands: one of `ROUND_ROBIN`, `GREEDY` and
            `GREEDY_BACKWARDS`, or any other integer as the seed of a random one.  What is right is so under each.
        written: by name, which elements hold a value (default: all).  To read another is an error until it is written.
        guarded: by name, elements that may be neither read nor written.

    Errors: LayoutError for arguments that the program does not have or that do not fit.  MachineError, naming
    instruction, warp, lane and CTA, for what no hardware defines: a register or an element that holds nothing and is
    used, an address outside its buffer or not aligned, a race, data that is used before it was waited for, memory that
    is released while it is read, lanes that diverge before an instruction of the whole warp, a deadlock, a promise of
    bounds that is broken.

    >>> from lowering.control import CTA
    >>> from lowering.isa import LOAD_WORD, STORE_WORD
    >>> from lowering.program import Address, Buffer, Instr, Program, Registers, Slot
    >>> from lowering.registers import LANE
    >>> x, y = (Buffer(name, name, "int32", (0,), 0, "global", 4) for name in "xy")
    >>> held = Registers("r", "R", "int32", 1, "b32")
    >>> there, back = Address(x, (32 * CTA + LANE,)), Address(y, (32 * CTA + 31 - LANE,))
    >>> body = (
    ...     Instr(LOAD_WORD["b32"], ((Slot(held, 0),), there)),
    ...     Instr(STORE_WORD["b32"], (back, (Slot(held, 0),))),
    ... )
    >>> program = Program("reverse", 1, (), (), body, (x, y), (held,))
    >>> given = {"x": np.arange(64, dtype=np.int32), "y": np.zeros(64, np.int32)}
    >>> run_grid(program, (2, 1, 1), given)["y"][30:34].tolist()
    [1, 0, 63, 62]
    >>> run_grid(program, (3, 1, 1), given)
    Traceback (most recent call last):
    lowering.errors.MachineError: ld.global.b32 r[0], [x(32*cta + lane)];: touches elements 64 to 64 of x...
    """
    code = code_of(program)
    check_numerics(numerics)
    _check_grid(grid)
    written, guarded, count = written or {}, guarded or {}, grid[0] * grid[1] * grid[2]
    buffers = {b.name: b for b in program.buffers if b.space == "global"}
    _check_names("memory", memory, buffers, exact=True)
    for what, masks in (("written", written), ("guarded", guarded)):
        _check_names(what, masks, buffers)
    values, words = _parameters(program, parameters or {})
    held = {
        name: GlobalBuffer(b, memory[name], written.get(name), guarded.get(name), count > 1)
        for name, b in buffers.items()
    }
    values |= dict(zip(("ctas", "ctas_y", "ctas_z"), grid, strict=True))
    boxes = {m.name: Boxes(m, values) for m in code.maps}
    launch = Launch(values, words, held, boxes, numerics, count, Counters())
    order = Schedule(schedule)
    for number in order.order(count):
        at = (number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1]))
        CTA(code.plan, code.parts, launch, at, number, order).run()
    return {name: b.data for name, b in held.items()}


_LARGEST_F32 = 2.0**128 - 2.0**103
"""From there on numbers round to infinity; up to there to float32's largest."""


def _check_grid(grid: tuple[int, int, int]) -> None:
    if len(grid) != 3 or not all(1 <= n <= most for n, most in zip(grid, _GRID_LIMITS, strict=True)):
        raise LayoutError("run_grid", f"grid {grid}", f"three numbers from 1 to {_GRID_LIMITS}")


def _check_names(what: str, given: Mapping[str, Any], known: Mapping[str, Any], exact: bool = False) -> None:
    unknown = sorted(given.keys() - known.keys())
    missing = sorted(known.keys() - given.keys()) if exact else []
    if unknown or missing:
        raise LayoutError(
            "run_grid",
            f"`{what}` has {unknown or 'nothing'} too much and lacks {missing or 'nothing'}",
            f"the program has {', '.join(known) or 'none'}",
        )


def _parameters(program: Program, given: Mapping[str, int | float]) -> tuple[dict[str, int], dict[str, Any]]:
    """Integers by name, and the words of the numbers that instructions take."""
    known = {p.name: p for p in program.parameters}
    _check_names("parameters", given, known, exact=True)
    values: dict[str, int] = {}
    words: dict[str, Any] = {}
    for name, p in known.items():
        value = given[name]
        if p.kind == "f32" and np.isfinite(value) and abs(float(value)) > _LARGEST_F32:
            raise LayoutError(
                "run_grid", f"parameter {name} is {value}, beyond float32", "a number that it holds"
            )
        if p.kind in ("f32", "f64"):
            words[name] = np.array([value], np.float32 if p.kind == "f32" else np.float64).view(np.uint32)
            continue
        if p.lo is None or p.hi is None or int(value) != value or not p.lo <= value <= p.hi:
            raise LayoutError("run_grid", f"parameter {name} is {value}", f"an integer from {p.lo} to {p.hi}")
        values[name] = int(value)
    taken = sorted(values.keys() & {*GRID, "lane", "warp"})
    if taken:
        raise LayoutError("run_grid", f"parameters {taken} have names that the machine gives")
    return values, words
