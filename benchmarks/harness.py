"""What every measurement shares: the machine it ran on, how tables are printed and results kept."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"

Result = dict[str, Any]


def arguments(description: str | None, rounds: int) -> argparse.ArgumentParser:
    """The options that every measurement takes."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the result there")
    parser.add_argument(
        "--rounds", type=int, default=rounds, help=f"rounds to take the best of (default {rounds})"
    )
    return parser


def result(benchmark: str, method: str, unit: str, rows: list[dict[str, Any]], **more: Any) -> Result:
    """A result as it is kept: what ran, where (no host names, no paths), and the rows."""
    return {
        "benchmark": benchmark,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "python": platform.python_version(),
        **more,
        "method": method,
        "unit": unit,
        "rows": rows,
    }


def machine() -> dict[str, Any]:
    """CPU model, cores in use, and system."""
    return {"cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)), "system": platform.system()}


def cpu_model() -> str:
    """The processor as the system names it, its family and model beside a name that says little."""
    fields: dict[str, str] = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    except OSError:
        return platform.processor() or platform.machine()
    name = fields.get("model name", platform.machine())
    numbers = [f"{key} {fields[key]}" for key in ("cpu family", "model") if key in fields]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def finish(found: Result, path: Path | None) -> None:
    """Print a result as a table, and write it where `--json` says."""
    print(headline(found))
    print(table(found))
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=2) + "\n")


def headline(found: Result) -> str:
    at = found["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in found.get("versions", {}).items())
    return (
        f"{found['benchmark']}, {found['date']}: {at['cpu']}, {at['cores']} cores, {at['system']}, "
        f"Python {found['python']}" + (f", {versions}" if versions else "")
    )


def columns(found: Result) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of a result's table; columns that no row fills are left out."""
    libraries: list[str] = found.get("libraries", ["ours", "tvm"])
    given = list(dict.fromkeys(key for row in found["rows"] for key in row))
    first = [key for key in given[:1] if key not in libraries]
    keys = [*first, *[key for key in libraries if key in given]]
    keys += [key for key in given if key not in keys]
    heads = [f"{key}, {found['unit']}" if key in libraries else key for key in keys]
    return heads, [[cell(row.get(key)) for key in keys] for row in found["rows"]]


def cell(x: Any) -> str:
    """A value with three significant digits."""
    if x is None:
        return ""
    if not isinstance(x, float):
        return str(x)
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def table(found: Result) -> str:
    """The rows, aligned for a terminal."""
    heads, rows = columns(found)
    widths = [max(len(line[i]) for line in [heads, *rows]) for i in range(len(heads))]
    return "\n".join(aligned(line, widths) for line in [heads, *rows])


def aligned(line: list[str], widths: list[int]) -> str:
    """One line: names to the left, numbers to the right."""
    first, *rest = zip(line, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *[text.rjust(width) for text, width in rest]])


def median(xs: Sequence[float]) -> float:
    return statistics.median(xs)
