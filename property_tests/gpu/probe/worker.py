"""Rows in processes of their own, so that an instruction that breaks the context, or hangs, costs one row.

A worker writes a line when it begins a row and one with the result, and ends early after a failure of the driver;
the parent starts another for what is left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

from .device import Device, Gpu, Machine
from .rows import Row, plan, run_row

DEVICES = ("gpu", "meaning")
PROGRAM = (sys.executable, "-m", "property_tests.gpu.probe")
ROW_SECONDS = 150
"""What a worker may take without beginning or ending a row."""


def device_of(name: str) -> Device:
    return Gpu() if name == "gpu" else Machine()


def work(device: str, warps: int, recorded: int, names: Path, out: Path) -> None:
    """In a worker: run the rows that the file `names` lists, append to `out`."""
    found = device_of(device)
    rows = plan(found.target)
    with out.open("a") as file:
        for name in json.loads(names.read_text()):
            print(json.dumps({"begins": name}), file=file, flush=True)
            row, sound = run_row(name, rows[name], found, warps, recorded)
            print(json.dumps(row), file=file, flush=True)
            if not sound:
                return


def in_workers(
    device: str,
    warps: int,
    names: Sequence[str],
    each: Callable[[Row], None],
    workers: int = 1,
    recorded: int = 0,
) -> list[Row]:
    """The rows of those names, in their order; `each` is called with one as it comes.

    The names are dealt out to so many workers at a time.
    """
    lock = Lock()
    rows: dict[str, Row] = {}

    def take(row: Row) -> None:
        with lock:
            rows[row["name"]] = row
            each(row)

    def share(number: int) -> None:
        for row in in_turn(names[number::workers], ["--work", device, str(warps), str(recorded)]):
            take(row)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(share, range(workers)))
    return [rows[name] for name in names]


def in_turn(
    names: Sequence[str],
    arguments: Sequence[str],
    program: Sequence[str] = PROGRAM,
    patience: float = ROW_SECONDS,
) -> Iterator[Row]:
    """The rows of those names from one worker after another; one that its worker did not survive says so.

    A worker is `program` with `arguments`, the file of names and the file of rows.
    """
    left = list(names)
    with TemporaryDirectory() as folder:
        while left:
            listed, out = Path(folder, "names.json"), Path(folder, "rows.jsonl")
            listed.write_text(json.dumps(left))
            out.write_text("")
            ended = _run([*program, *arguments, str(listed), str(out)], out, patience)
            lines = [json.loads(line) for line in out.read_text().splitlines() if line.endswith("}")]
            done = {line["name"]: line for line in lines if "name" in line}
            begun = [line["begins"] for line in lines if "begins" in line]
            yield from done.values()
            lost = (
                [name for name in begun if name not in done] if begun else left
            )  # none begun: no worker works
            for name in lost:
                yield {"name": name, "right": False, "why": ended}
            left = [name for name in left if name not in done and name not in lost]


def _run(command: list[str], out: Path, patience: float) -> str:
    """How it ended, with the last of what it said; it is ended if `out` does not grow for `patience` seconds."""
    said = out.with_suffix(".log")
    one = {
        **os.environ,
        **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"),
    }  # workers are many
    with said.open("w") as log, subprocess.Popen(command, stdout=log, stderr=log, env=one) as process:
        size, since, stuck = 0, time.monotonic(), False
        while process.poll() is None:
            time.sleep(0.02)
            if out.stat().st_size != size:
                size, since = out.stat().st_size, time.monotonic()
            stuck = time.monotonic() - since > patience
            if stuck:
                process.kill()
                process.wait()
    last = said.read_text(errors="replace")[-1500:].strip()
    return (
        f"the worker was stuck for {patience:g} s: {last}"
        if stuck
        else f"status {process.returncode}: {last}"
    )
