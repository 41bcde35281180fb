"""Tuning: what is tried, what is taken, and that calls use it.  Clocks and GPUs are stand-ins."""

from __future__ import annotations

import doctest
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowering.backends.driver import DriverError
from lowering.kernels import Config, GemmKernel, gemm
from lowering.kernels.gemm import trial as trial_room
from lowering.kernels.gemm import tune as tune_room
from lowering.kernels.gemm.candidates import first, variations
from lowering.kernels.gemm.choose import choose, configs
from lowering.kernels.gemm.config import Feed
from lowering.kernels.gemm.numbers import Extents
from lowering.kernels.gemm.refine import streaming
from lowering.kernels.gemm.search import FINALISTS, Search
from lowering.kernels.gemm.trial import TOLERANCE, difference
from lowering.kernels.gemm.tuned import Row, Tuned, ordered
from lowering.target import target
from property_tests.lowering.driver_fake import Driver, Tensor, installed
from tilelayout import LayoutError, S, TileLayout

SM_90 = target("sm_90a")
BASE = Config((64, 64, 64), (2, 2), 4, "tma")


def extents(m: int, n: int, k: int) -> Extents:
    return Extents(m, n, k, 1, {}, {})


class Clock:
    """Seconds that pass when it is told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class FakeTrial:
    """Configurations whose times are a function of them; some are refused, some wrong."""

    def __init__(
        self,
        cost: Callable[[Config], float],
        clock: Clock,
        refused: Sequence[Config] = (),
        wrong: Sequence[Config] = (),
    ) -> None:
        self.cost, self.clock, self.refused, self.wrong = cost, clock, refused, wrong
        self.built: list[Config] = []
        self.timed: list[list[Config]] = []

    def build(self, config: Config) -> None:
        self.built.append(config)
        self.clock.now += 0.1
        if config in self.refused:
            raise LayoutError("gemm", f"{config} has no room")

    def result(self, config: Config) -> str:
        assert config in self.built
        return "its result is another" if config in self.wrong else ""

    def times(self, configs: Sequence[Config], seconds: float) -> list[float]:
        self.timed.append(list(configs))
        self.clock.now += seconds
        return [self.cost(c) for c in configs]


def search(trial: FakeTrial, seconds: float = 60.0, said: list[str] | None = None) -> Search:
    return Search(trial, seconds, (said if said is not None else []).append, trial.clock)


# --- the search -----------------------------------------------------------------------------------


def test_it_ends_at_what_no_change_makes_faster() -> None:
    """A cost that each thing adds to by itself, so that the least is found by changing one at a time."""
    wanted = replace(BASE, group=8, stages=6, unroll=2, fragments=1)
    things = ("group", "stages", "unroll", "fragments")

    def cost(c: Config) -> float:
        return 1e-6 * (10 + sum(getattr(c, n) != getattr(wanted, n) for n in things))

    trial = FakeTrial(cost, Clock())
    problem = gemm("float16", B="column", target="sm_90a").problem
    s = search(trial, 600.0)
    s.run([BASE], lambda c: variations(c, problem, SM_90, extents(4096, 4096, 4096)))
    assert s.fastest(1) == [wanted]
    assert s.rows[wanted].seconds == pytest.approx(1e-5)
    assert len(set(trial.built)) == len(trial.built) == len(s.rows)
    assert len(trial.timed[-1]) == FINALISTS
    assert wanted in trial.timed[-1]


def test_what_is_refused_or_wrong_has_no_time() -> None:
    a, b, c = (replace(BASE, group=g) for g in (4, 8, 32))
    said: list[str] = []
    trial = FakeTrial(lambda x: 1e-6 / x.group, Clock(), refused=[b], wrong=[c])
    s = search(trial, said=said)
    s.run([a, b, c])
    assert {x: r.seconds for x, r in s.rows.items()} == {a: 2.5e-7, b: None, c: None}
    assert "has no room" in s.rows[b].reason
    assert s.rows[c].reason == "its result is another"
    assert all(not {b, c} & set(round_) for round_ in trial.timed)
    assert [any(str(x) in line for line in said) for x in (a, b, c)] == [True] * 3


def test_it_ends_when_the_time_is_spent() -> None:
    trial = FakeTrial(lambda c: 1e-6 * c.stages, Clock())
    problem = gemm("float16", B="column", target="sm_90a").problem
    s = search(trial, 1.0)
    s.run([BASE], lambda c: variations(c, problem, SM_90, extents(4096, 4096, 4096)))
    assert trial.clock.now < 4.0
    assert s.fastest(1)
    none = search(FakeTrial(lambda c: 1.0, Clock()), 1e-9)
    none.run([BASE])
    assert none.rows[BASE].seconds == 1.0  # the first ones are measured at any rate


# --- candidates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes", [(4096, 4096, 4096), (64, 64, 64), (16, 8192, 512), (1, 1, 1), (8192, 16, 7 * 8)]
)
@pytest.mark.parametrize("name", ["sm_75", "sm_80", "sm_90a", "sm_120a"])
def test_what_is_chosen_without_measuring_is_among_the_first(name: str, sizes: tuple[int, int, int]) -> None:
    where = target(name)
    problem, found = gemm("float16", B="column", target=name).problem, extents(*sizes)
    some = first(problem, where, found, 132)
    assert choose(problem, where, found, 132) == some[0]
    assert len(set(some)) == len(some)
    feeds: tuple[Feed, ...] = ("tma", "cp_async", "registers")
    offered = [c for f in feeds for c in configs(problem, where, f)]
    deeper = [streaming(problem, where, c, found) for c in offered]
    assert {c.tile for c in some} <= {c.tile for c in (*offered, *deeper)}


@pytest.mark.parametrize(("rows", "depth", "spread"), [(1, 128, True), (16, 128, True), (64, 64, False)])
def test_few_rows_are_fed_by_threads(rows: int, depth: int, spread: bool) -> None:
    problem = gemm("float16", B="column", target="sm_90a").problem
    thin = choose(problem, SM_90, extents(rows, 8192, 8192))
    assert (thin.feed, thin.tile[2], thin.spread) == ("cp_async", depth, spread)
    several = choose(problem, SM_90, extents(8 * rows + 64, 8192, 8192))
    assert (several.feed, several.spread) == ("tma", False)


@pytest.mark.parametrize(
    ("sizes", "aligned", "packed"),
    [((4095, 4097, 4099), (2, 2), "AB"), ((4095, 4097, 4099), (16, 2), "B"), ((4095, 4097, 4099), (2, 16), "A"),
     ((4095, 4097, 4099), (4, 2), "AB"), ((4095, 4097, 4099), (4, 8), ""), ((100, 4097, 4099), (2, 2), "AB"),
     ((90, 4097, 4099), (2, 2), ""),
     ((255, 1025, 1023), (2, 2), ""), ((40_000, 40_000, 40_000), (2, 2), ""), ((4096, 4096, 0), (2, 2), "")],
)  # fmt: skip
def test_factors_are_packed_where_it_is_worth_it(
    sizes: tuple[int, int, int], aligned: tuple[int, int], packed: str
) -> None:
    problem = gemm("float16", B="column", target="sm_90a").problem.aligned(A=aligned[0], B=aligned[1])
    m, n, k = sizes
    found = Extents(m, n, k, 1, {"A": k, "B": k, "D": n}, {})
    chosen = choose(problem, SM_90, found)
    assert chosen.packed == packed
    assert chosen.beside == bool(packed and min(sizes) > 2000)
    assert not packed or chosen.feed == "tma"
    some = first(problem, SM_90, found, 132)
    assert some[0] == chosen
    assert not packed or any(not c.packed for c in some)  # as they lie is tried as well


def test_variations_differ_in_one_thing() -> None:
    problem = gemm("float16", B="column", target="sm_90a").problem
    base = replace(BASE, slots=2, unroll=2)
    found = variations(base, problem, SM_90, extents(4096, 4096, 4096))
    assert len(set(found)) == len(found)
    names = [f.name for f in fields(Config)]
    changed = [{n for n in names if getattr(c, n) != getattr(base, n)} for c in found]
    assert all(len(x) == 1 or "resident" in x or x == {"slots", "sender"} for x in changed)
    assert set().union(*changed) == {"stages", "unroll", "group", "resident", "slots", "fragments", "sender"}
    thin = variations(base, problem, SM_90, extents(16, 4096, 4096))
    assert [c for c in thin if c.spread] == [replace(base, spread=True)]
    assert all(c.stages % c.unroll == 0 for c in found)


def test_parts_of_k_are_tried_where_there_are_few_tiles_and_much_depth() -> None:
    problem = gemm("float16", B="column", target="sm_90a").problem
    deep = variations(BASE, problem, SM_90, extents(256, 256, 8192))
    assert {c.splits for c in deep} == {1, 2, 4, 8}
    assert {c.splits for c in variations(BASE, problem, SM_90, extents(256, 256, 512))} == {1, 2}
    assert {c.splits for c in variations(BASE, problem, SM_90, extents(8192, 8192, 8192))} == {1}


def test_the_rows_of_a_result_that_end_within_a_unit_are_not_sent_by_the_engine() -> None:
    problem = gemm("float16", B="column", target="sm_90a").problem
    for n in (500, 4100):
        some = first(problem, SM_90, extents(4096, n, 512), 132)
        assert {c.sender for c in some if c.slots} == {"threads"}


# --- the table ------------------------------------------------------------------------------------


def test_the_table() -> None:
    fast, slow, bad = BASE, replace(BASE, group=8), replace(BASE, group=4)
    rows = ordered([Row(bad, None, "no room " * 30), Row(slow, 4e-6), Row(fast, 2e-6)])
    found = Tuned("a product", "a GPU", 2 * 1000**2 * 1000, rows)
    assert found.best == fast
    assert list(found.times.items()) == [(fast, 2e-6), (slow, 4e-6)]
    lines = str(found).splitlines()
    assert lines[0] == "a product on a GPU"
    assert [line.split() for line in lines[2:4]] == [
        [str(fast), "2.00", "1000.0", "100.0%"], [str(slow), "4.00", "500.0", "50.0%"],
    ]  # fmt: skip
    assert lines[4].split()[:2] == [str(bad), "no"]
    assert len(lines[4]) < 150
    nothing = Tuned("a product", "a GPU", 1, ordered([Row(bad, None, "no room")]))
    assert (nothing.best, nothing.times) == (None, {})
    assert "no room" in str(nothing)


# --- results that differ --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TOLERANCE)
def test_results_may_differ_by_rounding_and_no_more(kind: str) -> None:
    from lowering.dtypes import dtype

    def words(x: list[float]) -> Any:
        return np.array(x).astype(dtype(kind).numpy).view(f"u{dtype(kind).bits // 8}")

    wanted = words([1.0, -8.0, 0.0, float("nan"), float("inf")])
    near, far = 8 * TOLERANCE[kind] / 2, 8 * TOLERANCE[kind] * 2.5
    assert difference(wanted, wanted, kind) == ""
    assert difference(words([1.0 + near, -8.0, 0.0, float("nan"), float("inf")]), wanted, kind) == ""
    assert "at (0,)" in difference(words([1.0 + far, -8.0, 0.0, float("nan"), float("inf")]), wanted, kind)
    assert "at (3,)" in difference(words([1.0, -8.0, 0.0, 0.0, float("inf")]), wanted, kind)
    assert "at (4,)" in difference(words([1.0, -8.0, 0.0, float("nan"), float("-inf")]), wanted, kind)


def test_integers_may_not_differ() -> None:
    x = np.array([[1, 2], [3, 4]], np.uint32)
    assert difference(x, x, "int32") == ""
    assert "off by 1 at (1, 0)" in difference(x + np.array([[0, 0], [1, 0]], np.uint32), x, "int32")


def test_the_example_holds() -> None:
    failed, tried = doctest.testmod(trial_room)
    assert (failed, tried) == (0, 2)


# --- remembering ----------------------------------------------------------------------------------


@pytest.fixture
def remembering(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A GPU's name and an empty cache."""
    monkeypatch.setenv("TILELAYOUT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TILELAYOUT_NO_CACHE", raising=False)

    def forget() -> None:
        for x in (tune_room._device_name, tune_room._any, tune_room._lookup):
            x.cache_clear()

    forget()
    with installed(Driver()):
        yield
    forget()


