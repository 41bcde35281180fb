"""Whole GEMM kernels on one GPU, beside cuBLAS, Triton and the bare instruction: `python -m benchmarks.gemm`

First every contender's result is compared with float64's, on random numbers, over poison, twice bit by bit; then they
take turns at both protocols of `gemm_timing`.  Registers, spills, occupancy and the clock under load stand beside, and
what a launch, compiling and simulating cost.  Needs torch; Triton is left out where it is not.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

from .gemm_report import markdown
from .gemm_rows import CEILINGS, ROWS, Row

By = dict[str, Any]
CYCLES = 6
"""Of a part of a multiprocessor that one product of m16n8k16, or its like, takes at the most."""
PARTS = 4
COUNTED = {"float16": 4096, "bfloat16": 4096, "int8": 8192, "tfloat32": 2048}
"""Element type -> floating-point operations of a slot."""
LOOP_MS = 0.3
SPY_NS = 300_000
PTX_VERSION = ".version 8.4"


# --- what is compared -----------------------------------------------------------------------------


def kernel_of(row: Row, target: str) -> Any:
    """Our kernel for a row, made as a user would; cut by the feed's first configuration where the row names a feed."""
    from lowering.kernels import gemm
    from lowering.kernels.gemm.choose import configs, unroll_of

    make = partial(gemm, row.dtype, A=row.A, B=row.B, batched=row.batches is not None, target=target)
    made = make()
    if not row.feed:
        return made
    cut = configs(made.problem, made.target, row.feed)[0]  # type: ignore[arg-type]
    return make(config=replace(cut, unroll=unroll_of(cut, None)))


def built_of(kernel: Any, places: By, multiprocessors: int) -> Any:
    """What a call builds for arrays of these forms: the next best way where one spills."""
    from lowering.kernels.gemm.shapes import Shaped

    given = kernel.internal({name: Shaped(*place) for name, place in places.items()})
    while True:
        built, _ = kernel.for_call(given, 1.0, False, multiprocessors)
        if (made := kernel.assembled(built)) is not None:
            return made


def places_of(x: Any) -> By:
    return {
        n: (tuple(a.shape), tuple(a.stride()), a.data_ptr()) for n, a in (("A", x.A), ("B", x.B), ("D", x.D))
    }


def called_with(kernel: Any, built: Any, cubin: Any) -> Any:
    """The public call of a kernel, with other machine code for what was built."""
    from lowering.kernels.gemm.kept import Kept, shell_of

    own = replace(built)
    vars(own)["cubin"] = cubin  # instead of what it would make of its own text, or keep on disk
    vars(own)["kept"] = Kept(shell_of(built.program), built.shared_memory.dynamic, cubin.data)
    kernel.built = lambda *_, **__: own
    return lambda x: kernel(x.A, x.B, x.D)


def compile_ours(row: Row, target: str, places: By, multiprocessors: int) -> str:
    """In another process: our machine code for a row into the cache on disk; what went wrong, or nothing."""
    try:
        built_of(kernel_of(row, target), places, multiprocessors)
    except Exception as error:  # noqa: BLE001  # told again by the row itself
        return f"{type(error).__name__}: {error}"
    return ""


def compile_triton(row: Row, cut: Any, steps: tuple[int, ...]) -> str:
    from . import gemm_triton

    return gemm_triton.compile_one(row, cut, steps)


@dataclass
class Contender:
    """One way to make a row's product.

    Attributes:
        name: of the column.
        timed: to launch.
        bursts, lasting: milliseconds of each round.
        clocks: MHz of each round, read after the load, by a kernel that counts.
    """

    name: str
    timed: Any
    bursts: list[float] = field(default_factory=list)
    lasting: list[float] = field(default_factory=list)
    clocks: list[float] = field(default_factory=list)


