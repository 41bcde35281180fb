"""A kernel for one problem, cut one way, for one target: its program, and what is made of it.

Beside it there may be kernels that run before and after, see `chain`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...program import Program
from ...target import Target
from . import kept
from .beside import build_first, build_rest
from .build import build
from .config import Config
from .kept import Kept
from .numbers import Extents, first_tiles, numbers, parts_of
from .pack import Packing, build_packing, laid_packed, packed_problem
from .panels import first_numbers, lines, rest_numbers
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
    def packers(self) -> tuple[Copier, ...]:
        """The kernels that copy factors first."""
        if self.config.beside:
            return (FirstPanels(self.problem, self.config, self.target),)
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


class _Another(Built):
    """A kernel before or after the one that multiplies: it has none before and after it."""

    @property
    def second(self) -> Built | None:  # type: ignore[override]
        return None

    @property
    def packers(self) -> tuple[Copier, ...]:  # type: ignore[override]
        return ()


class Reduction(_Another):
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


class Copier(_Another, ABC):
    """A kernel that copies factors, before the one that multiplies."""

    @property
    @abstractmethod
    def copied(self) -> str:
        """Of which factors."""

    @abstractmethod
    def stored(self, factor: str, extents: Extents) -> tuple[int, int]:
        """Rows of a factor's copy, and elements of each, that a launch of the product has it write."""


@dataclass(frozen=True, eq=False)
class Packer(Copier):
    """The kernel that copies one factor.

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
        return build_packing(self.packing, self.target)

    @property
    def cut(self) -> Config:
        return self.packing.cut

    @property
    def identity(self) -> tuple[str, Problem, Config]:
        """What the machine code depends on beside the target."""
        return type(self).__name__, self.packing.problem, self.cut

    @property
    def copied(self) -> str:
        return self.factor

    def stored(self, factor: str, extents: Extents) -> tuple[int, int]:
        e = self.packing.extents(extents)
        return e.M * e.batches, e.N

    def values(self, extents: Extents, alpha: float, beta: float) -> dict[str, Any]:
        """Every parameter of a launch by name."""
        found = numbers(self.packing.problem, self.cut, self.packing.extents(extents))
        return {**found, "alpha": alpha, "beta": beta}


class FirstPanels(Copier):
    """The kernel that copies what the first tiles need; the one that multiplies copies the rest."""

    @cached_property
    def program(self) -> Program:
        """The structured program."""
        return build_first(self.problem, self.config, self.target)

    @property
    def cut(self) -> Config:
        return Packing("A", self.problem.A, False).cut

    @property
    def identity(self) -> tuple[str, Problem, Config]:
        """What the machine code depends on beside the target."""
        return type(self).__name__, self.problem, self.config

    @property
    def copied(self) -> str:
        return self.config.packed

    def stored(self, factor: str, extents: Extents) -> tuple[int, int]:
        x = lines(self.problem, self.config, factor)
        e = Packing(factor, x.matrix, False).extents(extents)
        ready = first_tiles(self.config, extents)[x.which] * x.side
        return (min(e.M, ready), e.N) if x.by_rows else (e.M, min(e.N, ready))

    def values(self, extents: Extents, alpha: float, beta: float) -> dict[str, Any]:
        """Every parameter of a launch by name."""
        found = numbers(self.problem, self.config, self.laid(extents))
        found |= first_numbers(self.problem, self.config, extents)
        return {**found, "alpha": alpha, "beta": beta}
