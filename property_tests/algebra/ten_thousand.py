"""Ten thousand random instances of every public operation, judged by brute force.

    python -m property_tests.algebra.ten_thousand [--count N] [--seed N] [--jobs N] [--write] [operation ...]

Prints one row for each operation: how many instances were answered, refused, left undecided; how many answers were
wrong, and how many refusals were of something that exists (where brute force can tell).  The last two must be 0, or
the exit status is 1 and a few of the instances are shown.  ``--write`` puts the table into docs/evidence.md.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from random import Random
from time import process_time
from typing import NamedTuple

from property_tests.algebra import instances, instances_axes, instances_functions, instances_swizzled
from property_tests.conftest import ROOT
from tilelayout import LayoutError, Undecided

PARTS = (instances, instances_axes, instances_functions, instances_swizzled)
"""Importing them registers their operations."""

SHOWN = 3


class Row(NamedTuple):
    """What came of the instances of one operation."""

    name: str
    counts: Counter[str]
    seconds: float
    faults: list[str]


def judge(name: str, rng: Random) -> tuple[str, str]:
    """The kind of one outcome, and what is wrong with it."""
    instance = instances.OPERATIONS[name](rng)
    try:
        found = instance.ask()
    except Undecided:
        return "undecided", ""
    except LayoutError as error:
        found = error
    try:
        instance.check(found)
    except AssertionError as error:
        kind = "refused though it exists" if isinstance(found, LayoutError) else "wrong"
        return kind, f"{found!r}: {error}"
    return "refused" if isinstance(found, LayoutError) else "answered", ""


def measure(name: str, seed: int, count: int) -> Row:
    rng = Random(f"{name} {seed}")
    counts: Counter[str] = Counter()
    faults: list[str] = []
    begin = process_time()
    for number in range(count):
        state = rng.random()
        try:
            kind, fault = judge(name, Random(f"{name} {seed} {state}"))
        except Exception as error:  # noqa: BLE001 - an error that isn't the library's own is a wrong answer
            kind, fault = "wrong", f"{type(error).__name__}: {error}"
        counts[kind] += 1
        if fault and len(faults) < SHOWN:
            faults.append(f"instance {number} (Random({f'{name} {seed} {state}'!r})): {fault}")
    return Row(name, counts, process_time() - begin, faults)


COLUMNS = ("answered", "refused", "undecided", "wrong", "refused though it exists")


def table(rows: list[Row]) -> str:
    head = ("operation", "instances", *COLUMNS, "CPU seconds")
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for row in rows:
        numbers = [sum(row.counts.values()), *[row.counts[c] for c in COLUMNS]]
        lines.append(f"| {row.name} | " + " | ".join(map(str, numbers)) + f" | {row.seconds:.1f} |")
    return "\n".join(lines)


BEGIN, END = "<!-- ten_thousand: begin -->", "<!-- ten_thousand: end -->"


def write(rows: list[Row], options: argparse.Namespace) -> None:
    path = ROOT / "docs" / "evidence.md"
    text = path.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    total = sum(sum(row.counts.values()) for row in rows)
    made = (
        f"Made by `python -m property_tests.algebra.ten_thousand --count {options.count} --seed {options.seed}` on "
        f"{datetime.date.today()}, Python {platform.python_version()}: {total} instances of {len(rows)} operations in "
        f"{sum(row.seconds for row in rows):.0f} CPU seconds on {options.jobs} processes."
    )
    path.write_text(f"{before}{BEGIN}\n{made}\n\n{table(rows)}\n{END}{after}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m property_tests.algebra.ten_thousand")
    parser.add_argument("operations", nargs="*", choices=[[], *instances.OPERATIONS], default=[])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="put the table into docs/evidence.md")
    options = parser.parse_args(arguments)
    names = options.operations or list(instances.OPERATIONS)
    with ProcessPoolExecutor(options.jobs) as pool:
        asked = [pool.submit(measure, name, options.seed, options.count) for name in names]
        rows = []
        for future in asked:
            rows.append(future.result())
            row = rows[-1]
            sys.stderr.write(f"{row.name}: {dict(row.counts)} in {row.seconds:.1f} s\n")
    sys.stdout.write(table(rows) + "\n")
    faults = [fault for row in rows for fault in row.faults]
    sys.stdout.write("".join(f"FAULT {fault}\n" for fault in faults))
    if options.write and not options.operations:
        write(rows, options)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
