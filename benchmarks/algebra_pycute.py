"""The algebra's rows on pycute, of the package nvidia-cutlass."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
import pycute
from pycute import Layout

from .algebra_cute import values
from .algebra_on_m import EDGE, SWIZZLE, TILES, Library
from .algebra_on_m import rows as _rows
from .worker import Row

VERSION = f"nvidia-cutlass {version('nvidia-cutlass')}"

SIXTEENTHS = Layout((4, 4, 4, 4))
BOX, BEGIN = Layout((8, 4), (1, 16)), 4 * 16 + 8


def make(extents: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    return Layout(extents[::-1], strides[::-1]) if len(extents) > 1 else Layout(extents[0], strides[0])


def tile_to(x: Any) -> Any:
    """CuTe's blocked_product, which pycute doesn't have."""
    inner, outer = pycute.zipped_product(x, Layout((4, 4)))
    return pycute.make_layout([pycute.make_layout(inner[d], outer[d]) for d in range(2)])


LIBRARY = Library(
    make=make,
    values=values,
    at=lambda layout, i: layout(i),
    place=int,
    coalesce=pycute.coalesce,
    compose=pycute.composition,
    complement=pycute.complement,
    inverse=pycute.right_inverse,
    right_inverse=pycute.right_inverse,
    left_inverse=pycute.left_inverse,
    logical_divide=pycute.logical_divide,
    zipped_divide=lambda x: pycute.zipped_divide(x, (4, 8)),
    logical_product=lambda x: pycute.logical_product(x, Layout(6)),
    group=lambda x: pycute.composition(x, SIXTEENTHS),
    slice=lambda x: (pycute.composition(x, BOX), x(BEGIN)),
    tile_to=tile_to,
    swizzle=lambda: pycute.Swizzle(*SWIZZLE),
    swizzled=lambda swizzle, layout: pycute.ComposedLayout(swizzle, 0, layout),
    swizzle_at=lambda swizzle, i: swizzle(i),
)


def rows() -> list[Row]:
    def table(layout: Any) -> Any:
        """Every flat index in an array, the first mode fastest: pycute's arithmetic takes arrays."""
        return layout(np.arange(EDGE * EDGE)).reshape(EDGE, EDGE)

    def sample(x: Any) -> list[int]:
        return [int(x[i * 7 % EDGE, i * 13 % EDGE]) for i in range(64)] + [int(x.sum())]

    return [
        *_rows(LIBRARY),
        Row("map, 4096 x 4096", lambda n: [make(*TILES) for _ in range(n)], table, sample, 1),
    ]
