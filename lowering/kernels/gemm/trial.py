"""Configurations carried out on a GPU, on a call's own factors and a result in memory of our own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backends.driver import Device
from ...backends.driver.operands import Taken
from ...backends.driver.scratch import Scratch
from ...backends.driver.timing import interleaved
from ...dtypes import dtype
from .chain import links
from .config import Config
from .launch import Course, course_of
from .numbers import Extents
from .problem import Problem
from .shapes import Shaped

if TYPE_CHECKING:
    from .kernel import GemmKernel

TOLERANCE = {"float64": 1e-11, "float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}
"""Type of the result -> how much of its largest element two results may differ by; integers by nothing."""
_POISON = 0x7F
"""In every byte of the result before it is made."""


class GpuTrial:
    """A `search.Trial` of one call.

    `scratch` is memory for the result; ``room(n)`` gives the address of n bytes.
    """

    def __init__(
        self,
        kernel: GemmKernel,
        taken: Taken,
        names: Sequence[str],
        scratch: Scratch,
        room: Callable[[int], int],
        gpu: Device,
        numbers: tuple[float, float, bool],
    ) -> None:
        self.kernel, self.taken, self.gpu, self.room = kernel, taken, gpu, room
        self.names, self.scratch = list(names), scratch
        self.alpha, self.beta, self.has_c = numbers
        at = self.names.index("D")
        self.pointers = (*taken.pointers[:at], scratch.pointer, *taken.pointers[at + 1 :])
        self.shaped = {
            name: Shaped(form.shape, tuple([s // form.width for s in form.strides]), pointer)
            for name, form, pointer in zip(self.names, taken.forms, self.pointers, strict=True)
        }
        self.cuts: dict[Config, GemmKernel] = {}
        self.courses: dict[Config, Course] = {}
        self.first: np.ndarray[Any, Any] | None = None

    def asked(self) -> tuple[Problem, Extents]:
        """The problem as the call's arrays are aligned, and its extents."""
        built, found = self.kernel.for_call(
            self.kernel.internal(self.shaped), self.alpha, self.has_c, self.gpu.multiprocessors
        )
        return built.problem, found

    def build(self, config: Config) -> None:
        """See `search.Trial.build`."""
        cut = type(self.kernel)(self.kernel.problem, self.kernel.target, config, self.kernel.transposed)
        built, _ = cut.for_call(cut.internal(self.shaped), self.alpha, self.has_c, self.gpu.multiprocessors)
        for link in links(built):
            _ = link.built.cubin
        self.cuts[config] = cut

    def course(self, config: Config) -> Course:
        """The launches."""
        known = self.courses.get(config)
        if known is None:
            taken = self.taken._replace(pointers=self.pointers)
            known = course_of(self.cuts[config], self.names, taken, self.alpha, self.has_c)
            self.courses[config] = known
        return known

    def launch(self, config: Config) -> Callable[[], None]:
        """What launches a configuration."""
        course, pointers, stream = self.course(config), self.pointers, self.taken.stream
        room = self.room(course.room) if course.room else 0
        return lambda: course.start(pointers, room, self.alpha, self.beta, stream)

    def result(self, config: Config) -> str:
        """See `search.Trial.result`."""
        self.scratch.fill(_POISON)
        self.launch(config)()
        found = self.scratch.read()
        if self.first is None:
            self.first = found
            return ""
        return difference(found, self.first, self.kernel.problem.D.dtype)

    def times(self, configs: Sequence[Config], seconds: float) -> list[float]:
        """See `search.Trial.times`."""
        launches = [self.launch(c) for c in configs]
        return interleaved(launches, self.taken.stream, self.gpu.ordinal, seconds)


def difference(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], kind: str) -> str:
    """What is wrong with the words of a result, beside those of another of that element type; empty for nothing.

    >>> x = np.array([1.0, 2.0], np.float32).view(np.uint32)
    >>> difference(x, x, "float32"), difference(x[::-1], x, "float32")
    ('', 'its result is another: off by 1 at (0,), where the largest element is 2')
    """
    if np.array_equal(found, wanted):
        return ""
    words = [np.ascontiguousarray(x).view(dtype(kind).numpy) for x in (found, wanted)]
    ours, theirs = (x.astype(np.float64) for x in words)
    both = np.isfinite(ours) & np.isfinite(theirs)
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    off = np.where(
        both, np.abs(np.where(both, ours, 0) - np.where(both, theirs, 0)), np.where(same, 0, np.inf)
    )
    largest = float(np.abs(np.where(np.isfinite(theirs), theirs, 0)).max(initial=0.0))
    worst = np.unravel_index(int(off.argmax()), off.shape)
    if off[worst] <= TOLERANCE.get(kind, 0.0) * largest:
        return ""
    where = tuple(map(int, worst))
    return (
        f"its result is another: off by {off[worst]:g} at {where}, where the largest element is {largest:g}"
    )


__all__ = ["GpuTrial", "difference"]
