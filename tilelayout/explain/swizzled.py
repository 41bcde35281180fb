"""Operations on swizzled layouts: the steps of the tile layout inside, and what becomes of the swizzle."""

from __future__ import annotations

from ..algebra import residues as _residues
from ..algebra import swizzled_tile as _swizzled_tile
from ..algebra import unswizzle as _unswizzle
from ..algebra.evaluate import copies
from ..algebra.group import find
from ..algebra.integers import quotient
from ..algebra.tile import row_major, spans
from ..algebra.tile import tile as tiled
from ..errors import LayoutError
from ..expr import Expr
from ..least_swizzle import smallest_on
from ..parts import M, as_extent, as_shape
from ..swizzle import Swizzle
from . import boxes, composition, evaluation, iters, widths
from .derivation import Unexplained
from .write import SHOWN, becomes, iter_text, listed, made, number, parts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..algebra.swizzled_tile import Shapes
    from ..parts import Parts
    from ..swizzle import XorMap
    from .derivation import Board


# --- evaluation ---------------------------------------------------------------------------------


def apply(board: Board, layout: Any, *coord: Any, shape: Any = None) -> Any:
    """The steps of the tile layout's place, then the XOR with its bits."""
    place = evaluation.place_of(board, layout.layout, coord, shape, "apply")
    found = _swizzled(board, layout.swizzle, place)
    if layout.layout.replica:
        board.write("the owners", "the replica's copies are swizzled each on its own; `owners` lists them")
    return found


def owners(board: Board, layout: Any, *coord: Any, shape: Any = None) -> Any:
    """The steps of the tile layout's owners, then the XOR of each."""
    place = evaluation.place_of(board, layout.layout, coord, shape, "owners")
    every = [
        {**place, **{a: place.get(a, 0) + v for a, v in x.items()}} for x in copies(layout.layout.replica)
    ]
    shown = ", ".join(map(iter_text, layout.layout.replica))
    board.write(
        f"the copies that the replica R[{shown}] adds" if shown else "no replica", *map(str, every[:SHOWN])
    )
    found = [_swizzled(board if k < SHOWN else None, layout.swizzle, x) for k, x in enumerate(every)]
    return tuple(found)


def _swizzled(board: Board | None, f: XorMap, place: dict[Any, Any]) -> dict[Any, Any]:
    """The place with its coordinate on `m` swizzled, and the lines that say how."""
    if M not in place:
        if board is not None:
            board.write(f"{f} of the coordinate on m", "not mentioned, so it is 0, and 0 stays")
        return place
    x = place[M]
    out = f.apply(x)
    if board is not None:
        board.write(f"{f} of the coordinate on m", *_xor_lines(f, x, out))
    return {**place, M: out}


def _xor_lines(f: XorMap, x: Any, out: Any) -> list[str]:
    if f.is_identity():
        return [f"it moves nothing: m = {x}"]
    if type(x) is not int or not isinstance(f, Swizzle):
        kind = "" if type(x) is int or isinstance(x, Expr) else ", by the arithmetic of single bits"
        return [f"{f}({x}) = {out}{kind}"]
    mask = ((1 << f.bits) - 1) << f.base + max(f.shift, 0)
    read = x & mask
    arrow = f">> {f.shift}" if f.shift >= 0 else f"<< {-f.shift}"
    return [
        f"x ^ ((x & {mask:#b}) {arrow}) with x = {x} = {x:#b}",
        f"{x} & {mask} = {read}, and {read} {arrow} = {x ^ out}",
        f"m = {x} ^ {x ^ out} = {out}",
    ]


# --- the swizzle stays --------------------------------------------------------------------------


def _kept(board: Board, layout: Any, inner: Any) -> Any:
    """The swizzle on another tile layout."""
    board.write(
        "the swizzle acts on the places, whatever index they come from: it stays", str(layout.swizzle)
    )
    return type(layout)(inner, layout.swizzle)


def group(board: Board, layout: Any, shape: Any) -> Any:
    """`group` of the tile layout."""
    inner, seps = iters.group(board, layout.layout, shape)
    return _kept(board, layout, inner), seps


def slice(board: Board, layout: Any, shape: Any, region: Any) -> Any:
    """`slice` of the tile layout; where the box begins is an offset before the swizzle."""
    return _kept(board, layout, boxes.slice(board, layout.layout, shape, region))


def permute_dims(board: Board, layout: Any, perm: Any) -> Any:
    """`permute_dims` of the tile layout."""
    return _kept(board, layout, iters.permute_dims(board, layout.layout, perm))


def permute_by_groups(board: Board, layout: Any, seps: Any, perm: Any) -> Any:
    """`permute_by_groups` of the tile layout."""
    return _kept(board, layout, iters.permute_by_groups(board, layout.layout, seps, perm))


def compose(board: Board, layout: Any, other: Any) -> Any:
    """`compose` of the tile layout."""
    return _kept(board, layout, composition.compose(board, layout.layout, other))


# --- the swizzle changes ------------------------------------------------------------------------


def canonicalize(board: Board, layout: Any, scope: str | None = None) -> Any:
    """The smallest swizzle on the values that are reached, the tile layout's form, and whether one is enough."""
    f = _least(board, layout)
    inner = iters.canonicalize(board, layout.layout, scope)
    if f.is_identity():
        return inner
    try:
        plain = _unswizzle.unswizzled(parts_of(inner, "canonicalize"), f.apply, f.width, "canonicalize")
    except LayoutError as error:
        board.write("whether a tile layout has these values isn't known, so the swizzle stays", error.rule)
        return type(layout)(inner, f)
    if plain is None:
        board.write(
            "is there a tile layout with these values?", "no: two digits of the index meet in one bit"
        )
        return type(layout)(inner, f)
    board.write(
        "is there a tile layout with these values?",
        "yes: each bit depends on one digit, or on a constant, and XOR with a constant turns its step around",
    )
    return made(inner, plain).canonicalize(scope)


