"""Memory of a call's own: of which library, for which stream, and when it is given back."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lowering.backends.driver import streams
from lowering.kernels.gemm.own_arrays import own_room
from property_tests.lowering.driver_fake import OK, Driver, Interface, Tensor, installed

STREAM, CURRENT = 77, 70


class Silent(Driver):
    def answer(self, name: str, *a: Any) -> tuple[Any, ...]:
        return (OK,) if name == "cuMemFreeAsync" else super().answer(name, *a)


def test_of_no_known_library_it_is_the_drivers_on_the_launchs_stream() -> None:
    with installed(Silent()) as driver:
        driver.answers["cuMemAllocAsync"] = 1 << 40
        address, held = own_room(Interface(), 4096, STREAM, 1)
        assert address == 1 << 40
        assert driver.of("cuMemAllocAsync") == [(4096, STREAM)]
        assert not driver.of("cuMemFreeAsync")
        del held
        gc.collect()
        assert driver.of("cuMemFreeAsync") == [(1 << 40, STREAM)]
        assert driver.current == 0  # as before


def test_a_refused_allocation_frees_nothing() -> None:
    from lowering.errors import DriverError
    from property_tests.lowering.driver_fake import CUresult

    with installed(Silent()) as driver:
        driver.fails["cuMemAllocAsync"] = CUresult.CUDA_ERROR_INVALID_VALUE
        with pytest.raises(DriverError, match="cuMemAllocAsync"):
            own_room(Interface(), 4096, STREAM, 0)
        gc.collect()
        assert not driver.of("cuMemFreeAsync")


class Making(Tensor):
    """A tensor that says which stream was torch's when it made another."""

    def new_empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        return SimpleNamespace(
            data_ptr=lambda: 4096, bytes=shape, dtype=dtype, stream=sys.modules["torch"].now
        )  # type: ignore[attr-defined]


Making.__module__ = "torch"


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    found: Any = ModuleType("torch")
    found.now, found.int8 = CURRENT, "int8"

    @contextmanager
    def stream(handle: int) -> Iterator[None]:
        before, found.now = found.now, handle
        yield
        found.now = before

    found._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: CURRENT)
    found.cuda = SimpleNamespace(
        stream=stream,
        ExternalStream=lambda handle, device: handle,
        default_stream=lambda device: "the default one",
    )
    monkeypatch.setitem(sys.modules, "torch", found)
    streams.torch_stream.cache_clear()
    yield found
    streams.torch_stream.cache_clear()


@pytest.mark.parametrize(("asked", "made"), [(CURRENT, CURRENT), (STREAM, STREAM), (0, "the default one")])
def test_torch_makes_it_for_the_stream_of_the_launch(torch: Any, asked: int, made: Any) -> None:
    """What is freed there goes to others behind the launch, not behind what torch's own stream has."""
    address, held = own_room(Making("float16", (8, 8), (8, 1), 0), 4096, asked, 0)
    assert (address, held.bytes, held.dtype, held.stream) == (4096, (4096,), "int8", made)
    assert torch.now == CURRENT
