"""Factors copied beside the product: what comes before and what comes beside is all of them, and is waited for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering import MachineError
from lowering.backends.cta_machine import EXAMPLES, run_grid
from lowering.dtypes import dtype
from lowering.isa.protocols import COUNT, COUNT_WAIT
from lowering.kernels import Config, gemm
from lowering.kernels.gemm import beside, built
from lowering.kernels.gemm.built import Built, FirstPanels
from lowering.kernels.gemm.chain import links
from lowering.kernels.gemm.choose import choose
from lowering.kernels.gemm.numbers import Extents, first_tiles, grid_size, tiles_of
from lowering.kernels.gemm.pack import WARPS, Packing, factor_extents
from lowering.kernels.gemm.panels import (
    PANELS_AT,
    RUN,
    counters,
    first_numbers,
    lines,
    rest_numbers,
)
from lowering.program import Comment, If, Instr, While
from lowering.target import target
from tilelayout import LayoutError

SMALL = Config((64, 64, 32), (2, 2), 2, "tma", group=2, packed="AB", beside=True)
ORDERS = [(a, b) for a in ("row", "column") for b in ("row", "column")]
PROBLEMS = {order: gemm("float16", A=order[0], B=order[1], target="sm_90a").problem for order in ORDERS}


def integers(rows: int, columns: int, kind: str, order: str, seed: int) -> Any:
    x = np.random.default_rng(seed).integers(-3, 4, (rows, columns)).astype(dtype(kind).numpy)
    return np.asfortranarray(x) if order == "column" else x


# --- the product --------------------------------------------------------------------------------------


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("schedule", EXAMPLES)
def test_the_product_is_exact_under_every_schedule(orders: tuple[str, str], schedule: int) -> None:
    """4 CTAs, and 4 x 5 tiles: half of both factors is copied beside the product."""
    m, n, k = 203, 267, 77
    a, b = integers(m, k, "float16", orders[0], 1), integers(k, n, "float16", orders[1], 2)
    made = gemm("float16", A=orders[0], B=orders[1], target="sm_90a", config=SMALL)
    found = made.simulate(a, b, alignment=2, schedule=schedule)
    np.testing.assert_array_equal(found, a.astype(float) @ b)


CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], int]] = {
    "int8": ("int8", {}, {"tile": (64, 128, 64)}, 1),
    "tf32": ("tfloat32", {}, {}, 4),
    "fp8": ("float8_e4m3fn", {}, {"tile": (64, 128, 64)}, 1),
    "bf16": ("bfloat16", {}, {}, 2),
    "transposed": ("float16", {"D": "column"}, {}, 2),
    "A alone": ("float16", {}, {"packed": "A"}, 16),
    "B alone": ("float16", {}, {"packed": "B"}, 16),
    "two CTAs share": ("float16", {}, {"resident": 2}, 2),
    "low tiles": ("float16", {}, {"tile": (16, 64, 32), "warps": (1, 4)}, 2),
    "rows by threads": ("float16", {}, {"slots": 1, "sender": "threads"}, 2),
    "one row of tiles in a group": ("float16", {}, {"group": 1}, 2),
    "all rows in a group": ("float16", {}, {"group": 16}, 2),
}


@pytest.mark.parametrize("case", CASES)
def test_types_and_ways_to_cut(case: str) -> None:
    kind, orders, changed, alignment = CASES[case]
    m, n, k = 203, 267, 85
    if changed.get("packed") == "A":
        n = 264
    elif changed.get("packed") == "B":
        k = 88
    a, b = integers(m, k, kind, "row", 3), integers(k, n, kind, "row", 4)
    made = gemm(kind, target="sm_90a", config=replace(SMALL, **changed), **orders)
    found = made.simulate(a, b, alignment=alignment)
    np.testing.assert_array_equal(found.astype(float), a.astype(float) @ b.astype(float))


@pytest.mark.parametrize("extents", [(1, 1, 1), (31, 33, 1), (64, 64, 64), (129, 1, 200), (1, 129, 33)])
def test_few_tiles_leave_nothing_to_copy_beside(extents: tuple[int, int, int]) -> None:
    m, n, k = extents
    a, b = integers(m, k, "float16", "row", 5), integers(k, n, "float16", "row", 6)
    found = gemm("float16", target="sm_90a", config=SMALL).simulate(a, b, alignment=2)
    np.testing.assert_array_equal(found, a.astype(float) @ b)


# --- what is copied -----------------------------------------------------------------------------------


SIZES = st.integers(1, 700)


@st.composite
def launches(draw: Any) -> tuple[Config, Extents]:
    tile = (draw(st.sampled_from((64, 128))), draw(st.sampled_from((64, 128, 192))), 32)
    config = replace(SMALL, tile=tile, group=draw(st.sampled_from((1, 2, 3, 8))))
    m, n, k = draw(SIZES), draw(SIZES), draw(SIZES)
    strides = {"A": k, "B": n, "D": n}
    return config, Extents(m, n, k, 1, strides, {}, draw(st.integers(1, 40)))


@given(launches())
def test_the_first_tiles_hold_every_ctas_first(launch: tuple[Config, Extents]) -> None:
    """Counted as the schedule counts: groups of rows, down the rows of a group, then on to the next column."""
    config, found = launch
    rows, columns = tiles_of(config, found)
    high, wide = first_tiles(config, found)
    seen: set[tuple[int, int]] = set()
    for tile in range(grid_size(config, rows * columns, found.multiprocessors)):
        first = tile // (config.group * columns) * config.group
        inner, height = tile % (config.group * columns), min(config.group, rows - first)
        seen.add((first + inner % height, inner // height))
    assert all(r < high and c < wide for r, c in seen)
    assert high <= rows
    assert wide <= columns
    assert wide == 1 + max(c for _, c in seen)  # no more than that
    assert high <= config.group + max(r for r, _ in seen)


@given(launches(), st.sampled_from(ORDERS), st.sampled_from("AB"))
def test_before_and_beside_are_the_whole_factor(
    launch: tuple[Config, Extents], orders: tuple[str, str], factor: str
) -> None:
    """Each element of the copy's rows is in one of the two, and what the first tiles read comes before."""
    config, found = launch
    problem = PROBLEMS[orders]
    x = lines(problem, config, factor)
    whole = Packing(factor, x.matrix, False).extents(found)
    rows, length = factor_extents(factor, x.matrix, found)
    copied = np.zeros((whole.M, whole.N), int)
    panels = tiles_of(config, found)[0 if factor == "A" else 1]
    tiles = first_tiles(config, found)[0 if factor == "A" else 1]
    counted: dict[int, int] = {}
    firsts, rests = first_numbers(problem, config, found), rest_numbers(problem, config, found)
    assert rests["first_rows" if factor == "A" else "first_columns"] == tiles
    for values, offset in ((firsts, 0), (rests, tiles)):
        line_runs, line_chunks = values[x.line_runs.name], values[x.line_chunks.name]
        assert values[x.row.name] == whole.N
        for run in range(values[x.runs.name]):
            line, begin = run // line_runs, run % line_runs * RUN
            panel = line // x.in_panel
            if offset:
                counted[panel] = counted.get(panel, 0) + 1
            for chunk in range(begin, min(line_chunks, begin + RUN)):
                at = [
                    (line if x.by_rows else chunk) * x.chunk[0],
                    (chunk if x.by_rows else line) * x.chunk[1],
                ]
                at[0 if x.by_rows else 1] += offset * x.side
                assert at[0 if x.by_rows else 1] // x.side == offset + panel  # it is counted where it is read
                copied[at[0] : at[0] + x.chunk[0], at[1] : at[1] + x.chunk[1]] += 1
        if not offset:
            high, wide = FirstPanels(problem, config, target("sm_90a")).stored(factor, found)
            assert (copied[:high, :wide] == 1).all()
            assert copied.sum() == high * wide
            needed = min(tiles * x.side, rows if x.by_rows else length)
            assert (high, min(wide, length)) == ((needed, length) if x.by_rows else (rows, needed))
    assert (copied[:rows, :length] == 1).all()
    assert counted == dict.fromkeys(range(panels - tiles), rests[x.line_runs.name] * x.in_panel)
    assert PANELS_AT + 2 * (panels - tiles) <= firsts["counters"] == counters(config, found)
    total = sum([n for name, n in firsts.items() if re.fullmatch("runs_[ab]", name)])
    assert firsts["tiles"] == -(-total // WARPS)


# --- what is waited for -------------------------------------------------------------------------------


def without(protocol: str) -> Callable[[Any], Any]:
    """The statements without the instructions of a protocol."""

    def changed(body: Any) -> Any:
        out: list[Any] = []
        for s in body:
            if isinstance(s, Instr) and s.instruction.protocol == protocol:
                out.append(Comment("left out"))
            elif isinstance(s, If):
                out.append(If(s.condition, changed(s.body), changed(s.orelse)))
            elif isinstance(s, While):
                out.append(While(s.condition, changed(s.body), s.hoist))
            else:
                out.append(s)
        return tuple(out)

    return changed


@pytest.mark.parametrize(
    ("protocol", "said"),
    [(COUNT_WAIT, "reads an element of [AB] that holds nothing|another CTA has written"),
     (COUNT, r"no warp can go on[\s\S]*progress\[3[2-9]\], which is 0, to reach \d+")],
)  # fmt: skip
def test_the_machine_sees_what_is_not_waited_for(
    protocol: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = built.build

    def build(*given: Any) -> Any:
        program = real(*given)
        return replace(program, body=without(protocol)(program.body))

    monkeypatch.setattr(built, "build", build)
    a, b = integers(203, 77, "float16", "row", 1), integers(77, 267, "float16", "row", 2)
    made = gemm("float16", target="sm_90a", config=SMALL)
    for schedule in EXAMPLES:
        with pytest.raises(MachineError, match=said):
            made.simulate(a, b, alignment=2, schedule=schedule)


@pytest.mark.parametrize("factor", ["A", "B"])
@pytest.mark.parametrize("schedule", EXAMPLES)
def test_the_machine_sees_that_one_run_too_few_is_waited_for(
    factor: str, schedule: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = beside._need

    def need(x: Any) -> If:
        found = real(x)
        if x.matrix.name != factor:
            return found
        (wait,) = found.body
        counter, every = wait.arguments
        return If(found.condition, (Instr(wait.instruction, (counter, every - 1)),))

    monkeypatch.setattr(beside, "_need", need)
    a, b = integers(203, 77, "float16", "row", 1), integers(77, 267, "float16", "row", 2)
    made = gemm("float16", target="sm_90a", config=SMALL)
    with pytest.raises(MachineError, match=r"reads (an element|what another CTA)"):
        made.simulate(a, b, alignment=2, schedule=schedule)


def test_runs_beyond_the_kernels_arithmetic_are_refused() -> None:
    n = 1 << 22
    found = Extents(n, n, n, 1, {"A": n, "B": n, "D": n}, {})
    with pytest.raises(LayoutError, match=r"are copied in \d+ runs, beyond 1073741823.*beside=False"):
        rest_numbers(PROBLEMS["row", "row"], SMALL, found)


def test_what_spills_is_told_to_copy_before(monkeypatch: pytest.MonkeyPatch) -> None:
    from lowering.backends.assemble import SpillError

    def spills(_: Any) -> Any:
        raise SpillError(target("sm_90a"), "8 bytes of local memory", "")

    monkeypatch.setattr(Built, "kept", property(spills))
    made = gemm("float16", target="sm_90a", config=SMALL)
    with pytest.raises(LayoutError, match="remedy: beside=False, more warps"):
        made.assembled(made.best)


def test_counters_begin_at_nothing_in_every_call() -> None:
    """Whatever a call before has left."""
    made = gemm("float16", target="sm_90a", config=SMALL)
    (first,) = made.built(aligned={"A": 2, "B": 2, "D": 2}).packers
    found = Extents(203, 267, 77, 1, {"A": 77, "B": 267, "D": 267}, {}, 4)
    values = first.values(found, 1.0, 0.0)
    sizes = {"A": 203 * 128, "B": 77 * 320, "given_A": 203 * 77, "given_B": 77 * 267}
    memory = {name: np.zeros(n, np.float16) for name, n in sizes.items()}
    memory["progress"] = np.full(60, 7, np.int32)
    for grid in (1, 3):
        after = run_grid(
            first.program, (grid, 1, 1), memory, {p.name: values[p.name] for p in first.program.parameters}
        )
        count = values["counters"]
        assert after["progress"].tolist() == [0] * count + [7] * (60 - count)


# --- who copies so ------------------------------------------------------------------------------------


def test_large_badly_aligned_products_copy_beside() -> None:
    problem = PROBLEMS["row", "row"].aligned(A=2, B=2, D=2)
    sm = target("sm_90a")

    def chosen(m: int, n: int, k: int, **more: Any) -> Config:
        return choose(replace(problem, **more), sm, Extents(m, n, k, 1, {"A": k, "B": n, "D": n}, {}))

    large = chosen(4095, 4097, 4099)
    assert (large.packed, large.beside, large.tile, large.group) == ("AB", True, (256, 128, 64), 8)
    assert chosen(1023, 1025, 1021).beside is False  # tiles are small
    assert chosen(2047, 2049, 2051).beside is False  # each CTA has one tile
    assert chosen(4095, 4097, 1999).beside is False  # they take too short
    assert chosen(4095, 4097, 2001).beside is True
    assert chosen(4095, 4097, 4099, batched=True).beside is False
    # Where it was found to spill, the same is copied first as a whole.
    again = choose(
        problem, sm, Extents(4095, 4097, 4099, 1, {"A": 4099, "B": 4097, "D": 4097}, {}), 132, (large,)
    )
    assert again == replace(large, beside=False)


@pytest.mark.parametrize(
    ("changed", "options", "reason"),
    [({"packed": ""}, {}, "nothing is packed"),
     ({"feed": "cp_async"}, {}, "feed='cp_async' leaves no warp to copy"),
     ({"splits": 2}, {}, "splits=2 has CTAs begin in several parts of K"),
     ({}, {"batched": True}, "the kernel is batched"),
     ({"tile": (64, 32, 32)}, {}, "tile[1] = 32 is no multiple of 64, which a warp copies at once"),
     ({"tile": (32, 64, 32)}, {"A": "column"}, "tile[0] = 32 is no multiple of 64, which a warp copies at once")],
)  # fmt: skip
def test_refusals_and_their_remedy(changed: dict[str, Any], options: dict[str, Any], reason: str) -> None:
    config = replace(SMALL, **changed)
    other = next(
        (f"{x} or " for x in ("tile[0]=64", "tile[1]=64") if x.replace("=64", " = 32") in reason), ""
    )
    said = f"beside=True, and {reason} (remedy: {other}beside=False)"
    with pytest.raises(LayoutError, match=re.escape(said)):
        gemm("float16", target="sm_90a", config=config, **options).built()
    if other:
        larger = replace(config, tile=tuple([max(64, n) for n in config.tile[:2]] + [config.tile[2]]))
        assert gemm("float16", target="sm_90a", config=larger, **options).built()
    assert gemm("float16", target="sm_90a", config=replace(config, beside=False), **options).built()


def test_the_kernels_of_a_call() -> None:
    made: Built = gemm("float16", target="sm_90a", config=SMALL).built(aligned={"A": 2, "B": 2, "D": 2})
    first, product = links(made)
    names = {"A": "packed A", "B": "packed B", "given_A": "A", "given_B": "B"}
    assert dict(first.tensors) == dict(product.tensors) == names
    assert {b.name for b in first.built.program.buffers} == {*names, "progress"}
    assert {b.name for b in product.built.program.buffers if b.space == "global"} == {*names, "D", "progress"}
