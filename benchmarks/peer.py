"""The driver's side of `worker`: processes that take turns, and the comparison of two libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .harness import ROOT, median


class Worker:
    """A process that measures one library; see `worker`."""

    def __init__(self, python: Path | str, library: str, suite: str) -> None:
        # A script, not -m: TVM's parser inspects its callers, and the frames of -m would cost it half as much again.
        self.process = subprocess.Popen(
            [str(python), str(ROOT / "benchmarks" / "worker.py"), library, suite],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        hello = self._read()
        self.version: str = hello["version"]
        self.rows: list[str] = hello["rows"]
        self.python: str = hello["python"]

    def answer(self, row: str) -> Any:
        return self._ask("answer", row)

    def seconds(self, row: str) -> float:
        return float(self._ask("time", row))

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()

    def _ask(self, what: str, row: str) -> Any:
        if self.process.stdin is None:
            raise RuntimeError("the worker has no input")
        self.process.stdin.write(json.dumps({"ask": what, "row": row}) + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            raise SystemExit(
                f"a worker ended early (exit status {self.process.wait()}); its message is above"
            )
        return json.loads(line)


def tvm_python() -> Path | None:
    """The interpreter that has apache-tvm: TILELAYOUT_TVM_PYTHON, or that of .venv-oracles; None without one."""
    named = os.environ.get("TILELAYOUT_TVM_PYTHON")
    python = Path(named) if named else ROOT / ".venv-oracles" / "bin" / "python"
    if python.is_file():
        return python
    if named:
        raise SystemExit(f"TILELAYOUT_TVM_PYTHON names {named}, which does not exist")
    print(
        "no apache-tvm (`make bench` installs it into .venv-oracles): measuring ours alone\n", file=sys.stderr
    )
    return None


@contextmanager
def workers(suite: str) -> Iterator[tuple[Worker, Worker | None]]:
    """Ours and, where it can be had, TVM's."""
    python = tvm_python()
    ours = Worker(sys.executable, "ours", suite)
    tvm = None if python is None else Worker(python, "tvm", suite)
    if tvm is not None and tvm.python != ours.python:
        print(f"ours runs on Python {ours.python}, TVM on {tvm.python}: the ratios mix both", file=sys.stderr)
    try:
        yield ours, tvm
    finally:
        ours.close()
        if tvm is not None:
            tvm.close()


def check_answers(ours: Worker, tvm: Worker | None) -> None:
    """What is compared is the same thing: both libraries give the same answers."""
    for row in ours.rows:
        if tvm is not None and row in tvm.rows:
            mine, theirs = ours.answer(row), tvm.answer(row)
            if mine != theirs:
                raise SystemExit(f"{row}: the libraries differ, ours answers\n{mine}\nand TVM\n{theirs}")


def compare(
    ours: Worker, tvm: Worker | None, rounds: int, goals: Mapping[str, float], unit: float
) -> list[dict[str, Any]]:
    """Time every row of both, taking turns, and take the best round of each.

    `goals` are the ratios to reach; `unit` is what times are counted in, in seconds.  `ratio` is of the best rounds,
    `ratio, middle` the median of the rounds' own ratios: where the two differ, the machine was not quiet.
    """
    times: dict[str, list[tuple[float, float | None]]] = {row: [] for row in ours.rows}
    for _ in range(rounds):
        for row, found in times.items():
            found.append(
                (ours.seconds(row), tvm.seconds(row) if tvm is not None and row in tvm.rows else None)
            )
    out: list[dict[str, Any]] = []
    for row, found in times.items():
        mine = min(a for a, _ in found)
        line: dict[str, Any] = {"operation": row, "ours": mine / unit}
        pairs = [(a, b) for a, b in found if b is not None]
        if pairs:
            theirs = min(b for _, b in pairs)
            line |= {
                "tvm": theirs / unit,
                "ratio": mine / theirs,
                "ratio, middle": median([a / b for a, b in pairs]),
            }
            if row in goals:
                line["goal"] = goals[row]
        out.append(line)
    return out
