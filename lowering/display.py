"""How tiles, calls, kernels and instructions show themselves: pictures built from the views of tilelayout.

The room that `tilelayout.display.Displayed` loads when one of them is first shown.  It only arranges: what a cell says
comes from the layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import singledispatch
from typing import Any, NamedTuple

from tilelayout import LayoutError
from tilelayout.draw import Picture, beside, gemm, hardware, iters, logical, shared
from tilelayout.draw.html import figure_with_text
from tilelayout.draw.painter import SHOWN, VIEWS
from tilelayout.draw.terminal import rich_lines as lines_of
from tilelayout.errors import nearest

from . import fragments, matrix_fragments
from .api import Lowered
from .compose import Kernel
from .isa import MmaInstruction
from .isa.matrix_move import MatrixMove
from .isa.movmatrix import MatrixTranspose
from .isa.sparse import SparseMma
from .isa.wgmma import Wgmma
from .ops import GemmCall
from .tile import Tile, TileRegion

Drawn = tuple[Any, tuple[int, ...], int]
"""A layout, the shape it is drawn in, and the bits that an element takes."""


class Operands(NamedTuple):
    """What a value holds: role -> what is drawn, whether A and B are held transposed, and a title.

    `meets`: whether its A, B and D are the matrices of one product, which can be drawn where they meet.
    """

    drawn: dict[str, Drawn]
    title: str
    turned: tuple[bool, bool] = (False, False)
    meets: bool = False

    @property
    def distinct(self) -> dict[str, Drawn]:
        """Without a C that lies as D does."""
        same = self.drawn.get("C") == self.drawn.get("D")
        return {role: x for role, x in self.drawn.items() if not (same and role == "C")}


def draw(value: Any, view: str | None, /, *arguments: Any, **options: Any) -> Picture:
    """A picture of a tile, a region, a call, what it was lowered to, its kernel, or an instruction.

    Views: those of layouts for a tile or region, whose shape and element width are filled in.  For the others
    "operands" (all of them, one below the other, without a C that lies as D does), the operands by role ("A", "B", "C",
    "D"; "metadata" and scale factors; "matrices" and "addresses" of a matrix move), by logical position, or as
    "A registers" and so on; for a product of matrices "gemm", which is then the default, with A and B where they meet
    in D.
    Errors: LayoutError for an unknown view, naming the nearest, and for what the view cannot show.
    """
    if isinstance(value, Tile | TileRegion):
        return _tile_view(value, view, arguments, options)
    held = operands_of(value)
    views: dict[str, Callable[..., Picture]] = (
        {"gemm": lambda **o: composite(value, **o)} if held.meets else {}
    )
    views["operands"] = lambda **o: beside(held.distinct, **{"title": held.title, **o})
    for role in held.drawn:
        views[role] = lambda role=role, **o: _operand(held, role, logical, o)
        views[f"{role} registers"] = lambda role=role, **o: _operand(held, role, hardware, o)
    name = next(iter(views)) if view is None else view
    if name not in views or arguments:
        raise LayoutError("draw", f"unknown view {name!r}, {nearest(str(name), list(views))}")
    return views[name](**options)


def composite(value: Any, **options: Any) -> Picture:
    """A, B and D where they meet; options are those of `tilelayout.draw.gemm`.

    Errors: LayoutError for what is no product of two matrices.
    """
    held = operands_of(value)
    if not held.meets:
        raise LayoutError("draw", f"the operands of {held.title} don't meet as those of one product")
    (A, a_shape, a_bits), (B, _, b_bits), (D, d_shape, d_bits) = [held.drawn[role] for role in "ABD"]
    if len(d_shape) != 2 or len(a_shape) != 2:
        raise LayoutError("draw", f"A {a_shape} and D {d_shape} are no two matrices")
    given: dict[str, Any] = {
        "bits": (a_bits, b_bits, d_bits),
        "names": ("A", "B", "D"),
        "title": held.title,
        **options,
    }
    shape = (*d_shape, a_shape[0] if held.turned[0] else a_shape[1])
    return gemm(A, B, D, shape, transpose_a=held.turned[0], transpose_b=held.turned[1], **given)


# --- what a value holds -------------------------------------------------------------------------


@singledispatch
def operands_of(value: Any) -> Operands:
    """The operands of a call, of what it was lowered to, of its kernel, or of an instruction.

    Errors: LayoutError for a value that has none.

    >>> from lowering.isa.sparse import MMA_SP
    >>> {role: shape for role, (_, shape, _) in operands_of(MMA_SP[0]).drawn.items()}
    {'A': (16, 16), 'metadata': (16, 8), 'B': (32, 8), 'C': (16, 8), 'D': (16, 8)}
    """
    raise LayoutError("draw", f"no picture of {type(value).__name__} is known")


@operands_of.register
def _(value: GemmCall) -> Operands:
    regions = {role: _region(region) for role, region in value.operands()}
    return Operands(regions, str(value), (value.transpose_a, value.transpose_b), meets=True)


@operands_of.register
def _(value: Lowered) -> Operands:
    title = f"{value.call}, by {value.variant} for {value.context.target}"
    return operands_of(value.call)._replace(title=title)


@operands_of.register
def _(value: Kernel) -> Operands:
    """Whole tensors: which thread's register each element goes through."""
    drawn = {role: _region(tile.full) for role, tile in value.tiles}
    if not drawn:
        raise LayoutError("draw", f"{value.name} was built without the layouts of its tensors")
    return Operands(drawn, f"{value.name}: {', '.join(drawn)} in the registers of {value.threads} threads")


