"""The algebra's rows on tensor-layouts."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import tensor_layouts as other
from tensor_layouts import Layout

from .algebra_cute import values
from .algebra_on_m import SWIZZLE, Library
from .algebra_on_m import rows as _rows
from .worker import Row

VERSION = f"tensor-layouts {version('tensor-layouts')}"

SIXTEENTHS, COPIES = Layout((4, 4, 4, 4)), Layout((4, 4))
BOX, BEGIN = Layout((8, 4), (1, 16)), 4 * 16 + 8


def make(extents: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    return Layout(extents[::-1], strides[::-1]) if len(extents) > 1 else Layout(extents[0], strides[0])


def rows() -> list[Row]:
    return _rows(
        Library(
            make=make,
            values=values,
            at=lambda layout, i: layout(i),
            place=int,
            coalesce=other.coalesce,
            compose=other.compose,
            complement=other.complement,
            inverse=other.right_inverse,
            right_inverse=other.right_inverse,
            left_inverse=other.left_inverse,
            logical_divide=other.logical_divide,
            zipped_divide=lambda x: other.zipped_divide(x, (4, 8)),
            logical_product=lambda x: other.logical_product(x, Layout(6)),
            group=lambda x: other.compose(x, SIXTEENTHS),
            slice=lambda x: (other.compose(x, BOX), x(BEGIN)),
            tile_to=lambda x: other.blocked_product(x, COPIES),
            raked_product=other.raked_product,
            hash_of=hash,
            swizzle=lambda: other.Swizzle(*SWIZZLE),
            swizzled=lambda swizzle, layout: other.ComposedLayout(swizzle, layout),
            swizzle_at=lambda swizzle, i: swizzle(i),
        )
    )
