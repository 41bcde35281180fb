"""The instructions: each a record with its PTX, its operands, the architectures that have it, and its meaning.

A record's meaning is a Python function on the registers of all lanes, written from the PTX ISA and not from any
layout; the reference machine executes it.  Layouts, tiles and programs may not enter.
"""

from .memory import LOAD_PAIR, LOAD_WORD, STORE_WORD
from .mma import MMA_INSTRUCTIONS, MmaInstruction
from .move import COPY, ZERO_F32
from .record import Instruction, Operand

__all__ = [
    "COPY",
    "LOAD_PAIR",
    "LOAD_WORD",
    "MMA_INSTRUCTIONS",
    "STORE_WORD",
    "ZERO_F32",
    "Instruction",
    "MmaInstruction",
    "Operand",
]
