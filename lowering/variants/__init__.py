"""The lowerings: one file per variant, each registering itself.  Importing this package registers all of them.

A variant judges a call and returns a program; it may not know any backend.
"""

from . import (
    cast,
    copy_bulk_tensor,
    copy_cp_async,
    copy_matrix,
    copy_predicated,
    copy_shuffle,
    copy_staged,
    copy_vector,
    elementwise,
    fill,
    gemm_mma_sync,
)

__all__ = [
    "cast",
    "copy_bulk_tensor",
    "copy_cp_async",
    "copy_matrix",
    "copy_predicated",
    "copy_shuffle",
    "copy_staged",
    "copy_vector",
    "elementwise",
    "fill",
    "gemm_mma_sync",
]
