"""A problem on the CPU's machine as a launch would carry it out: arrays where they lie, all other memory guarded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lowering.backends.cta_machine import run_grid
from lowering.dtypes import dtype
from lowering.kernels.gemm.built import Built
from lowering.kernels.gemm.numbers import Extents, grid_size
from lowering.kernels.gemm.shapes import Shaped
from lowering.program import Program

from .problems import Case, Placed

MULTIPROCESSORS = 3
"""That the simulated GPU has: CTAs take several tiles."""


def found_for(case: Case, given: dict[str, Placed]) -> tuple[Built, Extents]:
    """What a call with these arrays builds, and its extents."""
    kernel = case.kernel
    reads_c = "C" in case.orders and case.beta != 0
    shaped = {
        name: Shaped(x.shape, x.strides, x.offset * x.flat.itemsize)
        for name, x in given.items()
        if name != "C" or reads_c
    }
    return kernel.for_call(kernel.internal(shaped), case.alpha, reads_c, MULTIPROCESSORS)


def simulated(
    case: Case,
    given: dict[str, Placed],
    change: Callable[[Program], Program] = lambda p: p,
    schedule: int | None = None,
    numerics: str = "exact",
    written: bool = False,
) -> Any:
    """D.  Nothing but the arrays' elements may be read, and nothing but D's written, which hold nothing before.

    Args:
        case: the problem.
        given: its arrays.
        change: made to the program first.
        schedule: of the machine; by default the case's.
        numerics: as of the machine.
        written: whether D's elements hold something before.
    """
    built, extents = found_for(case, given)
    if extents.empty:
        return given["D"].array
    names = case.kernel.own_names
    mine = {names[name]: x for name, x in given.items()}
    beta = 1.0 if case.beta is None else case.beta
    order = case.schedule if schedule is None else schedule
    last, values = built, built.values(extents, case.alpha, beta)
    if built.second is not None:  # the first kernel stores the sums of parts of K, the second adds them up
        last, size = built.second, values["batch_d"] * extents.batches * built.config.splits
        sums = np.zeros(size, dtype(built.problem.accumulator).numpy)
        shape = (extents.batches * built.config.splits, extents.M, extents.N)
        parts = Placed(sums, 0, shape, (values["batch_d"], values["ldd"], 1))
        found = _launched(
            built, change(built.program), values, {**mine, "D": parts}, order, numerics, written
        )
        mine["parts"] = replace(parts, flat=found)
        values = last.values(extents, case.alpha, beta)
    program = change(last.program) if last is built else last.program
    flat = _launched(last, program, values, mine, order, numerics, written)
    d = given["D"]
    rest = ~_inside(d)
    assert flat[rest].tobytes() == d.flat[d.offset :][rest].tobytes()
    return Placed(flat, 0, d.shape, d.strides).array


def _launched(
    built: Built,
    program: Program,
    values: dict[str, Any],
    arrays: dict[str, Placed],
    schedule: int,
    numerics: str,
    written: bool,
) -> Any:
    """D's memory after one kernel."""
    there = {b.name for b in program.buffers if b.space == "global"}
    mine = {name: x for name, x in arrays.items() if name in there}
    inside = {name: _inside(x) for name, x in mine.items()}
    return run_grid(
        program,
        (grid_size(built.cut, values["tiles"], MULTIPROCESSORS), 1, 1),
        {name: x.flat[x.offset :] for name, x in mine.items()},
        {p.name: values[p.name] for p in program.parameters},
        numerics=numerics,
        schedule=schedule,
        written={"D": np.full(inside["D"].shape, written)},
        guarded={name: ~mask for name, mask in inside.items()},
    )["D"]


def _inside(x: Placed) -> Any:
    """Which elements of the memory are the array's."""
    mask = np.zeros(x.flat.size - x.offset, bool)
    Placed(mask, 0, x.shape, x.strides).array[...] = True
    return mask
