"""Random instances of every public operation on tile layouts, each with the check that judges the answer.

An `Instance` is a question (`ask`), and a `check` that is given the answer or the `LayoutError` that refuses it.  The
check evaluates the post-condition by brute force over the whole domain, and where brute force can tell whether an
answer exists, it asks that nothing is refused that does.  `ten_thousand` puts the questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from math import prod
from random import Random
from typing import Any, NamedTuple

from property_tests import strategies
from property_tests.algebra import compacts, reference
from property_tests.algebra import test_group_many as many
from property_tests.algebra.test_direct_sum import check_sum
from property_tests.algebra.test_group import check_grouped
from property_tests.algebra.test_pack import can_be_packed, moved
from property_tests.algebra.test_permute import check_permuted
from property_tests.algebra.test_tile import check_tiled
from property_tests.oracles import sampling
from tilelayout import Iter, LayoutError, P, TileLayout, laneid, m, pid, warpid

AXES = (m, m, m, laneid, laneid, warpid, P, pid)
PLAIN_AXES = (m, laneid, warpid)
NEAR = (1, 1, 2, 2, 4, -1, 0, 8, 3)


class Instance(NamedTuple):
    """One question, and what judges the answer to it.

    `question` is the same as data, to be put to somebody else's implementation: the operation under ``"do"``, its
    operands under their names.  None where nobody else has it.
    """

    ask: Callable[[], Any]
    check: Callable[[Any], Any]
    question: dict[str, Any] | None = None


OPERATIONS: dict[str, Callable[[Random], Instance]] = {}


def operation(name: str) -> Callable[[Callable[[Random], Instance]], Callable[[Random], Instance]]:
    """Registers what draws the instances of an operation."""

    def register(draw: Callable[[Random], Instance]) -> Callable[[Random], Instance]:
        assert name not in OPERATIONS
        OPERATIONS[name] = draw
        return draw

    return register


class PlainRandom(Random):
    """Draws the layouts that every system has: positive strides on `m`, lanes and warps; no replica, no offset."""


def refused(found: Any) -> bool:
    return isinstance(found, LayoutError)


# --- what is drawn --------------------------------------------------------------------------------------


def iters(
    rng: Random, most: int, rank: int, axes: Sequence[Any], strides: Sequence[int]
) -> list[tuple[int, int, Any]]:
    """Outermost first; every third counts on through the wrap of the one within it."""
    found: list[tuple[int, int, Any]] = []
    for _ in range(rng.randint(0, rank)):
        extent = rng.choice([e for e in strategies.EXTENTS if e <= most])
        most //= extent
        if found and rng.random() < 0.33:
            inner, stride, axis = found[-1]
            found.append((extent, inner * stride, axis))
        else:
            found.append((extent, rng.choice(strides), rng.choice(axes)))
    return found[::-1]


def layout(rng: Random, most: int = 36, axes: Sequence[Any] = AXES, replicated: bool = True) -> TileLayout:
    """Of any kind: strides near to each other, or anything up to 10**30; replicas, offsets, unit extents."""
    if isinstance(rng, PlainRandom):
        plain = iters(rng, most, 5, [a for a in axes if a in PLAIN_AXES], strategies.PLAIN_STRIDES)
        return TileLayout.from_iters(plain or [(1, 1, m)])
    strides = NEAR if rng.random() < 0.5 else strategies.STRIDES
    shard = iters(rng, most, 5, axes, strides)
    replica = iters(rng, 6, 2, axes, NEAR) if replicated and rng.random() < 0.4 else []
    offset = {rng.choice(axes): rng.choice((1, 5, -3, 64, 2**31, -(2**63))) for _ in range(rng.randint(0, 2))}
    return TileLayout.from_iters(shard, replica, offset)


def on_memory(rng: Random, most: int) -> TileLayout:
    """On `m` alone and without a replica, as functions between integers are: any strides, half of them nesting."""
    return compacts.anything(rng, most)


def fitting(rng: Random, found: TileLayout, rank: int | None = None) -> list[int]:
    """A shape that the iters can be grouped to, of that rank if one is asked for."""
    shape = sampling.fitting_shape(rng, found)
    while rank is not None and len(shape) > rank:
        last = shape.pop()
        shape[-1] *= last
    while len(shape) < (1 if rank is None else rank):
        shape.insert(rng.randint(0, len(shape)), 1)
    return shape


def some_shape(rng: Random, found: TileLayout) -> list[int]:
    return fitting(rng, found) if rng.random() < 0.6 else sampling.factors(rng, reference.size(found))


def vectors(found: TileLayout, flats: Sequence[int]) -> list[reference.Vector]:
    """The coordinates of these elements on every axis that moves, the replica left out."""
    axes = sorted({str(it.axis) for it in found.shard})
    places = [reference.displacement(found, flat) for flat in flats]
    return [tuple(at.get(axis, 0) for axis in axes) for at in places]


# --- evaluation -----------------------------------------------------------------------------------------


@operation("apply")
def _apply(rng: Random) -> Instance:
    x = layout(rng)
    shape = sampling.factors(rng, reference.size(x))

    def check(found: Any) -> None:
        places = [reference.place(reference.displacement(x, i)) for i in range(reference.size(x))]
        assert [reference.place(at) for at in found] == places * 2

    return Instance(
        lambda: (
            [x.apply(*c, shape=shape) for c in reference.coordinates(shape)]
            + [x.apply(i) for i in range(reference.size(x))]
        ),
        check,
    )


@operation("owners")
def _owners(rng: Random) -> Instance:
    x = layout(rng)
    shape = sampling.factors(rng, reference.size(x))

    def check(found: Any) -> None:
        assert [{reference.place(at) for at in places} for places in found] == reference.function(x)
        assert all(len(places) == len({reference.place(at) for at in places}) for places in found)

    return Instance(lambda: [x.owners(*c, shape=shape) for c in reference.coordinates(shape)], check)


@operation("table")
def _table(rng: Random) -> Instance:
    x = layout(rng)
    shape = sampling.factors(rng, reference.size(x))

    def check(found: Any) -> None:
        for i, coord in enumerate(reference.coordinates(shape)):
            at = {axis: int(values[coord]) for axis, values in found.items()}
            assert reference.place(at) == reference.place(reference.displacement(x, i))

    return Instance(lambda: x.table(shape), check, {"do": "table", "layout": x, "shape": shape})


@operation("span")
def _span(rng: Random) -> Instance:
    x, axis = layout(rng), str(rng.choice(AXES))

    def check(found: Any) -> None:
        values = [dict(place).get(axis, 0) for places in reference.function(x) for place in places]
        assert found == max(values) - min(values) + 1

    return Instance(lambda: x.span(axis), check, {"do": "span", "layout": x, "axis": axis})


@operation("parse")
def _parse(rng: Random) -> Instance:
    x = layout(rng)

    def check(found: Any) -> None:
        assert found == x
        assert hash(found) == hash(x)

    return Instance(lambda: TileLayout.parse(rng.choice((str(x), repr(x)))), check)


# --- forms ----------------------------------------------------------------------------------------------


@operation("canonicalize")
def _canonicalize(rng: Random) -> Instance:
    x = layout(rng)

    def check(found: Any) -> None:
        assert reference.function(found) == reference.function(x)
        assert found.canonicalize() == x.canonicalize()

    return Instance(x.canonicalize, check, {"do": "canonicalize", "layout": x})


@operation("group")
def _group(rng: Random) -> Instance:
    x = layout(rng)
    shape = tuple(some_shape(rng, x))

    def check(found: Any) -> None:
        if refused(found):
            assert not reference.is_grouped(vectors(x, range(reference.size(x))), shape)
        else:
            check_grouped(x, shape, found)

    return Instance(lambda: x.group(shape), check, {"do": "group", "layout": x, "shape": shape})


@operation("group_many")
def _group_many(rng: Random) -> Instance:
    x = layout(rng)
    shapes = [tuple(some_shape(rng, x)) for _ in range(rng.randint(1, 3))]

    def check(found: Any) -> None:
        if refused(found):
            dims = many.refined(shapes)
            assert dims is None or not reference.is_grouped(vectors(x, range(reference.size(x))), dims)
        else:
            many.check(x, shapes, found)

    return Instance(lambda: x.group_many(shapes), check, {"do": "group_many", "layout": x, "shapes": shapes})


@operation("slice")
def _slice(rng: Random) -> Instance:
    x = layout(rng, 60)
    shape = some_shape(rng, x)
    region: list[tuple[int, ...]] = list(sampling.region(rng, shape))
    stepped = rng.random() < 0.3
    if stepped:
        region = [(b, e, rng.randint(1, e - b + 1)) for b, e in region]

    def check(found: Any) -> None:
        flats = [reference.flatten(c, shape) for c in product(*[range(*r) for r in region])]
        if refused(found):
            assert not reference.greedy_is_layout(vectors(x, flats))
        else:
            assert reference.function(found) == [reference.owners(x, i) for i in flats]

    question = {"do": "slice", "layout": x, "shape": shape, "region": region}
    return Instance(lambda: x.slice(shape, region), check, None if stepped else question)


@operation("permute_dims")
def _permute_dims(rng: Random) -> Instance:
    x = layout(rng)
    perm = rng.sample(range(len(x.shard)), len(x.shard))
    return Instance(
        lambda: x.permute_dims(perm),
        lambda y: check_permuted(x, [it.extent for it in x.shard], perm, y),
        {"do": "permute_dims", "layout": x, "perm": perm},
    )


@operation("permute_by_groups")
def _permute_by_groups(rng: Random) -> Instance:
    x = layout(rng)
    seps = [0, *sorted(rng.choices(range(len(x.shard) + 1), k=rng.randint(0, 3))), len(x.shard)]
    shape = [prod(it.extent for it in x.shard[b:e]) for b, e in pairwise(seps)]
    perm = rng.sample(range(len(shape)), len(shape))
    return Instance(
        lambda: x.permute_by_groups(seps, perm),
        lambda y: check_permuted(x, shape, perm, y),
        {"do": "permute_by_groups", "layout": x, "seps": seps, "perm": perm},
    )


@operation("pack")
def _pack(rng: Random) -> Instance:
    x, n = layout(rng), rng.choice((1, 2, 3, 4, 8))
    if rng.random() < 0.5:  # most layouts can't be packed
        x = TileLayout.from_iters(
            [*[(it.extent, it.stride * n, it.axis) for it in x.shard], (n * rng.randint(1, 3), 1, m)],
            [(it.extent, it.stride * n, it.axis) for it in x.replica],
            {axis: v * n for axis, v in x.offset.items()},
        )

    def check(found: Any) -> None:
        assert refused(found) != can_be_packed(x, n)
        if not refused(found):
            heads = reference.function(x)[::n]
            assert [moved(places, n, 0) for places in reference.function(found)] == heads

    return Instance(lambda: x.pack(n), check, {"do": "pack", "layout": x, "num": n})


@operation("unpack")
def _unpack(rng: Random) -> Instance:
    x, n = layout(rng, 16), rng.choice((1, 2, 3, 4, 8))

    def check(found: Any) -> None:
        expected = [moved(places, n, j) for places in reference.function(x) for j in range(n)]
        assert reference.function(found) == expected

    return Instance(lambda: x.unpack(n), check, {"do": "unpack", "layout": x, "num": n})


# --- put together and taken apart -----------------------------------------------------------------------


def _two(rng: Random) -> tuple[TileLayout, TileLayout, list[int], list[int]]:
    one, other = layout(rng, 8), layout(rng, 6)
    rank = rng.randint(1, 3)
    return one, other, fitting(rng, one, rank), fitting(rng, other, rank)


@operation("tile")
def _tile(rng: Random) -> Instance:
    inner, outer, inner_shape, outer_shape = _two(rng)
    return Instance(
        lambda: inner.tile(outer, outer_shape, inner_shape),
        lambda y: check_tiled(inner, outer, tuple(outer_shape), tuple(inner_shape), y),
        {
            "do": "tile",
            "layout": inner,
            "outer": outer,
            "outer_shape": outer_shape,
            "inner_shape": inner_shape,
        },
    )


@operation("tile_to")
def _tile_to(rng: Random) -> Instance:
    x = layout(rng, 12)
    shape = fitting(rng, x, rng.randint(1, 3))
    counts = [rng.choice((1, 1, 2, 3)) for _ in shape]
    to = [n * k + (rng.random() < 0.1) for n, k in zip(shape, counts, strict=True)]

    def check(found: Any) -> None:
        if refused(found):
            assert any(n % k for n, k in zip(to, shape, strict=True))
        else:
            assert not any(n % k for n, k in zip(to, shape, strict=True))
            actual = [n // k for n, k in zip(to, shape, strict=True)]
            strides = compacts.row_major(actual)
            outer = TileLayout.from_iters([Iter(n, s) for n, s in zip(actual, strides, strict=True)])
            check_tiled(x, outer, tuple(actual), tuple(shape), found)

    question = {"do": "tile_to", "layout": x, "to_shape": to, "current_shape": shape}
    return Instance(lambda: x.tile_to(to, shape), check, question)


@operation("direct_sum")
def _direct_sum(rng: Random) -> Instance:
    left, right, left_shape, right_shape = _two(rng)
    return Instance(
        lambda: right.direct_sum(left, left_shape, right_shape),
        lambda y: check_sum(left, right, tuple(left_shape), tuple(right_shape), y),
        {
            "do": "direct_sum",
            "layout": right,
            "left": left,
            "left_shape": left_shape,
            "right_shape": right_shape,
        },
    )


def _recover(rng: Random, name: str) -> Instance:
    """The part of a whole that was made of it, or of another; what is recovered makes the whole again."""
    left, right, left_shape, right_shape = _two(rng)
    tiled = name in ("recover_outer", "recover_inner")

    def make(one: TileLayout, other: TileLayout) -> TileLayout:
        join = other.tile if tiled else other.direct_sum
        return join(one, left_shape, right_shape)

    whole = make(left, right)
    if rng.random() < 0.3:
        whole = whole.canonicalize()
    keeps_left = name in ("recover_inner", "recover_right")
    part = left if keeps_left else right
    changed = rng.random() < 0.3 and bool(part.shard)
    if changed:
        it = part.shard[-1]
        last = (it.extent, it.stride + rng.choice((1, 2)), it.axis)
        part = TileLayout.from_iters([*part.shard[:-1], last], part.replica, part.offset)
    shape = [a * b for a, b in zip(left_shape, right_shape, strict=True)]

    def check(found: Any) -> None:
        if refused(found):
            assert changed, "the other part exists: the whole was made of it"
        else:
            again = make(part, found) if keeps_left else make(found, part)
            assert reference.function(again) == reference.function(whole)

    known = left_shape if keeps_left else right_shape
    between = shape if tiled else [n for pair in zip(left_shape, right_shape, strict=True) for n in pair]
    question = {"do": name, "layout": part, "whole": whole, "shape": between, "part_shape": known}
    return Instance(lambda: getattr(part, name)(whole, shape, known), check, question)


for _name in ("recover_outer", "recover_inner", "recover_left", "recover_right"):
    operation(_name)(lambda rng, name=_name: _recover(rng, name))
