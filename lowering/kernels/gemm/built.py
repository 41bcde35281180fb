"""A kernel for one problem, cut one way, for one target: its program, and what is made of it.

Beside it there may be kernels that run before and after, see `chain`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...program import Program
from ...target import Target
from . import kept
from .beside import COUNTERS, before, build_reset, build_rest, counters, rest_numbers
from .build import build
from .config import Config
from .kept import Kept
from .numbers import Extents, numbers, parts_of
from .pack import Packing, build_packing, laid_packed, packed_problem
from .problem import Problem
from .reduce import REDUCTION, build_reduction, multiplied

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
        rest = build_rest(self.problem, self.config, self.target) if self.config.beside else None
        return build(self.inner, self.config, self.target, rest)

    @cached_property
    def inner(self) -> Problem:
        """The problem with factors as they lie when the kernel reads them: well aligned where they were packed."""
        return packed_problem(self.problem, self.config.packed)

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

    @cached_property
    def kept(self) -> Kept:
        """What a launch needs: from the disk where it has been made before, without making the program."""
        found = kept.find(*self.identity, self.target)
        if found is None:
            shell = kept.shell_of(self.program)
            found = kept.Kept(shell, self.shared_memory.dynamic, self.cubin.data)
            kept.put(*self.identity, self.target, found)
        return found

    @property
    def identity(self) -> tuple[str, Problem, Config]:
        """What the machine code depends on beside the target."""
        # What is copied beside the product is read as it is given.
        return type(self).__name__, self.problem if self.config.beside else self.inner, self.config

    @cached_property
    def second(self) -> Built | None:
        """The kernel that adds up parts of K; None where there is one part."""
        return Reduction(self.problem, self.config, self.target) if self.config.splits > 1 else None

    @cached_property
    def packers(self) -> tuple[Packer, ...]:
        """The kernels that copy factors first."""
        return tuple([Packer(self.problem, self.config, self.target, x) for x in self.config.packed])

    def laid(self, extents: Extents) -> Extents:
        """The extents and strides that this kernel sees: of packed factors, and of D those of the parts."""
        extents = laid_packed(self.problem, self.config.packed, extents)
        if self.config.splits == 1:
            return extents
        row = -(-extents.N // 4) * 4
        batch = {"A": 0, "B": 0, **extents.batch, "D": extents.M * row}
        leading = {**extents.leading, "D": row}
        leading.pop("C", None)
        batch.pop("C", None)
        return replace(extents, leading=leading, batch=batch)

    @property
    def cut(self) -> Config:
        """How its result is cut into tiles."""
        return self.config

    @property
    def threads(self) -> int:
        """Of a CTA."""
        return 32 * self.cut.all_warps

    def values(self, extents: Extents, alpha: float, beta: float) -> dict[str, Any]:
        """Every parameter of a launch by name."""
        problem = multiplied(self.problem, self.config)
        found = numbers(problem, self.config, self.laid(extents))
        if self.config.beside:
            found |= rest_numbers(self.problem, self.config, extents)
        return {**found, "alpha": alpha, "beta": beta}

    def ordered(self, values: dict[str, Any]) -> tuple[Any, ...]:
        """The parameters in the program's order."""
        return tuple([values[p.name] for p in self.kept.shell.parameters])


class _Beside(Built):
    """A kernel before or after the one that multiplies: it has none before and after it."""

    @property
    def second(self) -> Built | None:  # type: ignore[override]
        return None

    @property
    def packers(self) -> tuple[Packer, ...]:  # type: ignore[override]
        return ()


class Reduction(_Beside):
    """The second kernel of a problem in parts of K."""

    @cached_property
    def program(self) -> Program:
        """The structured program."""
        return build_reduction(self.problem, self.target)

    @property
    def cut(self) -> Config:
        return REDUCTION

    def values(self, extents: Extents, alpha: float, beta: float) -> dict[str, Any]:
        """Every parameter of a launch by name."""
        of_parts = self.laid(extents)
        both = replace(
            extents,
            leading={**extents.leading, "parts": of_parts.leading["D"]},
            batch={**extents.batch, "parts": of_parts.batch["D"]},
        )
        found = numbers(replace(self.problem, batched=True), REDUCTION, both)
        return {**found, "k_parts": parts_of(self.config, extents), "alpha": alpha, "beta": beta}


@dataclass(frozen=True, eq=False)
class Packer(_Beside):
    """The kernel that copies a factor, before the one that multiplies.

    Attributes:
        factor: "A" or "B".
    """

    factor: str = "A"

    @cached_property
    def packing(self) -> Packing:
        """What is copied."""
        return Packing(self.factor, getattr(self.problem, self.factor), self.problem.batched)

    @cached_property
    def program(self) -> Program:
        """The structured program."""
        return build_packing(self.packing, self.target, build_reset() if self.config.beside else None)

    @property
    def cut(self) -> Config:
        return self.packing.cut

    @property
    def identity(self) -> tuple[str, Problem, Config]:
        """What the machine code depends on beside the target."""
        resets = " and resets" * self.config.beside
        return type(self).__name__ + resets, self.packing.problem, self.cut

    def stored(self, extents: Extents) -> Extents:
        """What it copies for a launch of the product."""
        return before(self.problem, self.config, self.factor, extents)

    def values(self, extents: Extents, alpha: float, beta: float) -> dict[str, Any]:
        """Every parameter of a launch by name."""
        found = numbers(self.packing.problem, self.cut, self.stored(extents))
        if self.config.beside:
            found[COUNTERS.name] = counters(self.config, extents)
        return {**found, "alpha": alpha, "beta": beta}
