"""Ways to cut one row of the GEMM measurement, side by side: `python -m benchmarks.gemm_try "f16 M=16" CONFIG ...`

For whoever looks for the next per cent: configurations as they print themselves (`explain` and the tables have them),
checked, then measured in turns by both protocols, beside cuBLAS, with the clock and the slots of each.  `--edit "A=>B"`
measures each kernel once more with its PTX text changed, which may be wrong and still say what something costs.  Needs
torch and a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

By = dict[str, Any]


class Trial:
    """One contender.

    Attributes:
        name: of its line.
        timed, probed: to launch, without and with the clock.
        about: registers, spilled bytes, and the error where it was checked.
    """

    def __init__(self, name: str, timed: Any, probed: Any, probe: Any, about: By) -> None:
        self.name, self.timed, self.probed, self.probe, self.about = name, timed, probed, probe, about

    def measure(self, row: Any, slots: Any) -> By:
        """Both protocols once."""
        from .gemm_timing import burst, sustained, tflops

        fastest = burst(self.timed)
        out: By = {"name": self.name, "us": fastest * 1e3, "burst": tflops(row.flops, fastest), **self.about}
        if self.probe is not None:
            self.probe.reset()
            out["sustained"] = tflops(row.flops, sustained(self.probed))
            out["MHz"] = self.probe.mhz()
            out["slots"] = slots(row.dtype, out["sustained"], out["MHz"] or 0.0)
        return out


class Trials:
    """All contenders of a row on one GPU."""

    def __init__(self, row: Any) -> None:
        from . import gemm_arrays as arrays
        from .gemm import Bench

        self.row, self.bench, self.arrays = row, Bench(1, ""), arrays
        self.sets = arrays.sets(row, self.bench.gpu.l2_bytes)

    def library(self) -> Trial:
        """cuBLAS."""
        from .gemm_timing import Timed

        return Trial("cuBLAS", Timed(self.arrays.library(self.row), self.sets), None, None, {})

    def kernel(self, text: str) -> Any:
        """The public kernel, of a configuration."""
        from lowering.kernels import Config, gemm

        row = self.row
        batched, config = row.batches is not None, Config.parse(text)
        return gemm(row.dtype, A=row.A, B=row.B, batched=batched, target=self.bench.target, config=config)

    def built(self, text: str) -> Any:
        """What a call of it builds for the row's arrays."""
        from .gemm import built_of, places_of

        return built_of(self.kernel(text), places_of(self.sets[0]), self.bench.gpu.multiprocessors)

    def call(self, text: str, built: Any, cubin: Any) -> Any:
        """The public call, with other machine code for what was built."""
        from .gemm import called_with

        return called_with(self.kernel(text), built, cubin)

    def ours(self, text: str, edit: str = "") -> Trial:
        """A configuration; with its text changed where there is an edit, and then not checked.

        Errors: what building, assembling and checking say.
        """
        from lowering.backends.assemble import assemble
        from lowering.kernels.gemm.chain import links

        from .gemm_timing import Timed

        bench, built = self.bench, self.built(text)
        ptx = built.ptx.replace(*edit.split("=>")) if edit else built.ptx
        if edit and ptx == built.ptx:
            raise ValueError(f"{edit!r} changes nothing of {text}")
        cubin = assemble(ptx, bench.gpu.target, allow_spills=True)
        about: By = {"registers": cubin.registers, "spilled": cubin.spill_bytes}
        run = self.call(text, built, cubin)
        if not edit:
            about["error"] = self.arrays.check(self.row, run, self.sets[0], True)
        timed = Timed(run, self.sets)
        if timed.count > 1 or len(links(built)) > 1:  # several launches, or several kernels, in one number
            return Trial(text, timed, None, None, about)
        probe, counted = bench.probe(ptx, built.program.name, built.shared_memory.dynamic)
        name = f"{text} [{edit}]" if edit else text
        return Trial(name, timed, Timed(self.call(text, built, counted), self.sets), probe, about)


def row_parser(name: str, text: str | None, count: str) -> argparse.ArgumentParser:
    """What takes a row and configurations of it: "+", or "*" where none stand for the kernel's own."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("row", help="the name of a row, or a part of it (benchmarks.gemm --list)")
    parser.add_argument("configs", nargs=count, metavar="CONFIG", help="as 128x256x64_w2x4_s4_tma_u4_g16_o2")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the result there")
    return parser


def row_of(parser: argparse.ArgumentParser, text: str) -> Any:
    """The first row whose name has a text; leaves where there is none, or no torch.  Nothing is kept on disk from here
    on: what is edited must not be.
    """
    from .gemm_rows import ROWS

    if find_spec("torch") is None:
        parser.error("needs torch, which is not installed")
    os.environ["TILELAYOUT_NO_CACHE"] = "1"
    row = next((r for r in ROWS if text in r.name), None)
    return row or parser.error(f"no row has {text!r} in its name")


def main() -> int:
    parser = row_parser("gemm_try", __doc__, "+")
    parser.add_argument("--edit", action="append", default=[], metavar="A=>B", help="of the PTX text")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    row = row_of(parser, options.row)
    trials = Trials(row)
    contenders = [trials.library()]
    failed = False
    for text in options.configs:
        for edit in ("", *options.edit):
            try:
                contenders.append(trials.ours(text, edit))
            except Exception as reason:  # noqa: BLE001  # the others are measured all the same
                failed = True
                print(f"{text} {edit}: {type(reason).__name__}: {str(reason)[:400]}", file=sys.stderr)
    found: list[By] = []
    for _ in range(options.rounds):
        for each in contenders:
            found.append(each.measure(row, trials.bench.slots))
            text = {k: round(v, 4) if isinstance(v, float) else v for k, v in found[-1].items()}
            print(json.dumps({"row": row.name, **text}), flush=True)
    if options.json:
        options.json.write_text(
            json.dumps({"row": row.name, "card": trials.bench.gpu.name, "rows": found}, indent=1) + "\n"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
