"""A kernel on a GPU: what a call's arrays decide is found once for each form of them, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilelayout import LayoutError

from ...backends.driver import (
    Device,
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
from .shapes import Shaped, broadcast

if TYPE_CHECKING:
    from .kernel import GemmKernel

_KEPT = 4096
_ALIGNED = 15
"""Bits of an address that decide how wide accesses may be."""


class Plan:
    """What is known of the launch of one kernel but for addresses, alpha and beta.

    Attributes:
        built, loaded: the kernel.
        grid: CTAs.
        then: the plan of the kernel that adds up parts of K, and how many numbers they are; None where there are none.
    """

    def __init__(
        self, built: Built, extents: Extents, gpu: Device, names: Sequence[str], second: bool = False
    ) -> None:
        self.built = built
        shell, dynamic, data = built.kept
        self.loaded = load(data, shell.name, dynamic, gpu.ordinal)
        self.block = ParameterBlock(shell)
        self.values = built.values(extents, 1.0, 0.0)
        self.grid = (grid_size(built.cut, self.values["tiles"], gpu.multiprocessors), 1, 1)
        self.threads = built.threads
        tensors = [b.name for b in shell.buffers]
        names = [*names, "parts"] if second else names
        if built.second is not None:  # what it stores are parts
            names = [{"D": "own D", "parts": "D"}.get(n, n) for n in (*names, "parts")]
        self.order = tuple([names.index(t) for t in tensors])
        self.maps = tuple(
            [(names.index(m.buffer.name), MapEncoder(m).bound(self.values)) for m in shell.maps]
        )
        self.then: tuple[Plan, int] | None = None
        if built.second is not None:
            names = [{"own D": "D", "D": "parts"}.get(n, n) for n in names[:-1]]
            size = self.values["batch_d"] * extents.batches * built.config.splits
            self.then = (Plan(built.second, extents, gpu, names, second=True), size)
        self._numbers: dict[tuple[float, float], tuple[Any, ...]] = {}

    def start(self, pointers: tuple[int, ...], alpha: float, beta: float, stream: int) -> None:
        """Launch on arrays in the order of the names."""
        # 0.0 and -0.0 are one key; beta is 0.0 wherever there is no C.
        numbers = self._numbers.get((alpha, beta)) if alpha else None
        if numbers is None:
            if len(self._numbers) > _KEPT:
                self._numbers.clear()
            numbers = self.built.ordered({**self.values, "alpha": alpha, "beta": beta})
            self._numbers[alpha, beta] = numbers
        frame = self.block.frame()
        if not alpha or frame.filled != (pointers, alpha, beta):
            maps = tuple([encoded[pointers[i]] for i, encoded in self.maps])
            frame.fill(tuple([pointers[i] for i in self.order]), numbers, maps)
            frame.filled = (pointers, alpha, beta)
        self.loaded.launch(self.grid, self.threads, frame.arguments, stream)

    def start_all(
        self, pointers: tuple[int, ...], parts: int, alpha: float, beta: float, stream: int
    ) -> None:
        """Launch this kernel, and the one that adds up parts of K where there are parts, at that address (else 0)."""
        if self.then is None:
            self.start(pointers, alpha, beta, stream)
            return
        pointers = (*pointers, parts)
        self.start(pointers, alpha, beta, stream)
        self.then[0].start(pointers, alpha, beta, stream)


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
    has_c, beta = kernel.check_operands(C, bias, beta, alpha)
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
        plan = kernel.plans[key] = plan_of(kernel, names, taken, alpha, has_c)
    if plan is EMPTY:
        return D
    if plan.then is None:
        plan.start(pointers, alpha, beta, taken.stream)
    else:
        space = scratch_array(A, kernel.problem.accumulator, plan.then[1])
        parts = as_device_array(space, "parts").pointer
        plan.start_all(pointers, parts, alpha, beta, taken.stream)
    return D


def plan_of(kernel: GemmKernel, names: list[str], taken: Taken, alpha: float, has_c: bool) -> Any:
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
    made: Built | None = None
    while made is None:
        built, found = kernel.for_call(kernel.internal(shaped), alpha, has_c, gpu.multiprocessors)
        if found.empty:
            return EMPTY
        made = kernel.assembled(built)
    return Plan(made, found, gpu, [kernel.own_names[n] for n in names])


def new_array(kernel: GemmKernel, A: Any, B: Any) -> Any:
    """An array for the result, of A's library, on its GPU.

    Errors: LayoutError for a library that is not known here, or that lacks the type.
    """
    kind = kernel.problem.D.dtype
    a, b = as_device_array(A, "A", None), as_device_array(B, "B", None)
    shape = (a.shape[-2], b.shape[-1])
    if len(a.shape) == 3:
        shape = (broadcast(a.shape[0], b.shape[0]), *shape)
    made_as = (*shape[:-2], shape[-1], shape[-2]) if kernel.transposed else shape
    made = scratch_array(A, kind, made_as)
    return made.swapaxes(-1, -2) if kernel.transposed else made


def scratch_array(like: Any, kind: str, shape: int | tuple[int, ...]) -> Any:
    """A row-major array of whatever it holds, of the library of another array, on its GPU.

    Errors: LayoutError for a library that is not known here, or that lacks the type.
    """
    name = "float32" if kind == "tfloat32" else kind
    shape = (shape,) if isinstance(shape, int) else shape
    library = type(like).__module__.partition(".")[0]
    if library == "torch":
        import torch  # type: ignore[import-not-found]

        return like.new_empty(shape, dtype=getattr(torch, name))
    if library == "cupy" and name in _COMMON:
        import cupy  # type: ignore[import-not-found]

        return cupy.empty(shape, name)
    if library == "numba" and name in _COMMON:
        from ...backends.numba_cuda.gpu import new_array as numba_array

        return numba_array(shape, name)
    raise LayoutError("gemm", f"no array of {kind} is made for {type(like).__module__}", "pass D")


_COMMON = ("float16", "float32", "float64", "int32", "int8")
"""Element types that cupy and numba have."""
