"""What the threads of a CTA copy of A and B into a stage, all of them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelayout.expr import Index

from ...api import Lowered, lower
from ...compose import relocated
from ...control import All, Compare, If, Set, comparisons
from ...ops import copy
from ...program import Comment, Program, Registers, Statement
from ...target import Target
from .config import Config
from .globals import moved_to, window
from .problem import Problem
from .schedule import Place
from .stages import Stages


@dataclass(frozen=True)
class Copies:
    """What brings A's and B's tiles to a stage.

    Attributes:
        before: statements that come first, at any rate.
        inside: condition under which no copy reaches beyond the matrices.
        whole: the copies then.
        rim: the copies otherwise.
        after: what completes them once they have arrived in registers.
    """

    before: tuple[Statement, ...]
    inside: All
    whole: tuple[Statement, ...]
    rim: tuple[Statement, ...]
    after: tuple[Statement, ...] = ()

    @property
    def both(self) -> tuple[Statement, ...]:
        """The copies, whichever they are, in one piece."""
        if not self.inside.comparisons:
            return (*self.before, *self.whole)
        return (*self.before, If(self.inside, self.whole, self.rim))


class Shares:
    """Both matrices' copies, to be put to any stage.

    Attributes:
        lowered: matrix and part -> the lowered copy.
        scratch: registers that they take.
    """

    def __init__(
        self, problem: Problem, config: Config, stages: Stages, place: Place, target: Target
    ) -> None:
        self.problem, self.config, self.stages = problem, config, stages
        self.place, self.target = place, target
        parts = ("",) if config.feed == "cp_async" else ("load", "store")
        self.lowered = {(x, part): self._lowered(x, part) for x in "AB" for part in parts}
        groups = [r for piece in self.lowered.values() for r in piece.program.registers]
        self.scratch: tuple[Registers, ...] = tuple(dict.fromkeys(groups))

    def _lowered(self, x: str, part: str) -> Lowered:
        row, column, depth = self.place.origin(self.config)
        origin = {"A": (row, depth), "B": (depth, column)}[x]
        tile = self.stages.tiles[x]
        batch = self.place.batch if self.problem.batched else None
        there: Any = window(getattr(self.problem, x), origin, tile.shape, batch)
        return lower(
            copy(tile.full, there),
            target=self.target,
            scope="cta",
            launch=32 * self.config.copying,
            dispatch="copy.cp_async" if self.config.feed == "cp_async" else "copy.predicated",
            config={"part": part} if part else None,
        )

    def to(self, stage: Index) -> Copies:
        """The copies to a stage."""
        before: list[Statement] = []
        inside: list[Compare] = []
        whole: list[Statement] = []
        rim: list[Statement] = []
        after: list[Statement] = []
        for (x, part), piece in self.lowered.items():
            moved = self._moved(x, piece.program, stage)
            if part == "store":
                after += moved
                continue
            for s in moved:
                if isinstance(s, If) and s.orelse:
                    inside += comparisons(s.condition)
                    whole += s.body
                    rim += s.orelse
                elif isinstance(s, Set):
                    before.append(s)
                elif not isinstance(s, Comment):
                    whole.append(s)
                    rim.append(s)
        return Copies(tuple(before), All(tuple(inside)), tuple(whole), tuple(rim), tuple(after))

    def _moved(self, x: str, piece: Program, stage: Index) -> list[Statement]:
        buffers = moved_to(piece, getattr(self.problem, x))
        if any(b.space == "shared" for b in piece.buffers):
            buffers = buffers | self.stages.at(x, piece, stage)
        return relocated(piece.body, buffers=buffers)