class Bench:
    """One GPU and what is measured on it."""

    def __init__(self, rounds: int, commit: str) -> None:
        import torch

        from lowering.backends.driver import device

        torch.zeros(1, device="cuda")
        self.gpu = device()
        self.target = self.gpu.target.name
        self.rounds, self.commit = rounds, commit
        self.ceilings: dict[str, By] = {}
        self.spy = self._spy()
        self.triton = self._triton()

    def _triton(self) -> Any:
        try:
            from . import gemm_triton
        except ImportError as error:
            print(f"Triton is left out: {error}")
            return None
        return gemm_triton

    def probe(self, text: str, entry: str, shared: int = 0) -> tuple[Any, Any]:
        """A probed kernel, and its machine code."""
        from lowering.backends.assemble import assemble

        from .gemm_probe import LaunchProbe, probed

        cubin = assemble(probed(text), self.gpu.target, allow_spills=True)
        return LaunchProbe(cubin.data, entry, shared), cubin

    def _spy(self) -> Callable[[], Any]:
        from .gemm_probe import pack_one, spy_text

        self.spy_probe, _ = self.probe(spy_text(self.target, PTX_VERSION), "spy")
        keep, arguments = pack_one(SPY_NS)
        return lambda keep=keep: self.spy_probe.kernel.launch((1, 1, 1), 32, arguments, current_stream())

    # --- one row ----------------------------------------------------------------------------------

    def row(self, row: Row) -> By:
        """All that is known of a row; `wrong` with the reason where a result was, or where nothing was made."""
        import torch

        from . import gemm_arrays as arrays
        from .gemm_timing import Timed

        sets = arrays.sets(row, self.gpu.l2_bytes)
        out: By = {"problem": row.name, "sets": len(sets)}
        contenders: list[Contender] = []

        def add(name: str, call: Callable[[Any], Any]) -> None:
            try:
                error = arrays.check(row, call, sets[0], name == "ours")
                contenders.append(Contender(name, Timed(call, sets)))
            except Exception as reason:  # noqa: BLE001  # one contender's failure is a result
                out[f"{name}, why not"] = f"{type(reason).__name__}: {str(reason)[:500]}"
                torch.cuda.synchronize()
                return
            if name == "ours":
                out["error"] = error

        kernel = kernel_of(row, self.target)
        add("ours", lambda x: kernel(x.A, x.B, x.D))
        add("cuBLAS", arrays.library(row))
        if self.triton and self.triton.supported(row):
            best = self._best_cut(row, sets)
            if best:
                out["Triton's cut"] = "x".join(map(str, best[:3])) + f" w{best[3]} s{best[4]}"
                add("Triton", lambda x: self.triton.run(row, best, x))
        if "error" in out:
            out |= self._about(row, kernel, sets[0])
            probe = self._our_probe(row, kernel, sets, out)
        else:
            probe = None
        loop = self._loop(row.dtype) if row.dtype not in self.ceilings else None
        self._rounds(contenders, probe, loop, self.rounds if row.main else 1)
        return self._summary(row, out, contenders, probe, loop)

    def _rounds(self, contenders: list[Contender], probe: Any, loop: Any, rounds: int) -> None:
        from .gemm_timing import burst, sustained

        for _ in range(rounds):
            for c in contenders:
                c.bursts.append(burst(c.timed))
                self.spy_probe.reset()
                c.lasting.append(sustained(c.timed, self.spy))
                c.clocks.append(self.spy_probe.mhz() or 0.0)
            for one in (probe, loop):
                if one is None:
                    continue
                if one is loop:
                    one.bursts.append(burst(one.timed))
                one.launch_probe.reset()
                one.lasting.append(sustained(one.timed))
                one.clocks.append(one.launch_probe.mhz() or 0.0)

    def _summary(self, row: Row, out: By, contenders: list[Contender], probe: Any, loop: Any) -> By:
        from .gemm_timing import tflops

        for c in contenders:
            fastest = median(c.bursts)
            out[f"{c.name}, burst"] = tflops(row.flops, fastest)
            out[f"{c.name}, sustained"] = tflops(row.flops, median(c.lasting))
            out[f"{c.name}, MHz after"] = median(c.clocks)
            if c.name == "ours":
                out["us"], out["GB/s"] = fastest * 1e3, row.bytes / fastest / 1e6
                out["graph"] = c.timed.count > 1
        if probe is not None:
            out["probed, sustained"] = tflops(row.flops, median(probe.lasting))
            out["MHz"] = median(probe.clocks)
            out["slots"] = self.slots(row.dtype, out["probed, sustained"], out["MHz"])
        if loop is not None:
            burst, lasting = (tflops(loop.flops, median(x)) for x in (loop.bursts, loop.lasting))
            clock = median(loop.clocks)
            self.ceilings[row.dtype] = {"loop, burst": burst, "loop, sustained": lasting, "loop, MHz": clock,
                                        "loop, slots": self.slots(row.dtype, lasting, clock)}  # fmt: skip
        out |= self.ceilings.get(row.dtype, {})
        for kind in ("burst", "sustained"):
            for other in ("cuBLAS", "Triton", "loop"):
                if f"ours, {kind}" in out and f"{other}, {kind}" in out:
                    out[f"of {other}, {kind}"] = out[f"ours, {kind}"] / out[f"{other}, {kind}"]
        return out

    def slots(self, dtype: str, found: float, mhz: float) -> float | None:
        """Share of the tensor cores' issue slots; None where one product's slots are not known."""
        if dtype not in COUNTED or not mhz:
            return None
        return found / (self.gpu.multiprocessors * PARTS * COUNTED[dtype] / CYCLES * 1e-6 * mhz)

    def _about(self, row: Row, kernel: Any, x: Any) -> By:
        from lowering.backends.driver import load

        built = built_of(kernel, places_of(x), self.gpu.multiprocessors)
        loaded = load(built.cubin.data, built.program.name, built.shared_memory.dynamic, self.gpu.ordinal)
        return {
            "cut": str(built.config), "registers": built.cubin.registers, "spill bytes": built.cubin.spill_bytes,
            "local bytes": built.cubin.local_bytes, "shared bytes": built.shared_memory.dynamic,
            "CTAs": loaded.blocks_per_multiprocessor(built.threads), "threads": built.threads,
            "assembled, s": built.cubin.seconds,
        }  # fmt: skip

    def _our_probe(self, row: Row, kernel: Any, sets: list[Any], out: By) -> Any:
        """Our kernel's copy that counts its clocks, called as the kernel is."""
        from .gemm_timing import Timed

        try:
            built = built_of(kernel, places_of(sets[0]), self.gpu.multiprocessors)
            probe, cubin = self.probe(built.ptx, built.program.name, built.shared_memory.dynamic)
            run = called_with(kernel_of(row, self.target), built, cubin)
            made = Contender("probe", Timed(run, sets))
            out["probe, spill bytes"] = cubin.spill_bytes
        except Exception as reason:  # noqa: BLE001  # a row without a clock is still a row
            out["probe, why not"] = f"{type(reason).__name__}: {str(reason)[:300]}"
            return None
        made.launch_probe = probe  # type: ignore[attr-defined]
        return made

    def _best_cut(self, row: Row, sets: list[Any]) -> Any:
        """The fastest of Triton's ways, by five launches after one."""
        import torch

        found: list[tuple[float, Any]] = []
        for cut in self.triton.cuts(row):
            try:
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                self.triton.run(row, cut, sets[0])
                begin.record()
                for i in range(5):
                    self.triton.run(row, cut, sets[i % len(sets)])
                end.record()
                torch.cuda.synchronize()
                found.append((begin.elapsed_time(end), cut))
            except Exception as reason:  # noqa: BLE001  # a cut that doesn't fit is left out
                print(f"  Triton {cut}: {str(reason)[:200]}", file=sys.stderr)
        return min(found)[1] if found else None

    def _loop(self, dtype: str) -> Any:
        """The bare instruction in a loop, some `LOOP_MS` a launch."""
        from .gemm_ceiling import WARPS, ceiling_text, flops_per_turn
        from .gemm_probe import pack_one
        from .gemm_timing import Timed

        ceiling = CEILINGS[dtype]
        probe, cubin = self.probe(ceiling_text(ceiling, self.target, PTX_VERSION), "ceiling")
        if cubin.spill_bytes:
            raise ValueError(f"the loop of {dtype} spills")
        grid = (self.gpu.multiprocessors, 1, 1)

        def start(turns: int) -> Callable[[Any], None]:
            keep, arguments = pack_one(turns)
            return lambda _, keep=keep: probe.kernel.launch(grid, 32 * WARPS, arguments, current_stream())

        few = Timed(start(2000), [None])
        turns = max(1, int(2000 * few.count * LOOP_MS / few.estimate))
        made = Contender("loop", Timed(start(turns), [None]))
        made.launch_probe = probe  # type: ignore[attr-defined]
        made.flops = flops_per_turn(ceiling, self.gpu.multiprocessors) * turns  # type: ignore[attr-defined]
        return made

    # --- before the first row ---------------------------------------------------------------------

    def prepare(self, rows: list[Row], workers: int) -> None:
        """Compile ours and Triton's in several processes, into the caches on disk."""
        from . import gemm_arrays as arrays

        jobs: list[tuple[str, Any]] = []
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for row in rows:
                x = arrays.make(row, 0)
                place = places_of(x)
                jobs.append(
                    (row.name, pool.submit(compile_ours, row, self.target, place, self.gpu.multiprocessors))
                )
                if self.triton and self.triton.supported(row):
                    steps = self.triton.strides(x)
                    for cut in self.triton.cuts(row):
                        jobs.append(
                            (f"{row.name}, Triton {cut}", pool.submit(compile_triton, row, cut, steps))
                        )
                del x
            for name, job in jobs:
                if said := job.result():
                    print(f"  {name}: {said[:300]}", file=sys.stderr)


