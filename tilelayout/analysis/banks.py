"""Shared-memory bank conflicts of one access: which lanes wait for one another, phase by phase."""

from __future__ import annotations

from typing import NamedTuple

from ..conditional.carry import under
from ..errors import LayoutError
from .access import MATRIX_ROW_BYTES, MATRIX_ROWS, WARP, Access
from .memory import as_bits, as_number, counted, positions, rests, width_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Final

    from .memory import Placed

BANKS: Final = 32
BANK_BYTES: Final = 4
LINE_BYTES: Final = BANKS * BANK_BYTES


class Conflict(NamedTuple):
    """Lanes of one phase that want different words of the same banks.

    Attributes:
        banks: the banks they share.
        lanes: every lane concerned, those that read one word together (a broadcast) included.
        addresses: the first byte of each of these lanes' accesses, counted like `base`.
        ways: how many different words a bank has to deliver.
    """

    banks: tuple[int, ...]
    lanes: tuple[int, ...]
    addresses: tuple[int, ...]
    ways: int

    def __str__(self) -> str:
        first, last = self.banks[0], self.banks[-1]
        banks = f"bank {first}" if first == last else f"banks {first}-{last}"
        if last - first >= len(self.banks):
            banks = "banks " + ", ".join(map(str, self.banks))
        lanes = ", ".join(f"lane {lane} at {at}" for lane, at in zip(self.lanes, self.addresses, strict=True))
        return f"{banks}: {lanes} ({self.ways}-way)"


class Phase(NamedTuple):
    """The lanes that the memory serves together: `degree` is the rounds it takes, 1 when nothing collides."""

    lanes: tuple[int, ...]
    degree: int
    conflicts: tuple[Conflict, ...]


class BankReport(NamedTuple):
    """What `bank_conflicts` found; ``str(report)`` is the text.

    Attributes:
        access: what was asked about.
        width: bytes a lane.
        phases: the phases in which a lane takes part.
    """

    access: Access
    width: int
    phases: tuple[Phase, ...]

    @property
    def degree(self) -> int:
        """The worst phase's; 1 means free of conflicts, n that a phase takes n times as long."""
        return max(phase.degree for phase in self.phases)

    @property
    def wavefronts(self) -> int:
        """Rounds of the whole instruction: the sum of the phases' degrees."""
        return sum(phase.degree for phase in self.phases)

    @property
    def is_free(self) -> bool:
        """Whether no lane waits for another."""
        return self.degree == 1

    def __str__(self) -> str:
        active = sum(len(phase.lanes) for phase in self.phases)
        head = f"{self.access.kind}, {counted(active, 'lane')} of {counted(self.width, 'byte')}: "
        if self.is_free:
            return f"{head}no conflicts, {counted(self.wavefronts, 'wavefront')}"
        lines = [
            f"{head}{self.degree}-way conflicts, {self.wavefronts} wavefronts where {len(self.phases)} would do"
        ]
        for phase in self.phases:
            if phase.conflicts:
                lines.append(f"lanes {phase.lanes[0]}-{phase.lanes[-1]}: {phase.degree}-way")
                lines += [f"  {conflict}" for conflict in phase.conflicts]
        return "\n".join(lines)


def bank_conflicts(
    layout: Placed, access: Access, bits: int, *, base: int = 0, assuming: Any = None
) -> BankReport:
    """How one access to a tile in shared memory collides in the banks.

    Shared memory has 32 banks, and successive 4-byte words lie in successive banks.  A request is served in phases:
    a whole warp for up to 4 bytes a lane, two half-warps for 8, four quarter-warps for 16, eight row addresses for
    each matrix of ldmatrix and stmatrix.  Within a phase a bank delivers one word a round; lanes that want the same
    word share it (a broadcast), lanes that want different words of one bank wait.

    Source: CUDA C++ Programming Guide, "Shared Memory" (banks, broadcast, and the splitting of 64- and 128-bit
    requests, which the guide states for earlier devices).

    Args:
        layout: where the tile's elements are, on `m`, counted in elements.
        access: which lane touches which elements.
        bits: width of an element.
        base: byte address of position 0.
        assuming: conditions that give the layout's symbols values, beside those that it rests on.

    >>> from tilelayout import S, TileLayout
    >>> column = Access.column((32, 32))
    >>> bank_conflicts(TileLayout(S[32, 32]), column, 32).degree
    32
    >>> padded = TileLayout(S[(32, 32) : (33, 1)])
    >>> print(bank_conflicts(padded, column, 32))
    load, 32 lanes of 4 bytes: no conflicts, 1 wavefront

    Errors: LayoutError where a lane's elements are not one aligned run of 1, 2, 4, 8 or 16 bytes under this layout
    (with the widest access that is), where an element is not on `m`, or before address 0, and where a symbol has no
    value.
    """
    if assuming is not None or rests(layout):

        def ask(layout: Placed) -> BankReport:
            return bank_conflicts(layout, access, bits, base=base)

        return under("bank_conflicts", assuming, ask, layout)
    bits = as_bits(bits, "bank_conflicts")
    width = access_width(access, bits, "bank_conflicts")
    where: list[int] = positions(layout, access.shape, "bank_conflicts").tolist()
    starts = lane_addresses(where, access, bits, as_number(base, "bank_conflicts", "base"), "bank_conflicts")
    phases = [_phase(lanes, starts, width) for lanes in phases_of(access, width)]
    return BankReport(access, width, tuple([phase for phase in phases if phase.lanes]))


