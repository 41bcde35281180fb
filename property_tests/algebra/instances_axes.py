"""`instances` of the operations on axes and threads, and of the questions."""

from __future__ import annotations

from math import prod
from random import Random
from typing import Any

from property_tests.algebra import compacts, reference
from property_tests.algebra.instances import (
    AXES,
    Instance,
    fitting,
    iters,
    layout,
    operation,
    refused,
)
from property_tests.algebra.test_by_axis import exists, together
from tilelayout import Iter, TileLayout, laneid, m, tid_in_wg, tx, warpid, wgid, wid_in_wg

# --- axes -----------------------------------------------------------------------------------------------


def only(place: reference.Place, axes: list[Any]) -> reference.Place:
    return frozenset((a, v) for a, v in place if a in axes)


@operation("storage")
def _storage(rng: Random) -> Instance:
    x = layout(rng)

    def check(found: Any) -> None:
        kept = [it.axis.kind == "memory" for it in x.shard]
        extents = [it.extent if keep else 1 for it, keep in zip(x.shard, kept, strict=True)]
        memory = [str(a) for a in (*AXES, m) if a.kind == "memory"]
        for i, coord in enumerate(reference.coordinates(extents)):
            whole = reference.flatten(coord, [it.extent for it in x.shard])
            assert reference.owners(found, i) == {only(p, memory) for p in reference.owners(x, whole)}

    return Instance(x.storage, check)


@operation("broadcast")
def _broadcast(rng: Random) -> Instance:
    x, num, axis = layout(rng, 24), rng.randint(1, 5), rng.choice(AXES)
    rank = len(x.shard)
    position = rng.randint(-rank - 1, rank)

    def check(found: Any) -> None:
        extents = [it.extent for it in x.shard]
        at = position if position >= 0 else rank + 1 + position
        for flat, coord in enumerate(reference.coordinates([*extents[:at], num, *extents[at:]])):
            before = reference.flatten([*coord[:at], *coord[at + 1 :]], extents)
            assert reference.owners(found, flat) == reference.owners(x, before)

    question = {"do": "broadcast", "layout": x, "num": num, "position": position}
    return Instance(lambda: x.broadcast(num, position, axis), check, question)


@operation("select")
def _select(rng: Random) -> Instance:
    x, axes = layout(rng), rng.sample(AXES, rng.randint(1, 3))

    def check(found: Any) -> None:
        extents = [it.extent if it.axis in axes else 1 for it in x.shard]
        assert [it.extent for it in found.shard] == extents
        for flat, coord in enumerate(reference.coordinates(extents)):
            whole = reference.flatten(coord, [it.extent for it in x.shard])
            assert reference.owners(found, flat) == {only(p, axes) for p in reference.owners(x, whole)}

    return Instance(lambda: x.select(*axes), check)


@operation("project")
def _project(rng: Random) -> Instance:
    x, axes = layout(rng), rng.sample(AXES, rng.randint(1, 3))

    def check(found: Any) -> None:
        assert reference.function(found) == [
            frozenset(only(p, axes) for p in places) for places in reference.function(x)
        ]

    return Instance(lambda: x.project(*axes), check)


@operation("join")
def _join(rng: Random) -> Instance:
    size = rng.choice((1, 2, 4, 6, 8, 12, 16, 24))

    def part(axis: Any) -> TileLayout:
        shard = [(e, rng.choice((0, 0, 1, 2, 3)), axis) for e in compacts.factors(size, rng)]
        replica = [(2, rng.choice((1, 5)), axis)] if rng.random() < 0.2 else []
        return TileLayout.from_iters(shard, replica, {axis: rng.choice((0, 3))})

    if rng.random() < 0.5:  # projections of one layout, which do join
        one = layout(rng, 24, (m, laneid, warpid), replicated=False)
        parts = [one.project(m), one.project(laneid, warpid)]
    else:
        parts = [part(axis) for axis in rng.sample((m, laneid, warpid), rng.randint(2, 3))]

    def check(found: Any) -> None:
        if refused(found):
            assert not exists(parts)
        else:
            assert reference.function(found) == together(parts)

    return Instance(lambda: parts[0].join(*parts[1:]), check)


