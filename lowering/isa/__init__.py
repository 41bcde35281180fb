"""The instructions: each a record with its PTX, its operands, the architectures that have it, and its meaning.

A record's meaning is a Python function on the registers of all lanes, written from the PTX ISA and not from any
layout; the reference machine executes it.  Layouts, tiles and programs may not enter.
"""

from .barrier import BAR_SYNC
from .memory import (
    GATHER,
    GATHERS,
    LOAD_PAIR,
    LOAD_WORD,
    LOADS,
    SCATTER,
    SCATTERS,
    STORE_WORD,
    STORES,
)  # fmt: skip
from .mma import DENSE, MMA_INSTRUCTIONS, BlockScale, MmaInstruction
from .move import COPY, ZERO, ZERO_F32
from .record import Emulated, Instruction, Operand

__all__ = [
    "BAR_SYNC",
    "COPY",
    "DENSE",
    "GATHER",
    "GATHERS",
    "LOADS",
    "LOAD_PAIR",
    "LOAD_WORD",
    "MMA_INSTRUCTIONS",
    "SCATTER",
    "SCATTERS",
    "STORES",
    "STORE_WORD",
    "ZERO",
    "ZERO_F32",
    "BlockScale",
    "Emulated",
    "Instruction",
    "MmaInstruction",
    "Operand",
]
