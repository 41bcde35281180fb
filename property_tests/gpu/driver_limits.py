"""What the driver runtime refuses on a GPU, and what it costs."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from lowering.backends.assemble import assemble
from lowering.backends.driver import (
    DriverError,
    MapEncoder,
    Operand,
    Operands,
    ParameterBlock,
    as_device_array,
    cached_cubin,
    check_overlap,
    device,
    load,
)
from lowering.target import target
from tilelayout import LayoutError

from .driver_kernels import (
    IDLE_PROGRAM,
    IDLE_TEXT,
    NUMBERS,
    OPERANDS,
    SCALE,
    SIZES,
    N,
    block,
    kernel,
    scale,
    torch_module,
)

# --- what is refused ----------------------------------------------------------------------------------------------


def refused(words: tuple[str, ...], kind: type[Exception], run: Callable[[], Any]) -> str:
    """The message of an error, which says these words."""
    try:
        run()
    except kind as error:
        missing = [w for w in words if w not in str(error)]
        if missing:
            raise ValueError(f"{error} does not say {missing}") from error
        return str(error)
    raise ValueError(f"nothing was refused that should have named {words}")


def wrong_arrays() -> dict[str, Any]:
    torch = torch_module()
    x, d = torch.zeros((64, 64), device="cuda"), torch.zeros((64, 64), device="cuda")
    cases: list[tuple[tuple[str, ...], Callable[[], Any]]] = [
        (("A", "numpy", "simulate"), lambda: as_device_array(np.zeros(4, np.float32), "A")),
        (("A", "CPU", ".cuda()"), lambda: as_device_array(torch.zeros(4), "A")),
        (("B", "float32", "float16"), lambda: as_device_array(x, "B", "float16")),
        (("B", "2 dimensions", "takes 3"), lambda: as_device_array(x, "B", rank=3)),
        (("D", "dimension 0", "zero"), lambda: as_device_array(x[:1].expand(64, 64), "D", written=True)),
        (
            ("A", "negates"),
            lambda: as_device_array(torch.zeros(4, dtype=torch.complex64, device="cuda").conj().imag, "A"),
        ),
        (("A", "sparse"), lambda: as_device_array(x.to_sparse(), "A")),
        (
            ("A", "complex64"),
            lambda: as_device_array(torch.zeros(4, dtype=torch.complex64, device="cuda"), "A"),
        ),
        (
            ("D", "A", "share"),
            lambda: check_overlap(as_device_array(x[:40], "D"), [as_device_array(x[39:], "A")]),
        ),
        (
            ("D", "C", "share"),
            lambda: check_overlap(as_device_array(x[1:], "D"), [as_device_array(x[:-1], "C")]),
        ),
    ]
    said = [refused(words, LayoutError, run) for words, run in cases]
    D = as_device_array(x[:, :32], "D", written=True)
    check_overlap(
        D, [as_device_array(x[:, 32:], "A"), as_device_array(d, "B"), as_device_array(x[:, :32], "C")]
    )
    return {"said": said}


def wrong_code() -> dict[str, Any]:
    """Code of another architecture, no code at all, a name that is not there, too much of everything."""
    text, here = SCALE.format(target=device().target.name), device().target
    data = assemble(text, here).data
    foreign = ("sm_80", "7.0") if here.sm >= 90 else ("sm_120", "8.7")
    other = SCALE.format(target=foreign[0]).replace(".version 8.0", f".version {foreign[1]}")
    other_data = assemble(other, target(foreign[0])).data
    said = [
        refused(
            ("scale", "compute capability", "CUDA_ERROR"), DriverError, lambda: load(other_data, "scale")
        ),
        refused(
            ("scale", "CUDA_ERROR_INVALID_IMAGE"),
            DriverError,
            lambda: load(b"\x7fELF" + bytes(4000), "scale"),
        ),
        refused(("nothing", "CUDA_ERROR_NOT_FOUND"), DriverError, lambda: load(data, "nothing")),
        refused(("500000", "shared memory"), DriverError, lambda: load(data, "scale", 500_000)),
    ]
    loaded = load(data, "scale")
    arguments = block().frame().fill((0, 0), (0, 0.0, 0.0, 0))
    said += [
        refused(
            ("cuLaunchKernel", "2048 threads"), DriverError, lambda: loaded.launch((1, 1, 1), 2048, arguments)
        ),
        refused(
            ("cuLaunchKernel", "0 x 1 x 1"), DriverError, lambda: loaded.launch((0, 1, 1), 128, arguments)
        ),
        refused(("no GPU 99",), DriverError, lambda: device(99)),
    ]
    return {"said": said}


# --- what it costs ------------------------------------------------------------------------------------------------


def microseconds(run: Callable[[], Any], turns: int = 200) -> float:
    """Host time of one call: the median of bursts that the queue of launches holds, after a first one."""
    torch = torch_module()
    found = []
    for _ in range(15):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(turns):
            run()
        found.append((time.perf_counter() - began) / turns * 1e6)
    torch.cuda.synchronize()
    return round(median(found[1:]), 2)


def costs() -> dict[str, Any]:
    """Of a launch alone; of all that a kernel object does, on arrays of each library; of a gemm's parameters."""
    import cupy
    from numba import cuda

    torch = torch_module()
    x, d, side = torch.zeros(N, device="cuda"), torch.zeros(N, device="cuda"), torch.cuda.Stream()
    loaded, frame = kernel(SCALE, "scale"), block().frame()
    pointers = d.data_ptr(), d.data_ptr()
    arguments = frame.fill(pointers, NUMBERS)
    cx, cd = cupy.zeros(N, cupy.float32), cupy.zeros(N, cupy.float32)
    nx, nd = cuda.to_device(np.zeros(N, np.float32)), cuda.to_device(np.zeros(N, np.float32))
    found = {
        "launch": microseconds(lambda: loaded.launch((8, 1, 1), 128, arguments, 0)),
        "fill": microseconds(lambda: frame.fill([*pointers], NUMBERS)),
        "arrays of torch": microseconds(lambda: OPERANDS.take((d, x))),
        "one array of torch": microseconds(lambda: as_device_array(x, "A", "float32", rank=1)),
        "all, torch": microseconds(lambda: scale(x, d)),
        "all, torch, on a given stream": microseconds(lambda: scale(x, d, side)),
        "all, cupy": microseconds(lambda: scale(cx, cd)),
        "all, numba": microseconds(lambda: scale(nx, nd)),
        "as a gemm, torch": microseconds(gemm_like()),
        "torch.add, for comparison": microseconds(lambda: torch.add(x, x, out=d)),
    }
    if found["as a gemm, torch"] > 10 or found["all, torch"] > 10:
        raise ValueError(f"more than 10 microseconds of host time a launch: {found}")
    return {"microseconds": found}


