"""Whole kernels built around register programs, and pieces of programs put together."""

from .function import as_function
from .relocate import relocated
from .sequence import BARRIER, Sequence, sequence
from .staged import Kernel, stage

__all__ = ["BARRIER", "Kernel", "Sequence", "as_function", "relocated", "sequence", "stage"]
