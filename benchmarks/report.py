"""The kept results as Markdown tables: `python -m benchmarks.report`, with `--write` into the files that show them.

Every `results/NAME.json` that a measurement here wrote becomes a table, with machine and date from the file.
benchmarks/README.md shows all, docs/speed.md the algebra's beside the other libraries'.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import gemm_report
from .harness import RESULTS, ROOT, Result, columns, headline

BEGIN, END = "<!-- results: python -m benchmarks.report --write -->", "<!-- end of results -->"
ORDER = ("algebra", "lowering", "startup", "compile", "gemm")
PLACES: dict[Path, Sequence[str]] = {
    ROOT / "benchmarks" / "README.md": ORDER,
    ROOT / "docs" / "speed.md": ("algebra",),
}


def results(names: Sequence[str]) -> list[Result]:
    """The results of these measurements that are kept; others' files are left alone."""
    files = [RESULTS / f"{name}.json" for name in names]
    return [json.loads(path.read_text()) for path in files if path.is_file()]


def markdown(found: Result) -> str:
    """A heading, where and how it was measured, and the rows."""
    if found["benchmark"] == "gemm":
        return gemm_report.markdown(found)
    heads, rows = columns(found)
    parts = [
        f"### {found['benchmark']}",
        f"{headline(found).partition(', ')[2]}.",
        f"{found['method']}.",
        grid(heads, rows),
    ]
    judged = [row["met"] for row in found["rows"] if "met" in row]
    if judged:
        parts.append(f"{judged.count('yes')} of {len(judged)} goals met.")
    modules: list[dict[str, Any]] = found.get("modules", [])
    if modules:
        costs = ", ".join(f"`{entry['module']}` {entry['own, ms']:.2f}" for entry in modules)
        parts.append(f"Modules that one layout loads, own import time in ms under `-X importtime`: {costs}.")
    return "\n\n".join(parts)


def grid(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table: the first column to the left, numbers to the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def text(names: Sequence[str]) -> str:
    return "\n\n".join(markdown(found) for found in results(names))


def write(path: Path, names: Sequence[str]) -> None:
    """Put the tables between the marks of a file."""
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path.name} has no place for results: {BEGIN} ... {END}")
    path.write_text(f"{before}{BEGIN}\n\n{text(names)}\n\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--write", action="store_true", help="put the tables into README.md and docs/speed.md"
    )
    if not parser.parse_args().write:
        print(text(ORDER))
        return
    for path, names in PLACES.items():
        write(path, names)


if __name__ == "__main__":
    main()
