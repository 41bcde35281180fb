"""What a kernel costs beside running: the host's part of a launch, compiling it cold and from the disk, simulating."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from .harness import ROOT

CALLS, TURNS = 500, 20
"""Launches of a turn, fewer than the queue of a stream holds; and turns."""

_COMPILE = """
import json, time
t0 = time.perf_counter()
from lowering.kernels import gemm
t1 = time.perf_counter()
from lowering.kernels.gemm.choose import configs
kernel = gemm("float16", B="column", target={target!r})
cuts = [c for c in configs(kernel.problem, kernel.target) if c.tile[:2] == (128, 256)]
if cuts:
    kernel = gemm("float16", B="column", target={target!r}, config=cuts[0])
best = kernel.best
t1b = time.perf_counter()
best.kept  # what a launch needs: made, or found on disk
t2 = time.perf_counter()
print(json.dumps({{"import, s": t1 - t0, "kernel, s": t2 - t1b, "machine code, s": best.cubin.seconds,
                   "all, s": t2 - t0, "tile": str(best.config)}}))
"""
_SIMULATE = """
import json, time
import numpy as np
from lowering.kernels import gemm
kernel = gemm("float16", B="column", target={target!r})
a, b = (np.random.default_rng(i).standard_normal((128, 128)).astype(np.float16) for i in range(2))
times = []
for _ in range(3):
    t = time.perf_counter()
    kernel.simulate(a, b)
    times.append(time.perf_counter() - t)
print(json.dumps({{"first, s": times[0], "again, s": min(times[1:])}}))
"""


def fresh(code: str, **environment: str) -> dict[str, Any]:
    """What code says, as JSON, in a process of its own.  Errors: ValueError with what it said where it fails."""
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    if said.returncode:
        raise ValueError(said.stderr.strip()[-600:])
    return json.loads(said.stdout.splitlines()[-1])


def compiling(target: str) -> dict[str, dict[str, Any]]:
    """Fresh processes: without a cache, and with one that has the kernel."""
    code = _COMPILE.format(target=target)
    with tempfile.TemporaryDirectory(prefix="tilelayout-bench-") as folder:
        cold = fresh(code, TILELAYOUT_NO_CACHE="1")
        fresh(code, TILELAYOUT_NO_CACHE="0", TILELAYOUT_CACHE_DIR=folder)
        cached = fresh(code, TILELAYOUT_NO_CACHE="0", TILELAYOUT_CACHE_DIR=folder)
    del cached["machine code, s"]  # of the process that made what was found
    return {"cold": cold, "cached": cached}


def simulating(target: str) -> dict[str, Any]:
    """128 x 128 x 128 on the CPU's machine."""
    return fresh(_SIMULATE.format(target=target))


def launching(target: str) -> dict[str, float]:
    """Microseconds of host time of a launch, torch's arrays, nothing waited for; and of torch's own product."""
    import torch

    from lowering.kernels import gemm

    kernel = gemm("float16", B="column", target=target)
    a, b, d = (torch.zeros((16, 16), device="cuda", dtype=torch.float16) for _ in range(3))
    b = b.t()
    return in_turns(
        {
            "ours": lambda: kernel(a, b, d),
            "ours, D made": lambda: kernel(a, b),
            "torch.mm(out=)": lambda: torch.mm(a, b, out=d),
        }
    )


def in_turns(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Microseconds of a call, by name: the best of several turns, since interference only adds time."""
    import torch

    best = dict.fromkeys(calls, float("inf"))
    for turn in range(TURNS + 1):  # the first doesn't count
        for name, call in calls.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(CALLS):
                call()
            taken = (time.perf_counter() - begin) / CALLS * 1e6
            best[name] = min(best[name], taken) if turn else best[name]
    torch.cuda.synchronize()
    return best


if __name__ == "__main__":  # what needs no GPU: python -m benchmarks.gemm_costs
    print(json.dumps(compiling("sm_90a"), indent=1))
