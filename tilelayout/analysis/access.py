"""`Access`: what one instruction of one warp touches of a tile.

Data only.  It speaks of logical elements, so the same access can be asked about under every layout of the tile.
"""

from __future__ import annotations

from ..errors import LayoutError, nearest
from ..parts import as_entries, product
from .memory import as_bits, as_extents, as_number, as_numbers, positions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Final, Literal

    from .memory import Placed

    Kind = Literal["load", "store", "ldmatrix", "stmatrix"]

WARP: Final = 32
KINDS: Final = ("load", "store", "ldmatrix", "stmatrix")
MATRIX_ROWS: Final = 8
MATRIX_ROW_BYTES: Final = 16

_set = object.__setattr__


class Access:
    """One instruction of one warp on a tile: which elements each lane touches, in order of their addresses.

    `lanes[l]` are the flat logical indices (row-major in `shape`) that lane l touches at once: one for a scalar
    access, V for a vector of V elements, none for a lane that is switched off.  For ``ldmatrix`` and ``stmatrix`` they
    are the 16-byte row that lane l points at (lanes 8r to 8r + 7 point at the rows of matrix r; PTX ISA,
    "ldmatrix").  Values are frozen, hashable and picklable.

    >>> Access((4, 8), [(0, 1), (8, 9), None])
    Access(load, 2 lanes of 2 elements, tile (4, 8))

    Errors: LayoutError for an element outside the tile, lanes of different vectors, more than 32 lanes, or matrices
    that are not 1, 2 or 4 with eight rows each.
    """

    __slots__ = ("kind", "lanes", "shape")

    kind: Kind
    lanes: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]

    def __init__(self, shape: Sequence[int] | int, lanes: Iterable[Any], kind: Kind = "load") -> None:
        dims = as_extents(shape, "Access")
        if not isinstance(kind, str) or kind not in KINDS:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise LayoutError("Access", f"unknown kind {kind!r}, {nearest(str(kind), list(KINDS))}")
        table = tuple(
            [
                () if x is None else _elements(x, lane)
                for lane, x in enumerate(as_entries(lanes, "Access", "lanes"))
            ]
        )
        _check(dims, table, kind)
        _set(self, "shape", dims)
        _set(self, "lanes", table)
        _set(self, "kind", kind)

    # --- the usual ones -------------------------------------------------------------------------

    @classmethod
    def of_layout(
        cls, shape: Sequence[int] | int, layout: Placed, vector: int = 1, kind: Kind = "load"
    ) -> Access:
        """From a layout that maps (lane, element of the vector) to the flat logical index, on `m`.

        >>> from tilelayout import S, TileLayout
        >>> Access.of_layout((16, 16), TileLayout(S[(2, 16, 8) : (8, 16, 1)]), vector=8).lanes[17][:2]
        (24, 25)
        """
        dims = as_extents(shape, "Access.of_layout")
        per_lane = as_number(vector, "Access.of_layout", "vector", 1)
        size = getattr(layout, "size", None)
        count = as_number(size() if callable(size) else WARP * per_lane, "Access.of_layout", "size", 1)
        if count % per_lane:
            raise LayoutError(
                "Access.of_layout", f"{count} elements are no whole number of vectors of {per_lane}"
            )
        flat = positions(layout, (count,), "Access.of_layout").tolist()
        return cls(dims, [flat[k : k + per_lane] for k in range(0, count, per_lane)], kind)

    @classmethod
    def of_function(
        cls,
        shape: Sequence[int],
        first: Callable[[int], Sequence[int] | None],
        vector: int = 1,
        lanes: int = WARP,
        kind: Kind = "load",
    ) -> Access:
        """``first(lane)`` is the coordinate of a lane's first element (None: the lane is off).

        The vector runs along the last dimension.

        >>> Access.of_function((8, 8), lambda lane: (lane % 8, 0), vector=4, lanes=8).lanes[3]
        (24, 25, 26, 27)
        """
        dims = as_extents(shape, "Access.of_function")
        per_lane = as_number(vector, "Access.of_function", "vector", 1)
        starts = [first(lane) for lane in range(as_number(lanes, "Access.of_function", "lanes", 1))]
        return cls(
            dims, [None if x is None else _run(dims, x, per_lane, "Access.of_function") for x in starts], kind
        )

    @classmethod
    def rows(
        cls,
        shape: Sequence[int] | int,
        vector: int = 1,
        lanes: int = WARP,
        start: Sequence[int] | None = None,
        kind: Kind = "load",
    ) -> Access:
        """Lane l takes `vector` elements after those of lane l - 1: along the row, then on in the next.

        >>> Access.rows((32, 32), vector=4).lanes[9]
        (36, 37, 38, 39)
        """
        dims = as_extents(shape, "Access.rows")
        per_lane = as_number(vector, "Access.rows", "vector", 1)
        if dims[-1] % per_lane:
            raise LayoutError(
                "Access.rows",
                f"a vector of {per_lane} elements does not divide a row of {dims[-1]}",
                "a narrower vector, or of_function with the last lanes off",
            )
        flat = 0 if start is None else _run(dims, start, 1, "Access.rows")[0]
        count = as_number(lanes, "Access.rows", "lanes", 1)
        return cls(dims, [range(flat + k * per_lane, flat + (k + 1) * per_lane) for k in range(count)], kind)

    @classmethod
    def column(
        cls,
        shape: Sequence[int],
        column: int = 0,
        row: int = 0,
        vector: int = 1,
        lanes: int = WARP,
        kind: Kind = "load",
    ) -> Access:
        """Lane l takes `vector` elements from `column` on of row ``row + l``.

        >>> Access.column((32, 64)).lanes[3]
        (192,)
        """
        return cls.of_function(shape, lambda lane: (row + lane, column), vector, lanes, kind)

    @classmethod
    def matrices(
        cls,
        shape: Sequence[int],
        corners: Iterable[Sequence[int]] = ((0, 0),),
        bits: int = 16,
        kind: Kind = "ldmatrix",
    ) -> Access:
        """ldmatrix or stmatrix of 1, 2 or 4 matrices of 8 rows by 16 bytes; `corners` are their first elements.

        Matrix r is register r, and its row i is the address of lane 8r + i.

        >>> x4 = Access.matrices((16, 16), [(0, 0), (8, 0), (0, 8), (8, 8)])
        >>> [divmod(x4.lanes[lane][0], 16) for lane in (1, 8, 16, 31)]
        [(1, 0), (8, 0), (0, 8), (15, 8)]
        """
        dims = as_extents(shape, "Access.matrices")
        per_lane = 8 * MATRIX_ROW_BYTES // as_bits(bits, "Access.matrices")
        starts = [
            as_numbers(c, "Access.matrices", "corner")
            for c in as_entries(corners, "Access.matrices", "corners")
        ]
        for corner in starts:
            if len(corner) != len(dims) or len(dims) < 2:
                raise LayoutError(
                    "Access.matrices",
                    f"corner {corner} is no coordinate of a tile {dims} of rows and columns",
                )
        return cls(
            dims,
            [
                _run(dims, (*corner[:-2], corner[-2] + i, corner[-1]), per_lane, "Access.matrices")
                for corner in starts
                for i in range(MATRIX_ROWS)
            ],
            kind,
        )

    # --- the value ------------------------------------------------------------------------------

    @property
    def vector(self) -> int:
        """How many elements a lane touches."""
        return max(len(elements) for elements in self.lanes)

    @property
    def is_matrix(self) -> bool:
        """Whether it is ldmatrix or stmatrix."""
        return self.kind in ("ldmatrix", "stmatrix")

    def coordinates(self, lane: int) -> tuple[tuple[int, ...], ...]:
        """The elements of a lane as coordinates of the tile.

        >>> Access.column((32, 64)).coordinates(3)
        ((3, 0),)
        """
        return tuple([coordinate_of(flat, self.shape) for flat in self.lanes[lane]])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Access is frozen: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Access is frozen: cannot delete {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Access):
            return NotImplemented
        return self.shape == other.shape and self.lanes == other.lanes and self.kind == other.kind

    def __hash__(self) -> int:
        return hash((self.shape, self.lanes, self.kind))

    def __reduce__(self) -> tuple[type[Access], tuple[Any, ...]]:
        return Access, (self.shape, self.lanes, self.kind)

    def __repr__(self) -> str:
        active = sum(1 for elements in self.lanes if elements)
        what = f"{active} lanes of {self.vector} element{'s' if self.vector > 1 else ''}"
        return f"Access({self.kind}, {what}, tile {self.shape})"


