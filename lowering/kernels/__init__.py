"""Whole kernels from tile primitives."""

from .gemm import Config, GemmKernel, gemm
from .matmul import matmul

__all__ = ["Config", "GemmKernel", "gemm", "matmul"]