def gemm_like() -> Callable[[], None]:
    """A call with three matrices, twelve numbers and two tensor maps, as a gemm kernel makes it."""
    torch = torch_module()
    a, b, d = (torch.zeros((512, 512), device="cuda", dtype=torch.float16) for _ in range(3))
    operands = Operands(
        [Operand("D", "float16", 2, written=True), Operand("A", "float16", 2), Operand("B", "float16", 2)]
    )
    loaded = kernel(IDLE_TEXT, "idle")
    parameters = ParameterBlock(IDLE_PROGRAM, loaded.places)
    integers = dict.fromkeys(SIZES, 512)
    forms = operands.take((d, a, b)).forms
    plans = {forms: (tuple(integers.values()), *(MapEncoder(m).bound(integers) for m in IDLE_PROGRAM.maps))}

    def run(alpha: float = 1.0, beta: float = 0.0) -> None:
        taken = operands.take((d, a, b))
        numbers, maps_a, maps_b = plans[taken.forms]
        pd, pa, pb = taken.pointers
        maps = maps_a[pa], maps_b[pb]
        arguments = parameters.frame().fill((pa, pb, pd), (*numbers, alpha, beta), maps)
        loaded.launch((132, 1, 1), 128, arguments, taken.stream)

    return run


def cache_costs() -> dict[str, Any]:
    """Machine code from disk is the machine code, and quick."""
    text, here = SCALE.format(target=device().target.name), device().target
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TILELAYOUT_CACHE_DIR"] = folder
        try:
            times = []
            for _ in range(3):
                began = time.perf_counter()
                cubin = cached_cubin(text, here)
                times.append(round(1e3 * (time.perf_counter() - began), 2))
        finally:
            del os.environ["TILELAYOUT_CACHE_DIR"]
    if cubin != assemble(text, here):
        raise ValueError("the cache gave another cubin")
    return {"milliseconds": times}
