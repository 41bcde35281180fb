"""A kernel for one problem, cut one way, for one target: its program, and what is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...program import Program
from ...target import Target
from .build import build
from .config import Config
from .numbers import Extents, numbers
from .problem import Problem

if TYPE_CHECKING:
    from ...backends.assemble import Cubin
    from ...backends.shared_memory import SharedMemory


@dataclass(frozen=True, eq=False)
class Built:
    """One kernel.  Everything is made when it is first asked for.

    Attributes:
        problem: types, orders, alignments.
        config: how it is cut.
        target: the architecture.
    """

    problem: Problem
    config: Config
    target: Target

    @cached_property
    def program(self) -> Program:
        """The structured program."""
        return build(self.problem, self.config, self.target)

    @cached_property
    def shared_memory(self) -> SharedMemory:
        """Its map, and the bytes that a launch gives."""
        from ...backends.shared_memory import SharedMemory

        return SharedMemory.of(self.program)

    @cached_property
    def ptx(self) -> str:
        """A PTX module with the kernel."""
        from ...backends.ptx import ptx_module

        return ptx_module(self.program, self.target)

    @cached_property
    def cubin(self) -> Cubin:
        """Its machine code, from the disk where it has been assembled before; spills are refused."""
        from ...backends.driver import cached_cubin

        return cached_cubin(self.ptx, self.target)

    @property
    def threads(self) -> int:
        """Of a CTA."""
        return 32 * self.program.warps

    def values(self, extents: Extents, alpha: float, beta: float) -> dict[str, Any]:
        """Every parameter of a launch by name."""
        return {**numbers(self.problem, self.config, extents), "alpha": alpha, "beta": beta}

    def ordered(self, values: dict[str, Any]) -> tuple[Any, ...]:
        """The parameters in the program's order."""
        return tuple([values[p.name] for p in self.program.parameters])
