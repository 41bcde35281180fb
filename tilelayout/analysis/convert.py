"""Conversions between register layouts as data: nothing, moves, shuffles or shared memory, with their cost.

The plan is what a lowering would emit and what a person can read; nothing is emitted here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ..errors import LayoutError, nearest
from ..layout import TileLayout
from .banks import LINE_BYTES, degree_of
from .holders import LANES, Holders, holders_of
from .memory import as_bits, counted
from .shuffles import Exchange, Pick, Shuffle, exchanges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from .holders import Place
    from .shuffles import Needs

    Kind = Literal["nothing", "move", "shuffle", "shared"]
    Addresses = tuple[int | None, ...]

REGISTER_BITS: Final = 32
WAYS: Final = ("shuffle", "shared")


class Store(NamedTuple):
    """Every thread with an address stores its register `slot` there; addresses count units of the plan."""

    slot: int
    addresses: Addresses


class Load(NamedTuple):
    """Every thread with an address loads the unit there."""

    addresses: Addresses


class Cost(NamedTuple):
    """What each thread executes, in instructions on 32-bit registers, and what passes through shared memory.

    Attributes:
        moves: register to register; free where the compiler can rename.
        selects: choices by lane, where lanes take a value from different registers.
        joins: put units that are narrower than a register together (prmt), k - 1 for a register of k of them.
        shuffles: shfl.sync.
        stores: to shared memory.
        loads: from shared memory.
        wavefronts: rounds of these stores and loads over all warps, bank conflicts included.
        shared_bytes: written plus read, over all threads.
        barriers: between stores and loads.
    """

    moves: int = 0
    selects: int = 0
    joins: int = 0
    shuffles: int = 0
    stores: int = 0
    loads: int = 0
    wavefronts: int = 0
    shared_bytes: int = 0
    barriers: int = 0

    @property
    def instructions(self) -> int:
        """All that a thread executes."""
        return (
            self.moves + self.selects + self.joins + self.shuffles + self.stores + self.loads + self.barriers
        )

    def __str__(self) -> str:
        names = ("move", "select", "join", "shuffle", "store", "load", "wavefront", "shared byte", "barrier")
        return ", ".join([counted(n, name) for name, n in zip(names, self, strict=True) if n]) or "free"


class ConversionPlan(NamedTuple):
    """How the registers of one layout become those of another; ``str(plan)`` is the program.

    To execute it: let every thread hold its source registers in units of `pack` elements.  Do the shuffles, each on the
    source registers; do the stores, a barrier, the loads; then target unit `k` of a thread is ``results[k][thread]``:
    its own source register, the result of a shuffle, or of a load (None: the target has nothing there).

    Attributes:
        kind: the dearest step that it needs.
        bits: width of an element.
        pack: elements of a unit, which travel together in one register.
        threads: of all warps that take part.
        source_units, target_units: registers of a thread before and after, in units.
        shuffles, stores, loads: the steps.
        results: target unit -> thread -> where its value is.
        buffer: units of shared memory.
        cost: see `Cost`.
    """

    kind: Kind
    bits: int
    pack: int
    threads: int
    source_units: int
    target_units: int
    shuffles: tuple[Shuffle, ...]
    stores: tuple[Store, ...]
    loads: tuple[Load, ...]
    results: tuple[tuple[Pick | None, ...], ...]
    buffer: int
    cost: Cost

    def __str__(self) -> str:
        names = {
            "nothing": "nothing to do",
            "move": "within the thread",
            "shuffle": "within the warp",
            "shared": "through shared memory",
        }
        unit = (
            f"registers of {self.pack} x {self.bits} bits" if self.pack > 1 else f"{self.bits}-bit registers"
        )
        lines = [f"{names[self.kind]}, {unit}: {self.cost}"]
        lines += [f"  s{k} = shfl {shuffle}" for k, shuffle in enumerate(self.shuffles)]
        lines += [
            f"  store r{store.slot} ({counted(_active(store.addresses), 'thread')})" for store in self.stores
        ]
        lines += ["  barrier"] * self.cost.barriers
        lines += [
            f"  l{k} = load ({counted(_active(load.addresses), 'thread')})"
            for k, load in enumerate(self.loads)
        ]
        for slot, picks in enumerate(self.results):
            text = [
                f"{pick.source[0]}{pick.number}"
                for pick in sorted({pick for pick in picks if pick is not None})
            ]
            if text and text != [f"r{slot}"]:
                lines.append(f"  t{slot} = {' or '.join(text)}{' by lane' if len(text) > 1 else ''}")
        return "\n".join(lines)


def conversion_plan(
    source: TileLayout, target: TileLayout, bits: int = 32, *, via: Literal["shuffle", "shared"] | None = None
) -> ConversionPlan:
    """How to get from one register layout of a tile to another.

    Both layouts map the tile's flat index to threads (laneid, warpid and the other thread axes of a block) and to
    register slots on `m`.  Post-condition: executing the plan leaves, in every place of the target (each copy of a
    replica included), the element that the target puts there, whatever the elements are.

    The kind is the cheapest that suffices: nothing, moves within the thread, shuffles within the warp, or shared
    memory as soon as an element has to change warps.  Neighbors that stay together in one 32-bit register travel
    together.  Where the source has copies, the nearest one is taken.  In shared memory only the elements that change
    threads are exchanged.

    Of several schedules of shuffles the one with the fewest instructions is taken, a shuffle counted twice (CUDA C++
    Programming Guide, "Arithmetic Instructions": half as many a clock as selects).  That no schedule is cheaper isn't
    claimed.

    Args:
        source: the layout that the registers have.
        target: the layout that they should have.
        bits: width of an element.
        via: how elements change lanes within a warp, "shuffle" or "shared"; default: by shuffles if that is all.

    >>> from tilelayout import S, TileLayout, laneid
    >>> rows = TileLayout(S[(32, 2) : (1 @ laneid, 1)])
    >>> print(conversion_plan(rows, TileLayout(S[(32, 2) : (1 @ laneid, 2)])))
    within the thread, 32-bit registers: 1 move
      t2 = r1
    >>> print(conversion_plan(rows, TileLayout(S[(16, 2, 2) : (2 @ laneid, 1, 1 @ laneid)])))
    within the warp, 32-bit registers: 3 selects, 1 shuffle
      s0 = shfl one of r0, r1 by lane from lane ^ 1
      t0 = r0 or s0 by lane
      t1 = r1 or s0 by lane

    Errors: LayoutError for layouts of different sizes; for axes, lanes, warps or slots that do not exist; where a
    layout puts two elements into one register; and where shuffles are asked for and elements change warps.
    """
    width = as_bits(bits, "conversion_plan")
    if via is not None and via not in WAYS:
        raise LayoutError("conversion_plan", f"unknown way {via!r}, {nearest(str(via), list(WAYS))}")
    given: tuple[Any, Any] = (source, target)
    for layout in given:
        if not isinstance(layout, TileLayout):
            raise LayoutError("conversion_plan", f"takes tile layouts, got {type(layout).__name__}")
    if source.size() != target.size():
        raise LayoutError(
            "conversion_plan",
            f"source has {source.size()} elements, target {target.size()}",
            "layouts of one tile",
        )
    have, want = holders_of(source, "conversion_plan"), holders_of(target, "conversion_plan")
    pack, needs = _units(have, want, max(1, REGISTER_BITS // width))
    across = [(to, at) for to, at in needs.items() if to[0] // LANES != at[0] // LANES]
    if across and via == "shuffle":
        to, at = across[0]
        raise LayoutError(
            "conversion_plan",
            f"thread {to[0]} needs an element of thread {at[0]}, in another warp, and a shuffle stays in one",
            'via="shared"',
        )
    threads = max(have.threads, want.threads)
    shape = _Shape(width, pack, threads, -(-have.slots // pack), -(-want.slots // pack))
    if all(to == at for to, at in needs.items()):
        return shape.plan("nothing", Exchange((), {to: Pick("register", to[1]) for to in needs}))
    if all(to[0] == at[0] for to, at in needs.items()):
        return shape.plan("move", Exchange((), {to: Pick("register", at[1]) for to, at in needs.items()}))
    if across or via == "shared":
        return min(
            (_shared(shape, needs, by_target) for by_target in (True, False)),
            key=lambda plan: plan.cost.wavefronts,
        )
    plans = [shape.plan("shuffle", exchange) for exchange in exchanges(needs, threads)]
    return min(plans, key=lambda plan: plan.cost.instructions + plan.cost.shuffles)  # a shuffle counts twice


def _active(addresses: Addresses) -> int:
    return sum(1 for address in addresses if address is not None)


# --- what each thread needs ---------------------------------------------------------------------


def _units(have: Holders, want: Holders, most: int) -> tuple[int, Needs]:
    """The largest unit of at most `most` elements that travels whole, and for each target unit its source."""
    pack = most
    while True:
        groups: dict[Place, dict[int, int]] = {}
        for (thread, slot), element in want.elements.items():
            groups.setdefault((thread, slot // pack), {})[slot % pack] = element
        needs: Needs = {}
        for to, group in groups.items():
            found = _sources(have, group, pack)
            if not found:
                break
            needs[to] = min(found, key=lambda at: _distance(to, at))
        else:
            return pack, needs
        pack //= 2


def _sources(have: Holders, group: dict[int, int], pack: int) -> list[Place]:
    """The source units that hold the elements of a target unit in the same order."""
    lead, element = next(iter(group.items()))
    found: list[Place] = []
    for thread, slot in have.places[element]:
        first = slot - lead
        if first % pack == 0 and all(have.elements.get((thread, first + i)) == e for i, e in group.items()):
            found.append((thread, first // pack))
    return found


def _distance(to: Place, at: Place) -> tuple[bool, bool, bool, int, Place]:
    """Which copy is taken first: one in the same thread, in the same slot, few lane bits away."""
    apart = to[0] ^ at[0]
    return apart >= LANES, apart != 0, to[1] != at[1], apart.bit_count(), at


# --- the plan -----------------------------------------------------------------------------------


class _Shape(NamedTuple):
    """What all plans of one conversion share."""

    bits: int
    pack: int
    threads: int
    source_units: int
    target_units: int

    def plan(
        self,
        kind: Kind,
        exchange: Exchange,
        stores: tuple[Store, ...] = (),
        loads: tuple[Load, ...] = (),
        buffer: int = 0,
    ) -> ConversionPlan:
        results = tuple(
            [
                tuple([exchange.picks.get((thread, slot)) for thread in range(self.threads)])
                for slot in range(self.target_units)
            ]
        )
        cost = self.cost(exchange.rounds, results, stores, loads)
        return ConversionPlan(kind, *self, exchange.rounds, stores, loads, results, buffer, cost)

    def cost(
        self,
        rounds: tuple[Shuffle, ...],
        results: tuple[tuple[Pick | None, ...], ...],
        stores: tuple[Store, ...],
        loads: tuple[Load, ...],
    ) -> Cost:
        words = max(1, self.bits * self.pack // REGISTER_BITS)
        sources = [{pick for pick in picks if pick is not None} for picks in results]
        stays = [mine <= {("register", slot)} for slot, mine in enumerate(sources)]
        moves = joins = 0
        each = max(1, REGISTER_BITS // (self.bits * self.pack))  # units of a register
        for k in range(0, len(sources), each):
            used = sum(1 for mine in sources[k : k + each] if mine)
            if each > 1 and not all(stays[k : k + each]):
                joins += max(1, used - 1)
            elif each == 1 and not stays[k]:
                moves += {pick.source for pick in sources[k]} == {"register"} and len(sources[k]) == 1
        selects = sum(len(mine) - 1 for mine in sources if mine) + sum(shuffle.selects for shuffle in rounds)
        traffic = [step.addresses for step in (*stores, *loads)]
        return Cost(
            moves * words,
            selects * words,
            joins,
            len(rounds) * words,
            len(stores),
            len(loads),
            sum(self._wavefronts(addresses) for addresses in traffic),
            sum(_active(addresses) for addresses in traffic) * self.unit_bytes,
            int(bool(stores)),
        )

    @property
    def unit_bytes(self) -> int:
        """Bytes of a unit in shared memory."""
        return max(1, self.bits * self.pack // 8)

    def _wavefronts(self, addresses: Addresses) -> int:
        starts = [None if address is None else address * self.unit_bytes for address in addresses]
        step = min(LANES, LINE_BYTES // self.unit_bytes)
        return sum(
            degree_of(range(k, k + step), starts, self.unit_bytes) for k in range(0, self.threads, step)
        )


def _shared(shape: _Shape, needs: Needs, by_target: bool) -> ConversionPlan:
    """Exchange through shared memory what changes threads.

    Units lie in the order of the target's registers (each load reads 32 neighbors) or of the source's (each store
    writes them).
    """
    away = {to: at for to, at in needs.items() if to[0] != at[0]}
    picks = {to: Pick("register", at[1]) for to, at in needs.items() if to[0] == at[0]}
    address: dict[Place, int] = {}
    ordered = sorted(away.items(), key=lambda pair: pair[0][::-1] if by_target else pair[1][::-1])
    for _, at in ordered:
        address.setdefault(at, len(address))
    stores: list[Store] = []
    for slot in sorted({at[1] for at in address}):
        mine = [address.get((thread, slot)) for thread in range(shape.threads)]
        stores.append(Store(slot, tuple(mine)))
    loads: list[Load] = []
    for slot in sorted({to[1] for to in away}):
        from_place = [away.get((thread, slot)) for thread in range(shape.threads)]
        picks.update(
            {
                (thread, slot): Pick("load", len(loads))
                for thread, at in enumerate(from_place)
                if at is not None
            }
        )
        loads.append(Load(tuple([None if at is None else address[at] for at in from_place])))
    return shape.plan("shared", Exchange((), picks), tuple(stores), tuple(loads), len(address))
