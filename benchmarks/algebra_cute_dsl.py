"""The algebra's rows on NVIDIA's CuTe DSL, whose layouts exist while a function is traced; no GPU is needed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import cutlass.cute as cute

from .algebra_cute import values
from .algebra_on_m import SWIZZLE, Library
from .algebra_on_m import rows as _rows
from .worker import Row

VERSION = f"nvidia-cutlass-dsl {version('nvidia-cutlass-dsl')}"

BEGIN = 4 * 16 + 8


class _Served(Exception):  # no error: it ends the trace, so that nothing is compiled
    pass


def inside(serve: Callable[[], None]) -> None:
    """Call `serve` in a trace."""

    @cute.jit
    def traced() -> None:
        serve()
        raise _Served

    with suppress(_Served):
        traced()


def make(extents: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    if len(extents) == 1:
        return cute.make_layout(extents[0], stride=strides[0])
    return cute.make_layout(extents[::-1], stride=strides[::-1])


def rows() -> list[Row]:
    sixteenths, copies = cute.make_layout((4, 4, 4, 4)), cute.make_layout(6)
    box = cute.make_layout((8, 4), stride=(1, 16))
    return _rows(
        Library(
            make=make,
            values=values,
            at=lambda layout, i: layout(i),
            place=int,
            coalesce=cute.coalesce,
            compose=cute.composition,
            complement=cute.complement,
            inverse=cute.right_inverse,
            right_inverse=cute.right_inverse,
            left_inverse=cute.left_inverse,
            logical_divide=cute.logical_divide,
            zipped_divide=lambda x: cute.zipped_divide(x, (4, 8)),
            logical_product=lambda x: cute.logical_product(x, copies),
            group=lambda x: cute.composition(x, sixteenths),
            slice=lambda x: (cute.composition(x, box), x(BEGIN)),
            tile_to=lambda x: cute.tile_to_shape(x, (32, 32), (0, 1)),
            raked_product=cute.raked_product,
            swizzle=lambda: cute.make_swizzle(*SWIZZLE),
            swizzled=lambda swizzle, layout: cute.make_composed_layout(swizzle, 0, layout),
        )
    )