def current_stream() -> int:
    import torch

    return int(torch.cuda.current_stream().cuda_stream)


# --- all of it ------------------------------------------------------------------------------------


def measured(rows: list[Row], bench: Bench, workers: int, costs: bool) -> By:
    from .gemm_timing import PROTOCOL

    began = time.perf_counter()
    bench.prepare(rows, workers)
    print(f"compiled in {time.perf_counter() - began:.1f} s", flush=True)
    found: list[By] = []
    for row in rows:
        try:
            found.append(bench.row(row))
        except Exception as reason:  # noqa: BLE001  # the other rows are measured all the same
            found.append({"problem": row.name, "ours, why not": f"{type(reason).__name__}: {reason}"})
        print(
            json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in found[-1].items()}),
            flush=True,
        )
    out: By = {
        "benchmark": "gemm", "date": datetime.now(UTC).date().isoformat(), "card": bench.gpu.name,
        "commit": bench.commit, "versions": versions(), "method": PROTOCOL, "unit": "TFLOP/s", "rounds": bench.rounds,
        "rows": found,
    }  # fmt: skip
    if costs:
        out["costs"] = all_costs(bench.target)
        print(json.dumps(out["costs"]), flush=True)
    out["seconds"] = round(time.perf_counter() - began, 1)
    return out


