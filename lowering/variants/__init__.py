"""The lowerings: one file per variant, each registering itself.  Importing this package registers all of them.

A variant judges a call and returns a program; it may not know any backend.
"""

from . import copy_matrix, copy_staged, copy_vector, gemm_mma_sync

__all__ = ["copy_matrix", "copy_staged", "copy_vector", "gemm_mma_sync"]
