"""Random problems on the CPU's machine: each has the numbers that float64 says, under whatever schedule."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from .problems import FUNCTIONS, Case, arrays, check, draw, reference
from .simulated import found_for, simulated

FAST = range(30)
REST = [range(begin, begin + 17) for begin in range(30, 200, 17)]
SMALL = 72
"""The largest extent of the fast ones."""


def holds(case: Case) -> None:
    given = arrays(case)
    want, tolerance = reference(case, {name: x.array for name, x in given.items()})
    check(case, simulated(case, given), want, tolerance)


@pytest.mark.parametrize("seed", FAST)
def test_small_problems(seed: int) -> None:
    holds(draw(seed, most=SMALL))


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(30), *REST], ids=lambda r: f"{r.start}-{r.stop - 1}")
def test_problems(seeds: range) -> None:
    for seed in seeds:
        case = draw(seed)
        try:
            holds(case)
        except Exception as error:
            error.add_note(f"draw({seed}) = {case}")
            raise


@pytest.mark.parametrize("seed", range(0, 30, 5))
def test_simulate_takes_arrays_as_they_lie(seed: int) -> None:
    """What users call finds the leading dimensions itself, and has the same numbers."""
    case = draw(seed, most=SMALL)
    if case.config:  # a D that is made here is not as well aligned as the copy engine needs it
        case = replace(case, config=replace(case.config, slots=0))
    given = {name: x.array for name, x in arrays(case).items()}
    more = {name: x for name, x in given.items() if name in ("C", "bias")}
    found = case.kernel.simulate(
        given["A"],
        given["B"],
        **more,
        alpha=case.alpha,
        beta=case.beta,
        alignment=case.alignment,
        schedule=case.schedule,
    )
    check(case, found, *reference(case, given))


def test_the_same_seed_draws_the_same_problem() -> None:
    assert draw(5) == draw(5)
    for name, x in arrays(draw(5)).items():
        assert x.flat.tobytes() == arrays(draw(5))[name].flat.tobytes()


def test_what_is_drawn_reaches_everything() -> None:
    """Over the 200 problems every type, order, feed and form of the epilogue comes several times."""
    cases = [draw(seed) for seed in range(200)]
    seen = Counter(c.types[0] for c in cases)
    seen.update(c.target for c in cases)
    seen.update(f"{name} {order}" for c in cases for name, order in c.orders.items())
    seen.update(f"feed {c.config.feed}" if c.config else "chosen" for c in cases)
    seen.update(f"bias {c.bias}" for c in cases)
    seen.update(f"aligned {c.alignment}" for c in cases)
    seen.update(f"stages {c.config.stages}" for c in cases if c.config)
    seen.update("slots" for c in cases if c.config and c.config.slots)
    seen.update("threads" for c in cases if c.config and c.config.slots and c.config.sender == "threads")
    seen.update("spread" for c in cases if c.config and c.config.spread)
    seen.update(f"packed {c.config.packed}" for c in cases if c.config)
    seen.update("beside" for c in cases if c.config and c.config.beside)
    seen.update("splits" for c in cases if c.config and c.config.splits > 1)
    seen.update("unroll" for c in cases if c.config and c.config.unroll > 1)
    seen.update("batched" for c in cases if c.batches)
    seen.update("empty" for c in cases if 0 in c.extents)
    seen.update("alpha 0" for c in cases if c.alpha == 0)
    seen.update("beta 0" for c in cases if c.beta == 0)
    seen.update(c.function for c in cases if c.function)
    wanted = {"float16", "bfloat16", "tfloat32", "float64", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"}
    wanted |= {"sm_75", "sm_80", "sm_89", "sm_90a", "feed tma", "feed cp_async", "feed registers", "chosen"}
    wanted |= {f"{name} {order}" for name in "ABCD" for order in ("row", "column")}
    wanted |= {"threads", "spread", "packed A", "packed B", "packed AB", "beside"}
    wanted |= {
        "bias row",
        "bias column",
        "bias None",
        *FUNCTIONS,
        "aligned 16",
        "aligned 8",
        "aligned 4",
        "aligned 2",
    }
    wanted |= {
        "stages 2",
        "stages 3",
        "stages 4",
        "slots",
        "splits",
        "unroll",
        "batched",
        "empty",
        "alpha 0",
        "beta 0",
    }
    assert not {x for x in wanted if seen[x] < 3}


def test_a_wrong_number_is_seen() -> None:
    """The check can fail: one element that is one off."""
    case = next(c for c in map(draw, range(100)) if c.exact and 0 not in c.extents and c.out == "float16")
    given = {name: x.array for name, x in arrays(case).items()}
    want, tolerance = reference(case, given)
    good = want.astype(np.float16)
    check(case, good, want, tolerance)
    bad = good.copy()
    bad.flat[-1] += np.float16(1)
    with pytest.raises(AssertionError):
        check(case, bad, want, tolerance)


def test_what_is_built_is_as_aligned_as_the_arrays() -> None:
    """The alignment that a case promises is that of its arrays and no more."""
    for seed in range(40):
        case = draw(seed, most=40)
        given = arrays(case)
        built, _ = found_for(case, given)
        for matrix in built.problem.matrices:
            assert matrix.alignment >= min(16, max(case.alignment, matrix.bytes))
