"""A kernel on a GPU: what a call's arrays decide is found once for each form of them, and kept."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilelayout import LayoutError

from ...backends.driver import (
    Deferred,
    Device,
    Frame,
    MapEncoder,
    Operand,
    Operands,
    ParameterBlock,
    Prepared,
    as_device_array,
    device,
    load,
)
from ...backends.driver.operands import Known, Taken
from ...backends.driver.readers import is_torch, read
from ...backends.driver.sight import kinds_of, pointers_of
from .built import Built
from .numbers import Extents, grid_size
from .shapes import Shaped, broadcast

if TYPE_CHECKING:
    from .kernel import GemmKernel

_KEPT = 4096
_SPACES = 64
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
        frame = self.block.frame()
        if not alpha or frame.filled != (pointers, alpha, beta):
            self._fill(frame, pointers, alpha, beta)
            frame.filled = (pointers, alpha, beta)
        self.loaded.launch(self.grid, self.threads, frame.arguments, stream)

    def _fill(self, frame: Frame, pointers: tuple[int, ...], alpha: float, beta: float) -> None:
        # 0.0 and -0.0 are one key; beta is 0.0 wherever there is no C.
        numbers = self._numbers.get((alpha, beta)) if alpha else None
        if numbers is None:
            if len(self._numbers) > _KEPT:
                self._numbers.clear()
            numbers = self.built.ordered({**self.values, "alpha": alpha, "beta": beta})
            self._numbers[alpha, beta] = numbers
        maps = tuple([encoded[pointers[i]] for i, encoded in self.maps])
        frame.fill(tuple([pointers[i] for i in self.order]), numbers, maps)

    def prepared(
        self, pointers: tuple[int, ...], alpha: float, beta: float, stream: int
    ) -> Prepared | Deferred:
        """What launches as `start` does, each time it is started."""
        frame = Frame(self.block)
        self._fill(frame, pointers, alpha, beta)
        return self.loaded.prepare(self.grid, self.threads, frame, stream)

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


class InParts(dict[int, tuple[Any, Any]]):
    """Both launches of a product whose K is divided, by the address of the parts: their memory is of the call alone."""

    def __init__(
        self,
        plan: Plan,
        second: tuple[Plan, int],
        kind: str,
        launch: tuple[tuple[int, ...], float, float, int],
    ) -> None:
        super().__init__()
        self._first, self._kind, self._launch = plan, kind, launch
        self._second, self._size = second

    def start(self, like: Any) -> None:
        """Launch, with parts in memory of an array's library."""
        space = scratch_array(like, self._kind, self._size)
        first, second = self[read(space, "parts", None)[0]]
        first.start()
        second.start()

    def __missing__(self, parts: int) -> tuple[Any, Any]:
        pointers, alpha, beta, stream = self._launch
        if len(self) >= _SPACES:
            self.clear()
        both = (self._first, self._second)
        found = tuple([plan.prepared((*pointers, parts), alpha, beta, stream) for plan in both])
        self[parts] = found  # type: ignore[assignment]
        return found  # type: ignore[return-value]


class Alike:
    """Launches of arrays that differ in their addresses alone."""

    def __init__(
        self,
        kernel: GemmKernel,
        names: list[str],
        known: Known,
        at: tuple[int, int],
        numbers: tuple[float, float],
    ) -> None:
        self.kernel, self.names, self.known = kernel, names, known
        self.device, self.stream = at
        self.numbers = numbers
        self.aligned: Any = None  # the plan of arrays whose addresses are all well aligned

    def start(self, key: Any, pointers: tuple[int, ...], A: Any) -> bool:
        """Launch on arrays that may be taken; not where the result has no element.

        The second time it is made ready, and the kernel finds it by `key` from then on: making it ready takes as long
        as several launches.
        """
        plans, numbers = self.kernel.plans, (*self.numbers, self.stream)
        plan = self._plan(pointers)
        if plan is EMPTY:
            return False
        if key not in plans.once:
            if len(plans.once) >= _KEPT:
                plans.once.clear()
            plans.once.add(key)
            start(self.kernel, plan, pointers, A, *numbers)
            return True
        if plan.then is None:
            found = plan.prepared(pointers, *numbers)
        else:
            found = InParts(plan, plan.then, self.kernel.problem.accumulator, (pointers, *numbers))
        if len(plans.ready) >= _KEPT:
            plans.ready.clear()
        plans.ready[key] = found
        found.start(A)
        return True

    def _plan(self, pointers: tuple[int, ...]) -> Any:
        bits = 0
        for pointer in pointers:
            bits |= pointer
        if self.aligned is not None and not bits & _ALIGNED:  # nearly always
            return self.aligned
        taken = Taken(pointers, self.known.forms, self.device, self.stream, ())
        plan = planned(self.kernel, self.names, taken, self.numbers[0], "C" in self.names)
        if not bits & _ALIGNED:
            self.aligned = plan
        return plan