def test_what_was_fastest_is_built(remembering: None) -> None:
    kernel = gemm("float16", B="column", target="sm_90a")
    here, there = extents(512, 512, 512), extents(512, 512, 1024)
    assert kernel.built(here).config != BASE
    tune_room.remember(kernel.built(here).problem, kernel.target, here, BASE)
    assert kernel.built(here).config == BASE
    assert kernel.built(there).config != BASE
    assert kernel.built(here, {"A": 8}).config != BASE
    assert kernel.built(here, scaled=True).config != BASE
    assert gemm("float16", B="row", target="sm_90a").built(here).config != BASE
    again = gemm("float16", B="column", target="sm_90a")
    assert again.built(here).config == BASE
    assert (
        gemm("float16", B="column", target="sm_90a", config=replace(BASE, group=8)).built(here).config.group
        == 8
    )


def test_what_another_version_remembered_is_nothing(remembering: None) -> None:
    kernel, here = gemm("float16", B="column", target="sm_90a"), extents(512, 512, 512)
    key = tune_room._key(kernel.built(here).problem, kernel.target, here)
    for value in ({"tile": [64, 64, 64], "warps": [2, 2], "stages": 4, "feed": "tma", "new": 1}, {"stages": 4},
                  {"tile": [64, 64, 64], "warps": [2, 2], "stages": 4, "feed": "mail"}):  # fmt: skip
        tune_room._results().put(key, value)
        tune_room._lookup.cache_clear()
        assert tune_room.remembered(kernel.built(here).problem, kernel.target, here) is None


