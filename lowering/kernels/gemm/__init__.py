"""GEMM kernels: ``D = epilogue(alpha * A @ B + beta * C + bias)`` for arrays of any extents.

problem, operands    what is asked for: types, orders, layouts
config, choose, tune how it is cut: tiles, warps, stages, feed
schedule             which tile is whose turn
globals, stages      tensors and windows on them; tiles in shared memory, fragments, products
turn                 one stage of the inner loop
by_tma, by_threads   the two kernels: fed by the copy engine, or by the threads
store, store_bulk, store_direct   the end of a tile
build, built         all of it as one program, and what is made of that
kernel               what a user holds; shapes, numbers, launch, cpu, simulate, explain are its parts
pieces, occupancy, traffic   what explain says: lowered calls, room on a multiprocessor, bytes moved
candidates, search, trial, tuned   what tune does: which configurations, in what order, carried out where; its table
"""

from .api import gemm
from .config import Config
from .kernel import GemmKernel

__all__ = ["Config", "GemmKernel", "gemm"]
