"""The widest vector access that a layout allows, and why no wider one.

Two ways to the same answer: by arithmetic on the strides of a tile layout (any size, symbols included), and by
looking at every element of a tile whose layout has no strides (a swizzled one).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ..algebra.canonicalize import fuse
from ..algebra.group import group
from ..algebra.integers import quotient, same
from ..conditional.carry import under
from ..errors import LayoutError
from ..layout import TileLayout
from ..parts import M, as_integer, as_shape, stride_text
from .access import coordinate_of
from .memory import WIDTHS, as_bits, as_extents, as_number, counted, positions, rests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    import numpy.typing as npt

    from ..parts import Integer, RawIter
    from .access import Access
    from .memory import Placed

Rule = Literal[
    "instruction", "contiguity", "stride", "offset", "base", "extent", "rim", "swizzle", "alignment"
]


class Limit(NamedTuple):
    """One reason why a vector is no wider: the rule that the next width breaks, and the text that says where."""

    rule: Rule
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


class VectorWidth(NamedTuple):
    """The widest access; ``str(width)`` says it with its reasons.

    Attributes:
        bytes: 1, 2, 4, 8 or 16.
        elements: how many elements that is.
        vectors: whole vectors along the dimension (or of each lane); an expression where the extent is a symbol.
        tail: elements after them, which take scalar accesses.
        limits: the reasons that rule the next width out; never empty.
    """

    bytes: int
    elements: int
    vectors: Integer
    tail: Integer
    limits: tuple[Limit, ...]

    @property
    def cp_async(self) -> int:
        """Bytes of the widest cp.async of that kind: 16 (.cg and .ca), 8 or 4 (.ca only), 0 for none.

        Source: PTX ISA, "cp.async": cp-size is 4, 8 or 16 with .ca and 16 with .cg.
        """
        return self.bytes if self.bytes >= 4 else 0

    def __str__(self) -> str:
        rest = "" if self.tail == 0 else f" and {counted(self.tail, 'scalar')}"
        each = f"{counted(self.bytes, 'byte')} ({counted(self.elements, 'element')}) at once"
        head = f"{each}: {counted(self.vectors, 'vector')}{rest}"
        return "\n".join([head, *[f"  no wider: {limit}" for limit in self.limits]])


def widest_vector(
    layout: Placed,
    bits: int,
    shape: Sequence[Any] | int | None = None,
    *,
    along: int = -1,
    base_alignment: int = 16,
    whole: bool = False,
    assuming: Any = None,
) -> VectorWidth:
    """The widest access to runs of neighbors along one dimension, wherever the run begins.

    Post-condition: for every coordinate of the other dimensions, and every multiple of `elements` along this one that
    has a whole vector after it, those elements are neighbors on `m` in rising order, and the first one's byte address
    is a multiple of `bytes`.  No wider vector has that, or its reason is not provable (symbols).

    Args:
        layout: a tile layout (strides may be symbols; thread axes may occur, since each thread then has memory of its
            own), or anything with a `table`, such as a swizzled layout.
        bits: width of an element.
        shape: the logical shape (default: the shard's extents).
        along: the dimension that vectors run along.
        base_alignment: bytes that position 0 is known to be aligned to: 16 for a matrix of one's own allocation, the
            element's size for a shared array that nothing is said of.
        whole: refuse a rim, so that vectors cover the dimension and one predicate serves each.
        assuming: conditions on symbols, beside those that the layout rests on.

    >>> from tilelayout import S, TileLayout
    >>> print(widest_vector(TileLayout(S[(64, 64) : (100, 1)]), 16))
    8 bytes (4 elements) at once: 16 vectors
      no wider: stride: stride 100 of iter 64:100 is no multiple of 8 elements
    >>> widest_vector(TileLayout(S[13]), 16)[:4]
    (16, 8, 1, 5)
    >>> from sympy import Eq, Mod, Symbol
    >>> ld = Symbol("ld", integer=True, positive=True)
    >>> widest_vector(TileLayout(S[(64, 64) : (ld, 1)]), 16, assuming=Eq(Mod(ld, 8), 0)).bytes
    16

    Errors: LayoutError where not even one element can be accessed: it is no whole byte, or the base or an address
    splits it.
    """
    if assuming is not None or rests(layout):

        def ask(layout: Placed, shape: Any) -> VectorWidth:
            return widest_vector(layout, bits, shape, along=along, base_alignment=base_alignment, whole=whole)

        return under("widest_vector", assuming, ask, layout, shape)
    bits = as_bits(bits, "widest_vector")
    known = as_number(base_alignment, "widest_vector", "base_alignment", 1)
    if shape is None:
        inner = getattr(layout, "layout", layout)
        if not isinstance(inner, TileLayout):
            raise LayoutError("widest_vector", f"{layout} needs a shape to run along", "pass shape=(...)")
        shape = [it.extent for it in inner.shard]
    dims = as_shape(shape, "widest_vector")
    d = _dimension(along, len(dims))
    if isinstance(layout, TileLayout):
        return _widest(_of_strides(layout, dims, d), dims[d], bits, known, whole)
    return _by_table(layout, bits, as_extents(dims, "widest_vector"), d, known, whole)


def widest_access(
    layout: Placed, access: Access, bits: int, *, base_alignment: int = 16, assuming: Any = None
) -> VectorWidth:
    """The widest accesses that fetch what each lane of `access` touches, in its order.

    A lane with eight elements whose layout keeps them in pairs gets four accesses of two.  The access may be wider
    than any instruction: it lists what a lane wants.

    >>> from tilelayout import S, TileLayout
    >>> from tilelayout.analysis import Access
    >>> widest_access(TileLayout(S[(8, 4, 2) : (8, 2, 1)]), Access.rows((8, 8), vector=8, lanes=8), 16)[:4]
    (16, 8, 1, 0)

    Errors: as `widest_vector`; LayoutError for a layout with symbols that neither its conditions nor `assuming` give a
    value.
    """
    if assuming is not None or rests(layout):

        def ask(layout: Placed) -> VectorWidth:
            return widest_access(layout, access, bits, base_alignment=base_alignment)

        return under("widest_access", assuming, ask, layout)
    bits = as_bits(bits, "widest_access")
    known = as_number(base_alignment, "widest_access", "base_alignment", 1)
    where = positions(layout, access.shape, "widest_access")
    runs = where[[elements for elements in access.lanes if elements],]
    names = [f"lane {lane}" for lane, elements in enumerate(access.lanes) if elements]
    return _widest(_of_runs(runs, names.__getitem__), access.vector, bits, known, whole=False)


# --- the search over widths ---------------------------------------------------------------------


def _widest(
    limits: Callable[[int], list[Limit]], extent: Integer, bits: int, base_alignment: int, whole: bool
) -> VectorWidth:
    """The widest width without a limit; `limits(V)` are the reasons against vectors of V elements.

    All are tried: where a rim is left out, a wide vector may fit and a narrower one not.
    """
    against: dict[int, list[Limit]] = {}
    for width in WIDTHS:
        if width * 8 >= bits:
            count = width * 8 // bits
            found = _of_extent(extent, count, whole) or (limits(count) if count > 1 else [])
            if base_alignment % width:
                found.append(
                    Limit("base", f"position 0 is known to be aligned to {base_alignment} bytes only")
                )
            against[width] = found
    fitting = [width for width, found in against.items() if not found]
    if not fitting:
        narrowest = next(iter(against.values()))
        raise LayoutError(
            "widest_vector",
            f"elements of {bits} bits have no access of their own: {'; '.join(map(str, narrowest))}",
            "another layout, or a base that is aligned to a whole element",
        )
    width = fitting[-1]
    count = width * 8 // bits
    wider = against.get(
        2 * width, [Limit("instruction", f"{WIDTHS[-1]} bytes are the most that one lane accesses")]
    )
    return VectorWidth(width, count, *_divided(extent, count), tuple(wider))


def _of_extent(extent: Integer, count: int, whole: bool) -> list[Limit]:
    if type(extent) is int and extent < count:
        return [Limit("extent", f"there are {extent} elements, fewer than {count}")]
    if whole and quotient(extent, count) is None:
        return [Limit("rim", f"{count} elements do not divide the extent {extent}, so the rim cuts a vector")]
    return []


def _divided(extent: Integer, count: int) -> tuple[Integer, Integer]:
    exact = quotient(extent, count)
    if exact is not None:
        return exact, 0
    return extent // count, extent % count  # a symbolic extent gives floor and Mod


def _dimension(along: Any, rank: int) -> int:
    d = as_integer(along, "widest_vector", "along")
    if type(d) is not int or not -rank <= d < rank:
        raise LayoutError("widest_vector", f"along {d} is no dimension of a shape of rank {rank}")
    return d % rank


# --- by arithmetic ------------------------------------------------------------------------------


def _of_strides(layout: TileLayout, dims: tuple[Integer, ...], d: int) -> Callable[[int], list[Limit]]:
    """The limits of a tile layout along dimension d.

    In the fused form of the dimension's own iters a wrap never continues the innermost run.  So vectors of V are runs
    of neighbors iff the innermost stride is 1 and V divides the innermost extent, or is all there is.  They are aligned
    iff the offset and every other stride on `m` are multiples of V, because the digits are independent.
    """
    shard, seps = group(layout.shard, dims, "widest_vector")
    *outer, inner = fuse(shard[seps[d] : seps[d + 1]])
    extent, step, axis = inner
    others = (*shard[: seps[d]], *outer, *shard[seps[d + 1] :], *layout.replica)
    moving = [it for it in others if it[0] != 1 and it[2] is M]
    offset = next((v for a, v in layout.offset.items() if a is M), 0)

    def limits(count: int) -> list[Limit]:
        if axis is not M or not same(step, 1):
            return [Limit("contiguity", f"a step along the dimension is {stride_text(inner)}, not 1")]
        if outer and quotient(extent, count) is None:
            return [Limit("contiguity", f"vectors of {count} elements cut runs of {extent} neighbors")]
        found = [_of_stride(it, count) for it in moving if quotient(it[1], count) is None]
        if quotient(offset, count) is None:
            found.append(Limit("offset", f"offset {offset} is no multiple of {count} elements"))
        return found

    return limits


def _of_stride(it: RawIter, count: int) -> Limit:
    e, s, _ = it
    if type(s) is int:
        return Limit("stride", f"stride {s} of iter {e}:{s} is no multiple of {count} elements")
    return Limit("stride", f"stride {s} is not known to be a multiple of {count} elements")


# --- by looking ---------------------------------------------------------------------------------


def _by_table(
    layout: Placed, bits: int, shape: tuple[int, ...], d: int, base_alignment: int, whole: bool
) -> VectorWidth:
    import numpy as np

    table = positions(layout, shape, "widest_vector").reshape(shape)
    rows = np.moveaxis(table, d, -1).reshape(-1, shape[d])
    outer = shape[:d] + shape[d + 1 :]

    def name(row: int) -> str:
        rest = list(map(str, coordinate_of(row, outer)))
        rest.insert(d, ":")
        return f"run ({', '.join(rest)})"

    found = _widest(_of_runs(rows, name), shape[d], bits, base_alignment, whole)
    plain = getattr(layout, "layout", None)
    if isinstance(plain, TileLayout):
        without = widest_vector(plain, bits, shape, along=d, base_alignment=base_alignment, whole=whole)
        if without.bytes > found.bytes:
            text = f"{getattr(layout, 'swizzle', layout)} moves parts of {2 * found.elements} neighbors apart"
            return found._replace(limits=(Limit("swizzle", text),))
    return found


def _of_runs(runs: npt.NDArray[Any], name: Callable[[int], str]) -> Callable[[int], list[Limit]]:
    """The limits of runs whose positions are listed, one a row; `name(i)` is how a message calls row i."""
    import numpy as np

    def limits(count: int) -> list[Limit]:
        length = runs.shape[1] // count * count
        vectors = runs[:, :length].reshape(len(runs), -1, count)
        cut = np.argwhere(vectors != vectors[..., :1] + np.arange(count))
        if len(cut):
            i, k, j = cut[0].tolist()
            first, there = vectors[i, k, 0], vectors[i, k, j]
            text = f"{name(i)}: element {k * count} is at {first}, element {k * count + j} at {there}"
            return [Limit("contiguity", text)]
        shifted = np.argwhere(vectors[..., 0] % count != 0)
        if len(shifted):
            i, k = shifted[0].tolist()
            text = f"{name(i)}: element {k * count} is at {vectors[i, k, 0]}, no multiple of {count}"
            return [Limit("alignment", text)]
        return []

    return limits
