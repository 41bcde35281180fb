"""What stands around whole kernels, on the GPU: their CUDA C++ text, `matmul`, tuning, the room that `explain` gives.

python -m property_tests.gpu.gemm_tools
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lowering import matmul
from lowering.backends.assemble import assemble_cuda
from lowering.backends.cuda_program import cuda_program
from lowering.backends.driver import device, load
from lowering.kernels import Config, gemm
from lowering.kernels.gemm import tune as tune_room
from lowering.kernels.gemm.built import Built
from lowering.kernels.gemm.occupancy import occupancy

Row = tuple[str, Callable[[], dict[str, Any]]]

TMA = Config((128, 128, 64), (2, 2), 4, "tma", 2, 8, 1, 1, 2)
COPIES = Config((128, 128, 64), (2, 4), 3, "cp_async")
THREADS = Config((64, 64, 64), (2, 2), 2, "registers")


def random(*shape: int, kind: str = "float16", order: str = "row") -> Any:
    """Normal numbers on the GPU, in either order of the last two dimensions."""
    import torch

    made = shape if order == "row" else (*shape[:-2], shape[-1], shape[-2])
    x = torch.randn(made, device="cuda", generator=torch.Generator("cuda").manual_seed(sum(shape)))
    return x.to(getattr(torch, kind)) if order == "row" else x.to(getattr(torch, kind)).transpose(-1, -2)


def close(found: Any, wanted: Any, share: float = 2e-3) -> dict[str, Any]:
    """ValueError unless two results differ by less than a share of the norm."""
    error = float((found.double() - wanted.double()).norm() / wanted.double().norm())
    if not error < share:
        raise ValueError(f"off by {error:.3g} of the norm")
    return {"error": error}


# --- CUDA C++ text --------------------------------------------------------------------------------


def _by_cuda(built: Built) -> Any:
    return assemble_cuda(cuda_program(built.program), built.target, allow_spills=True)


def cuda_text(dtype: str = "float16", **how: Any) -> dict[str, Any]:
    """The compiled text gives what the PTX gives, bit by bit, at whole tiles and beyond the rims."""
    import torch

    kind = "float32" if dtype == "tfloat32" else dtype
    for m, n, k in ((256, 256, 256), (200, 136, 72), (1000, 1048, 520)):
        a, b = random(m, k, kind=kind), random(k, n, kind=kind, order=how.get("B", "row"))
        more: dict[str, Any] = {}
        if "bias" in how:
            more["bias"] = random(1, n, kind=kind)[0]
        if "C" in how:
            more |= {"C": random(m, n, kind=kind), "beta": 0.5, "alpha": 2.0}
        wanted = gemm(dtype, **how)(a, b, **more)
        with patch.object(Built, "cubin", property(_by_cuda)):
            found = gemm(dtype, **how)(a, b, **more)
        torch.cuda.synchronize()
        if not torch.equal(found, wanted):
            raise ValueError(f"{m} x {n} x {k}: {int((found != wanted).sum())} elements differ")
    return {}


# --- matmul ---------------------------------------------------------------------------------------


def products() -> dict[str, Any]:
    """Every order of both factors and the result, whole and sliced arrays, edges of one."""
    import torch

    worst = 0.0
    for m, n, k in ((256, 128, 192), (1, 256, 64), (96, 1, 64), (33, 45, 57), (1, 1, 8)):
        for a_order in ("row", "column"):
            for b_order in ("row", "column"):
                for d_order in ("row", "column", ""):
                    a, b = random(m, k, order=a_order), random(k, n, order=b_order)
                    out = random(m, n, order=d_order) if d_order else None
                    found = matmul(a, b, out)
                    if out is not None and found.data_ptr() != out.data_ptr():
                        raise ValueError("the result is another array than out")
                    worst = max(worst, close(found, a.float() @ b.float())["error"])
    wide = random(300, 300)
    part = wide[7:107, 3:67]
    worst = max(worst, close(matmul(part, part.T), part.float() @ part.float().T)["error"])
    torch.cuda.synchronize()
    return {"error": worst}


def epilogues() -> dict[str, Any]:
    """C in place, both biases, a function, numbers, batches with a matrix, tfloat32, bytes that are floats."""
    import torch

    a, b, c = random(128, 64), random(64, 96, order="column"), random(128, 96)
    wanted = 2 * (a.float() @ b.float()) + 0.5 * c.float()
    row, column = random(1, 96)[0], random(128, 1)
    close(matmul(a, b, C=c, alpha=2.0, beta=0.5, bias=row), wanted + row.float())
    close(matmul(a, b, C=c, alpha=2.0, beta=0.5, bias=column), wanted + column.float())
    close(matmul(a, b, epilogue=relu), (a.float() @ b.float()).relu())
    close(matmul(a, b, c, C=c, alpha=2.0, beta=0.5), wanted)
    many = random(3, 64, 96)
    close(matmul(a, many), a.float() @ many.float())
    close(matmul(many.transpose(-1, -2), b), many.float().transpose(-1, -2) @ b.float())
    x, y = random(64, 64, kind="float32"), random(64, 64, kind="float32")
    close(matmul(x, y, dtype="tfloat32"), x @ y)
    one = torch.full((64, 64), 0x38, device="cuda", dtype=torch.uint8)  # 1.0 of float8_e4m3fn
    close(matmul(one, one, dtype="float8_e4m3fn"), torch.full((64, 64), 64.0, device="cuda"))
    return {}


def relu(x: float) -> float:
    return max(x, 0.0)


# --- tuning and room ------------------------------------------------------------------------------


@contextmanager
def own_cache() -> Generator[None]:
    """Nothing remembered, and nothing left behind."""
    before = os.environ.get("TILELAYOUT_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TILELAYOUT_CACHE_DIR"] = folder
        tune_room._lookup.cache_clear()
        try:
            yield
        finally:
            tune_room._lookup.cache_clear()
            if before is None:
                del os.environ["TILELAYOUT_CACHE_DIR"]
            else:
                os.environ["TILELAYOUT_CACHE_DIR"] = before


def tuning() -> dict[str, Any]:
    """Given configurations are measured, a wrong one is none, the fastest is taken by the next call."""
    a, b = random(1024, 1024), random(1024, 1024, order="column")
    c = random(1024, 1024)
    kept = c.clone()
    tried = [TMA, replace(TMA, tile=(64, 64, 64)), COPIES, replace(TMA, stages=63, unroll=1)]
    with own_cache():
        kernel = gemm("float16", B="column", C="row")
        found = kernel.tune(a, b, c, C=c, configs=tried, seconds=1.0)
        if set(found.times) != {*tried[:3]}:
            raise ValueError(f"measured {found}")
        if not bool((c == kept).all()):
            raise ValueError("the caller's array was written")
        close(kernel(a, b, C=c), a.float() @ b.float() + c.float())
        (plan,) = kernel.plans.values()
        if plan.built.config != found.best:
            raise ValueError(f"the call takes {plan.built.config}, the fastest is {found.best}")
    return {"times": {str(k): t for k, t in found.times.items()}}


def searching() -> dict[str, Any]:
    """A search by itself ends in time, with the fastest first."""
    a, b = random(512, 512), random(512, 512, order="column")
    with own_cache():
        found = gemm("float16", B="column").tune(a, b, seconds=5.0)
    times = list(found.times.values())
    if len(times) < 3 or times != sorted(times):
        raise ValueError(str(found))
    return {"table": str(found)}


def room() -> dict[str, Any]:
    """CTAs of a multiprocessor are as many as the driver says."""
    gpu = device()
    for config in (TMA, COPIES, THREADS, replace(THREADS, tile=(32, 64, 64))):
        built = gemm("float16", B="column", config=config).best
        loaded = load(built.cubin.data, built.program.name, built.shared_memory.dynamic)
        ours = occupancy(gpu.target, built.threads, built.cubin.registers, built.shared_memory.bytes).ctas
        theirs = loaded.blocks_per_multiprocessor(built.threads)
        if ours != theirs:
            raise ValueError(f"{config}: {ours} CTAs, the driver says {theirs}")
    return {}


# --- copies beside the product --------------------------------------------------------------------


def beside() -> dict[str, Any]:
    """Large products of badly aligned factors in every orientation, and several at once, which share the GPU: each
    launch waits for copies that its own CTAs make, however many of these are under way.
    """
    import torch

    m, n, k = 2601, 2999, 2101
    seen: set[str] = set()
    for a, b in [(x, y) for x in ("row", "column") for y in ("row", "column")]:
        for kind, d in (("float16", "row"), ("bfloat16", "column")):
            made = gemm(kind, A=a, B=b, D=d)
            given = random(m, k, kind=kind, order=a), random(k, n, kind=kind, order=b)
            found = torch.full(
                (m, n) if d == "row" else (n, m), torch.nan, dtype=given[0].dtype, device="cuda"
            )
            found = found if d == "row" else found.T
            for _ in range(3):
                made(*given, found)
            close(found, given[0].double() @ given[1].double(), 1e-2)
            seen |= {str(x.config) for x in made._built.values() if x.config.beside}
    if not seen:
        raise ValueError("no configuration copies beside the product")
    made, streams = gemm("float16"), [torch.cuda.Stream() for _ in range(3)]
    sets = [(random(m, k + i), random(k + i, n), torch.empty(m, n, dtype=torch.float16, device="cuda"))
            for i in range(0, 6, 2)]  # fmt: skip
    torch.cuda.synchronize()
    for _ in range(20):
        for stream, x in zip(streams, sets, strict=True):
            with torch.cuda.stream(stream):
                made(*x)
    torch.cuda.synchronize()
    for a, b, d in sets:
        close(d, a.double() @ b.double())
    return {"configurations": len(seen)}


def rows() -> list[Row]:
    """(name, what to run)."""
    texts: list[tuple[str, str, dict[str, Any]]] = [
        ("tma", "float16", {"B": "column", "config": TMA}),
        ("tma, C and bias", "float16", {"C": "row", "bias": "row", "config": replace(TMA, slots=0)}),
        ("cp.async", "bfloat16", {"B": "column", "config": COPIES}),
        ("registers", "tfloat32", {"config": replace(THREADS, tile=(64, 64, 32))}),
    ]
    return [
        *[
            (f"CUDA text of a gemm, {name}", lambda d=d, how=how: cuda_text(d, **how))
            for name, d, how in texts
        ],
        ("matmul: orders", products),
        ("matmul: epilogues", epilogues),
        ("copies beside the product", beside),
        ("tuning: given", tuning),
        ("tuning: a search", searching),
        ("room on a multiprocessor", room),
    ]


def main() -> int:
    """All rows."""
    wrong = 0
    for name, run in rows():
        try:
            print("right", name, run(), flush=True)
        except Exception as error:  # noqa: BLE001  # the other rows count too
            wrong += 1
            print("WRONG", name, type(error).__name__, error, flush=True)
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
