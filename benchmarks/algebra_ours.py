"""The algebra's rows on tilelayout."""

from __future__ import annotations

from operator import eq
from typing import Any

import tilelayout
from tilelayout import S, Swizzle, SwizzledLayout, TileLayout, laneid

from .algebra_on_m import EDGE, SWIZZLE, TILES, Library
from .algebra_on_m import rows as _rows_on_m
from .algebra_rows import Recognizers
from .algebra_rows import rows as _rows
from .worker import Row

VERSION = f"tilelayout {tilelayout.__version__}"


def make(extents: tuple[int, ...], strides: tuple[int, ...]) -> TileLayout:
    return TileLayout(S[extents:strides])


def values(x: Any) -> list[int]:
    """The places on m of every flat index; a divided layout comes with its shape, grouped ones with separators."""
    layout = x if isinstance(x, TileLayout | SwizzledLayout) else x[0]
    return [place(layout.apply(i)) for i in range(int(layout.size()))]


def place(x: Any) -> int:
    return int(x.get("m", 0))


LIBRARY = Library(
    make=make,
    values=values,
    at=lambda layout, i: layout.apply(i),
    place=place,
    coalesce=TileLayout.canonicalize,
    compose=TileLayout.compose,
    complement=TileLayout.complement,
    inverse=TileLayout.inverse,
    right_inverse=TileLayout.right_inverse,
    left_inverse=TileLayout.left_inverse,
    logical_divide=TileLayout.logical_divide,
    zipped_divide=lambda x: x.zipped_divide((8, 4), (32, 12)),
    logical_product=lambda x: x.logical_product(6),
    group=lambda x: x.group((4, 4, 4, 4)),
    slice=lambda x: x.slice((16, 16), [(4, 8), (8, 16)]),
    tile_to=lambda x: x.tile_to((32, 32), (8, 8)),
    raked_product=lambda x, y: x.raked_product(y),
    hash_of=hash,
    swizzle=lambda: Swizzle(*SWIZZLE),
    swizzled=lambda swizzle, layout: SwizzledLayout(layout, swizzle),
    swizzle_at=lambda swizzle, i: swizzle(i),
)


def tiles(n: int) -> list[TileLayout]:
    """The layout of the map, `n` times."""
    return [make(*TILES) for _ in range(n)]


def rows() -> list[Row]:
    recognizers = Recognizers(
        outer=TileLayout.recover_outer,
        inner=TileLayout.recover_inner,
        left=TileLayout.recover_left,
        right=TileLayout.recover_right,
    )

    def table(layout: TileLayout) -> Any:
        return layout.table((EDGE, EDGE))["m"]

    def sample(x: Any) -> list[int]:
        return [int(x[i * 7 % EDGE, i * 13 % EDGE]) for i in range(64)] + [int(x.sum())]

    return [
        *_rows(S, TileLayout, laneid, eq, hash, recognizers),
        *_rows_on_m(LIBRARY),
        Row("map, 4096 x 4096", tiles, table, sample, 1),
        Row("map, 4096 x 4096, separated by hand", tiles, table, sample, 1),
    ]
