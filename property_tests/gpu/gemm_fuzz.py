"""Random problems on whole GEMM kernels, on a GPU: every element compared, every byte around it watched.

    python -m property_tests.gpu.gemm_fuzz [--problems 2000] [--seconds 100] [--only TEXT] [--json PATH]
    python -m property_tests.gpu.gemm_fuzz --case "f16 tma rc" --seed 17

Kernels are shared out among processes, each of which compiles its own and then runs their problems; one that a problem
takes down (a fault, an endless loop) costs that problem and is replaced.  The second form runs one problem again.
``--device machine`` runs small ones on the CPU's reference machine, to try the fuzz itself where there is no GPU.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

from lowering.target import target as as_target

from .gemm_kernels import SPECS
from .gemm_problems import LARGEST, draw

SILENCE = 90.0
"""Seconds after which a process that says nothing is taken to hang; the first launch of a kernel compiles it."""
PROBLEMS, SECONDS, WORKERS = 2000, 150.0, 12
SMALL = {"machine": (48, 16)}
"""Where -> the largest extent, and what extents are multiples of: the machine's arrays are packed, so that their rows
are aligned by their extents alone."""
MOST_FAILURES = 3
"""Of one kernel, after which its other problems are left."""

By = dict[str, Any]
Problems = Callable[[int], tuple[str, Callable[[], float]]]

DRAWN, AT_ONCE = 240, 20
"""Problems with kernels of their own (`gemm_drawn`), and how many of them are a row."""
DRAWN_ROWS = tuple(f"drawn kernels {i} to {i + AT_ONCE - 1}" for i in range(0, DRAWN, AT_ONCE))
NAMES = (*[s.name for s in SPECS], *DRAWN_ROWS)


# --- in a process of its own ----------------------------------------------------------------------


def work(pipe: Any, where: str, target: str) -> None:
    """Run the problems of kernels: what comes is ``(number of the kernel, seeds)``, and None at the end."""
    import torch

    device = "cpu" if where == "machine" else "cuda"
    torch.set_num_threads(1)
    torch.zeros(1, device=device)
    pipe.send(("ready",))
    while (task := pipe.recv()) is not None:
        number, seeds = task
        began = time.perf_counter()
        try:
            problem, kernel = problems_of(number, where, target)
        except Exception as error:  # noqa: BLE001  # it is reported by whoever waits
            pipe.send(("failed", None, said(error), ""))
            pipe.send(("done", {}))
            continue
        for seed in seeds:
            if not one(pipe, problem, seed, device):
                return
        built = [b for b in getattr(kernel, "_built", {}).values() if "cubin" in vars(b)]
        registers = max((b.cubin.registers for b in built), default=0)
        about = {
            "built": len(built),
            "registers": registers,
            "seconds": round(time.perf_counter() - began, 2),
        }
        pipe.send(("done", about))


def problems_of(number: int, where: str, target: str) -> tuple[Problems, Any]:
    """Seed -> the problem in words, and what runs it; and the kernel, where they share one."""
    if number >= len(SPECS):
        from .gemm_drawn import drawn, run_drawn

        def another(seed: int) -> tuple[str, Callable[[], float]]:
            case = drawn(seed, target)
            return f"property_tests.kernels.problems.draw({seed}, ({target!r},)) = {case}", lambda: run_drawn(
                case
            )

        return another, None
    from .gemm_case import run_case

    spec = SPECS[number]
    kernel = spec.kernel(as_target(target))

    def problem(seed: int) -> tuple[str, Callable[[], float]]:
        case = draw(spec, seed, kernel.config, *SMALL.get(where, (LARGEST, 1)))
        device = "cpu" if where == "machine" else "cuda"
        return str(case), lambda: run_case(spec, kernel, case, seed, device)

    return problem, kernel


def one(pipe: Any, problem: Problems, seed: int, device: str) -> bool:
    """Run a problem and say what came of it; false where the process can't go on."""
    case, run = problem(seed)
    pipe.send(("begin", seed, case))
    try:
        share = run()
    except Exception as error:  # noqa: BLE001  # likewise
        if type(error).__name__ == "RefusedError":
            pipe.send(("refused",))
            return True
        alive = still_alive(device)
        pipe.send(("failed", seed, said(error), case))
        return alive
    pipe.send(("right", share))
    return True


