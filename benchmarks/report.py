"""The kept results as Markdown tables: `python -m benchmarks.report`, with `--write` into benchmarks/README.md.

Every `results/NAME.json` that a measurement here wrote becomes a table, with machine and date from the file.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from .harness import RESULTS, ROOT, Result, columns, headline

README = ROOT / "benchmarks" / "README.md"
BEGIN, END = "<!-- results: python -m benchmarks.report --write -->", "<!-- end of results -->"
ORDER = ("algebra", "lowering", "startup", "compile")


def results() -> list[Result]:
    """The results of the measurements here, in the order of the README; others' files are left alone."""
    files = [RESULTS / f"{name}.json" for name in ORDER]
    return [json.loads(path.read_text()) for path in files if path.is_file()]


def markdown(found: Result) -> str:
    """A heading, where and how it was measured, and the rows."""
    heads, rows = columns(found)
    parts = [
        f"### {found['benchmark']}",
        f"{headline(found).partition(', ')[2]}.",
        f"{found['method']}.",
        grid(heads, rows),
    ]
    modules: list[dict[str, Any]] = found.get("modules", [])
    if modules:
        costs = ", ".join(f"`{entry['module']}` {entry['own, ms']:.2f}" for entry in modules)
        parts.append(f"Modules that one layout loads, own import time in ms under `-X importtime`: {costs}.")
    return "\n\n".join(parts)


def grid(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table: the first column to the left, numbers to the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put the tables into benchmarks/README.md")
    text = "\n\n".join(markdown(found) for found in results())
    if not parser.parse_args().write:
        print(text)
        return
    before, begin, rest = README.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{README.name} has no place for results: {BEGIN} ... {END}")
    README.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


if __name__ == "__main__":
    main()
