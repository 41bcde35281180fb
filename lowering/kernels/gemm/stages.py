"""The tiles of A and B in shared memory, and the instructions between them and the accumulators.

A stage's tile has rows of at most 128 bytes along the dimension that is contiguous in global memory, permuted as the
copy engine permutes them, so that neither the copies into it nor ``ldmatrix`` out of it meet in a bank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log2

from tilelayout import LayoutError, S, TileLayout
from tilelayout.expr import Index

from ...api import Lowered, lower
from ...compose import relocated
from ...dtypes import dtype
from ...fragments import partition
from ...isa import DENSE, MmaInstruction
from ...ops import copy, gemm
from ...program import Buffer, Instr, Program, Registers, Slot, Step
from ...target import Target
from ...tile import Tile
from .config import Config
from .problem import OUTPUTS, Matrix, Problem

ROW_BYTES = 128
"""Of a row of shared memory at most: all 32 banks once."""


def choose_record(problem: Problem, target: Target) -> MmaInstruction:
    """The instruction for the types: the deepest that the target's tensor cores have, or else that it emulates.

    Errors: LayoutError where there is none, with the types that there are.
    """
    return record_of(problem.A.dtype, problem.B.dtype, problem.accumulator, target)


def record_of(a: str, b: str, sums: str, target: Target) -> MmaInstruction:
    """The same for types of A, B and the sums."""
    plain = [i for i in DENSE if i.rule == "warp" and not (i.scale or i.satfinite or i.operation or i.kind)]
    fitting = [i for i in plain if (i.a, i.b, i.d) == (a, b, sums) and i.c == i.d]
    there = [i for i in fitting if not i.instruction.refusal(target)]
    there = [i for i in there if not i.instruction.emulation(target)] or there
    if there:
        return max(there, key=lambda i: (i.k, i.m))
    known = [i for i in plain if {i.a, i.b} <= OUTPUTS.keys() and not i.instruction.refusal(target)]
    known = [i for i in known if i.a == a or i.b == b] or known
    oldest = min(fitting, key=lambda i: i.instruction.sm, default=None)
    reason = oldest.instruction.refusal(target) if oldest else "there is no such instruction"
    names = sorted({f"{i.a} x {i.b} + {i.d}" for i in known})
    raise LayoutError("gemm", f"{a} x {b} + {sums}: {reason}", f"{target} has {', '.join(names)}")


def panel_width(matrix: Matrix, along: int) -> int | None:
    """Elements of a row of shared memory, for a tile of so many along the contiguous dimension; None: not cut so."""
    width = min(along, ROW_BYTES // matrix.bytes)
    return None if along % width or width & width - 1 else width


def stage_tile(matrix: Matrix, rows: int, columns: int) -> Tile:
    """A tile of one stage, in panels of rows that are swizzled as wide as they are.

    >>> a = stage_tile(Matrix("A", "float16", "row", 16), 128, 64)
    >>> a.layout.apply(9, 8, shape=a.shape)["m"], a.alignment
    (576, 1024)
    """
    extents = (rows, columns)
    along = extents[matrix.contiguous]
    across = extents[1 - matrix.contiguous]
    width = panel_width(matrix, along)
    if width is None:
        widest = ROW_BYTES // matrix.bytes
        raise LayoutError(
            "gemm",
            f"{matrix.name}: a tile of {along} elements along its contiguous dimension is not cut into rows of "
            f"{widest}",
            f"a multiple of {widest}, or a power of two below",
        )
    if matrix.contiguous == 1:
        layout = TileLayout(S[(across, along // width, width) : (width, across * width, 1)])
    else:
        layout = TileLayout(S[(along // width, width, across) : (across * width, 1, width)])
    row_bytes = width * matrix.bytes
    bits = max(0, int(log2(row_bytes // 16))) if row_bytes >= 16 else 0
    base = int(log2(16 // matrix.bytes))
    swizzled = layout.swizzle(bits, base, 3) if bits else layout
    return Tile(f"s{matrix.name}", extents, matrix.dtype, swizzled, "shared", max(128, 8 * row_bytes))


@dataclass(frozen=True)
class Stages:
    """What one stage is made of, and how the accumulators take it in.

    Attributes:
        record: the instruction.
        tiles: of a stage, by "A" and "B".
        buffers: all stages of each, one after the other.
        fragments: by "A" and "B", the register groups that take turns: two, or one.
        sums: the accumulators.
        steps: instructions' depths in a stage.
        rows, columns: instructions of a warp in a step.
        loads: (matrix, step) -> the lowered copy of one step's fragment.
        products: the lowered product of one step.
    """

    record: MmaInstruction
    tiles: Mapping[str, Tile]
    buffers: Mapping[str, Buffer]
    fragments: Mapping[str, tuple[Registers, ...]]
    sums: Registers
    steps: int
    rows: int
    columns: int
    loads: Mapping[tuple[str, int], Lowered]
    products: Lowered

    @property
    def each(self) -> dict[str, int]:
        """Elements of one stage, by "A" and "B"."""
        return {x: t.shape[0] * t.shape[1] for x, t in self.tiles.items()}

    def at(self, matrix: str, piece: Program, stage: Index) -> dict[Buffer, tuple[Buffer, Index]]:
        """For `relocated`: a piece's shared buffer as that of a stage."""
        buffer = next(b for b in piece.buffers if b.space == "shared")
        return {buffer: (self.buffers[matrix], stage * self.each[matrix])}

    def load(self, matrix: str, step: int, into: int, stage: Index) -> list[Instr]:
        """The loads of a step's fragment from a stage into one of the register groups."""
        piece = self.loads[matrix, step].program
        registers = dict.fromkeys(piece.registers, self.fragments[matrix][into])
        moved = relocated(piece.body, registers, self.at(matrix, piece, stage))
        return [s for s in moved if isinstance(s, Instr)]

    def product(self, row: int, column: int, using: int) -> Instr:
        """One instruction of a step, on one of the register groups; in place on the accumulators."""
        step = self._products[row * self.columns + column]
        groups = {
            "A": self.fragments["A"][using],
            "B": self.fragments["B"][using],
            "C": self.sums,
            "D": self.sums,
        }
        return Instr(
            step.instruction, tuple([tuple([Slot(groups[r.role], i) for r, i in a]) for a in step.arguments])
        )

    @property
    def _products(self) -> list[Step]:
        name = self.record.instruction.name
        return [s for s in self.products.program.steps if s.instruction.name == name]


