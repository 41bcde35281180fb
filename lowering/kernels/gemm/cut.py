"""What a way to cut asks of instructions, of shared memory's rows and of registers, whatever the arrays are.

Everything that is refused is said in the fields of `Config`, and of the caller's matrices: of a column-major D the
kernel carries out the transposed problem, so that its rows are the caller's columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilelayout import LayoutError

from ...dtypes import dtype
from ...isa import MmaInstruction
from ...isa.budget import setmaxnreg
from ...isa.operand_map import LANES
from ...target import Target
from .config import LARGEST_TILE, Config
from .occupancy import MULTIPROCESSORS, REGISTERS
from .operands import SWAPPED
from .problem import Matrix, Problem
from .roles import FEEDER_REGISTERS, consumer_registers
from .stages import ROW_BYTES, choose_record, panel_width

MOST_REGISTERS = 255
"""Of a thread (CUDA programming guide, "Technical Specifications per Compute Capability")."""


def check_cut(problem: Problem, config: Config, target: Target, transposed: bool = False) -> None:
    """Refuse tiles that instructions or rows of shared memory do not divide, and CTAs that registers do not do for.

    Args:
        problem, config, target: of a kernel.
        transposed: whether the problem is the transposed one of the caller's.

    Errors: LayoutError with the field, the rule and a value that is fine.
    """
    rules = Rules(problem, config, choose_record(problem, target), transposed)
    for field in range(3):
        rules.check(field)
    _check_sums(problem, config)
    _check_room(problem, config, target)


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

    def _whole(self, field: int, size: int) -> bool:
        return all(panel_width(m, size) is not None for m in self.panels(field))

    def check(self, field: int) -> None:
        """Refuse an extent that breaks a rule, with one that keeps all of them."""
        size, step = self.config.tile[field], self.step(field)
        broken = [m for m in self.panels(field) if panel_width(m, size) is None]
        if size % step == 0 and not broken:
            return
        remedies = [f"tile[{field}]={n}" for n in [self.nearest(field, step)] if n is not None]
        rule = self._by_instruction(field) if size % step else self._by_rows(field, broken[0])
        if not broken:
            remedies += self._otherwise(field)
        raise LayoutError("gemm", f"tile[{field}] = {size} is {rule}", " or ".join(remedies) or None)

    def _by_instruction(self, field: int) -> str:
        c, what = self.config, ("rows", "columns", "along K")[field]
        each = (self.record.m, self.record.n, self.record.k)[field]
        times = (
            f"fragments = {c.fragments} sets take turns"
            if field == 2
            else f"warps[{field}] = {c.warps[field]}"
        )
        whose = " (the caller's, transposed)" if self.transposed and field < 2 else ""
        return (
            f"no multiple of {self.step(field)}: {self.record.name} takes {each} {what}{whose}, and {times}"
        )

    def _by_rows(self, field: int, matrix: Matrix) -> str:
        name = SWAPPED[matrix.name] if self.transposed else matrix.name
        widest = ROW_BYTES // matrix.bytes
        return (
            f"neither a multiple of {widest} nor a power of two below, which {name}'s rows in shared memory are: "
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


def _sums(problem: Problem, config: Config) -> int:
    """Registers of a multiplying thread that hold sums."""
    m, n, _ = config.tile
    return m * n * dtype(problem.accumulator).bits // 32 // (LANES * config.multipliers)


def _check_sums(problem: Problem, config: Config) -> None:
    """A thread has registers for its sums."""
    sums = _sums(problem, config)
    if sums > MOST_REGISTERS:
        m, n, _ = config.tile
        raise LayoutError(
            "gemm",
            f"the sums of a tile of {m} x {n} take {sums} registers of each thread of {config.multipliers} warps, "
            f"{MOST_REGISTERS} at most",
            "a smaller tile, or more warps",
        )


def _check_room(problem: Problem, config: Config, target: Target) -> None:
    """A multiprocessor has threads for the CTAs that are to share it, and registers for their sums at least."""
    if config.resident == 1:
        return
    there, threads = MULTIPROCESSORS[target.sm], LANES * config.all_warps
    said = f"resident = {config.resident}: {config.resident} CTAs of {threads} threads"
    most = min(there.threads // threads, there.ctas)
    if config.resident > most:
        raise LayoutError(
            "gemm",
            f"{said}; a multiprocessor of {target} holds {there.threads} threads and {there.ctas} CTAs",
            f"resident={max(1, most)}",
        )
    m, n, _ = config.tile
    sums = _sums(problem, config)
    each = _registers(config, target)
    if each <= sums:
        fewer = [replace(config, resident=r) for r in range(1, config.resident)]
        enough = max([c.resident for c in fewer if _registers(c, target) > sums], default=1)
        raise LayoutError(
            "gemm",
            f"{said} have {each} registers a thread, and the sums of a tile of {m} x {n} take {sums} of them alone",
            f"resident={enough}, or a smaller tile",
        )


def _registers(config: Config, target: Target) -> int:
    """That a multiplying thread has at most."""
    evenly = REGISTERS // config.resident // (LANES * config.all_warps) // 8 * 8
    if config.feed == "registers" or setmaxnreg(FEEDER_REGISTERS[config.feed], False).refusal(target):
        return evenly
    return max(evenly, consumer_registers(config))


__all__ = ["check_cut"]
