"""The demonstration: three gemms from layouts to checked numbers.  ``python -m lowering.demo``

1. The article's example: one warp, D[16, 8] = A[16, 16] @ B[16, 8], f16 in, f32 accumulation, one instruction.
2. One warp, 64 x 48 x 80 in bf16, several atoms, D = A @ B + D.
3. Four warps, 64 x 64 x 32 in f16, M and N each split over two warps.

Each is lowered, printed, assembled for every supported architecture, run on the GPU where there is one (on the
reference machine otherwise), and compared with float64.  The exit status says whether all of it held.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from lowering import Lowered, Tile, gemm, lower
from lowering.fragments import A_FRAG, B_FRAG, D_FRAG, replicated, spread
from tilelayout.draw import holders_grid

ASSEMBLED_FOR = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")


@dataclass(frozen=True)
class Example:
    """One gemm of the demonstration."""

    title: str
    call: Any
    scope: str
    launch: int | None = None


def article() -> Example:
    D = Tile("D", (16, 8), "float32", D_FRAG)
    A = Tile("A", (16, 16), "float16", A_FRAG)
    B = Tile("B", (16, 8), "float16", B_FRAG)
    return Example(
        "One warp, one instruction: D[16, 8] = A[16, 16] @ B[16, 8], f16", gemm(D, A, B, D), "warp"
    )


def several_atoms() -> Example:
    D = Tile("D", (64, 48), "float32", D_FRAG.tile_to((64, 48), (16, 8)))
    A = Tile("A", (64, 80), "bfloat16", A_FRAG.tile_to((64, 80), (16, 16)))
    B = Tile("B", (80, 48), "bfloat16", B_FRAG.tile_to((80, 48), (16, 8)))
    return Example(
        "One warp, 120 atoms: D[64, 48] += A[64, 80] @ B[80, 48], bf16", gemm(D, A, B, D, beta=1.0), "warp"
    )


def four_warps() -> Example:
    d = D_FRAG.tile_to((32, 32), (16, 8))
    a = A_FRAG.tile_to((32, 32), (16, 16))
    b = B_FRAG.tile_to((32, 32), (16, 8))
    # Warp 2i + j computes rows 32i.. and columns 32j.. of D; A's rows are needed by both j, B's columns by both i.
    d = spread(spread(d, (32, 32), 1, 2, "warpid"), (32, 64), 0, 2, "warpid")
    a = spread(replicated(a, 2, "warpid"), (32, 32), 0, 2, "warpid")
    b = replicated(spread(b, (32, 32), 1, 2, "warpid"), 2, "warpid")
    D, A, B = (
        Tile("D", (64, 64), "float32", d),
        Tile("A", (64, 32), "float16", a),
        Tile("B", (32, 64), "float16", b),
    )
    return Example("Four warps, 2 x 2: D[64, 64] = A[64, 32] @ B[32, 64], f16", gemm(D, A, B, D), "cta", 128)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lowering.demo", description=__doc__.split("\n")[0])
    parser.add_argument("--target", default="sm_90a", help="architecture to lower for (default: sm_90a)")
    parser.add_argument(
        "--cpu", action="store_true", help="run on the reference machine even where there is a GPU"
    )
    options = parser.parse_args(arguments)
    gpu = None if options.cpu else gpu_name()
    print(f"running on: {gpu or 'the reference machine (CPU)'}\n")
    held = True
    for number, example in enumerate((article(), several_atoms(), four_warps())):
        held &= show(example, options.target, gpu, brief=number > 0)
    print("all of it held" if held else "FAILED")
    return 0 if held else 1


def show(example: Example, target: str, gpu: str | None, brief: bool) -> bool:
    """Lower, print, assemble, run and compare one example."""
    print(f"== {example.title} ==\n")
    lowered = lower(example.call, target=target, scope=example.scope, launch=example.launch)
    for role in "ABD":
        tile = example.call.tiles[role]
        print(f"{tile}")
        if not brief:
            print("  element -> lane T and register slot, T<lane>:<slot>")
            print(indent(holders_grid(tile.layout, tile.shape)))
    print(f"\ndispatch\n{indent(lowered.explain())}\n")
    print(f"nest\n{indent(shortened(str(lowered), 12 if brief else 40))}\n")
    line = next(x for x in lowered.ptx.splitlines() if "mma.sync" in x)
    print(f"PTX ({lowered.ptx.count('mma.sync')} x)\n    {line.strip()}\n")
    held = assembled(example)
    return compared(example, lowered, gpu) and held


def assembled(example: Example) -> bool:
    """Assemble for every supported architecture; prints registers and spills."""
    try:
        for name in ASSEMBLED_FOR:
            lowered = lower(example.call, target=name, scope=example.scope, launch=example.launch)
            cubin = lowered.cubin
            print(f"assembled for {name:8} {cubin.registers:>3} registers, {cubin.spill_bytes} bytes spilled")
    except ImportError as error:
        print(f"not assembled: {error}")
        return True
    except RuntimeError as error:
        print(f"NOT ASSEMBLED: {error}")
        return False
    return True


def compared(example: Example, lowered: Lowered, gpu: str | None) -> bool:
    """Run on random data and compare with float64."""
    arrays = random_operands(example.call)
    exact = arrays["A"].astype(np.float64) @ arrays["B"].astype(np.float64)
    scale = np.abs(arrays["A"]).astype(np.float64) @ np.abs(arrays["B"]).astype(np.float64)
    if float(example.call.beta) == 1.0:
        exact, scale = exact + arrays["C"], scale + np.abs(arrays["C"])
    result = lowered.launch(**arrays) if gpu else lowered.run(**arrays)
    error = np.abs(result - exact) / scale
    # K products and C, each addition rounded (or truncated) to 24 bits, relative to the sum of magnitudes.
    bound = (arrays["A"].shape[1] + 1) * 2.0**-23
    held = bool((error <= bound).all())
    where = gpu or "reference machine"
    print(f"\nrun on {where}: error against float64 {error.max():.2e} of the terms' magnitude, bound {bound:.2e}: "
          f"{'right' if held else 'WRONG'}\n")  # fmt: skip
    return held


def random_operands(call: Any, seed: int = 0) -> dict[str, Any]:
    """Random arrays for the operands that are read, by role."""
    rng = np.random.default_rng(seed)
    roles = "ABC" if float(call.beta) else "AB"
    return {r: rng.standard_normal(call.tiles[r].shape).astype(call.tiles[r].element.numpy) for r in roles}


def gpu_name() -> str | None:
    """The name of the GPU, or None where there is none (or no numba-cuda)."""
    try:
        from lowering.backends import numba_cuda
    except ImportError:
        return None
    return numba_cuda.gpu_name()


def shortened(text: str, lines: int) -> str:
    all_lines = text.splitlines()
    if len(all_lines) <= lines:
        return text
    return "\n".join(
        [*all_lines[:lines], f"  ... {len(all_lines) - lines} more lines: print(lowered) shows all"]
    )


def indent(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


if __name__ == "__main__":
    sys.exit(main())