def coordinate_of(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The coordinate of a flat row-major index."""
    digits: list[int] = []
    for n in reversed(shape):
        flat, digit = divmod(flat, n)
        digits.append(digit)
    return tuple(reversed(digits))


def _elements(entry: Any, lane: int) -> tuple[int, ...]:
    if hasattr(entry, "__index__") and not getattr(entry, "shape", ()):
        return (as_number(entry, "Access", f"element of lane {lane}"),)
    return as_numbers(entry, "Access", f"element of lane {lane}")


def _run(shape: tuple[int, ...], start: Any, count: int, operation: str) -> tuple[int, ...]:
    """`count` elements along the last dimension, refused where they leave the tile."""
    coordinate = as_numbers(start, operation, "coordinate")
    if len(coordinate) != len(shape):
        raise LayoutError(operation, f"coordinate {coordinate} has another rank than the tile {shape}")
    end = (*coordinate[:-1], coordinate[-1] + count - 1)
    flat = 0
    for d, (c, n) in enumerate(zip(end, shape, strict=True)):
        if c >= n:
            raise LayoutError(
                operation,
                f"a vector of {count} at {coordinate} leaves dimension {d} of the tile {shape}",
                "switch that lane off (None)",
            )
        flat = flat * n + c
    return tuple(range(flat - count + 1, flat + 1))


def _check(shape: tuple[int, ...], lanes: tuple[tuple[int, ...], ...], kind: str) -> None:
    size = product(shape)
    if len(lanes) > WARP:
        raise LayoutError(
            "Access", f"{len(lanes)} lanes are more than the {WARP} of a warp", "one access a warp"
        )
    counts = {len(elements): lane for lane, elements in enumerate(lanes) if elements}
    if not counts:
        raise LayoutError("Access", "no lane takes part")
    if len(counts) > 1:
        some = ", ".join(f"lane {lane} has {n}" for n, lane in sorted(counts.items()))
        raise LayoutError("Access", f"one instruction has one width: {some} elements")
    for lane, elements in enumerate(lanes):
        for flat in elements:
            if flat >= size:  # type: ignore[operator]  # the extents are plain
                raise LayoutError(
                    "Access", f"lane {lane} touches element {flat} of the {size} of tile {shape}"
                )
    if kind in ("ldmatrix", "stmatrix") and (len(lanes) not in (8, 16, 32) or not all(lanes)):
        raise LayoutError(
            "Access",
            f"{kind} takes 1, 2 or 4 matrices of {MATRIX_ROWS} row addresses, got {len(lanes)} lanes",
            "8, 16 or 32 lanes, all on",
        )
