"""apply and owners: the flat index, its digits, digits times strides, the offset, the copies."""

from __future__ import annotations

from ..algebra.evaluate import copies
from ..errors import LayoutError
from ..parts import M, as_shape, product
from .write import iter_text, listed, made, number, offset_text, parts_of, product_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..parts import Integer
    from .derivation import Board


LISTED = 2**10
"""So many copies are counted on the way; more only where the owners are what is asked for."""


def apply(board: Board, layout: Any, *coord: Any, shape: Any = None) -> dict[Any, Any]:
    """The steps of `TileLayout.apply`, and the owners after it."""
    place = place_of(board, layout, coord, shape, "apply")
    _owners(board, layout, place, "apply")
    return place


def owners(board: Board, layout: Any, *coord: Any, shape: Any = None) -> tuple[Any, ...]:
    """The steps of `TileLayout.owners`."""
    place = place_of(board, layout, coord, shape, "owners")
    return _owners(board, layout, place, "owners") or layout.owners(*coord, shape=shape)


def place_of(board: Board, layout: Any, coord: tuple[Any, ...], shape: Any, operation: str) -> dict[Any, Any]:
    if any(getattr(c, "ndim", 0) for c in coord):
        raise LayoutError(
            "explain", f"{operation} of an array has one derivation per entry", "explain one coordinate"
        )
    shard, _, offset = parts_of(layout, operation)
    extents = [it[0] for it in shard]
    digits = _digits(board, layout, coord, shape, extents)
    out: dict[Any, Any] = {}
    lines: list[str] = []
    for axis in dict.fromkeys([*offset, *(it[2] for it in shard)]):
        mine = [(c, s) for c, (_, s, a) in zip(digits, shard, strict=True) if a is axis]
        if mine:
            value = sum([c * s for c, s in mine])
            out[axis] = value
            lines.append(f"{axis} = {' + '.join(f'{number(c)}*{number(s)}' for c, s in mine)} = {value}")
    board.write("digits times strides, axis by axis", *lines)
    lines = []
    for axis, moved in offset.items():
        before = out.get(axis, 0)
        out[axis] = before + moved
        lines.append(f"{axis} = {number(before)} + {number(moved)} = {out[axis]}")
    if offset:
        board.write(f"plus the offset {offset_text(offset)}", *lines)
    return out


def _digits(
    board: Board, layout: Any, coord: tuple[Any, ...], shape: Any, extents: list[Integer]
) -> list[Any]:
    """One digit per iter: each is what a layout gives that counts this digit alone."""
    if shape is None and len(coord) != 1:
        _check_range(board, coord, extents, f"one coordinate per iter: the digits are {coord}")
        return [_counting(layout, [*extents], k).apply(*coord).get(M, 0) for k in range(len(extents))]
    size = product(extents)
    dims = (size,) if shape is None else as_shape(shape, "apply")
    flat: Any
    if len(coord) == len(dims) == 1:
        _check_range(board, coord, dims, f"the flat index is {coord[0]}, of {size} elements")
    elif len(coord) == len(dims):
        flat = made(layout, (((size, 1, M),), (), {})).apply
        weights = [product(dims[d + 1 :]) for d in range(len(dims))]
        terms = " + ".join(
            f"{number(c)} * {w}" if w != 1 else number(c) for c, w in zip(coord, weights, strict=True)
        )
        bad = _outside(coord, dims)
        if bad or product(dims) != size:
            lines = [*bad, f"{product_text(dims)} = {product(dims)} elements; the layout has {size}"]
            board.write(f"the coordinate in the shape {dims}", *lines)
        board.write(f"the flat index, row-major in {dims}", f"{terms} = {flat(*coord, shape=dims)[M]}")
    else:
        board.write(f"the coordinate has {len(coord)} entries, the shape {dims} has {len(dims)} dimensions")
    flat = made(layout, (((size, 1, M),), (), {})).apply(*coord, shape=dims)[M]
    found = [_counting(layout, extents, k).apply(*coord, shape=dims)[M] for k in range(len(extents))]
    lines = [
        f"c_{k} = {number(flat)} // {product(extents[k + 1 :])} % {e} = {c}"
        for k, (e, c) in enumerate(zip(extents, found, strict=True))
    ]
    board.write("one digit per iter, c_k = flat // weight % extent", *lines)
    return found


def _counting(layout: Any, extents: list[Integer], k: int) -> Any:
    """The layout that counts digit k and no other."""
    return made(layout, (tuple([(e, 1 if i == k else 0, M) for i, e in enumerate(extents)]), (), {}))


def _check_range(board: Board, coord: tuple[Any, ...], dims: Any, title: str) -> None:
    board.write(
        title, *(_outside(coord, dims) if len(coord) == len(dims) else [f"but there are {len(dims)} iters"])
    )


def _outside(coord: tuple[Any, ...], dims: Any) -> list[str]:
    """What is wrong with the entries that are plain numbers."""
    return [
        f"{c} of dimension {d} is not in [0, {n})"
        for d, (c, n) in enumerate(zip(coord, dims, strict=True))
        if type(c) is int and type(n) is int and not 0 <= c < n
    ]


def _many(count: Integer) -> bool:
    return type(count) is not int or count > LISTED


def _owners(
    board: Board, layout: Any, place: dict[Any, Any], operation: str
) -> tuple[dict[Any, Any], ...] | None:
    """The place and its copies; None where they can't be listed."""
    replica = tuple(layout.replica)
    if not replica:
        board.write("the owners", "no replica: this is the only place that holds the element")
        return (place,)
    shown = ", ".join(iter_text(it) for it in replica)
    if operation == "apply" and _many(count := product(it[0] for it in replica)):
        board.write(
            f"the owners: the replica R[{shown}] adds copies", f"{count} choices; `owners` lists them"
        )
        return None
    try:
        every = [{**place, **{a: place.get(a, 0) + v for a, v in step.items()}} for step in copies(replica)]
    except LayoutError as error:
        board.write(f"the owners: the replica R[{shown}] adds copies", f"not listed: {error.rule}")
        return None
    board.write(
        f"the owners: the replica R[{shown}] adds copies at {len(every)} {'place' if len(every) == 1 else 'places'}",
        *listed([str(p) for p in every], "\n").split("\n"),
    )
    return tuple(every)
