"""`instances` of swizzles and of the operations on swizzled layouts."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from random import Random
from typing import Any

from property_tests.algebra import compacts, reference, swizzling
from property_tests.algebra.instances import Instance, PlainRandom, fitting, iters, operation, refused
from property_tests.algebra.instances_axes import only
from property_tests.algebra.test_pack import moved
from property_tests.oracles import sampling
from tilelayout import S, Swizzle, SwizzledLayout, TileLayout, XorMap, laneid, m, warpid


def a_swizzle(rng: Random) -> Swizzle:
    bits, base = rng.choice((0, 1, 1, 2, 2, 3)), rng.randint(0, 3)
    shift = rng.randint(bits, max(bits, 9 - bits - base))
    return Swizzle(bits, base, rng.choice((shift, shift, -shift)))


def a_map(rng: Random) -> XorMap:
    if rng.random() < 0.7:
        return a_swizzle(rng)
    width = rng.randint(0, 6)
    images = [1 << i for i in range(width)]
    rng.shuffle(images)
    for _ in range(rng.randint(1, 8) if width else 0):
        i, j = rng.randrange(width), rng.randrange(width)
        if i != j:
            images[i] ^= images[j]
    return XorMap(images)


def an_inner(rng: Random, most: int) -> TileLayout:
    """What swizzles are made for, or a compact layout with gaps, or anything."""
    if isinstance(rng, PlainRandom):
        return TileLayout.from_iters(
            iters(rng, most, 4, (m, m, m, laneid), (*swizzling.POWERS, 3, 12)) or [(1, 1, m)]
        )
    kind = rng.randint(0, 3)
    if kind == 0:
        found = TileLayout(S[rng.choice((2, 4)), rng.choice((4, 8, most // 4))])
    elif kind == 1:
        found = compacts.with_gaps(rng.choice(compacts.compact(rng.choice((8, 12, 16, 24)))), rng)
    else:
        strides = swizzling.STRIDES if kind == 2 else swizzling.POWERS
        found = TileLayout.from_iters(iters(rng, most, 4, swizzling.AXES, strides))
    replica = iters(rng, 4, 2, swizzling.AXES, (0, 1, 2, 8, 64, -8)) if rng.random() < 0.3 else []
    offset = {
        m: found.offset.get(m, 0) + rng.choice((0, 0, 1, 4, 8, 64, 72, -8, 2**40)),
        laneid: rng.choice((0, 3)),
    }
    return TileLayout.from_iters(found.shard, replica, offset)


def swizzled(rng: Random, most: int = 48) -> SwizzledLayout:
    return SwizzledLayout(an_inner(rng, most), a_map(rng))


def preimages(x: SwizzledLayout) -> set[int]:
    return {dict(place).get("m", 0) for places in reference.function(x.layout) for place in places}


# --- the maps -------------------------------------------------------------------------------------------


@operation("Swizzle.compose")
def _map_compose(rng: Random) -> Instance:
    f, g = a_map(rng), a_map(rng)

    def check(found: Any) -> None:
        for x in (*range(64), *[rng.randint(-(2**70), 2**70) for _ in range(16)]):
            expected = swizzling.image(f, swizzling.image(g, x))
            assert found.apply(x) == swizzling.image(found, x) == expected

    return Instance(lambda: f.compose(g), check)


@operation("Swizzle.inverse")
def _map_inverse(rng: Random) -> Instance:
    f = a_map(rng)

    def check(found: Any) -> None:
        for x in (*range(64), *[rng.randint(-(2**70), 2**70) for _ in range(16)]):
            assert found.apply(swizzling.image(f, x)) == x

    return Instance(f.inverse, check)


# --- evaluation -----------------------------------------------------------------------------------------


@operation("swizzled apply, owners, table")
def _evaluate(rng: Random) -> Instance:
    x = swizzled(rng)
    shape = sampling.factors(rng, swizzling.size(x))

    def check(found: Any) -> None:
        applied, owners, table = found
        for i, coord in enumerate(reference.coordinates(shape)):
            first = swizzling.swizzled(x.swizzle, reference.place(reference.displacement(x.layout, i)))
            assert reference.place(applied[i]) == first
            assert reference.place({a: v[coord] for a, v in table.items()}) == first
            assert {reference.place(place) for place in owners[i]} == swizzling.owners(x, i)

    def ask() -> Any:
        coords = list(reference.coordinates(shape))
        applied = [x.apply(*c, shape=shape) for c in coords]
        return applied, [x.owners(*c, shape=shape) for c in coords], x.table(shape)

    return Instance(ask, check)


@operation("swizzled span")
def _span(rng: Random) -> Instance:
    x, axis = swizzled(rng), rng.choice((m, m, laneid, warpid))

    def check(found: Any) -> None:
        values = swizzling.values(x, str(axis))
        assert found == max(values) - min(values) + 1

    return Instance(lambda: x.span(axis), check, {"do": "span", "layout": x} if axis is m else None)


@operation("swizzled parse")
def _parse(rng: Random) -> Instance:
    x = swizzled(rng)

    def check(found: Any) -> None:
        assert found == x

    return Instance(lambda: SwizzledLayout.parse(rng.choice((str(x), repr(x)))), check)


# --- forms ----------------------------------------------------------------------------------------------


@operation("swizzled canonicalize")
def _canonicalize(rng: Random) -> Instance:
    x = swizzled(rng)

    def check(found: Any) -> None:
        assert swizzling.function(found) == swizzling.function(x)
        if type(found) is type(x.canonicalize()):  # somebody else's form is one of its own
            assert found.canonicalize() == x.canonicalize()

    return Instance(x.canonicalize, check, {"do": "canonicalize", "layout": x})


@operation("as_tile_layout")
def _as_tile_layout(rng: Random) -> Instance:
    x = swizzled(rng, 32)

    def check(found: Any) -> None:
        if refused(found):
            assert x.layout.replica or not swizzling.is_plain(x)
        else:
            assert swizzling.function(found) == swizzling.function(x)

    return Instance(x.as_tile_layout, check)


@operation("swizzled group")
def _group(rng: Random) -> Instance:
    x = swizzled(rng)
    shape = fitting(rng, x.layout)

    def check(found: Any) -> None:
        grouped, seps = found
        assert swizzling.function(grouped) == swizzling.function(x)
        runs = pairwise(seps)
        assert [prod(it.extent for it in grouped.layout.shard[b:e]) for b, e in runs] == shape

    return Instance(lambda: x.group(shape), check)


@operation("swizzled slice")
def _slice(rng: Random) -> Instance:
    x = swizzled(rng)
    shape = fitting(rng, x.layout) if rng.random() < 0.6 else sampling.factors(rng, swizzling.size(x))
    region = sampling.region(rng, shape)

    def check(found: Any) -> None:
        flats = reference.box(shape, region)
        if refused(found):
            axes = sorted({str(it.axis) for it in x.layout.shard})
            places = [reference.displacement(x.layout, i) for i in flats]
            assert not reference.greedy_is_layout([tuple(at.get(a, 0) for a in axes) for at in places])
        else:
            assert swizzling.function(found) == [swizzling.owners(x, i) for i in flats]

    return Instance(
        lambda: x.slice(shape, region), check, {"do": "slice", "layout": x, "shape": shape, "region": region}
    )


@operation("split_offset")
def _split_offset(rng: Random) -> Instance:
    x = swizzled(rng)

    def check(found: Any) -> None:
        start, rest = found
        assert start % (1 << x.swizzle.width) == 0
        assert swizzling.function(x) == [moved(places, 1, start) for places in swizzling.function(rest)]

    return Instance(x.split_offset, check)


def _is_whole_swizzled(
    inner: SwizzledLayout, outer: TileLayout, spans: dict[str, int], shapes: Any, expected: list[Any]
) -> bool:
    whole = swizzling.interleaved(outer, swizzling.function(inner.layout), spans, shapes)
    return [frozenset(swizzling.swizzled(inner.swizzle, p) for p in places) for places in whole] == expected


def _tiled(rng: Random, to: bool) -> Instance:
    """Refused only where this swizzle would mix the copies."""
    inner = swizzled(rng, 24)
    rank = rng.randint(1, 3)
    inner_shape = fitting(rng, inner.layout, rank)
    if to:
        outer_shape = [rng.choice((1, 1, 2, 3)) for _ in inner_shape]
        outer = TileLayout(S[tuple(outer_shape)])
    else:
        outer = TileLayout.from_iters(iters(rng, 6, 3, swizzling.AXES, (0, 1, 1, 2, 2, 4, -1, 3)))
        outer_shape = fitting(rng, outer, rank)
    shapes = tuple(outer_shape), tuple(inner_shape)

    def check(found: Any) -> None:
        spans = {}
        for axis in ("m", "laneid", "warpid"):
            values = swizzling.values(inner, axis)
            spans[axis] = max(values) - min(values) + 1
        expected = swizzling.interleaved(outer, swizzling.function(inner), spans, shapes)
        if refused(found):
            if not inner.layout.replica:  # one place each, taken back through the swizzle: no layout has them
                back = inner.swizzle.inverse()
                axes = ("m", "laneid", "warpid")
                before = [dict(swizzling.swizzled(back, place)) for (place,) in expected]
                assert not reference.greedy_is_layout([tuple(at.get(a, 0) for a in axes) for at in before])
            assert not _is_whole_swizzled(inner, outer, spans, shapes, expected)
        else:
            assert swizzling.function(found) == expected

    if to:
        target = [a * b for a, b in zip(*shapes, strict=True)]
        question = {"do": "tile_to", "layout": inner, "to_shape": target, "current_shape": inner_shape}
        return Instance(lambda: inner.tile_to(target, inner_shape), check, question)
    return Instance(lambda: inner.tile(outer, *shapes), check)


operation("swizzled tile")(lambda rng: _tiled(rng, False))
operation("swizzled tile_to")(lambda rng: _tiled(rng, True))


@operation("swizzled permute_dims")
def _permute(rng: Random) -> Instance:
    x = swizzled(rng)
    perm = rng.sample(range(len(x.layout.shard)), len(x.layout.shard))

    def check(found: Any) -> None:
        extents = [it.extent for it in x.layout.shard]
        for flat, coord in enumerate(reference.coordinates(extents)):
            there = reference.flatten([coord[p] for p in perm], [extents[p] for p in perm])
            assert swizzling.owners(found, there) == swizzling.owners(x, flat)

    return Instance(lambda: x.permute_dims(perm), check)


@operation("swizzled permute_by_groups")
def _permute_by_groups(rng: Random) -> Instance:
    x = swizzled(rng)
    shape = fitting(rng, x.layout)
    grouped, seps = x.group(shape)
    perm = rng.sample(range(len(shape)), len(shape))

    def check(found: Any) -> None:
        for flat, coord in enumerate(reference.coordinates(shape)):
            there = reference.flatten([coord[p] for p in perm], [shape[p] for p in perm])
            assert swizzling.owners(found, there) == swizzling.owners(x, flat)

    return Instance(lambda: grouped.permute_by_groups(seps, perm), check)


@operation("swizzled storage")
def _storage(rng: Random) -> Instance:
    x = swizzled(rng)

    def check(found: Any) -> None:
        extents = [it.extent if it.axis.kind == "memory" else 1 for it in x.layout.shard]
        assert swizzling.size(found) == prod(extents)
        for i, coord in enumerate(reference.coordinates(extents)):
            whole = reference.flatten(coord, [it.extent for it in x.layout.shard])
            memory = [only(place, ["m"]) for place in swizzling.owners(x, whole)]
            assert swizzling.owners(found, i) == set(memory)

    return Instance(x.storage, check)


@operation("swizzled pack")
def _pack(rng: Random) -> Instance:
    n = rng.choice((2, 3, 4, 8))
    x = swizzled(rng)
    if rng.random() < 0.5:  # most layouts can't be packed
        inner = an_inner(rng, 12).unpack(n)
        x = SwizzledLayout(inner, a_map(rng) if rng.random() < 0.3 else Swizzle(rng.randint(0, 2), 3, 3))

    def check(found: Any) -> None:
        function = swizzling.function(x)
        whole = len(function) % n == 0 and all(
            places == moved(function[i // n * n], 1, i % n) for i, places in enumerate(function)
        )
        whole = whole and all(dict(p).get("m", 0) % n == 0 for places in function[::n] for p in places)
        if refused(found):
            inner = compacts.attempt(lambda: x.layout.pack(n))
            assert not whole or n == 3 or refused(inner)
        else:
            assert whole
            assert [moved(places, n, 0) for places in swizzling.function(found)] == function[::n]

    return Instance(lambda: x.pack(n), check, {"do": "pack", "layout": x, "num": n})


@operation("swizzled unpack")
def _unpack(rng: Random) -> Instance:
    x, n = swizzled(rng, 24), rng.choice((1, 2, 3, 4, 8))

    def check(found: Any) -> None:
        if refused(found):
            assert n == 3
            assert any(v != swizzling.image(x.swizzle, v) for v in preimages(x))
        else:
            assert swizzling.function(found) == [
                moved(places, n, j) for places in swizzling.function(x) for j in range(n)
            ]

    return Instance(lambda: x.unpack(n), check, {"do": "unpack", "layout": x, "num": n})


# --- questions ------------------------------------------------------------------------------------------


@operation("swizzled equivalent")
def _equivalent(rng: Random) -> Instance:
    one = swizzled(rng, 32)
    kind = rng.randint(0, 4)
    other: Any = swizzled(rng, 32)
    if kind == 1:
        other = one.canonicalize()
    elif kind == 2:
        other = SwizzledLayout(one.layout, a_map(rng))
    elif kind > 2:
        other = one.group(fitting(rng, one.layout))[0]
        offset = dict(other.layout.offset)
        offset[m] = offset.get(m, 0) + rng.choice((0, 0, 1, 8, 512))
        other = SwizzledLayout(
            TileLayout.from_iters(other.layout.shard, other.layout.replica, offset), one.swizzle
        )

    def check(answer: Any) -> None:
        functions = [swizzling.function(x) for x in (one, other)]
        assert bool(answer) == (functions[0] == functions[1])
        if not answer:
            k = answer.witness
            assert k == min(map(len, functions)) or functions[0][k] != functions[1][k]

    return Instance(lambda: one.equivalent(other), check)


@operation("swizzled is_injective")
def _is_injective(rng: Random) -> Instance:
    x = swizzled(rng)

    def check(answer: Any) -> None:
        function = swizzling.function(x)
        held: dict[reference.Place, int] = {}
        yes = all(held.setdefault(place, i) == i for i, places in enumerate(function) for place in places)
        assert bool(answer) == yes
        if not answer:
            i, j = answer.witness
            assert i != j
            assert function[i] & function[j]

    return Instance(x.is_injective, check)


@operation("swizzled is_surjective, is_bijective")
def _is_surjective(rng: Random) -> Instance:
    x = swizzled(rng, 32)

    def check(answers: Any) -> None:
        surjective, bijective = answers
        function = swizzling.function(x)
        held = {place for places in function for place in places}
        axes = ("m", "laneid", "warpid")
        ends = {a: (min(vs := swizzling.values(x, a)), max(vs)) for a in axes}
        full = len(held) == prod(high - low + 1 for low, high in ends.values())
        assert bool(surjective) == full
        assert bool(bijective) == (full and len(held) == sum(map(len, function)))
        if not surjective:
            missing = reference.place(surjective.witness)
            assert missing not in held
            assert all(low <= dict(missing).get(a, 0) <= high for a, (low, high) in ends.items())

    return Instance(lambda: (x.is_surjective(), x.is_bijective()), check)
