"""Whole kernels from tile primitives."""
