"""The numba.cuda backend: programs as device functions on Fragment values, and as whole kernels.

A `DeviceFunction` is used inside a kernel of your own.  It and the helpers beside it are plain names to bind before the
kernel; a fragment is one numba value, however many registers it has::

    from numba import cuda

    gemm = lower(call, target="sm_90a", scope="warp").device_function  # call = gemm(D, A, B, C=D, beta=1.0)
    load_a, load_b = gemm.load_a, gemm.load_b


    @cuda.jit
    def kernel(A, B, D):  # float16 [16, K], float16 [K, 8], float32 [16, 8]; one warp
        d = gemm.zeros_d()
        for k in range(0, A.shape[1], 16):
            d = gemm(load_a(A[:, k : k + 16]), load_b(B[k : k + 16, :]), d)
        d = gemm.set(d, 0, 2 * gemm.get(d, 0))  # float32; slots are constants
        gemm.store(D, d)


    kernel[1, 32](A, B, D)

A lowered copy is a `MemoryFunction`, of arrays that lie as its tiles do: ``stage = load.shared_array()`` and then
``a = load(stage)``; docs/guide/kernels.md puts a whole kernel together from them.

Creating a device function or compiling to PTX touches no driver; only `launch` and a kernel's own launch need one.
All that knows numba and llvmlite stays in this folder: `fragment` is the numba type, `inline_asm` one instruction,
`emit` a program, `index` and `memory` the loads and stores, `elements` the element helpers, `callable` what kernels
call, `function` register programs and `memory_function` copies as such, `memory_arguments` their arrays, `shared`
arrays in shared memory, `waiting` asynchronous groups, `ptx` PTX without a GPU, `gpu` what the driver is asked,
`staged` whole kernels, `scalar` functions of numbers as instructions.
"""

from importlib import import_module

try:
    import_module("numba_cuda")  # numba alone has an older `numba.cuda`, which this backend doesn't know
    import_module("numba.cuda")
except ImportError as error:
    raise ImportError(
        f"the numba.cuda backend needs numba-cuda, which does not load here ({error}): pip install 'tilelayout[cuda]'"
    ) from error

from .elements import get_element, set_element
from .fragment import FragmentType
from .function import DeviceFunction, device_function
from .gpu import DriverError, gpu_name, gpu_target
from .memory_function import MemoryFunction, memory_function
from .ptx import CompileError, compile_ptx
from .scalar import scalar_instruction
from .staged import kernel, kernel_ptx, launch

__all__ = [
    "CompileError",
    "DeviceFunction",
    "DriverError",
    "FragmentType",
    "MemoryFunction",
    "compile_ptx",
    "device_function",
    "get_element",
    "gpu_name",
    "gpu_target",
    "kernel",
    "kernel_ptx",
    "launch",
    "memory_function",
    "scalar_instruction",
    "set_element",
]
