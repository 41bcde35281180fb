"""Rows for the text backends: the cubins of our PTX and of our CUDA C++, launched through the driver.

One record a family, with A and B transposed, so that registers are gathered element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from cuda.bindings import driver
from numba import cuda

from lowering import Lowered
from lowering.backends import numba_cuda
from lowering.backends.arrays import blank, from_memory, to_memory
from lowering.backends.assemble import assemble, compile_cuda
from lowering.isa import MmaInstruction

from .. import record_cases as cases
from . import records


def checked(result: tuple[Any, ...]) -> Any:
    """What a driver call gives; RuntimeError where it fails."""
    status, *rest = result
    if int(status):
        raise RuntimeError(f"the driver says {status}")
    return rest[0] if rest else None


def launched(cubin: bytes, lowered: Lowered, tensors: list[Any]) -> list[Any]:
    """The tensors after one CTA of the kernel, in the order of its buffers."""
    module = checked(driver.cuModuleLoadData(cubin))
    function = checked(driver.cuModuleGetFunction(module, lowered.kernel.name.encode()))
    held = [cuda.to_device(x.view(np.uint8)) for x in tensors]
    pointers = np.array([x.device_ctypes_pointer.value for x in held], np.uint64)
    arguments = np.array([pointers[i : i + 1].ctypes.data for i in range(len(held))], np.uint64)
    threads = lowered.kernel.threads
    checked(driver.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, 0, arguments.ctypes.data, 0))
    checked(driver.cuCtxSynchronize())
    out = [x.copy_to_host().view(t.dtype).reshape(t.shape) for x, t in zip(held, tensors, strict=True)]
    checked(driver.cuModuleUnload(module))
    return out


def run_text(record: MmaInstruction, text: str) -> dict[str, Any]:
    """Every bit as on the reference machine, on any values; inputs as they were."""
    call = cases.call_of(record, transpose_a=True, transpose_b=True)
    target = numba_cuda.gpu_target()
    lowered = cases.lowered_of(record, call, target)
    ptx = lowered.ptx if text == "PTX" else compile_cuda(lowered.cuda, target)
    arrays = cases.any_values(call, np.random.default_rng(13))
    buffers = lowered.kernel.buffers
    element = call.tiles["D"].element
    before = [
        to_memory(
            blank(b.shape, element) if b.role == "D" else arrays[b.role],
            call.tiles[b.role].element,
            b.container,
        )
        for b in buffers
    ]
    after = launched(assemble(ptx, target).data, lowered, before)
    if any(x.tobytes() != y.tobytes() for x, y in zip(before[:-1], after[:-1], strict=True)):
        raise ValueError("an input changed")
    found = from_memory(after[-1], element, buffers[-1].container)
    wanted, numerics = records.reference(lowered, arrays)
    raw = f"u{found.dtype.itemsize}"
    equal = float((found.view(raw) == wanted.view(raw)).mean())
    if record.d in records.STEP:
        return {
            "numerics": numerics,
            "bit_equal": equal,
            "error": records.bounded(record, call, arrays, found),
        }
    if equal < 1:
        raise ValueError(f"{equal:.3f} of the integers are as on the reference machine")
    return {"numerics": numerics, "bit_equal": equal}


def rows() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """(name, what to run)."""
    where = numba_cuda.gpu_target()
    for record in cases.FAMILIES:
        if not record.instruction.refusal(where):
            for text in ("PTX", "CUDA C++"):
                yield f"{text} of {record.name}", lambda r=record, t=text: run_text(r, t)
