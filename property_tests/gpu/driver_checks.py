"""The driver runtime on a GPU: our own cubins on torch, cupy and numba arrays, what a launch costs, what is refused.

    python -m property_tests.gpu.driver_checks

The kernels are written out in `driver_kernels`, so that nothing of the emission is tested along.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from lowering.backends.driver import (
    MapEncoder,
    ParameterBlock,
    as_device_array,
    clock_mhz,
    device,
    driver_version,
    stream_of,
)  # fmt: skip
from lowering.program import Buffer, Parameter, Program, TensorMap
from tilelayout.expr import Var

from .driver_kernels import (
    BOX,
    HEIGHT,
    LARGE,
    LARGE_BYTES,
    SCALE,
    WIDTH,
    N,
    agree,
    box_map,
    expected,
    kernel,
    numbers,
    scale,
    torch_module,
)  # fmt: skip
from .driver_limits import cache_costs, costs, wrong_arrays, wrong_code

Row = tuple[str, Callable[[], dict[str, Any]]]


# --- arrays of each library -------------------------------------------------------------------------------------


def on_torch() -> dict[str, Any]:
    torch, a = torch_module(), numbers()
    d = torch.zeros(N, device="cuda")
    scale(torch.from_numpy(a).cuda(), d)
    return agree(d.cpu().numpy(), expected(a))


def on_a_torch_stream() -> dict[str, Any]:
    """A stream that is current, and one that is given; torch's own work before and after is ordered with ours."""
    torch, a = torch_module(), numbers()
    x, d, e = (torch.zeros(N, device="cuda") for _ in range(3))
    side, other = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        x.copy_(torch.from_numpy(a))
        scale(x, d)
        if stream_of((as_device_array(d, "D"),)) != side.cuda_stream:
            raise ValueError("not on the current stream")
    side.synchronize()
    scale(x, e, other)
    other.synchronize()
    agree(d.cpu().numpy(), expected(a))
    return agree(e.cpu().numpy(), expected(a))


def on_cupy() -> dict[str, Any]:
    import cupy

    a = numbers()
    x, d = cupy.asarray(a), cupy.zeros(N, cupy.float32)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        scale(x, d)
        if stream_of((as_device_array(d, "D"),)) != stream.ptr:
            raise ValueError("not on cupy's current stream")
        return agree(cupy.asnumpy(d), expected(a))


def on_both() -> dict[str, Any]:
    """D of torch and A of cupy, which fills it late on a stream of its own: the launch waits for that."""
    import cupy

    torch, a = torch_module(), numbers()
    d, x = torch.zeros(N, device="cuda"), cupy.zeros(N, cupy.float32)
    spin = cupy.RawKernel('extern "C" __global__ void spin() { long long t = clock64() + 50000000; '
                          "while (clock64() < t); }", "spin")  # fmt: skip
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with cupy.cuda.Stream(non_blocking=True), torch.cuda.stream(side):
        spin((1,), (1,), ())
        x += cupy.asarray(a)
        scale(x, d)
    side.synchronize()
    return agree(d.cpu().numpy(), expected(a))


def on_numba() -> dict[str, Any]:
    from numba import cuda

    a = numbers()
    d = cuda.to_device(np.zeros(N, np.float32))
    scale(cuda.to_device(a), d)
    return agree(d.copy_to_host(), expected(a))


