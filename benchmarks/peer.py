"""The driver's side of `worker`: processes that take turns, and the comparison of ours with others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from .harness import ROOT, median

OURS = "ours"

PATIENCE = 4.0
"""Seconds that a row may take in all; then it is done, but not before so many rounds:"""
ROUNDS_AT_LEAST = 5


class Worker:
    """A process that measures one library; see `worker`.

    Attributes:
        library: how the tables call it.
        absent: why it can't be measured here, or None.
        version, python, rows: of the library, of the interpreter, and what it has; empty where it is absent.
    """

    def __init__(self, python: Path | str, library: str, suite: str) -> None:
        # A script, not -m: TVM's parser inspects its callers, and the frames of -m would cost it half as much again.
        self.process = subprocess.Popen(
            [str(python), str(ROOT / "benchmarks" / "worker.py"), library, suite],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        hello = self._read()
        self.library = library
        self.absent: str | None = hello.get("absent")
        self.version: str = hello.get("version", "")
        self.rows: list[str] = hello.get("rows", [])
        self.python: str = hello.get("python", "")

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


def peers_python() -> Path | None:
    """The interpreter that has the other libraries; None without one.

    TILELAYOUT_ORACLES_PYTHON names it; otherwise it is that of .venv-oracles.
    """
    named = os.environ.get("TILELAYOUT_ORACLES_PYTHON")
    if named:
        if Path(named).is_file():
            return Path(named)
        raise SystemExit(f"TILELAYOUT_ORACLES_PYTHON names {named}, which does not exist")
    python = ROOT / ".venv-oracles" / "bin" / "python"
    if python.is_file():
        return python
    print("no peers (`make bench` installs them into .venv-oracles): measuring ours alone\n", file=sys.stderr)
    return None


@contextmanager
def workers(suite: str, libraries: Sequence[str]) -> Iterator[tuple[Worker, list[Worker]]]:
    """Ours, and those of `libraries` that can be had; why one can't is said on stderr."""
    python = peers_python()
    ours = Worker(sys.executable, OURS, suite)
    started = [] if python is None else [Worker(python, library, suite) for library in libraries]
    for worker in started:
        if worker.absent is not None:
            print(f"without {worker.library}: {worker.absent}", file=sys.stderr)
        elif worker.python != ours.python:
            print(
                f"ours runs on Python {ours.python}, {worker.library} on {worker.python}: the ratios mix both",
                file=sys.stderr,
            )
    try:
        yield ours, [worker for worker in started if worker.absent is None]
    finally:
        for worker in (ours, *started):
            worker.close()


def check_answers(ours: Worker, peers: Sequence[Worker]) -> None:
    """What is compared is the same thing: all libraries give the same answers."""
    for peer in peers:
        for row in peer.rows:
            if row not in ours.rows:
                raise SystemExit(f"{peer.library} has a row that ours lacks: {row}")
            mine, theirs = ours.answer(row), peer.answer(row)
            if mine != theirs:
                raise SystemExit(
                    f"{row}: the libraries differ, ours answers\n{mine}\nand {peer.library}\n{theirs}"
                )


def compare(ours: Worker, peers: Sequence[Worker], rounds: int, unit: float) -> list[dict[str, Any]]:
    """Time every row of all libraries, taking turns, and take the best round of each.

    `unit` is what times are counted in, in seconds.  A line has the times of all, ``best peer`` where there are
    several, ``ratio`` of ours to that one (best round over best round) and ``ratio, middle``, the median of the
    rounds' own ratios: where the two differ, the machine was not quiet.
    """
    times: dict[str, dict[str, list[float]]] = {
        row: {worker.library: [] for worker in (ours, *peers) if row in worker.rows} for row in ours.rows
    }
    left = dict.fromkeys(times, PATIENCE)
    for done in range(rounds):
        for row, found in times.items():
            if done >= ROUNDS_AT_LEAST and left[row] < 0:
                continue
            begin = perf_counter()
            for worker in (ours, *peers):
                if worker.library in found:
                    found[worker.library].append(worker.seconds(row))
            left[row] -= perf_counter() - begin
    several = len(peers) > 1
    return [line(row, found, unit, several) for row, found in times.items()]


def line(row: str, found: dict[str, list[float]], unit: float, several: bool) -> dict[str, Any]:
    """A line of the table from all rounds of a row: library -> seconds, round by round."""
    least = {library: min(spent) for library, spent in found.items()}
    out: dict[str, Any] = {"operation": row} | {library: spent / unit for library, spent in least.items()}
    others = {library: spent for library, spent in least.items() if library != OURS}
    if others:
        best = min(others, key=lambda library: others[library])
        if several:
            out["best peer"] = best
        out["ratio"] = least[OURS] / least[best]
        out["ratio, middle"] = median([a / b for a, b in zip(found[OURS], found[best], strict=True)])
    return out
