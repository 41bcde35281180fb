"""Every shared gemm case, and every dense instruction, on the GPU in one process, against float64 and the reference
machine; ends with a summary.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lowering import lower
from lowering.backends import numba_cuda

from ..gemm_cases import Case, all_cases, one_warp
from . import arithmetic, gemm_fuzz, gemm_tools, records, sequences, texts, user_kernels


def operands(call: Any, integers: bool) -> dict[str, Any]:
    """Small integers (every sum exact in any order) or normal numbers, for the operands that are read."""
    rng = np.random.default_rng(7)
    roles = "ABC" if float(call.beta) else "AB"
    draw = (lambda shape: rng.integers(-4, 5, shape)) if integers else rng.standard_normal
    return {r: draw(call.tiles[r].shape).astype(call.tiles[r].element.numpy) for r in roles}


def oriented(call: Any, arrays: dict[str, Any]) -> tuple[Any, Any, Any]:
    """A as (M, K), B as (K, N) and C (or 0), in float64."""
    a, b = (arrays[r].astype(np.float64) for r in "AB")
    c = arrays["C"].astype(np.float64) if "C" in arrays else np.zeros(call.tiles["D"].shape)
    return a.T if call.transpose_a else a, b.T if call.transpose_b else b, c


def check(call: Any, arrays: dict[str, Any], result: Any) -> float:
    """The largest error, relative to the sum of the terms' magnitudes; ValueError beyond the bound of f32 sums."""
    a, b, c = oriented(call, arrays)
    error = np.abs(result - (a @ b + c)) / (np.abs(a) @ np.abs(b) + np.abs(c) + 1e-30)
    bound = (a.shape[1] + 1) * 2.0**-23
    if not (error <= bound).all():  # a NaN is not <= anything
        raise ValueError(
            f"error {np.nanmax(error):.2e} exceeds {bound:.2e}, or {np.isnan(result).sum()} elements unwritten"
        )
    return float(error.max())


def run_case(case: Case) -> dict[str, Any]:
    """Exact on small integers, bounded on normal numbers, compared with the reference machine bit by bit."""
    lowered = lower(case.call, target=numba_cuda.gpu_target(), scope=case.scope, launch=case.launch)
    whole = operands(case.call, integers=True)
    a, b, c = oriented(case.call, whole)
    if not np.array_equal(lowered.launch(**whole), a @ b + c):
        raise ValueError("not exact on small integers")
    arrays = operands(case.call, integers=False)
    result = lowered.launch(**arrays)
    wanted, numerics = records.reference(lowered, arrays)
    same = float((result.view(np.uint32) == wanted.view(np.uint32)).mean())
    return {"error": check(case.call, arrays, result), "numerics": numerics, "bit_equal": same}


def rows() -> list[tuple[str, Callable[[], dict[str, Any]]]]:
    """(name, what to run) for every row of the summary."""
    out: list[tuple[str, Callable[[], dict[str, Any]]]] = [
        (c.name, lambda c=c: run_case(c)) for c in all_cases()
    ]
    out.append(("4x8x4x16 float16", lambda: run_case(Case("", one_warp((4, 8, 4, 16), "float16")))))
    out += [(f"user kernel: {name}", run) for name, run in user_kernels.ROWS]
    out += records.rows()
    out += texts.rows()
    out += arithmetic.rows()
    out += sequences.rows(numba_cuda.gpu_target())
    out += gemm_fuzz.rows()
    out += gemm_tools.rows()
    return out


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m property_tests.gpu", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--commit", default="", help="what is being tested, noted in the results")
    parser.add_argument("--only", default="", help="run only the rows whose names contain this")
    options = parser.parse_args()
    card = numba_cuda.gpu_name()
    if card is None:
        print("no GPU (or no driver, or no numba-cuda) here: nothing was run")
        return 2
    results: list[dict[str, Any]] = []
    for name, run in rows():
        if options.only not in name:
            continue
        began = time.perf_counter()
        try:
            outcome = {"right": True, **run()}
        except Exception as error:  # noqa: BLE001  # a failing row must not hide the others
            outcome = {
                "right": False,
                "why": f"{type(error).__name__}: {error}",
                "trace": traceback.format_exc(),
            }
        outcome = {"name": name, **outcome, "seconds": round(time.perf_counter() - began, 2)}
        results.append(outcome)
        print(f"{'right' if outcome['right'] else 'WRONG'}  {name}  {outcome.get('why', '')}", flush=True)
    right = sum(r["right"] for r in results)
    print(f"\n{card}: {right} of {len(results)} rows right")
    if options.json:
        summary = {"card": card, "date": str(datetime.date.today()), "commit": options.commit}
        summary |= {"right": right, "rows": results}
        options.json.write_text(json.dumps(summary, indent=1))
    return 0 if right == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
