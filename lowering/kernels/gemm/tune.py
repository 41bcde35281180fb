"""Which way of cutting a problem is fastest, measured on the GPU and remembered on disk."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from tilelayout import LayoutError

from ...target import Target
from .config import Config
from .numbers import Extents
from .problem import Problem
from .tuned import Tuned, ordered

if TYPE_CHECKING:
    from .kernel import GemmKernel

FORMAT = 1
"""Of what is remembered; another number forgets all."""


def remembered(problem: Problem, target: Target, found: Extents | None) -> Config | None:
    """What was measured to be fastest for the problem and its extents; None where nothing was."""
    if found is None or not _any():
        return None
    return _lookup(_key(problem, target, found))


def remember(problem: Problem, target: Target, found: Extents, config: Config) -> None:
    """Keep a configuration for the problem and its extents on this device."""
    _results().put(_key(problem, target, found), asdict(config))
    _lookup.cache_clear()
    _any.cache_clear()


def _key(problem: Problem, target: Target, found: Extents) -> tuple[Any, ...]:
    p = replace(problem, function=None)
    what = [
        (m.name, m.dtype, m.order, m.alignment, *([str(m.layout)] if m.layout is not None else []))
        for m in p.matrices
    ]
    return (
        FORMAT, _device_name(), target.name, tuple(what), p.accumulator, p.bias, p.scaled, p.batched,
        problem.function is not None, found.M, found.N, found.K, found.batches,
    )  # fmt: skip


@cache
def _device_name() -> str:
    from ...backends.driver import DriverError, device

    try:
        return device().name
    except (DriverError, ImportError):
        return ""


@cache
def _any() -> bool:
    """Whether there is a GPU: without one nothing was measured here."""
    return bool(_device_name())


@cache
def _lookup(key: tuple[Any, ...]) -> Config | None:
    found = _results().get(key)
    if found is None:
        return None
    try:
        fields: dict[str, Any] = {**found, "tile": tuple(found["tile"]), "warps": tuple(found["warps"])}
        return Config(**fields)
    except (TypeError, KeyError, LayoutError):  # of another version
        return None


def _results() -> Any:
    from ...backends.driver import Results

    return Results("gemm")


# --- measuring --------------------------------------------------------------------------------------------


def tune(
    kernel: GemmKernel,
    given: dict[str, Any],
    alpha: float,
    beta: float | None,
    configs: Iterable[Config] | None,
    seconds: float,
    progress: Any,
    stream: Any,
) -> Tuned:
    """See `GemmKernel.tune`; `given` are the arrays by the caller's name."""
    from ...backends.driver import device
    from ...backends.driver.arrays import Form
    from ...backends.driver.scratch import Scratch, scratch
    from .candidates import first, variations
    from .own_arrays import new_array
    from .search import Search
    from .trial import GpuTrial

    if kernel.config is not None:
        raise LayoutError("tune", f"the kernel is cut as {kernel.config}", "make it without config=")
    if not seconds > 0:
        raise LayoutError("tune", f"seconds = {seconds}", "a positive number")
    has_c, beta = kernel.check_operands(given["C"], given["bias"], beta, alpha)
    if given["D"] is None:
        given["D"] = new_array(kernel, given["A"], given["B"])
    names, reader = kernel.operands(has_c)
    taken = reader.take(tuple([given[name] for name in names]), stream)
    gpu, at = device(taken.device), names.index("D")
    say = print if progress is True else progress if callable(progress) else _silent
    with ExitStack() as held:

        def memory_like(form: Form, pointer: int) -> Scratch:
            return held.enter_context(scratch(form, pointer, taken.stream, gpu.ordinal))

        @cache
        def room(count: int) -> int:
            return memory_like(Form("int8", (count,), (1,), 1), 0).pointer

        memory = memory_like(taken.forms[at], taken.pointers[at])
        trial = GpuTrial(kernel, taken, names, memory, room, gpu, (alpha, beta, has_c))
        problem, found = trial.asked()
        if found.empty:
            raise LayoutError("tune", "the result has no element: nothing is launched")
        search = Search(trial, seconds, say)
        if configs is None:
            begin = first(problem, kernel.target, found, gpu.multiprocessors)
            search.run(begin, lambda c: variations(c, problem, kernel.target, found))
        else:
            search.run(dict.fromkeys(configs))
    extents = f"{found.N} x {found.M}" if kernel.transposed else f"{found.M} x {found.N}"
    batches = f", {found.batches} batches" if found.batches > 1 else ""
    operations = 2 * found.M * found.N * found.K * found.batches
    what = f"{kernel!r}, {extents} x {found.K}{batches}"
    result = Tuned(what, gpu.name, operations, ordered(list(search.rows.values())))
    if result.best is not None:
        remember(problem, kernel.target, found, result.best)
        kernel.plans.clear()  # what calls had been given before
    return result


def _silent(line: str) -> None:
    """What progress is said to where nobody listens."""
