"""`instances` of layouts as functions: compose, invert, complement, divide, multiply."""

from __future__ import annotations

from math import prod
from random import Random
from typing import Any

from property_tests.algebra import compacts, reference
from property_tests.algebra import test_compose as composing
from property_tests.algebra import test_divide as dividing
from property_tests.algebra import test_inverse as inverting
from property_tests.algebra import test_left_inverse as reading
from property_tests.algebra.filling import filling, free
from property_tests.algebra.instances import Instance, on_memory, operation, refused, vectors
from tilelayout import laneid, m


@operation("compose")
def _compose(rng: Random) -> Instance:
    a = compacts.anything(rng, rng.choice((24, 48)), rng.choice(((m,), (m, laneid))), rng.random() < 0.3)
    b = composing.into(reference.size(a), rng)

    def check(found: Any) -> None:
        indices = compacts.places(b)
        if not refused(found):
            assert reference.function(found) == [reference.owners(a, i) for i in indices]
        elif 0 <= min(indices) and max(indices) < reference.size(a):
            assert not reference.greedy_is_layout(vectors(a, indices))

    return Instance(lambda: a.compose(b), check)


@operation("inverse")
def _inverse(rng: Random) -> Instance:
    x = on_memory(rng, 24)
    if rng.random() < 0.4:
        x = rng.choice(compacts.compact(rng.randint(1, 24)))

    def check(found: Any) -> None:
        places = compacts.places(x)
        if refused(found):
            assert sorted(places) != list(range(len(places)))
        else:
            back = compacts.places(found)
            assert [back[p] for p in places] == [places[i] for i in back] == list(range(len(places)))

    return Instance(x.inverse, check)


@operation("right_inverse")
def _right_inverse(rng: Random) -> Instance:
    while True:
        x = on_memory(rng, 16)
        places = compacts.places(x)
        if inverting.choices(places) <= 300:
            break

    def check(found: Any) -> None:
        if refused(found):
            assert 0 not in places
        else:
            read = compacts.places(found)
            assert [places[i] for i in read] == list(range(len(read)))
            assert len(read) == inverting.largest(places)

    return Instance(x.right_inverse, check)


@operation("left_inverse")
def _left_inverse(rng: Random) -> Instance:
    while True:
        x = on_memory(rng, 12)
        places = compacts.places(x)
        if max(places) <= 60:
            break

    def check(found: Any) -> None:
        possible = min(places) >= 0 and len(set(places)) == len(places)
        if refused(found):
            assert not possible or not reading.exists(places)
        else:
            read = compacts.places(found)
            assert len(read) > max(places)
            assert [read[p] for p in places] == list(range(len(places)))

    return Instance(x.left_inverse, check)


@operation("complement")
def _complement(rng: Random) -> Instance:
    x = on_memory(rng, 12)
    places = compacts.places(x)
    cosize = rng.choice((1, 2, 3)) * (max(places) - min(places) + 1) + rng.choice((0, 0, 1, 2, 3))

    def check(found: Any) -> None:
        expected = filling(places, cosize)
        assert (None if refused(found) else compacts.places(found)) == expected

    return Instance(lambda: x.complement(cosize), check)


def _divide(rng: Random, kind: str) -> Instance:
    a = compacts.anything(rng, 36, rng.choice(((m,), (m, laneid))), rng.random() < 0.2)
    shape = tuple(compacts.factors(reference.size(a), rng)) or (1,)
    tilers = tuple([rng.choice(dividing.tilers_of(n, rng, 2)) for n in shape])

    def check(found: Any) -> None:
        split = dividing.expected(a, shape, tilers)
        if split is None:
            assert refused(found)
            return
        flats, sizes = dividing.elements(split, shape, kind)
        if refused(found):
            tiles_alike = reference.is_grouped(vectors(a, flats), sizes)
            assert not (tiles_alike and reference.is_grouped(vectors(a, range(reference.size(a))), shape))
        else:
            assert found.shape == dividing.shape_of(sizes, kind)
            assert reference.function(found.layout) == [reference.owners(a, i) for i in flats]

    return Instance(lambda: getattr(a, kind)(tilers, shape), check)


for _kind in dividing.DIVIDES:
    operation(_kind)(lambda rng, kind=_kind: _divide(rng, kind))


@operation("logical_product")
def _logical_product(rng: Random) -> Instance:
    a, b = on_memory(rng, 12), on_memory(rng, 8)

    def check(found: Any) -> None:
        places, numbers = compacts.places(a), compacts.places(b)
        offsets: list[int] | None = [0]
        if any(numbers):
            possible = min(numbers) >= 0 and len(set(places)) == len(places)
            offsets = free(places, max(numbers) + 1) if possible else None
        if refused(found):
            assert offsets is None or not reference.greedy_is_layout([(offsets[j],) for j in numbers])
        else:
            assert offsets is not None
            assert found.shape == (len(numbers), len(places))
            assert compacts.places(found.layout) == [offsets[j] + p for j in numbers for p in places]

    return Instance(lambda: a.logical_product(b), check)


def _product_by_dimension(rng: Random, name: str) -> Instance:
    """In each dimension element x of copy y is at ``y * n + x`` if blocked, at ``x * k + y`` if raked."""
    shapes = [tuple([rng.randint(1, 4) for _ in range(2)]) for _ in range(2)]
    a, b = (compacts.with_gaps(rng.choice(compacts.compact(prod(s))), rng) for s in shapes)

    def check(found: Any) -> None:
        places, numbers = compacts.places(a), compacts.places(b)
        offsets = free(places, max(numbers) + 1)
        assert offsets is not None
        a_shape, b_shape = shapes
        expected: dict[tuple[int, ...], int] = {}
        for y in reference.coordinates(b_shape):
            for x in reference.coordinates(a_shape):
                pairs = zip(x, y, a_shape, b_shape, strict=True)
                index = [xd * k + yd if name == "raked_product" else yd * n + xd for xd, yd, n, k in pairs]
                copy = offsets[numbers[reference.flatten(y, b_shape)]]
                expected[tuple(index)] = copy + places[reference.flatten(x, a_shape)]
        shape = [n * k for n, k in zip(a_shape, b_shape, strict=True)]
        values = [expected[c] for c in reference.coordinates(shape)]
        if refused(found):
            assert not reference.is_grouped([(v,) for v in values], shape)
        else:
            assert found.shape == tuple(shape)
            assert compacts.places(found.layout) == values

    return Instance(lambda: getattr(a, name)(b, *shapes), check)


for _kind in ("blocked_product", "raked_product"):
    operation(_kind)(lambda rng, kind=_kind: _product_by_dimension(rng, kind))
