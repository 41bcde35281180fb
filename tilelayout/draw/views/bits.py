"""A layout as a matrix over F2: which bits of the index feed which bits of the place."""

from __future__ import annotations

from ...errors import LayoutError
from ...swizzled import SwizzledLayout
from ..colors import paint
from ..model import Cell, Grid, Panel, Picture
from ..places import as_layout, drawn_shape, tile_layout
from ..wording import axis_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NamedTuple

    from ...axis import Axis
    from ..places import Layout
else:
    from typing import NamedTuple


class BitMatrix(NamedTuple):
    """A layout that is affine over F2.

    Attributes:
        inputs: names of the input bits, the index's highest first, then the replica's.
        images: for each input bit, axis -> the value that it adds (by XOR).
        constant: axis -> the value at index 0.
        widths: axis -> bits that occur.
    """

    inputs: tuple[str, ...]
    images: tuple[dict[Axis, int], ...]
    constant: dict[Axis, int]
    widths: dict[Axis, int]


def bit_matrix(layout: Layout, shape: tuple[int, ...]) -> BitMatrix:
    """The images of the index's bits.

    Post-condition: the owners of index x, for replica index r, are ``constant ^ XOR of images[i] over the bits i that
    are set in (x, r)``, on every axis.
    Errors: LayoutError where an extent is no power of two, and where the layout is not affine over F2: two bits whose
    strides carry into one another, a negative stride or offset.
    """
    plain = tile_layout(layout)
    for d, n in enumerate(shape):
        if n & (n - 1):
            raise LayoutError("bits", f"dimension {d} of {shape} is no power of two")
    weights = [w for it in plain.shard for w in _bits_of(it, layout)]
    copied = [w for it in plain.replica for w in _bits_of(it, layout)]
    names = [f"d{d}.{b}" if len(shape) > 1 else f"i.{b}" for d, n in enumerate(shape) for b in _downwards(n)]
    names += [f"r{k}.{b}" for k, it in enumerate(plain.replica) for b in _downwards(int(it[0]))]
    images = [{axis: w} if w else {} for axis, w in (*weights, *copied)]
    constant: dict[Axis, int] = {a: int(v) for a, v in plain.offset.items()}  # type: ignore[arg-type]
    _check_disjoint(images, constant, layout)
    if isinstance(layout, SwizzledLayout):
        swizzle = layout.swizzle.apply
        for values in (*images, constant):
            for axis in [a for a in values if a == "m"]:
                values[axis] = swizzle(values[axis])
    widths: dict[Axis, int] = {}
    for values in (*images, constant):
        for axis, value in values.items():
            widths[axis] = max(widths.get(axis, 0), value.bit_length())
    return BitMatrix(tuple(names), tuple(images), constant, widths)


def _downwards(n: int) -> range:
    return range(n.bit_length() - 2, -1, -1)


def _bits_of(it: Any, layout: Layout) -> list[tuple[Axis, int]]:
    """(axis, weight) of an iter's bits, the highest first."""
    e, s, a = it
    if e & (e - 1):
        raise LayoutError(
            "bits",
            f"iter {e}:{s} @ {a} of {layout} has no power of two as its extent",
            "draw 'logical' or 'iters'",
        )
    return [(a, s << b) for b in _downwards(e)]


def _check_disjoint(images: Sequence[dict[Axis, int]], constant: dict[Axis, int], layout: Layout) -> None:
    """Sums are XORs exactly where no two summands share a bit."""
    taken: dict[Axis, int] = {}
    for values in (constant, *images):
        for axis, value in values.items():
            if value < 0 or taken.get(axis, 0) & value:
                why = "is negative" if value < 0 else "carries into another"
                raise LayoutError(
                    "bits",
                    f"{value} on {axis} {why} in {layout}, so the layout is not linear over F2",
                    "draw 'logical' or 'hardware'",
                )
            taken[axis] = taken.get(axis, 0) | value


def bits(
    layout: Any,
    shape: Sequence[int] | int | None = None,
    *,
    palette: str = "categories",
    title: str | None = None,
) -> Picture:
    """The matrix over F2: a row for each bit of each axis, a column for each bit of the index, 1 where it feeds it.

    An output bit is the XOR of the input bits with a 1 in its row (and of the offset's bit, in the last column where
    there is an offset).

    Args:
        layout: one whose extents are powers of two and whose strides don't carry into one another.
        shape: names the input bits: ``d0.2`` is bit 2 of dimension 0; ``r0.1`` is bit 1 of the replica's first iter.

    Post-condition: the XOR of the columns that an index selects is its place, at every index.
    Errors: LayoutError for a layout that is not affine over F2, with the stride that is in the way.

    >>> from tilelayout.draw import bits
    >>> print(bits(SwizzledLayout(S[4, 4], Swizzle(1, 0, 2)), (4, 4)))
    Swizzle(1, 0, 2) o S[(4, 4):(4, 1)]
    output bits (rows) from input bits (columns): each row is the XOR of its ones
         d0.1 d0.0 d1.1 d1.0
    m.3     1    .    .    .
    m.2     .    1    .    .
    m.1     .    .    1    .
    m.0     .    1    .    1
    """
    drawn = as_layout(layout, "bits")
    dims = drawn_shape(drawn, shape, "bits")
    matrix = bit_matrix(drawn, dims)
    outputs = [
        (a, b) for a in sorted(matrix.widths, key=axis_order) for b in range(matrix.widths[a] - 1, -1, -1)
    ]
    columns: list[tuple[str, dict[Axis, int]]] = list(zip(matrix.inputs, matrix.images, strict=True))
    if matrix.constant:
        columns.append(("offset", matrix.constant))
    rows = [tuple([_cell(axis, b, name, values) for name, values in columns]) for axis, b in outputs]
    grid = Grid(
        tuple(rows),
        tuple([f"{a}.{b}" for a, b in outputs]),
        tuple([name for name, _ in columns]),
        size=(len(rows), len(columns)),
    )
    painted, legend = paint([grid], "axis", palette)
    return Picture(
        str(layout) if title is None else title,
        (Panel(painted[0]),),
        "output bits (rows) from input bits (columns): each row is the XOR of its ones",
        legend=legend,
        palette=palette,
    )


def _cell(axis: Axis, bit: int, name: str, values: dict[Axis, int]) -> Cell:
    if not values.get(axis, 0) >> bit & 1:
        return Cell((), f"{name} does not feed bit {bit} of {axis}")
    return Cell(("1",), f"{name} feeds bit {bit} of {axis}", key=str(axis))
