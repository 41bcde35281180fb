"""The command line of the probe: every instruction of this machine's GPU, a summary, and JSON.

The exit status is 0 only if every map is the record's, and every product is bit-equal under the model that the package
claims for it (see `numbers.compare`); 2 where there is no GPU.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .report import directed_lines, line, totals
from .rows import plan
from .worker import DEVICES, device_of, in_workers, work

WORKERS = max(1, min(8, (os.cpu_count() or 1) // 2))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m property_tests.gpu.probe", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--commit", default="", help="what is being tested, noted in the results")
    parser.add_argument("--warps", type=int, default=256, help="warps of random data for each record (256)")
    parser.add_argument(
        "--record", type=int, default=0, help="warps of each run whose operands and results the JSON keeps"
    )
    parser.add_argument("--workers", type=int, default=WORKERS, help="processes at a time")
    parser.add_argument("--only", default="", help="rows whose names have this in them")
    parser.add_argument(
        "--device", choices=DEVICES, default="gpu", help="'meaning' runs the records' meanings"
    )
    parser.add_argument(
        "--work", nargs=5, help=argparse.SUPPRESS
    )  # device, warps, of those recorded, file of names, file of rows
    options = parser.parse_args(arguments)
    if options.work:
        device, warps, recorded, names, out = options.work
        work(device, int(warps), int(recorded), Path(names), Path(out))
        return 0
    try:
        found: Any = device_of(options.device)
    except Exception as error:  # noqa: BLE001  # whatever is missing: library, driver, GPU
        print(f"no GPU here: nothing was run ({error})")
        return 2
    return _report(options, found)


def _report(options: argparse.Namespace, device: Any) -> int:
    began = time.perf_counter()
    names = [name for name in plan(device.target) if options.only in name]
    summary = {
        "card": device.card,
        "target": device.target.name,
        "cuda": device.driver_version,
        "driver": _driver(),
        "date": str(datetime.date.today()),
        "commit": options.commit,
        "warps": options.warps,
        "recorded": options.record,
    }
    rows = in_workers(options.device, options.warps, names, _show, options.workers, options.record)
    if lines := directed_lines(rows):
        print("\ndirected cases\n" + "\n".join(lines))
    summary["seconds"] = round(time.perf_counter() - began, 1)
    print("\n" + "\n".join([", ".join(f"{k} {v}" for k, v in summary.items()), *totals(rows)]))
    right = bool(rows) and all(row["right"] for row in rows)
    if options.json:
        options.json.write_text(json.dumps({**summary, "right": right, "rows": rows}, indent=1))
    return 0 if right else 1


def _show(row: dict[str, Any]) -> None:
    print(line(row), flush=True)


def _driver() -> str:
    """The driver's own version, as nvidia-smi says it; empty where that is not there."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return ended.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
