"""Questions asked of layouts: bank conflicts, vector widths, staging, conversions between registers, register counts.

Answers are values with their reasons, and print as text.  Nothing here changes a layout or emits code; the rooms that
lower may ask, and may not be imported.
"""

from .access import Access
from .banks import BankReport, Conflict, Phase, bank_conflicts
from .convert import ConversionPlan, Cost, Load, Store, conversion_plan
from .matrices import MatrixAccesses, matrix_accesses
from .registers import RegisterCount, register_budget, registers_per_thread
from .shuffles import Pick, Shuffle
from .staging import Candidate, StagingPlan, best_staging
from .vectors import Limit, VectorWidth, widest_access, widest_vector

__all__ = [
    "Access", "BankReport", "Candidate", "Conflict", "ConversionPlan", "Cost", "Limit", "Load",
    "MatrixAccesses", "Phase", "Pick", "RegisterCount", "Shuffle", "StagingPlan", "Store", "VectorWidth",
    "bank_conflicts", "best_staging", "conversion_plan", "matrix_accesses", "register_budget",
    "registers_per_thread", "widest_access", "widest_vector",
]  # fmt: skip