# --- a whole call, on a driver that only notes ----------------------------------------------------


class Gpu(Driver):
    """Launches of 256 threads take a third of the time of others."""

    def answer(self, name: str, *a: Any) -> tuple[Any, ...]:
        (done,) = super().answer("cuInit")
        if name == "cuMemAlloc":
            return done, 1 << 20
        if name == "cuEventElapsedTime":
            return done, 1.0 if self.of("cuLaunchKernel")[-1][4] == 256 else 3.0
        return super().answer(name, *a)


def operand(shape: tuple[int, int], pointer: int) -> Tensor:
    return Tensor("float16", shape, (shape[1], 1), pointer)


def test_a_call_is_tuned(remembering: None, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = gemm("float16", target="sm_90a")
    a, b, d = operand((64, 32), 1 << 12), operand((32, 64), 1 << 14), operand((64, 64), 1 << 16)
    few = Config((64, 64, 64), (2, 2), 2, "tma")
    many = Config((64, 64, 64), (2, 4), 2, "tma")
    none = Config((64, 64, 64), (2, 2), 32, "tma")
    with installed(Gpu()) as driver:
        found = kernel.tune(a, b, d, configs=[few, many, none], seconds=0.01, progress=True, stream=0)
        assert list(found.times) == [few, many]
        assert found.times[few] == pytest.approx(found.times[many] / 3)
        (refused,) = [r for r in found.rows if r.seconds is None]
        assert refused.config == none
        assert "<GemmKernel float16 row x float16 row -> float16 row for sm_90a>, 64 x 64 x 32" in str(found)
        # Nothing is launched on the caller's result, and what was taken is given back.
        assert driver.of("cuMemFree") == [(1 << 20,)]
        assert all(call[0] == 1 << 20 for call in driver.of("cuMemsetD8Async"))
        assert kernel.built(extents(64, 64, 32)).config == found.best
    said = capsys.readouterr().out
    assert all(str(c) in said for c in (few, many, none))


def test_what_tuning_refuses(remembering: None) -> None:
    a, b, d = operand((64, 32), 1 << 12), operand((32, 64), 1 << 14), operand((64, 64), 1 << 16)
    with installed(Gpu()):
        with pytest.raises(LayoutError, match="the kernel is cut as"):
            gemm("float16", target="sm_90a", config=BASE).tune(a, b, d)
        with pytest.raises(LayoutError, match="seconds = 0"):
            gemm("float16", target="sm_90a").tune(a, b, d, seconds=0)
        with pytest.raises(LayoutError, match="no element"):
            gemm("float16", target="sm_90a").tune(
                operand((0, 32), 1 << 12), b, operand((0, 64), 1 << 16), stream=0
            )
        with pytest.raises(LayoutError, match="C was given"):
            gemm("float16", target="sm_90a").tune(a, b, d, C=d)


def test_without_a_gpu_there_is_nothing_to_tune() -> None:
    x = np.zeros((4, 4), np.float16)
    with pytest.raises((LayoutError, DriverError)):
        GemmKernel.tune(gemm("float16", target="sm_90a"), x, x, x)


def test_layouts_are_tuned_apart() -> None:
    """What is the fastest for rows may not do for a layout of the same type, order and alignment."""
    found = extents(64, 64, 64)
    rows = TileLayout(S[(64, 64) : (72, 1)])
    blocks = TileLayout(S[(16, 4, 8, 8) : (32, 8, 512, 1)])
    problems = [gemm("float16", target="sm_90a").problem]
    problems += [gemm("float16", A=x, shape=(64, 64, 64), target="sm_90a").problem for x in (rows, blocks)]
    assert len({tune_room._key(p, SM_90, found) for p in problems}) == 3
