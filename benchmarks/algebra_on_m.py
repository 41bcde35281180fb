"""The rows that layouts on memory alone can answer: ours beside CuTe's Python implementations, written once.

Operands are given in our order, the last iter fastest.  CuTe counts its first mode fastest, so a library of that
kind is handed the same iters backwards: both are then the same function of the flat index, and so are results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .worker import Row

Iters = tuple[tuple[int, ...], tuple[int, ...]]  # extents, strides

FRAGMENT: Iters = (
    (2, 8, 2, 4, 2),
    (2, 32, 4, 8, 1),
)  # A of m16n8k16, its place counted as 8 * lane + register
TRANSPOSED: Iters = ((16, 16), (1, 16))
FUSING: Iters = ((2, 8, 2, 8), (128, 16, 8, 1))
RAGGED: Iters = ((2, 6), (2, 8))  # CuTe's documentation: (6, 2):(8, 2) o (4, 3):(3, 1)
STEPS: Iters = ((3, 4), (1, 3))
GAPS: Iters = ((2, 2), (6, 1))  # CuTe's documentation: complement((2, 2):(1, 6), 24)
PARTIAL: Iters = ((6, 4, 2), (8, 1, 4))
SPREAD: Iters = ((4, 8), (16, 2))
DIVIDED: Iters = ((3, 2, 4), (8, 1, 2))  # CuTe's documentation: (4, 2, 3):(2, 1, 8) by 4:2
MATRIX: Iters = ((32, 12), (12, 1))
BLOCK: Iters = ((2, 2), (1, 4))
TILE: Iters = ((8, 8), (8, 1))
SWIZZLED: Iters = ((8, 64), (64, 1))
SWIZZLE = (3, 3, 3)
EDGE = 4096  # the map of EDGE x EDGE elements in tiles of 32 x 32
TILES: Iters = ((128, 32, 128, 32), (131072, 32, 1024, 1))


@dataclass(frozen=True)
class Library:
    """What a library calls the operations; None where it has no such thing.

    `make` takes extents and strides in our order, `values` gives a result as the places of every flat index.
    """

    make: Callable[[tuple[int, ...], tuple[int, ...]], Any]
    values: Callable[[Any], list[int]]
    at: Callable[[Any, int], Any]
    place: Callable[[Any], int]
    coalesce: Callable[[Any], Any]
    compose: Callable[[Any, Any], Any]
    complement: Callable[[Any, int], Any]
    inverse: Callable[[Any], Any]
    right_inverse: Callable[[Any], Any]
    left_inverse: Callable[[Any], Any]
    logical_divide: Callable[[Any, Any], Any]
    zipped_divide: Callable[[Any], Any]  # MATRIX by (8, 4)
    logical_product: Callable[[Any], Any]  # six copies
    group: Callable[[Any], Any]  # FUSING by (4, 4, 4, 4)
    slice: Callable[[Any], Any]  # FUSING as (16, 16), the box [4, 8) x [8, 16)
    tile_to: Callable[[Any], Any]  # TILE to (32, 32)
    swizzle: Callable[[], Any]
    swizzled: Callable[[Any, Any], Any]  # a swizzle and a layout
    raked_product: Callable[[Any, Any], Any] | None = None  # of (8, 8) and (4, 4)
    hash_of: Callable[[Any], int] | None = None
    swizzle_at: Callable[[Any, int], int] | None = None


def rows(lib: Library) -> list[Row]:
    """The rows that `lib` has."""
    values, place = lib.values, lib.place

    def one(iters: Iters) -> Callable[[int], list[Any]]:
        return lambda n: [lib.make(*iters) for _ in range(n)]

    def two(first: Iters, second: Iters) -> Callable[[int], list[Any]]:
        return lambda n: [(lib.make(*first), lib.make(*second)) for _ in range(n)]

    def indices(size: int) -> Callable[[int], list[Any]]:
        return lambda n: [i * 37 % size for i in range(1, n + 1)]

    def back(iters: Iters) -> Callable[[Any], list[int]]:
        """What a left inverse is for: the indices again, whatever it gives where no element is."""

        def indices_again(found: Any) -> list[int]:
            table = values(found)
            return [table[x] for x in places(*iters)]

        return indices_again

    warm, swizzle = lib.make(*FRAGMENT), lib.swizzle()
    swizzled = lib.swizzled(swizzle, lib.make(*SWIZZLED))
    lib.at(warm, 0)
    out = [
        Row("construct, on m", lambda n: [None] * n, lambda _: lib.make(*FRAGMENT), values),
        Row("apply, on m", indices(256), lambda i: lib.at(warm, i), place),
        Row("canonicalize, on m", one(FUSING), lib.coalesce, values),
        Row("group, on m", one(FUSING), lib.group, values),
        Row("slice, on m", one(FUSING), lib.slice, values),
        Row("tile_to, on m", one(TILE), lib.tile_to, values),
        Row("compose", two(RAGGED, STEPS), lambda x: lib.compose(x[0], x[1]), values),
        Row("compose, powers of two", two(FRAGMENT, TRANSPOSED), lambda x: lib.compose(x[0], x[1]), values),
        Row("complement", one(GAPS), lambda x: lib.complement(x, 24), values),
        Row("inverse", one(FRAGMENT), lib.inverse, values),
        Row("right_inverse", one(PARTIAL), lib.right_inverse, values),
        Row("left_inverse", one(FRAGMENT), lib.left_inverse, back(FRAGMENT)),
        Row("left_inverse, with gaps", one(SPREAD), lib.left_inverse, back(SPREAD)),
        Row("logical_divide", two(DIVIDED, ((4,), (2,))), lambda x: lib.logical_divide(x[0], x[1]), values),
        Row("zipped_divide, (8, 4)", one(MATRIX), lib.zipped_divide, values),
        Row("logical_product", one(BLOCK), lib.logical_product, values),
        Row("swizzled layout, apply", indices(512), lambda i: lib.at(swizzled, i), place),
    ]
    raked, apply, hash_of = lib.raked_product, lib.swizzle_at, lib.hash_of
    if apply is not None:
        out.append(Row("swizzle, apply", indices(512), lambda i: apply(swizzle, i), int))
    if raked is not None:
        out.append(
            Row("raked_product", two(TILE, ((4, 4), (4, 1))), lambda x: raked(x[0], x[1]), values, 100)
        )
    out.append(Row("equality, on m", two(FRAGMENT, FRAGMENT), lambda x: x[0] == x[1], bool))
    if hash_of is not None:
        out.append(Row("hash, on m", lambda n: [warm] * n, hash_of, lambda _: None))
    return out


def places(extents: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """The place of every flat index, the last iter fastest: what a layout means, in plain Python."""
    found = [0]
    for e, s in zip(extents, strides, strict=True):
        found = [place + c * s for place in found for c in range(e)]
    return found
