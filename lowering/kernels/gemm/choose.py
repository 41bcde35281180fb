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
from .pack import packed_problem
from .problem import Problem
from .refine import collecting, copying_beside, streaming, worth_packing
from .room import ends_within_unit, feed_of, stages_of
from .stages import choose_record
from .store_rows import slot_bytes

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
GROUP, LOW_GROUP, HIGH = 16, 8, 256
"""Rows of tiles that go together, and of tiles at least so high: what is worked on at a time is near a square then,
which reads the fewest rows and columns."""
STAGE_BYTES = 128
"""Of a row of a stage along K: a row of shared memory."""


def depth_of(problem: Problem, target: Target) -> int:
    """Elements along K of a stage: a row of shared memory, and at least two steps."""
    return max(STAGE_BYTES // max(problem.A.bytes, problem.B.bytes), 2 * choose_record(problem, target).k)


def configs(problem: Problem, target: Target, feed: Feed | None = None) -> list[Config]:
    """Every way that fits, the largest tiles first."""
    feed = feed or feed_of(problem, target)
    out: list[Config] = []
    depth = depth_of(problem, target)
    for (m, n), warps, fragments in shapes_of(problem, target, feed):
        plain = Config(
            (m, n, depth), warps, 2, feed, 1, LOW_GROUP if m >= HIGH else GROUP, 1, 1, 0, fragments
        )
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
        tried = tuple([replace(c, packed="") for c in without if c.packed == letters and not c.beside])
        inner = choose(packed_problem(problem, letters), target, extents, multiprocessors, tried)
        first = replace(inner, packed=letters)
        both = copying_beside(first, problem, extents, multiprocessors)
        return first if both in without else both
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
