"""A kernel on a GPU: what a call's arrays decide is found once for each form of them, and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelayout import LayoutError

from ...backends.driver import (
    DeviceArray,
    LoadedKernel,
    MapEncoder,
    ParameterBlock,
    as_device_array,
    check_overlap,
    common_device,
    device,
    load,
    stream_of,
    wait_for,
)
from .built import Built
from .numbers import Extents, grid_size
from .shapes import Shaped

if TYPE_CHECKING:
    from .kernel import GemmKernel

_KEPT = 4096


class Plan:
    """What is known of a call but for addresses, alpha and beta.

    Attributes:
        built, loaded: the kernel.
        extents: of the call.
        grid: CTAs.
    """

    def __init__(self, built: Built, loaded: LoadedKernel, extents: Extents, multiprocessors: int) -> None:
        self.built, self.loaded, self.extents = built, loaded, extents
        self.block = ParameterBlock(built.program)
        self.values = built.values(extents, 1.0, 0.0)
        self.grid = (grid_size(built.config, self.values["tiles"], multiprocessors), 1, 1)
        self.encoders = tuple([MapEncoder(m) for m in built.program.maps])
        self.tensors = tuple([b.name for b in built.program.buffers if b.space == "global"])
        self._numbers: dict[tuple[float, float], tuple[Any, ...]] = {}

    def start(self, pointers: dict[str, int], alpha: float, beta: float, stream: int) -> None:
        """Launch."""
        numbers = self._numbers.get((alpha, beta))
        if numbers is None:
            if len(self._numbers) > _KEPT:
                self._numbers.clear()
            numbers = self.built.ordered({**self.values, "alpha": alpha, "beta": beta})
            self._numbers[alpha, beta] = numbers
        frame = self.block.frame()
        maps = tuple([e(pointers[e.tensor.buffer.name], self.values) for e in self.encoders])
        frame.fill(tuple([pointers[name] for name in self.tensors]), numbers, maps)
        self.loaded.launch(self.grid, self.built.threads, frame.arguments, stream)


def launch(
    kernel: GemmKernel,
    A: Any,
    B: Any,
    D: Any,
    C: Any,
    bias: Any,
    alpha: float,
    beta: float | None,
    stream: Any,
) -> Any:
    """See `GemmKernel.__call__`."""
    p = kernel.problem
    has_c, beta = kernel.check_operands(C, bias, beta)
    rank = 3 if p.batched else 2
    a, b = (p.A, p.B) if not kernel.transposed else (p.B, p.A)
    arrays = [as_device_array(A, "A", a.dtype, rank=rank), as_device_array(B, "B", b.dtype, rank=rank)]
    if has_c and p.C is not None:
        arrays.append(as_device_array(C, "C", p.C.dtype, rank=rank))
    if bias is not None:
        arrays.append(as_device_array(bias, "bias", p.D.dtype, rank=1))
    if D is None:
        D = new_array(A, arrays, p.D.dtype, "column" if kernel.transposed else "row")
    out = as_device_array(D, "D", p.D.dtype, rank=rank, written=True)
    where = [*arrays, out]
    aligned = tuple([x.pointer & 15 for x in where])
    key = (*[x.form for x in where], aligned, where[0].device, has_c, alpha == 0, alpha == 1)
    plan = kernel._plans.get(key)
    if plan is None:
        common_device(where)
        if len(kernel._plans) >= _KEPT:
            kernel._plans.clear()
        plan = kernel._plans[key] = _plan(kernel, where, alpha, has_c)
    elif any(x.device != out.device for x in arrays):
        common_device(where)
    if plan is EMPTY:
        return D
    check_overlap(out, arrays)
    handle = stream_of(where, stream)
    wait_for(where, handle)
    names = kernel.own_names
    plan.start({names[x.role]: x.pointer for x in where}, alpha, beta, handle)
    return D


EMPTY = object()
"""The plan of a call whose result has no element."""


def _plan(kernel: GemmKernel, arrays: list[DeviceArray], alpha: float, has_c: bool) -> Any:
    gpu = device(arrays[0].device)
    if gpu.target.sm != kernel.target.sm:
        raise LayoutError(
            "gemm",
            f"the kernel is for {kernel.target}, {gpu.name} is {gpu.target}",
            "make it for that target",
        )
    given = kernel.internal({x.role: _shaped(x) for x in arrays})
    built, found = kernel.for_call(given, alpha, has_c, gpu.multiprocessors)
    if found.empty:
        return EMPTY
    loaded = load(built.cubin.data, built.program.name, built.shared_memory.dynamic, gpu.ordinal)
    return Plan(built, loaded, found, gpu.multiprocessors)


def _shaped(x: DeviceArray) -> Shaped:
    return Shaped(x.shape, tuple([s // x.form.width for s in x.strides]), x.pointer)


def new_array(like: Any, arrays: list[DeviceArray], kind: str, order: str) -> Any:
    """An array for the result, of A's library, on its GPU.

    Errors: LayoutError for a library that is not known here, or that lacks the type.
    """
    a, b = arrays[:2]
    shape = (a.shape[-2], b.shape[-1])
    if len(a.shape) == 3:
        shape = (max(a.shape[0], b.shape[0]), *shape)
    name = "float32" if kind == "tfloat32" else kind
    made_as = (*shape[:-2], shape[-1], shape[-2]) if order == "column" else shape
    library = type(like).__module__.partition(".")[0]
    made: Any = None
    if library == "torch":
        import torch  # type: ignore[import-not-found]

        made = like.new_empty(made_as, dtype=getattr(torch, name))
    elif library == "cupy" and name in ("float16", "float32", "float64", "int32", "int8"):
        import cupy  # type: ignore[import-not-found]

        made = cupy.empty(made_as, name)
    elif library == "numba" and name in ("float16", "float32", "float64", "int32", "int8"):
        from ...backends.numba_cuda import device_array

        made = device_array(made_as, name)
    if made is None:
        raise LayoutError("gemm", f"no array of {kind} is made for {type(like).__module__}", "pass D")
    return made.swapaxes(-1, -2) if order == "column" else made