# --- threads --------------------------------------------------------------------------------------------

SYSTEMS: tuple[dict[Any, tuple[int, int | None]], ...] = (
    {tx: (1, None)},
    {warpid: (32, None), laneid: (1, 32)},
    {wgid: (128, None), wid_in_wg: (32, 4), laneid: (1, 32)},
    {wgid: (128, None), tid_in_wg: (1, 128)},
)
"""Axis -> threads a step, and its extent, for each way to count `tx`; written down again, not taken from the code."""


def of_threads(rng: Random, axes: tuple[Any, ...]) -> TileLayout:
    strides = (1, 2, 4, 8, 16, 0, -1, 3, 32)
    shard = iters(rng, 64, 5, (*axes, m), strides)
    replica = iters(rng, 4, 2, axes, (1, 2, 4, 8, 16)) if rng.random() < 0.3 else []
    moved = {rng.choice(axes): rng.choice((0, 1, 7, 16, 31, -1, 64)) for _ in range(rng.randint(0, 2))}
    return TileLayout.from_iters(shard, replica, moved if rng.random() < 0.3 else {})


def by_thread(x: TileLayout, system: dict[Any, tuple[int, int | None]]) -> list[frozenset[reference.Place]]:
    """The owners, their threads counted by tx."""

    def counted(place: reference.Place) -> reference.Place:
        values = dict(place)
        rest = {a: v for a, v in values.items() if a not in system}
        return reference.place({**rest, "tx": sum(values.get(a, 0) * w for a, (w, _) in system.items())})

    return [frozenset(counted(place) for place in places) for places in reference.function(x)]


def inside(x: TileLayout, system: dict[Any, tuple[int, int | None]]) -> bool:
    """Whether every coordinate that an inner axis has is in its range."""
    return all(
        0 <= dict(place).get(a, 0) < extent
        for places in reference.function(x)
        for place in places
        for a, (_, extent) in system.items()
        if extent
    )


@operation("fuse_threads")
def _fuse_threads(rng: Random) -> Instance:
    system = rng.choice(SYSTEMS[1:])
    x = of_threads(rng, tuple(system))

    def check(found: Any) -> None:
        assert refused(found) != inside(x, system)
        if not refused(found):
            assert reference.function(found) == by_thread(x, system)

    return Instance(lambda: x.fuse_threads(tx), check)


@operation("split_threads")
def _split_threads(rng: Random) -> Instance:
    x = of_threads(rng, (tx,))
    outer, system = rng.choice(((None, SYSTEMS[1]), ("wgid", SYSTEMS[3])))
    weight = max(w for w, _ in system.values())

    def check(found: Any) -> None:
        if refused(found):
            if not x.replica:  # without copies a layout of both coordinates is one of their pairs
                flats = range(reference.size(x))
                at = [reference.displacement(x, i) for i in flats]
                pairs = [(*divmod(p.get("tx", 0), weight), p.get("m", 0)) for p in at]
                assert not reference.greedy_is_layout(pairs)
        else:
            assert inside(found, system)
            assert by_thread(found, system) == reference.function(x)

    return Instance(lambda: x.split_threads("tx", outer), check)


@operation("canonicalize in a scope")
def _canonicalize_scope(rng: Random) -> Instance:
    system = rng.choice(SYSTEMS)
    scope, counted = rng.choice((("cta", SYSTEMS[0]), ("warpgroup", SYSTEMS[3]), ("warp", SYSTEMS[1])))
    x = of_threads(rng, tuple(system))

    def check(found: Any) -> None:
        if not refused(found):
            assert by_thread(found, counted) == by_thread(x, system)

    return Instance(lambda: x.canonicalize(scope), check)


# --- questions ------------------------------------------------------------------------------------------


