"""What a fresh process pays for its first layout: `python -m benchmarks.startup`

Processes take turns: a bare ``python -S -c pass``, one that imports tilelayout and builds a layout, and one that
only imports.  The table has medians; below it stand the modules that building a layout loads, by what each costs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from .harness import ROOT, arguments, finish, median, result

BARE = "python -S -c pass"
FLAGS = (
    "-S",
)  # without `site`: what installed packages do at every start (numba-cuda imports a lot) belongs to neither
LAYOUT = "from tilelayout import S, TileLayout, laneid; TileLayout(S[(8,4):(4@laneid,1)])"
PROGRAMS = {
    BARE: "pass",
    "one layout": LAYOUT,
    "import tilelayout": "import tilelayout",
}
GOALS = {"one layout": 1.6}

METHOD = "fresh processes, milliseconds; medians of {rounds} interleaved rounds; ratios to the bare process"


Environment = dict[str, str]


def one_process(code: str, environment: Environment) -> tuple[float, float]:
    """Wall and CPU time of a fresh interpreter that runs `code`, in milliseconds."""
    begin = perf_counter()
    process = subprocess.Popen(
        [sys.executable, *FLAGS, "-c", code], cwd=Path(sys.executable).anchor, env=environment
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{code!r} failed; its message is above")
    return wall * 1e3, (used.ru_utime + used.ru_stime) * 1e3


def modules(environment: Environment) -> list[tuple[str, float]]:
    """(module, its own import time in ms), dearest first, for what the layout loads and a bare start does not."""
    # The option sees import statements only, and the package loads the home of a name by a call.
    programs = {BARE: "pass", "one layout": f"import tilelayout.layout; {LAYOUT}"}
    found: dict[str, dict[str, float]] = {name: {} for name in programs}
    for name, costs in found.items():
        for _ in range(7):
            done = subprocess.run(
                [sys.executable, *FLAGS, "-X", "importtime", "-c", programs[name]],
                env=environment, capture_output=True, text=True, check=True,
            )  # fmt: skip
            for line in done.stderr.splitlines():
                own, _, module = line.removeprefix("import time:").partition("|")
                if own.strip().isdigit():
                    module = module.partition("|")[2].strip()
                    costs[module] = min(float(own) / 1e3, costs.get(module, float("inf")))
    new = {module: cost for module, cost in found["one layout"].items() if module not in found[BARE]}
    return sorted(new.items(), key=lambda entry: -entry[1])


def main() -> None:
    options = arguments(__doc__, rounds=40).parse_args()
    with TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for code in PROGRAMS.values():
            one_process(code, environment)  # from here on bytecode is there
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS}
        for _ in range(options.rounds):
            for name, spent in times.items():
                spent.append(one_process(PROGRAMS[name], environment))
        loaded = [{"module": module, "own, ms": cost} for module, cost in modules(environment)]
    wall, cpu = ({name: median([t[i] for t in spent]) for name, spent in times.items()} for i in (0, 1))
    rows: list[dict[str, Any]] = []
    for name in PROGRAMS:
        row: dict[str, Any] = {"process": name, "wall, ms": wall[name], "CPU, ms": cpu[name]}
        if name != BARE:
            row |= {
                "ratio, wall": wall[name] / wall[BARE],
                "ratio, CPU": cpu[name] / cpu[BARE],
                "goal": GOALS.get(name),
            }
        rows.append(row)
    found = result("startup", METHOD.format(rounds=options.rounds), "ms", rows, modules=loaded)
    finish(found, options.json)
    print("\nloaded for one layout, own import time in ms (under -X importtime):")
    for entry in loaded:
        print(f"  {entry['own, ms']:6.3f}  {entry['module']}")


if __name__ == "__main__":
    main()
