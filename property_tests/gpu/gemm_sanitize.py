"""Whole kernels under NVIDIA's compute-sanitizer: memcheck, racecheck, initcheck, synccheck.

    python -m property_tests.gpu.gemm_sanitize [--json PATH] [--tools memcheck,racecheck] [--only TEXT]

The kernels of `sanitize_cases` run once as they are, and once under each tool, in a process of its own; each tool also
sees a kernel with a mistake that it is for, which it must report.  A tool that reports something runs again on one row
at a time, so that the results say whose it is.  Exit status: 0 where all results are right and no tool reports
anything, 1 where not, 2 where there is no compute-sanitizer or no GPU.

initcheck knows what the copy engine writes to global memory from version 2025.4 on; before that, the row whose parts of
K go through it is left out there, since the second kernel would seem to read what nobody has written.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .sanitize_report import FAILED, TOOLS, Report, read

By = dict[str, Any]

PLACES = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/cuda/bin")
LIMIT = 300.0
"""Seconds that one run of a tool may take."""
AGAIN = 12
"""Rows that run on their own at the same time, where a tool has reported something."""
SEES_BULK_STORES = (2025, 4)
PARTS_BY_BULK = "tma, parts of K through slots"


def sanitizer() -> str | None:
    """Where compute-sanitizer is: on the path, or where a toolkit puts it."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders = [*[f"{h}/bin" for h in homes], *[f"{h}/compute-sanitizer" for h in homes], *PLACES]
    return shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path=os.pathsep.join(folders)
    )


def version_of(program: str) -> str:
    """As it prints it, e.g. "2025.3.0"."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r"\d{4}\.\d+(\.\d+)?", said.stdout)
    return found.group() if found else (said.stdout + said.stderr).strip()


def before_bulk_stores(version: str) -> bool:
    """Whether a version of initcheck takes what the copy engine stored for unwritten; an unknown one is not."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return bool(numbers) and tuple(map(int, numbers.groups())) < SEES_BULK_STORES  # type: ignore[union-attr]


class Run:
    """One process: rows, or a planted mistake, under a tool or none.

    Attributes:
        report: what the tool said; None without one.
        rows: which are right; for a planted mistake none.
        status, seconds, tail: of the process, with the last lines of what it printed where it failed.
    """

    def __init__(self, program: str, tool: str, *which: str) -> None:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.json"
            command = [sys.executable, "-m", "property_tests.gpu.sanitize_cases", str(file), *which]
            if tool:
                command = [program, "--tool", tool, "--error-exitcode", str(FAILED), *TOOLS[tool], *command]
            self.status, text = finished(command)
            self.rows: list[By] = json.loads(file.read_text()) if file.exists() else []
        self.seconds = round(time.perf_counter() - began, 1)
        self.report: Report | None = read(text, self.status) if tool else None
        said = [x for x in text.splitlines() if not x.startswith("=========")]
        # Warnings of libraries name where they are installed, which is nobody's business.
        self.tail = (
            [x for x in said if "Warning" not in x and "  warn(" not in x][-12:] if self.status else []
        )

    @property
    def good(self) -> bool:
        """Whether there are rows, every one has the right numbers, and the tool found nothing."""
        right = bool(self.rows) and all(r["right"] for r in self.rows)
        return right and self.status == 0 and (self.report is None or self.report.clean)


def finished(command: list[str]) -> tuple[int, str]:
    """Exit status and output; -1 where the time was over."""
    # Memory of its own for each array, so that a tool knows where it ends and what of it was written.
    environment = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode(errors="replace")
        return -1, f"{said}\nnothing came of it in {LIMIT:.0f} s"
    return done.returncode, done.stdout.decode(errors="replace")