@operands_of.register
def _(value: MmaInstruction) -> Operands:
    roles = "ABCD" if value.scale is None else ("A", "B", "C", "D", *fragments.SCALES)
    drawn = {
        role: (
            fragments.layout(value, role),  # type: ignore[arg-type]
            fragments.operand_shape(value, role),  # type: ignore[arg-type]
            8 if role in fragments.SCALES else value.container(role),  # type: ignore[arg-type]
        )
        for role in roles
    }
    return Operands(drawn, value.name, meets=value.rule == "warp")


@operands_of.register
def _(value: SparseMma) -> Operands:
    """A as it is stored, and a code of metadata for each of its groups."""
    drawn = {
        role: (
            matrix_fragments.sparse_layout(value, role),  # type: ignore[arg-type]
            value.operand_shape(role),  # type: ignore[arg-type]
            value.dense.container(role),  # type: ignore[arg-type]
        )
        for role in "ABCD"
    }
    codes = (matrix_fragments.sparse_layout(value, "metadata"), (value.dense.m, value.sparsity.groups), 4)
    ordered = {"A": drawn["A"], "metadata": codes, **drawn}
    return Operands(ordered, value.name)


@operands_of.register
def _(value: Wgmma) -> Operands:
    """The accumulator, and an A from registers; B is in shared memory always."""
    drawn = {
        role: (matrix_fragments.wgmma_layout(value, role), value.shape(role), 32 // value.per_register(role))  # type: ignore[arg-type]
        for role in ("D", "A")
    }
    return Operands(drawn, value.name)


@operands_of.register
def _(value: MatrixMove) -> Operands:
    """(matrix, line) by element, and the lane that gives each line's address."""
    shape = (value.count, value.lines, value.elements)
    drawn: dict[str, Drawn] = {
        "matrices": (matrix_fragments.move_layout(value), shape, value.bits),
        "addresses": (matrix_fragments.address_layout(value), shape[:2], 32),
    }
    return Operands(drawn, value.name)


@operands_of.register
def _(value: MatrixTranspose) -> Operands:
    source, result = matrix_fragments.MOVMATRIX_SOURCE, matrix_fragments.MOVMATRIX_RESULT
    return Operands({"a": (source, (8, 8), 16), "d": (result, (8, 8), 16)}, value.name)


def _region(region: TileRegion) -> Drawn:
    """Layout, shape and width of the elements of a region, without its dimensions of extent 1."""
    tile = region.tile
    layout = tile.layout if region.is_full else tile.layout.slice(tile.shape, region.bounds)
    shape = tuple([n for n in region.extents if n != 1])
    return layout, shape if len(shape) == 2 else region.extents, tile.element.bits


def _operand(held: Operands, role: str, view: Callable[..., Picture], options: dict[str, Any]) -> Picture:
    layout, shape, bits = held.drawn[role]
    return view(layout, shape, **{"bits": bits, "title": f"{role}: {layout}", **options})


def _tile_view(
    value: Tile | TileRegion, view: str | None, arguments: tuple[Any, ...], options: dict[str, Any]
) -> Picture:
    region = value.full if isinstance(value, Tile) else value
    tile = region.tile
    name = "logical" if view is None else view
    if name not in VIEWS:
        raise LayoutError("draw", f"unknown view {name!r}, {nearest(str(name), list(VIEWS))}")
    layout = tile.layout if region.is_full else tile.layout.slice(tile.shape, region.bounds)
    given: dict[str, Any] = {"title": f"{region}: {tile.dtype} in {tile.scope}, {layout}", **options}
    if VIEWS[name] is iters:
        return iters(layout, *arguments, **given)
    if VIEWS[name] in (logical, hardware, shared):
        given.setdefault("bits", tile.element.bits)
    if name == "operation":
        return VIEWS[name](layout, *arguments, **{"shape": region.extents, **given})
    if name == "before_after":
        return VIEWS[name](layout, *arguments, **given)
    return VIEWS[name](layout, region.extents, *arguments, **given)


def picture_of(value: Any) -> Picture | None:
    """What a value shows of itself; None where its layouts can't be drawn."""
    limits = {"max_rows": SHOWN, "max_columns": SHOWN}
    last = ("iters", {}) if isinstance(value, Tile | TileRegion) else ("operands", limits)
    for view, options in ((None, limits), last):
        try:
            return draw(value, view, **options)
        except LayoutError:
            continue
    return None


def mimebundle(value: Any) -> dict[str, str]:
    """A value in a notebook: its text, a picture, and for what was lowered, and its kernel, the nest below it."""
    picture = picture_of(value)
    if picture is None:
        return {"text/plain": repr(value)}
    below = str(value) if isinstance(value, Lowered | Kernel) else ""
    return {
        "text/plain": repr(value),
        "text/html": figure_with_text(picture, below),
        "image/svg+xml": picture.svg(),
    }


def rich_lines(value: Any, console: Any, options: Any) -> Iterator[Any]:
    """A value in a rich console: its picture, and for what was lowered, and its kernel, the nest below it."""
    from rich.text import Text

    picture = picture_of(value)
    if picture is None:
        yield Text(repr(value))
        return
    yield from lines_of(picture, console, options)
    if isinstance(value, Lowered | Kernel):
        yield Text(str(value))
