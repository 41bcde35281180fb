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
    launch = Launch(values, words, held, {m.name: Boxes(m, values) for m in code.maps}, numerics)
    order = Schedule(schedule)
    for number in order.order(count):
        at = (number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1]))
        CTA(code.plan, code.parts, launch, at, number, order).run()
    return {name: b.data for name, b in held.items()}


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
