"""The best way to lay a tile out in shared memory for the accesses that it will see: a swizzle, a padding or neither.

The space is small enough to be searched whole, so the answer is the best there is in it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import LayoutError
from ..layout import TileLayout
from ..parts import as_entries
from ..swizzle import Swizzle
from ..swizzled import SwizzledLayout
from .access import Access
from .banks import LINE_BYTES, access_width, degree_of, lane_addresses, phases_of
from .memory import as_bits, as_extents, copied, counted, positions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    import numpy.typing as npt


class Candidate(NamedTuple):
    """One way to stage the tile.

    Attributes:
        swizzle: S<bits, base, shift> on positions in elements, or None.
        padding: elements added to each row.
        wavefronts: rounds of each access, in the order that they were given; their sum is what is minimized.
        free: the rounds of each without any conflict.
        size: elements of memory, gaps included.
    """

    swizzle: Swizzle | None
    padding: int
    wavefronts: tuple[int, ...]
    free: tuple[int, ...]
    size: int

    @property
    def total(self) -> int:
        """Rounds of all accesses."""
        return sum(self.wavefronts)

    @property
    def is_free(self) -> bool:
        """Whether no access has a conflict."""
        return self.wavefronts == self.free

    def __str__(self) -> str:
        name = "plain" if self.swizzle is None else repr(self.swizzle)
        if self.padding:
            name = f"padded by {self.padding}"
        rounds = " + ".join(map(str, self.wavefronts))
        return f"{name:<16} {rounds} = {counted(self.total, 'wavefront')}, {self.size} elements"


class StagingPlan(NamedTuple):
    """What `best_staging` found: the candidates, best first; ``str(plan)`` is their table.

    Attributes:
        shape: the tile's.
        bits: width of an element.
        accesses: what was asked for.
        plain: the layout without swizzle and padding.
        candidates: all that were tried, best first.
    """

    shape: tuple[int, ...]
    bits: int
    accesses: tuple[Access, ...]
    plain: TileLayout
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        """The fewest rounds; then the least memory, then the smallest parameters."""
        return self.candidates[0]

    @property
    def layout(self) -> TileLayout | SwizzledLayout:
        """The layout of the best candidate."""
        return self.layout_of(self.best)

    def layout_of(self, candidate: Candidate) -> TileLayout | SwizzledLayout:
        """The layout of any candidate."""
        if candidate.swizzle is not None:
            return SwizzledLayout(self.plain, candidate.swizzle)
        return _padded(self.shape, candidate.padding) if candidate.padding else self.plain

    @property
    def alignment(self) -> int:
        """Bytes that position 0 should be aligned to.

        With a swizzle, the bytes that it spans, so that swizzling addresses is the same as swizzling positions (1024
        for S<3,4,3> on bytes, as TMA's 128-byte swizzle asks); otherwise the widest access.
        """
        widest = max(access.vector for access in self.accesses)
        swizzle = self.best.swizzle
        if swizzle is not None:
            widest = 1 << swizzle.base + swizzle.bits + swizzle.shift
        return max(1, widest * self.bits // 8)

    def __str__(self) -> str:
        head = f"tile {self.shape} of {self.bits}-bit elements, accesses: {len(self.accesses)}"
        shown = [f"  {candidate}" for candidate in self.candidates[:MOST_SHOWN]]
        left = len(self.candidates) - len(shown)
        return "\n".join([head, *shown, *([f"  (and {left} more)"] if left else [])])


MOST_SHOWN = 12


def best_staging(
    shape: Sequence[int],
    bits: int,
    accesses: Iterable[Access],
    *,
    layout: TileLayout | None = None,
    padding: bool = True,
) -> StagingPlan:
    """The swizzle or padding of a tile in shared memory with the fewest rounds over all its accesses.

    Searched whole: no change; every swizzle S<bits, base, shift> that leaves the accesses' vectors whole, changes only
    the place within a line of 128 bytes (what a bank depends on), and takes its bits from positions that the tile has;
    every padding of a row, in steps that keep the vectors aligned, up to 128 bytes.  Among the best, the least memory
    wins, then the smallest parameters (bits, base, shift).  Swizzle and padding together are not tried: each undoes
    what the other does for the banks.

    Post-condition: each candidate's wavefronts are those of ``bank_conflicts(plan.layout_of(candidate), access, bits)``
    with position 0 at a multiple of 128 bytes.

    Args:
        shape: the tile's.
        bits: width of an element.
        accesses: all stores and loads that matter, each once for every time it is issued.
        layout: the tile without a swizzle, on `m` (default: row-major, and only then paddings are tried).
        padding: whether paddings are tried.

    >>> tile = (8, 64)
    >>> plan = best_staging(tile, 16, [Access.rows(tile, vector=8), Access.matrices(tile)])
    >>> plan.best.swizzle, plan.best.is_free, plan.alignment
    (Swizzle(3, 3, 3), True, 1024)

    Errors: LayoutError where an access isn't one aligned vector a lane without the swizzle, is of another tile, or
    where the layout has a replica or leaves `m`.
    """
    dims = as_extents(shape, "best_staging")
    width = as_bits(bits, "best_staging")
    asked = tuple(as_entries(accesses, "best_staging", "accesses"))
    if not asked:
        raise LayoutError(
            "best_staging",
            "no access is given, so every layout is as good as any",
            "pass the stores and loads",
        )
    for access in asked:
        if not isinstance(access, Access) or access.shape != dims:
            raise LayoutError("best_staging", f"{access!r} is no Access to a tile {dims}")
    plain = _padded(dims, 0) if layout is None else layout
    if copied(plain):
        raise LayoutError("best_staging", f"{plain} has a replica", "stage one copy")
    where = positions(plain, dims, "best_staging")
    first, last = int(where.min()), int(where.max())
    if first < 0:
        raise LayoutError("best_staging", f"{plain} reaches position {first}", "add an offset")
    vector = max(access.vector for access in asked)
    search = _Search(asked, width)
    found: list[Candidate] = []
    refusal: LayoutError | None = None
    try:
        found.append(search.candidate(where, None, 0))
    except (
        LayoutError
    ) as error:  # no swizzle mends that, since it leaves vectors where they are; a padding may
        refusal = error
    else:
        for swizzle in _swizzles(last, vector, LINE_BYTES * 8 // width):
            found.append(search.candidate(swizzle.apply(where), swizzle, 0))
    if padding and layout is None and len(dims) > 1:
        for extra in _paddings(dims[-1], vector, LINE_BYTES * 8 // width):
            padded = positions(_padded(dims, extra), dims, "best_staging")
            try:
                found.append(search.candidate(padded, None, extra))
            except LayoutError:
                continue
    if refusal is not None and not found:
        raise refusal
    return StagingPlan(dims, width, asked, plain, tuple(sorted(found, key=_rank)))


def _rank(candidate: Candidate) -> tuple[int, ...]:
    swizzle = candidate.swizzle
    parameters = (0, 0, 0) if swizzle is None else (swizzle.bits, swizzle.base, swizzle.shift)
    return (candidate.total, candidate.size, *parameters)


def _swizzles(last: int, vector: int, line: int) -> list[Swizzle]:
    """Those that matter for positions 0 to `last`: `vector` and `line` are counted in elements."""
    base = max(0, (vector - 1).bit_length())
    room = (line - 1).bit_length()  # bits of the place within a line
    have = last.bit_length()
    return [
        Swizzle(count, low, shift)
        for low in range(base, room)
        for count in range(1, room - low + 1)
        for shift in range(count, have - low - count + 1)
    ]


def _paddings(row: int, vector: int, line: int) -> list[int]:
    """Elements that may be added to a row so that vectors stay aligned, up to a line more."""
    first = -row % vector
    return [extra for extra in range(first, line + 1, vector) if extra]


def _padded(shape: tuple[int, ...], extra: int) -> TileLayout:
    """Row-major, with `extra` unused elements after each row."""
    strides = [1]
    pitch = shape[-1] + extra
    for n in reversed(shape[1:]):
        strides.append(pitch if len(strides) == 1 else strides[-1] * n)
    return TileLayout.from_iters(list(zip(shape, reversed(strides), strict=True)))


class _Search:
    """The accesses, with what does not depend on the candidate."""

    def __init__(self, accesses: tuple[Access, ...], bits: int) -> None:
        self.accesses, self.bits = accesses, bits
        self.widths = [access_width(access, bits, "best_staging") for access in accesses]
        phases = [phases_of(access, width) for access, width in zip(accesses, self.widths, strict=True)]
        self.phases = [
            [lanes for lanes in mine if any(access.lanes[lane] for lane in lanes)]
            for access, mine in zip(accesses, phases, strict=True)
        ]
        self.free = tuple([len(mine) for mine in self.phases])

    def candidate(self, where: npt.NDArray[Any], swizzle: Swizzle | None, extra: int) -> Candidate:
        rounds: list[int] = []
        places: list[int] = where.tolist()
        for access, width, phases in zip(self.accesses, self.widths, self.phases, strict=True):
            starts = lane_addresses(places, access, self.bits, 0, "best_staging")
            rounds.append(sum(degree_of(lanes, starts, width) for lanes in phases))
        return Candidate(swizzle, extra, tuple(rounds), self.free, max(places) + 1)
