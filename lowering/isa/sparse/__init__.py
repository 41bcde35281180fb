"""``mma.sp``: products with a structured sparse A, its metadata, and compressing matrices for it."""

from .compress import compress, decompress
from .metadata import Sparsity
from .record import SparseMma
from .tables import MMA_SP

__all__ = ["MMA_SP", "SparseMma", "Sparsity", "compress", "decompress"]
