"""Results that go through the copy engine, which stores whole units of 16 bytes: the machine and a launch see to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowering import MachineError
from lowering.backends.cta_machine import run_grid
from lowering.kernels import Config, gemm
from lowering.kernels.gemm import kept
from lowering.kernels.gemm.built import Built
from lowering.kernels.gemm.numbers import Extents
from lowering.program import Program, TensorMap
from lowering.target import target
from tilelayout import LayoutError

from .mutants import places, put

CONFIG = Config((32, 32, 32), (1, 1), 2, "tma", slots=1)
ROWS, DEPTH, PITCH = 40, 32, 80
PROBLEM = gemm("float16", out="float16", target="sm_90a").problem


def unpromised(program: Program) -> Program:
    """The same with tensor maps that promise nothing."""
    body = program.body
    for place, s in places(body):
        arguments = getattr(s, "arguments", ())
        if any(isinstance(a, TensorMap) for a in arguments):
            found = [replace(a, whole_units=False) if isinstance(a, TensorMap) else a for a in arguments]
            body = put(body, place, (replace(s, arguments=tuple(found)),))
    return replace(program, body=body, maps=tuple([replace(m, whole_units=False) for m in program.maps]))


def run(
    columns: int, change: Callable[[Program], Program], guarded: bool, schedule: int = 0
) -> tuple[Any, Any]:
    """(memory of D in rows, what the product is)."""
    built = Built(PROBLEM, CONFIG, target("sm_90a"))
    leading = {"A": DEPTH, "B": PITCH, "D": PITCH}
    extents = Extents(ROWS, columns, DEPTH, 1, leading, dict.fromkeys("ABD", 0))
    rng = np.random.default_rng(columns)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((ROWS, DEPTH), (DEPTH, PITCH)))
    b[:, columns:] = np.nan
    values = built.values(extents, 1.0, 0.0)
    program = change(built.program)
    there = np.arange(ROWS * PITCH) % PITCH < columns
    found = run_grid(
        program,
        (2, 1, 1),
        {"A": a.ravel(), "B": b.ravel(), "D": np.full(ROWS * PITCH, -99, np.float16)},
        {p.name: values[p.name] for p in program.parameters},
        schedule=schedule,
        guarded={"D": ~there} if guarded else None,
    )["D"]
    return found.reshape(ROWS, PITCH), a.astype(np.float32) @ b[:, :columns].astype(np.float32)


@pytest.mark.parametrize("columns", [1, 7, 8, 20, 31, 33, 64, 70])
def test_what_is_behind_the_rows(columns: int) -> None:
    """Rows of whole units are stored and nothing else is touched; others are refused, and what would be overwritten is
    seen.
    """
    whole = -(-columns // 8) * 8
    found, product = run(columns, unpromised, guarded=False)
    np.testing.assert_array_equal(found[:, :columns], product)
    assert (found[:, columns:whole] == 0).all()  # the engine read zeros beyond B
    assert (found[:, whole:] == -99).all()
    if columns == whole:
        again, _ = run(columns, lambda p: p, guarded=True, schedule=3)
        np.testing.assert_array_equal(again, found)
        return
    with pytest.raises(
        LayoutError, match=f"promises rows of whole units of 16 bytes, they have {columns} elements"
    ):
        run(columns, lambda p: p, guarded=False)
    with pytest.raises(
        MachineError, match=r"guarded element of D.*behind a row of D_map: the copy engine stores whole"
    ):
        run(columns, unpromised, guarded=True)


def test_the_promise_is_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a second process finds of a kernel holds its launches to the promise too."""
    monkeypatch.setenv("TILELAYOUT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TILELAYOUT_NO_CACHE", raising=False)
    where = target("sm_90a")
    shell = kept.shell_of(Built(PROBLEM, CONFIG, where).program)
    kept.put("test", PROBLEM, CONFIG, where, kept.Kept(shell, 0, b"code"))
    found = kept.find("test", PROBLEM, CONFIG, where)
    assert found is not None
    assert {m.name: m.whole_units for m in found.shell.maps} == {
        "A_map": False,
        "B_map": False,
        "D_map": True,
    }
