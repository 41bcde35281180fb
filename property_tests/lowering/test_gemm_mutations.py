"""Never a wrong layout: a gemm whose layouts were changed at random is declined, or computes the product.

The reference machine places the operands by the layouts and multiplies by the PTX operand map, so whatever
`lower` accepts although it does not fit comes out as wrong numbers.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowering import DispatchError, GemmCall, Tile, gemm, lower
from lowering.backends import reference
from tilelayout import Iter, TileLayout

from ..gemm_cases import one_warp, several_warps
from .gemm_answers import answer, arrays_of, run

STRIDES = (-8, -4, -2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 32)
AXES = ("m", "laneid", "warpid", "wid_in_wg", "bx")

Parts = tuple[list[Iter], list[Iter], dict[str, int]]


def base_calls() -> list[tuple[GemmCall, str, int | None]]:
    """What is mutated: tilings and orientations in a warp, splits over warps."""
    out: list[tuple[GemmCall, str, int | None]] = [
        (one_warp(tiling, "float16", 1.0, in_place=False), "warp", None)
        for tiling in ((1, 1, 1, 16), (1, 1, 1, 8), (2, 2, 2, 16), (2, 1, 3, 8), (1, 2, 1, 16))
    ]
    out.append((one_warp((2, 1, 2, 16), "float16", transpose_a=True, transpose_b=True), "warp", None))
    out += [
        (several_warps("float16", s, m, n), s, 32 * m * n) for s, m, n in (("cta", 2, 2), ("warpgroup", 4, 1))
    ]
    return out


BASES = base_calls()


def verdict(call: GemmCall, scope: str, launch: int | None) -> str:
    """Accepted or declined; an accepted one gives the right numbers, as a register program and as a kernel."""
    try:
        lowered = lower(call, target="sm_80", scope=scope, launch=launch)
    except DispatchError as error:
        if "unexpected" in str(error):  # a variant declines, it does not stumble
            raise
        return "declined"
    arrays = arrays_of(call, np.random.default_rng(0))
    found = run(lowered, arrays)
    wanted = answer(call, arrays)
    assert np.array_equal(found, wanted), f"wrong numbers from {call} with layouts\n" + "\n".join(
        f"{role}: {tile}" for role, tile in call.tiles.items()
    )
    roles = {b.role for b in lowered.kernel.program.buffers}
    stored = reference.run_kernel(lowered.kernel.program, {r: x for r, x in arrays.items() if r in roles})
    assert np.array_equal(stored, found)
    return "accepted"


def rebuilt(call: GemmCall, layouts: dict[str, TileLayout]) -> GemmCall:
    """The call with some operands' layouts replaced; operands that shared a tile still do if their layouts agree."""
    tiles: dict[str, Tile] = {}
    for role, region in call.operands():
        old = region.tile
        tiles[role] = Tile(
            role if role in layouts else old.name, old.shape, old.dtype, layouts.get(role, old.layout)
        )
    if call.C.tile == call.D.tile and "D" in layouts and "C" not in layouts:
        tiles["C"] = tiles["D"]
    bounds = dict(call.operands())
    regions = {role: tile[tuple(slice(*b) for b in bounds[role].bounds)] for role, tile in tiles.items()}
    return gemm(**regions, transpose_a=call.transpose_a, transpose_b=call.transpose_b, beta=call.beta)


# --- every single change ------------------------------------------------------------------------


def single_changes(layout: TileLayout) -> Iterator[TileLayout]:
    """One stride, axis, offset or replica changed, or two iters exchanged."""
    shard, replica, offset = list(layout.shard), list(layout.replica), dict(layout.offset)
    for i, it in enumerate(shard):
        for stride, axis in itertools.product(STRIDES, AXES[:3]):
            yield TileLayout.from_iters(
                [*shard[:i], Iter(it.extent, stride, axis), *shard[i + 1 :]], replica, offset
            )
    for axis in AXES:
        for value in (-1, 1, 2, 3, 4, 16):
            yield TileLayout.from_iters(shard, replica, {**offset, axis: offset.get(axis, 0) + value})
        for extent, stride in itertools.product((1, 2, 4), (0, 1, 2, 8, 32)):
            yield TileLayout.from_iters(shard, [*replica, Iter(extent, stride, axis)], offset)
    for i, j in itertools.combinations(range(len(shard)), 2):
        places = list(shard)
        places[i], places[j] = places[j], places[i]
        yield TileLayout.from_iters(places, replica, offset)
        if shard[i].extent == shard[j].extent:
            continue
        extents = list(shard)
        extents[i], extents[j] = Iter(shard[j][0], *shard[i][1:]), Iter(shard[i][0], *shard[j][1:])
        yield TileLayout.from_iters(extents, replica, offset)


@pytest.mark.parametrize("role", "DABC")
@pytest.mark.parametrize(
    "base", [0, 1, pytest.param(2, marks=pytest.mark.slow), pytest.param(6, marks=pytest.mark.slow)]
)
def test_every_single_change_of_one_operand(base: int, role: str) -> None:
    call, scope, launch = BASES[base]
    counts = Counter(
        verdict(rebuilt(call, {role: layout}), scope, launch)
        for layout in single_changes(call.tiles[role].layout)
    )
    # Some strides are free and some registers may move: it must not decline everything, nor accept it.
    assert counts["accepted"] >= 10
    assert counts["declined"] >= 200


