"""Whole kernels built around register programs."""

from .sequence import BARRIER, Sequence, sequence
from .staged import Kernel, stage

__all__ = ["BARRIER", "Kernel", "Sequence", "sequence", "stage"]
