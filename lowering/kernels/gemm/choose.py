"""Which ways of cutting a problem there are on a target, and which is taken when nobody has measured.

The largest tile is the fastest per multiply-add, since it reads least; a problem that gives fewer tiles than there are
multiprocessors takes smaller ones.
"""

from __future__ import annotations

from dataclasses import replace

from ...isa.budget import setmaxnreg
from ...target import Target
from .config import Config, Feed
from .numbers import Extents, tiles_of
from .pack import Packing, packed_elements, packed_problem
from .problem import Matrix, Problem
from .stages import choose_record
from .store_rows import refusal, slot_bytes

SHARED = {
    75: 64,
    80: 163,
    86: 99,
    87: 163,
    88: 99,
    89: 99,
    90: 227,
    100: 227,
    103: 227,
    110: 227,
    120: 99,
    121: 99,
}
"""Compute capability -> KiB of shared memory of a CTA (CUDA programming guide, "Technical Specifications per Compute
Capability")."""
RESERVED = 2048
"""Bytes left for barriers and alignment."""
BULK_ALIGNMENT = 16
LOW = 64
"""Rows of the highest tiles that wait for memory where there is one row of them."""
PACKED_FROM, PACKED_PRODUCTS = 96, 1 << 28
"""Rows and columns, and multiply-adds, of the smallest problems whose factors are worth copying: an element of a factor
costs two accesses then, and saves as many products fed by threads, at an eighth of the speed."""
PACKED_MOST = 4 << 30
"""Bytes of the largest copies that a kernel makes without being asked to."""
COLLECTED = 128 * 128
"""Elements of the smallest tile whose threads collect rows before they store them."""
Shape = tuple[tuple[int, int], tuple[int, int], int]
"""Rows and columns of a tile, its warps, and sets of fragments."""
ROOMY: tuple[Shape, ...] = (
    ((160, 256), (2, 4), 1),
    ((128, 256), (2, 4), 2),
    ((256, 128), (4, 2), 2),
    ((128, 128), (2, 2), 2),
    ((128, 64), (2, 2), 2),
    ((64, 128), (2, 2), 2),
    ((64, 64), (2, 2), 2),
    ((32, 64), (2, 2), 2),
    ((16, 64), (1, 4), 2),
)
"""The largest first, where feeders give registers to the multiplying warps, which have 240 each then."""
EQUAL: tuple[Shape, ...] = (
    ((128, 192), (2, 4), 2),
    ((128, 128), (2, 4), 2),
    *ROOMY[4:],
)
"""The same where all warps have 168."""
ALONE: tuple[Shape, ...] = (
    ((128, 128), (2, 4), 2),
    ((64, 128), (2, 4), 2),
    ((64, 64), (2, 2), 2),
    ((32, 64), (2, 2), 2),
    ((16, 64), (1, 4), 2),
)
"""The same where the threads that multiply hold the next stage in registers too."""
STAGE_BYTES = 128
"""Of a row of a stage along K: a row of shared memory."""


def feed_of(problem: Problem, target: Target) -> Feed:
    """The fastest feed that the target has and the matrices' alignment allows."""
    factors = (problem.A, problem.B)
    if target.sm >= 90 and all(m.alignment % BULK_ALIGNMENT == 0 for m in factors):
        return "tma"
    if target.sm >= 80 and all(_copied_by_four(m) for m in factors):
        return "cp_async"
    return "registers"


def _copied_by_four(matrix: Matrix) -> bool:
    return matrix.alignment % 4 == 0


