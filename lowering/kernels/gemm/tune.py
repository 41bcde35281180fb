"""Which way of cutting a problem is fastest, measured on the GPU and remembered on disk."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import cache
from typing import Any

from ...target import Target
from .config import Config
from .numbers import Extents
from .problem import Problem

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
    what = [(m.name, m.dtype, m.order, m.alignment) for m in p.matrices]
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
    return Config(**{**found, "tile": tuple(found["tile"]), "warps": tuple(found["warps"])})


def _results() -> Any:
    from ...backends.driver import Results

    return Results("gemm")
