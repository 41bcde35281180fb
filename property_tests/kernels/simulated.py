"""A problem on the CPU's machine as a launch would carry it out: arrays where they lie, all other memory guarded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lowering.backends.cta_machine import run_grid
from lowering.dtypes import dtype
from lowering.kernels.gemm.built import Built
from lowering.kernels.gemm.chain import Space, links, spaces
from lowering.kernels.gemm.numbers import Extents, grid_size
from lowering.kernels.gemm.shapes import Shaped
from lowering.kernels.gemm.simulate import filled
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
    own = spaces(built, extents)
    mine |= {name: _space(space) for name, space in own.items()}
    holds = {name: np.zeros(space.elements, bool) for name, space in own.items()}
    holds["D"] = np.full(mine["D"].flat.size - mine["D"].offset, written)
    for link in links(built):
        program = change(link.built.program) if link.built is built else link.built.program
        values = link.built.values(extents, case.alpha, beta)
        tensors = {b.name: link.array(b.name) for b in program.buffers if b.space == "global"}
        arrays = {t: mine[name] for t, name in tensors.items()}
        held = {t: holds[name] for t, name in tensors.items() if name in holds}
        found = _launched(link.built, program, values, arrays, held, order, numerics)
        for t, name in tensors.items():
            if name in holds:
                mine[name] = replace(mine[name], flat=found[t], offset=0)
            if name in own:
                holds[name] = holds[name] | filled(link, name, own[name], extents)
    d, flat = given["D"], mine["D"].flat
    rest = ~_inside(d)
    assert flat[rest].tobytes() == d.flat[d.offset :][rest].tobytes()
    return Placed(flat, 0, d.shape, d.strides).array


def _space(space: Space) -> Placed:
    """Memory of the call's own, as the rows that it is to hold; it begins as numbers that are none."""
    kind = dtype(space.dtype).numpy
    flat = np.full(space.elements * kind.itemsize, -1, np.int8).view(kind)
    return Placed(flat, 0, (space.elements // space.row, space.filled), (space.row, 1))


def _launched(
    built: Built,
    program: Program,
    values: dict[str, Any],
    arrays: dict[str, Placed],
    holds: dict[str, Any],
    schedule: int,
    numerics: str,
) -> Any:
    """The memory after one kernel; `holds` says what of it holds something before, where that is not all."""
    inside = {name: _inside(x) for name, x in arrays.items()}
    return run_grid(
        program,
        (grid_size(built.cut, values["tiles"], MULTIPROCESSORS), 1, 1),
        {name: x.flat[x.offset :] for name, x in arrays.items()},
        {p.name: values[p.name] for p in program.parameters},
        numerics=numerics,
        schedule=schedule,
        written=holds,
        guarded={name: ~mask for name, mask in inside.items()},
    )


def _inside(x: Placed) -> Any:
    """Which elements of the memory are the array's."""
    mask = np.zeros(x.flat.size - x.offset, bool)
    Placed(mask, 0, x.shape, x.strides).array[...] = True
    return mask
