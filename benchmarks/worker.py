"""The measured process: ``worker.py LIBRARY SUITE``, run by `peer` in the interpreter that has the library.

It reads one JSON request a line and prints one answer a line, so that the driver can let libraries take turns.
A process measures its own CPU time, with the garbage collector off.

A library's module has ``VERSION``, ``rows()``, and where the library works only inside of something,
``inside(serve)``, which calls `serve` there.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from time import process_time_ns
from typing import Any


@dataclass(frozen=True)
class Row:
    """One measured operation.

    Attributes:
        name: of the row, the same in both libraries.
        prepare: n -> n inputs.  Objects are made anew for each, so that nothing an object keeps helps the next call.
        call: the operation on one input.
        answer: the result as plain JSON data, to compare between libraries; None where there is nothing to compare.
        calls: how many calls are timed together.
    """

    name: str
    prepare: Callable[[int], list[Any]]
    call: Callable[[Any], Any]
    answer: Callable[[Any], Any]
    calls: int = 500


def seconds(row: Row) -> float:
    """CPU time of one call, over a run of calls."""
    inputs, call = row.prepare(row.calls), row.call
    if (
        row.calls == 1
    ):  # a large one: the first to ask pays for finding pages, the others take what it gave back
        call(row.prepare(1)[0])
    gc.collect()
    gc.disable()
    begin = process_time_ns()
    for x in inputs:
        call(x)
    spent = process_time_ns() - begin
    gc.enable()
    return spent / row.calls / 1e9


def main() -> None:
    library, suite = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers
    try:
        module = import_module(f"benchmarks.{suite}_{library}")
    except ImportError as error:
        print(json.dumps({"absent": f"{type(error).__name__}: {error}"}), file=answers)
        return

    def serve() -> None:
        rows: dict[str, Row] = {row.name: row for row in module.rows()}
        hello = {"version": module.VERSION, "python": platform.python_version(), "rows": list(rows)}
        print(json.dumps(hello), file=answers)
        for line in sys.stdin:
            request = json.loads(line)
            row = rows[request["row"]]
            if request["ask"] == "answer":
                reply = row.answer(row.call(row.prepare(1)[0]))
            else:
                reply = seconds(row)
            print(json.dumps(reply), file=answers)

    getattr(module, "inside", lambda task: task())(serve)


if __name__ == "__main__":
    main()
