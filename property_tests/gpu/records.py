"""Rows for every dense record that this GPU executes, as a gemm of one instruction and as a tiling of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lowering import GemmCall, Lowered
from lowering.backends import numba_cuda
from lowering.isa import MmaInstruction
from lowering.isa.numerics import check_numerics
from tilelayout import LayoutError

from .. import record_cases as cases

STEP = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10}
"""What one addition may lose of the terms' magnitudes, by D's type."""

FORMS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("one, beta=0", {"beta": 0.0}),
    ("one in place, beta=1", {"beta": 1.0, "in_place": True}),
    ("tiled, beta=0", {"tiling": True, "beta": 0.0}),
    ("tiled and transposed, beta=1", {"tiling": True, "transpose_a": True, "transpose_b": True, "beta": 1.0}),
)


def call_of(record: MmaInstruction, form: dict[str, Any]) -> GemmCall:
    """Tilings that no instruction of the same types with twice the rows or terms divides."""
    tiling = (3 if record.m == 8 else 2, 2, 3) if form.get("tiling") else (1, 1, 1)
    return cases.call_of(record, **{**form, "tiling": tiling})


def run_record(record: MmaInstruction, form: dict[str, Any]) -> dict[str, Any]:
    """Exact on small integers; on any values exact for integers, bounded for floats; compared with the reference
    machine bit by bit.
    """
    call = call_of(record, form)
    lowered = cases.lowered_of(record, call, numba_cuda.gpu_target())
    used = [i.name for i in lowered.program.instructions if i.collective]
    if used != [record.name]:
        raise ValueError(f"lowered to {used}")
    rng = np.random.default_rng(11)
    arrays = cases.whole(call, rng)
    wanted, _ = cases.answer(record, call, arrays)
    if not np.array_equal(lowered.launch(**cases.given(call, arrays)).astype(np.float64), wanted):
        raise ValueError("not exact on small integers")
    arrays = cases.any_values(call, rng)
    found = lowered.launch(**cases.given(call, arrays))
    result, name = reference(lowered, cases.given(call, arrays))
    raw = f"u{found.dtype.itemsize}"
    equal = float((found.view(raw) == result.view(raw)).mean())
    out: dict[str, Any] = {"numerics": name, "bit_equal": equal}
    if record.d in STEP:
        out["error"] = bounded(record, call, arrays, found)
    elif equal < 1:
        raise ValueError(f"{equal:.3f} of the integers are as on the reference machine")
    return out


def reference(lowered: Lowered, arrays: dict[str, Any]) -> tuple[Any, str]:
    """The reference machine's result by this architecture's model, or the exact one where nobody published one."""
    own = lowered.context.target.name
    try:
        return lowered.run(**arrays, numerics=own), check_numerics(own)
    except LayoutError:
        return lowered.run(**arrays), "exact"


def bounded(record: MmaInstruction, call: Any, arrays: dict[str, Any], found: Any) -> float:
    """The largest error, relative to the sum of the terms' magnitudes; ValueError beyond what K additions may lose."""
    wanted, magnitude = cases.answer(record, call, arrays)
    error = np.abs(found.astype(np.float64) - wanted) / (magnitude + 1e-30)
    k = call.tiles["A"].shape[0 if call.transpose_a else 1]
    if not (error <= (k + 1) * STEP[record.d]).all():  # a NaN is not <= anything
        raise ValueError(f"error {np.nanmax(error):.2e} exceeds {(k + 1) * STEP[record.d]:.2e}")
    return float(error.max())


def rows() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """(name, what to run)."""
    where = numba_cuda.gpu_target()
    for record in cases.RECORDS:
        if not record.instruction.refusal(where):
            for name, form in FORMS:
                yield f"record {record.name}, {name}", lambda r=record, f=form: run_record(r, f)