def _least(board: Board, layout: Any) -> XorMap:
    f: XorMap = layout.swizzle
    if not f.width:
        return f
    title = f"what {f} does to the values that are reached"
    try:
        reached = _residues.reached_basis(parts_of(layout.layout, "canonicalize"), f.width, "canonicalize")
    except LayoutError as error:
        board.write(title, f"they aren't known: {error.rule}")
        return f
    least = smallest_on(f, reached)
    bits = listed(map(bin, reached)) or "0"
    says = (
        "it moves none of them"
        if least.is_identity()
        else "all of it"
        if least == f
        else f"{least} does the same"
    )
    board.write(title, f"their low {f.width} bits are XORs of {bits}", says)
    if not least.is_identity() and layout._only_copies_trade_places():
        board.write(
            "which elements does it move?", "none: it only moves an element's copies among one another"
        )
        return Swizzle(0, 0, 0)
    return least


def unpack(board: Board, layout: Any, num: Any) -> Any:
    """`unpack` of the tile layout; the swizzle's bits move up."""
    return _rescaled(board, layout, num, "unpack")


def pack(board: Board, layout: Any, num: Any) -> Any:
    """`pack` of the tile layout; the swizzle's bits move down."""
    return _rescaled(board, layout, num, "pack")


def _rescaled(board: Board, layout: Any, num: Any, operation: str) -> Any:
    count = as_extent(num, operation, "num")
    inner = (widths.pack if operation == "pack" else widths.unpack)(board, layout.layout, count)
    f: XorMap = layout.swizzle
    title = f"{f} counted elements, and has to count the new ones"
    if type(count) is not int or count & count - 1:
        board.write(title, f"{count} is no power of two: it can't unless it moves nothing here")
        raise Unexplained
    places = count.bit_length() - 1
    moved = f.moved(-places if operation == "pack" else places)
    if moved is None:
        board.write(
            title, f"its bits would move down by {places}, and it doesn't leave so many low bits alone"
        )
        raise Unexplained
    way = "down" if operation == "pack" else "up"
    board.write(title, f"{count} = 2**{places}: its bits move {way} by {places}, which is {moved}")
    return type(layout)(inner, moved)


def tile(board: Board, layout: Any, outer: Any, outer_shape: Any, inner_shape: Any) -> Any:
    """Spans with the XOR counted, scaled outer strides, and whether they are whole periods of the swizzle."""
    shapes = as_shape(outer_shape, "tile"), as_shape(inner_shape, "tile")
    return _tiled(board, layout, parts_of(outer, "tile"), shapes)


def tile_to(board: Board, layout: Any, to_shape: Any, current_shape: Any) -> Any:
    """The counts of copies; then as `tile` with these in row-major order on m."""
    to, current = as_shape(to_shape, "tile_to"), as_shape(current_shape, "tile_to")
    counts = boxes.counted(board, to, current)
    return _tiled(board, layout, (row_major(counts), (), {}), (counts, current))


def _tiled(board: Board, layout: Any, outer: Parts, shapes: Shapes) -> Any:
    inner = parts_of(layout.layout, "tile")
    f: XorMap = layout.swizzle
    span = layout.span()
    scale = {**spans(inner[0], inner[1]), M: span}
    moved = _swizzled_tile.placed(outer, scale)
    board.write("the span on m: greatest - least + 1 of the swizzled values", str(span))
    board.write(
        "outer strides times the span on their axis",
        *(
            becomes(it, new, f"{number(it[1])} * {scale.get(it[2], 1)} = {new[1]}")
            for it, new in zip((*outer[0], *outer[1]), (*moved[0], *moved[1]), strict=True)
        ),
    )
    if _alone(board, f, inner, moved):
        return type(layout)(made(layout.layout, _swizzled_tile.interleaved(inner, moved, shapes, "tile")), f)
    least = _least(board, layout)
    if least != f and _alone(board, least, inner, moved):
        return type(layout)(
            made(layout.layout, _swizzled_tile.interleaved(inner, moved, shapes, "tile")), least
        )
    plain = layout.canonicalize()
    if not hasattr(plain, "shard") or find(plain.shard, shapes[1], "tile") is None:
        raise Unexplained
    board.write("the layout has the values of a tile layout, which is tiled", str(plain))
    copied = tiled(parts_of(plain, "tile"), outer, shapes[0], shapes[1], "tile")
    return type(layout)(made(layout.layout, copied), Swizzle(0, 0, 0))


def _alone(board: Board, f: XorMap, inner: Parts, moved: Parts) -> bool:
    """Whether the copies are swizzled like the first, and the lines that say why."""
    period = 1 << f.width
    strides = [it[1] for it in (*moved[0], *moved[1]) if it[2] is M and it[0] != 1]
    offset = moved[2].get(M, 0)
    moves = [x for x in dict.fromkeys([*strides, offset]) if x != 0]
    lines = [
        f"{x} = {q} * {period}"
        if (q := quotient(x, period)) is not None
        else f"{x} is no multiple of {period}"
        for x in moves
    ]
    stray = _swizzled_tile.torn(inner, moved, f.apply, f.width, "tile")
    says = (
        "so each copy is swizzled like the first"
        if stray is None
        else f"a copy {stray} away is swizzled otherwise"
    )
    board.write(f"{f} repeats every {period} places: are the moves multiples of it?", *lines, says)
    return stray is None