def start(
    kernel: GemmKernel, plan: Plan, pointers: tuple[int, ...], A: Any, alpha: float, beta: float, stream: int
) -> None:
    """Launch a plan, with memory for parts of K where it has such."""
    if plan.then is None:
        plan.start(pointers, alpha, beta, stream)
    else:
        space = scratch_array(A, kernel.problem.accumulator, plan.then[1])
        plan.start_all(pointers, read(space, "parts", None)[0], alpha, beta, stream)


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
    key: Any = None,
) -> Any:
    """See `GemmKernel.__call__`; `key` is what it looks up, where all that decides the launch is in it."""
    if key is not None:
        seen, pointers = key[0], pointers_of(key[0])
        alike = kernel.plans.alike.get((kinds_of(seen), seen[-2:], *key[1:]))
        # Addresses that have to be looked at, and were, are among those of the first time.
        if (
            alike is not None
            and (not alike.known.near(pointers) or key in kernel.plans.once)
            and alike.start(key, pointers, A)
        ):
            return D
    has_c, factor = kernel.check_operands(C, bias, beta, alpha)
    if D is None:
        return kernel(A, B, new_array(kernel, A, B), C=C, bias=bias, alpha=alpha, beta=beta, stream=stream)
    names, reader = kernel.operands(has_c)
    given = {"A": A, "B": B, "C": C, "bias": bias, "D": D}
    taken = reader.take(tuple([given[name] for name in names]), stream)
    plan = planned(kernel, names, taken, alpha, has_c)
    if plan is EMPTY:
        return D
    start(kernel, plan, taken.pointers, A, alpha, factor, taken.stream)
    if key is not None:
        remember(kernel, names, reader, key, (alpha, factor))
    return D


def remember(
    kernel: GemmKernel, names: list[str], reader: Operands, key: Any, numbers: tuple[float, float]
) -> None:
    """That such a call was launched: the next of its kind needs no more than its addresses looked at."""
    seen, plans = key[0], kernel.plans
    known = reader.known(kinds_of(seen))
    # What is seen does not tell whether torch negates an array; of a C that is not read, nothing is known.
    if known is None or known.negated:
        return
    if len(plans.alike) >= _KEPT:
        plans.alike.clear()
    if len(plans.once) >= _KEPT:
        plans.once.clear()
    plans.alike[kinds_of(seen), seen[-2:], *key[1:]] = Alike(kernel, names, known, seen[-2:], numbers)
    plans.once.add(key)


def planned(kernel: GemmKernel, names: list[str], taken: Taken, alpha: float, has_c: bool) -> Any:
    """The plan of a call, made where there is none yet."""
    low = 0
    for pointer in taken.pointers:
        low = low << 4 | pointer & _ALIGNED
    key = (taken.forms, low, taken.device, has_c, alpha in (0, 1) and alpha + 1)
    plan = kernel.plans.get(key)
    if plan is None:
        if len(kernel.plans) >= _KEPT:
            kernel.plans.clear()
        plan = kernel.plans[key] = plan_of(kernel, names, taken, alpha, has_c)
    return plan


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


def scratch_array(like: Any, kind: str, shape: int | tuple[int, ...]) -> Any:
    """A row-major array of whatever it holds, of the library of another array, on its GPU.

    Errors: LayoutError for a library that is not known here, or that lacks the type.
    """
    name = "float32" if kind == "tfloat32" else kind
    shape = (shape,) if isinstance(shape, int) else shape
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


_COMMON = ("float16", "float32", "float64", "int32", "int8")
"""Element types that cupy and numba have."""