# --- random changes -----------------------------------------------------------------------------


def mutate(parts: Parts, rng: random.Random) -> str:
    """One change in place; says which kind."""
    shard, replica, offset = parts
    i = rng.randrange(len(shard))
    kind = rng.choice(
        [
            "stride",
            "axis",
            "place",
            "offset",
            "replica",
            "order",
            "extents",
            "split",
            "unit",
            "swap",
            "scale",
            "spread",
            "drop",
        ]
    )
    e, s, a = shard[i]
    if kind == "stride":
        shard[i] = Iter(e, rng.choice(STRIDES), a)
    elif kind == "axis":
        shard[i] = Iter(e, s, rng.choice(AXES))
    elif kind == "place":
        shard[i] = Iter(e, rng.choice(STRIDES), rng.choice(AXES[:3]))
    elif kind == "offset":
        axis = rng.choice(AXES[:3])
        offset[axis] = offset.get(axis, 0) + rng.choice((-2, -1, 1, 2, 3, 4, 16))
    elif kind == "replica":
        replica.append(Iter(rng.choice((1, 2, 4)), rng.choice((0, 1, 2, 4, 8, 32)), rng.choice(AXES[:3])))
    elif kind == "drop" and replica:
        replica.pop(rng.randrange(len(replica)))
    elif kind == "order":
        j = rng.randrange(len(shard))
        shard[i], shard[j] = shard[j], shard[i]
    elif kind in ("extents", "swap"):
        j = rng.randrange(len(shard))
        first, second = shard[i], shard[j]
        if kind == "extents":
            shard[i], shard[j] = Iter(second[0], *first[1:]), Iter(first[0], *second[1:])
        elif first[0] == second[0]:
            shard[i], shard[j] = second, first
    elif kind == "split" and e % 2 == 0:
        shard[i : i + 1] = [Iter(2, s * e // 2, a), Iter(e // 2, s, a)]
    elif kind == "unit":
        shard.insert(i, Iter(1, rng.choice(STRIDES), rng.choice(AXES)))
    elif kind == "scale":  # registers in larger steps: the words stay whole
        shard[:] = [Iter(x, y * 2 if b == "m" and y != 1 else y, b) for x, y, b in shard]
    elif kind == "spread":
        shard[i] = Iter(e, s + rng.choice((32, 64)), a)
    return kind


def mutated(call: GemmCall, seed: int) -> GemmCall:
    """One to three changes, each of one operand or of several alike."""
    rng = random.Random(seed)
    parts: dict[str, Parts] = {
        role: (list(t.layout.shard), list(t.layout.replica), {str(a): v for a, v in t.layout.offset.items()})
        for role, t in call.tiles.items()
    }
    touched: set[str] = set()
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        roles = rng.choice(["D", "A", "B", "C", "DC", "DAC", "DBC", "AB", "DABC"])
        again = rng.randrange(2**32)
        for role in roles:
            mutate(parts[role], random.Random(again))
            touched.add(role)
    return rebuilt(call, {role: TileLayout.from_iters(*parts[role]) for role in sorted(touched)})


@given(st.integers(0, len(BASES) - 1), st.integers(0, 2**32 - 1))
@settings(max_examples=settings().max_examples * 10)
def test_random_changes_are_declined_or_right(base: int, seed: int) -> None:
    call, scope, launch = BASES[base]
    verdict(mutated(call, seed), scope, launch)


def test_random_changes_are_of_both_kinds() -> None:
    counts = Counter(
        verdict(mutated(BASES[seed % len(BASES)][0], seed), *BASES[seed % len(BASES)][1:])
        for seed in range(800)
    )
    assert counts["accepted"] >= 60
    assert counts["declined"] >= 400


# --- regions ------------------------------------------------------------------------------------


@st.composite
def regions_of_stacks(draw: st.DrawFn) -> GemmCall:
    """Regions of tiles that hold several fragments, stacked in registers, lanes, warps or nothing, with offsets."""
    base, _, _ = BASES[draw(st.integers(0, 1))]
    tiles = base.tiles
    operands = {}
    for role, tile in tiles.items():
        count = draw(st.sampled_from((1, 1, 2, 3)))
        if count == 1:
            operands[role] = tile
            continue
        span = tile.layout.span("m")
        stride = draw(st.sampled_from((span, span, span, span + 2, span // 2, 2 * span, 0, 1, -span, 32)))
        axis = draw(st.sampled_from(("m", "m", "m", "m", "laneid", "warpid")))
        low = draw(st.sampled_from((0, 0, 2, 1))) + (span * (count - 1) if stride < 0 else 0)
        layout = TileLayout.from_iters([Iter(count, stride, axis), *tile.layout.shard], (), {"m": low})
        stack = Tile(role, (count * tile.shape[0], tile.shape[1]), tile.dtype, layout)
        step = draw(st.sampled_from((tile.shape[0], tile.shape[0], 8)))
        begin = draw(st.integers(0, (stack.shape[0] - tile.shape[0]) // step)) * step
        operands[role] = stack[begin : begin + tile.shape[0]]
    if draw(st.booleans()):
        operands["C"] = operands["D"]
    return gemm(**operands, beta=draw(st.sampled_from((0.0, 1.0))))


@given(regions_of_stacks())
@settings(max_examples=settings().max_examples * 4)
def test_regions_of_stacks_are_declined_or_right(call: GemmCall) -> None:
    verdict(call, "warp", None)
