"""The explorer for what has fragments: the catalogue as presets, and tiles, calls and instructions as its start.

The page itself is `tilelayout.explore`, which knows layouts only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from tilelayout import LayoutError, SwizzledLayout, TileLayout
from tilelayout.explore import Explorer, Preset, offered, preset
from tilelayout.explore import explore as explore_layout

from . import fragments, matrix_fragments
from .display import operands_of
from .isa.ldmatrix import LDMATRIX
from .isa.mma import DENSE
from .isa.sparse import MMA_SP
from .isa.stmatrix import STMATRIX
from .isa.wgmma import WGMMA_FRAGMENTS
from .tile import Tile, TileRegion

Fragment = tuple[str, str, str, Any, tuple[int, ...], int]  # group, operand, of what, layout, shape, bits


@cache
def presets() -> tuple[Preset, ...]:
    """Every fragment of the catalogue: what `tilelayout.explore` offers beside its own presets.

    Fragments of one shape that differ in their types only stand together, with all types in the name.

    >>> [
    ...     p.name
    ...     for p in presets()
    ...     if p.group == "mma.sync m16n8k16" and p.name.startswith("A 16 x 16, 16 bits")
    ... ]
    ['A 16 x 16, 16 bits: float16, bfloat16']
    """
    found: dict[tuple[Any, ...], list[str]] = {}
    for group, operand, of_what, layout, shape, bits in _fragments():
        names = found.setdefault((group, operand, layout, shape, bits), [])
        if of_what not in names:
            names.append(of_what)
    return tuple(
        [
            preset(
                group, f"{operand} {_shape_text(shape)}, {bits} bits: {', '.join(names)}", layout, shape, bits
            )
            for (group, operand, layout, shape, bits), names in found.items()
        ]
    )


def _shape_text(shape: Iterable[int]) -> str:
    return " x ".join(map(str, shape))


def _fragments() -> Iterator[Fragment]:
    yield from _dense()
    for record in MMA_SP:
        group = f"mma.sp {record.shape}"
        for role, name in zip("ABCD", record.signature, strict=True):
            layout = matrix_fragments.sparse_layout(record, role)  # type: ignore[arg-type]
            bits = record.dense.container(role)  # type: ignore[arg-type]
            yield group, role, name, layout, record.operand_shape(role), bits  # type: ignore[arg-type]
        shape = (record.dense.m, record.sparsity.groups)
        selected = f"{record.signature[0]}, selector {record.selector}"
        yield group, "metadata", selected, matrix_fragments.sparse_layout(record, "metadata"), shape, 4
    for move in (*LDMATRIX, *STMATRIX):
        shape = (move.count, move.lines, move.elements)
        yield move.operation, "matrices", move.name, matrix_fragments.move_layout(move), shape, move.bits
    yield "movmatrix", "a", "movmatrix.m8n8.trans.b16", matrix_fragments.MOVMATRIX_SOURCE, (8, 8), 16
    yield "movmatrix", "d", "movmatrix.m8n8.trans.b16", matrix_fragments.MOVMATRIX_RESULT, (8, 8), 16
    yield from _wgmma()


def _dense() -> Iterator[Fragment]:
    for record in DENSE:
        group = f"mma.sync {record.shape}"
        for role, name in zip("ABCD", record.signature, strict=True):
            layout = fragments.layout(record, role)  # type: ignore[arg-type]
            shape = fragments.operand_shape(record, role)  # type: ignore[arg-type]
            order = (
                {"A": record.a_layout, "B": record.b_layout}.get(role) if record.rule == "quadpair" else None
            )
            operand = f"{role} by {order}s" if order else role
            yield group, operand.replace("cols", "columns"), name, layout, shape, record.container(role)  # type: ignore[arg-type]
        for scale in fragments.SCALES if record.scale else ():
            layout = fragments.layout(record, scale)  # type: ignore[arg-type]
            shape = fragments.operand_shape(record, scale)  # type: ignore[arg-type]
            yield group, scale, record.name, layout, shape, 8


def _wgmma() -> Iterator[Fragment]:
    """The accumulators of every N, and the A of every K: one layout for all types of a width."""
    known: dict[tuple[Any, ...], TileLayout] = {}
    for record in WGMMA_FRAGMENTS:
        for role, name in (("A", record.a), ("D", record.d)):
            shape, bits = record.shape(role), 32 // record.per_register(role)  # type: ignore[arg-type]
            key = role, shape, record.neighbors(role)  # type: ignore[arg-type]
            if key not in known:
                known[key] = matrix_fragments.wgmma_layout(record, role)  # type: ignore[arg-type]
            yield f"wgmma {role}", role, name, known[key], shape, bits


def explore(
    value: Any,
    shape: Any = None,
    *,
    path: str | os.PathLike[str] | None = None,
    role: str | None = None,
    presets: Iterable[Preset] | None = None,
    **options: Any,
) -> Explorer:
    """The explorer of a layout, tile or region, or of one operand of an instruction, a gemm call or what it became.

    Shape and element width of a tile or an operand are filled in (6-bit elements take a byte); `role` chooses the
    operand (by default D, or the first where there is none), and the others are among the presets.  Other options are
    those of `tilelayout.explore.explore`.
    Errors: LayoutError for a role that is none, and those of `tilelayout.explore.explore`.

    >>> from lowering.isa import MMA_INSTRUCTIONS
    >>> page = explore(MMA_INSTRUCTIONS[0], role="A")
    >>> page.steps[0].shape, page.presets[0].group
    ((16, 16), 'operands of m16n8k16.f16')
    """
    if isinstance(value, TileLayout | SwizzledLayout | str):
        return explore_layout(value, shape, path=path, presets=presets, **options)
    if isinstance(value, Tile | TileRegion):
        region = value.full if isinstance(value, Tile) else value
        tile = region.tile
        layout = tile.layout if region.is_full else tile.layout.slice(tile.shape, region.bounds)
        given = {"bits": _width(tile.element.bits), "title": str(region), **options}
        extents = region.extents if shape is None else shape
        return explore_layout(layout, extents, path=path, presets=presets, **given)
    held = operands_of(value)
    operands = held.drawn
    role = role or ("D" if "D" in operands else next(iter(operands)))
    if role not in operands:
        raise LayoutError("explore", f"role must be {', '.join(operands)}, got {role!r}")
    name = getattr(value, "name", "this call")
    own = [preset(f"operands of {name}", r, x, dims, _width(bits)) for r, (x, dims, bits) in operands.items()]
    layout, extents, bits = operands[role]
    given = {"bits": _width(bits), "title": f"{role} of {held.title}", **options}
    everything = (*own, *(offered() if presets is None else presets))
    return explore_layout(layout, extents if shape is None else shape, path=path, presets=everything, **given)


def _width(bits: int) -> int:
    """The bits that an element takes in a register: 6-bit ones a byte."""
    return bits if bits & (bits - 1) == 0 else 8
