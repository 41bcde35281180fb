"""What a CTA takes, counted from how it is cut: registers of its threads, and shared memory."""

from __future__ import annotations

from ...backends.shared_memory import SharedMemory
from ...dtypes import dtype
from ...isa import MmaInstruction
from ...isa.budget import setmaxnreg
from ...isa.operand_map import LANES
from ...program import Buffer, Program
from ...target import Target
from .config import Config
from .occupancy import REGISTERS
from .problem import Matrix, Problem
from .reduce import multiplied
from .roles import barriers, consumer_registers, feeder_registers
from .stages import all_stages, stage_tile

MOST_REGISTERS = 255
"""Of a thread (CUDA programming guide, "Technical Specifications per Compute Capability")."""


def sums(problem: Problem, config: Config) -> int:
    """Registers of a multiplying thread that hold sums."""
    m, n, _ = config.tile
    return m * n * dtype(problem.accumulator).bits // 32 // (LANES * config.multipliers)


def fragments(problem: Problem, config: Config, record: MmaInstruction) -> int:
    """Registers of a multiplying thread that hold one step's fragments of A and B."""
    m, n = config.tile[0] // config.warps[0], config.tile[1] // config.warps[1]
    return record.k * (m * problem.A.bytes + n * problem.B.bytes) // (4 * LANES)


def staged(problem: Problem, config: Config) -> int:
    """Registers that hold the next stage where all threads load and store it; 0 under other feeds."""
    if config.feed != "registers":
        return 0
    m, n, k = config.tile
    return _held(problem.A, m * k, config.copying) + _held(problem.B, k * n, config.copying)


def _held(matrix: Matrix, elements: int, warps: int) -> int:
    """Registers of a thread that hold its share, in accesses as wide as the matrix is aligned."""
    accesses = -(-elements * matrix.bytes // matrix.alignment)
    return -(-accesses // (LANES * warps)) * matrix.alignment // 4


def registers(config: Config, target: Target) -> int:
    """That a multiplying thread has at most, where a multiprocessor holds `resident` CTAs."""
    evenly = min(MOST_REGISTERS, REGISTERS // config.resident // (LANES * config.all_warps) // 8 * 8)
    if config.feed == "registers" or setmaxnreg(feeder_registers(config), False).refusal(target):
        return evenly
    return max(evenly, consumer_registers(config))


def shared_bytes(problem: Problem, config: Config, record: MmaInstruction) -> int:
    """Bytes of shared memory of a CTA.

    Post-condition: those of the program's map, of every tile that instructions and rows of shared memory divide.
    """
    problem = multiplied(problem, config)
    m, n, k = config.tile
    count = 2 if config.feed == "registers" else config.stages
    buffers = [all_stages(stage_tile(problem.A, m, k), count), all_stages(stage_tile(problem.B, k, n), count)]
    if config.feed != "registers":
        buffers += barriers(count)
    if config.slots:
        size = config.slots * record.m * config.warps[0] * n
        buffers.append(Buffer("sD", "sD", problem.D.dtype, (size,), 8 * problem.D.bytes, "shared", 512))
    return SharedMemory.of(Program("gemm", config.all_warps, (), (), (), tuple(buffers))).bytes
