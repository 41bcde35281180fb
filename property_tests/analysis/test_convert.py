"""Conversion plans: each is executed on a register file and leaves exactly what the target layout says."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests.analysis.memory_tiles import phases, rounds
from property_tests.analysis.register_file import GAP, execute, register_file
from tilelayout import Iter, LayoutError, R, S, TileLayout, bx, laneid, tid_in_wg, tx, warpid, wgid, wid_in_wg
from tilelayout.analysis import ConversionPlan, conversion_plan

D = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
"""D of m16n8, (M, N) = (16, 8)."""
A = D.tile_to((16, 16), (16, 8))
"""A of m16n8k16, (M, K) = (16, 16)."""
B = TileLayout(S[(4, 2, 8) : (1 @ laneid, 1, 4 @ laneid)]).tile_to((16, 8), (8, 8))
"""B of m16n8k16, (K, N) = (16, 8)."""


def transposed(layout: TileLayout, shape: tuple[int, int]) -> TileLayout:
    """The layout of the transpose, as a function of the flat index of the original."""
    grouped, seps = layout.group(shape)
    return grouped.permute_by_groups(seps, (1, 0))


def check(source: TileLayout, target: TileLayout, bits: int = 32, **options: object) -> ConversionPlan:
    plan = conversion_plan(source, target, bits, **options)  # type: ignore[arg-type]
    before = register_file(source, plan.threads, plan.source_units * plan.pack)
    values = np.random.default_rng(0).permutation(source.size())
    after = execute(plan, np.where(before == GAP, GAP, values[before]))
    wanted = register_file(target, plan.threads, plan.target_units * plan.pack)
    assert (after[wanted != GAP] == values[wanted[wanted != GAP]]).all()
    count(plan)
    return plan


def count(plan: ConversionPlan) -> None:
    """The cost once more, from the steps."""
    words = max(1, plan.bits * plan.pack // 32)
    cost = plan.cost
    sources = [{pick for pick in picks if pick is not None} for picks in plan.results]
    ups = [{slot for slot in shuffle.publish if slot is not None} for shuffle in plan.shuffles]
    assert cost.selects == words * sum(max(0, len(x) - 1) for x in [*sources, *ups])
    whole = plan.bits * plan.pack >= 32
    changed = [k for k, x in enumerate(sources) if x and x != {("register", k)}]
    copied = [k for k in changed if len(sources[k]) == 1 and min(sources[k]).source == "register"]
    assert cost.moves == words * whole * len(copied)
    each = max(1, 32 // (plan.bits * plan.pack))
    used = Counter(k // each for k, x in enumerate(sources) if x)
    assert cost.joins == (
        0 if whole else sum(max(1, used[word] - 1) for word in {k // each for k in changed})
    )
    assert cost.shuffles == words * len(plan.shuffles)
    assert (cost.stores, cost.loads) == (len(plan.stores), len(plan.loads))
    unit = max(1, plan.bits * plan.pack // 8)
    traffic = [
        [None if a is None else (a * unit, unit) for a in step.addresses]
        for step in (*plan.stores, *plan.loads)
    ]
    assert cost.shared_bytes == unit * sum(access is not None for step in traffic for access in step)
    waves = [
        rounds([step[t] for t in lanes if step[t]])
        for step in traffic
        for lanes in phases(plan.threads, unit)
    ]
    assert cost.wavefronts == sum(waves)
    assert cost.barriers == bool(plan.stores)
    assert (
        cost.instructions
        == cost.moves + cost.selects + cost.joins + cost.shuffles + cost.stores + cost.loads + cost.barriers
    )
    assert (plan.kind == "shared") == bool(plan.stores) == bool(plan.loads)
    assert (plan.kind == "shuffle") == bool(plan.shuffles)
    assert (plan.kind == "nothing") == (cost.instructions == 0)


# --- fragments ----------------------------------------------------------------------------------


def test_d_of_one_gemm_is_a_of_the_next() -> None:
    """Two D fragments side by side, (16, 16), are an A fragment with K = 16: nothing moves."""
    two_d = D.tile_to((16, 16), (16, 8))
    assert check(two_d, A, 16).kind == "nothing"
    assert str(conversion_plan(two_d, A, 16)) == "nothing to do, registers of 2 x 16 bits: free"


def test_d_to_a_with_another_order_of_registers() -> None:
    other = TileLayout(S[(2, 8, 2, 4, 2) : (4, 4 @ laneid, 2, 1 @ laneid, 1)])
    plan = check(A, other, 16)
    assert (plan.kind, plan.pack, plan.cost.moves, plan.cost.instructions) == ("move", 2, 2, 2)
    assert str(plan).splitlines()[1:] == ["  t1 = r2", "  t2 = r1"]


def test_d_transposed_is_shuffled_within_the_warp() -> None:
    wide = TileLayout(S[(8, 2, 4, 2) : (4 @ laneid, 2, 1 @ laneid, 1)])  # (8, 16)
    plan = check(D, transposed(wide, (8, 16)), 16)
    assert (plan.kind, plan.pack) == ("shuffle", 1)  # neighbors part
    square = TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)])
    plan = check(square, transposed(square, (8, 8)), 32)
    assert (plan.kind, plan.cost.shuffles) == ("shuffle", 2)  # no fewer: a lane keeps at most one of its two


def test_d_to_b_of_the_next_gemm() -> None:
    """D (M, N) = (16, 8) as B (K, N) = (16, 8): eight elements of a column go from eight lanes to four."""
    for bits in (16, 32):
        assert check(D, B, bits).kind == "shuffle"
        assert check(D, B, bits, via="shared").kind == "shared"


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_across_warps_goes_through_shared_memory(bits: int) -> None:
    by_rows = TileLayout(S[(2, 16, 4, 2) : (1 @ warpid, 2 @ laneid, 1, 1 @ laneid)])
    by_columns = TileLayout(S[(32, 2, 4) : (1 @ laneid, 1 @ warpid, 1)])
    plan = check(by_rows, by_columns, bits)
    assert plan.kind == "shared"
    assert plan.cost.barriers == 1
    with pytest.raises(LayoutError, match="in another warp, and a shuffle stays in one"):
        conversion_plan(by_rows, by_columns, bits, via="shuffle")


def test_a_copy_in_the_right_thread_is_used() -> None:
    everywhere = TileLayout(S[4] + R[32 : 1 @ laneid])
    assert check(everywhere, TileLayout(S[4 : 1 @ laneid])).kind == "move"
    assert check(everywhere, TileLayout(S[4] + 7 @ laneid)).kind == "nothing"
    spread = check(TileLayout(S[4 : 1 @ laneid]), everywhere)
    assert (spread.kind, spread.cost.shuffles) == ("shuffle", 4)  # broadcasts


def test_one_exchange_of_neighbors() -> None:
    """Two registers of two lanes are transposed with one shuffle: each lane sends the one it gives away."""
    rows = TileLayout(S[(16, 2, 2) : (2 @ laneid, 1 @ laneid, 1)])
    plan = check(rows, TileLayout(S[(16, 2, 2) : (2 @ laneid, 1, 1 @ laneid)]))
    assert (plan.cost.shuffles, plan.shuffles[0].distance) == (1, 1)


def test_lanes_that_change_places_take_one_shuffle_a_register() -> None:
    source = TileLayout(S[(2, 2, 8, 4) : (1 @ laneid, 2 @ laneid, 4 @ laneid, 1)])
    plan = check(source, TileLayout(S[(2, 2, 8, 4) : (2 @ laneid, 1 @ laneid, 4 @ laneid, 1)]))
    assert (plan.cost.shuffles, plan.cost.instructions) == (4, 4)
    assert plan.shuffles[0].distance is None


def test_words_of_64_bits_take_two_of_everything() -> None:
    rows = TileLayout(S[(16, 2, 2) : (2 @ laneid, 1 @ laneid, 1)])
    columns = TileLayout(S[(16, 2, 2) : (2 @ laneid, 1, 1 @ laneid)])
    assert check(rows, columns, 64).cost.shuffles == 2 * check(rows, columns, 32).cost.shuffles


@pytest.mark.parametrize(("bits", "pack"), [(4, 8), (8, 4), (16, 2), (32, 1), (64, 1)])
def test_neighbors_travel_together(bits: int, pack: int) -> None:
    source = TileLayout(S[(32, 16) : (1 @ laneid, 1)])
    target = TileLayout(S[(8, 4, 16) : (1 @ laneid, 8 @ laneid, 1)])
    plan = check(source, target, bits)
    assert (plan.pack, plan.cost.shuffles) == (pack, 16 // pack * max(1, bits // 32))


def test_the_thread_hierarchy_is_one_numbering() -> None:
    by_tx = TileLayout(S[(256, 2) : (1 @ tx, 1)])
    for same in (
        TileLayout(S[(8, 32, 2) : (1 @ warpid, 1 @ laneid, 1)]),
        TileLayout(S[(2, 4, 32, 2) : (1 @ wgid, 1 @ wid_in_wg, 1 @ laneid, 1)]),
        TileLayout(S[(2, 128, 2) : (1 @ wgid, 1 @ tid_in_wg, 1)]),
    ):
        assert check(by_tx, same).kind == "nothing"


# --- any layouts --------------------------------------------------------------------------------


@st.composite
def register_layouts(draw: st.DrawFn, digits: tuple[tuple[int, str], ...]) -> TileLayout:
    """A bijection of a tile onto lanes, warps and slots: the digits in any order, sometimes moved or with gaps."""
    strides = dict.fromkeys(["laneid", "warpid", "m"], 1)
    strides["m"] = draw(st.sampled_from([1, 1, 1, 2, 3]))  # gaps between the slots
    iters: list[Iter] = []
    for extent, axis in draw(st.permutations(digits)):
        iters.append(Iter(extent, strides[axis], axis))
        strides[axis] *= extent
    shard = draw(st.permutations(iters))
    offset = {"m": draw(st.sampled_from([0, 0, 1, 2]))}
    return TileLayout.from_iters(shard, (), offset)


TWO = tuple((2, "laneid") for _ in range(5))
FILES = [
    (*TWO, (2, "m"), (2, "m")),
    (*TWO, (2, "m"), (3, "m")),
    (*TWO, (2, "m"), (2, "warpid")),
    ((4, "laneid"), (6, "laneid"), (3, "m"), (2, "m")),
    ((3, "laneid"), (5, "laneid"), (2, "warpid"), (2, "m"), (2, "m")),
]


@given(
    st.data(),
    st.sampled_from(FILES),
    st.sampled_from([8, 16, 32, 64]),
    st.sampled_from([None, None, "shared"]),
)
def test_any_fragment_becomes_any_other(
    data: st.DataObject, digits: object, bits: int, via: str | None
) -> None:
    source, target = (data.draw(register_layouts(digits)) for _ in range(2))  # type: ignore[arg-type]
    check(source, target, bits, via=via)


@given(st.data(), st.sampled_from([16, 32]))
def test_copies_on_either_side(data: st.DataObject, bits: int) -> None:
    digits = ((2, "laneid"), (2, "laneid"), (2, "laneid"), (2, "m"), (2, "m"))
    replicas = [(), ((4, 8, laneid),), ((2, 8, laneid),), ((2, 1, warpid),), ((4, 8, laneid), (2, 1, warpid))]
    source, target = (
        TileLayout.from_iters(data.draw(register_layouts(digits)).shard, data.draw(st.sampled_from(replicas)))
        for _ in range(2)
    )
    check(source, target, bits)


@given(st.data())
def test_shuffles_are_as_few_as_the_busiest_lane_allows_or_nearly(data: st.DataObject) -> None:
    """Each round brings a lane one value and takes one from it; a plan may spend more to save choices by lane."""
    source, target = (data.draw(register_layouts(FILES[0])) for _ in range(2))
    plan = conversion_plan(source, target)
    have, want = (register_file(x, 32, x.span() + x.offset.get("m", 0)) for x in (source, target))
    held = [set(mine.tolist()) - {GAP} for mine in have]
    wanted = [set(mine.tolist()) - {GAP} for mine in want]
    incoming = max(len(wanted[lane] - held[lane]) for lane in range(32))
    assert incoming <= plan.cost.shuffles <= 4


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (TileLayout(S[4 : 1 @ laneid]), TileLayout(S[8 : 1 @ laneid]), "source has 4 elements, target 8"),
        (TileLayout(S[64 : 1 @ laneid]), TileLayout(S[64]), "reaches 63 on laneid, which has 0 to 31"),
        (TileLayout(S[4 : 1 @ laneid] - 1 @ laneid), TileLayout(S[4]), "reaches -1 on laneid"),
        (TileLayout(S[4 : 1 @ bx]), TileLayout(S[4]), "along bx, which names no thread of a block"),
        (TileLayout(S[4] - 1), TileLayout(S[4]), "reaches register slot -1"),
        (TileLayout(S[(2, 2) : (1, 0)]), TileLayout(S[4]), "puts elements 0 and 1 into slot 0 of thread 0"),
        (TileLayout(S[4]), TileLayout(S[(2, 2) : (1, 1)]), "puts elements 1 and 2 into slot 1"),
        (TileLayout(S[2**21]), TileLayout(S[2**21]), "more than the 1048576 that are listed"),
        (TileLayout(S[(2, 8) : (31 @ warpid, 1)] + 4 @ wgid), TileLayout(S[16]), "reaches thread 1504"),
        (TileLayout(S[4]), "S[4]", "takes tile layouts, got str"),
    ],
)
def test_refusals_say_what_is_wrong(source: object, target: object, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        conversion_plan(source, target)  # type: ignore[arg-type]


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(LayoutError, match="unknown way 'shufle', did you mean 'shuffle'"):
        conversion_plan(A, A, via="shufle")  # type: ignore[arg-type]
