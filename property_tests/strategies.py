"""Hypothesis strategies for layouts and for what their operations take; it grows with each feature.

A strategy takes its alphabet (axes, extents, strides) as arguments, so that a test of a new feature can
narrow or widen it.  Whatever is drawn is small enough to be checked at every coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tilelayout import Iter, P, TileLayout, laneid, m, pid, warpid

AXES = (m, laneid, warpid, P, pid)
"""Of all kinds: memory (the default axis and another), threads, a device."""

EXTENTS = (1, 2, 2, 3, 4, 5, 6, 7, 8)
PLAIN_STRIDES = (1, 2, 3, 4, 6, 8, 12, 16, 32)
HUGE_STRIDES = (2**31, 2**32 - 1, -(2**33), 2**63 - 1, 2**63, -(2**64), 10**30)
STRIDES = (*PLAIN_STRIDES, 0, 0, -1, -2, -3, -8, *HUGE_STRIDES)
SMALL_STRIDES = (0, 1, 1, 2, 3, 4, -1, -2)


def axes(among: Sequence[object] = AXES) -> st.SearchStrategy:
    return st.sampled_from(among)


@st.composite
def shards(
    draw: st.DrawFn,
    max_size: int = 96,
    max_rank: int = 5,
    among: Sequence[object] = AXES,
    strides: Sequence[int] = STRIDES,
    extents: Sequence[int] = EXTENTS,
) -> tuple[Iter, ...]:
    """Iters, outermost first; every third pair or so counts on through the wrap, so that it can be merged."""
    found: list[Iter] = []
    room = max_size
    for _ in range(draw(st.integers(0, max_rank))):
        fitting = [e for e in extents if e <= room]
        extent = draw(st.sampled_from(fitting))
        room //= extent
        if found and draw(st.integers(0, 2)) == 2:
            inner = found[-1]
            stride, axis = inner.extent * inner.stride, inner.axis
        else:
            stride, axis = draw(st.sampled_from(strides)), draw(axes(among))
        found.append(Iter(extent, stride, axis))
    return tuple(reversed(found))


def replicas(
    max_copies: int = 8,
    max_rank: int = 3,
    among: Sequence[object] = AXES,
    strides: Sequence[int] = (*SMALL_STRIDES, 8, 2**63),
) -> st.SearchStrategy[tuple[Iter, ...]]:
    """Mostly none, sometimes several iters that overlap, touch or leave gaps."""
    some = shards(max_copies, max_rank, among, strides)
    return st.one_of(st.just(()), some)


def offsets(
    among: Sequence[object] = AXES, values: Sequence[int] = (0, 1, 5, -3, 64, 2**31, -(2**63))
) -> st.SearchStrategy:
    return st.dictionaries(axes(among), st.sampled_from(values), max_size=3)


@st.composite
def layouts(
    draw: st.DrawFn,
    max_size: int = 96,
    max_rank: int = 5,
    among: Sequence[object] = AXES,
    strides: Sequence[int] = STRIDES,
    replicated: bool = True,
    moved: bool = True,
) -> TileLayout:
    """A layout of any kind; `replicated` and `moved` say whether it may have a replica and an offset."""
    shard = draw(shards(max_size, max_rank, among, strides))
    replica = draw(replicas(among=among)) if replicated else ()
    offset = draw(offsets(among)) if moved else {}
    return TileLayout.from_iters(shard, replica, offset)


def plain_layouts(**options: object) -> st.SearchStrategy[TileLayout]:
    """Positive strides of ordinary size, no replica, no offset: what every system has."""
    return layouts(strides=PLAIN_STRIDES, replicated=False, moved=False, **options)


@st.composite
def factorizations(draw: st.DrawFn, size: int, units: bool = True) -> tuple[int, ...]:
    """A shape of `size` elements: any factors in any order, with unit extents here and there."""
    shape: list[int] = []
    rest = size
    while rest > 1:
        shape.append(draw(st.sampled_from([d for d in range(2, rest + 1) if rest % d == 0])))
        rest //= shape[-1]
    if units:
        for _ in range(draw(st.integers(0, 2))):
            shape.insert(draw(st.integers(0, len(shape))), 1)
    return tuple(shape)


@st.composite
def fitting_shapes(draw: st.DrawFn, extents: Sequence[int], rank: int | None = None) -> tuple[int, ...]:
    """A shape that these iters can be grouped to: extents that are split, joined, and padded with units."""
    pieces = [p for e in extents for p in draw(factorizations(e, units=False))]
    shape: list[int] = []
    for piece in pieces:
        if shape and draw(st.booleans()):
            shape[-1] *= piece
        else:
            shape.append(piece)
    if rank is not None:
        while len(shape) > rank:
            last = shape.pop()
            shape[-1] *= last
    while len(shape) < (rank or 0) or (rank is None and draw(st.integers(0, 4)) == 4):
        shape.insert(draw(st.integers(0, len(shape))), 1)
    return tuple(shape)


@st.composite
def regions(draw: st.DrawFn, shape: Sequence[int]) -> list[tuple[int, int]]:
    """A box that isn't empty: aligned bounds as often as any others, so that many slices exist."""
    box: list[tuple[int, int]] = []
    for n in shape:
        unit = draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
        begin = draw(st.integers(0, n // unit - 1))
        end = draw(st.integers(begin + 1, n // unit))
        box.append((begin * unit, end * unit))
    return box
