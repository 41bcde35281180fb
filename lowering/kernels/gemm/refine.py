"""What becomes of a cut for how arrays lie, and for few rows: who sends rows, what is copied first."""

from __future__ import annotations

from dataclasses import replace

from ...isa.budget import setmaxnreg
from ...target import Target
from .config import Config
from .numbers import Extents, tiles_of
from .pack import Packing, packed_elements, packed_problem
from .panels import refusal as refused_beside
from .problem import Problem
from .room import BULK_ALIGNMENT, ends_within_unit, feed_of, stages_of
from .store_rows import refusal

LOW = 64
"""Rows of the highest tiles that wait for memory where there is one row of them."""
PACKED_FROM, PACKED_PRODUCTS = 96, 1 << 28
"""Rows and columns, and multiply-adds, of the smallest problems whose factors are worth copying: an element of a factor
costs two accesses then, and saves as many products fed by threads, at an eighth of the speed."""
PACKED_MOST = 4 << 30
"""Bytes of the largest copies that a kernel makes without being asked to."""
LARGE, DEEP = 128 * 256, 2000
"""Elements of the smallest tile beside which factors are copied, and the least K: with 1237 and 701 copies beside the
product cost 1 to 2 %, with 2003 and more they brought 3 to 4 % (H200)."""
COLLECTED = 128 * 128
"""Elements of the smallest tile whose threads collect rows before they store them."""


def collecting(problem: Problem, config: Config, target: Target, extents: Extents | None = None) -> Config:
    """The same with slots for the result where rows of it are worth collecting.

    The copy engine sends what ``stmatrix`` collects, 16-bit elements; threads send wider ones, and what the engine does
    not take, where feeders give them registers for the addresses.  Kernels that read C have addresses of fragments
    anyway.
    """
    d = problem.D
    if d.layout is not None or problem.C is not None or config.feed == "registers":
        return replace(config, slots=0, sender="bulk")
    within = extents is not None and ends_within_unit(problem, extents)
    if config.feed == "tma" and d.bytes == 2 and d.alignment % BULK_ALIGNMENT == 0 and not within:
        cut = replace(config, slots=2 if config.fragments == 2 else 1, sender="bulk")
    else:
        small = config.tile[0] * config.tile[1] < COLLECTED or setmaxnreg(24, False).refusal(target)
        cut = replace(config, slots=0 if small else 1, sender="threads")
    return replace(config, slots=0, sender="bulk") if refusal(cut, d.bytes) or not cut.slots else cut


def streaming(problem: Problem, target: Target, config: Config, extents: Extents) -> Config:
    """The same for one row of low tiles, which waits for memory: threads keep more of B's bytes on their way.

    Few rows begin at different places along K: all read the same A, which one part of the second cache has.
    """
    rows, _ = tiles_of(config, extents)
    m, n, depth = config.tile
    if rows > 1 or m > LOW or config.feed != "tma":
        return config
    few = m < LOW
    tile = (m, n, 2 * depth if few else depth)
    stages = min(6 if few else 8, stages_of(problem, tile, target))
    return replace(
        config, tile=tile, stages=stages, feed="cp_async", unroll=1, slots=0, sender="bulk", spread=few
    )


def copying_beside(config: Config, problem: Problem, extents: Extents | None, multiprocessors: int) -> Config:
    """The same with what the first tiles don't need copied beside the product, where CTAs have several tiles that take
    long: beside shorter ones too little is copied.
    """
    m, n, _ = config.tile
    if extents is None or m * n < LARGE or extents.K < DEEP or problem.A.bytes != 2:
        return config
    if refused_beside(problem, config)[0]:
        return config
    rows, columns = tiles_of(config, extents)
    return replace(config, beside=rows * columns > multiprocessors * config.resident)


def worth_packing(problem: Problem, target: Target, extents: Extents | None) -> str:
    """The factors that are copied to rows of whole cache lines first: where others than threads can feed then, and the
    product takes much longer than to read and write them once.
    """
    if extents is None or extents.K == 0 or feed_of(problem, target) != "registers":
        return ""
    letters = "".join([x for x in "AB" if getattr(problem, x).alignment % BULK_ALIGNMENT])
    laid = any(getattr(problem, x).layout is not None for x in letters)
    if not letters or laid or feed_of(packed_problem(problem, letters), target) == "registers":
        return ""
    products = extents.M * extents.N * extents.K * extents.batches
    large = min(extents.M, extents.N) >= PACKED_FROM and products >= PACKED_PRODUCTS
    room = sum(
        [
            packed_elements(Packing(x, getattr(problem, x), problem.batched), extents)
            * getattr(problem, x).bytes
            for x in letters
        ]
    )
    return letters if large and room <= PACKED_MOST else ""
