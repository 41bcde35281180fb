"""``mma.sync``, dense: one record an instruction, in tables by family.

Adding an instruction is adding a record to a table: registers, operand maps, text, meaning and its row of the catalogue
follow from the record.
"""

from .block_scaled import BLOCK_SCALED
from .floating import FLOATING, MMA_INSTRUCTIONS
from .integer import INTEGER
from .narrow import NARROW
from .quadpair import QUADPAIR
from .record import ROLES, MmaInstruction, Role
from .scale import BlockScale

DENSE: tuple[MmaInstruction, ...] = (*FLOATING, *INTEGER, *NARROW, *BLOCK_SCALED, *QUADPAIR)
"""Every dense ``mma.sync``."""

__all__ = [
    "BLOCK_SCALED", "DENSE", "FLOATING", "INTEGER", "MMA_INSTRUCTIONS", "NARROW", "QUADPAIR", "ROLES", "BlockScale",
    "MmaInstruction", "Role",
]  # fmt: skip