def access_width(access: Access, bits: int, operation: str) -> int:
    """Bytes a lane; refused where no instruction is that wide."""
    width = width_of(access.vector, bits, operation)
    if access.is_matrix and width != MATRIX_ROW_BYTES:
        raise LayoutError(
            operation,
            f"{access.kind} takes rows of {MATRIX_ROW_BYTES} bytes, got {access.vector} elements of {bits} bits",
            f"rows of {8 * MATRIX_ROW_BYTES // bits} elements",
        )
    return width


def phases_of(access: Access, width: int) -> list[range]:
    """The lanes that are served together (those that are off included)."""
    step = MATRIX_ROWS if access.is_matrix else min(WARP, BANKS * BANK_BYTES // width)
    return [range(k, min(k + step, len(access.lanes))) for k in range(0, len(access.lanes), step)]


def lane_addresses(
    where: Sequence[int], access: Access, bits: int, base: int, operation: str
) -> list[int | None]:
    """Lane -> byte address of its access, None where it is off; `where` is flat index -> position in elements.

    Errors: LayoutError where a lane's elements are not one aligned run of memory.
    """
    width = access.vector * bits  # in bits, like all addresses here
    found: list[int | None] = []
    for lane, elements in enumerate(access.lanes):
        if not elements:
            found.append(None)
            continue
        places = [where[flat] for flat in elements]
        for k, place in enumerate(places):
            if place != places[0] + k:
                raise LayoutError(
                    operation,
                    f"the elements of lane {lane} are not neighbors: positions {places[0]} and {place} for elements "
                    f"{elements[0]} and {elements[k]}",
                    "a narrower vector; widest_access says how wide it may be",
                )
        address = places[0] * bits + 8 * base
        if address < 0:
            raise LayoutError(
                operation, f"lane {lane} touches byte {address // 8}", "say with base where position 0 is"
            )
        if address % width:
            raise LayoutError(
                operation,
                f"lane {lane} accesses {width // 8} bytes at {_byte(address)}, which is not aligned to them",
                "a narrower vector; widest_access says how wide it may be",
            )
        found.append(address // 8)
    return found


def _byte(address: int) -> str:
    return f"byte {address // 8}" if address % 8 == 0 else f"bit {address}"


def degree_of(lanes: Iterable[int], starts: list[int | None], width: int) -> int:
    """Rounds that a phase takes: the most different words that one bank must deliver."""
    words: set[int] = set()
    for lane in lanes:
        start = starts[lane]
        if start is not None:
            words.update(range(start // BANK_BYTES, (start + width - 1) // BANK_BYTES + 1))
    counts = [0] * BANKS
    for word in words:
        counts[word % BANKS] += 1
    return max(counts)


def _phase(lanes: range, starts: list[int | None], width: int) -> Phase:
    active = tuple([lane for lane in lanes if starts[lane] is not None])
    banks: dict[int, dict[int, list[int]]] = {}  # bank -> word -> lanes
    for lane in active:
        start = starts[lane] or 0
        for word in range(start // BANK_BYTES, (start + width - 1) // BANK_BYTES + 1):
            banks.setdefault(word % BANKS, {}).setdefault(word, []).append(lane)
    groups: dict[tuple[tuple[int, ...], int], list[int]] = {}  # (lanes, ways) -> banks
    for bank in sorted(banks):
        words = banks[bank]
        if len(words) > 1:
            together = tuple(sorted(lane for mine in words.values() for lane in mine))
            groups.setdefault((together, len(words)), []).append(bank)
    conflicts = [
        Conflict(tuple(found), together, tuple([starts[lane] or 0 for lane in together]), ways)
        for (together, ways), found in groups.items()
    ]
    return Phase(active, degree_of(active, starts, width), tuple(conflicts))
