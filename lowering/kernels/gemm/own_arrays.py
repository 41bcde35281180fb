"""Arrays that a launch makes, of the library of the arrays that it is given."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tilelayout import LayoutError

from ...backends.driver import as_device_array
from ...backends.driver.readers import is_torch
from ...backends.driver.scratch import StreamMemory
from ...backends.driver.streams import torch_stream
from .shapes import broadcast

if TYPE_CHECKING:
    from .kernel import GemmKernel


def new_array(kernel: GemmKernel, A: Any, B: Any) -> Any:
    """An array for the result, of A's library, on its GPU.

    Errors: LayoutError for a library that is not known here, or that lacks the type.
    """
    rank = 3 if kernel.problem.batched else 2
    if is_torch(A.__class__) and is_torch(B.__class__) and len(A.shape) == len(B.shape) == rank:
        a, b = A.shape, B.shape  # what else they are is looked at by the launch
    else:
        factors = ("A", A, kernel.own_names["A"]), ("B", B, kernel.own_names["B"])
        kinds = {m.name: m.dtype for m in (kernel.problem.A, kernel.problem.B)}
        a, b = (as_device_array(x, role, kinds[own], rank=rank).shape for role, x, own in factors)
    shape = (a[-2], b[-1])
    if rank == 3:
        shape = (broadcast(a[0], b[0]), *shape)
    made_as = (*shape[:-2], shape[-1], shape[-2]) if kernel.transposed else shape
    made = scratch_array(A, kernel.problem.D.dtype, made_as)
    return made.swapaxes(-1, -2) if kernel.transposed else made


def scratch_array(like: Any, kind: str, shape: tuple[int, ...]) -> Any:
    """A row-major array of whatever it holds, of the library of another array, on its GPU.

    Errors: LayoutError for a library that is not known here, or that lacks the type.
    """
    name = "float32" if kind == "tfloat32" else kind
    if is_torch(like.__class__):
        return like.new_empty(shape, dtype=getattr(sys.modules["torch"], name))
    library = type(like).__module__.partition(".")[0]
    if library == "cupy" and name in _COMMON:
        import cupy  # type: ignore[import-not-found]

        return cupy.empty(shape, name)
    if library == "numba" and name in _COMMON:
        from ...backends.numba_cuda.gpu import new_array as numba_array

        return numba_array(shape, name)
    raise LayoutError("gemm", f"no array of {kind} is made for {type(like).__module__}", "pass D")


def own_room(like: Any, count: int, stream: int, ordinal: int) -> tuple[int, Any]:
    """The address of so many bytes on a GPU, and what must be held until all that uses them is on the stream.

    They are of the library of another array, whose allocator gives them to others behind what is on the stream that was
    current when it gave them: one that the caller named is made current for that.  Of a library that is not known here
    they are the driver's.
    """
    held: Any
    if is_torch(like.__class__):
        torch = sys.modules["torch"]
        if torch_stream()(ordinal) == stream:
            held = like.new_empty((count,), dtype=torch.int8)
        else:
            named = torch.cuda.ExternalStream(stream, like.device) if stream else None
            with torch.cuda.stream(named or torch.cuda.default_stream(like.device)):
                held = like.new_empty((count,), dtype=torch.int8)
        return held.data_ptr(), held
    if type(like).__module__.partition(".")[0] == "cupy":
        import cupy  # type: ignore[import-not-found]

        with cupy.cuda.Device(ordinal), cupy.cuda.ExternalStream(stream):
            held = cupy.empty((count,), "int8")
        return held.data.ptr, held
    held = StreamMemory(count, stream, ordinal)
    return held.pointer, held


_COMMON = ("float16", "float32", "float64", "int32", "int8")
"""Element types that cupy and numba have."""
