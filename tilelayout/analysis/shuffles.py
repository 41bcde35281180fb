"""Rounds of warp shuffles that carry values between the lanes of a warp.

In one round each lane publishes one register and reads what one lane publishes (PTX ISA, "shfl.sync").  Which
registers travel together is a scheduling question; several ways are tried and the cheapest is taken.
"""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Literal

    from .holders import Place

    Needs = dict[Place, Place]  # (thread, slot) of the target -> (thread, slot) of the source, in one warp

LANES: Final = 32


class Pick(NamedTuple):
    """Where a thread takes a value from: its own register, or the result of a shuffle or load, by number."""

    source: Literal["register", "shuffle", "load"]
    number: int


class Shuffle(NamedTuple):
    """One shfl.sync of every warp.

    Attributes:
        publish: thread -> the register that it puts up (None: nobody reads it).
        lanes: thread -> the lane of its own warp that it reads (None: the result is not used).
    """

    publish: tuple[int | None, ...]
    lanes: tuple[int | None, ...]

    @property
    def distance(self) -> int | None:
        """d where every thread reads lane ^ d (shfl.bfly), None where lanes are named one by one (shfl.idx)."""
        found = {(thread % LANES) ^ lane for thread, lane in enumerate(self.lanes) if lane is not None}
        return found.pop() if len(found) == 1 else None

    @property
    def selects(self) -> int:
        """Instructions that choose what is put up, where lanes put up different registers."""
        return max(0, len({slot for slot in self.publish if slot is not None}) - 1)

    def __str__(self) -> str:
        slots = sorted({slot for slot in self.publish if slot is not None})
        what = f"r{slots[0]}" if len(slots) == 1 else f"one of r{', r'.join(map(str, slots))} by lane"
        how = "lane by lane" if self.distance is None else f"lane ^ {self.distance}"
        return f"{what} from {how}"


class Exchange(NamedTuple):
    """Shuffles, and for every place of the target where its value then is."""

    rounds: tuple[Shuffle, ...]
    picks: dict[Place, Pick]


def exchanges(needs: Needs, threads: int) -> list[Exchange]:
    """All ways that are known to satisfy `needs`; the caller knows what they cost.

    By distance: the values that travel lane ^ d together; the least number of rounds when each lane bit goes to a
    register bit or stays.  By slot: one target register at a time, lanes that have the value reading themselves;
    one round a register when lane bits change places.  Greedy: as many lanes as possible each round.
    """
    return [
        _by_distance(needs, threads, by_target=False),
        _by_distance(needs, threads, by_target=True),
        _by_slot(needs, threads),
        _greedy(needs, threads, local=False),
        _greedy(needs, threads, local=True),
    ]


class _Rounds:
    """Rounds under construction."""

    def __init__(self, needs: Needs, threads: int) -> None:
        self.threads = threads
        self.publish: list[dict[int, int]] = []
        self.lanes: list[dict[int, int]] = []
        self.picks = {to: Pick("register", at[1]) for to, at in needs.items() if to[0] == at[0]}

    def add(self, count: int) -> int:
        """`count` more rounds; the number of the first."""
        for _ in range(count):
            self.publish.append({})
            self.lanes.append({})
        return len(self.publish) - count

    def carry(self, k: int, at: Place, to: Place) -> None:
        self.publish[k][at[0]] = at[1]
        self.lanes[k][to[0]] = at[0] % LANES
        self.picks[to] = Pick("shuffle", k)

    def done(self) -> Exchange:
        every = range(self.threads)
        rounds = [
            Shuffle(tuple([publish.get(t) for t in every]), tuple([lanes.get(t) for t in every]))
            for publish, lanes in zip(self.publish, self.lanes, strict=True)
        ]
        return Exchange(tuple(rounds), self.picks)


def _by_distance(needs: Needs, threads: int, by_target: bool) -> Exchange:
    built = _Rounds(needs, threads)
    groups: dict[int, dict[int, dict[Place, list[Place]]]] = {}  # distance -> receiver -> source -> targets
    for to, at in sorted(needs.items()):
        if to[0] != at[0]:
            groups.setdefault(to[0] ^ at[0], {}).setdefault(to[0], {}).setdefault(at, []).append(to)
    for _, receivers in sorted(groups.items()):
        count = max(len(sources) for sources in receivers.values())
        first = built.add(count)
        for sources in receivers.values():
            order = sorted(sources, key=lambda at: sources[at]) if by_target else sorted(sources)
            for k, at in enumerate(order):
                for to in sources[at]:
                    built.carry(first + k, at, to)
    return built.done()


def _by_slot(needs: Needs, threads: int) -> Exchange:
    built = _Rounds(needs, threads)
    for slot in sorted({to[1] for to, at in needs.items() if to[0] != at[0]}):
        mine = {to: at for to, at in needs.items() if to[1] == slot}
        away = {to: at for to, at in mine.items() if to[0] != at[0]}
        whole, least = _ranks(mine), _ranks(away)
        chosen, ranks = (mine, whole) if max(whole.values()) <= max(least.values()) else (away, least)
        first = built.add(max(ranks.values()) + 1)
        for to, at in chosen.items():
            built.carry(first + ranks[at], at, to)
    return built.done()


def _ranks(needs: Needs) -> dict[Place, int]:
    """Number the registers that each thread has to put up."""
    wanted: dict[int, set[int]] = {}
    for thread, slot in needs.values():
        wanted.setdefault(thread, set()).add(slot)
    return {(thread, slot): k for thread, slots in wanted.items() for k, slot in enumerate(sorted(slots))}


def _greedy(needs: Needs, threads: int, local: bool) -> Exchange:
    """`local`: values that a thread has already go through the shuffles too, which may save choices by lane."""
    built = _Rounds(needs, threads)
    wanted: dict[int, dict[Place, list[Place]]] = {}  # receiver -> source -> targets
    for to, at in sorted(needs.items()):
        if local or to[0] != at[0]:
            wanted.setdefault(to[0], {}).setdefault(at, []).append(to)
    readers: dict[Place, int] = {}
    for sources in wanted.values():
        for at in sources:
            readers[at] = readers.get(at, 0) + 1
    while wanted:
        k = built.add(1)
        up = built.publish[k]
        for receiver in sorted(wanted, key=lambda thread: (-len(wanted[thread]), thread)):
            sources = wanted[receiver]
            open_ones = [at for at in sources if up.get(at[0], at[1]) == at[1]]
            if not open_ones:
                continue
            best = min(open_ones, key=lambda at: (at[0] not in up, -readers[at], at))
            for to in sources.pop(best):
                built.carry(k, best, to)
            readers[best] -= 1
            if not sources:
                del wanted[receiver]
    return built.done()
