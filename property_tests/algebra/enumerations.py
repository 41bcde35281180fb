"""Every small shard, for the tests that leave nothing to chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any

from property_tests.algebra import reference
from tilelayout import Iter, TileLayout, laneid, m

TWO_AXES = (m, laneid)
SIGNED = (-1, 0, 1, 2, 3)
PLAIN = (1, 2, 3)


def steps(strides: Sequence[int], axes: Sequence[Any]) -> list[tuple[int, Any]]:
    """Every stride on every axis."""
    return list(product(strides, axes))


@cache
def extents_of(size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(reference.factorizations(size))


def shards(
    size: int, strides: Sequence[int] = SIGNED, axes: Sequence[Any] = TWO_AXES
) -> Iterator[tuple[Iter, ...]]:
    """All shards of that size without unit extents, on these strides and axes."""
    moves = steps(strides, axes)
    for extents in extents_of(size):
        for chosen in product(moves, repeat=len(extents)):
            yield tuple(Iter(e, s, a) for e, (s, a) in zip(extents, chosen, strict=True))


def functions(size: int, strides: Sequence[int] = SIGNED, axes: Sequence[Any] = TWO_AXES) -> list[TileLayout]:
    """One layout for each function that a shard of that size can have: the first that was met.

    By the table of values and not by the canonical form, which is what the tests are about.
    """
    seen: dict[tuple, TileLayout] = {}
    for shard in shards(size, strides, axes):
        seen.setdefault(tuple(reference.vectors(shard, axes)), TileLayout.from_iters(shard))
    return list(seen.values())