def all_costs(target: str) -> By:
    from . import gemm_costs

    out: By = {}
    for name in ("launching", "compiling", "simulating"):
        try:
            out[name] = getattr(gemm_costs, name)(target)
        except Exception as reason:  # noqa: BLE001  # what was measured before is kept
            out[name] = {"why not": f"{type(reason).__name__}: {str(reason)[-400:]}"}
    return out


def versions() -> By:
    import torch

    from lowering.backends.driver import driver_version

    out = {"torch": torch.__version__, "CUDA driver": ".".join(map(str, driver_version())),
           "python": sys.version.split()[0]}  # fmt: skip
    if "triton" in sys.modules:
        out["triton"] = sys.modules["triton"].__version__
    return out


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gemm",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the result there")
    parser.add_argument("--markdown", type=Path, metavar="PATH", help="write the tables there")
    parser.add_argument("--rows", default="", help="names of rows, or parts of them, separated by semicolons")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the main rows; the others have one")
    parser.add_argument("--quick", action="store_true", help="one round of each row, no costs")
    parser.add_argument("--workers", type=int, default=12, help="processes that compile")
    parser.add_argument("--commit", default="", help="what is measured, noted in the result")
    parser.add_argument("--list", action="store_true", help="print the rows, measure nothing")
    options = parser.parse_args()
    parts = [p.strip() for p in options.rows.split(";") if p.strip()]
    rows = [r for r in ROWS if not parts or any(p in r.name for p in parts)]
    if options.list or not rows:
        print("\n".join(f"{r.name}{'  (main)' * r.main}" for r in ROWS))
        return 0 if options.list else 2
    if find_spec("torch") is None:
        parser.error("needs torch, which is not installed")
    bench = Bench(1 if options.quick else options.rounds, options.commit)
    found = measured(rows, bench, options.workers, not options.quick)
    text = markdown(found)
    print(text)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(text + "\n")
    return 0 if all("error" in r for r in found["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
