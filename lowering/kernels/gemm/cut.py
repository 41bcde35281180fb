"""What a way to cut asks of instructions, of shared memory's rows and of the copy engine's, whatever the arrays are.

Everything that is refused is said in the fields of `Config`, and of the caller's matrices: of a column-major D the
kernel carries out the transposed problem, so that its rows are the caller's columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelayout import LayoutError

from ...isa import MmaInstruction
from ...target import Target
from .config import LARGEST_TILE, Config
from .operands import SWAPPED
from .problem import Matrix, Problem
from .room import BULK_ALIGNMENT
from .stages import ROW_BYTES, choose_record, panel_width

PERMUTED = 8
"""Rows of shared memory that a swizzle of the copy engine permutes together (PTX ISA, "Tensor swizzling modes")."""


def check_cut(problem: Problem, config: Config, target: Target, transposed: bool = False) -> None:
    """Refuse tiles that instructions or rows of shared memory do not divide.

    Args:
        problem, config, target: of a kernel.
        transposed: whether the problem is the transposed one of the caller's.

    Errors: LayoutError with the field, the rule and a value that is fine.
    """
    rules = Rules(problem, config, choose_record(problem, target), transposed)
    for field in range(3):
        rules.check(field)


@dataclass(frozen=True)
class Rules:
    """What the three extents of a tile must be.

    Attributes:
        problem, config, transposed: as of `check_cut`.
        record: the instruction.
    """

    problem: Problem
    config: Config
    record: MmaInstruction
    transposed: bool

    def step(self, field: int) -> int:
        """What an extent is a multiple of, by the instruction and by the warps, or sets of fragments."""
        r, c = self.record, self.config
        return (r.m * c.warps[0], r.n * c.warps[1], r.k * c.fragments)[field]

    def panels(self, field: int) -> list[Matrix]:
        """The factors whose contiguous dimension it is."""
        fields = ((self.problem.A, (0, 2)), (self.problem.B, (2, 1)))
        return [m for m, of in fields if of[m.contiguous] == field]

    def nearest(self, field: int, step: int) -> int | None:
        """The next larger extent that is a multiple and makes whole rows of shared memory."""
        first = -(-self.config.tile[field] // step) * step
        whole = (n for n in range(first, LARGEST_TILE + 1, step) if self._whole(field, n))
        return next(whole, None)

    def kept(self, field: int) -> bool:
        """Whether an extent breaks no rule."""
        size = self.config.tile[field]
        return size % self.step(field) == 0 and self._whole(field, size)

    def _whole(self, field: int, size: int) -> bool:
        """Whether rows of shared memory are whole, and long enough for what feeds them."""
        whole = all(panel_width(m, size) is not None for m in self.panels(field))
        return whole and not self._short(field, size) and not self._torn(field, size)

    def _short(self, field: int, size: int) -> list[Matrix]:
        """The factors whose rows of a box are shorter than the copy engine takes."""
        if self.config.feed != "tma":
            return []
        return [m for m in self.panels(field) if size * m.bytes < BULK_ALIGNMENT]

    def _torn(self, field: int, size: int) -> list[Matrix]:
        """The factors whose rows the copy engine permutes by more than a panel has."""
        if self.config.feed != "tma" or field != 2 or size % PERMUTED == 0:
            return []
        along_k = self.panels(2)
        return [m for m in (self.problem.A, self.problem.B) if m not in along_k]

    def check(self, field: int) -> None:
        """Refuse an extent that breaks a rule, with one that keeps all of them."""
        size, step = self.config.tile[field], self.step(field)
        if self.kept(field):
            return
        broken = [m for m in self.panels(field) if panel_width(m, size) is None]
        remedies = [f"tile[{field}]={n}" for n in [self.nearest(field, step)] if n is not None]
        short, torn = self._short(field, size), self._torn(field, size)
        if short:
            rule = self._by_engine(field, short[0])
        elif size % step:
            rule = self._by_instruction(field)
        elif broken:
            rule = self._by_rows(broken[0])
        else:
            name = self._called(torn[0])
            rule = f"is no multiple of {PERMUTED}, the rows of {name} that the copy engine permutes together"
        if not (broken or short or torn):
            remedies += self._otherwise(field)
        raise LayoutError("gemm", f"tile[{field}] = {size} {rule}", " or ".join(remedies) or None)

    def _by_instruction(self, field: int) -> str:
        c, what = self.config, ("rows", "columns", "along K")[field]
        each = (self.record.m, self.record.n, self.record.k)[field]
        times = (
            f"fragments = {c.fragments} sets take turns"
            if field == 2
            else f"warps[{field}] = {c.warps[field]}"
        )
        yours = ("columns", "rows", "")[field]
        whose = f" ({yours} of your D, whose transpose is computed)" if self.transposed and yours else ""
        return f"is no multiple of {self.step(field)}: {self.record.name} takes {each} {what}{whose}, and {times}"

    def _called(self, matrix: Matrix) -> str:
        """The caller's name of a factor."""
        return SWAPPED[matrix.name] if self.transposed else matrix.name

    def _by_engine(self, field: int, matrix: Matrix) -> str:
        found, name = self.config.tile[field] * matrix.bytes, self._called(matrix)
        return f"are {found} bytes of {name}, along which the copy engine takes {BULK_ALIGNMENT} at least"

    def _by_rows(self, matrix: Matrix) -> str:
        widest, whose = ROW_BYTES // matrix.bytes, self._called(matrix)
        return (
            f"is neither a multiple of {widest} nor a power of two below, which {whose}'s rows in shared memory are: "
            f"{ROW_BYTES} bytes of {matrix.dtype} along its contiguous dimension at most"
        )

    def _otherwise(self, field: int) -> list[str]:
        """Fewer warps or sets of fragments with which the extent is fine."""
        size = self.config.tile[field]
        if field == 2:
            return ["fragments=1"] if self.config.fragments == 2 and size % self.record.k == 0 else []
        each = (self.record.m, self.record.n)[field]
        fitting = [w for w in range(self.config.warps[field] - 1, 0, -1) if size % (w * each) == 0]
        return [f"warps[{field}]={w}" for w in fitting[:1]]


__all__ = ["Rules", "check_cut"]
