"""Ways of cutting a problem that are worth measuring: one of every tile and feed, then what differs in one thing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tilelayout import LayoutError

from ...target import Target
from .choose import configs, cost_of, unroll_of
from .config import SENDERS, Config, Feed
from .numbers import Extents, tiles_of
from .pack import packed_problem
from .problem import Problem
from .reduce import SUMS
from .refine import collecting, copying_beside, streaming, worth_packing
from .room import ends_within_unit, feed_of, stages_of

_HOPELESS = 3.0
"""How many times the least estimated cost is not worth measuring."""
GROUPS = (4, 8, 16, 32)
UNROLLS = (1, 2, 4)
STAGES = (2, 3, 4, 5, 6, 8)
SPLITS = (1, 2, 4, 8)
_FEW, _DEEP = 96, 4
"""So few tiles leave multiprocessors idle, and parts of K are worth adding up; stages that a part has at least."""


def first(problem: Problem, target: Target, found: Extents, multiprocessors: int) -> list[Config]:
    """One of every tile and feed: those of the fastest feed first, each by what it is estimated to cost."""
    letters = worth_packing(problem, target, found)
    if letters:
        inner = first(packed_problem(problem, letters), target, found, multiprocessors)
        rest = _of_feeds(problem, target, found, multiprocessors)
        packed = [replace(c, packed=letters) for c in inner]
        return [*[copying_beside(c, problem, found, multiprocessors) for c in packed], *rest[:1]]
    return _of_feeds(problem, target, found, multiprocessors)


def _of_feeds(problem: Problem, target: Target, found: Extents, multiprocessors: int) -> list[Config]:
    """The same as the factors lie."""
    best = feed_of(problem, target)
    if best == "tma" and found.K == 0:
        best = "cp_async"
    feeds: list[Feed] = [best, "cp_async"] if best == "tma" else [best]
    worth: dict[Config, tuple[bool, float]] = {}
    for feed in feeds:
        for c in configs(problem, target, feed):
            c = replace(c, unroll=unroll_of(c, found))
            if ends_within_unit(problem, found):
                c = collecting(problem, c, target, found)
            order = (feed != best, cost_of(c, found, multiprocessors))
            worth.setdefault(streaming(problem, target, c, found), order)
    least = min((cost for _, cost in worth.values()), default=0)
    return sorted([c for c in worth if worth[c][1] <= _HOPELESS * least], key=lambda c: worth[c])


def variations(config: Config, problem: Problem, target: Target, found: Extents) -> list[Config]:
    """Configurations that differ from one in one thing; what has no room may be among them."""
    out: dict[Config, None] = {}
    for changed in _changes(config, problem, target, found):
        try:
            c = replace(config, **changed)
        except LayoutError:  # stages that the unrolling does not divide
            continue
        if c != config:
            out[c] = None
    return list(out)


def _changes(config: Config, problem: Problem, target: Target, found: Extents) -> Iterator[dict[str, Any]]:
    rows, columns = tiles_of(config, found)
    for group in GROUPS:
        if group < 2 * rows:
            yield {"group": group}
    if config.feed != "registers":
        for unroll in UNROLLS:
            yield {"unroll": unroll}
        room = stages_of(problem, config.tile, target)
        for stages in STAGES:
            if stages <= room:
                yield {"stages": stages}
        if room >= 4:
            yield {"stages": room // 2, "resident": 2, "unroll": 1}
    if problem.accumulator in SUMS and rows * columns * found.batches <= _FEW:
        for splits in SPLITS:
            if found.K >= splits * _DEEP * config.tile[2]:
                yield {"splits": splits}
    if config.packed:
        yield {"beside": not config.beside}
    for fragments in (1, 2):
        yield {"fragments": fragments}
    for sender in SENDERS:
        for slots in (0, 1, 2):
            yield {"slots": slots, "sender": sender}
    if rows == 1 and config.feed != "registers":
        yield {"spread": not config.spread}


__all__ = ["first", "variations"]
