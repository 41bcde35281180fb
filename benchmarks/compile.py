"""What compiling costs: `python -m benchmarks.compile`

numba: a user's own kernel that calls `lowered.device_function` with loads and a store, to PTX for sm_80.  Every
compilation gets a new device function, so that nothing numba keeps is used again; imports and a first small kernel
come before.  nvJitLink: the PTX of one atom of each mma record, and of the large gemm, to machine code for the
record's architecture.  No GPU is used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from time import perf_counter, process_time
from typing import Any

import tilelayout
from lowering import Lowered, lower
from lowering.isa import MMA_INSTRUCTIONS, MmaInstruction

from .gemms import LARGE, SMALL, half, lowered, one_warp, text
from .harness import arguments, finish, result

METHOD = "best of {rounds} rounds, in seconds: wall time and CPU time of one compilation; imports excluded"
GOALS = {LARGE: 3.0}
TARGET = "sm_80"


def timed(prepare: Callable[[], Any], call: Callable[[Any], Any], rounds: int) -> tuple[float, float]:
    """Wall and CPU time of the best round, in seconds."""
    walls: list[float] = []
    cpus: list[float] = []
    for _ in range(rounds):
        x = prepare()
        wall, cpu = perf_counter(), process_time()
        call(x)
        walls.append(perf_counter() - wall)
        cpus.append(process_time() - cpu)
    return min(walls), min(cpus)


def numba_ptx(found: Lowered) -> str:
    """The PTX of a user's kernel around a lowered gemm."""
    from numba.cuda import types

    from lowering.backends.numba_cuda import compile_ptx

    gemm = found.device_function
    load_a, load_b, store = gemm.load_a, gemm.load_b, gemm.store

    def kernel(A: Any, B: Any, D: Any) -> None:
        store(D, gemm(load_a(A), load_b(B)))

    half, single = types.float16[:, ::1], types.float32[:, ::1]
    return compile_ptx(kernel, (half, half, single), TARGET)


def numba_nest(found: Lowered) -> str:
    """The PTX of the device function alone, fragments in and out."""
    from lowering.backends.numba_cuda import FragmentType, compile_ptx

    gemm = found.device_function

    def nest(a: Any, b: Any) -> Any:
        return gemm(a, b)

    fragments = [FragmentType(r.dtype, r.count) for r in found.program.inputs]
    return compile_ptx(nest, fragments, TARGET, device=True)


def with_text(atoms: tuple[int, int, int], record: MmaInstruction, target: str) -> Lowered:
    """A lowered gemm whose PTX is there already, so that only assembling it is timed."""
    found = lower(one_warp(atoms, record), target=target, scope="warp")
    found.ptx  # noqa: B018 - made by being asked for
    return found


def main() -> None:
    options = arguments(__doc__, rounds=3).parse_args()
    warnings.simplefilter("ignore")  # numba's, about performance
    rows: list[dict[str, Any]] = []

    def add(what: str, times: tuple[float, float], goal: float | None = None) -> None:
        rows.append({"compilation": what, "wall, s": times[0], "CPU, s": times[1], "goal": goal})

    begin, cpu = perf_counter(), process_time()
    numba_ptx(lowered(SMALL))
    add("numba imported, first small kernel", (perf_counter() - begin, process_time() - cpu))
    for atoms in (SMALL, LARGE):
        new = partial(lowered, atoms)
        add(f"numba: the nest of {text(atoms)}", timed(new, numba_nest, options.rounds), GOALS.get(atoms))
        add(f"numba: a kernel with loads and store, {text(atoms)}", timed(new, numba_ptx, options.rounds))
    assemble = attrgetter("cubin")
    for record in MMA_INSTRUCTIONS:
        new = partial(with_text, SMALL, record, f"sm_{record.sm}")
        add(f"nvJitLink: {record.name}, one atom, sm_{record.sm}", timed(new, assemble, options.rounds))
    new = partial(with_text, LARGE, half(), TARGET)
    add(f"nvJitLink: {half().name}, {text(LARGE)}, {TARGET}", timed(new, assemble, options.rounds))
    versions = {
        "tilelayout": tilelayout.__version__,
        **{name: version_of(name) for name in ("numba-cuda", "llvmlite")},
    }
    finish(
        result("compile", METHOD.format(rounds=options.rounds), "s", rows, versions=versions), options.json
    )


def version_of(distribution: str) -> str:
    from importlib.metadata import version

    return version(distribution)


if __name__ == "__main__":
    main()
