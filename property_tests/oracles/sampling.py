"""Random layouts of the kind that TVM handles: positive strides, no replica, no offset, everything in range."""

from __future__ import annotations

from random import Random

from tilelayout import TileLayout

SIZES = (1, 2, 4, 6, 8, 12, 16, 18, 24, 32, 36, 48, 60)
STRIDES = (1, 2, 3, 4, 6, 8, 10, 12, 16, 100)
AXES = ("m", "m", "laneid", "warpid")


def factors(rng: Random, n: int, units: bool = True) -> list[int]:
    """A random shape of n elements."""
    found: list[int] = []
    while n > 1:
        found.append(rng.choice([d for d in range(2, n + 1) if n % d == 0]))
        n //= found[-1]
    rng.shuffle(found)
    if units and rng.random() < 0.3:
        found.insert(rng.randint(0, len(found)), 1)
    return found or [1]


def layout(rng: Random, axes: tuple[str, ...] = AXES, units: bool = True) -> TileLayout:
    iters: list[tuple[int, int, str]] = []  # innermost first
    for extent in factors(rng, rng.choice(SIZES), units):
        if iters and rng.random() < 0.3:
            e, s, axis = iters[-1]
            iters.append((extent, e * s, axis))  # counts on through the wrap
        else:
            iters.append((extent, rng.choice(STRIDES), rng.choice(axes)))
    return TileLayout.from_iters(iters[::-1])


def fitting_shape(rng: Random, found: TileLayout) -> list[int]:
    """A shape that the iters can be grouped to: split here, joined there."""
    shape: list[int] = []
    for it in found.shard:
        for piece in factors(rng, it.extent, units=False):
            if shape and rng.random() < 0.4:
                shape[-1] *= piece
            else:
                shape.append(piece)
    return shape


def region(rng: Random, shape: list[int]) -> list[tuple[int, int]]:
    """A box, of aligned bounds or of any; rarely larger than a few elements in the latter case."""
    box: list[tuple[int, int]] = []
    for n in shape:
        unit = rng.choice([d for d in range(1, n + 1) if n % d == 0])
        if rng.random() < 0.4:
            begin = rng.randint(0, n - 1)
            box.append((begin, min(n, begin + rng.choice((1, 2, 2, 4, 6)))))
            continue
        begin = rng.randint(0, n // unit - 1)
        box.append((begin * unit, rng.randint(begin + 1, n // unit) * unit))
    return box
