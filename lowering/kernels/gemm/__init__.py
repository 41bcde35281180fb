"""GEMM kernels: ``D = epilogue(alpha * A @ B + beta * C + bias)`` for arrays of any extents.

problem, operands    what is asked for: types, orders; placed: matrices that layouts place; factors: alpha and beta
config, choose, tune how it is cut: tiles, warps, stages, feed; room, refine are what choose goes by, and cut, fit and
                     config_check say what cannot be, by what a CTA takes (takes)
schedule             which tile is whose turn
globals, stages      tensors and windows on them; tiles in shared memory, fragments, products
turn                 one stage of the inner loop
by_tma, by_copies, by_threads   the kernels: fed by the copy engine, by asynchronous copies, by loads and stores
roles, shares        feeders and multipliers, and the barriers between them; what each thread copies
store, store_direct, store_collected   the end of a tile: from registers, or in rows (store_rows) through shared memory,
                     which the copy engine (store_bulk) or the threads (store_threads) send
pack, reduce         kernels before and after it: copies of factors that lie badly, the sum of parts of K
panels, beside       such copies in two parts: what the first tiles need, and the rest beside the product
build, built, chain  all of it as one program, what is made of that, and the kernels of one call in order
kernel               what a user holds; shapes, numbers, launch, plans, own_arrays, cpu, simulate, explain are its parts
pieces, occupancy, traffic   what explain says: lowered calls, room on a multiprocessor, bytes moved
candidates, search, trial, tuned   what tune does: which configurations, in what order, carried out where; its table
"""

from .api import gemm
from .config import Config
from .kernel import GemmKernel

__all__ = ["Config", "GemmKernel", "gemm"]