def _asked(rng: Random) -> TileLayout:
    if rng.random() < 0.5:
        return compacts.anything(rng, 24, rng.choice(((m,), (m, laneid))), rng.random() < 0.3)
    return layout(rng, 24)


@operation("is_injective")
def _is_injective(rng: Random) -> Instance:
    x = _asked(rng)

    def check(answer: Any) -> None:
        owners = reference.function(x)
        held: dict[reference.Place, int] = {}
        yes = all(held.setdefault(place, i) == i for i, places in enumerate(owners) for place in places)
        assert bool(answer) == yes
        if not answer and not isinstance(answer, bool):
            first, second = answer.witness
            assert 0 <= first < second
            assert owners[first] & owners[second]

    return Instance(x.is_injective, check, {"do": "is_injective", "layout": x})


def _box(x: TileLayout) -> tuple[set[reference.Place], dict[str, tuple[int, int]]]:
    """The places that are held, and the range on each axis."""
    held = {place for places in reference.function(x) for place in places}
    axes = {str(a) for a in x.offset} | {str(it.axis) for it in (*x.shard, *x.replica)}
    values = {a: [dict(place).get(a, 0) for place in held] for a in axes}
    return held, {a: (min(v), max(v)) for a, v in values.items()}


def _check_gap(x: TileLayout, answer: Any) -> None:
    held, ends = _box(x)
    assert bool(answer) == (len(held) == prod(high - low + 1 for low, high in ends.values()))
    if not answer:
        missed = reference.place(answer.witness)
        assert missed not in held
        assert all(low <= dict(missed).get(a, 0) <= high for a, (low, high) in ends.items())


@operation("is_surjective")
def _is_surjective(rng: Random) -> Instance:
    x = _asked(rng)
    return Instance(x.is_surjective, lambda answer: _check_gap(x, answer))


@operation("is_bijective")
def _is_bijective(rng: Random) -> Instance:
    x = rng.choice(compacts.compact(rng.randint(1, 24))) if rng.random() < 0.3 else _asked(rng)

    def check(answer: Any) -> None:
        owners = reference.function(x)
        held, ends = _box(x)
        once = len(held) == sum(map(len, owners))
        assert bool(answer) == (once and len(held) == prod(high - low + 1 for low, high in ends.values()))

    return Instance(x.is_bijective, check)


@operation("equivalent")
def _equivalent(rng: Random) -> Instance:
    one = _asked(rng)
    kind = rng.randint(0, 3)
    if kind == 0:
        other = _asked(rng)
    else:
        other = one.group(fitting(rng, one))[0] if kind == 1 else one.canonicalize()
        if other.shard and rng.random() < 0.5:
            shard = list(other.shard)
            k = rng.randrange(len(shard))
            e, stride, axis = shard[k]
            shard[k] = Iter(e, stride + rng.choice((0, 1, -2)), axis)
            other = TileLayout.from_iters(shard, other.replica, other.offset)

    def check(answer: Any) -> None:
        owners = [reference.function(x) for x in (one, other)]
        assert bool(answer) == (owners[0] == owners[1])
        if not answer:
            at = answer.witness
            assert at == min(map(len, owners)) or owners[0][at] != owners[1][at]

    return Instance(lambda: one.equivalent(other), check)


@operation("elements")
def _elements(rng: Random) -> Instance:
    x = _asked(rng)
    owners = reference.function(x)
    place = dict(rng.choice(sorted(rng.choice(owners), key=sorted)))
    if rng.random() < 0.3:
        place["m"] = place.get("m", 0) + rng.choice((1, -1))
    free = rng.choice((None, None, "m", "laneid"))
    asked: dict[str, Any] = {**place, free: ...} if free else place

    def check(found: Any) -> None:
        def there(at: reference.Place) -> bool:
            return only(at, [a for a, _ in at if a != free]) == reference.place(
                {a: v for a, v in place.items() if a != free}
            )

        assert found == tuple(i for i, places in enumerate(owners) if any(map(there, places)))

    return Instance(lambda: x.elements(asked), check)
