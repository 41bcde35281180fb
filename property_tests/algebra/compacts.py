"""Compact layouts, the bijections onto 0..n-1 on `m`: all of them, and what is drawn on top of them.

Every layout whose strides nest is a compact one with gaps between its digits, perhaps walked backwards and moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import permutations
from random import Random
from typing import Any

import pytest

from property_tests.algebra import reference
from tilelayout import Iter, LayoutError, TileLayout, laneid, m, warpid


def attempt(ask: Callable[[], Any]) -> Any:
    """The answer, or the error that refuses it."""
    try:
        return ask()
    except LayoutError as error:
        return error


@cache
def compact(size: int) -> tuple[TileLayout, ...]:
    """Every bijection onto 0..size-1 that a shard makes, once each."""
    found: dict[tuple[int, ...], TileLayout] = {}
    for extents in reference.factorizations(size):
        strides = row_major(extents)
        for order in permutations(range(len(extents))):
            layout = TileLayout.from_iters([Iter(extents[k], strides[k]) for k in order] or [Iter(1, 0)])
            found.setdefault(tuple(places(layout)), layout)
    return tuple(found.values())


def row_major(extents: Sequence[int]) -> list[int]:
    strides, stride = [], 1
    for e in reversed(extents):
        strides.append(stride)
        stride *= e
    return strides[::-1]


def places(layout: TileLayout, axis: str = "m") -> list[int]:
    """The coordinate of every element on one axis, the replica left out."""
    return [reference.displacement(layout, flat).get(axis, 0) for flat in range(reference.size(layout))]


def with_gaps(layout: TileLayout, rng: Random, backwards: bool = True) -> TileLayout:
    """The same digits with gaps between them, some walked from the other end; from 0 up."""
    strides: dict[int, int] = {}
    filled = 1
    for it in sorted(layout.shard, key=lambda it: it.stride):
        strides[it.stride] = filled * rng.choice((1, 1, 2, 3))
        filled = strides[it.stride] * it.extent
    out, offset = [], 0
    for it in layout.shard:
        stride = strides[it.stride]
        if backwards and rng.random() < 0.2:
            offset += (it.extent - 1) * stride
            stride = -stride
        out.append(Iter(it.extent, stride))
    return TileLayout.from_iters(out, (), {m: offset})


def factors(size: int, rng: Random) -> list[int]:
    out = []
    while size > 1:
        out.append(rng.choice([d for d in range(2, size + 1) if size % d == 0]))
        size //= out[-1]
    return out


def anything(
    rng: Random, largest: int = 24, axes: Sequence[object] = (m,), replicated: bool = False
) -> TileLayout:
    """Any strides: overlapping, interleaved, zero, negative; half of the time nesting ones."""
    size = rng.randint(1, largest)
    if rng.random() < 0.5:
        layout = with_gaps(rng.choice(compact(size)), rng) if size < 25 else None
        if layout is not None and axes == (m,) and not replicated:
            return layout
    strides = (0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 12, -1, -2, -3)
    shard = [Iter(e, rng.choice(strides), rng.choice(axes)) for e in factors(size, rng)]
    if rng.random() < 0.2:
        shard.insert(rng.randint(0, len(shard)), Iter(1, rng.choice(strides), rng.choice(axes)))
    replica = [Iter(rng.choice((1, 2, 3)), rng.choice(strides), rng.choice(axes))] if replicated else []
    offset = {rng.choice(axes): rng.choice((0, 0, 1, 3, -2))}
    return TileLayout.from_iters(shard or [Iter(1, 0)], replica * rng.randint(0, 2), offset)


def on_axes(layout: TileLayout, rng: Random) -> TileLayout:
    """The same digits on axes drawn one by one, with a replica and an offset."""
    axes = (m, m, laneid, warpid)
    shard = [Iter(it.extent, it.stride, rng.choice(axes)) for it in layout.shard]
    replica = [Iter(2, rng.choice((1, 4, 100)), rng.choice(axes))] if rng.random() < 0.3 else []
    return TileLayout.from_iters(shard, replica, {rng.choice(axes): rng.choice((0, 5, -7))})


def moved(layout: TileLayout, rng: Random) -> TileLayout:
    """The same with another offset."""
    offset = {m: layout.offset.get(m, 0) + rng.choice((0, 5, -3))}
    return TileLayout.from_iters(layout.shard, layout.replica, offset)


def with_copies(layout: TileLayout, rng: Random) -> TileLayout:
    """The same with a replica; half of the time one that adds nothing."""
    copies = Iter(*rng.choice(((3, 0), (1, 7), (2, 1), (2, 100))))
    return TileLayout.from_iters(layout.shard, [copies], layout.offset)


def is_copied(layout: TileLayout) -> bool:
    """Whether some element has two places."""
    return any(it.extent > 1 and it.stride for it in layout.replica)


def every(sizes: Sequence[int], seed: int) -> Iterator[tuple[TileLayout, list[TileLayout], Random]]:
    """Every compact layout of these sizes, and what is drawn on top of it: gaps, offsets, replicas."""
    rng = Random(seed)
    for size in sizes:
        for layout in compact(size):
            spread = with_gaps(layout, rng)
            others = [spread, moved(spread, rng), with_copies(rng.choice((layout, spread)), rng)]
            yield layout, others, rng


def drawn(
    seed: int, count: int, largest: int, fits: Callable[[list[int]], bool] = lambda places: True
) -> Iterator[tuple[TileLayout, Random]]:
    """That many random layouts on `m` whose places fit."""
    rng = Random(seed)
    done = 0
    while done < count:
        layout = anything(rng, largest)
        if fits(places(layout)):
            yield layout, rng
            done += 1


def by_size(fast: int, slow: int) -> pytest.MarkDecorator:
    """Run a test of (sizes, seed) on sizes up to `fast`, and as a slow test on all from there to `slow`."""
    small, large = range(1, fast + 1), range(fast + 1, slow + 1)
    cases = [
        pytest.param(small, 1, id=f"up to {fast}"),
        pytest.param(large, 3, id=f"up to {slow}", marks=pytest.mark.slow),
    ]
    return pytest.mark.parametrize(("sizes", "seed"), cases)


def by_count(fast: int, seeds: tuple[int, int] = (2, 4)) -> pytest.MarkDecorator:
    """Run a test of (count, seed) on `fast` random operands, and as a slow test on ten thousand others."""
    cases = [
        pytest.param(fast, seeds[0], id=f"{fast}"),
        pytest.param(10_000, seeds[1], id="10000", marks=pytest.mark.slow),
    ]
    return pytest.mark.parametrize(("count", "seed"), cases)


def pairs(sizes: Sequence[int]) -> Iterator[tuple[TileLayout, TileLayout]]:
    """Every compact layout of each size with every one that is no larger."""
    for size in sizes:
        for a in compact(size):
            for smaller in range(1, size + 1):
                for b in compact(smaller):
                    yield a, b
