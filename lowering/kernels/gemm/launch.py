"""A kernel on a GPU: what a call's arrays decide is found once for each form of them, and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelayout import LayoutError

from ...backends.driver import (
    LoadedKernel,
    MapEncoder,
    Operand,
    Operands,
    ParameterBlock,
    as_device_array,
    device,
    load,
)
from ...backends.driver.operands import Taken
from .built import Built
from .numbers import Extents, grid_size
from .shapes import Shaped

if TYPE_CHECKING:
    from .kernel import GemmKernel

_KEPT = 4096
_ALIGNED = 15
"""Bits of an address that decide how wide accesses may be."""


class Plan:
    """What is known of a call but for addresses, alpha and beta.

    Attributes:
        built, loaded: the kernel.
        extents: of the call.
        grid: CTAs.
    """

    def __init__(
        self, built: Built, loaded: LoadedKernel, extents: Extents, multiprocessors: int, names: list[str]
    ) -> None:
        self.built, self.loaded, self.extents = built, loaded, extents
        self.block = ParameterBlock(built.program)
        self.values = built.values(extents, 1.0, 0.0)
        self.grid = (grid_size(built.config, self.values["tiles"], multiprocessors), 1, 1)
        self.threads = built.threads
        tensors = [b.name for b in built.program.buffers if b.space == "global"]
        self.order = tuple([names.index(t) for t in tensors])
        self.maps = tuple(
            [(names.index(m.buffer.name), MapEncoder(m).bound(self.values)) for m in built.program.maps]
        )
        self._numbers: dict[tuple[float, float], tuple[Any, ...]] = {}

    def start(self, pointers: tuple[int, ...], alpha: float, beta: float, stream: int) -> None:
        """Launch on arrays in the order of the names."""
        numbers = self._numbers.get((alpha, beta)) if alpha and beta else None  # 0.0 and -0.0 are one key
        if numbers is None:
            if len(self._numbers) > _KEPT:
                self._numbers.clear()
            numbers = self.built.ordered({**self.values, "alpha": alpha, "beta": beta})
            self._numbers[alpha, beta] = numbers
        frame = self.block.frame()
        maps = [encoded[pointers[i]] for i, encoded in self.maps]
        frame.fill([pointers[i] for i in self.order], numbers, maps)
        self.loaded.launch(self.grid, self.threads, frame.arguments, stream)


EMPTY = object()
"""The plan of a call whose result has no element."""


def operands(kernel: GemmKernel, has_c: bool) -> tuple[list[str], Operands]:
    """The arrays that a call takes, in order: their names, and what reads them."""
    p = kernel.problem
    rank = 3 if p.batched else 2
    a, b = (p.A, p.B) if not kernel.transposed else (p.B, p.A)
    found = [Operand("A", a.dtype, rank), Operand("B", b.dtype, rank)]
    if has_c and p.C is not None:
        found.append(Operand("C", p.C.dtype, rank))
    if p.bias:
        found.append(Operand("bias", p.D.dtype, 1))
    found.append(Operand("D", p.D.dtype, rank, True))
    return [o.role for o in found], Operands(found)


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
    has_c, beta = kernel.check_operands(C, bias, beta)
    if D is None:
        D = new_array(kernel, A, B)
    names, reader = kernel.operands(has_c)
    given = {"A": A, "B": B, "C": C, "bias": bias, "D": D}
    taken = reader.take(tuple([given[name] for name in names]), stream)
    pointers = taken.pointers
    low = 0
    for pointer in pointers:
        low = low << 4 | pointer & _ALIGNED
    key = (taken.forms, low, taken.device, has_c, alpha in (0, 1) and alpha + 1)
    plan = kernel.plans.get(key)
    if plan is None:
        if len(kernel.plans) >= _KEPT:
            kernel.plans.clear()
        plan = kernel.plans[key] = _plan(kernel, names, taken, alpha, has_c)
    if plan is not EMPTY:
        plan.start(pointers, alpha, beta, taken.stream)
    return D


def _plan(kernel: GemmKernel, names: list[str], taken: Taken, alpha: float, has_c: bool) -> Any:
    gpu = device(taken.device)
    if gpu.target.sm != kernel.target.sm:
        raise LayoutError(
            "gemm",
            f"the kernel is for {kernel.target}, {gpu.name} is {gpu.target}",
            "make it for that target",
        )
    shaped = {
        name: Shaped(form.shape, tuple([s // form.width for s in form.strides]), pointer)
        for name, form, pointer in zip(names, taken.forms, taken.pointers, strict=True)
    }
    built, found = kernel.for_call(kernel.internal(shaped), alpha, has_c, gpu.multiprocessors)
    if found.empty:
        return EMPTY
    loaded = load(built.cubin.data, built.program.name, built.shared_memory.dynamic, gpu.ordinal)
    return Plan(built, loaded, found, gpu.multiprocessors, [kernel.own_names[n] for n in names])


def new_array(kernel: GemmKernel, A: Any, B: Any) -> Any:
    """An array for the result, of A's library, on its GPU.

    Errors: LayoutError for a library that is not known here, or that lacks the type.
    """
    kind = kernel.problem.D.dtype
    a, b = as_device_array(A, "A", None), as_device_array(B, "B", None)
    shape = (a.shape[-2], b.shape[-1])
    if len(a.shape) == 3:
        shape = (max(a.shape[0], b.shape[0]), *shape)
    name = "float32" if kind == "tfloat32" else kind
    made_as = (*shape[:-2], shape[-1], shape[-2]) if kernel.transposed else shape
    library = type(A).__module__.partition(".")[0]
    made: Any = None
    if library == "torch":
        import torch  # type: ignore[import-not-found]

        made = A.new_empty(made_as, dtype=getattr(torch, name))
    elif library == "cupy" and name in _COMMON:
        import cupy  # type: ignore[import-not-found]

        made = cupy.empty(made_as, name)
    elif library == "numba" and name in _COMMON:
        from ...backends.numba_cuda.gpu import new_array as numba_array

        made = numba_array(made_as, name)
    if made is None:
        raise LayoutError("gemm", f"no array of {kind} is made for {type(A).__module__}", "pass D")
    return made.swapaxes(-1, -2) if kernel.transposed else made


_COMMON = ("float16", "float32", "float64", "int32", "int8")
"""Element types that cupy and numba have."""
