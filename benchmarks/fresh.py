"""What a library's import costs: fresh processes of one interpreter that take turns."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .harness import ROOT
from .peer import OURS, ROUNDS_AT_LEAST, line, peers_python

ROWS = "import, a fresh process", "import, beyond a bare start"
BARE = "bare"

PROGRAMS = {
    OURS: "from tilelayout import S, TileLayout; TileLayout(S[8, 4])",
    "tvm": "from tvm.tirx.layout import S, TileLayout; TileLayout(S[8, 4])",
    "pycute": "from pycute import Layout; Layout((8, 4))",
    "cute_dsl": "import cutlass.cute",
    "tensor_layouts": "from tensor_layouts import Layout; Layout((8, 4))",
    BARE: "pass",
    "triton": "from triton._C.libtriton.linear_layout import LinearLayout; LinearLayout.identity_1d(32, 'i', 'm')",
}
"""The import and one layout; the CuTe DSL has layouts in a trace only."""


def cpu_seconds(python: Path, code: str, environment: dict[str, str]) -> float:
    """CPU time of a fresh interpreter that runs `code`, its start included."""
    process = subprocess.Popen([str(python), "-c", code], cwd=python.anchor, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{code!r} failed; its message is above")
    return used.ru_utime + used.ru_stime


def compare_imports(libraries: Sequence[str], rounds: int, unit: float) -> list[dict[str, Any]]:
    """The rows of imports, all in the interpreter that has the peers; none without one.

    The second has what is left when the time of an interpreter that does nothing is taken off.
    """
    python = peers_python() if libraries else None
    if python is None:
        return []
    programs = {name: PROGRAMS[name] for name in (OURS, *libraries, BARE) if name in PROGRAMS}
    found: dict[str, list[float]] = {name: [] for name in programs}
    with TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for code in programs.values():
            cpu_seconds(python, code, environment)  # from here on bytecode is there
        for _ in range(min(rounds, ROUNDS_AT_LEAST)):
            for name, spent in found.items():
                spent.append(cpu_seconds(python, programs[name], environment))
    bare = found.pop(BARE)
    beyond = {name: [a - b for a, b in zip(spent, bare, strict=True)] for name, spent in found.items()}
    return [line(row, spent, unit, len(found) > 2) for row, spent in zip(ROWS, (found, beyond), strict=True)]
