"""Whole kernels from tile primitives."""

from .gemm import Config, GemmKernel, gemm

__all__ = ["Config", "GemmKernel", "gemm"]
