"""The regions that a copy goes between: their extents, and where their elements are, a run-time begin set apart."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

from tilelayout import LayoutError, SwizzledLayout
from tilelayout.expr import Expr, Index
from tilelayout.parts import product

from ..errors import fail
from ..ops import CopyCall
from ..tile import MEMORY, TileRegion


def same_shape(call: CopyCall) -> tuple[int, ...]:
    """The extents of both sides, without those of 1; declines where they differ, or their names or types clash."""
    dst, src = call.dst, call.src
    if dst.tile.name == src.tile.name and dst.tile != src.tile:
        fail(f"two different tiles share the name {dst.tile.name!r}; tiles are told apart by name")
    if dst.tile.dtype != src.tile.dtype:
        fail(f"dst is {dst.tile.dtype}, src is {src.tile.dtype}: a copy converts nothing")
    shape, other = region_shape(dst, "dst"), region_shape(src, "src")
    if shape != other:
        have, need = product(shape), product(other)
        sign = ">" if need > have else "<" if need < have else "="
        fail(
            f"dst has extents {tuple(dst.extents)}, src has {tuple(src.extents)} ({need} {sign} {have} elements)"
        )
    return shape


def region_shape(region: Any, role: str) -> tuple[int, ...]:
    """Its extents that are not 1 (one of 1 where all are)."""
    for n in region.extents:
        if type(n) is not int:
            fail(f"{role} ({region}) has a symbolic extent {n}; extents must fold to numbers")
    return tuple([n for n in region.extents if n != 1]) or (1,)


@dataclass(frozen=True)
class Sliced:
    """Where the elements of a region are: ``layout(coordinate) + shift`` on m.

    `shift`, a multiple of `step`, is what dimensions add whose begin is known at run time.
    """

    layout: Any
    shift: Index = 0
    step: int = 0


def sliced(region: TileRegion, role: str) -> Sliced:
    """The layout of a region, all of it numbers, and what a run-time begin adds."""
    whole = region.tile.layout
    plain = whole.layout if isinstance(whole, SwizzledLayout) else whole
    iters = (*plain.shard, *plain.replica)
    for x in (*plain.offset.values(), *[x for it in iters for x in (it.extent, it.stride)]):
        if type(x) is not int:
            fail(
                f"{role} ({region}): layout {whole} has a symbolic value {x}; all of a layout must be numbers"
            )
    if region.is_full:
        return Sliced(region.tile.layout)
    begins = {d: b for d, (b, _) in enumerate(region.bounds) if isinstance(b, Expr)}
    bounds = [(0, 1) if d in begins else b for d, b in enumerate(region.bounds)]
    shift: Index = 0
    step = 0
    for d, begin in begins.items():
        stride = _stride(region, role, d)
        shift, step = shift + begin * stride, gcd(step, stride)
    try:
        return Sliced(region.tile.layout.slice(region.tile.shape, bounds), shift, step)
    except LayoutError as error:
        return fail(f"{role} ({region}): {error}")


def _stride(region: TileRegion, role: str, d: int) -> int:
    """What a step along a dimension that begins at run time adds to every position."""
    tile, name = region.tile, f"{role} ({region}): dimension {d} begins at run time"
    if tile.scope not in MEMORY:
        fail(f"{name}; the registers of {tile.name} are numbered by constants")
    if region.extents[d] != 1:
        fail(f"{name} with extent {region.extents[d]}; only a single stage may")
    whole = tile.layout
    plain = whole.layout if isinstance(whole, SwizzledLayout) else whole
    zero = [0] * len(tile.shape)
    at = [
        plain.apply(*zero[:d], i, *zero[d + 1 :], shape=tile.shape).get("m", 0) for i in range(tile.shape[d])
    ]
    stride = at[1] - at[0] if len(at) > 1 else 0
    if any(x - at[0] != i * stride for i, x in enumerate(at)):
        fail(f"{name}, and {plain} has no single stride along it")
    period = 1 << whole.swizzle.width if isinstance(whole, SwizzledLayout) else 1
    if stride % period:
        fail(
            f"{name}, and its stride {stride} is no multiple of the {period} elements that {whole} repeats after"
        )
    return int(stride)
