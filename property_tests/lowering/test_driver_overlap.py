"""Whether strided arrays share bytes, against the sets of their bytes."""

from __future__ import annotations

import doctest
from itertools import product
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.backends.driver import carriers, dlpack, overlap
from lowering.backends.driver.overlap import reach, self_sharing, share_bytes
from tilelayout import Undecided

Lying = tuple[tuple[int, ...], tuple[int, ...], int]


@st.composite
def lying(draw: st.DrawFn) -> Lying:
    """Shape, strides and width of a small array: of any strides, or cut out of a larger row-major one."""
    rank = draw(st.integers(0, 3))
    shape = tuple(draw(st.integers(0 if draw(st.integers(0, 9)) == 0 else 1, 4)) for _ in range(rank))
    width = draw(st.sampled_from([1, 2, 4]))
    if draw(st.booleans()):
        strides = tuple(draw(st.integers(-20, 20)) for _ in range(rank))
    else:
        strides = (48, 12, width)[3 - rank :]
    return shape, strides, width


def elements(distance: int, array: Lying) -> list[set[int]]:
    """The bytes of each element."""
    shape, strides, width = array
    starts = [
        distance + sum(i * s for i, s in zip(x, strides, strict=True)) for x in product(*map(range, shape))
    ]
    return [set(range(a, a + width)) for a in starts]


@given(lying(), lying(), st.integers(-80, 80))
def test_two_arrays_share_exactly_the_bytes_that_are_in_both(a: Lying, b: Lying, distance: int) -> None:
    mine, others = set().union(*elements(0, a)), set().union(*elements(distance, b))
    assert share_bytes(distance, *a, *b) == bool(mine & others)


@given(lying())
def test_elements_of_one_array_share_bytes_when_there_are_fewer_than_they_take(a: Lying) -> None:
    found = elements(0, a)
    assert self_sharing(*a) == (sum(map(len, found)) != len(set().union(*found)))


@given(lying())
def test_the_reach_is_the_least_interval(a: Lying) -> None:
    every = set().union(*elements(0, a))
    assert reach(*a) == ((min(every), max(every) + 1) if every else (0, 0))


@pytest.mark.parametrize(
    ("distance", "shape", "strides", "shares"),
    [
        pytest.param(8192, (65536, 4096), (16384, 2), False, id="halves of long rows"),
        pytest.param(8190, (65536, 4096), (16384, 2), True, id="one element too near"),
        pytest.param(1 << 40, (1 << 20, 1 << 20), (1 << 20, 1), False, id="far away"),
        pytest.param(2, (65536, 32768), (131072, 4), False, id="even and odd columns"),
        pytest.param(4096, (512, 1024, 64), (1 << 22, 8192, 2), False, id="batches and rows"),
    ],
)
def test_large_arrays_are_decided_quickly(
    distance: int, shape: tuple[int, ...], strides: tuple[int, ...], shares: bool
) -> None:
    width = 1 if strides[-1] == 1 else 2
    began = perf_counter()
    assert share_bytes(distance, shape, strides, width, shape, strides, width) is shares
    assert perf_counter() - began < 0.5


def test_what_takes_too_long_is_left_open() -> None:
    """All sums but of one short dimension are multiples of 64, which is not seen from the strides together."""
    mine, strides = (9973, 9967, 2), (64 * 1009, 64 * 1013, 7)
    other, other_strides = (9949, 9941), (64 * 1019, 64 * 1021)
    with pytest.raises(Undecided, match=r"64576.*overlap"):
        share_bytes(64 * 1_000_003 + 3, mine, strides, 1, other, other_strides, 1)


@pytest.mark.parametrize(("module", "least"), [(overlap, 4), (carriers, 3), (dlpack, 1)])
def test_the_examples_hold(module: object, least: int) -> None:
    found = doctest.testmod(module)  # type: ignore[arg-type]
    assert found.failed == 0
    assert found.attempted >= least
