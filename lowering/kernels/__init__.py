"""Whole kernels built around register programs."""

from .staged import Kernel, stage

__all__ = ["Kernel", "stage"]
