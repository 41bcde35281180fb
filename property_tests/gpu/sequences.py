"""Rows for kernels of several calls: copies to and from shared memory around a gemm, as PTX and as CUDA C++.

Small integers, so every sum is exact in any order and each bit must be the reference machine's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from cuda.bindings import driver

from lowering import Tile, copy, lower
from lowering.backends.assemble import assemble, compile_cuda
from lowering.backends.cuda_program import cuda_program
from lowering.backends.memory import Memory, collect_memory, fill_memory
from lowering.backends.ptx import ptx_module
from lowering.backends.reference import run_tiles
from lowering.backends.shared_memory import SharedMemory
from lowering.compose import BARRIER, Sequence, sequence
from lowering.target import Target, target
from tilelayout import S, TileLayout, laneid

from ..sequence_cases import RECORD, column_major, inputs, row_major, staged_gemm

DYNAMIC = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def checked(result: tuple[Any, ...]) -> Any:
    """What a driver call gives; RuntimeError where it fails."""
    status, *rest = result
    if int(status):
        raise RuntimeError(f"the driver says {status}")
    return rest[0] if rest else None


def launched(cubin: bytes, kernel: Sequence, memory: dict[Any, Memory]) -> None:
    """One CTA of the kernel on its global buffers, whose data it changes in place.  A context must be current."""
    module = checked(driver.cuModuleLoadData(cubin))
    function = checked(driver.cuModuleGetFunction(module, kernel.program.name.encode()))
    dynamic = SharedMemory.of(kernel.program).dynamic
    if dynamic:
        checked(driver.cuFuncSetAttribute(function, DYNAMIC, dynamic))
    held = [np.ascontiguousarray(store.data).view(np.uint8) for store in memory.values()]
    pointers = np.array([int(checked(driver.cuMemAlloc(x.nbytes))) for x in held], np.uint64)
    for x, pointer in zip(held, pointers, strict=True):
        checked(driver.cuMemcpyHtoD(int(pointer), x.ctypes.data, x.nbytes))
    arguments = np.array([pointers[i : i + 1].ctypes.data for i in range(len(held))], np.uint64)
    checked(
        driver.cuLaunchKernel(function, 1, 1, 1, kernel.threads, 1, 1, dynamic, 0, arguments.ctypes.data, 0)
    )
    checked(driver.cuCtxSynchronize())
    for x, pointer, store in zip(held, pointers, memory.values(), strict=True):
        checked(driver.cuMemcpyDtoH(x.ctypes.data, int(pointer), x.nbytes))
        store.data[...] = x.view(store.data.dtype)
        store.written[...] = True
        checked(driver.cuMemFree(int(pointer)))
    checked(driver.cuModuleUnload(module))


def run_kernel(kernel: Sequence, where: Target, text: str, out: str) -> dict[str, Any]:
    """Every bit of the tile `out` as on the reference machine; other tensors as they were."""
    ptx = (
        ptx_module(kernel.program, where)
        if text == "PTX"
        else compile_cuda(cuda_program(kernel.program), where)
    )
    arrays = {name: x for name, x in inputs(kernel).items() if name != out}
    wanted = run_tiles(kernel.program, kernel.tiles, arrays, kernel.warp_axis)
    memory = {b: Memory.empty(b) for b in kernel.program.buffers if b.space == "global"}
    for b, store in memory.items():
        if b.role in arrays:
            fill_memory(store, b, kernel.tiles[b.role], arrays[b.role])
    launched(assemble(ptx, where, allow_spills=True).data, kernel, memory)
    for b, store in memory.items():
        found = collect_memory(store, b, kernel.tiles[b.role])
        if found.tobytes() != wanted[b.role].tobytes():
            equal = float((found.astype(np.float64) == wanted[b.role].astype(np.float64)).mean())
            raise ValueError(f"{equal:.3f} of {b.role} are as on the reference machine")
    return {"bit_equal": 1.0}


def through_float_registers(where: Target) -> Sequence:
    """float32 to shared memory by stmatrix and back by ldmatrix; out and in again transposed, element by element."""
    shape = (16, 8)
    layout = TileLayout(S[(2, 8, 2, 4) : (1, 4 @ laneid, 2, 1 @ laneid)])
    held, again = (Tile(name, shape, "float32", layout) for name in ("held", "again"))
    stage = Tile("stage", shape, "float32", row_major(shape), "shared")
    turned = Tile("turned", shape, "float32", column_major(shape, 3), "shared")
    gA, gD = (Tile(name, shape, "float32", row_major(shape), "global") for name in ("gA", "gD"))
    moved = Tile("moved", shape, "float32", layout)
    calls = [copy(held, gA), copy(stage, held), None, copy(again, stage), copy(turned, again), None,
             copy(moved, turned), copy(gD, moved)]  # fmt: skip
    return sequence([BARRIER if c is None else lower(c, target=where, scope="warp") for c in calls])


def kernels(where: Target) -> Iterator[tuple[str, Sequence]]:
    """(name, kernel): widths of elements, forms of ldmatrix, vectors, gathers, dynamic shared memory."""
    for name, K in (
        ("m16n8k16.f16", 64), ("m16n8k16.bf16", 64), ("m16n8k8.f16", 64), ("m16n8k8.tf32", 64), ("m16n8k32.s8", 128),
        ("m16n8k32.e4m3", 128), ("m16n8k64.s4", 128), ("m16n8k16.f64", 16),
    ):  # fmt: skip
        if not RECORD[name].instruction.refusal(where):
            yield name, staged_gemm(name, sizes=(64, 64, K), where=where.name)
    for stage in (row_major((64, 64)), row_major((64, 64)).swizzle(3, 3, 3), column_major((64, 64), 8),
                  column_major((64, 64)).swizzle(3, 3, 3), row_major((64, 64), 1)):  # fmt: skip
        yield (
            f"f16 stage {stage}",
            staged_gemm(sizes=(64, 64, 64), where=where.name, a_stage=stage, b_stage=stage),
        )
    yield "dynamic shared memory", staged_gemm(sizes=(128, 128, 128), warps=(4, 2), where=where.name)
    yield "float registers as matrices", through_float_registers(where)


def rows(where: Target) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """(name, what to run)."""
    for name, kernel in kernels(where):
        for text in ("PTX", "CUDA C++"):
            yield f"sequence, {text}: {name}", lambda k=kernel, t=text: run_kernel(k, where, t, "gD")


def main() -> int:
    """These rows alone, without numba: ``python -m property_tests.gpu.sequences``."""
    checked(driver.cuInit(0))
    device = checked(driver.cuDeviceGet(0))
    checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(device))))
    kinds = driver.CUdevice_attribute
    major, minor = (
        checked(driver.cuDeviceGetAttribute(x, device))
        for x in (
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )
    wrong = 0
    for name, run in rows(target(f"sm_{major}{minor}")):
        try:
            run()
        except Exception as error:  # noqa: BLE001  # a failing row must not hide the others
            wrong += 1
            print(f"WRONG  {name}  {type(error).__name__}: {error}", flush=True)
        else:
            print(f"right  {name}", flush=True)
    print(f"{wrong} wrong")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
