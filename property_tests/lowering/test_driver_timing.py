"""Launches by the GPU's clock, and memory of our own: on a driver that only notes its calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.backends.driver import DriverError, Form
from lowering.backends.driver.scratch import scratch
from lowering.backends.driver.timing import ROUNDS, interleaved
from property_tests.lowering.driver_fake import CUresult, Driver, installed


class Clock(Driver):
    """Events whose distance is what was launched between them."""

    def __init__(self) -> None:
        super().__init__()
        self.passed, self.marks = 0.0, dict[Any, float]()
        self.made = 0

    def answer(self, name: str, *a: Any) -> tuple[Any, ...]:
        (done,) = super().answer("cuInit")
        match name:
            case "cuEventCreate":
                self.made += 1
                return done, self.made
            case "cuEventRecord":
                self.marks[a[0]] = self.passed
                return (done,)
            case "cuEventSynchronize":
                return (done,)
            case "cuEventElapsedTime":
                return done, 1e3 * (self.marks[a[1]] - self.marks[a[0]])
            case _:
                return super().answer(name, *a)


def launches(
    driver: Clock, times: list[Callable[[int], float]], order: list[int]
) -> list[Callable[[], None]]:
    """Each takes as long as its function says of how often it has been launched before."""
    counts = [0] * len(times)

    def one(i: int) -> Callable[[], None]:
        def launch() -> None:
            order.append(i)
            driver.passed += times[i](counts[i])
            counts[i] += 1

        return launch

    return [one(i) for i in range(len(times))]


def test_the_median_of_each_in_turns() -> None:
    order: list[int] = []
    with installed(Clock()) as driver:
        # The second is slow when it is launched first; the third is slow every seventh time.
        times: list[Callable[[int], float]] = [
            lambda n: 1e-3,
            lambda n: 9.0 if n < 2 else 2e-3,
            lambda n: 1.0 if n % 7 == 0 else 3e-3,
        ]
        found = interleaved(launches(driver, times, order), 5, 0, 0.0)
        assert found == pytest.approx([1e-3, 2e-3, 3e-3])
        assert {call[1] for call in driver.of("cuEventRecord")} == {5}
        assert len(driver.of("cuEventDestroy")) == driver.made == 2
    rounds = [order[i : i + 3] for i in range(6, len(order), 3)]
    assert len(rounds) == ROUNDS[0]
    assert all(sorted(r) == [0, 1, 2] for r in rounds)
    assert {r[0] for r in rounds} == {0, 1, 2}


def test_what_is_over_at_once_is_repeated() -> None:
    order: list[int] = []
    with installed(Clock()) as driver:
        found = interleaved(launches(driver, [lambda n: 1e-5, lambda n: 1e-2], order), 0, 0, 0.0)
        assert found == pytest.approx([1e-5, 1e-2])
    assert order.count(0) > 10 * order.count(1)


def test_rounds_end() -> None:
    order: list[int] = []
    with installed(Clock()) as driver:
        interleaved(launches(driver, [lambda n: 1e-2], order), 0, 0, 1e9)
    assert len(order) == ROUNDS[1] + 2


def test_an_error_of_a_launch_is_said_and_events_are_given_back() -> None:
    with installed(Clock()) as driver:
        driver.fails["cuEventSynchronize"] = CUresult.CUDA_ERROR_LAUNCH_FAILED
        with pytest.raises(DriverError, match="cuEventSynchronize: CUDA_ERROR_LAUNCH_FAILED"):
            interleaved([lambda: None], 0, 0, 0.0)
        assert len(driver.of("cuEventDestroy")) == 2


# --- memory ---------------------------------------------------------------------------------------


class Memory(Driver):
    """The GPU's memory is this process's."""

    def __init__(self, size: int) -> None:
        super().__init__()
        raw = ctypes.create_string_buffer(size + 256)
        self.raw, self.base = raw, -(-ctypes.addressof(raw) // 256) * 256

    def answer(self, name: str, *a: Any) -> tuple[Any, ...]:
        (done,) = super().answer("cuInit")
        match name:
            case "cuMemAlloc":
                return done, self.base
            case "cuMemsetD8Async":
                ctypes.memset(*a[:3])
                return (done,)
            case "cuMemcpyDtoHAsync":
                ctypes.memmove(*a[:3])
                return (done,)
            case _:
                return super().answer(name, *a)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9)), min_size=2, max_size=3),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(1, 1 << 20),
)
def test_memory_that_lies_as_an_array_does(dims: list[tuple[int, int]], width: int, place: int) -> None:
    shape, steps = zip(*dims, strict=True)
    strides = tuple([s * width for s in steps])
    form = Form("uint8", shape, strides, width)
    pointer = place * width
    with installed(Memory(1 << 12)) as driver, scratch(form, pointer, 3, 0) as memory:
        assert memory.pointer % 256 == pointer % 256
        assert driver.base <= memory.pointer + form.low
        assert memory.pointer + form.high <= driver.base + driver.of("cuMemAlloc")[0][0]
        memory.fill(0xA5)
        found = memory.read()
        assert (found.shape, found.strides) == (shape, strides)
        assert (found == int.from_bytes(bytes([0xA5]) * width, "little")).all()
        last = memory.pointer + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        ctypes.memset(last, 0, width)
        assert memory.read()[tuple([-1] * len(shape))] == 0
        assert [x[-1] for x in driver.of("cuMemsetD8Async")] == [3]
    assert driver.of("cuMemFree") == [(driver.base,)]


def test_memory_is_given_back_after_an_error() -> None:
    with installed(Memory(1 << 12)) as driver:
        with pytest.raises(KeyError), scratch(Form("uint8", (4, 4), (4, 1), 1), 0, 0, 0):
            raise KeyError
        assert driver.of("cuMemFree") == [(driver.base,)]


def test_without_elements() -> None:
    with installed(Memory(1 << 12)), scratch(Form("float16", (0, 4), (8, 2), 2), 0, 0, 0) as memory:
        assert np.asarray(memory.read()).shape == (0, 4)
