"""Streams: how a launch is given one, whose is taken, and what waits for what."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from lowering.backends.driver import (
    as_device_array,
    stream_of,
    wait_for,
)
from property_tests.lowering.driver_fake import (
    Driver,
    Interface,
    Tensor,
    cupy_array,
    installed,
)
from tilelayout import LayoutError

CODE = b"\x7fELF" + bytes(60) + b"Cuda compilation tools, release 13.5, V13.5.37\0"


@pytest.fixture
def driver() -> Iterator[Driver]:
    with installed(Driver()) as found:
        yield found


class Stream:
    """A stream of some library: the attributes that one has."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Protocol:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 44


class Handle:
    def __int__(self) -> int:
        return 55


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (0, 0), (2, 2), (1 << 47, 1 << 47),
        (Stream(cuda_stream=11, device_index=0), 11), (Stream(ptr=22, device_id=-1), 22),
        (Stream(handle=ctypes.c_void_p(33)), 33), (Stream(handle=ctypes.c_void_p(None)), 0),
        (Stream(handle=Handle()), 55), (Protocol(), 44), (Handle(), 55),
    ],
)  # fmt: skip
def test_a_stream_is_given_as_a_handle_or_by_its_library(driver: Driver, stream: Any, handle: int) -> None:
    assert stream_of((as_device_array(Tensor("float32", (4,), (1,), 4096), "A"),), stream) == handle


@pytest.mark.parametrize("stream", [-1, True, 1.5, "0", b"0", object(), Stream()])
def test_what_is_no_stream_is_refused(driver: Driver, stream: Any) -> None:
    with pytest.raises(LayoutError, match=r"launch: .*stream"):
        stream_of((as_device_array(Tensor("float32", (4,), (1,), 4096), "A"),), stream)


def test_a_stream_of_another_gpu_is_refused(driver: Driver) -> None:
    x = as_device_array(Tensor("float32", (4,), (1,), 4096, 1), "A")
    with pytest.raises(LayoutError, match="the stream is one of GPU 0, the arrays lie on GPU 1"):
        stream_of((x,), Stream(cuda_stream=11, device_index=0))


def libraries(monkeypatch: pytest.MonkeyPatch, cupy_takes_a_device: bool = True) -> None:
    """torch's current stream is 70 and the GPU's number, cupy's 80 and the GPU's number."""
    current_stream = staticmethod(lambda device: Stream(cuda_stream=70 + device))
    torch = type(
        "torch", (), {"_C": type("C", (), {}), "cuda": type("cuda", (), {"current_stream": current_stream})}
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    if cupy_takes_a_device:
        get = staticmethod(lambda device=0: Stream(ptr=80 + device))
    else:
        get = staticmethod(lambda: Stream(ptr=80))
    monkeypatch.setitem(
        sys.modules, "cupy", type("cupy", (), {"cuda": type("cuda", (), {"get_current_stream": get})})
    )


def test_without_a_stream_it_is_the_librarys_current_one(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries(monkeypatch)
    t = as_device_array(Tensor("float32", (4,), (1,), 4096, 1), "A")
    c = as_device_array(cupy_array("f4", (4,), (4,), 8192, 1), "B")
    plain, bound = as_device_array(Interface(), "C"), as_device_array(Interface(stream=9), "C")
    assert [stream_of((x, t)) for x in (t, c, plain, bound)] == [71, 81, 0, 9]


def test_an_older_cupy_is_asked_for_the_current_gpu(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    libraries(monkeypatch, cupy_takes_a_device=False)
    assert stream_of((as_device_array(cupy_array("f4", (4,), (4,), 8192, 1), "B"),)) == 80


def test_a_launch_waits_for_what_is_ready_elsewhere_and_for_nothing_else(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries(monkeypatch)
    t = as_device_array(Tensor("float32", (4,), (1,), 4096), "A")
    c = as_device_array(cupy_array("f4", (4,), (4,), 8192), "B")
    plain, bound, legacy = (as_device_array(Interface(stream=s), "C") for s in (None, 9, 1))
    for arrays, stream, waited in (
        ((t, t), 5, []),
        ((t, c), 70, [80]),
        ((c, t), 80, [70]),
        ((t, bound), 70, [9]),
        ((t, bound, c), 70, [9, 80]),
        ((bound, plain), 9, []),
        ((plain, legacy), 0, []),
        ((plain, legacy), 1, []),
        ((plain, legacy), 5, [1]),
    ):
        driver.calls.clear()
        wait_for(arrays, stream)
        assert [a[1] for a in driver.of("cuEventRecord")] == waited
        assert [a[0] for a in driver.of("cuStreamWaitEvent")] == [stream] * len(waited)
        assert len(driver.of("cuEventCreate")) == len(driver.of("cuEventDestroy")) == len(waited)
