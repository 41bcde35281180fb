"""Layouts as linear maps over F2, in the words of `triton_server`: the images of the bits of the index."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from property_tests.algebra import reference, swizzling
from tilelayout import Iter, Swizzle, SwizzledLayout, TileLayout, XorMap, laneid, m, warpid

AXES = (m, m, m, laneid, warpid)

Linear = dict[str, Any]


def place(layout: TileLayout | SwizzledLayout, flat: int) -> dict[str, int]:
    """Where one element is, evaluated by the definitions and not by the code."""
    if isinstance(layout, TileLayout):
        return reference.displacement(layout, flat)
    found = reference.displacement(layout.layout, flat)
    return {**found, "m": swizzling.image(layout.swizzle, found.get("m", 0))}


def places(layout: TileLayout | SwizzledLayout, axes: Sequence[str]) -> list[list[int]]:
    flats = range(swizzling.size(layout))
    return [[at.get(a, 0) for a in axes] for at in (place(layout, i) for i in flats)]


def axes_of(layout: TileLayout | SwizzledLayout) -> list[str]:
    shard = layout.shard if isinstance(layout, TileLayout) else layout.layout.shard
    return sorted({"m"} | {str(it.axis) for it in shard})


def ceiling(x: int) -> int:
    """The least power of two that is greater."""
    return 1 << x.bit_length()


def linear(
    layout: TileLayout | SwizzledLayout, source: str = "i", sizes: dict[str, int] | None = None
) -> Linear:
    """A layout that is linear, of a power of two of elements: input `source` to one output for each axis."""
    axes = axes_of(layout)
    bits = swizzling.size(layout).bit_length() - 1
    bases = [[place(layout, 1 << k).get(a, 0) for a in axes] for k in range(bits)]
    table = places(layout, axes)
    largest = {a: ceiling(max(row[k] for row in table)) for k, a in enumerate(axes)}
    return {"bases": [[source, bases]], "outs": [[a, {**largest, **(sizes or {})}[a]] for a in axes]}


def map_of(f: XorMap, bits: int, source: str, target: str) -> Linear:
    """A swizzle as a map of that many bits."""
    images = [[swizzling.image(f, 1 << k)] for k in range(bits)]
    return {"bases": [[source, images]], "outs": [[target, 1 << bits]]}


def a_layout(
    rng: Random, bits: int, axes: Sequence[Any] = AXES, gaps: bool = True, zeros: bool = True
) -> TileLayout:
    """Every bit of the index goes to a bit of its own, on some axis, or nowhere: such a layout is linear."""
    chosen = [rng.choice(axes) for _ in range(bits)]
    free = {a: list(range(chosen.count(a) + (rng.randint(0, 2) if gaps else 0))) for a in set(chosen)}
    shard = []
    for axis in chosen:
        at = free[axis].pop(rng.randrange(len(free[axis])))
        stride = 0 if zeros and rng.random() < 0.1 else 1 << at
        shard.append(Iter(2, stride, axis))
    found = TileLayout.from_iters(shard)
    return found.canonicalize() if rng.random() < 0.5 else found


def a_swizzle(rng: Random, bits: int) -> Swizzle:
    """One that stays within that many bits."""
    while True:
        f = Swizzle(rng.randint(0, 3), rng.randint(0, 3), rng.choice((1, 1, -1)) * rng.randint(3, 4))
        if f.width <= bits:
            return f


def a_map(rng: Random, bits: int) -> XorMap:
    """Any linear bijection of that many bits."""
    images = [1 << k for k in range(bits)]
    rng.shuffle(images)
    for _ in range(2 * bits):
        i, j = rng.randrange(bits), rng.randrange(bits)
        if i != j:
            images[i] ^= images[j]
    return XorMap(images)