def under(program: str, tool: str, only: str, version: str) -> By:
    """A tool's part of the results."""
    mistake = Run(program, tool, "--planted", tool)
    seen = mistake.report is not None and bool(mistake.report.errors or mistake.report.warnings)
    left_out = PARTS_BY_BULK if tool == "initcheck" and before_bulk_stores(version) else ""
    found = Run(program, tool, "--only", only, "--without", left_out)
    out: By = {"tool": tool, "good": seen and found.good, "rows": len(found.rows), "seconds": found.seconds}
    out |= {"status": found.status, "report": found.report and asdict(found.report)}
    out["wrong"] = [r for r in found.rows if not r["right"]]
    out["alone"] = [] if found.good else by_row(program, tool, [r["name"] for r in found.rows])
    out |= {"tail": found.tail, "left_out": left_out, "why": ""}
    if not seen:
        out["why"] = f"the planted mistake was not reported: {mistake.report}, {mistake.tail}"
    return out


def by_row(program: str, tool: str, names: Iterable[str]) -> list[By]:
    """Each row on its own, those of which something is reported."""
    with ThreadPoolExecutor(AGAIN) as pool:
        runs = list(pool.map(lambda name: (name, Run(program, tool, "--row", name)), names))
    return [
        {"name": name, "rows": r.rows, "status": r.status, "report": r.report and asdict(r.report)}
        for name, r in runs
        if not r.good
    ]


def line(x: By) -> str:
    """A tool's results in a line."""
    report = x["report"] or {}
    counts = f"{report.get('errors')} errors, {report.get('warnings')} warnings"
    whose = "; ".join(a["name"] for a in x["alone"])
    wrong = "; ".join(f"{r['name']}: {r['why']}" for r in x["wrong"])
    more = [
        x["why"],
        report.get("why"),
        whose and f"on their own: {whose}",
        x["left_out"] and f"left out: {x['left_out']}",
        wrong,
    ]
    said = "; ".join(m for m in more if m)
    return f"{'clean' if x['good'] else 'WRONG'}  {x['tool']}: {x['rows']} rows, {counts}, {x['seconds']} s  {said}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m property_tests.gpu.gemm_sanitize",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--tools", default=",".join(TOOLS), help="separated by commas")
    parser.add_argument("--only", default="", help="only rows whose names contain this")
    parser.add_argument("--sanitizer", default="", help="the program, where it is not on the path")
    parser.add_argument("--commit", default="", help="what is being tested, noted in the results")
    o = parser.parse_args()
    tools = [t for t in o.tools.split(",") if t]
    if not tools or set(tools) - set(TOOLS):
        parser.error(f"--tools {o.tools}: some of {', '.join(TOOLS)}")
    program = o.sanitizer or sanitizer()
    if program is None:
        looked = ", ".join(PLACES)
        print(f"no compute-sanitizer here (looked on PATH, in CUDA_HOME and {looked}): nothing was run")
        print("it comes with the CUDA toolkit; --sanitizer PATH names one")
        return 2
    version = version_of(program)
    print(f"{program} {version}", flush=True)
    plain = Run(program, "", "--only", o.only)
    if not plain.rows:
        print("nothing was run:", *plain.tail, sep="\n  ")
        return 2
    for r in plain.rows:
        print("right" if r["right"] else "WRONG", r["name"], r.get("why", ""), flush=True)
    with ThreadPoolExecutor(len(tools)) as pool:
        found = list(pool.map(lambda tool: under(program, tool, o.only, version), tools))
    for x in found:
        print(
            line(x),
            *(x.get("report") or {}).get("lines", ())[: 0 if x["good"] else 12],
            sep="\n  ",
            flush=True,
        )
    good = plain.good and all(x["good"] for x in found)
    if o.json:
        about = {"card": card(), "date": str(datetime.date.today()), "commit": o.commit, "sanitizer": version,
                 "good": good, "rows": plain.rows, "tools": found}  # fmt: skip
        o.json.write_text(json.dumps(about, indent=1))
    return 0 if good else 1


def card() -> str:
    from lowering.backends.driver import device

    return device().name


if __name__ == "__main__":
    sys.exit(main())