def stages_of(problem: Problem, tile: tuple[int, int, int], target: Target, beside: int = 0) -> int:
    """Stages that shared memory holds beside other bytes, at most 8."""
    each = tile[2] * (tile[0] * problem.A.bytes + tile[1] * problem.B.bytes)
    return min(8, (SHARED[target.sm] * 1024 - RESERVED - beside) // each)


def depth_of(problem: Problem, target: Target) -> int:
    """Elements along K of a stage: a row of shared memory, and at least two steps."""
    return max(STAGE_BYTES // max(problem.A.bytes, problem.B.bytes), 2 * choose_record(problem, target).k)


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


def ends_within_unit(problem: Problem, extents: Extents) -> bool:
    """Whether D's rows end within 16 bytes, all of which the copy engine would store, beyond the end too."""
    return extents.N * problem.D.bytes % BULK_ALIGNMENT != 0


def configs(problem: Problem, target: Target, feed: Feed | None = None) -> list[Config]:
    """Every way that fits, the largest tiles first."""
    feed = feed or feed_of(problem, target)
    out: list[Config] = []
    depth = depth_of(problem, target)
    for (m, n), warps, fragments in shapes_of(problem, target, feed):
        plain = Config((m, n, depth), warps, 2, feed, 1, 16, 1, 1, 0, fragments)
        cut = collecting(problem, plain, target)
        stages = stages_of(problem, cut.tile, target, slot_bytes(cut, problem.D.bytes))
        if stages < 2 or (problem.accumulator == "float64" and m * n > 64 * 64):
            continue
        out.append(cut if feed == "registers" else replace(cut, stages=stages))
    if feed == "registers" and out and depth % (4 * choose_record(problem, target).k) == 0:
        m, n, _ = out[-1].tile  # for bytes that are loaded one by one
        out.append(replace(out[-1], tile=(m, n, depth // 2)))
    return out


def shapes_of(problem: Problem, target: Target, feed: Feed) -> tuple[Shape, ...]:
    """The tiles that a feed leaves registers for, and that the panels of shared memory divide."""
    if feed == "registers":
        return ALONE
    found = EQUAL if setmaxnreg(24, False).refusal(target) else ROOMY
    if feed == "cp_async" and found is ROOMY:
        found = (*ROOMY[:3], *EQUAL[1:]) if problem.A.bytes == 2 else EQUAL[1:]
    if problem.A.bytes != 2:  # what its one set of fragments costs is more than it brings
        found = tuple([s for s in found if s != ROOMY[0]])
    record = choose_record(problem, target).instruction
    if record.emulation(target):  # what it becomes takes registers of its own
        found = tuple([s for s in found if s[0][0] * s[0][1] <= 128 * 64])
    along_k = problem.A.contiguous == 1 and problem.B.contiguous == 0
    if feed == "cp_async" or not along_k:  # addresses take the registers that a second set of fragments would
        found = tuple([s for s in found if s[2] == 2])
    if problem.B.contiguous == 1:  # panels of shared memory lie along the columns
        panel = STAGE_BYTES // problem.B.bytes
        found = tuple([s for s in found if s[0][1] % min(panel, s[0][1]) == 0])
    return found


def choose(
    problem: Problem,
    target: Target,
    extents: Extents | None = None,
    multiprocessors: int = 132,
    without: tuple[Config, ...] = (),
) -> Config:
    """The way that finishes first if all multiply-adds cost alike and a started tile costs a whole one.

    Without extents the largest tile; `without` those that were found not to do.
    """
    letters = worth_packing(problem, target, extents)
    if letters:
        tried = tuple([replace(c, packed="") for c in without if c.packed == letters])
        inner = choose(packed_problem(problem, letters), target, extents, multiprocessors, tried)
        return replace(inner, packed=letters)
    feed = feed_of(problem, target)
    if extents is not None and extents.K == 0:
        feed = "registers"  # the others fill a stage ahead, also where there is nothing to fill it with
    found = configs(problem, target, feed)
    if extents is not None and ends_within_unit(problem, extents):
        found = [collecting(problem, c, target, extents) for c in found]
    found = [replace(c, unroll=unroll_of(c, extents)) for c in found]
    found = [c for c in found if c not in without] or found
    if extents is None:
        return found[0]
    best = min(found, key=lambda c: cost_of(c, extents, multiprocessors))
    thin = streaming(problem, target, best, extents)
    return best if thin in without else thin


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


def unroll_of(config: Config, extents: Extents | None) -> int:
    """Stages in a turn: as many as divide both the stages and those of a tile, so that none is read in vain."""
    if config.feed == "registers" or config.tile[0] * config.tile[1] < 128 * 128:
        return 1
    count = config.stages if extents is None else max(1, -(-extents.K // config.tile[2]))
    return max(u for u in (1, 2, 4) if config.stages % u == 0 and count % u == 0)


def cost_of(config: Config, extents: Extents, multiprocessors: int) -> float:
    """How long it takes, in multiply-adds of one multiprocessor and a depth of one."""
    rows, columns = tiles_of(config, extents)
    waves = -(-rows * columns * extents.batches // multiprocessors)
    m, n, _ = config.tile
    # Reading a row or column of a tile costs as much as so many multiply-adds.
    return waves * (m * n + 24 * (m + n))