def build_stages(problem: Problem, config: Config, target: Target) -> Stages:
    """The stages of a problem that is cut in a way.

    Errors: LayoutError for a tile that warps or instructions do not divide, DispatchError for what has no lowering.
    """
    record = choose_record(problem, target)
    m, n, k = config.tile
    if k % record.k:
        raise LayoutError(
            "gemm", f"a tile of depth {k} is no multiple of {record.k}, which {record.name} takes"
        )
    if k // record.k % config.fragments:
        raise LayoutError(
            "gemm",
            f"a tile of depth {k} is {k // record.k} steps of {record.name}, and two fragments take turns",
            f"a multiple of {2 * record.k}",
        )
    parts = partition(record, m, n, record.k, warps=config.warps)
    where = {"target": target, "scope": "cta", "launch": 32 * config.multipliers}
    tiles = {"A": stage_tile(problem.A, m, k), "B": stage_tile(problem.B, k, n)}
    local = {
        "A": Tile("A", (m, record.k), problem.A.dtype, parts.A),
        "B": Tile("B", (record.k, n), problem.B.dtype, parts.B),
        "D": Tile("D", (m, n), problem.accumulator, parts.D),
    }
    products = lower(
        gemm(local["D"], local["A"], local["B"], local["D"], beta=1.0),
        **where,
        dispatch=f"mma.m{record.m}n8k*",  # the record's, though another that fits may be preferred
        config={"records": [record]},
    )
    loads: dict[tuple[str, int], Lowered] = {}
    for step in range(k // record.k):
        begin, end = step * record.k, (step + 1) * record.k
        loads["A", step] = lower(copy(local["A"], tiles["A"][:, begin:end]), **where)
        loads["B", step] = lower(copy(local["B"], tiles["B"][begin:end, :]), **where)
    groups = {r.role: r for r in (*products.program.inputs, *products.program.outputs)}
    fragments = {
        x: tuple([replace(groups[x], name=f"{x.lower()}{i}_words", role=x) for i in range(config.fragments)])
        for x in "AB"
    }
    buffers = {x: all_stages(t, config.stages) for x, t in tiles.items()}
    return Stages(
        record,
        tiles,
        buffers,
        fragments,  # type: ignore[arg-type]
        replace(groups["D"], name="sums", role="D"),
        k // record.k,
        m // config.warps[0] // record.m,
        n // config.warps[1] // record.n,
        loads,
        products,
    )


def all_stages(tile: Tile, stages: int) -> Buffer:
    """All stages of a tile, one after the other."""
    elements = tile.shape[0] * tile.shape[1] * stages
    return Buffer(
        tile.name, tile.name, tile.dtype, (elements,), dtype(tile.dtype).bits, "shared", tile.alignment
    )
