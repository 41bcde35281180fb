"""Whole GEMM kernels on the CPU: random problems, every configuration, cases, mutations, refusals."""
