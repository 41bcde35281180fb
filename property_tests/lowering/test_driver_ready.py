"""Launches that are decided whole: what the driver sees is what a launch of the usual way shows it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.backends.driver import (
    Frame,
    ParameterBlock,
    load,
)
from lowering.backends.driver.bindings import entry_point
from lowering.errors import DriverError
from lowering.program import Parameter, Program
from property_tests.lowering.driver_fake import (
    Driver,
    TellingDriver,
    installed,
)

CODE = b"\x7fELF" + bytes(60) + b"Cuda compilation tools, release 13.5, V13.5.37\0"


@pytest.fixture
def driver() -> Iterator[Driver]:
    with installed(Driver()) as found:
        yield found


SHELL = Program("gemm", 4, (), (), (), parameters=(Parameter("n", "s32", -9, 9), Parameter("x", "f64")))


@pytest.fixture
def telling() -> Iterator[TellingDriver]:
    with installed(TellingDriver((4, 8))) as found:
        yield found


def frame_of(n: int, x: float) -> Frame:
    frame = Frame(ParameterBlock(SHELL))
    frame.fill((), (n, x))
    return frame


def parameters(n: int, x: float) -> tuple[bytes, bytes]:
    return struct.pack("i", n), struct.pack("d", x)


@given(
    st.tuples(*[st.integers(1, (1 << 31) - 1)] * 3), st.integers(1, 1024), st.integers(0, (1 << 64) - 1),
    st.integers(-9, 9), st.floats(allow_nan=False), st.integers(0, 232448),
)  # fmt: skip
def test_a_ready_launch_is_the_launch(
    grid: tuple[int, int, int], threads: int, stream: int, n: int, x: float, shared: int
) -> None:
    with installed(TellingDriver((4, 8))) as driver:
        driver.answers["cuDeviceGetAttribute"] = 1 << 30
        kernel, frame = load(CODE, "gemm", shared, 0), frame_of(n, x)
        ready = kernel.prepare(grid, threads, frame, stream)
        arguments = frame.arguments
        del frame  # what is ready holds what it points to
        driver.calls.clear()
        for _ in range(2):
            ready.start()
        assert driver.calls == [("cuCtxGetDevice",), ("cuLaunchKernelEx",)] * 2
        kernel.launch(grid, threads, arguments, stream)
        first, second, third = driver.launches
    assert first == second == third == (4711, grid, (threads, 1, 1), shared, stream, parameters(n, x))


@pytest.mark.parametrize("before", [None, 0])
def test_a_ready_launch_on_another_gpu_switches_for_it(telling: TellingDriver, before: int | None) -> None:
    ready = load(CODE, "gemm", 512, 1).prepare((1, 1, 1), 32, frame_of(1, 2.0))
    seen = []
    telling.calls.clear()
    telling.note = lambda *a: seen.append(telling.current)  # type: ignore[method-assign]
    for now in (before, 1, before):  # what was answered last is no answer
        telling.current = now
        ready.start()
        assert telling.current == now
    assert seen == [1, 1, 1]
    assert len(telling.of("cuCtxPushCurrent")) == len(telling.of("cuCtxPopCurrent")) == 2


@pytest.mark.parametrize("status", [719, 98765])
def test_a_ready_launch_that_fails_says_what_was_launched(telling: TellingDriver, status: int) -> None:
    ready = load(CODE, "gemm", 512).prepare((3, 2, 1), 128, frame_of(1, 2.0))
    telling.fails["cuLaunchKernelEx"] = status  # type: ignore[assignment]
    name = "CUDA_ERROR_LAUNCH_FAILED" if status == 719 else "CUDA error 98765"
    for current_gpu in (0, 1):
        telling.current = current_gpu
        with pytest.raises(
            DriverError, match=rf"gemm on NVIDIA Fake: {name}.*3 x 2 x 1 CTAs of 128"
        ) as error:
            ready.start()
        assert (error.value.code, telling.current) == (status, current_gpu)


def test_threads_start_one_ready_launch_and_ask_for_their_own_context(telling: TellingDriver) -> None:
    ready = load(CODE, "gemm").prepare((1, 1, 1), 32, frame_of(3, 4.0))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: ready.start(), range(100)))
    assert {x.parameters for x in telling.launches} == {parameters(3, 4.0)}
    assert len(telling.launches) == 100


def test_without_addresses_a_ready_launch_goes_through_the_bindings(telling: TellingDriver) -> None:
    telling.functions.clear()
    ready = load(CODE, "gemm").prepare((1, 2, 3), 32, frame_of(3, 4.0), 9)
    ready.start()
    assert [c[0] for c in telling.calls][-2:] == ["cuCtxGetDevice", "cuLaunchKernel"]
    assert telling.launches == [(4711, (1, 2, 3), (32, 1, 1), 0, 9, parameters(3, 4.0))]


def test_stream_0_of_each_thread_is_known_to_the_bindings_alone(
    telling: TellingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for said, there in (("1", False), ("0", True), ("", True)):
        entry_point.cache_clear()
        monkeypatch.setenv("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", said)
        assert (entry_point("cuLaunchKernelEx") is not None) is there