class OnlyDLPack:
    """A tensor that is handed over by DLPack alone."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __dlpack__(self, **options: Any) -> Any:
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


def on_dlpack() -> dict[str, Any]:
    """And nothing is kept: the memory is free again when nobody holds the array."""
    torch, a = torch_module(), numbers()
    d = torch.zeros(N, device="cuda")
    scale(OnlyDLPack(torch.from_numpy(a).cuda()), OnlyDLPack(d))
    agree(d.cpu().numpy(), expected(a))
    before = torch.cuda.memory_allocated()
    held = as_device_array(OnlyDLPack(torch.zeros(1 << 20, device="cuda")), "A")
    if torch.cuda.memory_allocated() < before + (4 << 20):
        raise ValueError("the memory was given back too early")
    del held
    if torch.cuda.memory_allocated() != before:
        raise ValueError("the memory is not given back")
    return {}


def every_type() -> dict[str, Any]:
    torch = torch_module()
    names = ["float64", "float32", "float16", "bfloat16", "int32", "int16", "int8", "uint8", "float8_e4m3fn",
             "float8_e5m2", "float8_e8m0fnu"]  # fmt: skip
    for name in names:
        t = torch.zeros((4, 6), device="cuda").to(getattr(torch, name)).t()
        x = as_device_array(t, "A", name)
        if (x.dtype, x.shape, x.strides) != (name, (6, 4), (t.element_size(), 6 * t.element_size())):
            raise ValueError(f"{name} is read as {x}")
    half = torch.zeros(8, device="cuda", dtype=torch.int16)
    if as_device_array(half, "A", "bfloat16").dtype != "bfloat16":
        raise ValueError("bits of bfloat16 are not taken")
    return {"types": len(names)}


# --- threads, contexts, graphs ------------------------------------------------------------------------------------


def in_a_fresh_thread() -> dict[str, Any]:
    """A thread that has no context yet."""
    torch, a = torch_module(), numbers()
    x, d = torch.from_numpy(a).cuda(), torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    errors: list[Exception] = []

    def run() -> None:
        try:
            scale(x, d)
        except Exception as error:  # noqa: BLE001  # it is raised again by the thread that waits
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    torch.cuda.synchronize()
    return agree(d.cpu().numpy(), expected(a))


def many_threads() -> dict[str, Any]:
    """Each has a parameter block of its own."""
    torch, a = torch_module(), numbers()
    x, out = torch.from_numpy(a).cuda(), torch.zeros((8, N), device="cuda")
    torch.cuda.synchronize()

    def run(i: int) -> None:
        for _ in range(300):
            scale(x, out[i])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    torch.cuda.synchronize()
    return agree(out.cpu().numpy(), np.broadcast_to(expected(a), (8, N)))


def in_a_graph() -> dict[str, Any]:
    """Captured by torch, replayed on other contents."""
    torch, a = torch_module(), numbers()
    x, d = torch.zeros(N, device="cuda"), torch.zeros(N, device="cuda")
    scale(x, d)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale(x, d)
    x.copy_(torch.from_numpy(a))
    graph.replay()
    return agree(d.cpu().numpy(), expected(a))


# --- shared memory and tensor maps --------------------------------------------------------------------------------


def large_shared() -> dict[str, Any]:
    torch = torch_module()
    d = torch.zeros(1, device="cuda", dtype=torch.int32)
    program = Program("large", 1, (), (), (), buffers=(Buffer("D", "D", "int32", (1,)),))
    loaded = kernel(LARGE, "large", LARGE_BYTES)
    frame = ParameterBlock(program, loaded.places).frame()
    loaded.launch((1, 1, 1), 32, frame.fill((d.data_ptr(),)), stream_of((as_device_array(d, "D"),)))
    agree(d.cpu().numpy(), np.array([4711], np.int32))
    blocks = {
        "200 KiB": loaded.blocks_per_multiprocessor(32),
        "none": kernel(SCALE, "scale").blocks_per_multiprocessor(128),
    }
    if blocks != {"200 KiB": 1, "none": 16}:
        raise ValueError(f"CTAs of a multiprocessor: {blocks}")
    return {"registers": loaded.registers, "blocks": blocks}


def tensor_map() -> dict[str, Any]:
    """Boxes inside, across the rims and wholly outside: what is outside is zero.

    Coordinates in the contiguous dimension are multiples of 16 bytes: the copy engine faults on others.
    """
    torch = torch_module()
    rows, columns = 50, 200
    a = np.random.default_rng(2).integers(1, 99, (rows, columns + 8)).astype(np.float16)
    x = torch.from_numpy(a).cuda()
    program = Program("box", 4, (), (), (), buffers=(Buffer("D", "D", "float16", (16, 64)),),
                      parameters=(Parameter("c0", "s32", -999, 999), Parameter("c1", "s32", -999, 999)),
                      maps=(box_map().tensor,))  # fmt: skip
    loaded, encode = kernel(BOX, "box", 4096), box_map()
    parameters = ParameterBlock(program, loaded.places)
    for c0, c1 in ((0, 0), (64, 16), (160, 40), (-16, -3), (192, 48), (304, 0)):
        d = torch.full((16, 64), -1.0, device="cuda", dtype=torch.float16)
        image = encode(x.data_ptr(), {"rows": rows, "columns": columns})
        arguments = parameters.frame().fill((d.data_ptr(),), (c0, c1), (image,))
        loaded.launch((1, 1, 1), 128, arguments, stream_of((as_device_array(d, "D"),)))
        padded = np.zeros((rows + 500, columns + 800), np.float16)
        padded[100 : 100 + rows, 100 : 100 + columns] = a[:, :columns]
        agree(d.cpu().numpy(), padded[100 + c1 : 116 + c1, 100 + c0 : 164 + c0])
    return {"places": loaded.places}


def tensor_map_of_one_row() -> dict[str, Any]:
    """Whatever its stride, a dimension of one element is fine; a batch may be broadcast by a stride of 0."""
    torch = torch_module()
    x = torch.zeros(1 << 16, device="cuda", dtype=torch.float16)
    sizes, strides = (WIDTH, HEIGHT, Var("batch", 1, 99)), (Var("pitch", 0, 1 << 30), Var("step", 0, 1 << 30))
    found = {}
    for dtype, width in (("float16", 2), ("bfloat16", 2), ("float32", 4), ("tfloat32", 4), ("float64", 8), ("int8", 1),
                         ("float8_e4m3fn", 1), ("int32", 4), ("uint16", 2)):  # fmt: skip
        encode = MapEncoder(
            TensorMap("m", Buffer("A", "A", dtype, (0,)), sizes, strides, (16 // width, 8, 1))
        )
        values = {"columns": 64, "rows": 1, "batch": 1, "pitch": 3, "step": 5}
        encode(x.data_ptr(), values)
        found[dtype] = len(encode(x.data_ptr(), {**values, "rows": 8, "pitch": 64, "batch": 3, "step": 0}))
    errors: list[Exception] = []

    def elsewhere() -> None:
        try:
            box_map()(x.data_ptr(), {"rows": 7, "columns": 64})
        except Exception as error:  # noqa: BLE001  # as above
            errors.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return {"types": found}


def what_is_here() -> dict[str, Any]:
    """The device, as torch sees it too."""
    torch, gpu = torch_module(), device()
    properties = torch.cuda.get_device_properties(gpu.ordinal)
    same = {
        "name": (gpu.name, properties.name),
        "capability": (gpu.compute_capability, (properties.major, properties.minor)),
        "multiprocessors": (gpu.multiprocessors, properties.multi_processor_count),
        "shared": (gpu.shared_per_block, properties.shared_memory_per_block_optin),
        "l2": (gpu.l2_bytes, properties.L2_cache_size),
    }
    if any(ours != theirs for ours, theirs in same.values()):
        raise ValueError(str(same))
    clock = clock_mhz()
    if clock is not None and not 100 < clock < 4000:
        raise ValueError(f"a clock of {clock} MHz")
    return {"device": str(gpu), "target": str(gpu.target), "clock": clock, "driver": driver_version()}


ROWS: tuple[Row, ...] = tuple([
    (f"driver: {' '.join(f.__name__.split('_'))}", f)
    for f in (
        what_is_here, on_torch, on_a_torch_stream, on_cupy, on_both, on_numba, on_dlpack, every_type, in_a_fresh_thread,
        many_threads, in_a_graph, large_shared, tensor_map, tensor_map_of_one_row, wrong_arrays, wrong_code,
        cache_costs, costs,
    )
])  # fmt: skip
"""What `python -m property_tests.gpu` runs of this: (name, check)."""


def main() -> int:
    failed = 0
    for name, run in ROWS:
        try:
            print(f"right  {name}  {run()}", flush=True)
        except Exception:  # noqa: BLE001  # a failing row must not hide the others
            failed += 1
            print(f"WRONG  {name}\n{traceback.format_exc()}", flush=True)
    print(f"{len(ROWS) - failed} of {len(ROWS)} rows right")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