def said(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"


def still_alive(device: str) -> bool:
    """Whether the GPU still works for this process: after a fault it doesn't."""
    if device == "cpu":
        return True
    import torch

    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


# --- in the process that waits --------------------------------------------------------------------


@dataclass
class Row:
    """A kernel's problems, as they are answered.

    Attributes:
        number: of the kernel.
        left: seeds that were not begun.
        right, worst: how many problems are right, and the largest error as a share of its bound.
        refused: how many had a cut that the kernel refuses.
        failures: seed, what was wrong, the problem.
        about: registers and the like.
    """

    number: int
    left: list[int]
    right: int = 0
    refused: int = 0
    worst: float = 0.0
    failures: list[By] = field(default_factory=list)
    about: By = field(default_factory=dict)

    def failed(self, seed: int | None, why: str, case: str) -> None:
        self.failures.append({"seed": seed, "why": why, "case": case})


class Worker:
    """A process, and what it is at."""

    def __init__(self, context: Any, where: str, target: str) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, where, target), daemon=True)
        self.process.start()
        theirs.close()
        self.row: Row | None = None
        self.begun: tuple[int, str] | None = None
        self.heard = time.monotonic()

    def give(self, row: Row) -> None:
        self.row, self.begun = row, None
        self.heard = time.monotonic()
        self.pipe.send((row.number, row.left))

    def stop(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


class Fuzz:
    """Problems for kernels, shared out among processes."""

    def __init__(self, rows: list[Row], workers: int, where: str, target: str, seconds: float) -> None:
        self.rows, self.waiting = rows, list(rows)
        self.where, self.target = where, target
        self.until = time.monotonic() + seconds
        self.context = get_context("spawn")
        self.workers = [self.started() for _ in range(min(workers, len(rows)))]

    def started(self) -> Worker:
        return Worker(self.context, self.where, self.target)

    def run(self) -> None:
        """Until all is answered, or the time is over."""
        try:
            while self.workers and time.monotonic() < self.until:
                pipes: dict[Any, Worker] = {w.pipe: w for w in self.workers}
                for pipe in connection.wait(list(pipes), timeout=1.0):
                    self.hear(pipes[pipe])
                for worker in list(self.workers):
                    if time.monotonic() - worker.heard > SILENCE:
                        self.lost(worker, f"nothing was heard for {SILENCE:.0f} s")
        finally:
            for worker in self.workers:
                worker.stop()

    def hear(self, worker: Worker) -> None:
        worker.heard = time.monotonic()
        try:
            kind, *rest = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            self.lost(worker, f"the process ended ({worker.process.exitcode})")
            return
        row = worker.row
        if kind == "ready":
            self.next(worker)
        elif row is None:
            return
        elif kind == "begin":
            worker.begun = (rest[0], rest[1])
            row.left.remove(rest[0])
        elif kind == "right":
            row.right, row.worst, worker.begun = row.right + 1, max(row.worst, rest[0]), None
        elif kind == "refused":
            row.refused, worker.begun = row.refused + 1, None
        elif kind == "failed":
            row.failed(*rest)
            worker.begun = None
            if rest[0] is None:
                row.left.clear()
            elif len(row.failures) >= MOST_FAILURES:
                row.left.clear()
                self.replaced(worker)
        elif kind == "done":
            row.about = rest[0]
            self.next(worker)

    def next(self, worker: Worker) -> None:
        """The next kernel, or the end."""
        if self.waiting:
            worker.give(self.waiting.pop(0))
            return
        worker.pipe.send(None)
        worker.process.join()
        self.workers.remove(worker)

    def lost(self, worker: Worker, why: str) -> None:
        """A process that is gone: what it was at has failed, what it had left goes to another."""
        row = worker.row
        if row is not None and worker.begun is not None:
            row.failed(worker.begun[0], why, worker.begun[1])
        elif row is not None and not row.failures:
            row.failed(None, f"{why} outside of a problem", "")
            row.left.clear()
        elif row is None:
            raise RuntimeError(f"a process of the fuzz does not come up: {why}")
        if row is not None and row.left and len(row.failures) < MOST_FAILURES:
            self.waiting.insert(0, row)
        self.replaced(worker)

    def replaced(self, worker: Worker) -> None:
        worker.stop()
        self.workers.remove(worker)
        if self.waiting:
            self.workers.append(self.started())


def fuzz(
    problems: int = PROBLEMS, *, only: str = "", where: str = "cuda", workers: int = WORKERS,
    seconds: float = SECONDS, seed: int = 0, target: str = "",
) -> list[Row]:  # fmt: skip
    """Run it; one row for each kernel."""
    chosen = [i for i, s in enumerate(SPECS) if only in s.name]
    drawn = [i for i, name in enumerate(DRAWN_ROWS) if only in name and where != "machine"]
    if not chosen and not drawn:
        raise SystemExit(f"no kernel's name contains {only!r}")
    share, rest = divmod(problems, max(1, len(chosen)))
    rows = [Row(i, list(range(seed, seed + share + (n < rest)))) for n, i in enumerate(chosen)]
    rows = [r for r in rows if r.left]
    for i in drawn:
        first = seed + i * AT_ONCE
        rows.append(Row(len(SPECS) + i, list(range(first, first + AT_ONCE))))
    Fuzz(rows, workers, where, target or here(), seconds).run()
    return rows


def here() -> str:
    """The current GPU's target."""
    from lowering.backends.driver import device

    return device().target.name


def answer(row: Row) -> By:
    """A kernel's row of the summary.  Errors: ValueError where a problem failed or none was run."""
    if row.failures:
        first = row.failures[0]
        again = f'python -m property_tests.gpu.gemm_fuzz --case "{NAMES[row.number]}" --seed {first["seed"]}'
        raise ValueError(
            f"{len(row.failures)} failed, {row.right} right: {first['why']}; {first['case']}; again: {again}"
        )
    if row.left or not row.right:
        raise ValueError(f"{len(row.left)} problems were not run in the time there was")
    refused = {"refused": row.refused} if row.refused else {}
    return {"problems": row.right, **refused, "worst": round(row.worst, 4), **row.about}


@cache
def _everything() -> dict[int, Row]:
    return {row.number: row for row in fuzz()}


def rows() -> Iterator[tuple[str, Callable[[], By]]]:
    """Rows for the summary of all GPU tests; the first that is run runs all."""
    for number, name in enumerate(NAMES):
        yield f"gemm: {name}", lambda n=number: answer(_everything()[n])


def again(name: str, seed: int, where: str, target: str) -> int:
    """Run one problem in this process."""
    problem, kernel = problems_of(NAMES.index(name), where, target or here())
    case, run = problem(seed)
    print(kernel, kernel and kernel.config, case, sep="\n")
    share = run()
    print(f"right, the largest error is {share:.3f} of its bound")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m property_tests.gpu.gemm_fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--problems", type=int, default=PROBLEMS)
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="problems that are not run by then fail"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first number that problems are drawn from")
    parser.add_argument("--workers", type=int, default=min(WORKERS, os.cpu_count() or 1))
    parser.add_argument("--only", default="", help="only kernels whose names contain this")
    parser.add_argument(
        "--case", default="", help="run one problem of the kernel of this name, that of --seed"
    )
    parser.add_argument("--device", choices=("cuda", "machine"), default="cuda")
    parser.add_argument(
        "--target", default="", help="what kernels are made for; the current GPU's when left out"
    )
    parser.add_argument("--list", action="store_true", help="print the kernels, run nothing")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--commit", default="", help="what is being tested, noted in the results")
    o = parser.parse_args()
    if o.list:
        print(
            "\n".join(
                [f"{s.name}: {' x '.join(s.types)}, {s.feed or 'as chosen'}" for s in SPECS] + [*DRAWN_ROWS]
            )
        )
        return 0
    if o.case:
        return again(o.case, o.seed, o.device, o.target)
    began = time.perf_counter()
    found = fuzz(
        o.problems,
        only=o.only,
        where=o.device,
        workers=o.workers,
        seconds=o.seconds,
        seed=o.seed,
        target=o.target,
    )
    return summary(found, time.perf_counter() - began, o)


def summary(found: list[Row], seconds: float, o: Any) -> int:
    out: list[By] = []
    for row in found:
        name = NAMES[row.number]
        try:
            out.append({"name": name, "right": True, **answer(row)})
        except ValueError as error:
            out.append({"name": name, "right": False, "why": str(error), "failures": row.failures,
                        "problems": row.right, "left": len(row.left), **row.about})  # fmt: skip
        print(
            "right" if out[-1]["right"] else "WRONG",
            {k: v for k, v in out[-1].items() if k != "failures"},
            flush=True,
        )
    right = sum(r["right"] for r in out)
    done = sum(r.right for r in found)
    print(f"\n{done} problems right on {right} of {len(out)} kernels, {seconds:.1f} s")
    if o.json:
        about = {"card": card(o.device), "date": str(datetime.date.today()), "commit": o.commit, "problems": done,
                 "seconds": round(seconds, 1), "kernels": out}  # fmt: skip
        o.json.write_text(json.dumps(about, indent=1))
    return 0 if right == len(out) else 1


def card(where: str) -> str:
    if where == "machine":
        return "the reference machine"
    from lowering.backends.driver import device

    return device().name


if __name__ == "__main__":
    sys.exit(main())
